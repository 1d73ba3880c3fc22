//! Tokens that a file declares: digests with their rights, for servers whose administrator deploys files and no state.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use jiff::Timestamp;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, value};
use toolcrib::source::digest;
use toolcrib_settings::config::{Field, Table, own_text};

use super::access::{Identity, TokenScope};
use super::reread_file::RereadFile;
use super::rights;
use super::tokens::{MAX_TOKENS, NewToken, TokenRights, check_name};

/// Maximum size of the file in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Form of a digest, for errors.
const DIGEST: &str = "a digest as text, `sha256:` and 64 small hexadecimal digits";

/// File of declared tokens.
pub struct DeclaredTokens(RereadFile<HashMap<String, Identity>>);

impl DeclaredTokens {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, another user can write it, or it has a mistake.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        RereadFile::open(path, "declared tokens", |path, _| read(path)).map(Self)
    }

    /// Creates a token, and returns it with the entry that declares it.
    ///
    /// # Errors
    ///
    /// The name is invalid, or the rights have no such form.
    pub fn entry(name: &str, rights: &TokenRights) -> anyhow::Result<(String, String)> {
        let NewToken { token, digest } = NewToken::random();
        let mut entry = toml_edit::Table::new();
        entry.insert("name", value(name));
        entry.insert("digest", value(digest));
        if !rights.scopes.is_empty() {
            entry.insert("scopes", value(rights.scopes.iter().map(|scope| scope.as_str()).collect::<Array>()));
        }
        if !rights.options.is_empty() {
            entry.insert("options", value(rights.options.iter().map(String::as_str).collect::<Array>()));
        }
        if let Some(lifetime) = rights.lifetime {
            entry.insert("expires", value(format!("{:.0}", Timestamp::now().checked_add(lifetime)?)));
        }
        let mut all = ArrayOfTables::new();
        all.push(entry);
        let mut document = DocumentMut::new();
        document.insert("tokens", Item::ArrayOfTables(all));
        let text = document.to_string();
        parse("", &text)?;
        Ok((token, text.trim().to_owned()))
    }

    /// Returns the client with a token; `None` if the file does not declare it.
    pub(super) async fn client(&self, token: &str) -> Option<Identity> {
        self.0.present().await.get(&digest(token.as_bytes())).cloned()
    }
}

fn read(path: &Path) -> anyhow::Result<HashMap<String, Identity>> {
    parse(&path.display().to_string(), &own_text(path, MAX_BYTES)?)
}

fn parse(name: &str, text: &str) -> anyhow::Result<HashMap<String, Identity>> {
    let mut top = Table::parse(name, text)?;
    let Some(field) = top.take("tokens") else {
        top.end()?;
        return Ok(HashMap::new());
    };
    let place = field.place();
    let items = field.items()?;
    if items.len() > MAX_TOKENS {
        return Err(place.error(&format!("more than {MAX_TOKENS} tokens")));
    }
    let (mut clients, mut names) = (HashMap::new(), HashSet::new());
    for item in items {
        let place = item.place();
        let client = client(item)?;
        if !names.insert(client.name.clone()) || clients.contains_key(&*client.holder) {
            return Err(place.error("another token has the same name or digest"));
        }
        clients.insert(client.holder.to_string(), client);
    }
    top.end()?;
    Ok(clients)
}

fn client(field: Field<'_>) -> anyhow::Result<Identity> {
    let mut table = field.table()?;
    let (no_name, no_digest) = (table.missing("name"), table.missing("digest"));
    let name = table.read("name", "a name as text", |text| check_name(text).map(|()| text.to_owned()))?;
    let digest = table.read("digest", DIGEST, |text| match is_digest(text) {
        true => Ok(text.to_owned()),
        false => Err(String::new()),
    })?;
    let expires = table.read("expires", "a time as text, such as \"2027-01-31T00:00:00Z\"", |text| {
        text.parse::<Timestamp>().map_err(|_| String::new())
    })?;
    let options = match table.take("options") {
        None => Vec::new(),
        Some(field) => rights::options(field)?,
    };
    let scopes = match table.take("scopes") {
        None => vec![TokenScope::Calls],
        Some(field) => rights::scopes(field)?,
    };
    table.end()?;
    Ok(Identity {
        name: name.ok_or(no_name)?.into(),
        options: options.into(),
        has_token: true,
        holder: digest.ok_or(no_digest)?.into(),
        scopes: scopes.into(),
        expires,
    })
}

