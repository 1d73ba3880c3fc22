//! Measured cases: a hostile program, its input, and the allowed outcomes. Data alone; `measure` runs them.

use std::path::Path;

use serde_json::{Value, json};

use super::{modules, programs, throwing};

/// One attack and its allowed outcomes.
pub(crate) struct Case {
    /// Numbers of its kinds of attack.
    pub(crate) rows: &'static [u8],
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    /// JSON text.
    pub(crate) arguments: &'static str,
    /// Deadline of each call, in milliseconds.
    pub(crate) deadline: u64,
    /// `limits` of the tool, as in a manifest: JSON text.
    pub(crate) limits: &'static str,
    /// Prepares the folder that the tool may read and write, if it gets one.
    pub(crate) folder: Option<fn(&Path)>,
    /// Allowed outcomes.
    pub(crate) ends: &'static [&'static str],
    /// Words of every answer.
    pub(crate) says: &'static str,
    /// Concurrent calls.
    pub(crate) at_once: usize,
    /// Rounds in a long and in a short run.
    pub(crate) rounds: [usize; 2],
}

pub(crate) enum Program {
    /// File in `tests/guests/src/bin`.
    Guest(&'static str),
    /// WebAssembly text.
    Text(fn() -> String),
}

use Program::{Guest, Text};

/// Deadline that is meant to be reached; calls that end for another reason have a longer one.
const SOON: u64 = 200;
const LATER: u64 = 120_000;
const HUNG: &[&str] = &["deadline"];
const ENDED: &[&str] = &["memory"];

const fn case(rows: &'static [u8], name: &'static str, program: Program, ends: &'static [&'static str]) -> Case {
    Case {
        rows,
        name,
        program,
        arguments: "{}",
        deadline: LATER,
        limits: "{}",
        folder: None,
        ends,
        says: "",
        at_once: 1,
        rounds: [1, 1],
    }
}

const fn hung(rows: &'static [u8], name: &'static str, program: Program) -> Case {
    Case { deadline: SOON, ..case(rows, name, program, HUNG) }
}

