//! Stores values through the first draft of `wasi:keyvalue`, in the steps of its arguments, and reports the result of
//! each step.

use std::process::ExitCode;

use serde::Deserialize;
use toolcrib_guest::{Value, json};

#[allow(unsafe_code, missing_docs, unreachable_pub, clippy::all, reason = "generated")]
mod bindings {
    wit_bindgen::generate!({
        inline: "
            package test:guests;
            world keeps {
                import wasi:keyvalue/store@0.2.0-draft;
                import wasi:keyvalue/atomics@0.2.0-draft;
                import wasi:keyvalue/batch@0.2.0-draft;
            }
            package wasi:keyvalue@0.2.0-draft {
                interface store {
                    variant error { no-such-store, access-denied, other(string) }
                    record key-response { keys: list<string>, cursor: option<u64> }
                    open: func(identifier: string) -> result<bucket, error>;
                    resource bucket {
                        get: func(key: string) -> result<option<list<u8>>, error>;
                        set: func(key: string, value: list<u8>) -> result<_, error>;
                        delete: func(key: string) -> result<_, error>;
                        exists: func(key: string) -> result<bool, error>;
                        list-keys: func(cursor: option<u64>) -> result<key-response, error>;
                    }
                }
                interface atomics {
                    use store.{bucket, error};
                    increment: func(bucket: borrow<bucket>, key: string, delta: u64) -> result<u64, error>;
                }
                interface batch {
                    use store.{bucket, error};
                    get-many: func(bucket: borrow<bucket>, keys: list<string>)
                        -> result<list<option<tuple<string, list<u8>>>>, error>;
                    set-many: func(bucket: borrow<bucket>, key-values: list<tuple<string, list<u8>>>) -> result<_, error>;
                    delete-many: func(bucket: borrow<bucket>, keys: list<string>) -> result<_, error>;
                }
            }
        ",
        world: "keeps",
        generate_all,
    });
}

use bindings::wasi::keyvalue::store::{Bucket, Error, open};
use bindings::wasi::keyvalue::{atomics, batch};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    #[serde(default)]
    store: String,
    steps: Vec<Step>,
    /// Fails afterwards.
    #[serde(default)]
    fail: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Step {
    Get(String),
    Set(String, String),
    /// Sets a value of this many bytes.
    SetLarge(String, usize),
    /// Sets this many keys.
    SetMany(usize),
    /// Sets a key of this many bytes.
    SetLongKey(usize),
    Delete(String),
    Exists(String),
    /// Lists all pages, and counts the pages and the keys.
    List,
    Add(String, u64),
    GetMany(Vec<String>),
    DeleteMany(Vec<String>),
    /// Opens this many stores at once.
    Open(usize),
}

fn main() -> ExitCode {
    toolcrib_guest::command(|args: Args| {
        let bucket = match open(&args.store) {
            Ok(bucket) => bucket,
            Err(error) if args.fail => return Err(toolcrib_guest::error!("{error:?}")),
            Err(error) => return Ok(told(error)),
        };
        Ok(Value::Array(args.steps.into_iter().map(|step| step.take(&bucket).unwrap_or_else(told)).collect()))
    })
}

fn told(error: Error) -> Value {
    json!({ "error": match error {
        Error::NoSuchStore => "no-such-store".to_owned(),
        Error::AccessDenied => "access-denied".to_owned(),
        Error::Other(why) => why,
    } })
}

fn text(value: Vec<u8>) -> String {
    String::from_utf8_lossy(&value).into_owned()
}

impl Step {
    fn take(self, bucket: &Bucket) -> Result<Value, Error> {
        Ok(match self {
            Step::Get(key) => json!(bucket.get(&key)?.map(text)),
            Step::Set(key, value) => json!(bucket.set(&key, value.as_bytes())?),
            Step::SetLarge(key, bytes) => json!(bucket.set(&key, &vec![7; bytes])?),
            Step::SetMany(count) => {
                let pairs: Vec<_> = (0..count).map(|n| (format!("key{n}"), vec![1])).collect();
                json!(batch::set_many(bucket, &pairs)?)
            }
            Step::SetLongKey(bytes) => json!(bucket.set(&"k".repeat(bytes), b"")?),
            Step::Delete(key) => json!(bucket.delete(&key)?),
            Step::Exists(key) => json!(bucket.exists(&key)?),
            Step::List => {
                let (mut pages, mut keys, mut cursor) = (0, Vec::new(), None);
                loop {
                    let page = bucket.list_keys(cursor)?;
                    pages += 1;
                    keys.extend(page.keys);
                    cursor = page.cursor;
                    if cursor.is_none() {
                        break;
                    }
                }
                keys.dedup();
                json!({ "pages": pages, "keys": keys.len() })
            }
            Step::Add(key, delta) => json!(atomics::increment(bucket, &key, delta)?),
            Step::GetMany(keys) => {
                let pairs = batch::get_many(bucket, &keys)?;
                json!(pairs.into_iter().map(|pair| pair.map(|(key, value)| (key, text(value)))).collect::<Vec<_>>())
            }
            Step::DeleteMany(keys) => json!(batch::delete_many(bucket, &keys)?),
            Step::Open(count) => {
                let opened: Result<Vec<_>, _> = (0..count).map(|_| open("")).collect();
                json!(opened?.len())
            }
        })
    }
}
