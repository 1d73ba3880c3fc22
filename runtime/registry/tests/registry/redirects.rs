//! Redirects: bounded, judged at every hop, and without the authorization.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use toolcrib_registry::{
    AddressPolicy, Client, CredentialStore, Error, Lookup, NameLookup, Peer, RedirectError, Reference, Role,
    limits::MAX_REDIRECTS,
};

use crate::auth::{basic_only, store_with_password};
use crate::server::{Reply, Server};
use crate::{blob, builder, client, repository};

/// Names of a test, with their addresses.
#[derive(Clone)]
struct Names(Vec<(&'static str, &'static str)>);

impl NameLookup for Names {
    fn lookup(&self, host: String) -> Lookup {
        let found: Vec<IpAddr> =
            self.0.iter().filter(|(name, _)| *name == host).map(|(_, address)| address.parse().unwrap()).collect();
        Box::pin(async move { if found.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(found) } })
    }
}

async fn redirecting(location: String) -> Server {
    Server::start(move |_| Reply::new(307).header("Location", &location)).await
}

async fn pull(client: &Client, server: &Server) -> Result<Vec<u8>, Error> {
    let mut copy = Vec::new();
    client.pull_blob(&repository(server), &blob(b"hello"), &mut copy, None).await.map(|()| copy)
}

#[tokio::test]
async fn a_blob_behind_redirects_is_fetched_and_checked() {
    let store = Server::start(|_| Reply::new(200).bytes("hello")).await;
    let second = redirecting(store.url("/blob?signature=x")).await;
    let first = redirecting(second.url("/next")).await;
    assert_eq!(pull(&client(), &first).await.unwrap(), b"hello");
    assert_eq!(store.requests()[0].query, "signature=x");
    let liar = Server::start(|_| Reply::new(200).bytes("hellO")).await;
    let refused = pull(&client(), &redirecting(liar.url("/")).await).await;
    assert!(matches!(refused, Err(Error::DigestMismatch { .. })), "{refused:?}");
}

#[tokio::test]
async fn redirects_are_counted() {
    let server = redirecting("/v2/again".to_owned()).await;
    let refused = pull(&client(), &server).await;
    assert!(matches!(refused, Err(Error::Redirect { reason: RedirectError::TooMany, .. })), "{refused:?}");
    assert_eq!(server.count("GET"), MAX_REDIRECTS + 1);
}

#[tokio::test]
async fn the_authorization_stays_at_the_registry() {
    let store = Server::start(|_| Reply::new(200).bytes("hello")).await;
    let target = store.url("/blob");
    let registry = Server::start(move |request| match basic_only(request) {
        Some(refusal) => refusal,
        None => Reply::new(302).header("Location", &target),
    })
    .await;
    let credentials = store_with_password(registry.address.to_string().as_str());
    let client = builder().credentials(credentials.store()).build().unwrap();
    assert_eq!(pull(&client, &registry).await.unwrap(), b"hello");
    assert!(registry.requests().iter().any(|request| request.header("authorization").is_some()));
    assert!(store.requests().iter().all(|request| request.header("authorization").is_none()));
}

#[tokio::test]
async fn the_authorization_is_not_picked_up_again_on_the_way_back() {
    let back = Arc::new(Mutex::new(String::new()));
    let target = Arc::clone(&back);
    let store = Server::start(move |_| Reply::new(302).header("Location", target.lock().unwrap())).await;
    let away = store.url("/blob");
    let registry = Server::start(move |request| match (request.path.as_str(), basic_only(request)) {
        ("/returned", _) => Reply::new(200).bytes("hello"),
        (_, Some(refusal)) => refusal,
        (_, None) => Reply::new(302).header("Location", &away),
    })
    .await;
    *back.lock().unwrap() = registry.url("/returned");
    let credentials = store_with_password(registry.address.to_string().as_str());
    let client = builder().credentials(credentials.store()).build().unwrap();
    assert_eq!(pull(&client, &registry).await.unwrap(), b"hello");
    let returned = registry.requests().into_iter().find(|request| request.path == "/returned").unwrap();
    assert_eq!(returned.header("authorization"), None);
}

#[tokio::test]
async fn a_challenge_of_another_host_is_not_met() {
    let store = Server::start(|_| Reply::new(401).header("WWW-Authenticate", "Basic realm=\"x\"")).await;
    let registry = redirecting(store.url("/blob")).await;
    let credentials = store_with_password(store.address.to_string().as_str());
    let client = builder().credentials(credentials.store()).build().unwrap();
    let refused = pull(&client, &registry).await;
    assert!(matches!(refused, Err(Error::Unauthorized { status: 401, .. })), "{refused:?}");
    assert_eq!(store.count("GET"), 1);
}

