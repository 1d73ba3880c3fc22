//! Rich tool with imports of other hosts: counts its calls in its store, returns a setting, and logs a line. Its check,
//! which has no grant, tries the same.

use toolcrib_guest::{Call, Error, Result, Value, json, tool};

#[allow(unsafe_code, missing_docs, unreachable_pub, clippy::all, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package test:guests;
            world foreign {
                import wasi:config/store@0.2.0-draft;
                import wasi:logging/logging@0.1.0-draft;
                import wasi:keyvalue/store@0.2.0-draft;
                import wasi:keyvalue/atomics@0.2.0-draft;
            }
            package wasi:config@0.2.0-draft {
                interface store {
                    variant error { upstream(string), io(string) }
                    get: func(key: string) -> result<option<string>, error>;
                }
            }
            package wasi:logging@0.1.0-draft {
                interface logging {
                    enum level { trace, debug, info, warn, error, critical }
                    log: func(level: level, context: string, message: string);
                }
            }
            package wasi:keyvalue@0.2.0-draft {
                interface store {
                    variant error { no-such-store, access-denied, other(string) }
                    open: func(identifier: string) -> result<bucket, error>;
                    resource bucket {
                        exists: func(key: string) -> result<bool, error>;
                    }
                }
                interface atomics {
                    use store.{bucket, error};
                    increment: func(bucket: borrow<bucket>, key: string, delta: u64) -> result<u64, error>;
                }
            }
        ",
        world: "foreign",
        generate_all,
    });
}

use bindings::wasi::config::store as config;
use bindings::wasi::keyvalue::{atomics, store};
use bindings::wasi::logging::logging::{Level, log};

toolcrib_guest::tools!(count);

/// Count the calls.
#[tool(cache, validate = sees_nothing)]
fn count() -> Result<Value> {
    log(Level::Info, "count", "called");
    let failed = |error: store::Error| Error::new(format!("{error:?}"));
    let sum = atomics::increment(&store::open("").map_err(failed)?, "calls", 1).map_err(failed)?;
    let style = config::get("style").map_err(|error| Error::new(format!("{error:?}")))?;
    Ok(json!({ "calls": sum, "style": style }))
}

fn sees_nothing(_: &Call) -> Result<()> {
    let style = config::get("style").map_err(|error| Error::new(format!("{error:?}")))?;
    match (store::open("").is_ok(), style) {
        (false, None) => Ok(()),
        seen => Err(Error::invalid(format!("the check sees something: {seen:?}"))),
    }
}
