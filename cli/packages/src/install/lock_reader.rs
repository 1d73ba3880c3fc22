//! Reads a `toolcrib.lock`. The file may have been edited by hand or come from a stranger: every size is bounded, every key is
//! known, and an error names the file, the line and the key.

use std::collections::HashMap;

use anyhow::bail;
use toolcrib_settings::config::{Field, Place, Table};

use super::lock::{FORMAT, Lock, LockedBundle, LockedTool};

/// Maximum size of a lock in bytes.
pub(crate) const MAX_LOCK_BYTES: u64 = 8 << 20;
/// Maximum number of bundles in a lock.
const MAX_BUNDLES: usize = 512;
/// Maximum number of tools per bundle in a lock.
const MAX_TOOLS: usize = toolcrib_bundle::MAX_TOOLS;
/// Maximum number of signers for a bundle, and of its granted or declined requests.
const MAX_VALUES: usize = 4096;
/// Maximum length of a text in bytes.
const MAX_TEXT: usize = 4096;
/// Maximum length of a name in bytes.
pub(crate) const MAX_NAME: usize = 128;
/// Prefix of a digest.
const ALGORITHM: &str = "sha256:";

impl Lock {
    /// Reads the text of a lock; `file` is its name in messages.
    ///
    /// # Errors
    ///
    /// The first mistake.
    pub(crate) fn parse(file: &str, text: &str) -> anyhow::Result<Self> {
        if text.len() as u64 > MAX_LOCK_BYTES {
            bail!("{file}: larger than the {MAX_LOCK_BYTES} bytes allowed");
        }
        let mut top = Table::parse(file, text)?;
        match top.count("version")? {
            Some(FORMAT) => {}
            Some(other) => {
                bail!("{file}: `version` is {other}, and this toolcrib reads {FORMAT}: use a newer toolcrib")
            }
            None => return Err(top.missing("version")),
        }
        let mut lock = Self::default();
        let mut owners: HashMap<String, String> = HashMap::new();
        for field in items(&mut top, "bundle", MAX_BUNDLES)? {
            let place = field.place();
            let bundle = bundle(field)?;
            if lock.bundle(&bundle.name).is_some() {
                return Err(place.error(&format!("a second bundle has the name `{}`", bundle.name)));
            }
            for LockedTool { name, .. } in &bundle.tools {
                if let Some(other) = owners.insert(name.clone(), bundle.name.clone()) {
                    return Err(place.error(&format!("its tool `{name}` is a tool of `{other}` too")));
                }
            }
            lock.insert(bundle);
        }
        top.end()?;
        Ok(lock)
    }
}

fn bundle(field: Field<'_>) -> anyhow::Result<LockedBundle> {
    let place = field.place();
    let mut table = field.table()?;
    let bundle = LockedBundle {
        name: required(&mut table, "name", "a name", name)?,
        source: required(&mut table, "source", "a reference or a path as text", text)?,
        version: table.read("version", "a version as text", text)?,
        digest: required(&mut table, "digest", DIGEST, digest)?,
        signers: texts(&mut table, "signers")?,
        granted: texts(&mut table, "granted")?,
        declined: texts(&mut table, "declined")?,
        tools: tools(&mut table, &place)?,
    };
    table.end()?;
    Ok(bundle)
}

const DIGEST: &str = "a digest such as \"sha256:…\"";

fn tools(table: &mut Table<'_>, bundle: &Place<'_>) -> anyhow::Result<Vec<LockedTool>> {
    let mut tools: Vec<LockedTool> = Vec::new();
    for field in items(table, "tool", MAX_TOOLS)? {
        let mut table = field.table()?;
        let tool = LockedTool {
            name: required(&mut table, "name", "a name", text)?,
            description: required(&mut table, "description", DIGEST, digest)?,
            schema: required(&mut table, "schema", DIGEST, digest)?,
            definition: required(&mut table, "definition", DIGEST, digest)?,
            requests: texts(&mut table, "requests")?,
        };
        table.end()?;
        tools.push(tool);
    }
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    match tools.windows(2).find(|pair| pair[0].name == pair[1].name) {
        Some(pair) => Err(bundle.error(&format!("a second tool has the name `{}`", pair[0].name))),
        None => Ok(tools),
    }
}

