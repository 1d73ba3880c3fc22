//! Damaged programs and damaged code: truncations and flipped bits. A damaged program is refused or runs, damaged code
//! is never loaded, and the host survives.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use toolcrib::compiler::{CompileError, Compiler, Job};
use toolcrib::{Outcome, Runtime, ToolCall};

use super::embedded::spoiling;
use super::{SMALL, compiled, crib, outcome};
use crate::crib::{Crib, guest};

/// Outcome of a call of a damaged program, compiled in this process. Any typed outcome is accepted: a flip in a name or
/// a constant leaves a valid program, only another one.
fn survived(crib: &Crib, program: &[u8]) -> Option<Outcome> {
    fs::write(crib.path("tools/bin/n.wasm"), program).unwrap();
    let limits = toolcrib::tool::Limits::with_deadline(Duration::from_secs(5));
    let runtime = Runtime::builder(toolcrib::Audit::off())
        .trusted_source(crib.path("tools.json"))
        .concurrency(1)
        .limits(limits)
        .build();
    Some(outcome(&runtime.ok()?))
}

/// Component with typical content of a tool of some kilobytes.
fn of_ten_kilobytes() -> Vec<u8> {
    let data = "0123456789abcdef".repeat(400);
    let functions: String = (0..200)
        .map(|n| {
            format!("(func (param i32) (result i32) (i32.mul (i32.add (local.get 0) (i32.const {n})) (i32.const 7)))")
        })
        .collect();
    let more = format!(r#"(data (i32.const 1024) "{data}") {functions} (func (export "run")"#);
    let text = SMALL.replacen(r#"(func (export "run")"#, &more, 1);
    wat::parse_str(text).unwrap()
}

#[test]
fn every_truncation_of_a_component_is_refused() {
    let whole = of_ten_kilobytes();
    assert!((8 << 10..12 << 10).contains(&whole.len()), "{}", whole.len());
    let crib = crib(&whole);
    assert_eq!(survived(&crib, &whole), Some(Outcome::Ok));
    let mut whole_enough = Vec::new();
    // Each place near both ends, where the headers of the sections are, and a sample in between that reaches each place
    // of a row of equal functions: seven has no factor in common with their lengths.
    let ends = 512;
    for cut in (0..whole.len()).filter(|cut| cut % 7 == 0 || *cut < ends || whole.len() - cut <= ends) {
        match survived(&crib, &whole[..cut]) {
            None | Some(Outcome::BadComponent) => {}
            Some(Outcome::Ok) => whole_enough.push(cut),
            other => panic!("cut at {cut}: {other:?}"),
        }
    }
    // The last section holds names for people and can be missing.
    assert!(whole_enough.len() == 1 && whole_enough[0] > whole.len() - 100, "{whole_enough:?} of {}", whole.len());
}

#[test]
fn every_flipped_bit_of_a_component_is_refused_or_runs() {
    let whole = wat::parse_str(SMALL).unwrap();
    assert!(whole.len() < 1024, "{}", whole.len());
    let crib = crib(&whole);
    let (mut refused, mut ran) = (0, 0);
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match survived(&crib, &flipped) {
            None | Some(Outcome::BadComponent) => refused += 1,
            Some(_) => ran += 1,
        }
    }
    assert!(refused > 500 && ran > 10, "{refused} refused, {ran} ran");
    assert_eq!(survived(&crib, &whole), Some(Outcome::Ok), "the host lives on");
}

/// Compiler that compiles nothing: its input has been checked, and nothing more happens.
struct Looking;

impl Compiler for Looking {
    fn compile(&self, _: &Job<'_>) -> Result<Vec<u8>, CompileError> {
        Err(CompileError::Program("looked at".to_owned()))
    }
}

#[test]
fn thousands_of_flipped_bits_in_a_real_program_are_looked_at_and_some_compiled() {
    let crib = Crib::with_guests(&["echo"]);
    let whole = fs::read(guest("echo")).unwrap();
    let place = crib.path("tools/bin/echo.wasm");
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Any order that is the same each time and covers the whole file.
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    for round in 0..1000 {
        let mut flipped = whole.clone();
        for _ in 0..=round % 3 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let bit = (seed >> 33) as usize % (whole.len() * 8);
            flipped[bit / 8] ^= 1 << (bit % 8);
        }
        fs::write(&place, &flipped).unwrap();
        let builder = Runtime::builder(toolcrib::Audit::off()).trusted_source(crib.path("tools.json")).concurrency(1);
        // One in fifty is compiled and run.
        let builder = if round % 50 == 0 { builder } else { builder.compiler(Arc::new(Looking)) };
        let Ok(runtime) = builder.build() else { continue };
        let result = tokio.block_on(runtime.call(ToolCall::new("", "echo", "{}")));
        assert_ne!(result.receipt.outcome, Outcome::Cancelled, "round {round}");
    }
    fs::write(&place, &whole).unwrap();
    assert_eq!(crib.run(&["call", "echo", "{\"a\":1}"]).stdout, "{\"a\":1}\n", "the host lives on");
}