/// Every case, in the order of the rows.
pub(crate) const CASES: &[Case] = &[
    hung(&[1], "endless loop", Guest("spin")),
    Case { limits: r#"{"fuel": 10000000}"#, ..case(&[1], "endless loop on fuel", Guest("spin"), &["fuel"]) },
    hung(&[2], "endless loop in a start function", Text(programs::start_loops)),
    hung(&[2], "endless loop in realloc", Text(programs::realloc_loops)),
    hung(&[2], "endless loop in post-return", Text(programs::post_return_loops)),
    case(&[3], "4 GiB of memory", Guest("grow"), ENDED),
    case(&[4], "four memories over the cap in sum", Text(programs::memories_over_the_cap_in_sum), ENDED),
    case(&[5], "a table of two billion elements", Text(|| programs::table_of(2_000_000_000)), ENDED),
    case(&[5], "a table larger than a slot's", Text(|| programs::table_of(100_000)), ENDED),
    case(&[6], "endless recursion", Guest("recurse"), &["stack"]),
    case(&[6], "endless recursion without frames", Text(programs::pure_recursion), &["stack"]),
    case(&[7], "a host call at the end of the stack", Text(programs::host_call_at_the_end_of_the_stack), &["stack"]),
    hung(&[9], "copying the whole heap in a loop", Text(programs::copies_its_heap)),
    case(&[10], "a flood of the host's handles", Guest("many_pollables"), &["handles"]),
    case(&[10], "a flood of its own handles", Text(programs::own_handles), &["handles"]),
    Case {
        arguments: r#"{"path": "f"}"#,
        folder: Some(|folder| std::fs::write(folder.join("f"), "x").expect("a file")),
        ..case(&[10, 37], "a flood of open files", Guest("open_many"), &["handles"])
    },
    case(&[11], "a list of 1 GiB that is not there", Text(|| programs::gibibyte_list(false)), &["trap"]),
    Case {
        limits: r#"{"memoryMb": 2048}"#,
        ..case(&[11], "a list of 1 GiB", Text(|| programs::gibibyte_list(true)), &["output-limit"])
    },
    Case {
        arguments: r#"{"times": 3000000}"#,
        ..case(&[11], "one handle in a list three million times", Guest("many_borrows"), &["output-limit"])
    },
    Case {
        arguments: r#"{"times": 100000}"#,
        ..case(&[10, 11], "one handle in a list a hundred thousand times", Guest("many_borrows"), &["handles"])
    },
    case(&[12], "2^40 random bytes", Guest("random_bytes"), &["trap"]),
    hung(&[14], "sleeping an hour", Guest("sleep")),
    hung(&[14], "polling forever", Guest("poll")),
    Case {
        deadline: 2,
        at_once: 250,
        rounds: [400, 2],
        ..hung(&[15], "time-outs that drop a call midway", Guest("sleep"))
    },
    hung(&[16], "polling what is ready", Guest("poll_ready")),
    Case {
        arguments: r#"{"op": "open", "path": "pipe"}"#,
        folder: Some(fifo),
        says: "not-permitted",
        ..case(&[17], "opening a FIFO", Guest("file_io"), &["ok"])
    },
    Case { at_once: 1000, deadline: 1500, ..hung(&[18], "a thousand calls asleep", Guest("sleep")) },
    Case { at_once: 64, deadline: 1000, ..hung(&[18], "sixty-four calls that compute", Guest("spin")) },
    Case {
        folder: Some(|_| ()),
        says: r#""ready":[false,false,false,false,false,false]"#,
        ..case(&[19], "absurd durations and timestamps", Guest("absurd_times"), &["ok"])
    },
    case(&[20], "endless standard output", Guest("flood_stdout"), &["output-limit"]),
    Case {
        limits: r#"{"outputKb": 64}"#,
        ..case(&[20], "endless standard output, byte by byte", Guest("flood_byte"), &["output-limit"])
    },
    case(&[20], "endless standard error", Guest("flood_stderr"), &["output-limit"]),
    Case {
        arguments: r#"{"bytes": 2000000}"#,
        ..case(&[21], "a result over the cap", Guest("big_result"), &["output-limit"])
    },
    case(&[22], "arrays 100,000 deep", Guest("deep_json"), &["bad-result"]),
    Case { says: "a\u{fffd}\u{fffd}z", ..case(&[23], "bytes that are not UTF-8", Guest("invalid_utf8"), &["ok"]) },
    case(&[25], "two lines", Guest("two_lines"), &["bad-result"]),
    case(&[26], "no JSON", Guest("not_json"), &["bad-result"]),
    case(&[], "a panic", Guest("panic"), &["trap"]),
    Case {
        at_once: 1000,
        arguments: r#"{"n": 1}"#,
        ..case(&[64], "a thousand calls at once", Guest("echo"), &["ok", "busy"])
    },
    // The same by core modules, which call the host by other functions.
    hung(&[1], "module: endless loop", Text(modules::spins)),
    hung(&[1], "module: giving up its turn for ever", Text(modules::yields)),
    Case { limits: FUEL, ..case(&[1], "module: endless loop on fuel", Text(modules::spins), &["fuel"]) },
    case(&[3], "module: 4 GiB of memory", Text(modules::grows), ENDED),
    case(&[7], "module: a host call at the end of the stack", Text(modules::recurses), &["stack"]),
    Case {
        folder: Some(one_file),
        ..case(&[10, 37], "module: a flood of open files", Text(modules::opens), &["handles"])
    },
    case(&[11], "module: 2^29 buffers", Text(|| modules::hands_over_buffers(1 << 29)), &["trap"]),
    hung(&[11], "module: buffers as many as there is room for", Text(|| modules::hands_over_buffers(200_000))),
    case(&[11], "module: a buffer that reaches out of its memory", Text(modules::reaches_out), &["trap"]),
    case(&[12], "module: 2 MiB of random bytes", Text(modules::asks_for_random_bytes), &["trap"]),
    hung(&[14], "module: sleeping an hour", Text(|| modules::sleeps(3_600_000_000_000))),
    hung(&[14], "module: sleeping as long as can be said", Text(|| modules::sleeps(-1))),
    Case {
        deadline: 2,
        at_once: 250,
        rounds: [400, 2],
        ..hung(&[15], "module: time-outs that drop a call midway", Text(|| modules::sleeps(3_600_000_000_000)))
    },
    hung(&[16], "module: polling what is ready", Text(modules::polls)),
    Case {
        folder: Some(fifo),
        says: "ok",
        ..case(&[17], "module: opening a FIFO", Text(modules::opens_a_fifo), &["ok"])
    },
    Case { folder: Some(many_files), ..hung(&[36], "module: listing a folder for ever", Text(modules::lists)) },
    case(&[20], "module: endless standard output", Text(|| modules::floods(1)), &["output-limit"]),
    case(&[20], "module: endless standard error", Text(|| modules::floods(2)), &["output-limit"]),
    hung(&[1], "exceptions: throwing and catching for ever", Text(throwing::throws)),
    hung(&[1], "exceptions: rethrowing one for ever", Text(throwing::rethrows)),
    hung(&[1], "exceptions: unwinding a deep stack for ever", Text(throwing::throws_from_the_depth)),
    Case {
        limits: LITTLE_FUEL,
        ..case(&[1], "exceptions: throwing for ever on fuel", Text(throwing::throws), &["fuel"])
    },
    Case { limits: LITTLE_MEMORY, ..case(&[3], "exceptions: keeping them without end", Text(throwing::keeps), ENDED) },
    case(&[6], "exceptions: catching the end of the stack", Text(throwing::catches_the_end_of_the_stack), &["stack"]),
    case(&[], "exceptions: catching a trap", Text(throwing::catches_a_trap), &["trap"]),
    case(&[], "exceptions: one that nothing catches", Text(throwing::throws_uncaught), &["trap"]),
    Case { folder: Some(|_| ()), ..case(&[35], "module: a file of a tebibyte", Text(|| modules::fills(false)), QUOTA) },
    Case { folder: Some(|_| ()), ..case(&[35], "module: folders without end", Text(|| modules::fills(true)), QUOTA) },
];

const FUEL: &str = r#"{"fuel": 10000000}"#;
/// Fuel for thousands of exceptions: each takes far longer than other instructions.
const LITTLE_FUEL: &str = r#"{"fuel": 100000}"#;
const LITTLE_MEMORY: &str = r#"{"memoryMb": 32}"#;
const QUOTA: &[&str] = &["quota"];

fn one_file(folder: &Path) {
    std::fs::write(folder.join("f"), "x").expect("a file");
}

fn many_files(folder: &Path) {
    (0..1500).for_each(|number| std::fs::write(folder.join(number.to_string()), "").expect("a file"));
}

fn fifo(folder: &Path) {
    let made = std::process::Command::new("mkfifo").arg(folder.join("pipe")).status();
    assert!(made.expect("`mkfifo` runs").success());
}

impl Case {
    pub(crate) fn named(name: &str) -> &'static Self {
        CASES.iter().find(|case| case.name == name).expect("a case")
    }

    /// `true` if its calls must be stopped at their deadline.
    pub(crate) fn hangs(&self) -> bool {
        self.ends == HUNG
    }

    /// Its manifest entry, as the tool `victim`.
    pub(crate) fn entry(&self) -> Value {
        let mut entry = json!({
            "name": "victim",
            "command": ["./tools/bin/victim"],
            "limits": serde_json::from_str::<Value>(self.limits).expect("JSON"),
            "interface": {"timeout_ms": self.deadline},
        });
        if self.folder.is_some() {
            entry["capabilities"] = json!({"files": {"write": ["work"]}});
        }
        entry
    }
}
