//! Source of a server's tools in a lock: its address, with options after a `#`, which are never sent.

use std::fmt;

use anyhow::{Context, bail};
use toolcrib::tool::{RemoteAddress, is_secret_name};

/// Maximum length of a prefix.
const MAX_PREFIX: usize = 32;

/// Remote server with the choices of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSource {
    /// Address of the server.
    pub address: RemoteAddress,
    /// Secret that the server gets as a bearer token; without one, the token of a login if there is one.
    pub secret: Option<String>,
    /// Prefix of the tools' names.
    pub prefix: String,
}

impl ServerSource {
    /// Returns `true` for a text that is meant as the address of a server.
    pub fn is_named(text: &str) -> bool {
        text.starts_with("https://") || text.starts_with("http://")
    }

    /// Parses a source.
    ///
    /// # Errors
    ///
    /// The address cannot be used, or an option is unknown.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let (address, options) = text.split_once('#').unwrap_or((text, ""));
        let mut source = Self { address: address.parse()?, secret: None, prefix: String::new() };
        for option in options.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                Some(("secret", name)) => source.set_secret(name)?,
                Some(("prefix", prefix)) => source.set_prefix(prefix)?,
                _ => bail!("`{text}`: `{option}` is neither `secret=NAME` nor `prefix=TEXT`"),
            }
        }
        Ok(source)
    }

    /// Sets the secret.
    ///
    /// # Errors
    ///
    /// The text is not the name of a secret.
    pub fn set_secret(&mut self, name: &str) -> anyhow::Result<()> {
        let named = Some(name.to_owned()).filter(|name| is_secret_name(name));
        self.secret = Some(named.with_context(|| format!("`{name}` is not the name of a secret"))?);
        Ok(())
    }

    /// Sets the prefix.
    ///
    /// # Errors
    ///
    /// The text has other characters than those of tool names, or too many.
    pub fn set_prefix(&mut self, prefix: &str) -> anyhow::Result<()> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if prefix.len() > MAX_PREFIX || !prefix.chars().all(is_plain) {
            bail!("`{prefix}` is not a valid prefix: use up to {MAX_PREFIX} letters, digits, `_`, `-` and `.`");
        }
        prefix.clone_into(&mut self.prefix);
        Ok(())
    }

    /// Returns the capability of the secret that the source names, as a bundle of the server's tools requests it.
    pub fn capability(&self) -> Option<String> {
        let host = self.address.host();
        self.secret.as_ref().map(|name| format!("secret:{name}@{host}#header:authorization"))
    }

    /// Returns a name for the bundle: the host, and the path without the usual one.
    pub fn name(&self) -> String {
        let text = self.address.as_str();
        let (_, rest) = text.split_once("://").unwrap_or(("", text));
        let path = rest.split('?').next().unwrap_or(rest).trim_end_matches('/');
        let path = path.strip_suffix("/mcp").unwrap_or(path).to_lowercase();
        let name = path.chars().map(|c| if c.is_ascii_alphanumeric() || "._-/".contains(c) { c } else { '-' });
        name.collect::<String>().trim_start_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
    }
}

impl fmt::Display for ServerSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secret = self.secret.iter().map(|name| format!("secret={name}"));
        let prefix = Some(&self.prefix).filter(|prefix| !prefix.is_empty()).map(|prefix| format!("prefix={prefix}"));
        let options: Vec<String> = secret.chain(prefix).collect();
        write!(f, "{}", self.address)?;
        if options.is_empty() { Ok(()) } else { write!(f, "#{}", options.join("&")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_keeps_its_options_and_has_a_name() {
        for (text, form, name) in [
            ("https://A.example/mcp", "https://a.example/mcp", "a.example"),
            (
                "https://a.example/x/mcp/?y=1#prefix=a_&secret=b",
                "https://a.example/x/mcp/?y=1#secret=b&prefix=a_",
                "a.example/x",
            ),
            ("http://127.0.0.1:3001/mcp", "http://127.0.0.1:3001/mcp", "127.0.0.1-3001"),
            ("https://[2001:db8::1]/", "https://[2001:db8::1]/", "2001-db8--1-"),
        ] {
            let source = ServerSource::parse(text).unwrap();
            assert_eq!((source.to_string().as_str(), source.name().as_str()), (form, name));
            assert_eq!(ServerSource::parse(form).unwrap(), source);
        }
        for text in [
            "https://a.example/#secret=A",
            "https://a.example/#prefix=a b",
            "https://a.example/#x=1",
            "http://a.example/",
        ] {
            assert!(ServerSource::parse(text).is_err(), "{text}");
        }
    }
}
