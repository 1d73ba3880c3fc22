//! Responses of servers: unchanged, up to the limit of the call, and never more, whatever the server announces.

use std::net::TcpListener;

use serde_json::{Value, json};

use super::names::{Names, at};
use super::servers::Server;
use super::{Gate, allow};

/// Maximum cost of a response for the host, compared with a small one.
const ROOM: u64 = 96 << 20;

/// Sends requests that the output limit ends, with a guest that fails because of it.
#[track_caller]
fn over(gate: &Gate, server: &Server, mut arguments: Value) {
    arguments["silent"] = json!(true);
    let (line, peak) = gate.weighed(&arguments, &[&allow(&[&server.authority()]), "--timeout=18s"]);
    assert_eq!(line["receipt"]["outcome"], "output-limit", "{line}");
    assert!(line["error"].as_str().is_some_and(|error| error.contains("16 MiB")), "it tells the limit: {line}");
    let (_, plain) = weigh_small(gate);
    assert!(peak < plain + ROOM, "the host held {peak} bytes, and {plain} for a small answer");
    assert!(server.is_left_alone(), "the connection is closed");
    assert!(server.sent() < 64 << 20, "it took {} bytes", server.sent());
}

fn weigh_small(gate: &Gate) -> (Value, u64) {
    let server = Server::plain("small");
    gate.weighed(&json!({"url": server.url()}), &[&allow(&[&server.authority()])])
}

#[test]
fn an_answer_of_ten_gigabytes_is_cut_at_its_cap() {
    let gate = Gate::new();
    let server = Server::http(|peer| {
        peer.say("HTTP/1.1 200 OK\r\ncontent-length: 10737418240\r\n\r\n")?;
        peer.flood(&[b'x'; 65536])
    });
    over(&gate, &server, json!({"url": server.url()}));
    gate.ends_well();
}

