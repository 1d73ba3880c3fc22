//! Stores values through the second draft of `wasi:keyvalue`, and uses the oldest names of settings and of the log.

use std::process::ExitCode;

use serde::Deserialize;
use toolcrib_guest::{Value, json};

#[allow(unsafe_code, missing_docs, unreachable_pub, clippy::all, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package test:guests;
            world keeps {
                import wasi:keyvalue/store@0.2.0-draft2;
                import wasi:keyvalue/atomics@0.2.0-draft2;
                import wasi:keyvalue/batch@0.2.0-draft2;
                import wasi:config/runtime@0.2.0-draft;
                import wasi:logging/logging;
            }
            package wasi:keyvalue@0.2.0-draft2 {
                interface store {
                    variant error { no-such-store, access-denied, other(string) }
                    record key-response { keys: list<string>, cursor: option<string> }
                    open: func(identifier: string) -> result<bucket, error>;
                    resource bucket {
                        get: func(key: string) -> result<option<list<u8>>, error>;
                        set: func(key: string, value: list<u8>) -> result<_, error>;
                        list-keys: func(cursor: option<string>) -> result<key-response, error>;
                    }
                }
                interface atomics {
                    use store.{bucket, error};
                    variant cas-error { store-error(error), cas-failed(cas) }
                    resource cas {
                        new: static func(bucket: borrow<bucket>, key: string) -> result<cas, error>;
                        current: func() -> result<option<list<u8>>, error>;
                    }
                    increment: func(bucket: borrow<bucket>, key: string, delta: s64) -> result<s64, error>;
                    swap: func(cas: cas, value: list<u8>) -> result<_, cas-error>;
                }
                interface batch {
                    use store.{bucket, error};
                    get-many: func(bucket: borrow<bucket>, keys: list<string>)
                        -> result<list<tuple<string, option<list<u8>>>>, error>;
                    set-many: func(bucket: borrow<bucket>, key-values: list<tuple<string, list<u8>>>) -> result<_, error>;
                }
            }
            package wasi:config@0.2.0-draft {
                interface runtime {
                    variant config-error { upstream(string), io(string) }
                    get: func(key: string) -> result<option<string>, config-error>;
                }
            }
            package wasi:logging {
                interface logging {
                    enum level { trace, debug, info, warn, error, critical }
                    log: func(level: level, context: string, message: string);
                }
            }
        ",
        world: "keeps",
        generate_all,
    });
}

use bindings::wasi::config::runtime;
use bindings::wasi::keyvalue::store::{Error, open};
use bindings::wasi::keyvalue::{atomics, batch};
use bindings::wasi::logging::logging;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    /// Number of keys to create first.
    #[serde(default)]
    keys: usize,
}

fn main() -> ExitCode {
    toolcrib_guest::command(|args: Args| {
        logging::log(logging::Level::Warn, "", "second");
        act(args.keys).map_err(|error| toolcrib_guest::error!("{error:?}"))
    })
}

fn act(keys: usize) -> Result<Value, Error> {
    let bucket = open("default")?;
    let pairs: Vec<_> = (0..keys).map(|n| (format!("key{n:03}"), vec![b'1'])).collect();
    batch::set_many(&bucket, &pairs)?;
    let (mut listed, mut pages, mut cursor) = (Vec::new(), 0, None);
    loop {
        let page = bucket.list_keys(cursor.as_deref())?;
        listed.extend(page.keys);
        pages += 1;
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    let sum = atomics::increment(&bucket, "sum", -7)?;
    // A concurrent write is faster: the first swap fails, and the handle that it returns sees the new value.
    let cas = atomics::Cas::new(&bucket, "turn")?;
    let before = cas.current()?.is_some();
    bucket.set("turn", b"theirs")?;
    let again = match atomics::swap(cas, b"mine") {
        Err(atomics::CasError::CasFailed(again)) => again,
        Err(atomics::CasError::StoreError(error)) => return Err(error),
        Ok(()) => return Ok(json!("swapped what had changed")),
    };
    let seen = again.current()?.map(|value| String::from_utf8_lossy(&value).into_owned());
    let swapped = atomics::swap(again, b"mine").is_ok();
    let many = batch::get_many(&bucket, &["turn".to_owned(), "nothing".to_owned()])?;
    let many: Vec<_> = many
        .into_iter()
        .map(|(key, value)| (key, value.map(|value| String::from_utf8_lossy(&value).into_owned())))
        .collect();
    let setting = runtime::get("style").map_err(|error| Error::Other(format!("{error:?}")))?;
    Ok(json!({
        "listed": listed.len(), "pages": pages, "sum": sum, "before": before, "seen": seen, "swapped": swapped,
        "many": many, "setting": setting,
    }))
}
