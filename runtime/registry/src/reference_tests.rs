//! Tests of the reference grammar.

use super::*;

const HEX: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn refused(text: &str) -> ReferenceError {
    text.parse::<Reference>().expect_err(text)
}

#[test]
fn every_part_of_a_reference_is_read() {
    let text = format!("oci://Registry.Example.com:5000/team/my-tool_a.b:v1.2@sha256:{HEX}");
    let reference: Reference = text.parse().unwrap();
    assert_eq!(reference.repository().registry().as_str(), "registry.example.com:5000");
    assert_eq!(reference.repository().path(), "team/my-tool_a.b");
    assert_eq!(reference.tag().map(Tag::as_str), Some("v1.2"));
    assert_eq!(reference.digest().map(Digest::hex), Some(HEX));
    assert_eq!(reference.selector().unwrap(), format!("sha256:{HEX}"));
    assert_eq!(reference.to_string().parse::<Reference>().unwrap(), reference);
}

#[test]
fn the_scheme_is_optional_and_the_version_too() {
    let reference: Reference = "localhost/tools".parse().unwrap();
    assert_eq!(reference.to_string(), "oci://localhost/tools");
    assert_eq!(reference.selector(), Err(ReferenceError::NoVersion));
    let address: Reference = "[::1]:5000/tools:x".parse().unwrap();
    assert_eq!(address.repository().registry().as_str(), "[::1]:5000");
    assert_eq!(address.selector().unwrap(), "x");
    assert!("10.0.0.1:5000/tools".parse::<Reference>().is_ok());
}

#[test]
fn no_registry_is_implied() {
    assert!(matches!(refused("library/tool:1"), ReferenceError::AmbiguousHost { .. }));
    assert!(matches!(refused("tool:1"), ReferenceError::Incomplete));
    assert!(matches!(refused("tool"), ReferenceError::Incomplete));
    assert!(matches!(refused("/tool"), ReferenceError::Incomplete));
    assert!(matches!(refused("a.example/"), ReferenceError::Incomplete));
}

#[test]
fn another_scheme_is_refused() {
    assert_eq!(refused("https://a.example/tool"), ReferenceError::Scheme);
    assert_eq!(refused("OCI://a.example/tool"), ReferenceError::Scheme);
    assert_eq!(refused("oci+http://a.example/tool"), ReferenceError::Scheme);
}

#[test]
fn hosts_that_could_mean_something_else_are_refused() {
    for host in [
        "user@a.example",
        "a..example",
        ".a.example",
        "a.example.",
        "-a.example",
        "a_b.example",
        "ä.example",
        "0x7f.1",
        "127.1",
        "010.0.0.1",
        "1.2.3.4.5",
        "[::1",
        "[::g]:1",
        "[1.2.3.4]",
        "a.example\\b",
        "a.example%2f",
    ] {
        assert!(format!("{host}/tool").parse::<Reference>().is_err(), "{host}");
    }
    let long = format!("{}.example", "a.".repeat(150) + "a");
    assert!(matches!(refused(&format!("{long}/tool")), ReferenceError::Host { .. }));
}

#[test]
fn ports_outside_their_range_are_refused() {
    for port in ["", "0", "00080", "65536", "+80", "80a", "999999999999"] {
        assert!(matches!(refused(&format!("a.example:{port}/tool")), ReferenceError::Port { .. }), "{port}");
    }
}

#[test]
fn repository_paths_outside_the_grammar_are_refused() {
    for path in ["..", "a/../b", "a//b", "a/", "A", "a___b", "a..b", "a._b", "-a", "a-", "a?b", "a#b", "a%2eb", "a b"] {
        assert!(format!("a.example/{path}").parse::<Reference>().is_err(), "{path}");
    }
    assert!("a.example/a--b__c".parse::<Reference>().is_ok());
    let long = "a".repeat(MAX_REPOSITORY_BYTES);
    assert!(format!("a.example/{long}").parse::<Reference>().is_ok());
    assert!(matches!(refused(&format!("a.example/{long}a")), ReferenceError::Repository { .. }));
}

#[test]
fn tags_outside_the_grammar_are_refused() {
    for tag in ["", ".a", "-a", "a b", "a/b", "a:b", "ä", "a\n"] {
        assert!(format!("a.example/tool:{tag}").parse::<Reference>().is_err(), "{tag}");
    }
    let long = "a".repeat(MAX_TAG_BYTES);
    assert!(format!("a.example/tool:{long}").parse::<Reference>().is_ok());
    assert!(matches!(refused(&format!("a.example/tool:{long}a")), ReferenceError::Tag { .. }));
}

#[test]
fn a_bad_digest_and_a_long_reference_are_refused() {
    assert!(matches!(refused("a.example/tool@sha256:12"), ReferenceError::Digest(_)));
    assert!(matches!(refused(&format!("a.example/tool@sha256:{HEX}@sha256:{HEX}")), ReferenceError::Digest(_)));
    let long = "a".repeat(MAX_REFERENCE_BYTES + 1);
    assert_eq!(refused(&long), ReferenceError::TooLong { found: long.len() });
    assert!(matches!(long.parse::<Registry>(), Err(ReferenceError::TooLong { .. })));
}

#[test]
fn docker_io_is_reached_at_its_api_host() {
    let registry: Registry = "docker.io".parse().unwrap();
    assert_eq!((registry.as_str(), registry.api_authority()), ("docker.io", "registry-1.docker.io"));
}
