//! Discovery of a protected server's authorization server (RFC 9728) and its endpoints (RFC 8414, OpenID Connect).

use anyhow::{Context, bail};
use serde_json::Value;
use toolcrib::tool::RemoteAddress;
use toolcrib_base::oauth::{issuer_documents, resource_documents};
use toolcrib_base::render::{one_line, shortened};
use url::Url;

use super::documents::{Documents, short_text, text};

/// Method of a client that sends its secret in the header `Authorization`.
pub(super) const SECRET_IN_HEADER: &str = "client_secret_basic";
/// Method of a client that sends its secret in the body.
pub(super) const SECRET_IN_BODY: &str = "client_secret_post";
/// Maximum characters of a scope.
const MAX_SCOPE: usize = 2000;

/// Authorization server with the endpoints that a login needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AuthorizationServer {
    pub(super) issuer: String,
    pub(super) authorization: RemoteAddress,
    pub(super) token: RemoteAddress,
    pub(super) registration: Option<RemoteAddress>,
    /// `true` if its answers name it, so that one without a name is refused.
    pub(super) names_itself: bool,
    /// `true` if it accepts clients without a secret.
    pub(super) takes_public_clients: bool,
    /// `true` if the secret of a client belongs into the body of a request, and not into its header.
    pub(super) takes_secrets_in_body: bool,
    /// `true` if it accepts a document's address as a client identifier.
    pub(super) takes_documents: bool,
    pub(super) offers_offline_access: bool,
}

/// Protected server, as its metadata describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProtectedResource {
    /// Resource that tokens are for.
    pub(super) resource: String,
    pub(super) issuer: String,
    /// Scope to ask for.
    pub(super) scope: Option<String>,
}

/// Returns a parameter of a challenge, `NAME="VALUE"`.
pub(super) fn parameter(challenge: &str, name: &str) -> Option<String> {
    let mut rest = challenge;
    while let Some(at) = rest.to_ascii_lowercase().find(&format!("{name}=")) {
        let begins = rest[..at].chars().next_back().is_none_or(|before| " ,\t".contains(before));
        rest = &rest[at + name.len() + 1..];
        if begins {
            return match rest.strip_prefix('"') {
                Some(quoted) => Some(quoted.split('"').next()?.to_owned()),
                None => Some(rest.split([',', ' ']).next()?.to_owned()),
            };
        }
    }
    None
}