#[test]
fn an_answer_without_an_end_is_cut_at_its_cap() {
    let gate = Gate::new();
    for head in ["connection: close", "transfer-encoding: chunked"] {
        let chunk = if head.starts_with('t') {
            [b"10000\r\n".as_slice(), &[b'x'; 65536], b"\r\n"].concat()
        } else {
            vec![b'x'; 65536]
        };
        let server = Server::http(move |peer| {
            peer.say(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n"))?;
            peer.flood(&chunk)
        });
        over(&gate, &server, json!({"url": server.url()}));
    }
    gate.ends_well();
}

#[test]
fn the_answers_of_a_call_count_together() {
    let gate = Gate::new();
    let server = Server::http(|peer| {
        peer.say("HTTP/1.1 200 OK\r\ncontent-length: 1048576\r\nconnection: close\r\n\r\n")?;
        peer.say([b'x'; 1 << 20])
    });
    over(&gate, &server, json!({"url": server.url(), "repeat": 60}));
    gate.ends_well();
}

#[test]
fn what_the_guest_does_not_read_is_not_taken() {
    let gate = Gate::new();
    let server = Server::http(|peer| {
        peer.say("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")?;
        peer.flood(&[b'x'; 65536])
    });
    let line = gate.ask(&json!({"url": server.url(), "read": 1000}), &[&allow(&[&server.authority()])]);
    assert_eq!((&line["receipt"]["outcome"], &line["result"]["bytes"]), (&json!("ok"), &json!(1000)), "{line}");
    assert!(server.is_left_alone(), "what is left is let go");
    assert!(server.sent() < 16 << 20, "it took {} bytes", server.sent());
    gate.ends_well();
}

#[test]
fn a_compressed_answer_stays_as_it_came() {
    let gate = Gate::new();
    // The start of a stream that would expand to a thousand times its size.
    let packed =
        [b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03".as_slice(), &[0xed, 0xc1, 0x01, 0x01], &[0; 1000]].concat();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", packed.len());
    let length = packed.len();
    let server = Server::says([head.as_bytes(), &packed].concat());
    let answer = gate.answered(&json!({"url": server.url()}), &[&allow(&[&server.authority()])]);
    assert_eq!(answer["bytes"], length);
    assert!(answer["headers"].as_array().unwrap().contains(&json!(["content-encoding", "gzip"])), "{answer}");
    assert!(!server.heads()[0].to_lowercase().contains("accept-encoding"), "nobody asked for it to be packed");
}

#[test]
fn heads_without_an_end_are_an_error() {
    let gate = Gate::new();
    let long = [b"x-long: ".as_slice(), &[b'x'; 1 << 20]].concat();
    let floods: [(&str, &[u8]); 7] = [
        ("HTTP/1.1 200 OK\r\n", b"x-one: two\r\n"),
        ("HTTP/1.1 200 OK\r\nx-long: ", b"xxxxxxxxxxxxxxxx"),
        ("HTTP/1.1 200 ", b"reason "),
        ("", b"HTTP/1.1 100 Continue\r\n\r\n"),
        ("", b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"),
        ("HTTP/1.1 200 OK\r\n", &long),
        ("", b"\r\n"),
    ];
    for (head, flood) in floods {
        let (head, bytes) = (head.to_owned(), flood.repeat(1 + 4096 / flood.len()));
        let shown = format!("{head}{}", String::from_utf8_lossy(&flood[..flood.len().min(24)]));
        let server = Server::http(move |peer| {
            peer.say(&head)?;
            peer.flood(&bytes)
        });
        let line = gate.ask(&json!({"url": server.url()}), &[&allow(&[&server.authority()]), "--timeout=18s"]);
        assert_ne!(line["receipt"]["outcome"], "deadline", "it is refused, not waited for: {shown:?} {line}");
        assert_eq!(line["result"]["error"], "HttpResponseHeaderSectionSize", "{shown:?}: {line}");
        assert_eq!(line["receipt"]["network"]["requests"][0]["error"], "output-limit", "{shown:?}: {line}");
        assert!(server.is_left_alone(), "{shown:?}");
        assert!(server.sent() < 32 << 20, "{shown:?}: it took {} bytes", server.sent());
    }
    gate.ends_well();
}

#[test]
fn what_comes_behind_the_last_chunk_is_bounded() {
    let gate = Gate::new();
    for (head, flood) in [
        ("5\r\nhello\r\n0\r\n", "x-trailer: yes\r\n"),
        ("5\r\nhello\r\n0;", "extension=1;"),
        ("5;", "extension=1;"),
        ("", "0"),
        ("", "00000000000000000"),
    ] {
        let server = Server::http(move |peer| {
            peer.say(format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{head}"))?;
            peer.flood(flood.repeat(4096).as_bytes())
        });
        let flags = [&allow(&[&server.authority()])[..], "--timeout=18s", "--set=limits.max_received=1MiB"];
        let line = gate.ask(&json!({"url": server.url()}), &flags);
        assert_ne!(line["receipt"]["outcome"], "deadline", "{flood:?}: {line}");
        assert!(server.is_left_alone(), "{flood:?}");
        // Eight bytes on the wire for each byte that the call may receive, plus the buffers of the system.
        assert!(server.sent() < 32 << 20, "{flood:?}: it took {} bytes", server.sent());
    }
    gate.ends_well();
}

#[test]
fn a_server_that_lies_about_its_answer_is_an_error_for_the_guest() {
    let gate = Gate::new();
    let chunked = |text: &str| format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{text}");
    for text in [
        // Bodies shorter than announced.
        "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nshort".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615\r\n\r\nshort".to_owned(),
        chunked("5\r\nhello\r\n"),
        chunked("50\r\nshort"),
        chunked(""),
        // Lengths that contradict each other or are invalid.
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello!".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 5, 6\r\n\r\nhello!".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nhello".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: five\r\n\r\nhello".to_owned(),
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999\r\n\r\nhello".to_owned(),
        chunked("zz\r\nhello\r\n0\r\n\r\n"),
        chunked("-5\r\nhello\r\n0\r\n\r\n"),
        chunked("ffffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
        chunked("5\r\nhello!!\r\n0\r\n\r\n"),
        // No response at all.
        String::new(),
        "HTTP/1.1".to_owned(),
        "HTTP/1.1 200 OK\r\nx-half: ".to_owned(),
        "HTTP/1.1 200 OK\r\nno colon here\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nx\u{0}y: z\r\n\r\n".to_owned(),
        "HTTP/1.1 99 Low\r\n\r\n".to_owned(),
        "HTTP/1.1 9999 High\r\n\r\n".to_owned(),
        "HTTP/9.9 200 OK\r\ncontent-length: 2\r\n\r\nok".to_owned(),
        "SSH-2.0-OpenSSH_9.9\r\n".to_owned(),
        "<html>an answer of the year 1991</html>".to_owned(),
        "\u{0}\u{1}\u{2}\u{fffd}".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n".to_owned(),
    ] {
        let server = Server::says(text.clone());
        let line = gate.ask(&json!({"url": server.url()}), &[&allow(&[&server.authority()]), "--timeout=18s"]);
        assert_eq!(line["receipt"]["outcome"], "ok", "the guest reports for itself: {text:?} {line}");
        assert!(line["result"]["error"].is_string(), "{text:?}: {line}");
        assert!(server.is_left_alone(), "{text:?}");
    }
    gate.ends_well();
}

#[test]
fn a_failure_of_the_far_side_is_upstream_and_told_by_a_word() {
    let gate = Gate::new();
    let many: String = (0..200).map(|n| format!("x-{n}: 1\r\n")).collect();
    let closed = Server::raw(|_| Ok(()));
    let large = Server::says(format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(100_000)));
    let numerous = Server::says(format!("HTTP/1.1 200 OK\r\n{many}\r\n"));
    let short = Server::says("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort");
    let names = Names::new([("api.example.com", at("127.0.0.1"))]);
    let flags = ["--allow-net=*.example.com:80,127.0.0.1:80", "--dns", &names.address()];
    let plain = Server::raw(|peer| peer.say("HTTP/1.1 400 Bad Request\r\n\r\n"));
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut cases: Vec<_> =
        [&closed, &short].map(|server| (server.url(), vec![allow(&[&server.authority()])], "protocol")).into();
    cases.push((format!("http://{nobody}/"), vec![allow(&[&nobody])], "connect"));
    cases.push(("http://absent.example.com/".into(), flags.map(str::to_owned).into(), "dns"));
    cases.push((format!("https://{}/", plain.authority()), vec![allow(&[&plain.authority()])], "tls"));
    for (url, flags, word) in cases {
        let flags: Vec<_> = flags.iter().map(String::as_str).collect();
        let line = gate.ask(&json!({"url": url, "silent": true}), &flags);
        assert_eq!(line["receipt"]["outcome"], "upstream", "{url}: {line}");
        assert_eq!(line["receipt"]["network"]["requests"][0]["error"], word, "{url}: {line}");
        let output = line["error"].as_str().unwrap_or_else(|| panic!("{line}"));
        assert!(output.starts_with("a request failed: ") && !output.contains("127.0.0.1"), "{url}: {output}");
    }
    for server in [&large, &numerous] {
        let line = gate.ask(&json!({"url": server.url(), "silent": true}), &[&allow(&[&server.authority()])]);
        assert_eq!(line["receipt"]["outcome"], "output-limit", "{line}");
        assert_eq!(line["receipt"]["network"]["requests"][0]["error"], "output-limit", "{line}");
        let output = line["error"].as_str().unwrap_or_else(|| panic!("{line}"));
        assert!(
            output.starts_with("tool received response headers of more than 64 KiB, or more than 128 of them"),
            "{line}"
        );
    }
    gate.ends_well();
}

#[test]
fn a_refused_connection_is_told_from_no_way_at_all() {
    let gate = Gate::new();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    // To the broadcast address, no connection is started.
    for (to, code) in [(nobody.as_str(), "ConnectionRefused"), ("255.255.255.255:80", "DestinationUnavailable")] {
        let line = gate.ask(&json!({"url": format!("http://{to}/")}), &[&allow(&[to])]);
        assert_eq!(line["result"]["error"], code, "{line}");
        assert_eq!(line["receipt"]["network"]["requests"][0]["error"], "connect", "{line}");
    }
    gate.ends_well();
}

#[test]
fn a_server_that_says_more_than_it_promised_is_not_heard_further() {
    let gate = Gate::new();
    let server = Server::says("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\n\r\nand more");
    let flag = allow(&[&server.authority()]);
    let answer = gate.answered(&json!({"url": server.url()}), &[&flag]);
    assert_eq!((&answer["body"], &answer["bytes"]), (&json!("hello"), &json!(5)));
    // Left-over bytes answer no further request of the call.
    let line = gate.ask(&json!({"url": server.url(), "repeat": 3}), &[&flag]);
    assert_eq!(line["result"], json!({"ended": {"200": 3}}), "{line}");
    assert_eq!(server.connections(), 4, "no connection is used twice");
    assert!(server.is_left_alone());
    gate.ends_well();
}

#[test]
fn an_answer_to_head_has_no_body_whatever_it_says() {
    let gate = Gate::new();
    let server = Server::says("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nno body belongs here");
    let request = json!({"url": server.url(), "method": "HEAD"});
    assert_eq!(gate.answered(&request, &[&allow(&[&server.authority()])])["bytes"], 0);
}
