//! Access: only a browser that was opened with the printed address reaches a page, and only a page of the console decides.

use super::Console;
use crate::crib::Crib;
use crate::screen::Page;

/// Headers that confine every page.
const CONFINED: [(&str, &str); 8] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data:; \
         form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; \
         trusted-types 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "same-origin"),
    ("cache-control", "no-store"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-embedder-policy", "require-corp"),
    ("cross-origin-resource-policy", "same-origin"),
];

#[test]
fn a_page_needs_the_token_and_then_the_cookie_of_its_session() {
    let crib = Crib::new();
    let console = Console::start(&crib, &[]);
    for path in ["/", "/?token=", "/?token=x", "/runs", "/x/runs", "//runs", "/../runs"] {
        let answer = console.get(path, "");
        assert_eq!(answer.status, 403, "{path}: {answer:?}");
        assert!(!answer.body.contains("Kept runs") && answer.header("set-cookie").is_none(), "{path}: {answer:?}");
    }
    let browser = console.browser();
    assert!(!browser.path.contains(&console.tokens[0]), "the address has no token");
    assert!(browser.page("").contains("<h1>Runs</h1>"));
    let stolen = console.get(&browser.path, "");
    assert_eq!(stolen.status, 403, "the address alone: {stolen:?}");
    let other = console.browser();
    let crossed = console.get(&browser.path, &format!("cookie: {}\r\n", other.cookie));
    assert_eq!(crossed.status, 403, "the cookie of another session: {crossed:?}");
    assert_eq!(browser.get("nothing").status, 404);
    // A token of another start is worth nothing.
    let later = Console::start(&crib, &[]);
    assert_eq!(later.get(&format!("/?token={}", console.tokens[0]), "").status, 403);
    assert_ne!(later.tokens, console.tokens);
}

#[test]
fn every_answer_is_confined() {
    let console = Console::start(&Crib::new(), &[]);
    let browser = console.browser();
    let answers = [
        browser.get("runs"),
        browser.get("nothing"),
        console.get("/", ""),
        console.get(&format!("/?token={}", console.tokens[0]), ""),
        console.get("/style.css", ""),
        console.get("/live.js", ""),
        browser.get("calls/export"),
    ];
    for answer in answers {
        for (name, value) in CONFINED {
            assert_eq!(answer.header(name), Some(value), "{name}: {answer:?}");
        }
        assert!(!super::live::without_own_script(&answer.body).contains("<script"), "{answer:?}");
    }
}

#[test]
fn other_hosts_and_frames_are_refused() {
    let console = Console::start(&Crib::new(), &[]);
    let browser = console.browser();
    let (path, port) = (&browser.path, console.address.port());
    let status = |host: &str, headers: &str| {
        let head =
            format!("GET {path} HTTP/1.1\r\n{host}connection: close\r\ncookie: {}\r\n{headers}\r\n", browser.cookie);
        console.exchange(head.as_bytes()).status
    };
    for host in ["127.0.0.1", "localhost", "LOCALHOST"] {
        assert_eq!(status(&format!("host: {host}:{port}\r\n"), ""), 200, "{host}");
    }
    for host in ["evil.example", "127.0.0.1.evil.example", "[::1]", "0.0.0.0", ""] {
        assert_ne!(status(&format!("host: {host}:{port}\r\n"), ""), 200, "{host}");
    }
    for heads in
        ["host: localhost\r\n".to_owned(), format!("host: localhost:{port}\r\nhost: evil.example\r\n"), String::new()]
    {
        assert_ne!(status(&heads, ""), 200, "{heads}");
    }
    let host = format!("host: {}\r\n", console.address);
    for dest in ["iframe", "frame", "embed", "object"] {
        assert_eq!(status(&host, &format!("sec-fetch-dest: {dest}\r\n")), 403, "{dest}");
    }
    assert_eq!(status(&host, "sec-fetch-dest: document\r\nsec-fetch-site: none\r\n"), 200);
    let method = console.exchange(format!("PUT {path} HTTP/1.1\r\n{host}connection: close\r\n\r\n").as_bytes());
    assert_eq!(method.status, 405, "{method:?}");
}

