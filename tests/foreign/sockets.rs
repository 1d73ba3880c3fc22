//! `wasi:sockets`: linked by every name of WASI 0.2, and every use is refused.

use serde_json::{Value, json};

use crate::crib::Crib;

/// Command that calls a function without arguments of an interface.
pub(crate) fn calls(interface: &str) -> String {
    format!(
        r#"(component
            (import "{interface}" (instance $s (export "f" (func))))
            (core func $f (canon lower (func $s "f")))
            (core module $m
                (import "" "f" (func $f))
                (func (export "run") (result i32) call $f i32.const 0))
            (core instance $i (instantiate $m (with "" (instance (export "f" (func $f))))))
            (func $run (result (result)) (canon lift (core func $i "run")))
            (instance $r (export "run" (func $run)))
            (export "wasi:cli/run@0.2.0" (instance $r)))"#
    )
}

fn called(text: &str) -> Value {
    let crib = Crib::new();
    crib.install_wat("n", text);
    crib.manifest(&json!({"tools": [{"name": "n", "command": ["./tools/bin/n"]}]}));
    crib.call("n", &json!({}), &[])
}

#[test]
fn what_cannot_say_that_it_was_refused_ends_the_call() {
    for interface in ["wasi:sockets/tcp@0.2.0", "wasi:sockets/tomorrow@0.2.99"] {
        let line = called(&calls(interface));
        assert_eq!(line["receipt"]["outcome"], "denied", "{line}");
        assert!(
            line["error"].as_str().unwrap().contains("used a socket (`f`), and sockets are not available to tools"),
            "{line}"
        );
        assert_eq!(line["receipt"]["denied"], json!([{"capability": "sockets:f"}]));
    }
    for interface in ["wasi:sockets/tcp@0.3.0", "wasi:sockets/tcp", "wasi:socketry/tcp@0.2.0"] {
        let line = called(&calls(interface));
        assert_eq!(line["receipt"]["outcome"], "bad-component", "{line}");
        assert!(line["error"].as_str().unwrap().contains(interface), "{line}");
    }
}

#[test]
fn an_empty_network_is_given_as_often_as_a_call_may_hold_handles() {
    let holds = |rounds: usize| {
        format!(
            r#"(component
                (import "wasi:sockets/network@0.2.0" (instance $n (export "network" (type (sub resource)))))
                (alias export $n "network" (type $network))
                (import "wasi:sockets/instance-network@0.2.0" (instance $s
                    (export "network" (type $own (eq $network)))
                    (export "instance-network" (func (result (own $own))))))
                (core func $f (canon lower (func $s "instance-network")))
                (core module $m
                    (import "" "f" (func $f (result i32)))
                    (func (export "run") (result i32) (local $n i32)
                        (loop $l
                            (drop (call $f))
                            (local.set $n (i32.add (local.get $n) (i32.const 1)))
                            (br_if $l (i32.lt_u (local.get $n) (i32.const {rounds}))))
                        i32.const 0))
                (core instance $i (instantiate $m (with "" (instance (export "f" (func $f))))))
                (func $run (result (result)) (canon lift (core func $i "run")))
                (instance $r (export "run" (func $run)))
                (export "wasi:cli/run@0.2.0" (instance $r)))"#
        )
    };
    let line = called(&holds(100));
    assert_eq!((&line["receipt"]["outcome"], &line["receipt"]["denied"]), (&json!("ok"), &json!([])), "{line}");
    assert_eq!(called(&holds(1000))["receipt"]["outcome"], "handles");
}

#[test]
fn a_refusal_is_told_once_and_without_a_flag() {
    let crib = Crib::with_guests(&["connect"]);
    let line = crib.call("connect", &json!({"address": "127.0.0.1:1"}), &["--allow-net=127.0.0.1:1"]);
    assert_eq!(line["receipt"]["outcome"], "ok", "the guest copes: {line}");
    assert_eq!(line["result"]["connected"], false);
    assert_eq!(line["receipt"]["denied"], json!([{"capability": "sockets:create-tcp-socket"}]), "{line}");
    assert_eq!(crib.records()[0]["denied"], line["receipt"]["denied"]);
}
