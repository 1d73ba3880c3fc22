//! The fields `capabilities` and `limits`, which are the same in every format. A wrong value is an error, so that a typing
//! error grants nothing and leaves nothing unlimited.

use std::path::{Component, Path};

use serde_json::{Map, Value};
use toolcrib_foundation::text;

use crate::tool::{
    Access, Capabilities, Destination, FileRequest, FolderRequest, Glob, LimitRequest, NetworkRequest, Service,
    ServiceKind, ServiceUser,
};

use super::shape::{kind, members};
use super::{environment, secrets};

/// Capabilities that every tool may request, beside services.
const FIELDS: [&str; 5] = ["files", "env", "network", "secrets", "cache"];
/// Maximum patterns of one list.
const MAX_GLOBS: usize = 256;
/// Maximum entries of any other list: each is compared with those before it.
const MAX_LISTED: usize = 1024;

/// Faults of one field in an entry, collected so that each is reported.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    /// Returns the value, or adds its fault and returns a default that nobody uses.
    fn checked<T: Default>(&mut self, value: Result<T, String>) -> T {
        value.unwrap_or_else(|fault| {
            self.0.push(fault);
            T::default()
        })
    }

    /// Returns the members of an object, and adds a fault for each unknown one.
    fn object(&mut self, field: &str, value: Value, known: &[&str]) -> Map<String, Value> {
        let fields = self.checked(members(field, value));
        let unknown = fields.keys().filter(|key| !known.contains(&key.as_str())).take(text::MAX_LISTED);
        let expected = known.join("`, `");
        self.0.extend(unknown.map(|key| format!("{field}: unknown field `{key}`, expected one of `{expected}`")));
        fields
    }

    /// Returns the value if there is no fault.
    fn finish<T>(self, value: T) -> Result<T, Vec<String>> {
        if self.0.is_empty() { Ok(value) } else { Err(self.0) }
    }
}

/// Reads the request of an entry: `{"files": "read" | "write" | {"read": [DIR…], "write": [DIR…]}, "env": [NAME…],
/// "network": "allow" | [DEST…], "secrets": [{…}…], "cache": true, "model": true, "tools": "allow" | [GLOB…]}`. The
/// names of `envPassthrough` come before the names of `env`.
///
/// # Errors
///
/// All faults of the request, at most one per list.
pub(super) fn capabilities(
    stated: Option<Value>,
    env: Vec<String>,
    folder: &Path,
) -> Result<Capabilities, Vec<String>> {
    read(stated, env, folder, &[ServiceUser::Program])
}

/// Reads a script's request: an entry's request, and `{"exec": "allow" | [GLOB…], "delegate": true, "meta": true}`.
pub(super) fn scripts(stated: Option<Value>, folder: &Path) -> Result<Capabilities, Vec<String>> {
    read(stated, Vec::new(), folder, &[ServiceUser::Program, ServiceUser::Script])
}

/// Reads the request of a component's descriptor: an entry's request without folders by name, because a component has
/// no files next to it.
pub(super) fn of_program(stated: Option<Value>) -> Result<Capabilities, Vec<String>> {
    let requested = capabilities(stated, Vec::new(), Path::new("/"))?;
    if let FileRequest::Folders(_) = requested.files {
        return Err(vec!["capabilities.files must be `read` or `write`: a component names no folders".to_owned()]);
    }
    Ok(Capabilities { from_program: true, ..requested })
}

/// Reads a request that may contain the services of these users.
fn read(
    stated: Option<Value>,
    env: Vec<String>,
    folder: &Path,
    users: &[ServiceUser],
) -> Result<Capabilities, Vec<String>> {
    let Some(stated) = stated else {
        return Ok(Capabilities { env, ..Capabilities::default() });
    };
    let of_user = |user| Service::ALL.into_iter().filter(move |service: &Service| service.user() == user);
    let services: Vec<_> = users.iter().flat_map(|user| of_user(*user)).collect();
    let keys: Vec<_> = FIELDS.into_iter().chain(services.iter().map(|service| service.key())).collect();
    let mut faults = Faults::default();
    let mut fields = faults.object("capabilities", stated, &keys);
    let mut requests = Vec::with_capacity(services.len());
    for service in services {
        let names = match service.kind() {
            ServiceKind::Switch if faults.checked(switch(service.key(), &mut fields)) => vec![Glob::everything()],
            ServiceKind::Switch => Vec::new(),
            ServiceKind::Names => faults.checked(names(service.key(), &mut fields)),
        };
        requests.push((service, names));
    }
    let mut requested = common(fields, env, folder, &mut faults);
    for (service, names) in requests {
        requested.request(service, names);
    }
    faults.finish(requested)
}

