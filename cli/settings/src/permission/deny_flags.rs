//! Denials from the command line and settings files, to name the one that overrides an allowance.

use std::path::Path;

use toolcrib::policy::{Permission, ToolSelection, canonical};
use toolcrib::tool::Destination;

/// Denials of the command line.
#[derive(Debug, Clone, Default)]
pub struct DenyFlags(Vec<(Permission, Option<String>)>);

impl DenyFlags {
    /// Collects the denials of the command line.
    pub fn new(denied: impl IntoIterator<Item = Permission>) -> Self {
        Self(denied.into_iter().map(|denied| (denied, None)).collect())
    }

    /// Adds denials of settings files, each with its key and its file.
    pub fn with_settings(mut self, denied: impl IntoIterator<Item = (Permission, String)>) -> Self {
        self.0.extend(denied.into_iter().map(|(denied, origin)| (denied, Some(origin))));
        self
    }

    /// Returns the first flag that denies a tool a capability or a part of it, as it was given, or the setting's place.
    pub fn overriding(&self, tool: &str, capability: &str) -> Option<String> {
        let (denied, origin) = self.0.iter().find(|(denied, _)| covers(denied, tool, capability))?;
        Some(origin.clone().unwrap_or_else(|| flag(denied)))
    }
}

/// Returns `true` if a denial covers a capability of a tool, such as `read:notes.md`, `net` or `exec:fs_rm`. A denial for the tools
/// of a source is not known to be for this one.
fn covers(denied: &Permission, tool: &str, capability: &str) -> bool {
    let (kind, value) = capability.split_once(':').map_or((capability, None), |(kind, value)| (kind, Some(value)));
    match denied {
        Permission::Read(folder) => matches!(kind, "read" | "write") && is_in(value, folder),
        Permission::Write(folder) => kind == "write" && is_in(value, folder),
        Permission::Env(name) => {
            kind == "env" && (name == "*" || value.is_some_and(|it| it.eq_ignore_ascii_case(name)))
        }
        Permission::Net(denied) if matches!(kind, "net" | "connect") => {
            let requested = value.and_then(destination);
            *denied == Destination::everything() || requested.is_some_and(|requested| denied.overlaps(&requested))
        }
        Permission::Secret(secret) => {
            let is_part = |value: &str| {
                value.strip_prefix(secret.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(['@', '#']))
            };
            kind == "secret" && (secret == "*" || value.is_some_and(is_part))
        }
        Permission::Service(service, names) => {
            kind == service.as_str() && (names.is_everything() || value.is_some_and(|name| names.is_match(name)))
        }
        Permission::Limited(ToolSelection::Names(names), denied) => {
            names.is_match(tool) && covers(denied, tool, capability)
        }
        _ => false,
    }
}

/// Returns `true` if a path lies in a denied folder. A path of the guest, which is relative to its folder, lies only in `/`.
fn is_in(path: Option<&str>, folder: &Path) -> bool {
    if folder == Path::new("/") {
        return true;
    }
    let Some(path) = path.map(Path::new).filter(|path| path.is_absolute()) else { return false };
    let real = |path: &Path| canonical(path).unwrap_or_else(|_| path.to_path_buf());
    real(path).starts_with(real(folder))
}

/// Parses a capability's destination: a destination, or the scheme, host and port of a URL.
fn destination(text: &str) -> Option<Destination> {
    text.parse().ok().or_else(|| {
        let (scheme, rest) = text.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        format!("{scheme}://{authority}").parse().ok()
    })
}

/// Formats a denial as its flag.
fn flag(denied: &Permission) -> String {
    let tools = match denied {
        Permission::Limited(tools, _) => tools.to_string(),
        _ => String::new(),
    };
    let (name, value) = match denied.unlimited() {
        Permission::Read(folder) => ("read", folder.display().to_string()),
        Permission::Write(folder) => ("write", folder.display().to_string()),
        Permission::Env(name) => ("env", name.clone()),
        Permission::Net(destination) => ("net", destination.to_string()),
        Permission::Secret(secret) => ("secret", secret.clone()),
        Permission::Service(service, names) => (service.as_str(), names.as_str().to_owned()),
        Permission::Hooks(source) => ("hooks", source.as_ref().map_or_else(String::new, |it| it.display().to_string())),
        _ => ("*", String::new()),
    };
    match (tools.is_empty(), value.as_str()) {
        (true, "/" | "*" | "") => format!("--deny-{name}"),
        (false, "/") => format!("--deny-{name}={tools}*"),
        _ => format!("--deny-{name}={tools}{value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_that_overrides_an_allowance_is_named_as_it_was_given() {
        let net = |text: &str| Permission::Net(text.parse().expect("a destination"));
        let flags = DenyFlags::new([
            Permission::Read("/srv/private".into()),
            Permission::Env("TOKEN".into()),
            net("*.example.com:443"),
            net("http://plain.example"),
            net("POST,DELETE one.example"),
            net("10.0.0.0/8"),
            net("[fd00::/8]"),
            Permission::Secret("github@api.github.com".into()),
            Permission::Service(toolcrib::tool::Service::Exec, "fs_*".parse().expect("a glob")),
            Permission::Env("HOME".into()).limited_to(ToolSelection::Names("other".parse().expect("a glob"))),
            Permission::Env("LANG".into()).limited_to(ToolSelection::Names("to*".parse().expect("a glob"))),
        ]);
        for (capability, flag) in [
            ("read:/srv/private/notes", Some("--deny-read=/srv/private")),
            ("write:/srv/private", Some("--deny-read=/srv/private")),
            ("read:/srv/public", None),
            ("read:notes", None),
            ("env:token", Some("--deny-env=TOKEN")),
            ("connect:https://api.example.com/x", Some("--deny-net=*.example.com:443")),
            ("connect:https://api.example.com:443/x?y", Some("--deny-net=*.example.com:443")),
            ("net:GET,HEAD api.example.com:443", Some("--deny-net=*.example.com:443")),
            ("net:api.example.com:80", None),
            ("net:http://plain.example:80", Some("--deny-net=http://plain.example")),
            ("net:https://plain.example:443", None),
            ("net:POST,PUT one.example:443", Some("--deny-net=DELETE,POST one.example")),
            ("net:GET one.example:443", None),
            ("net:10.1.2.3:80", Some("--deny-net=10.0.0.0/8")),
            ("net:[fd00::1]:443", Some("--deny-net=[fd00::/8]")),
            ("net:11.1.2.3:80", None),
            ("net", None),
            ("secret:github@api.github.com#header:x", Some("--deny-secret=github@api.github.com")),
            ("secret:github2@api.github.com#header:x", None),
            ("exec:fs_rm", Some("--deny-exec=fs_*")),
            ("delegate", None),
            ("env:HOME", None),
            ("env:LANG", Some("--deny-env=to*:LANG")),
        ] {
            assert_eq!(flags.overriding("tool", capability).as_deref(), flag, "{capability}");
        }
        let all = DenyFlags::new([
            Permission::Write("/".into()),
            Permission::Net(Destination::everything()),
            Permission::service(toolcrib::tool::Service::Model),
        ]);
        for (capability, flag) in [
            ("write", Some("--deny-write")),
            ("write:x", Some("--deny-write")),
            ("read:x", None),
            ("net:a.example:443", Some("--deny-net")),
            ("model", Some("--deny-model")),
        ] {
            assert_eq!(all.overriding("tool", capability).as_deref(), flag, "{capability}");
        }
    }
}
