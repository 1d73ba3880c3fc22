//! The network gate, by requests of a guest to servers on this host: what was granted is sent and answered, what was not
//! is refused and told with its flag, and what is too much ends.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use toolcrib::policy::Permission;
use toolcrib::{Policy, Runtime, ToolCall};

use crate::crib::Crib;

/// A server that answers each connection with this text, as it is, and hangs up; and the heads of what it was sent.
struct Server {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn answering(text: impl Into<Vec<u8>>) -> Self {
        let text = text.into();
        Self::serving(move |stream| {
            let _ = stream.write_all(&text);
        })
    }

    fn serving(answer: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (answer, seen) = (Arc::new(answer), heads.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, answer, seen) = (stream.unwrap(), answer.clone(), seen.clone());
                thread::spawn(move || {
                    seen.lock().unwrap().push(head(&mut stream));
                    answer(&mut stream);
                });
            }
        });
        Self { port, heads }
    }

    fn sent(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    fn flag(&self) -> String {
        format!("--allow-net=127.0.0.1:{}", self.port)
    }

    fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

fn head(stream: &mut TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).into_owned()
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// A name server for which every name has this address; and the names that it was asked for.
fn name_server(address: Ipv4Addr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let place = socket.local_addr().unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let names = asked.clone();
    thread::spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let question = &buffer[12..length];
            let end = question.iter().position(|byte| *byte == 0).unwrap();
            let is_v4 = question[end + 1..end + 3] == [0, 1];
            names.lock().unwrap().push(String::from_utf8_lossy(&question[1..end]).into_owned());
            let mut answer = buffer[..2].to_vec();
            answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_v4), 0, 0, 0, 0]);
            answer.extend(&question[..end + 5]);
            if is_v4 {
                answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
                answer.extend(address.octets());
            }
            let _ = socket.send_to(&answer, from);
        }
    });
    (place, asked)
}

fn crib() -> Crib {
    Crib::with_guests(&["fetch"])
}

fn fetch(crib: &Crib, authority: &str, more: Value, flags: &[&str]) -> Value {
    let mut arguments = json!({"scheme": "http", "authority": authority});
    arguments.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    crib.call("fetch", &arguments, flags)
}

#[test]
fn without_a_grant_every_request_is_denied_and_told_with_its_flag() {
    let (crib, server) = (crib(), Server::answering(ok("secret")));
    let line = fetch(&crib, &server.authority(), json!({}), &[]);
    assert_eq!(line["result"][0]["error"], "ErrorCode::HttpRequestDenied", "{line}");
    let denied = json!([{"capability": format!("net:{}", server.authority()), "flag": server.flag()}]);
    assert_eq!((&line["receipt"]["outcome"], &line["receipt"]["denied"]), (&json!("ok"), &denied));
    let line = fetch(&crib, &server.authority(), json!({"fail": true}), &[]);
    assert_eq!(line["receipt"]["outcome"], "denied", "{line}");
    assert_eq!(server.sent(), Vec::<String>::new());
    let ran = crib.run(&[
        "call",
        "fetch",
        &json!({"scheme": "http", "authority": server.authority(), "fail": true}).to_string(),
    ]);
    assert!(ran.stderr.contains(&format!("was denied: {} would allow it", server.flag())), "{ran:?}");
}

#[test]
fn a_granted_request_is_sent_and_answered() {
    let (crib, server) = (crib(), Server::answering(ok("hello")));
    let more = json!({"path": "/a?b=c", "headers": [["x-own", "1"]], "method": "POST", "body": "text"});
    let line = fetch(&crib, &server.authority(), more, &[&server.flag()]);
    assert_eq!(line["result"], json!([{"status": 200, "body": "hello"}]), "{line}");
    let network = &line["receipt"]["network"];
    let request = json!({"method": "POST", "host": "127.0.0.1", "port": server.port, "status": 200, "bytes": 5});
    assert_eq!(network, &json!({"requests": [request], "count": 1, "sentBytes": 4, "receivedBytes": 5}));
    assert_eq!(crib.records()[0]["network"], *network);
    let head = server.sent()[0].to_ascii_lowercase();
    assert!(head.starts_with("post /a?b=c http/1.1\r\n"), "{head}");
    assert!(
        head.contains(&format!("\r\nhost: {}\r\n", server.authority())) && head.contains("\r\nx-own: 1\r\n"),
        "{head}"
    );
    assert!(!head.contains("accept-encoding") && !head.contains("user-agent"), "nothing is added: {head}");
}

