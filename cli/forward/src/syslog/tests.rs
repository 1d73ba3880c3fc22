//! Receivers that read a batch to its end, and others: only the first have it.

use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use toolcrib::audit::LogPlace;

use super::*;

/// Certificate for 127.0.0.1 that signs itself, valid until the year 2100.
const CERTIFICATE: &str = "\
    3082014e3081f5a003020102020101300a06082a8648ce3d040302300f310d300b06035504030c04746573743020170d3031303130313030\
    303030305a180f32313030303130313030303030305a300f310d300b06035504030c04746573743059301306072a8648ce3d020106082a86\
    48ce3d030107034200044564db5b43cfb1a3d7389957dcd39712cbb06291e206b4ea48d44aa8418088078fe0533f1e9b950c37901b94f2b3\
    408ac7900c8af680fa7434ec3e9a2ee0cae2a340303e300f0603551d110408300687047f000001300c0603551d130101ff04023000301d06\
    03551d0e04160414024a55069b1639d06483e01d661d204118bbe986300a06082a8648ce3d040302034800304502201e6238ef34108bfb8c\
    596c6b2982bb995c1beea74271bbe733ac40cef6cca95e022100cfc72d2fc4110ed4478b215c40b72b3633811109f5bcaa9d417c91dbfc59\
    0f44";
/// Key of the certificate. It protects nothing.
const KEY: &str = "\
    308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b02010104207f1d46c7421125a51f15e03c83db3704ad3ce0ae\
    9816dbe94dd2e37e5af77ef4a144034200044564db5b43cfb1a3d7389957dcd39712cbb06291e206b4ea48d44aa8418088078fe0533f1e9b\
    950c37901b94f2b3408ac7900c8af680fa7434ec3e9a2ee0cae2";

fn record(line: &str) -> ForwardedRecord {
    let (chain, day) = ("0".repeat(64).parse().unwrap(), "2026-03-01".parse().unwrap());
    ForwardedRecord { line: line.to_owned(), place: LogPlace { seq: 1, chain, day, offset: 0 } }
}

#[test]
fn messages_have_the_time_the_host_and_the_line() {
    for (line, start) in [
        (r#"{"ts":"2026-03-01T12:30:45.678Z","outcome":"ok"}"#, "<110>1 2026-03-01T12:30:45.678Z"),
        (r#"{"ts":"2026-03-01T12:30:45.678Z","outcome":"denied"}"#, "<108>1 2026-03-01T12:30:45.678Z"),
        (r#"{"ts":"2026-03-01t14:30:45.6789+02:00[a]"}"#, "<107>1 2026-03-01T12:30:45.678Z"),
        (r#"{"ts":"a b","outcome":"trap"}"#, "<107>1 -"),
        ("torn", "<107>1 -"),
    ] {
        assert_eq!(message(&record(line), "host"), format!("{start} host toolcrib - audit - {line}"));
    }
    assert!(message(&record("a\u{7}\n\u{9b}b"), "host").ends_with("audit - a   b"));
}

#[tokio::test]
async fn only_a_receiver_that_reads_to_the_end_has_the_batch() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let receiver = SyslogReceiver::new("127.0.0.1".to_owned(), port, false, "host").unwrap();
    let batch = vec![record(&"x".repeat(100_000)); 20];
    // It reads everything, closes at once, or closes amid the batch.
    for bytes in [usize::MAX, 0, 1000] {
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut left, mut all, mut buffer) = (bytes, Vec::new(), vec![0; 4096]);
            while left > 0 {
                let read = stream.read(&mut buffer).await.unwrap();
                if read == 0 {
                    break;
                }
                all.extend_from_slice(&buffer[..read]);
                left = left.saturating_sub(read);
            }
            all
        };
        let (sent, received) = tokio::join!(receiver.send(&batch), serve);
        assert_eq!(sent.is_ok(), bytes == usize::MAX, "{bytes}: {sent:?}");
        if sent.is_ok() {
            let message = message(&batch[0], "host");
            assert_eq!(received, format!("{} {message}", message.len()).repeat(20).into_bytes());
        }
    }
    let chatter = async { listener.accept().await.unwrap().0.write_all(&vec![b'x'; 2 * MAX_RECEIVED]).await };
    let (sent, _) = tokio::join!(receiver.send(&batch[..1]), chatter);
    assert!(sent.is_err());
    drop(listener);
    assert!(matches!(receiver.send(&batch).await, Err(SendFailure::Retry { .. })));
}

/// Decodes hexadecimal digits.
fn bytes(digits: &str) -> Vec<u8> {
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

#[tokio::test]
async fn an_encrypted_receiver_has_the_batch_if_it_reads_and_ends_it() {
    let (certificate, key) = (CertificateDer::from(bytes(CERTIFICATE)), PrivatePkcs8KeyDer::from(bytes(KEY)));
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let client = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let server = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let acceptor = TlsAcceptor::from(Arc::new(server.with_single_cert(vec![certificate], key.into()).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let tls = Some((TlsConnector::from(Arc::new(client.with_no_client_auth())), name));
    let receiver = SyslogReceiver { host: "127.0.0.1".to_owned(), port, tls, sender: "host".to_owned() };
    let batch = vec![record(&"x".repeat(10_000)); 20];
    // It reads everything, or a part of it, and ends the encryption or only the connection.
    for (bytes, is_ended) in [(usize::MAX, true), (usize::MAX, false), (1000, true), (1000, false), (0, true)] {
        let serve = async {
            let mut stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
            let (mut left, mut buffer) = (bytes, vec![0; 1000]);
            while left > 0 {
                match stream.read(&mut buffer).await.unwrap() {
                    0 => break,
                    read => left = left.saturating_sub(read),
                }
            }
            if is_ended {
                // The sender may have given up already.
                let _ = stream.shutdown().await;
            }
        };
        let (sent, ()) = tokio::join!(receiver.send(&batch), serve);
        assert_eq!(sent.is_ok(), bytes == usize::MAX && is_ended, "{bytes}, {is_ended}: {sent:?}");
    }
}
