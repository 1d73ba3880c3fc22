//! Driver of fuzzing: libFuzzer generates inputs, and the targets must survive them. Each target has its own process,
//! because a finding ends it. Under `rustc.sh` beside this file, libFuzzer sees the branches that an input takes and
//! searches for others; without it, it only varies the saved inputs.
//!
//! The arguments after the target's name are libFuzzer's flags, files and folders. New inputs are saved in
//! `target/fuzz/corpus/TARGET`; an input that ends a process is saved in `target/fuzz/findings/TARGET`. The input of a
//! fixed finding belongs in the target's folder in `tests/fuzz/corpus`, so that `cargo test` replays it from then on.

use std::cell::RefCell;
use std::env;
use std::ffi::{CString, c_char, c_int};
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{self, Command, ExitCode, Stdio};

// Links libFuzzer itself; only the entry below is named.
use libfuzzer_sys as _;

use super::target::{self, Act, Target};

/// Variable that makes a process fuzz, with the folder of its target.
const FOLDER: &str = "TOOLCRIB_FUZZ_FOLDER";
/// Maximum memory and time of one input, unless the flags set them.
const DEFAULTS: [&str; 4] = ["-rss_limit_mb=2048", "-timeout=20", "-print_final_stats=1", "-use_value_profile=1"];

/// Runs the program of these targets.
pub(crate) fn main(all: &[Target]) -> ExitCode {
    let mut given: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let chosen = (!given.is_empty()).then(|| given.remove(0));
    let target = |name: &str| all.iter().find(|target| target.name == name);
    match chosen.as_deref() {
        None => replay(all),
        Some("all") => report(&all.iter().map(|target| fuzz(target, &given)).collect::<Vec<_>>()),
        Some(name) => match (target(name), env::var_os(FOLDER)) {
            (Some(target), Some(folder)) => run(target, Path::new(&folder), &given),
            (Some(target), None) => report(&[fuzz(target, &given)]),
            (None, _) => {
                let names: Vec<_> = all.iter().map(|target| target.name).collect();
                println!("no target `{name}`; there are `all`, {}", names.join(", "));
                ExitCode::from(2)
            }
        },
    }
}

/// Replays the saved inputs once.
fn replay(all: &[Target]) -> ExitCode {
    for target in all {
        let folder = scratch();
        let mut act = (target.open)(folder.path());
        let saved = target::inputs(target.corpus);
        saved.iter().for_each(|(_, input)| act(input));
        println!("{:10} {:4} saved inputs survived", target.name, saved.len());
    }
    ExitCode::SUCCESS
}

/// Outcome of fuzzing one target.
struct Run {
    target: &'static str,
    sound: bool,
    /// Figures of libFuzzer: inputs tried, edges covered, inputs worth keeping, peak megabytes.
    runs: u64,
    edges: u64,
    kept: u64,
    peak: u64,
    guided: bool,
}

/// Fuzzes a target in its own process, and shows its output if there is a finding.
fn fuzz(target: &Target, flags: &[String]) -> Run {
    let folder = scratch();
    let mut child = Command::new(env::current_exe().expect("this program"))
        .arg(target.name)
        .args(flags)
        .env(FOLDER, folder.path())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut ended = Run { target: target.name, sound: false, runs: 0, edges: 0, kept: 0, peak: 0, guided: false };
    let mut output = Vec::new();
    for line in BufReader::new(child.stderr.take().expect("a pipe")).split(b'\n').map_while(io::Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        ended.note(&line);
        output.push(line);
    }
    ended.sound = child.wait().expect("it ends").success();
    if !ended.sound {
        println!("{}: a finding\n{}", target.name, output[output.len().saturating_sub(60)..].join("\n"));
    }
    ended
}