#[test]
fn a_name_is_asked_for_once_and_what_it_leads_to_is_judged() {
    let (crib, server) = (crib(), Server::answering(ok("inside")));
    let (dns, asked) = name_server(Ipv4Addr::LOCALHOST);
    let (dns, port) = (format!("--dns={dns}"), server.port);
    let (name, authority) = (format!("--allow-net=api.test:{port}"), format!("API.test:{port}"));
    let line = fetch(&crib, &authority, json!({"fail": true}), &[&dns, &name]);
    assert_eq!(line["receipt"]["outcome"], "denied", "{line}");
    let told = line["error"].as_str().unwrap();
    assert!(told.contains("leads to a loopback address, which has to be granted by address"), "{told}");
    assert!(!told.contains("127.0.0.1"), "the model is told no address: {told}");
    assert_eq!(line["receipt"]["denied"][0]["flag"], server.flag());
    assert_eq!(server.sent(), Vec::<String>::new());
    let mut names = std::mem::take(&mut *asked.lock().unwrap());
    names.dedup();
    assert_eq!(names, ["api\u{4}test"], "the name as it is, with nothing behind it");
    let line = fetch(&crib, &authority, json!({}), &[&dns, &name, &server.flag()]);
    assert_eq!(line["result"][0]["body"], "inside", "{line}");
    assert_eq!(asked.lock().unwrap().len(), 2, "one question for each kind of address");
    assert!(server.sent()[0].to_ascii_lowercase().contains(&format!("\r\nhost: api.test:{port}\r\n")));
    // A grant by address is none for a name.
    let line = fetch(&crib, &authority, json!({}), &[&dns, &server.flag()]);
    assert_eq!(line["receipt"]["denied"][0]["capability"], format!("net:api.test:{port}"), "{line}");
}

#[test]
fn localhost_is_granted_by_its_name_and_one_of_its_addresses() {
    let (crib, server) = (crib(), Server::answering(ok("home")));
    let authority = format!("localhost:{}", server.port);
    let (name, dns) = (format!("--allow-net={authority}"), "--dns=127.0.0.1:1");
    let line = fetch(&crib, &authority, json!({}), &[&name, dns]);
    assert_eq!(line["receipt"]["denied"][0]["flag"], server.flag(), "{line}");
    let line = fetch(&crib, &authority, json!({}), &[&name, &server.flag(), dns]);
    assert_eq!(line["result"][0]["body"], "home", "{line}");
}

#[test]
fn a_redirect_is_the_guests_to_follow() {
    let (crib, server) =
        (crib(), Server::answering("HTTP/1.1 302 Found\r\nlocation: http://10.0.0.1/\r\ncontent-length: 0\r\n\r\n"));
    let line = fetch(&crib, &server.authority(), json!({}), &[&server.flag()]);
    assert_eq!(line["result"], json!([{"status": 302, "body": ""}]), "{line}");
    assert_eq!(line["receipt"]["network"]["count"], 1);
}

#[test]
fn a_grant_names_methods_schemes_and_ports_and_a_denial_wins() {
    let (crib, server) = (crib(), Server::answering(ok("")));
    let authority = server.authority();
    for (flags, method) in [
        (vec![format!("--allow-net=GET {authority}")], "POST"),
        (vec![format!("--allow-net=https://{authority}")], "GET"),
        (vec!["--allow-net=127.0.0.1:1".to_owned()], "GET"),
        (vec![server.flag(), "--deny-net=127.0.0.0/8".to_owned()], "GET"),
        (vec![format!("--allow-net=127.0.0.0/8:{}", server.port), format!("--deny-net={authority}")], "GET"),
        (vec![server.flag(), "--deny-net".to_owned()], "GET"),
        (vec![server.flag(), format!("--deny-net=GET {authority}")], "GET"),
    ] {
        let flags: Vec<_> = flags.iter().map(String::as_str).collect();
        let line = fetch(&crib, &authority, json!({"method": method}), &flags);
        assert_eq!(line["result"][0]["error"], "ErrorCode::HttpRequestDenied", "{flags:?} {line}");
    }
    let methods = format!("--allow-net=HEAD,GET {authority}");
    assert_eq!(fetch(&crib, &authority, json!({}), &[&methods])["result"][0]["status"], 200);
}