fn switch(field: &str, fields: &mut Map<String, Value>) -> Result<bool, String> {
    match fields.remove(field) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(requested)) => Ok(requested),
        Some(other) => Err(format!("capabilities.{field} must be true or false, found {}", kind(&other))),
    }
}

fn names(field: &str, fields: &mut Map<String, Value>) -> Result<Vec<Glob>, String> {
    let place = format!("capabilities.{field}");
    let written = match fields.remove(field) {
        Some(Value::String(word)) if word == "allow" => vec!["*".to_owned()],
        Some(Value::String(other)) => {
            return Err(format!("{place} must be `allow` or an array of names, found {other:?}"));
        }
        other => strings(&place, other.filter(|list| !list.is_null()))?,
    };
    globs(&place, written)
}

/// Parses patterns over names, none of them empty.
pub(super) fn globs(field: &str, written: Vec<String>) -> Result<Vec<Glob>, String> {
    if written.len() > MAX_GLOBS {
        return Err(format!("{field}: {} patterns, more than the {MAX_GLOBS} allowed", written.len()));
    }
    let read = |(index, text): (usize, String)| match text.trim() {
        "" => Err(format!("{field}[{index}] is empty")),
        text => text.parse::<Glob>().map_err(|wrong| format!("{field}[{index}]: {wrong}")),
    };
    written.into_iter().enumerate().map(read).collect()
}

/// Reads the fields that every tool may have.
fn common(mut fields: Map<String, Value>, mut env: Vec<String>, folder: &Path, faults: &mut Faults) -> Capabilities {
    let names = strings("capabilities.env", fields.remove("env"));
    for name in faults.checked(names.and_then(|names| environment::normalise("capabilities.env", names))) {
        if !env.contains(&name) {
            env.push(name);
        }
    }
    let files = files(fields.remove("files"), folder, faults);
    let secrets = faults.checked(secrets::read(fields.remove("secrets")));
    let network = faults.checked(network(fields.remove("network")));
    let cache = faults.checked(switch("cache", &mut fields));
    Capabilities { files, env, network, secrets, cache, declared: true, ..Capabilities::default() }
}

fn files(stated: Option<Value>, folder: &Path, faults: &mut Faults) -> FileRequest {
    match stated {
        None | Some(Value::Null) => FileRequest::None,
        Some(Value::String(word)) => faults.checked(access("capabilities.files", &word).map(FileRequest::Workspace)),
        Some(folders) => {
            let mut folders = faults.object("capabilities.files", folders, &["read", "write"]);
            let mut requests = Vec::new();
            for access in [Access::Read, Access::Write] {
                let field = format!("capabilities.files.{}", access.as_str());
                let paths = strings(&field, folders.remove(access.as_str()));
                let paths = paths.and_then(|paths| match paths.iter().find(|path| !beside(path)) {
                    Some(path) => {
                        Err(format!("{field}: {path:?} is not beside the file that asks for it; a flag can allow it"))
                    }
                    None => Ok(paths),
                });
                let paths = paths.and_then(|paths| match paths.first() {
                    Some(path) if super::files::is_bundled(folder) => Err(format!(
                        "{field}: {path:?} is beside the file that asks for it, where a bundle has no folders; write `read` \
                         or `write` for `capabilities.files`, and a flag names the folder"
                    )),
                    _ => Ok(paths),
                });
                let paths = faults.checked(paths).into_iter();
                requests.extend(paths.map(|path| FolderRequest {
                    path: folder.join(path),
                    access,
                    beside: folder.to_path_buf(),
                }));
            }
            FileRequest::Folders(requests)
        }
    }
}

fn network(stated: Option<Value>) -> Result<NetworkRequest, String> {
    match stated {
        None | Some(Value::Null) => Ok(NetworkRequest::None),
        Some(Value::String(word)) if word == "allow" => Ok(NetworkRequest::Workspace),
        Some(Value::String(other)) => {
            Err(format!("capabilities.network must be `allow` or an array of destinations, found {other:?}"))
        }
        list => {
            let written = strings("capabilities.network", list)?;
            let read = |(index, text): (usize, String)| {
                text.parse::<Destination>().map_err(|error| format!("capabilities.network[{index}]: {error}"))
            };
            written.into_iter().enumerate().map(read).collect::<Result<_, _>>().map(NetworkRequest::Destinations)
        }
    }
}

