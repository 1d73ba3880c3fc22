//! Reports its settings from `wasi:config`, and writes lines through `wasi:logging`.

use std::process::ExitCode;

use serde::Deserialize;
use toolcrib_guest::json;

#[allow(unsafe_code, missing_docs, unreachable_pub, clippy::all, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package test:guests;
            world told {
                import wasi:config/store@0.2.0-rc.1;
                import wasi:logging/logging@0.1.0-draft;
            }
            package wasi:config@0.2.0-rc.1 {
                interface store {
                    variant error { upstream(string), io(string) }
                    get: func(key: string) -> result<option<string>, error>;
                    get-all: func() -> result<list<tuple<string, string>>, error>;
                }
            }
            package wasi:logging@0.1.0-draft {
                interface logging {
                    enum level { trace, debug, info, warn, error, critical }
                    log: func(level: level, context: string, message: string);
                }
            }
        ",
        world: "told",
        generate_all,
    });
}

use bindings::wasi::config::store;
use bindings::wasi::logging::logging::{Level, log};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    key: String,
    /// Writes lines of this many bytes without end.
    #[serde(default)]
    flood: Option<usize>,
}

fn main() -> ExitCode {
    toolcrib_guest::command(|args: Args| {
        let levels = [Level::Trace, Level::Debug, Level::Info, Level::Warn, Level::Error, Level::Critical];
        levels.into_iter().for_each(|level| log(level, "", "told"));
        log(Level::Info, "settings", "asked");
        while let Some(bytes) = args.flood {
            log(Level::Info, "", &"x".repeat(bytes));
        }
        let one = store::get(&args.key).map_err(|error| format!("{error:?}"));
        Ok(json!({ "one": one, "all": store::get_all().map_err(|error| format!("{error:?}")) }))
    })
}