#[test]
fn a_form_needs_its_origin_and_its_token() {
    let crib = Crib::new();
    super::decisions::prepare(&crib);
    let console = Console::start(&crib, &[]);
    let browser = console.browser();
    let token = browser.form_token();
    let own = format!("origin: http://{}\r\n", console.address);
    let fields = [("id", super::decisions::FIRST), ("answer", "once")];
    let with = |token: &str, headers: &str| {
        browser.post("decisions", &[&[("token", token)], &fields[..]].concat(), headers).status
    };
    for headers in [
        "",
        "origin: null\r\n",
        "origin: http://evil.example\r\n",
        "origin: http://127.0.0.1:1\r\n",
        &format!("origin: https://{}\r\n", console.address),
        &format!("{own}origin: http://evil.example\r\n"),
        &format!("{own}sec-fetch-site: same-site\r\n"),
        &format!("{own}sec-fetch-site: cross-site\r\n"),
    ] {
        assert_eq!(with(&token, headers), 403, "{headers}");
    }
    let other = console.browser();
    for wrong in ["", "x", &other.form_token(), &console.tokens[0]] {
        assert_eq!(with(wrong, &own), 403, "{wrong}");
    }
    assert_eq!(browser.post("decisions", &fields, &own).status, 403, "no token");
    let address = format!("decisions?token={token}&id={}&answer=once", super::decisions::FIRST);
    assert_eq!(browser.get(&address).status, 200, "an address decides nothing");
    assert!(super::decisions::pending(&crib)[0].get("answer").is_none());
    assert_eq!(with(&token, &own), 303, "and the form itself does");
    assert_eq!(super::decisions::pending(&crib)[0]["answer"]["allowed"], true);
}

#[test]
fn a_shared_address_looks_and_does_not_decide() {
    let crib = Crib::new();
    super::decisions::prepare(&crib);
    let console = Console::start(&crib, &["--share-read"]);
    let (decides, looks) = (console.browser(), console.open(&console.tokens[1]));
    let page = looks.page("decisions");
    assert!(
        page.contains("plan.md") && page.contains("read-only") && !page.contains("<form class=\"decide\""),
        "{page}"
    );
    assert!(!page.contains("name=\"token\""), "it has no token of a form");
    let fields =
        [("token", decides.form_token()), ("id", super::decisions::FIRST.to_owned()), ("answer", "once".into())];
    let fields = fields.each_ref().map(|(name, text)| (*name, text.as_str()));
    let own = format!("origin: http://{}\r\n", console.address);
    for page in ["decisions", "decisions/revoke"] {
        assert_eq!(looks.post(page, &fields, &own).status, 403, "{page}");
    }
    assert!(super::decisions::pending(&crib)[0].get("answer").is_none());
}

#[test]
fn oversized_requests_are_refused_and_the_next_one_works() {
    let console = Console::start(&Crib::new(), &[]);
    let browser = console.browser();
    let long = "x".repeat(100_000);
    for answer in [
        browser.get(&format!("runs?q={long}")),
        console.get(&browser.path, &format!("x-long: {long}\r\n")),
        console.get(&format!("/?token={long}"), ""),
    ] {
        assert!([0, 400, 414, 431].contains(&answer.status), "{answer:?}");
    }
    let own = format!("origin: http://{}\r\n", console.address);
    let form = browser.post("decisions", &[("reason", long.as_str())], &own);
    assert!([0, 413].contains(&form.status), "{form:?}");
    let many: Vec<(String, String)> = (0..900).map(|at| (format!("a{at}"), "1".to_owned())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(browser.post("decisions", &many, &own).status, 403, "no token among the first fields");
    assert!(browser.page("runs").contains("<h1>Runs</h1>"));
}

#[cfg(unix)]
#[test]
fn an_interruption_ends_the_console_and_its_sessions() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::net::TcpStream;

    let console = Console::start(&Crib::new(), &["--port=0"]);
    let address = console.address;
    console.browser().page("runs");
    // A connection that sends nothing does not delay the end.
    let _idle = TcpStream::connect(address).unwrap();
    kill_process(Pid::from_child(&console.child), Signal::INT).unwrap();
    assert_eq!(console.end().code(), Some(130));
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_port_in_use_is_an_error_with_advice() {
    let page = Page::new().hide(r"--port=\d+", "--port=[port]");
    let crib = Crib::new();
    let console = Console::start(&crib, &[]);
    page.run(&crib, &["console", &format!("--port={}", console.address.port())]);
    page.matches("mcp/port-in-use");
}
