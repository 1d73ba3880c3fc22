//! File of the sign-in: trusted issuers, and the rules for their people. A mistake names the file, the line and the key.

use std::collections::HashSet;
use std::path::Path;

use serde_json::{Map, Value};
use toolcrib_base::oauth::SecureUrl;
use toolcrib_settings::config::{Field, Table, own_text};

use super::rules::ClaimRule;
use crate::access::TokenScope;
use crate::rights;

/// Maximum size of the file in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// Maximum number of issuers.
const MAX_ISSUERS: usize = 16;
/// Maximum number of rules for one issuer.
const MAX_RULES: usize = 256;
/// Maximum length of a text in bytes.
const MAX_TEXT: usize = 512;
/// Maximum depth of tables in a rule's claims.
const MAX_DEPTH: usize = 8;
/// Claim with the identifier of a person.
const SUBJECT: &str = "sub";

/// Content of the file.
#[derive(Debug)]
pub(super) struct SignInFile {
    pub(super) scopes: ScopeNames,
    pub(super) issuers: Vec<IssuerEntry>,
}

/// Token scopes for the parts of the server; a part without one needs none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ScopeNames {
    calls: Option<String>,
    metrics: Option<String>,
}

/// Trusted issuer.
#[derive(Debug)]
pub(super) struct IssuerEntry {
    pub(super) url: SecureUrl,
    /// Name of the issuer in people's names.
    pub(super) label: String,
    /// Audience of its tokens, if it is not the server's address.
    pub(super) audience: Option<String>,
    /// Claim for the names of people.
    pub(super) name_claim: String,
    pub(super) rules: Vec<ClaimRule>,
}

impl ScopeNames {
    /// Returns the scope that a token needs for a part of the server.
    pub(super) fn of(&self, part: TokenScope) -> Option<&str> {
        match part {
            TokenScope::Calls => self.calls.as_deref(),
            TokenScope::Metrics => self.metrics.as_deref(),
        }
    }

    /// Lists the scopes.
    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.calls.as_deref().into_iter().chain(self.metrics.as_deref())
    }
}

impl SignInFile {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, another user can write it, or it has a mistake.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        Self::parse(&path.display().to_string(), &own_text(path, MAX_BYTES)?)
    }

    /// Returns the number of different sets of options.
    pub(super) fn option_sets(&self) -> usize {
        let all = self.issuers.iter().flat_map(|issuer| &issuer.rules).map(|rule| &rule.options);
        all.filter(|options| !options.is_empty()).collect::<HashSet<_>>().len()
    }

    pub(super) fn parse(name: &str, text: &str) -> anyhow::Result<Self> {
        let mut top = Table::parse(name, text)?;
        let scopes = match top.table("scopes")? {
            None => ScopeNames::default(),
            Some(mut table) => {
                let names = ScopeNames { calls: scope(&mut table, "calls")?, metrics: scope(&mut table, "metrics")? };
                table.end()?;
                names
            }
        };
        let missing = top.missing("issuers");
        let field = top.take("issuers").ok_or(missing)?;
        let place = field.place();
        let items = field.items()?;
        if items.is_empty() || items.len() > MAX_ISSUERS {
            return Err(place.error(&format!("expected 1 to {MAX_ISSUERS} issuers, found {}", items.len())));
        }
        let issuers = items.into_iter().map(issuer).collect::<anyhow::Result<Vec<_>>>()?;
        top.end()?;
        let (mut urls, mut labels) = (HashSet::new(), HashSet::new());
        for issuer in &issuers {
            if !urls.insert(issuer.url.as_str()) || !labels.insert(&*issuer.label) {
                return Err(place.error(&format!(
                    "two issuers have the URL `{}` or the label `{}`: give each its own `label`",
                    issuer.url, issuer.label
                )));
            }
        }
        Ok(Self { scopes, issuers })
    }
}

