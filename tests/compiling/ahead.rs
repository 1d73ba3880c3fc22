//! Compilation ahead of the first call: code in the cache is only looked for, and loaded by the first call.

use std::fs;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use toolcrib::{Error, Outcome, Runtime};

use super::embedded::{LONG, runtime, spoiling};
use super::{SMALL, compiled, crib, outcome};

fn compile(runtime: &Runtime, name: &str) -> Result<(), Error> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tokio.block_on(runtime.compile(name))
}

#[test]
fn code_in_the_cache_is_not_loaded_before_the_first_call() {
    let crib = crib(&wat::parse_str(SMALL).unwrap());
    let compiler = spoiling(Duration::ZERO, |_, answer| Ok(answer));
    let asked = || compiler.asked.load(SeqCst);
    compile(&runtime(crib.dir.path(), compiler.clone(), LONG), "n").unwrap();
    assert_eq!((asked(), compiled(&crib.path("cache")).len()), (1, 1));

    let second = runtime(crib.dir.path(), compiler.clone(), LONG);
    compile(&second, "n").unwrap();
    assert_eq!(asked(), 1, "the code is in the cache");
    fs::remove_file(&compiled(&crib.path("cache"))[0]).unwrap();
    assert_eq!((outcome(&second), asked()), (Outcome::Ok, 2), "it was not loaded, and is gone");
    fs::remove_file(&compiled(&crib.path("cache"))[0]).unwrap();
    compile(&second, "n").unwrap();
    assert_eq!((outcome(&second), asked()), (Outcome::Ok, 2), "a loaded program needs no cache");
    assert!(matches!(compile(&second, "other"), Err(Error::UnknownTool { .. })));
}

#[test]
fn a_program_that_was_replaced_is_compiled() {
    let crib = crib(&wat::parse_str(SMALL).unwrap());
    let compiler = spoiling(Duration::ZERO, |_, answer| Ok(answer));
    compile(&runtime(crib.dir.path(), compiler.clone(), LONG), "n").unwrap();
    fs::write(crib.path("tools/bin/n.wasm"), wat::parse_str(SMALL.replace("small", "other")).unwrap()).unwrap();
    compile(&runtime(crib.dir.path(), compiler.clone(), LONG), "n").unwrap();
    assert_eq!((compiler.asked.load(SeqCst), compiled(&crib.path("cache")).len()), (2, 2));
}

#[test]
fn a_program_that_cannot_be_linked_is_found_by_each_runtime_and_compiled_once() {
    // The name is known, so that the program is compiled, and the function has another type.
    let import = r#"(component (import "wasi:cli/environment@0.2.0" (instance (export "get-environment" (func (param "a" u32)))))"#;
    let crib = crib(&wat::parse_str(SMALL.replacen("(component", import, 1)).unwrap());
    let compiler = spoiling(Duration::ZERO, |_, answer| Ok(answer));
    for _ in 0..2 {
        let runtime = runtime(crib.dir.path(), compiler.clone(), LONG);
        let Err(Error::Component { reason, .. }) = compile(&runtime, "n") else { panic!("it was linked") };
        assert!(reason.contains("get-environment"), "{reason}");
        assert_eq!(outcome(&runtime), Outcome::BadComponent);
    }
    assert_eq!((compiler.asked.load(SeqCst), compiled(&crib.path("cache")).len()), (1, 1));
}
