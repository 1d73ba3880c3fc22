//! Refusals before the compilation: each limit, exceeded, with the message that names it.

use std::fs;
use std::time::{Duration, Instant};

use toolcrib::{Outcome, Runtime, ToolCall};

use super::bytes::{
    CODE, DATA, ELEMENT, EXPORT, FUNCTION, GLOBAL, IMPORT, TYPE, component, custom, functions, items, module, number,
    section, sized,
};
use super::{SMALL, compiled, crib};

/// Maximum delay of a refusal on a busy machine before a test takes it for a compilation.
const BOUND: Duration = Duration::from_secs(20);

/// Calls a program that must be refused, and returns the message. It replaces a program that could be called: these
/// tests cover the compilation, not the recognition of files.
fn refused(program: &[u8]) -> String {
    let crib = crib(&wat::parse_str(SMALL).unwrap());
    let cache = crib.path("cache");
    let runtime = Runtime::builder(toolcrib::Audit::off())
        .trusted_source(crib.path("tools.json"))
        .compile_cache(&cache)
        .build()
        .unwrap();
    fs::write(crib.path("tools/bin/n.wasm"), program).unwrap();
    let started = Instant::now();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = tokio.block_on(runtime.call(ToolCall::new("", "n", "{}")));
    let output = result.outcome.unwrap_err();
    assert_eq!(output.outcome, Outcome::BadComponent, "{output}");
    assert!(started.elapsed() < BOUND, "refused after {:?}: {output}", started.elapsed());
    assert_eq!(compiled(&cache).len(), 0, "nothing of it is kept");
    output.message
}

fn refused_text(text: &str) -> String {
    refused(&wat::parse_str(text).unwrap())
}

#[test]
fn ten_thousand_instances_are_refused_however_they_are_made() {
    let told = "instances or more, and at most 1000 are compiled";
    let flat = "(instance (instantiate $c))".repeat(10_000);
    assert!(refused_text(&format!("(component (component $c) {flat})")).contains(told));
    let core = "(core instance (instantiate $m))".repeat(10_000);
    assert!(refused_text(&format!("(component (core module $m) {core})")).contains(told));
    // Forty components, each creating two of the one before: 2^40 instances in 2 KB.
    let doubled: String = (1..40)
        .map(|n| format!("(component $c{n} (instance (instantiate $c{0})) (instance (instantiate $c{0})))", n - 1))
        .collect();
    let doubled = format!("(component (component $c0) {doubled} (instance (instantiate $c39)))");
    assert!(refused_text(&doubled).contains(told));
    // The same under other names: through an export of the component, which gives it a second number.
    let renamed: String = (1..40)
        .map(|n| {
            let inner = format!("(instance (instantiate $e{0})) (instance (instantiate $e{0}))", n - 1);
            format!("(component $c{n} {inner}) (export $e{n} \"e{n}\" (component $c{n}))")
        })
        .collect();
    let renamed = format!("(component (component $c0) (export $e0 \"e0\" (component $c0)) {renamed})");
    assert!(refused_text(&renamed).contains(told));
}

#[test]
fn a_component_whose_instances_cannot_be_counted_is_refused() {
    let imported = r#"(component (component (import "c" (component $c)) (instance (instantiate $c))))"#;
    assert!(refused_text(imported).contains("it imports `c`, a component to instantiate; include it in the program"));
    let aliased = r#"(component (component
        (import "i" (instance $i (export "c" (component)))) (alias export $i "c" (component $c))))"#;
    assert!(refused_text(aliased).contains("it takes the component `c` out of an instance"));
}

#[test]
fn each_count_has_a_bound_that_its_refusal_names() {
    let nothing = [0, 0x0b];
    let import = [sized(b""), sized(b""), vec![0, 0]].concat();
    let export = |n: usize| [sized(format!("{n}").as_bytes()), vec![0, 0]].concat();
    let exports: Vec<u8> = (0..100_001).flat_map(export).collect();
    let many_locals = [vec![1], number(50_000), vec![0x7f, 0x0b]].concat();
    let empty = module(&[]);
    for (program, expected) in [
        (functions(200_001, &nothing), "it has 200001 functions or more, and at most 200000 are compiled"),
        (functions(101, &many_locals), "it has 5050000 local variables or more, and at most 5000000"),
        (module(&[items(TYPE, 100_001, &[0x60, 0, 0])]), "it has 100001 types"),
        (module(&[items(IMPORT, 100_001, &import)]), "it has 100001 imports"),
        (module(&[section(EXPORT, &[number(100_001), exports].concat())]), "it has 100001 exports"),
        (module(&[items(GLOBAL, 100_001, &[0x7f, 0, 0x41, 0, 0x0b])]), "it has 100001 globals"),
        (module(&[items(DATA, 200_001, &[1, 0])]), "it has 200001 data segments or more, and at most 200000"),
        (module(&[items(ELEMENT, 100_001, &[1, 0, 0])]), "it has 100001 element segments or more, and at most 100000"),
        (component(&vec![section(1, &empty); 201]), "it has 201 core modules"),
        (component(&vec![section(4, &component(&[])); 501]), "it has 501 components inside"),
        (component(&[items(7, 100_001, &[0x7f])]), "it has 100001 types"),
        (component(&[items(8, 200_001, &[3, 0])]), "it has 200001 aliases and canonical functions"),
    ] {
        let found = refused(&program);
        assert!(found.contains(expected), "expected {expected:?} in {found:?}");
    }
}