fn issuer(field: Field<'_>) -> anyhow::Result<IssuerEntry> {
    let mut table = field.table()?;
    let missing = table.missing("url");
    let url =
        table.read("url", "an address over TLS as text", |text| text.parse::<SecureUrl>().map_err(str::to_owned))?;
    let url = url.ok_or(missing)?;
    let host = url.url().host_str().unwrap_or_default().trim_matches(['[', ']']).replace(':', "_");
    let label = table.read("label", "a name of letters, digits, `-`, `_` and `.` as text", label)?.unwrap_or(host);
    let audience = table.read("audience", "an audience as text", word)?;
    let name_claim = table.read("name_claim", "the name of a claim as text", word)?;
    let missing = table.missing("rules");
    let rules = table.take("rules").ok_or(missing)?;
    let place = rules.place();
    let rules = rules.items()?;
    if rules.is_empty() || rules.len() > MAX_RULES {
        return Err(place.error(&format!("expected 1 to {MAX_RULES} rules, found {}", rules.len())));
    }
    let rules = rules.into_iter().map(rule).collect::<anyhow::Result<_>>()?;
    table.end()?;
    Ok(IssuerEntry { url, label, audience, name_claim: name_claim.unwrap_or_else(|| SUBJECT.to_owned()), rules })
}

fn rule(field: Field<'_>) -> anyhow::Result<ClaimRule> {
    let mut table = field.table()?;
    let missing = table.missing("claims");
    let claims = table.take("claims").ok_or(missing)?;
    let place = claims.place();
    let Value::Object(claims) = claims.object()? else { return Err(place.error("expected a table")) };
    check_claims(&claims, MAX_DEPTH).map_err(|reason| place.error(&reason))?;
    let options = table.take("options").map(rights::options).transpose()?.unwrap_or_default();
    let scopes = table.take("scopes").map(rights::scopes).transpose()?.unwrap_or_else(|| vec![TokenScope::Calls]);
    table.end()?;
    Ok(ClaimRule { claims, options: options.into(), scopes: scopes.into() })
}

/// Checks that each claim has a value that a token can have.
fn check_claims(claims: &Map<String, Value>, depth: usize) -> Result<(), String> {
    let depth = depth.checked_sub(1).ok_or("its tables are nested too deeply")?;
    let is_single = |value: &Value| value.is_string() || value.is_boolean() || value.is_i64();
    for (name, value) in claims {
        match value {
            Value::Object(inner) if !inner.is_empty() => check_claims(inner, depth)?,
            Value::Array(several) if !several.is_empty() && several.iter().all(is_single) => {}
            value if is_single(value) => {}
            _ => {
                return Err(format!(
                    "`{name}`: expected a text, `true`, `false`, a whole number, or an array of these"
                ));
            }
        }
    }
    Ok(())
}

fn scope(table: &mut Table<'_>, key: &'static str) -> anyhow::Result<Option<String>> {
    table.read(key, "a scope as text, without spaces", word)
}

/// Accepts a text that can stand in a header between quotation marks.
fn word(text: &str) -> Result<String, String> {
    let is_word = !text.is_empty() && text.len() <= MAX_TEXT;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"\\".contains(&byte));
    if is_word && is_plain { Ok(text.to_owned()) } else { Err(String::new()) }
}

