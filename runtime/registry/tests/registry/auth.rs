//! Authentication: Basic and Bearer, minimal scopes, kept tokens, and token servers that lie.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use toolcrib_registry::limits::{MAX_ANSWER_BYTES, MAX_CREDENTIAL_BYTES};
use toolcrib_registry::{
    BlobSource, Client, Credential, CredentialStore, Error, HelperEnvironment, Role, Secret, StoredIn, UploadMode,
};

use crate::server::{Body, Reply, Request, Server};
use crate::{blob, builder, client, repository};

pub(crate) const PASSWORD: &str = "canary-pass:word";

/// Folder with a credential file.
pub(crate) struct Stored {
    pub(crate) folder: tempfile::TempDir,
}

impl Stored {
    pub(crate) fn new(content: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("config.json"), content).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("config.json")
    }

    pub(crate) fn store(&self) -> CredentialStore {
        let environment = HelperEnvironment::new(self.folder.path().into(), Vec::new());
        CredentialStore::new(vec![self.path()], Some(self.path()), environment)
    }
}

pub(crate) fn store_with_password(registry: &str) -> Stored {
    let auth = STANDARD.encode(format!("ada:{PASSWORD}"));
    Stored::new(&json!({ "auths": { registry: { "auth": auth } } }).to_string())
}

/// Refuses a request without the right user name and password.
pub(crate) fn basic_only(request: &Request) -> Option<Reply> {
    let expected = format!("Basic {}", STANDARD.encode(format!("ada:{PASSWORD}")));
    let refused = request.header("authorization") != Some(&expected);
    refused.then(|| Reply::new(401).header("WWW-Authenticate", "Basic realm=\"registry\""))
}

/// Registry that demands the token `token-SCOPE` of the token server at `realm`.
async fn bearer_registry(realm: String) -> Server {
    Server::start(move |request| {
        let scope = match request.method.as_str() {
            "GET" => "repository:team/tool:pull",
            _ => "repository:team/tool:pull,push",
        };
        if request.header("authorization") == Some(&format!("Bearer token-{}", STANDARD.encode(scope))) {
            return match request.method.as_str() {
                "GET" => Reply::new(200).bytes("hello"),
                "HEAD" => Reply::new(404),
                "POST" => Reply::new(202).header("Location", "/u"),
                _ => Reply::new(201),
            };
        }
        // The scope of the challenge is wider than needed.
        let challenge = format!("Bearer realm=\"{realm}\",service=\"reg\",scope=\"repository:*:*\"");
        Reply::new(401).header("WWW-Authenticate", challenge)
    })
    .await
}

fn token(request: &Request) -> Reply {
    let form = String::from_utf8_lossy(&request.body).into_owned();
    let asked =
        Request { query: if request.method == "POST" { form } else { request.query.clone() }, ..request.clone() };
    assert_eq!(asked.parameter("service").as_deref(), Some("reg"));
    let token = format!("token-{}", STANDARD.encode(asked.parameter("scope").unwrap_or_default()));
    Reply::new(200).bytes(json!({ "token": token, "expires_in": 300 }).to_string())
}

/// Client with the credentials of a store, which knows a token server's certificate.
fn client_of(stored: &Stored, certificate: Vec<u8>) -> Client {
    builder().credentials(stored.store()).root_certificate(certificate).build().unwrap()
}

async fn pull(client: &Client, server: &Server) -> Result<(), Error> {
    client.pull_blob(&repository(server), &blob(b"hello"), &mut Vec::new(), None).await
}