/// Reads a list of texts, and returns it sorted and without duplicates.
fn texts(table: &mut Table<'_>, key: &'static str) -> anyhow::Result<Vec<String>> {
    let items = items(table, key, MAX_VALUES)?;
    let mut texts = items.iter().map(|item| item.read("a text", text)).collect::<anyhow::Result<Vec<_>>>()?;
    texts.sort();
    texts.dedup();
    Ok(texts)
}

fn items<'a>(table: &mut Table<'a>, key: &'static str, max: usize) -> anyhow::Result<Vec<Field<'a>>> {
    let items = table.take(key).map_or(Ok(Vec::new()), Field::items)?;
    match items.get(max) {
        Some(one) => Err(one.place().error(&format!("more than {max} are not allowed"))),
        None => Ok(items),
    }
}

fn required<T>(
    table: &mut Table<'_>,
    key: &'static str,
    wanted: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> anyhow::Result<T> {
    table.read(key, wanted, parse)?.ok_or_else(|| table.missing(key))
}

fn text(text: &str) -> Result<String, String> {
    match text.len() {
        0 => Err("it is empty".to_owned()),
        1..=MAX_TEXT => Ok(text.to_owned()),
        _ => Err(format!("longer than the {MAX_TEXT} bytes allowed")),
    }
}

/// Parses a bundle name, which comes from the bundle's metadata or from the user.
pub fn name(text: &str) -> Result<String, String> {
    let is_valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-/".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    match begins && text.len() <= MAX_NAME && text.chars().all(is_valid) {
        true => Ok(text.to_owned()),
        false => Err(format!(
            "a name has up to {MAX_NAME} lower-case letters, digits, `.`, `_`, `-` and `/`, and begins with a letter or digit"
        )),
    }
}