fn label(text: &str) -> Result<String, String> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if (1..=64).contains(&text.len()) && is_plain { Ok(text.to_owned()) } else { Err(String::new()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
[scopes]
calls = "tools:call"

[[issuers]]
url = "https://login.example.com/realms/team/"
label = "team"
name_claim = "preferred_username"

[[issuers.rules]]
claims.realm_access.roles = "admin"
scopes = ["calls", "metrics"]

[[issuers.rules]]
claims = { groups = ["dev", "ops"], email_verified = true }
options = ["--allow-write=./work", "--deny-net"]
"#;

    #[test]
    fn a_file_has_issuers_with_rules_in_their_order() {
        let file = SignInFile::parse("x.toml", FILE).unwrap();
        assert_eq!(
            (file.scopes.of(TokenScope::Calls), file.scopes.of(TokenScope::Metrics)),
            (Some("tools:call"), None)
        );
        let [issuer] = &file.issuers[..] else { panic!("one issuer") };
        assert_eq!(issuer.url.as_str(), "https://login.example.com/realms/team/");
        assert_eq!((&*issuer.label, &*issuer.name_claim, &issuer.audience), ("team", "preferred_username", &None));
        assert_eq!(issuer.rules[0].claims["realm_access"]["roles"], "admin");
        assert_eq!(*issuer.rules[0].scopes, [TokenScope::Calls, TokenScope::Metrics]);
        assert_eq!(*issuer.rules[1].options, ["--allow-write=./work", "--deny-net"]);
        let plain = "[[issuers]]\nurl = \"https://a.example\"\nrules = [{ claims = {} }]\n";
        let plain = SignInFile::parse("x.toml", plain).unwrap();
        assert_eq!((&*plain.issuers[0].label, &*plain.issuers[0].name_claim), ("a.example", "sub"));
    }

    #[test]
    fn rules_with_the_same_options_count_as_one_set() {
        let rule = |options: &str| format!("{{ claims = {{}}, options = [{options}] }},");
        let rules = ["", "\"--deny-net\"", "\"--deny-net\"", "\"--allow-env=A\""].map(rule).concat();
        let file = format!("[[issuers]]\nurl = \"https://a.example\"\nrules = [{rules}]\n");
        assert_eq!(SignInFile::parse("x.toml", &file).unwrap().option_sets(), 2);
    }

    #[test]
    fn a_mistake_names_the_file_the_line_and_the_key() {
        for (from, to, reason) in [
            ("https://login", "http://login", "x.toml:6:7: `issuers[0].url`: expected an address"),
            ("url = ", "uri = ", "`issuers[0].url` is missing"),
            ("label = \"team\"", "label = \"a/b\"", "`issuers[0].label` must be a name"),
            ("label = \"team\"", "algorithms = [\"HS256\"]", "unknown key `issuers[0].algorithms`"),
            ("claims.realm_access.roles = \"admin\"", "", "`issuers[0].rules[0].claims` is missing"),
            ("\"admin\"", "[]", "`roles`: expected a text"),
            ("\"admin\"", "1.5", "`roles`: expected a text"),
            ("\"admin\"", "{}", "`roles`: expected a text"),
            ("\"metrics\"", "\"all\"", "must be `calls` or `metrics`"),
            ("--deny-net", "--trust", "unexpected argument '--trust'"),
            ("\"tools:call\"", "\"tools call\"", "`scopes.calls` must be a scope"),
            ("calls = \"tools:call\"", "call = \"x\"", "unknown key `scopes.call`"),
            ("[[issuers]]", "[[issuer]]", "`issuers` must be an array"),
        ] {
            assert!(FILE.contains(from), "{from}");
            let error = SignInFile::parse("x.toml", &FILE.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.starts_with("x.toml") && error.contains(reason), "{to}: {error}");
        }
    }

    #[test]
    fn the_numbers_of_issuers_and_rules_are_bounded_and_issuers_differ() {
        let one = |number: usize| {
            format!("[[issuers]]\nurl = \"https://a{number}.example\"\nrules = [{{ claims = {{}} }}]\n")
        };
        let many = |count: usize| (0..count).map(one).collect::<String>();
        assert!(SignInFile::parse("x", &many(MAX_ISSUERS)).is_ok());
        let error = |text: &str| SignInFile::parse("x", text).unwrap_err().to_string();
        assert!(error(&many(MAX_ISSUERS + 1)).contains("1 to 16 issuers, found 17"));
        assert!(error(&[one(1), one(1)].concat()).contains("two issuers"));
        let rules = |count: usize| {
            format!("[[issuers]]\nurl = \"https://a.example\"\nrules = [{}]", "{ claims = {} },".repeat(count))
        };
        assert!(SignInFile::parse("x", &rules(MAX_RULES)).is_ok());
        assert!(error(&rules(MAX_RULES + 1)).contains("found 257") && error(&rules(0)).contains("found 0"));
        let deep = format!("{} {{ a = 1 }} {}", "{ a = ".repeat(MAX_DEPTH), "}".repeat(MAX_DEPTH));
        let deep = rules(1).replace("{}", &deep);
        assert!(error(&deep).contains("too deeply"), "{}", error(&deep));
    }
    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_write_is_refused() {
        use std::fs::{self, Permissions};
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("people.toml");
        fs::write(&path, FILE).unwrap();
        for (mode, reason) in [(0o666, "every user can write the file"), (0o660, "its group can write the file")] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let error = SignInFile::read(&path).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert!(SignInFile::read(&path).is_ok());
    }
}