impl Run {
    fn note(&mut self, line: &str) {
        let after = |word: &str| {
            let rest = line.split(word).nth(1)?.trim_start();
            rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse::<u64>().ok()
        };
        self.guided |= line.contains("inline 8-bit counters");
        self.runs = after("stat::number_of_executed_units:").unwrap_or(self.runs);
        self.peak = after("stat::peak_rss_mb:").unwrap_or(self.peak);
        self.edges = after(" cov: ").unwrap_or(self.edges);
        self.kept = after(" corp: ").unwrap_or(self.kept);
    }
}

fn report(all: &[Run]) -> ExitCode {
    println!("{:10} {:>10} {:>8} {:>7} {:>8}", "target", "runs", "edges", "inputs", "peak MiB");
    for Run { target, sound, runs, edges, kept, peak, guided } in all {
        let end = match (sound, guided) {
            (false, _) => "  A FINDING",
            (true, false) => "  blind: set RUSTC_WORKSPACE_WRAPPER to benches/fuzz/rustc.sh",
            (true, true) => "",
        };
        println!("{target:10} {runs:10} {edges:8} {kept:7} {peak:8}{end}");
    }
    if all.iter().all(|ended| ended.sound) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

thread_local! {
    /// Target of this process. libFuzzer calls it on the thread on which it was started.
    static ACT: RefCell<Option<Act>> = const { RefCell::new(None) };
}

/// Fuzzes a target in this process.
fn run(target: &Target, folder: &Path, given: &[String]) -> ExitCode {
    // A panic anywhere is a finding, even if it would be caught.
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        default_hook(panic);
        process::abort();
    }));
    ACT.set(Some((target.open)(folder)));
    let [corpus, findings] = ["corpus", "findings"].map(|what| {
        let folder = place().join(what).join(target.name);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    });
    let mut arguments = vec!["fuzz".to_owned(), format!("-artifact_prefix={}/", findings.display())];
    arguments.extend(DEFAULTS.map(str::to_owned));
    arguments.extend(given.iter().cloned());
    if given.iter().all(|argument| argument.starts_with('-')) {
        // New inputs go to the first folder.
        arguments.extend([corpus, target::saved(target.corpus)].map(|folder| folder.display().to_string()));
    }
    drive(arguments)
}

/// Passes control of the process to libFuzzer.
#[expect(unsafe_code, reason = "libFuzzer is C++: its entry, and the function that it calls for each input")]
fn drive(arguments: Vec<String>) -> ExitCode {
    unsafe extern "C" {
        fn LLVMFuzzerRunDriver(
            count: *mut c_int,
            arguments: *mut *mut *mut c_char,
            act: extern "C" fn(*const u8, usize) -> c_int,
        ) -> c_int;
    }
    extern "C" fn act(data: *const u8, size: usize) -> c_int {
        // SAFETY: libFuzzer passes the bytes of one input, which stay valid while this runs; the pointer of an empty
        // input may be null.
        let input = if size == 0 { &[] } else { unsafe { std::slice::from_raw_parts(data, size) } };
        ACT.with_borrow_mut(|act| act.as_mut().expect("a target")(input));
        0
    }
    let texts = arguments.into_iter().map(|text| CString::new(text).expect("no NUL in an argument").into_raw());
    let mut texts: Vec<*mut c_char> = texts.collect();
    let mut count = c_int::try_from(texts.len()).expect("few arguments");
    texts.push(std::ptr::null_mut());
    let mut pointer = texts.as_mut_ptr();
    // SAFETY: the arguments have the form that a C program gets, and outlive the call.
    let code = unsafe { LLVMFuzzerRunDriver(&raw mut count, &raw mut pointer, act) };
    if code == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Folder of saved inputs and findings, in the target folder.
fn place() -> PathBuf {
    let program = env::current_exe().expect("this program");
    program.ancestors().nth(3).expect("it lies three folders down").join("fuzz")
}

/// Temporary folder for a target, removed afterwards.
fn scratch() -> tempfile::TempDir {
    fs::create_dir_all(place()).expect("a folder");
    tempfile::Builder::new().prefix("scratch-").tempdir_in(place()).expect("a folder")
}
