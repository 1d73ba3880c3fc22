//! HTTPS: the certificate is checked, and a connection is never weakened.

use toolcrib_registry::{Client, Error, RedirectError, Reference};

use crate::server::{Reply, Server};
use crate::{blob, builder};

fn reference(server: &Server) -> Reference {
    format!("localhost:{}/team/tool", server.address.port()).parse().unwrap()
}

async fn pull(client: &Client, server: &Server) -> Result<(), Error> {
    client.pull_blob(reference(server).repository(), &blob(b"hello"), &mut Vec::new(), None).await
}

fn client(server: &Server, root: Option<Vec<u8>>) -> Client {
    let builder = builder().https(reference(server).repository().registry().clone());
    match root {
        Some(root) => builder.root_certificate(root).build().unwrap(),
        None => builder.build().unwrap(),
    }
}

#[tokio::test]
async fn a_certificate_has_to_be_known() {
    let (server, certificate) = Server::start_tls(|_| Reply::new(200).bytes("hello")).await;
    pull(&client(&server, Some(certificate)), &server).await.unwrap();
    let refused = pull(&client(&server, None), &server).await;
    assert!(matches!(refused, Err(Error::Connection { .. })), "{refused:?}");
    assert_eq!(server.requests().len(), 1);
    assert_eq!(server.requests()[0].version, "HTTP/1.1", "although the server prefers another version");
    assert!(matches!(builder().root_certificate(vec![1, 2, 3]).build(), Err(Error::Setup(_))));
}

#[tokio::test]
async fn a_redirect_or_realm_without_tls_is_refused() {
    let plain = Server::start(|_| Reply::new(200).bytes("hello")).await;
    let target = plain.url("/blob");
    let (server, certificate) = Server::start_tls(move |_| Reply::new(302).header("Location", &target)).await;
    let refused = pull(&client(&server, Some(certificate)), &server).await;
    assert!(matches!(refused, Err(Error::Redirect { reason: RedirectError::Downgrade, .. })), "{refused:?}");
    assert!(plain.requests().is_empty());
    let (server, certificate) =
        Server::start_tls(|_| Reply::new(401).header("WWW-Authenticate", "Bearer realm=\"http://auth.example/token\""))
            .await;
    let refused = pull(&client(&server, Some(certificate)), &server).await;
    assert!(matches!(refused, Err(Error::PlainHttp { .. })), "{refused:?}");
}
