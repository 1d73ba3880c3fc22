//! Sign-in of people at an identity provider: the server is an OAuth 2.1 resource server, which accepts access tokens from
//! trusted issuers and maps their claims to rights by a file. The file is read again when it changes; one with a mistake changes
//! nothing, and nobody signs in by one that is gone.

mod fault;
mod file;
mod issuer_keys;
mod keys;
mod rules;
mod signature;
#[cfg(test)]
mod tests;
mod token;

use std::path::Path;
use std::sync::Arc;

use futures::future::join_all;
use serde_json::{Value, json};
use toolcrib::source::digest;
use toolcrib_base::oauth::{SecureUrl, resource_documents};
use toolcrib_base::render;

use super::access::{Identity, TokenScope};
use super::publication::MAX_OWN;
use super::reread_file::RereadFile;
use file::{IssuerEntry, ScopeNames, SignInFile};
use issuer_keys::{IssuerKeys, KeyTimes};
use token::UncheckedToken;

pub(super) use fault::{SignInFault, TokenFault};

/// Sign-in of people.
pub struct SignIn {
    /// Address of the server, for which tokens are issued.
    server: SecureUrl,
    file: RereadFile<TrustedIssuers>,
}

/// Issuers that the file trusts.
#[derive(Default)]
struct TrustedIssuers {
    scopes: ScopeNames,
    issuers: Vec<(IssuerEntry, Arc<IssuerKeys>)>,
}

impl SignIn {
    /// Reads the file. Tokens are issued for this address of the server, unless the file names another audience.
    ///
    /// # Errors
    ///
    /// The file cannot be read, another user can write it, or it has a mistake.
    pub fn open(path: &Path, server: SecureUrl) -> anyhow::Result<Self> {
        Self::with_times(path, server, KeyTimes::default())
    }

    fn with_times(path: &Path, server: SecureUrl, times: KeyTimes) -> anyhow::Result<Self> {
        signature::install();
        let read = move |path: &Path, before: &TrustedIssuers| {
            TrustedIssuers::new(SignInFile::read(path)?, &before.issuers, times)
        };
        Ok(Self { server, file: RereadFile::open(path, "rules of the sign-in", read)? })
    }

    /// Reads the keys of all issuers. A warning names each issuer that cannot be reached.
    pub async fn read_keys(&self) {
        let trusted = self.file.present().await;
        join_all(trusted.issuers.iter().map(|(_, keys)| keys.refresh())).await;
    }

    /// Reads the file, then each issuer's metadata and keys; returns the issuers with their number of keys.
    ///
    /// # Errors
    ///
    /// The file cannot be used.
    pub async fn check(path: &Path) -> anyhow::Result<Vec<(String, anyhow::Result<usize>)>> {
        signature::install();
        let read =
            |path: &Path, _: &TrustedIssuers| TrustedIssuers::new(SignInFile::read(path)?, &[], KeyTimes::default());
        let trusted = RereadFile::open(path, "rules of the sign-in", read)?.present().await;
        let checks = trusted.issuers.iter().map(async |(entry, keys)| (entry.url.to_string(), keys.check().await));
        Ok(join_all(checks).await)
    }

    /// Returns the person with a token, if they may use a part of the server.
    ///
    /// # Errors
    ///
    /// The token is not valid, or no rule admits the person.
    pub(super) async fn person(&self, token: &str, part: TokenScope) -> Result<Identity, SignInFault> {
        let trusted = self.file.present().await;
        let token = UncheckedToken::parse(token)?;
        let issuer = token.issuer().ok_or(TokenFault::Claims)?;
        let issuer = trusted.issuers.iter().find(|(entry, _)| entry.url.as_str() == issuer);
        let (issuer, keys) = issuer.ok_or(TokenFault::Issuer)?;
        let (id, algorithm) = token.key();
        let key = keys.key(id, algorithm).await?;
        let audience = issuer.audience.as_deref().unwrap_or(self.server.as_str());
        let claims = token.check(&key, issuer.url.as_str(), audience)?;
        let rule = issuer.rules.iter().find(|rule| rule.admits(&claims.all)).ok_or(SignInFault::NoRule)?;
        if !rule.scopes.contains(&part) {
            return Err(SignInFault::NoRule);
        }
        let lacks = |scope: &str| !rules::has_scope(&claims.all, scope);
        if trusted.scopes.of(part).is_some_and(lacks) {
            return Err(SignInFault::Scope(part));
        }
        // Tokens are renewed every few minutes, and names may change: the person is the same.
        let holder = digest(json!([issuer.url.as_str(), claims.subject]).to_string().as_bytes());
        Ok(Identity {
            name: rules::name(&issuer.label, claims.all.get(&issuer.name_claim), &claims.subject, &holder),
            options: rule.options.clone(),
            has_token: true,
            holder: holder.into(),
            scopes: [part].into(),
            expires: Some(claims.expires),
        })
    }

    /// Returns `true` for a path at which the server describes itself.
    pub(super) fn describes(&self, path: &str) -> bool {
        resource_documents(self.server.url()).iter().any(|document| document.path() == path)
    }

    /// Returns the document about the server (RFC 9728).
    pub(super) async fn document(&self) -> Value {
        let trusted = self.file.present().await;
        let issuers: Vec<_> = trusted.issuers.iter().map(|(entry, _)| entry.url.as_str()).collect();
        let mut document = json!({
            "resource": self.server.as_str(),
            "authorization_servers": issuers,
            "bearer_methods_supported": ["header"],
            "resource_name": "toolcrib",
        });
        let scopes: Vec<_> = trusted.scopes.all().collect();
        if !scopes.is_empty() {
            document["scopes_supported"] = json!(scopes);
        }
        document
    }

    /// Returns the challenge for a request without access, with its code (RFC 6750, RFC 9728).
    pub(super) fn challenge(&self, code: Option<&str>, part: TokenScope) -> String {
        let code = code.map(|code| format!("{code}, ")).unwrap_or_default();
        let document = resource_documents(self.server.url()).swap_remove(0);
        let trusted = self.file.last();
        let scope = trusted.scopes.of(part).map(|scope| format!(", scope=\"{scope}\"")).unwrap_or_default();
        format!("Bearer {code}resource_metadata=\"{document}\"{scope}")
    }
}

impl TrustedIssuers {
    /// Prepares the issuers of a file. Those that were trusted before keep their keys.
    fn new(file: SignInFile, before: &[(IssuerEntry, Arc<IssuerKeys>)], times: KeyTimes) -> anyhow::Result<Self> {
        let sets = file.option_sets();
        if sets > MAX_OWN {
            render::warning(&format!(
                "the rules of the sign-in have {sets} different sets of `options`, and only {MAX_OWN} can be in use at once: \
                 people of a further one are refused until another is idle"
            ));
        }
        let keys = |entry: &IssuerEntry| match before.iter().find(|(old, _)| old.url == entry.url) {
            Some((_, keys)) => Ok(keys.clone()),
            None => IssuerKeys::new(entry.url.clone(), times),
        };
        let issuers = file.issuers.into_iter().map(|entry| keys(&entry).map(|keys| (entry, keys)));
        Ok(Self { scopes: file.scopes, issuers: issuers.collect::<anyhow::Result<_>>()? })
    }
}