#[tokio::test]
async fn a_redirect_to_a_special_address_or_without_tls_is_refused() {
    for address in [
        "https://10.0.0.1/",
        "https://169.254.169.254/latest/",
        "https://0.0.0.0/",
        "https://[fd00::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://0x0a.1/",
    ] {
        let refused = pull(&client(), &redirecting(address.to_owned()).await).await;
        assert!(matches!(refused, Err(Error::AddressRefused { role: Role::Redirect, .. })), "{address}: {refused:?}");
    }
    for address in ["http://example.com/", "http://10.0.0.1/"] {
        let refused = pull(&client(), &redirecting(address.to_owned()).await).await;
        assert!(matches!(refused, Err(Error::PlainHttp { .. })), "{address}: {refused:?}");
    }
    for (address, reason) in [
        ("https://user:pass@example.com/", RedirectError::UserInfo),
        ("file:///etc/passwd", RedirectError::Scheme),
        ("gopher://x/", RedirectError::Scheme),
        ("http://[", RedirectError::NoLocation),
    ] {
        match pull(&client(), &redirecting(address.to_owned()).await).await {
            Err(Error::Redirect { reason: found, .. }) => assert_eq!(found, reason, "{address}"),
            other => panic!("{address}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_name_that_resolves_to_a_special_address_is_refused() {
    let names = Names(vec![("inside.test", "10.0.0.1"), ("mixed.test", "1.1.1.1"), ("mixed.test", "169.254.169.254")]);
    let client = builder().name_lookup(names).build().unwrap();
    for host in ["inside.test", "mixed.test"] {
        let refused = pull(&client, &redirecting(format!("https://{host}/")).await).await;
        assert!(matches!(refused, Err(Error::AddressRefused { .. })), "{host}: {refused:?}");
    }
    let refused = pull(&client, &redirecting("https://unknown.test/".to_owned()).await).await;
    assert!(matches!(refused, Err(Error::Connection { .. })), "{refused:?}");
}

/// Policy that treats the loopback network as if it were public for the registry, and forbidden for the rest.
struct RegistryOnly(Arc<Mutex<Vec<(String, Role)>>>);

impl AddressPolicy for RegistryOnly {
    fn permits(&self, peer: &Peer<'_>) -> bool {
        self.0.lock().unwrap().push((peer.host.to_owned(), peer.role));
        peer.role == Role::Registry
    }
}

#[tokio::test]
async fn the_policy_of_the_caller_decides_at_every_hop() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let store = Server::start(|_| Reply::new(200).bytes("hello")).await;
    let registry = redirecting(store.url("/blob")).await;
    let client = builder().address_policy(RegistryOnly(Arc::clone(&asked))).build().unwrap();
    let refused = pull(&client, &registry).await;
    assert!(matches!(refused, Err(Error::AddressRefused { role: Role::Redirect, .. })), "{refused:?}");
    assert!(store.requests().is_empty());
    let hosts: Vec<Role> = asked.lock().unwrap().iter().map(|(_, role)| *role).collect();
    assert_eq!(hosts, [Role::Registry, Role::Redirect]);
    let nobody = builder().address_policy(|_: &Peer<'_>| false).build().unwrap();
    let refused = pull(&nobody, &registry).await;
    assert!(matches!(refused, Err(Error::AddressRefused { role: Role::Registry, .. })), "{refused:?}");
}

#[tokio::test]
async fn a_connection_of_the_registry_is_not_reused_for_a_redirect() {
    // The name was fine for the registry; as a redirect target it is judged again.
    let server = Server::start(|request| match request.path.as_str() {
        "/elsewhere" => Reply::new(200).bytes("hello"),
        _ => Reply::new(302).header(
            "Location",
            format!("http://other.localhost:{}/elsewhere", request.header("host").unwrap().rsplit_once(':').unwrap().1),
        ),
    })
    .await;
    let names = Names(vec![("other.localhost", "127.0.0.1")]);
    let policy = |peer: &Peer<'_>| peer.role == Role::Registry;
    let client = builder().name_lookup(names.clone()).address_policy(policy).build().unwrap();
    let refused = pull(&client, &server).await;
    assert!(matches!(refused, Err(Error::AddressRefused { role: Role::Redirect, .. })), "{refused:?}");
    let client = builder().name_lookup(names).build().unwrap();
    assert_eq!(pull(&client, &server).await.unwrap(), b"hello");
}

#[tokio::test]
async fn plain_http_needs_the_permission_of_the_operator() {
    let server = Server::start(|_| Reply::new(200).bytes("hello")).await;
    let names = Names(vec![("registry.test", "127.0.0.1"), ("localhost", "10.0.0.1")]);
    let reference: Reference = format!("registry.test:{}/team/tool", server.address.port()).parse().unwrap();
    let plain =
        builder().name_lookup(names.clone()).plain_http(reference.repository().registry().clone()).build().unwrap();
    let mut copy = Vec::new();
    plain.pull_blob(reference.repository(), &blob(b"hello"), &mut copy, None).await.unwrap();
    let secure = builder().name_lookup(names.clone()).credentials(CredentialStore::default()).build().unwrap();
    let refused = secure.pull_blob(reference.repository(), &blob(b"hello"), &mut copy, None).await;
    assert!(matches!(refused, Err(Error::Connection { .. })), "{refused:?}");
    assert_eq!(server.requests().len(), 1);

    let stray: Reference = "localhost/team/tool".parse().unwrap();
    let refused = secure.pull_blob(stray.repository(), &blob(b"hello"), &mut copy, None).await;
    assert!(matches!(refused, Err(Error::AddressRefused { .. })), "{refused:?}");
}