/// Reads the limits of an entry: `{"memoryMb": N, "outputKb": N, "diskMb": N, "diskEntries": N, "fuel": N, "requests": N,
/// "receivedKb": N}`.
///
/// # Errors
///
/// All faults of the limits.
pub(super) fn limits(stated: Option<Value>) -> Result<LimitRequest, Vec<String>> {
    let Some(stated) = stated else {
        return Ok(LimitRequest::default());
    };
    let known = ["memoryMb", "outputKb", "diskMb", "diskEntries", "fuel", "requests", "receivedKb"];
    let mut faults = Faults::default();
    let mut fields = faults.object("limits", stated, &known);
    let mut count = |field: &str| positive(&format!("limits.{field}"), fields.remove(field));
    let mut bytes = |field: &str, unit: u64| {
        let size = count(field)?.map(|count| count.checked_mul(unit).and_then(|bytes| usize::try_from(bytes).ok()));
        match size {
            Some(None) => Err(format!("limits.{field}: too large")),
            size => Ok(size.flatten()),
        }
    };
    let memory = faults.checked(bytes("memoryMb", 1 << 20));
    let stdout = faults.checked(bytes("outputKb", 1 << 10));
    let disk_bytes = faults.checked(bytes("diskMb", 1 << 20)).map(|size| size as u64);
    let requests = faults.checked(bytes("requests", 1));
    let received = faults.checked(bytes("receivedKb", 1 << 10));
    let disk_entries = faults.checked(count("diskEntries"));
    let fuel = faults.checked(count("fuel"));
    faults.finish(LimitRequest { deadline: None, memory, stdout, disk_bytes, disk_entries, fuel, requests, received })
}

/// Returns `true` if a path stays in the folder of its file: a copied source requests the same folders elsewhere.
pub(super) fn beside(path: &str) -> bool {
    let plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    !path.is_empty() && !path.contains(['\\', ':']) && Path::new(path).components().all(plain)
}

fn strings(field: &str, value: Option<Value>) -> Result<Vec<String>, String> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let Value::Array(items) = value else {
        return Err(format!("{field} must be an array of strings, found {}", kind(&value)));
    };
    if items.len() > MAX_LISTED {
        return Err(format!("{field}: {} entries, more than the {MAX_LISTED} allowed", items.len()));
    }
    let each = items.into_iter().enumerate().map(|(index, item)| match item {
        Value::String(text) => Ok(text),
        other => Err(format!("{field}[{index}] must be a string, found {}", kind(&other))),
    });
    each.collect()
}

fn positive(field: &str, value: Option<Value>) -> Result<Option<u64>, String> {
    match value {
        None => Ok(None),
        Some(value) => match value.as_u64() {
            Some(count @ 1..) => Ok(Some(count)),
            _ => Err(format!("{field} must be a positive whole number, found {value}")),
        },
    }
}