/// Parses a digest.
pub(crate) fn digest(text: &str) -> Result<String, String> {
    let hex = text.strip_prefix(ALGORITHM).unwrap_or_default();
    let is_hex = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if is_hex { Ok(text.to_owned()) } else { Err("expected `sha256:` and 64 digits 0-9 a-f".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zeros() -> String {
        format!("sha256:{}", "0".repeat(64))
    }

    fn tool(name: &str) -> LockedTool {
        let requests = vec!["env:TOKEN".to_owned()];
        LockedTool { name: name.to_owned(), description: zeros(), schema: zeros(), definition: zeros(), requests }
    }

    fn sample(name: &str, tools: &[&str]) -> LockedBundle {
        LockedBundle {
            name: name.to_owned(),
            source: "oci://registry.example/acme/weather:1".to_owned(),
            version: Some("1.2.0".to_owned()),
            digest: zeros(),
            signers: vec!["key:\"a\\b\"\u{7f}\n\u{85}".to_owned()],
            granted: vec!["net:a.example:443".to_owned(), "read:/p/ä".to_owned()],
            declined: vec!["env:TOKEN".to_owned()],
            tools: tools.iter().map(|name| tool(name)).collect(),
        }
    }

    #[test]
    fn a_written_lock_is_read_as_it_was() {
        let mut lock = Lock::default();
        assert_eq!(Lock::parse("l", &lock.text()).unwrap(), lock);
        lock.insert(sample("b", &["x", "y"]));
        lock.insert(sample("a", &[]));
        lock.insert(LockedBundle { version: None, signers: Vec::new(), ..sample("c/d", &["z"]) });
        assert_eq!(Lock::parse("l", &lock.text()).unwrap(), lock);
        let mut again = lock.clone();
        again.insert(sample("b", &["x", "y"]));
        assert_eq!(again.text(), lock.text());
        assert!(again.remove("b") && !again.remove("b"));
    }

    #[test]
    fn line_ends_of_windows_change_no_lock() {
        let mut lock = Lock::default();
        lock.insert(sample("a", &["x"]));
        assert_eq!(Lock::parse("l", &lock.text().replace('\n', "\r\n")).unwrap(), lock);
    }

    #[test]
    fn a_mistake_is_named_with_file_line_and_key() {
        let mut lock = Lock::default();
        lock.insert(sample("a", &["x"]));
        let text = lock.text();
        let zeros = zeros();
        let changes: [(&str, &str, &str); 12] = [
            ("version = 1\n", "", "l: `version` is missing"),
            ("version = 1\n", "version = 2\n", "l: `version` is 2"),
            ("version = 1\n", "version = 1\nextra = 1\n", "l:3:1: unknown key `extra`"),
            ("name = \"a\"", "name = \"A b\"", "l:5:8: `bundle[0].name`: a name has up to 128"),
            ("name = \"a\"", "name = \"a\"\nname = \"b\"", "duplicate key"),
            ("name = \"a\"", "grants = []\nname = \"a\"", "l:5:1: unknown key `bundle[0].grants`"),
            ("name = \"a\"\n", "", "l: `bundle[0].name` is missing"),
            ("granted = [\n", "granted = [\n  7,\n", "`bundle[0].granted[0]` must be a text, found `7`"),
            ("declined = [\n  \"env:TOKEN\",\n]", "declined = \"\"", "`bundle[0].declined` must be an array"),
            ("[[bundle.tool]]\nname", "[[bundle.tool]]\ntitle", "`bundle[0].tool[0].name` is missing"),
            ("schema = \"sha256:0", "schema = \"sha256:x", "`bundle[0].tool[0].schema`: expected `sha256:`"),
            ("[[bundle]]", "[[bundle", "not TOML"),
        ];
        for (old, new, wanted) in changes {
            assert!(text.contains(old), "{old}");
            let error = format!("{:#}", Lock::parse("l", &text.replacen(old, new, 1)).unwrap_err());
            assert!(error.contains(wanted), "{wanted}\n{error}");
        }
        let twice = format!("{text}{}", text.split_once("version = 1\n").unwrap().1);
        let error = Lock::parse("l", &twice).unwrap_err().to_string();
        assert!(error.contains("a second bundle has the name `a`"), "{error}");
        let taken = format!("{text}{}", text.split_once("version = 1\n").unwrap().1.replacen("\"a\"", "\"b\"", 1));
        let error = Lock::parse("l", &taken).unwrap_err().to_string();
        assert!(error.contains("its tool `x` is a tool of `a` too"), "{error}");
        let tool = format!(
            "[[bundle.tool]]\nname = \"x\"\ndescription = \"{zeros}\"\nschema = \"{zeros}\"\n\
             definition = \"{zeros}\"\n"
        );
        let error = Lock::parse("l", &format!("{text}{tool}")).unwrap_err().to_string();
        assert!(error.contains("a second tool has the name `x`"), "{error}");
    }

    #[test]
    fn counts_and_sizes_are_bounded() {
        let head = format!("version = {FORMAT}\n");
        let refused = |text: &str, wanted: &str| {
            let error = Lock::parse("l", text).unwrap_err().to_string();
            assert!(error.contains(wanted), "{wanted}\n{error}");
        };
        refused(&format!("{head}#{}", "x".repeat(MAX_LOCK_BYTES as usize)), "larger than the 8388608 bytes allowed");
        refused(&format!("{head}{}", "[[bundle]]\n".repeat(MAX_BUNDLES + 1)), "more than 512 are not allowed");
        let mut lock = Lock::default();
        lock.insert(LockedBundle { signers: vec!["x".repeat(MAX_TEXT + 1)], ..sample("a", &[]) });
        refused(&lock.text(), "`bundle[0].signers[0]`: longer than the 4096 bytes allowed");
        lock.insert(LockedBundle { granted: vec!["x".to_owned(); MAX_VALUES + 1], ..sample("a", &[]) });
        refused(&lock.text(), "`bundle[0].granted[4096]`: more than 4096 are not allowed");
        lock.insert(LockedBundle {
            tools: (0..=MAX_TOOLS).map(|at| tool(&at.to_string())).collect(),
            ..sample("a", &[])
        });
        refused(&lock.text(), "more than 4096 are not allowed");
        lock.insert(LockedBundle { name: "x".repeat(MAX_NAME + 1), ..sample("a", &[]) });
        lock.remove("a");
        refused(&lock.text(), "`bundle[0].name`: a name has up to 128");
        refused(&format!("{head}a = {}", "[".repeat(100_000)), "not TOML");
    }
}
