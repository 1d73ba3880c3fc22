//! Build script: removes the symbols of the program.

#![allow(clippy::print_stdout, reason = "a build script talks to cargo on standard output")]

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Symbols are a fifth of the program and serve debuggers only: a panic names its place without them.
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo::rustc-link-arg-bin=toolcrib=-Wl,--strip-all");
    }
}