fn access(field: &str, word: &str) -> Result<Access, String> {
    match word {
        "read" => Ok(Access::Read),
        "write" => Ok(Access::Write),
        other => Err(format!("{field} must be `read`, `write` or an object, found {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_are_requested_by_word_or_by_folder() {
        let of = |value| capabilities(Some(value), vec![], Path::new("/m")).map(|requested| requested.files);
        assert_eq!(of(json!({})), Ok(FileRequest::None));
        assert_eq!(of(json!({"files": "write"})), Ok(FileRequest::Workspace(Access::Write)));
        let read = FolderRequest { path: "/m/./data".into(), access: Access::Read, beside: "/m".into() };
        assert_eq!(of(json!({"files": {"read": ["./data"]}})), Ok(FileRequest::Folders(vec![read])));
    }

    #[test]
    fn the_network_is_requested_by_word_or_by_destination() {
        let of = |value| capabilities(Some(json!({ "network": value })), vec![], Path::new("/m")).map(|it| it.network);
        assert_eq!(of(json!(null)), Ok(NetworkRequest::None));
        assert_eq!(of(json!("allow")), Ok(NetworkRequest::Workspace));
        let one = NetworkRequest::Destinations(vec!["GET api.example".parse().unwrap()]);
        assert_eq!(of(json!(["GET api.example"])), Ok(one));
        for (value, text) in [
            (json!("*"), "capabilities.network must be `allow` or an array of destinations, found \"*\""),
            (json!(true), "capabilities.network must be an array of strings, found a boolean"),
            (json!(["a.example", "b/c"]), "capabilities.network[1]: `b/c` is not a destination: "),
        ] {
            let error = of(value).unwrap_err().join("; ");
            assert!(error.starts_with(text), "{error}");
        }
    }

    #[test]
    fn a_typing_error_grants_nothing() {
        let of = |value| capabilities(Some(value), vec![], Path::new("/m")).unwrap_err().join("; ");
        assert_eq!(of(json!([])), "capabilities must be an object, found an array");
        assert_eq!(
            of(json!({"file": "read"})),
            "capabilities: unknown field `file`, expected one of `files`, `env`, `network`, `secrets`, `cache`, `model`, `tools`"
        );
        assert_eq!(of(json!({"files": "rw"})), "capabilities.files must be `read`, `write` or an object, found \"rw\"");
        assert_eq!(of(json!({"files": {"read": [1]}})), "capabilities.files.read[0] must be a string, found a number");
        for path in ["/etc", "..", "a/../../b", "C:/x", ""] {
            let text = of(json!({"files": {"read": [path]}}));
            assert!(text.contains("is not beside the file that asks"), "{path}: {text}");
        }
        assert_eq!(of(json!({"env": "TZ"})), "capabilities.env must be an array of strings, found a string");
    }

    #[test]
    fn a_script_requests_programs_agents_and_its_own_run_too() {
        let of = |value| scripts(Some(value), Path::new("/m"));
        let requested = of(json!({"exec": ["git*"], "delegate": true, "env": ["tz"]})).unwrap();
        assert_eq!(
            (requested.exec[0].as_str(), requested.delegate, requested.meta, requested.declared),
            ("git*", true, false, true)
        );
        assert_eq!(requested.env, ["TZ"]);
        assert!(of(json!({"exec": "allow"})).unwrap().exec[0].is_everything());
        assert!(!scripts(None, Path::new("/m")).unwrap().declared);
        for (value, text) in [
            (json!({"exec": "git"}), "capabilities.exec must be `allow` or an array of names, found \"git\""),
            (json!({"exec": ["a", " "]}), "capabilities.exec[1] is empty"),
            (json!({"exec": vec!["a"; 257]}), "capabilities.exec: 257 patterns, more than the 256 allowed"),
            (json!({"meta": "yes"}), "capabilities.meta must be true or false, found a string"),
            (
                json!({"execute": 1}),
                "capabilities: unknown field `execute`, expected one of `files`, `env`, `network`, `secrets`, `cache`, `model`, `tools`, `exec`, `delegate`, `meta`",
            ),
        ] {
            assert_eq!(of(value), Err(vec![text.to_owned()]));
        }
        let program = capabilities(Some(json!({"exec": "allow"})), vec![], Path::new("/m")).unwrap_err();
        assert!(program[0].contains("unknown field `exec`"), "{program:?}");
    }

    #[test]
    fn limits_are_positive_and_have_units() {
        let of = |value| limits(Some(value));
        let one = of(json!({"memoryMb": 2, "outputKb": 3, "fuel": 4, "diskMb": 5, "diskEntries": 6})).unwrap();
        assert_eq!((one.memory, one.stdout, one.fuel), (Some(2 << 20), Some(3 << 10), Some(4)));
        assert_eq!((one.disk_bytes, one.disk_entries), (Some(5 << 20), Some(6)));
        let two = of(json!({"requests": 5, "receivedKb": 6})).unwrap();
        assert_eq!((two.requests, two.received), (Some(5), Some(6 << 10)));
        assert_eq!(of(json!({"fuel": 0})).unwrap_err(), ["limits.fuel must be a positive whole number, found 0"]);
        assert_eq!(of(json!({"memoryMb": u64::MAX})).unwrap_err(), ["limits.memoryMb: too large"]);
    }

    #[test]
    fn every_wrong_field_is_reported() {
        let stated =
            json!({"files": "rw", "env": "TZ", "network": true, "cache": 1, "exec": "git", "fils": 1, "nett": 2});
        let begins = [
            "capabilities: unknown field `fils`, expected one of ",
            "capabilities: unknown field `nett`, expected one of ",
            "capabilities.exec must be ",
            "capabilities.env must be ",
            "capabilities.files must be ",
            "capabilities.network must be ",
            "capabilities.cache must be ",
        ];
        let faults = scripts(Some(stated), Path::new("/m")).unwrap_err();
        assert_eq!(faults.len(), begins.len(), "{faults:?}");
        for (fault, begin) in faults.iter().zip(begins) {
            assert!(fault.starts_with(begin), "{fault}");
        }
        let faults = limits(Some(json!({"fuel": 0, "memoryMb": "x", "fule": 1}))).unwrap_err();
        assert_eq!(faults.len(), 3, "{faults:?}");
        let many: Map<String, Value> = (0..1000).map(|n| (format!("field_{n}"), json!(n))).collect();
        assert_eq!(limits(Some(many.into())).unwrap_err().len(), text::MAX_LISTED);
    }
}