#[test]
fn more_than_the_caps_ends_with_their_names() {
    let (crib, server) = (crib(), Server::answering(ok(&"x".repeat(100_000))));
    let (authority, flag) = (server.authority(), server.flag());
    let line = fetch(&crib, &authority, json!({"fail": true, "times": 3}), &[&flag, "--max-received=250KiB"]);
    assert_eq!(line["receipt"]["outcome"], "output-limit", "{line}");
    let small = Server::answering(ok("x"));
    let (authority, flag) = (small.authority(), small.flag());
    let line = fetch(&crib, &authority, json!({"times": 6}), &[&flag, "--max-requests=5"]);
    assert_eq!(line["result"][4]["status"], 200);
    assert_eq!(line["result"][5]["error"], "ErrorCode::HttpRequestDenied", "{line}");
    let line = fetch(&crib, &authority, json!({"times": 70, "fail": true}), &[&flag]);
    assert_eq!(line["receipt"]["outcome"], "request-limit", "{line}");
    assert_eq!(line["receipt"]["network"]["requests"].as_array().unwrap().len(), 16);
    let line = fetch(&crib, &authority, json!({"times": 9, "hold": true}), &[&flag]);
    assert_eq!(line["result"][7]["status"], 200);
    assert_eq!(line["result"][8]["error"], "ErrorCode::ConnectionLimitReached", "{line}");
    let patient = Server::serving(|stream| while stream.read(&mut [0; 65_536]).is_ok_and(|read| read > 0) {});
    let more = json!({"method": "POST", "body": "y".repeat(1024), "repeat": 9 * 1024, "fail": true});
    let line = fetch(&crib, &patient.authority(), more, &[&patient.flag()]);
    assert_eq!(line["receipt"]["outcome"], "output-limit", "{line}");
    assert_eq!(line["receipt"]["network"]["requests"][0]["error"], "output-limit", "{line}");
}

#[test]
fn a_far_side_that_lies_or_is_silent_is_cut_off() {
    let crib = crib();
    let fetched = |text: String| {
        let server = Server::answering(text);
        fetch(&crib, &server.authority(), json!({"fail": true}), &[&server.flag()])["receipt"].clone()
    };
    let many: String = (0..200).map(|at| format!("x-{at}: 1\r\n")).collect();
    for text in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab".to_owned(),
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".to_owned(),
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n".to_owned(),
        "no http at all\r\n\r\n".to_owned(),
        String::new(),
        format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(100_000)),
        format!("HTTP/1.1 200 OK\r\n{many}\r\n"),
        "HTTP/1.1 100 Continue\r\n\r\n".repeat(10_000) + &ok(""),
    ] {
        let receipt = fetched(text.clone());
        assert_eq!(receipt["outcome"], "upstream", "{:.60}: {receipt}", text);
        assert_eq!(receipt["network"]["requests"][0]["error"], "protocol", "{:.60}: {receipt}", text);
    }
    let silent = Server::serving(|stream| {
        let _ = stream.read(&mut [0]);
    });
    let since = Instant::now();
    let line = fetch(&crib, &silent.authority(), json!({}), &[&silent.flag(), "--timeout=1s"]);
    assert_eq!(line["receipt"]["outcome"], "deadline", "{line}");
    assert!(since.elapsed() < Duration::from_secs(8));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let flag = format!("--allow-net={closed}");
    let line = fetch(&crib, &closed.to_string(), json!({"fail": true}), &[&flag]);
    assert_eq!(line["receipt"]["network"]["requests"][0]["error"], "connect", "{line}");
}

