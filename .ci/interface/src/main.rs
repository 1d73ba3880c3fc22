//! Prints the public interface of a library, one item a line: `toolcrib-interface RUSTDOC.json`.

use std::env;
use std::process::ExitCode;

use public_api::Builder;

fn main() -> ExitCode {
    let Some(json) = env::args_os().nth(1) else {
        eprintln!("usage: toolcrib-interface RUSTDOC.json");
        return ExitCode::from(2);
    };
    let builder = Builder::from_rustdoc_json(json).omit_blanket_impls(true).omit_auto_trait_impls(true);
    match builder.omit_auto_derived_impls(true).build() {
        Ok(interface) => {
            for item in interface.items() {
                println!("{item}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