#[test]
fn one_function_may_not_be_too_large_too_deep_or_branch_too_far() {
    let nops = [vec![0], vec![0x01; 2 << 20], vec![0x0b]].concat();
    let deep = [vec![0], [0x02, 0x40].repeat(20_001), vec![0x0b; 20_002]].concat();
    let table = [vec![0, 0x41, 0, 0x0e], number(100_001), vec![0; 100_002], vec![0x0b]].concat();
    for (body, expected) in [
        (nops, "bytes, and at most 2097152 are compiled"),
        (deep, "has blocks nested deeper than 20000 levels"),
        (table, "has branch tables of 100001 targets, and at most 100000 are compiled"),
    ] {
        let found = refused(&functions(1, &body));
        assert!(
            found.contains("the function at byte ") && found.contains(expected),
            "expected {expected:?} in {found:?}"
        );
    }
}

#[test]
fn a_giant_or_second_custom_section_that_is_read_is_refused() {
    for name in ["component-type", "component-type:some:world", "toolcrib"] {
        let giant = module(&[custom(name, &vec![0; (1 << 20) + 1])]);
        let expected = format!("its custom section `{name}` has 1048577 bytes, and at most 1048576 are read");
        assert_eq!(refused(&giant), expected);
        let twice = component(&[custom(name, b"a"), custom("other", b""), custom(name, b"b")]);
        let expected = format!("its custom section `{name}` occurs twice in one part, and only one is allowed");
        assert_eq!(refused(&twice), expected);
    }
    let many: Vec<_> = (0..1001).map(|n| custom(&format!("s{n}"), b"")).collect();
    assert_eq!(refused(&module(&many)), "a part of it has more than 1000 custom sections");
}

#[test]
fn an_extension_that_the_sandbox_does_without_is_named() {
    let told = |what: &str, extension: &str| {
        format!("it has {what}, and the sandbox does not support `{extension}`; build it without")
    };
    for (text, told) in [
        ("(module (memory i64 1))", told("a memory with 64-bit addresses", "memory64")),
        ("(module (memory 1 2 shared))", told("a shared memory", "threads")),
        ("(module (memory 1 (pagesize 1)))", told("a memory with a custom page size", "custom-page-sizes")),
        ("(module (table i64 1 funcref))", told("a table with 64-bit indices", "memory64")),
        ("(module (type (struct)))", told("a garbage-collected type", "gc")),
        ("(component (core module (type (array i8))))", told("a garbage-collected type", "gc")),
        ("(module (type $f (func)) (type (cont $f)))", told("a continuation type", "stack-switching")),
    ] {
        assert_eq!(refused_text(text), told, "{text}");
    }
}

#[test]
fn an_extension_that_only_an_instruction_shows_is_refused_too() {
    let component = |body: &str| format!("(component (core module (memory 1) (func {body})))");
    for (body, named) in [
        ("(drop (i32.atomic.load (i32.const 0)))", "threads"),
        ("(drop (ref.i31 (i32.const 0)))", "gc"),
        ("try catch_all end", "legacy_exceptions"),
    ] {
        let output = refused_text(&component(body));
        assert!(output.contains(named), "expected `{named}` in {output:?}");
    }
    let stream = r#"(component (type $s (stream u8)) (core func (canon stream.new $s)))"#;
    assert!(refused_text(stream).contains("async"), "{}", refused_text(stream));
}

#[test]
fn a_count_that_the_bytes_do_not_hold_costs_nothing() {
    for id in [TYPE, IMPORT, FUNCTION, GLOBAL, EXPORT, ELEMENT, CODE, DATA] {
        let lying = module(&[section(id, &number(u32::MAX as usize))]);
        assert!(!refused(&lying).is_empty());
    }
}