#[test]
fn an_authority_that_hides_another_is_denied() {
    let (crib, server) = (crib(), Server::answering(ok("")));
    let (dns, asked) = name_server(Ipv4Addr::LOCALHOST);
    let dns = format!("--dns={dns}");
    let port = server.port;
    for authority in [
        format!("allowed.test@127.0.0.1:{port}"),
        format!("127.0.0.1.:{port}"),
        format!("2130706433:{port}"),
        format!("0177.0.0.1:{port}"),
        format!("127.1:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("[::1]:{port}"),
        format!("127.0.0.1:0{port}"),
    ] {
        let line = fetch(&crib, &authority, json!({}), &[&dns, &server.flag()]);
        assert_eq!(line["result"][0]["error"], "ErrorCode::HttpRequestDenied", "{authority}: {line}");
        assert_eq!(line["receipt"]["denied"].as_array().map(Vec::len), Some(1), "{authority}: {line}");
    }
    assert_eq!((server.sent().len(), asked.lock().unwrap().len()), (0, 0));
}

#[test]
fn the_head_of_a_request_is_the_hosts() {
    let (crib, server) = (crib(), Server::answering(ok("")));
    for (name, value) in [("host", "evil.test"), ("transfer-encoding", "chunked"), ("Proxy-X", "1"), ("expect", "x")] {
        let line = fetch(&crib, &server.authority(), json!({"headers": [[name, value]]}), &[&server.flag()]);
        assert_eq!(line["result"][0]["error"], "header: HeaderError::Forbidden", "{name}: {line}");
    }
    let line = fetch(&crib, &server.authority(), json!({"headers": [["x", "a\r\nb: c"]]}), &[&server.flag()]);
    assert_eq!(line["result"][0]["error"], "header: HeaderError::InvalidSyntax", "{line}");
    for method in ["CONNECT", "TRACE"] {
        let line = fetch(&crib, &server.authority(), json!({"method": method}), &[&server.flag()]);
        assert!(line["result"][0]["error"].as_str().unwrap().contains("never sent"), "{line}");
    }
    assert_eq!(server.sent(), Vec::<String>::new());
}

#[test]
fn a_manifest_grants_what_it_names_and_a_record_asks() {
    let (crib, server) = (crib(), Server::answering(ok("")));
    let (authority, flag) = (server.authority(), server.flag());
    let entry = |network: Value| {
        let mut entry = crib.entry("fetch");
        entry["capabilities"] = json!({ "network": network });
        crib.manifest(&json!({ "tools": [entry] }));
    };
    let status = |flags: &[&str]| fetch(&crib, &authority, json!({}), flags)["result"][0]["status"].clone();
    entry(json!([authority]));
    assert_eq!(status(&[]), 200);
    assert_eq!(status(&["--deny-net"]), Value::Null);
    let inspected = crib.run(&["inspect", "fetch"]);
    assert!(inspected.stdout.contains(&format!("net:{authority}")), "{inspected:?}");
    entry(json!("allow"));
    assert_eq!((status(&[]), status(&[&flag])), (Value::Null, json!(200)));
    entry(json!(null));
    assert_eq!(status(&[&flag]), Value::Null);
    let record = json!({
        "schema_version": "0.2.0", "tool_id": "t.fetch", "component": "fetch.wasm",
        "capabilities": {"network": [authority]},
    });
    std::fs::write(crib.path("tools/bin/fetch.tool.json"), record.to_string()).unwrap();
    let asked =
        |flags: &[&str]| fetch(&crib, &authority, json!({}), &[&["--tools=tools/bin/fetch.tool.json"], flags].concat());
    let refused = asked(&[]);
    assert_eq!(refused["receipt"]["denied"][0]["flag"], flag, "{refused}");
    assert_eq!(asked(&[&flag])["result"][0]["status"], 200);
}

#[test]
fn a_slip_in_a_flag_is_told() {
    let crib = crib();
    for (flag, why) in [
        ("--allow-net=a.test/path", "a grant has no path"),
        ("--allow-net=", "is no destination"),
        ("--dns=name.test", "is not the address of a name server"),
        ("--net-ca=missing.pem", "cannot trust the certificates in `missing.pem`"),
        ("--net-ca=tools.json", "there is no `BEGIN CERTIFICATE` in it"),
    ] {
        let ran = crib.run(&["call", "fetch", "{}", flag]);
        assert_ne!(ran.code, Some(0));
        assert!(ran.stderr.contains(why), "{flag}: {ran:?}");
    }
}

/// A server that speaks TLS for `api.test`, with a certificate of its own making; and that certificate.
fn tls_server() -> (u16, String) {
    let made = rcgen::generate_simple_self_signed(["api.test".to_owned()]).unwrap();
    let pem = made.cert.pem();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = rustls::ServerConnection::new(config.clone()).unwrap();
            let mut stream = rustls::StreamOwned::new(connection, stream.unwrap());
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
                head.push(byte[0]);
            }
            let _ = stream.write_all(ok("sealed").as_bytes());
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    (port, pem)
}