/// Calls with a compile cache; returns `true` if the program had to be compiled.
fn compiles(crib: &Crib, cache: &Path) -> bool {
    let compiler = spoiling(Duration::ZERO, |_, answer| Ok(answer));
    let builder = Runtime::builder(toolcrib::Audit::off())
        .trusted_source(crib.path("tools.json"))
        .compile_cache(cache)
        .concurrency(1);
    assert_eq!(outcome(&builder.compiler(compiler.clone()).build().unwrap()), Outcome::Ok);
    compiler.asked.load(SeqCst) > 0
}

#[test]
fn code_that_was_tampered_with_is_never_loaded_wherever_it_was() {
    let crib = crib(&wat::parse_str(SMALL).unwrap());
    let cache = crib.path("cache");
    assert!(compiles(&crib, &cache) && !compiles(&crib, &cache));
    let [file] = compiled(&cache).try_into().expect("one program, one file");
    let whole = fs::read(&file).unwrap();
    let every = (whole.len() / 300).max(1);
    for place in (0..whole.len()).filter(|place| *place < 64 || place % every == 0) {
        let mut flipped = whole.clone();
        flipped[place] ^= 1 << (place % 8);
        fs::write(&file, &flipped).unwrap();
        assert!(compiles(&crib, &cache), "flipped at {place}");
        assert_eq!(fs::read(&file).unwrap(), whole, "made again");
    }
    for cut in (0..whole.len()).step_by(every * 10).chain([31, 32, 33]) {
        fs::write(&file, &whole[..cut]).unwrap();
        assert!(compiles(&crib, &cache), "cut at {cut}");
    }
    fs::write(&file, [whole.as_slice(), b"\0"].concat()).unwrap();
    assert!(compiles(&crib, &cache), "with more at its end");
    assert!(!compiles(&crib, &cache), "and then it is whole");
}

#[test]
fn code_of_another_program_engine_or_folder_is_never_loaded() {
    let crib = crib(&wat::parse_str(SMALL).unwrap());
    let (cache, other) = (crib.path("cache"), crib.path("other"));
    assert!(compiles(&crib, &cache) && compiles(&crib, &other));
    let [file] = compiled(&cache).try_into().expect("one program, one file");
    let [foreign] = compiled(&other).try_into().expect("one program, one file");
    assert_ne!(file.file_name(), foreign.file_name(), "the name depends on the key of the folder");
    fs::copy(&foreign, &file).unwrap();
    assert!(compiles(&crib, &cache), "sealed by another folder's key");
    // The same program for an engine that counts fuel, under the other's name.
    let mut limits = toolcrib::tool::Limits::default();
    limits.fuel = Some(1_000_000);
    let builder = Runtime::builder(toolcrib::Audit::off())
        .trusted_source(crib.path("tools.json"))
        .compile_cache(&cache)
        .limits(limits);
    assert_eq!(outcome(&builder.build().unwrap()), Outcome::Ok);
    let fuelled = compiled(&cache).into_iter().find(|path| *path != file).expect("a second file");
    fs::copy(&fuelled, &file).unwrap();
    assert!(compiles(&crib, &cache), "code for another engine");
    // Another program's code under this one's name.
    let changed = SMALL.replace("i32.const 7", "i32.const 0");
    fs::write(crib.path("tools/bin/n.wasm"), wat::parse_str(changed).unwrap()).unwrap();
    let before = compiled(&cache);
    assert!(compiles(&crib, &cache));
    let its = compiled(&cache).into_iter().find(|path| !before.contains(path)).expect("its own file");
    fs::copy(&file, &its).unwrap();
    assert!(compiles(&crib, &cache), "another program's code");
}