fn is_digest(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> String {
        format!(
            "[[tokens]]\nname = \"ada\"\ndigest = \"{}\"\noptions = [\"--deny-net\"]\n\
             [[tokens]]\nname = \"figures\"\ndigest = \"{}\"\nscopes = [\"metrics\"]\nexpires = \"2030-01-31T00:00:00Z\"\n",
            digest(b"crib_a"),
            digest(b"crib_b")
        )
    }

    #[tokio::test]
    async fn declared_tokens_have_their_rights_and_a_changed_file_applies_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        std::fs::write(&path, file()).unwrap();
        let tokens = DeclaredTokens::open(&path).unwrap();
        let ada = tokens.client("crib_a").await.unwrap();
        assert_eq!((&*ada.name, &*ada.scopes, ada.expires), ("ada", &[TokenScope::Calls][..], None));
        assert_eq!(*ada.options, ["--deny-net"]);
        let figures = tokens.client("crib_b").await.unwrap();
        assert!(*figures.scopes == [TokenScope::Metrics] && figures.expires.is_some());
        assert_eq!(tokens.client("crib_c").await, None);
        std::fs::write(&path, "tokens = 1").unwrap();
        assert!(tokens.client("crib_a").await.is_some(), "a mistake changes nothing");
        std::fs::write(&path, "tokens = []").unwrap();
        assert_eq!(tokens.client("crib_a").await, None);
        std::fs::write(&path, file()).unwrap();
        assert!(tokens.client("crib_a").await.is_some());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(tokens.client("crib_a").await, None, "a file that is gone declares nothing");
    }

    #[test]
    fn a_new_token_is_accepted_with_its_entry() {
        let rights = TokenRights {
            options: vec!["--allow-read=a \"b\"".to_owned()],
            scopes: vec![TokenScope::Metrics],
            lifetime: Some(std::time::Duration::from_hours(1)),
        };
        let (token, entry) = DeclaredTokens::entry("ada", &rights).unwrap();
        let clients = parse("x", &entry).unwrap();
        let client = &clients[&digest(token.as_bytes())];
        assert!(client.options[..] == rights.options[..] && client.scopes[..] == rights.scopes[..]);
        assert!(client.expires.is_some() && !entry.contains(&token));
        assert!(DeclaredTokens::entry("a/b", &rights).is_err());
    }

    #[test]
    fn mistakes_name_the_file_the_line_and_the_key() {
        let (one, other) = (digest(b"crib_a"), digest(b"crib_b"));
        for (from, to, reason) in [
            ("name = \"ada\"", "name = \"a/b\"", "x.toml:2:8: `tokens[0].name`: a name has 1 to 64"),
            ("name = \"ada\"", "", "`tokens[0].name` is missing"),
            (&*one, "sha256:1", "`tokens[0].digest` must be a digest"),
            (&*other, &one, "another token has the same name or digest"),
            ("figures", "ada", "another token has the same name or digest"),
            ("--deny-net", "--trust", "unexpected argument"),
            ("\"metrics\"", "\"all\"", "must be `calls` or `metrics`"),
            ("2030-01-31T00:00:00Z", "2030-01-31", "`tokens[1].expires` must be a time"),
            ("expires", "until", "unknown key `tokens[1].until`"),
        ] {
            assert!(file().contains(from), "{from}");
            let error = parse("x.toml", &file().replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.starts_with("x.toml") && error.contains(reason), "{to}: {error}");
        }
        assert!(parse("x.toml", "# none\n").unwrap().is_empty());
        assert!(parse("x.toml", "token = []").unwrap_err().to_string().contains("unknown key `token`"));
        let many = (0..=MAX_TOKENS).map(|number| {
            format!("[[tokens]]\nname = \"a{number}\"\ndigest = \"{}\"\n", digest(number.to_string().as_bytes()))
        });
        let many: Vec<_> = many.collect();
        assert!(parse("x", &many[1..].concat()).is_ok());
        assert!(parse("x", &many.concat()).unwrap_err().to_string().contains("more than 1000 tokens"));
    }
}