#[test]
fn tls_is_spoken_with_the_name_and_with_roots_that_are_trusted() {
    let crib = crib();
    let (port, pem) = tls_server();
    std::fs::write(crib.path("ca.pem"), pem).unwrap();
    let (dns, _) = name_server(Ipv4Addr::LOCALHOST);
    let dns = format!("--dns={dns}");
    let fetched = |host: &str, more: &[&str]| {
        let (name, address) = (format!("--allow-net={host}:{port}"), format!("--allow-net=127.0.0.1:{port}"));
        let flags = [&[dns.as_str(), &name, &address], more].concat();
        fetch(&crib, &format!("{host}:{port}"), json!({"scheme": "https"}), &flags)
    };
    let line = fetched("api.test", &["--net-ca=ca.pem"]);
    assert_eq!(line["result"][0]["body"], "sealed", "{line}");
    for (host, more) in [("api.test", &[][..]), ("other.test", &["--net-ca=ca.pem"])] {
        let line = fetched(host, more);
        assert_eq!(line["receipt"]["network"]["requests"][0]["error"], "certificate", "{line}");
        assert_eq!(line["result"][0]["error"], "ErrorCode::TlsCertificateError", "{line}");
    }
}

#[test]
fn a_name_leads_to_no_address_that_is_not_for_the_world() {
    let crib = crib();
    for address in [[10, 0, 0, 1], [169, 254, 169, 254], [100, 64, 0, 1], [0, 0, 0, 0], [192, 168, 1, 1]] {
        let (dns, _) = name_server(Ipv4Addr::from(address));
        let line = fetch(
            &crib,
            "api.test",
            json!({}),
            &[&format!("--dns={dns}"), "--allow-net=http://*.test,http://api.test"],
        );
        assert_eq!(line["result"][0]["error"], "ErrorCode::DestinationIpProhibited", "{line}");
        let is_metadata = address == [169, 254, 169, 254];
        let flag = format!("--allow-net={}:80", IpAddr::from(address));
        let flag = if is_metadata { Value::Null } else { json!(flag) };
        assert_eq!(line["receipt"]["denied"][0]["flag"], flag, "{line}");
    }
}

#[test]
fn a_call_that_is_dropped_closes_its_connections() {
    let crib = crib();
    let (told, closed) = std::sync::mpsc::channel();
    let server = Server::serving(move |stream| {
        // It answers nothing, and waits for the other end to close.
        told.send(stream.read(&mut [0]).is_ok_and(|read| read == 0)).unwrap();
    });
    let permission = Permission::Net(server.authority().parse().unwrap());
    let policy = Policy::default().allow(permission);
    let runtime = Runtime::builder().source(crib.path("tools.json")).policy(policy).build().unwrap();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let arguments = json!({"scheme": "http", "authority": server.authority()}).to_string();
    tokio.block_on(async {
        runtime.prepare("fetch").await.unwrap();
        let call = runtime.call(ToolCall::new("c", "fetch", arguments));
        let ended = tokio::time::timeout(Duration::from_secs(2), call).await;
        assert!(ended.is_err(), "the server is silent");
        assert_eq!(server.sent().len(), 1, "it was asked");
        tokio::time::sleep(Duration::from_millis(50)).await;
    });
    assert_eq!(closed.recv_timeout(Duration::from_secs(5)), Ok(true));
}