/// Pulls from a registry with a token server that answers with `reply`.
async fn pull_with_token(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Error {
    let (tokens, certificate) = Server::start_tls(move |_| reply()).await;
    let registry = bearer_registry(tokens.secure_url("/token")).await;
    let stored = store_with_password(&registry.address.to_string());
    let error = pull(&client_of(&stored, certificate), &registry).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
    error
}

#[tokio::test]
async fn a_token_has_the_least_scope_and_is_kept() {
    let tokens = Server::start(token).await;
    let registry = bearer_registry(tokens.url("/token?x=y")).await;
    let client = client();
    pull(&client, &registry).await.unwrap();
    pull(&client, &registry).await.unwrap();
    assert_eq!((tokens.requests().len(), registry.count("GET")), (1, 3));
    assert_eq!(tokens.requests()[0].parameter("scope").as_deref(), Some("repository:team/tool:pull"));
    assert_eq!(tokens.requests()[0].parameter("x").as_deref(), Some("y"));
    assert_eq!(tokens.requests()[0].header("authorization"), None);
    let source = BlobSource::Bytes("x".into());
    client.push_blob(&repository(&registry), &blob(b"x"), &source, UploadMode::Auto, None).await.unwrap();
    assert_eq!(tokens.requests()[1].parameter("scope").as_deref(), Some("repository:team/tool:pull,push"));
}

#[tokio::test]
async fn a_password_goes_to_the_token_server_and_not_to_the_registry() {
    let (tokens, certificate) = Server::start_tls(token).await;
    let registry = bearer_registry(tokens.secure_url("/token")).await;
    let stored = store_with_password(&registry.address.to_string());
    pull(&client_of(&stored, certificate), &registry).await.unwrap();
    assert!(tokens.requests()[0].header("authorization").unwrap().starts_with("Basic "));
    let sent: Vec<_> =
        registry.requests().iter().filter_map(|r| r.header("authorization").map(str::to_owned)).collect();
    assert!(sent.iter().all(|header| header.starts_with("Bearer ")), "{sent:?}");
}

#[tokio::test]
async fn an_identity_token_is_exchanged_by_a_form() {
    let (tokens, certificate) = Server::start_tls(token).await;
    let registry = bearer_registry(tokens.secure_url("/token")).await;
    let stored = Stored::new(
        &json!({ "auths": { registry.address.to_string(): { "identitytoken": "refresh&me" } } }).to_string(),
    );
    pull(&client_of(&stored, certificate), &registry).await.unwrap();
    let request = &tokens.requests()[0];
    let form = String::from_utf8(request.body.clone()).unwrap();
    assert_eq!((request.method.as_str(), request.query.as_str()), ("POST", ""));
    assert!(form.contains("grant_type=refresh_token") && form.contains("refresh_token=refresh%26me"), "{form}");
}

#[tokio::test]
async fn a_credential_goes_over_plain_http_to_the_registry_alone() {
    // A program of this machine, which a registry anywhere can name.
    let elsewhere = Server::start(token).await;
    let registry = bearer_registry(elsewhere.url("/token")).await;
    let address = registry.address.to_string();
    let identity = Stored::new(&json!({ "auths": { address.as_str(): { "identitytoken": "refresh" } } }).to_string());
    for stored in [store_with_password(&address), identity] {
        let refused = pull(&builder().credentials(stored.store()).build().unwrap(), &registry).await;
        assert!(matches!(refused, Err(Error::PlainHttpCredential { .. })), "{refused:?}");
    }
    assert!(elsewhere.requests().is_empty());
    // Its own token server is at the same host and port.
    let own = Server::start(|request| match (request.path.as_str(), request.header("authorization")) {
        ("/token", _) => token(request),
        (_, Some(header)) if header.starts_with("Bearer ") => Reply::new(200).bytes("hello"),
        _ => {
            let host = request.header("host").unwrap_or_default();
            let challenge = format!("Bearer realm=\"http://{host}/token\",service=\"reg\"");
            Reply::new(401).header("WWW-Authenticate", challenge)
        }
    })
    .await;
    let stored = store_with_password(&own.address.to_string());
    pull(&builder().credentials(stored.store()).build().unwrap(), &own).await.unwrap();
}

#[tokio::test]
async fn refused_credentials_are_not_sent_again_and_again() {
    let registry = Server::start(|_| Reply::new(401).header("WWW-Authenticate", "Basic realm=\"x\"")).await;
    let refused = pull(&client(), &registry).await;
    assert!(matches!(refused, Err(Error::Unauthorized { sent: false, .. })), "{refused:?}");
    assert_eq!(registry.requests().len(), 1);
    let stored = store_with_password(&registry.address.to_string());
    let refused = pull(&builder().credentials(stored.store()).build().unwrap(), &registry).await;
    assert!(matches!(refused, Err(Error::Unauthorized { sent: true, .. })), "{refused:?}");
    assert_eq!(registry.requests().len(), 3);
}

#[tokio::test]
async fn an_expired_token_is_replaced_once() {
    let tokens = Server::start(|_| Reply::new(200).bytes(r#"{"access_token":"old"}"#)).await;
    let registry = bearer_registry(tokens.url("/token")).await;
    let refused = pull(&client(), &registry).await;
    assert!(matches!(refused, Err(Error::Unauthorized { .. })), "{refused:?}");
    assert_eq!((registry.requests().len(), tokens.requests().len()), (2, 1));
}

#[tokio::test]
async fn a_realm_elsewhere_is_refused() {
    for realm in
        ["http://auth.example/token", "ftp://127.0.0.1/", "token", "", "https://u:p@auth.example/", "http://10.0.0.1/"]
    {
        let registry = bearer_registry(realm.to_owned()).await;
        let stored = store_with_password(&registry.address.to_string());
        let refused = pull(&builder().credentials(stored.store()).build().unwrap(), &registry).await;
        assert!(matches!(refused, Err(Error::PlainHttp { .. } | Error::Malformed { .. })), "{realm}: {refused:?}");
    }
    let registry = bearer_registry("https://169.254.169.254/token".to_owned()).await;
    let refused = pull(&client(), &registry).await;
    assert!(matches!(refused, Err(Error::AddressRefused { role: Role::TokenServer, .. })), "{refused:?}");
}

#[tokio::test]
async fn a_token_server_that_lies_is_refused() {
    let long = json!({ "token": "x".repeat(MAX_CREDENTIAL_BYTES + 1) }).to_string();
    let error = pull_with_token(move || Reply::new(200).bytes(long.clone())).await;
    assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
    let error = pull_with_token(|| Reply::new(200).bytes(vec![b' '; MAX_ANSWER_BYTES + 1])).await;
    assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
    let error = pull_with_token(|| Reply::new(200).body(Body::Endless)).await;
    assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
    for text in
        [r#"{"token":"a\r\nX: y"}"#, r#"{"token":""}"#, "{}", r#"{"token":1}"#, r#"{"token":"canary"#, r#""canary""#]
    {
        let error = pull_with_token(move || Reply::new(200).bytes(text)).await;
        assert!(matches!(error, Error::Malformed { .. }), "{text}: {error:?}");
    }
    let error = pull_with_token(|| Reply::new(302).header("Location", "https://evil.example/")).await;
    assert!(matches!(error, Error::Redirect { .. }), "{error:?}");
    for status in [400, 401, 403] {
        let error = pull_with_token(move || Reply::new(status).bytes(PASSWORD)).await;
        assert!(matches!(error, Error::Unauthorized { sent: true, .. }), "{error:?}");
    }
}

#[tokio::test]
async fn a_challenge_that_cannot_be_read_is_refused() {
    for challenge in ["Bearer", "Bearer realm=\"x", "Bearer realm=\"a\",realm=\"b\""] {
        let registry = Server::start(move |_| Reply::new(401).header("WWW-Authenticate", challenge)).await;
        let refused = pull(&client(), &registry).await;
        assert!(matches!(refused, Err(Error::Malformed { .. })), "{challenge}: {refused:?}");
    }
    let long = format!("Bearer realm=\"https://a/{}\"", "x".repeat(10_000));
    let registry = Server::start(move |_| Reply::new(401).header("WWW-Authenticate", &long)).await;
    let refused = pull(&client(), &registry).await;
    assert!(matches!(refused, Err(Error::TooLarge { .. })), "{refused:?}");
}

#[tokio::test]
async fn login_stores_what_the_registry_accepts_and_logout_erases_it() {
    let registry = Server::start(|request| basic_only(request).unwrap_or_else(|| Reply::new(200).bytes("hello"))).await;
    let name = registry.address.to_string().parse().unwrap();
    let stored = Stored::new(r#"{"psFormat":"table","auths":{"other.example":{"auth":"eDp5"}}}"#);
    let client = builder().credentials(stored.store()).build().unwrap();
    let wrong = Credential::password("ada", Secret::new("wrong")).unwrap();
    let refused = client.login(&name, &wrong).await;
    assert!(matches!(refused, Err(Error::Unauthorized { sent: true, .. })), "{refused:?}");
    assert!(!std::fs::read_to_string(stored.path()).unwrap().contains("127.0.0.1"));

    let right = Credential::password("ada", Secret::new(PASSWORD)).unwrap();
    assert_eq!(client.login(&name, &right).await.unwrap(), StoredIn::File(stored.path()));
    pull(&client, &registry).await.unwrap();
    assert!(client.logout(&name).await.unwrap());
    assert!(!client.logout(&name).await.unwrap());
    assert!(pull(&client, &registry).await.is_err(), "the credential is gone from the memory too");
    let text = std::fs::read_to_string(stored.path()).unwrap();
    assert!(text.contains("psFormat") && text.contains("other.example"), "{text}");
}
