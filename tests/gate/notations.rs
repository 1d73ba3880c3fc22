//! Notations of addresses and names other than the granted one, in a request and from a name server.

use serde_json::json;

use super::names::{Names, at};
use super::servers::Server;
use super::{Gate, allow};

/// Addresses that no name may resolve to: of this host, of its networks, and unassigned ones.
const FORBIDDEN: [&str; 26] = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.1.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "ff02::1",
    "2001:db8::1",
];

/// 127.0.0.1 and a private address inside addresses of the other family.
const EMBEDDED: [&str; 8] = [
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::7f00:1",
    "2002:7f00:1::1",
    "2001:0:7f00:1::1",
];

fn literal(address: &str) -> String {
    if address.contains(':') { format!("[{address}]") } else { address.to_owned() }
}

#[test]
fn no_address_of_the_inside_is_reached_by_number() {
    let gate = Gate::new();
    for address in FORBIDDEN.iter().chain(&EMBEDDED) {
        let url = format!("http://{}:8080/", literal(address));
        gate.denied(&json!({"url": url, "times": [200, 200, 200]}), &["--allow-net=*.example.com:8080,1.1.1.1:8080"]);
    }
    gate.ends_well();
}

#[test]
fn no_address_of_the_inside_is_reached_by_name() {
    let gate = Gate::new();
    let names: Vec<_> = FORBIDDEN.iter().chain(&EMBEDDED).enumerate().collect();
    let table = names.iter().map(|(place, address)| (format!("n{place}.example.com"), at(address))).collect();
    let server = Names::of(table);
    let flags = ["--allow-net=*.example.com:8080", "--dns", &server.address()];
    for (place, address) in names {
        let url = format!("http://n{place}.example.com:8080/");
        let denied = gate.denied(&json!({"url": url, "times": [200, 200, 200]}), &flags);
        assert!(denied.to_string().contains(&format!("n{place}.example.com")), "{address}: {denied}");
    }
    gate.ends_well();
}

#[test]
fn an_address_is_written_in_one_way() {
    let (gate, server) = (Gate::new(), Server::plain("inside"));
    let port = server.port();
    // Granted or not: only the canonical notation is accepted.
    for flag in [allow(&[&format!("*.example.com:{port}")]), allow(&[&server.authority()])] {
        for host in [
            "2130706433",
            "0x7f000001",
            "0x7F.0.0.1",
            "017700000001",
            "0177.0.0.1",
            "127.1",
            "127.0.1",
            "127.0.0.01",
            "127.0.0.1.",
            "0",
            "127.0.0.1%00",
            "127。0。0。1",
            "[127.0.0.1]",
            "[::ffff:7f00:1%25lo]",
            "[::1%lo]",
            "[v1.127]",
        ] {
            gate.rejected(&json!({"url": "http://x/", "authority": format!("{host}:{port}")}), &[&flag]);
        }
    }
    assert_eq!(server.connections(), 0);
    gate.ends_well();
}

#[test]
fn a_mapped_address_is_not_the_one_that_it_holds() {
    let (gate, server) = (Gate::new(), Server::plain("inside"));
    let flag = allow(&[&server.authority()]);
    for host in EMBEDDED {
        gate.rejected(
            &json!({"url": format!("http://[{host}]:{}/", server.port()), "times": [200, 200, 200]}),
            &[&flag],
        );
    }
    assert_eq!(server.connections(), 0);
    gate.ends_well();
}

#[test]
fn an_authority_that_hides_another_is_refused() {
    let (gate, server) = (Gate::new(), Server::plain("inside"));
    let port = server.port();
    let here = || at("127.0.0.1");
    let names = Names::new([
        ("api.example.com", here()),
        ("evil.test", here()),
        ("api.example.com.evil.test", here()),
        ("xn--pi-6kc.example.com", here()),
        ("xn--exmple-4nf.com", here()),
        ("api.xn--exmple-4nf.com", here()),
    ]);
    let flags =
        [&allow(&[&format!("api.example.com:{port}"), &format!("127.0.0.1:{port}")])[..], "--dns", &names.address()];
    for authority in [
        format!("api.example.com@evil.test:{port}"),
        format!("api.example.com:{port}@evil.test:{port}"),
        format!("evil.test:{port}@api.example.com:{port}"),
        format!("@api.example.com:{port}"),
        format!("evil.test\\@api.example.com:{port}"),
        format!("api.example.com\\.evil.test:{port}"),
        format!("api.example.com%2eevil.test:{port}"),
        format!("api.example.com#.evil.test:{port}"),
        format!("api.example.com/.evil.test:{port}"),
        format!("api.example.com.:{port}"),
        format!("api..example.com:{port}"),
        format!(".api.example.com:{port}"),
        format!(" api.example.com:{port}"),
        format!("api.example.com :{port}"),
        format!("api.example.com\t:{port}"),
        format!("api.example.com\0:{port}"),
        format!("api.example.com:{port}:{port}"),
        format!("api.example.com:+{port}"),
        format!("api.example.com:0{port}"),
        format!("api.example.com: {port}"),
        format!("api.example.com:{}", u32::from(port) + 65536),
        "api.example.com:".to_owned(),
        "api.example.com:0".to_owned(),
        "api.example.com".to_owned(),
        String::new(),
        format!(":{port}"),
        // Cyrillic letters that look like Latin ones, unchanged and as a name server knows them.
        format!("\u{430}pi.example.com:{port}"),
        format!("api.ex\u{430}mple.com:{port}"),
        format!("xn--pi-6kc.example.com:{port}"),
        format!("api.xn--exmple-4nf.com:{port}"),
        // Full-width letters, which some programs fold.
        format!("\u{ff41}pi.example.com:{port}"),
        format!("api\u{3002}example.com:{port}"),
        format!("ap\u{ad}i.example.com:{port}"),
        format!("api.example.com.evil.test:{port}"),
    ] {
        gate.rejected(&json!({"url": "http://x/", "authority": authority, "times": [200, 200, 200]}), &flags);
        assert_eq!(server.connections(), 0, "{authority:?}");
    }
    // The name itself, in any case, is accepted.
    gate.answered(&json!({"url": format!("http://API.example.COM:{port}/")}), &flags);
    gate.ends_well();
}

#[test]
fn a_name_in_another_script_is_granted_as_one_and_not_for_its_look() {
    let (gate, server) = (Gate::new(), Server::plain("hello"));
    let port = server.port();
    let names = Names::new([("xn--bcher-kva.example", at("127.0.0.1")), ("bucher.example", at("127.0.0.1"))]);
    for granted in ["b\u{fc}cher.example", "xn--bcher-kva.example", "B\u{dc}CHER.example"] {
        let flags = [&allow(&[&format!("{granted}:{port}"), &server.authority()])[..], "--dns", &names.address()];
        gate.answered(&json!({"url": format!("http://xn--bcher-kva.example:{port}/")}), &flags);
        gate.denied(&json!({"url": format!("http://bucher.example:{port}/")}), &flags);
    }
    gate.ends_well();
}
