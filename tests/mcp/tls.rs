//! TLS: a call over it, clients that use none, and files that no server can be made from.

use std::fs;
use std::io::{Result, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::json;

use super::PATIENCE;
use super::http::{Answer, Server};
use crate::certificates;
use crate::crib::{Crib, Ran};

/// Writes a certificate for `localhost` and its key, as `NAME.pem` and `NAME.key`.
fn certificate(crib: &Crib, name: &str) -> CertificateDer<'static> {
    let (certificate, key) = certificates::self_signed("localhost");
    fs::write(crib.path(format!("{name}.pem")), certificates::pem(&certificate)).unwrap();
    fs::write(crib.path(format!("{name}.key")), key.pem()).unwrap();
    certificate.into()
}

/// Sends bytes over TLS to a server with this certificate, and reads the answer.
fn exchange(server: &Server, certificate: &CertificateDer<'static>, bytes: &[u8]) -> Result<Answer> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut stream = StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), stream);
    stream.write_all(bytes)?;
    Ok(Answer::read(&mut stream))
}

/// Starts a server with files that it cannot be made from, and returns the refusal.
fn refused(crib: &Crib, certificate: &str, key: &str) -> Ran {
    let (certificate, key) = (format!("--tls-cert={certificate}"), format!("--tls-key={key}"));
    let mut command = crib.toolcrib(&["mcp", "--http=127.0.0.1:0", "--no-token", &certificate, &key]);
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let until = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
            panic!("a server with {certificate} {key}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ran::from(child.wait_with_output().unwrap())
}

#[test]
fn a_tool_is_called_over_tls_by_clients_that_trust_the_certificate() {
    let crib = Crib::with_guests(&["echo"]);
    let (own, other) = (certificate(&crib, "own"), certificate(&crib, "other"));
    let server = Server::start(&crib, &["--no-token", "--tls-cert=own.pem", "--tls-key=own.key"]);
    let call = server.requested("tools/call", json!({"name": "echo", "arguments": {"a": 1}}), "");
    let answer = exchange(&server, &own, &call).unwrap();
    assert_eq!((answer.status, &answer.message()["result"]["isError"]), (200, &json!(false)), "{answer:?}");
    let error = exchange(&server, &other, &call).unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
    assert_eq!(crib.records().len(), 1, "the call of the client that trusts it");
    for origin in [format!("https://{}", server.address), format!("http://{}", server.address)] {
        let list = server.requested("tools/list", json!({}), &format!("origin: {origin}\r\n"));
        let status = if origin.starts_with("https") { 200 } else { 403 };
        assert_eq!(exchange(&server, &own, &list).unwrap().status, status, "{origin}");
    }
}

#[test]
fn a_client_without_tls_gets_no_answer_and_one_that_stalls_is_dropped() {
    let crib = Crib::with_guests(&["echo"]);
    let own = certificate(&crib, "own");
    let flags = ["--no-token", "--arrival-timeout=1s", "--tls-cert=own.pem", "--tls-key=own.key"];
    let server = Server::start(&crib, &flags);
    let answer = server.get("/healthz", "");
    assert!(answer.status == 0 && !answer.head.contains("HTTP") && !answer.body.contains("ok"), "{answer:?}");
    // Nothing, and the start of a greeting.
    for bytes in [&b""[..], b"\x16\x03\x01\x02\0\x01"] {
        let start = Instant::now();
        let answer = server.exchange(bytes);
        assert_eq!(answer.status, 0, "{answer:?}");
        // By default, thirty seconds.
        assert!(start.elapsed() < Duration::from_secs(25), "{:?}", start.elapsed());
    }
    let health = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    assert_eq!(exchange(&server, &own, health).unwrap().status, 200);
}

#[test]
fn a_certificate_that_changes_is_read_again_and_a_broken_one_changes_nothing() {
    let crib = Crib::with_guests(&["echo"]);
    let own = certificate(&crib, "own");
    let server = Server::start(&crib, &["--no-token", "--tls-cert=own.pem", "--tls-key=own.key"]);
    let health = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let status = |certificate| exchange(&server, certificate, health).map(|answer| answer.status).ok();
    assert_eq!(status(&own), Some(200));
    fs::write(crib.path("own.pem"), "no certificate").unwrap();
    assert_eq!(status(&own), Some(200));
    let next = certificate(&crib, "own");
    assert_eq!((status(&next), status(&own)), (Some(200), None));
    fs::remove_file(crib.path("own.key")).unwrap();
    assert_eq!(status(&next), Some(200));
}

#[test]
fn files_from_which_no_server_can_be_made_are_named() {
    let crib = Crib::with_guests(&["echo"]);
    certificate(&crib, "own");
    certificate(&crib, "other");
    fs::write(crib.path("text"), "no certificate and no key\n").unwrap();
    for kind in ["CERTIFICATE", "PRIVATE KEY"] {
        let broken = format!("-----BEGIN {kind}-----\n!\n-----END {kind}-----\n");
        fs::write(crib.path(kind), broken).unwrap();
        let false_content = format!("-----BEGIN {kind}-----\nAAAA\n-----END {kind}-----\n");
        fs::write(crib.path(format!("{kind} AAAA")), false_content).unwrap();
    }
    let mut long = fs::read(crib.path("own.pem")).unwrap();
    long.resize((1 << 20) + 1, b'\n');
    fs::write(crib.path("long"), long).unwrap();
    for (certificate, key, named) in [
        ("long", "own.key", "cannot use `long`"),
        ("own.pem", "long", "cannot use `long`"),
        ("missing", "own.key", "cannot use `missing`"),
        ("own.pem", "missing", "cannot use `missing`"),
        ("tools", "own.key", "cannot use `tools`"),
        ("text", "own.key", "cannot use `text`"),
        ("own.pem", "text", "cannot use `text`"),
        ("CERTIFICATE", "own.key", "cannot use `CERTIFICATE`"),
        ("CERTIFICATE AAAA", "own.key", "cannot use `CERTIFICATE AAAA`"),
        ("own.pem", "PRIVATE KEY", "cannot use `PRIVATE KEY`"),
        ("own.pem", "PRIVATE KEY AAAA", "cannot use `PRIVATE KEY AAAA`"),
        ("own.key", "own.key", "cannot use `own.key`"),
        ("own.pem", "own.pem", "cannot use `own.pem`"),
        ("own.pem", "other.key", "the key in `other.key` does not match the certificate in `own.pem`"),
    ] {
        let ran = refused(&crib, certificate, key);
        assert_eq!(ran.code, Some(1), "{certificate}, {key}: {ran:?}");
        assert!(ran.stderr.contains(named) && ran.stderr.contains("hint: name "), "{certificate}, {key}: {ran:?}");
    }
    #[cfg(unix)]
    for (mode, is_open) in [(0o644, true), (0o600, false)] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs::set_permissions(crib.path("own.key"), mode).unwrap();
        let ran = refused(&crib, "text", "own.key");
        assert_eq!(ran.stderr.contains("other users can read the private key `own.key`"), is_open, "{ran:?}");
    }
    for alone in ["--tls-cert=own.pem", "--tls-key=own.key"] {
        let ran = crib.run(&["mcp", "--http=127.0.0.1:0", "--no-token", alone]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
    }
}