/// Finds the resource and the issuer of a server, by its challenge or by the usual paths.
pub(super) async fn resource(documents: &Documents<'_>, challenge: Option<&str>) -> anyhow::Result<ProtectedResource> {
    let server = documents.server;
    let url = Url::parse(server.as_str())?;
    let named = challenge.and_then(|challenge| parameter(challenge, "resource_metadata"));
    let mut places = Vec::new();
    if let Some(named) = named {
        let named = documents.address("the address of the server's metadata", &named)?;
        if named.host() != server.host() {
            bail!("the server names metadata on another host, `{named}`");
        }
        places.push(named);
    }
    places.extend(addresses(resource_documents(&url))?);
    places.dedup();
    let scope = challenge.and_then(|challenge| parameter(challenge, "scope"));
    for place in &places {
        let Some(document) = documents.get(place).await? else { continue };
        let resource = short_text(&document, "resource")
            .context("the metadata of the server name no `resource` of a usable length")?;
        if !is_for(&resource, &url) {
            bail!(
                "the metadata at `{place}` are for `{}`, and not for `{server}`",
                one_line(&shortened(&resource, 200))
            );
        }
        let issuer = document["authorization_servers"].as_array().and_then(|all| all.first()?.as_str());
        let issuer = issuer.context("the metadata of the server name no authorization server")?.to_owned();
        let scopes = document["scopes_supported"]
            .as_array()
            .map(|all| all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "));
        let scope = scope.or(scopes).filter(|scope| !scope.is_empty());
        return Ok(ProtectedResource { resource, issuer, scope: checked_scope(scope)? });
    }
    // Servers of the first revision with authorization are their own authorization servers.
    let issuer = url.origin().ascii_serialization();
    Ok(ProtectedResource { resource: server.as_str().to_owned(), issuer, scope: checked_scope(scope)? })
}

fn checked_scope(scope: Option<String>) -> anyhow::Result<Option<String>> {
    let is_valid = |scope: &String| scope.len() <= MAX_SCOPE && scope.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    match scope {
        Some(scope) if !is_valid(&scope) => bail!("the server asks for a scope that is none"),
        scope => Ok(scope),
    }
}

fn addresses(urls: Vec<Url>) -> anyhow::Result<Vec<RemoteAddress>> {
    urls.iter().map(|url| Ok(url.as_str().parse()?)).collect()
}

/// Returns `true` if a resource is the server, or contains its path.
fn is_for(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let (path, own) = (resource.path().trim_end_matches('/'), server.path());
    resource.origin() == server.origin()
        && resource.fragment().is_none()
        && own.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Finds the endpoints of an issuer.
pub(super) async fn authorization_server(
    documents: &Documents<'_>,
    issuer: &str,
) -> anyhow::Result<AuthorizationServer> {
    let base = documents.address("the authorization server", issuer)?;
    let url = Url::parse(base.as_str())?;
    let places = addresses(issuer_documents(&url))?;
    for place in &places {
        let Some(document) = documents.get(place).await? else { continue };
        let stated = text(&document, "issuer").unwrap_or_default();
        // The issuer of a server without metadata of its own is derived, and has no path.
        if stated != issuer && stated.trim_end_matches('/') != issuer {
            bail!(
                "the metadata at `{place}` are of the issuer `{}`, and not of `{issuer}`",
                one_line(&shortened(&stated, 200))
            );
        }
        return read(documents, stated, &document);
    }
    bail!("the authorization server `{base}` has no metadata at the well-known paths")
}

fn read(documents: &Documents<'_>, issuer: String, document: &Value) -> anyhow::Result<AuthorizationServer> {
    let has =
        |field: &str, value: &str| document[field].as_array().is_some_and(|all| all.iter().any(|one| one == value));
    if !has("code_challenge_methods_supported", "S256") {
        bail!(
            "the authorization server `{issuer}` does not state that it supports PKCE with S256, without which no login is safe"
        );
    }
    let endpoint = |field: &str| {
        let address = text(document, field).map(|address| documents.address(&format!("`{field}`"), &address));
        address.transpose()
    };
    let required =
        |field: &str| endpoint(field)?.with_context(|| format!("the metadata of `{issuer}` have no `{field}`"));
    let methods = "token_endpoint_auth_methods_supported";
    Ok(AuthorizationServer {
        authorization: required("authorization_endpoint")?,
        token: required("token_endpoint")?,
        registration: endpoint("registration_endpoint")?,
        names_itself: document["authorization_response_iss_parameter_supported"] == true,
        takes_public_clients: document.get(methods).is_none() || has(methods, "none"),
        takes_secrets_in_body: has(methods, SECRET_IN_BODY) && !has(methods, SECRET_IN_HEADER),
        takes_documents: document["client_id_metadata_document_supported"] == true,
        offers_offline_access: has("scopes_supported", "offline_access"),
        issuer,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_has_parameters_in_any_order() {
        let challenge =
            r#"Bearer realm="x", resource_metadata="https://a.example/m", scope="a b", error=invalid_token"#;
        let of = |name: &str| parameter(challenge, name);
        assert_eq!(of("resource_metadata").as_deref(), Some("https://a.example/m"));
        assert_eq!((of("scope").as_deref(), of("error").as_deref()), (Some("a b"), Some("invalid_token")));
        assert_eq!((of("metadata"), parameter("Bearer", "scope"), parameter("", "x")), (None, None, None));
    }

    #[test]
    fn a_resource_is_the_server_or_contains_it() {
        let server = Url::parse("https://a.example/x/mcp").unwrap();
        for (resource, is) in [
            ("https://a.example/x/mcp", true),
            ("https://a.example", true),
            ("https://a.example/x/", true),
            ("https://a.example/x/m", false),
            ("https://a.example/y", false),
            ("http://a.example/x/mcp", false),
            ("https://b.example/x/mcp", false),
            ("https://a.example:8443/x/mcp", false),
            ("https://a.example/x/mcp#y", false),
            ("", false),
        ] {
            assert_eq!(is_for(resource, &server), is, "{resource}");
        }
    }
}
