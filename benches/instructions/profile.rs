//! Flame graph of a call through the whole pipeline with its record, and counts per call: instructions, allocations, system
//! calls and waits for locks. `perf` samples, `inferno` draws, `valgrind` and `strace` count; `.ci/profile` installs what is
//! missing.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use tempfile::TempDir;

use super::counted::Workload;
use super::{CALLS, Counter, this_program};

/// Argument that draws the profile in place of counting for the check.
pub(crate) const FLAG: &str = "--profile";
/// Calls that are sampled, and samples in a second of the processor.
const SAMPLED_CALLS: u64 = 120_000;
const FREQUENCY: &str = "--freq=997";
/// The future of a call needs much of the stack: as much as `perf` copies of it.
const STACKS: &str = "--call-graph=dwarf,65528";
/// Frame below the code of a call; the frames below it are the same in every sample.
const ROOT: &str = "current_thread::Context::enter";
/// First frames on the stack of a guest, and the frame that is drawn below them.
const GUEST_ROOTS: [&str; 4] = ["wasm[", "component-trampolines", "wasmtime_internal_fiber", "wasmtime_builtin"];
const GUEST: &str = "on the stack of the guest";
/// Frames of fewer samples than this share are left out, in percent of all.
const MIN_WIDTH: f64 = 0.4;
/// Frames of futures and tasks around the code of a call.
const SKIPPED: [&str; 4] = ["core::pin::Pin", "core::future", "catch_unwind", "core::ops::function"];
/// Maximum bytes of the picture in the book.
const MAX_PICTURE: usize = 300_000;

/// Draws the picture and replaces the counts in the page of the book.
pub(crate) fn run(counter: &Counter) {
    let folder = TempDir::new().expect("a folder");
    let picture = picture(folder.path());
    assert!(picture.len() < MAX_PICTURE, "the picture has {} bytes", picture.len());
    let counts = counts(counter, folder.path());
    println!("{counts}");
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src");
    fs::create_dir_all(book.join("profile")).expect("a folder");
    fs::write(book.join("profile/call.svg"), picture).expect("the picture is written");
    let page = book.join("profile.md");
    let text = fs::read_to_string(&page).expect("the page");
    let (begin, end) = ("<!-- counts -->\n", "<!-- end of counts -->");
    let (before, rest) = text.split_once(begin).expect("the page has the begin of the counts");
    let (_, after) = rest.split_once(end).expect("the page has their end");
    fs::write(page, format!("{before}{begin}{counts}{end}{after}")).expect("the page is written");
}

/// Samples calls and draws their stacks.
fn picture(folder: &Path) -> String {
    let workload = Workload::in_folder(&folder.join("sampled"), 1);
    output(Command::new(this_program()).args(workload.arguments(1)), None);
    let data = folder.join("perf.data");
    let mut record = Command::new("perf");
    record.args(["record", "--quiet", "--event=cpu-clock:u", FREQUENCY, STACKS, "--output"]).arg(&data);
    output(record.arg("--").arg(this_program()).args(workload.arguments(SAMPLED_CALLS)), None);
    let samples = output(Command::new("perf").args(["script", "--no-inline", "--force", "--input"]).arg(&data), None);
    let stacks = output(Command::new("inferno-collapse-perf").arg("--quiet"), Some(&samples));
    let narrowed = narrow(&String::from_utf8_lossy(&stacks));
    let title = "One call through the pipeline, with its record";
    let mut draw = Command::new("inferno-flamegraph");
    draw.args(["--title", title, "--countname", "ns", "--width", "1180", "--minwidth", "0.4", "--hash", "--inverted"]);
    String::from_utf8(output(&mut draw, Some(narrowed.as_bytes()))).expect("text")
}

/// Cuts each stack to the frames from the call on, shortens their names, and leaves out frames of few samples.
fn narrow(stacks: &str) -> String {
    let mut all: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for line in stacks.lines() {
        let Some((stack, count)) = line.rsplit_once(' ') else { continue };
        let frames: Vec<&str> = stack.split(';').collect();
        let Some(frames) = of_call(&frames) else { continue };
        *all.entry(frames).or_default() += count.parse::<u64>().unwrap_or(0);
    }
    let total: u64 = all.values().sum();
    let least = (total as f64 * MIN_WIDTH / 100.0) as u64;
    // Samples of every beginning of a stack.
    let mut widths: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for (frames, count) in &all {
        (1..=frames.len()).for_each(|end| *widths.entry(frames[..end].to_vec()).or_default() += count);
    }
    let mut kept: BTreeMap<String, u64> = BTreeMap::new();
    for (frames, count) in &all {
        let wide = (1..=frames.len()).take_while(|end| widths[&frames[..*end]] >= least).last().unwrap_or(1);
        *kept.entry(frames[..wide].join(";")).or_default() += count;
    }
    kept.into_iter().map(|(stack, count)| format!("{stack} {count}\n")).collect()
}

/// Frames of a stack that belong to a call, with short names; `None` if the sample is from outside of all calls.
fn of_call(frames: &[&str]) -> Option<Vec<String>> {
    // The first frame is the name of the process.
    let is_guest = frames.get(1).is_some_and(|frame| GUEST_ROOTS.iter().any(|root| frame.starts_with(root)));
    let from = match is_guest {
        true => 1,
        false => frames.iter().position(|frame| frame.contains(ROOT))? + 1,
    };
    let names = frames[from..].iter().filter(|frame| !SKIPPED.iter().any(|skipped| frame.contains(skipped)));
    let root = ["a call".to_owned()].into_iter().chain(is_guest.then(|| GUEST.to_owned()));
    let mut names: Vec<String> = root.chain(names.map(|frame| short(frame))).collect();
    // The parts of one function, and the functions of the guest, have one name.
    names.dedup();
    Some(names)
}

/// Shortens the name of a frame to its last words, without generic parameters.
fn short(frame: &str) -> String {
    if frame.starts_with("wasm[") {
        return "code of the guest".to_owned();
    }
    if frame.starts_with("component-trampolines") {
        return "call of an import".to_owned();
    }
    let frame = frame.replace("::{{closure}}", "");
    // `<Type as Trait>::function`
    let of_trait =
        frame.strip_prefix('<').and_then(|rest| Some((rest.split_once(" as ")?.0, rest.rsplit_once("::")?.1)));
    let frame = of_trait.map_or_else(|| frame.clone(), |(subject, function)| format!("{subject}::{function}"));
    let (mut name, mut depth) = (String::new(), 0_usize);
    for letter in frame.chars() {
        match letter {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => name.push(letter),
            _ => {}
        }
    }
    let words: Vec<&str> = name.split("::").filter(|word| !word.is_empty()).collect();
    words[words.len().saturating_sub(3)..].join("::")
}

/// Counts per call, as a table in Markdown.
fn counts(counter: &Counter, folder: &Path) -> String {
    let workload = Workload::in_folder(&folder.join("counted"), 1);
    output(Command::new(this_program()).args(workload.arguments(1)), None);
    // The counter shows another processor, for which code is compiled once.
    heap(&workload, 1);
    let per_call = |count: &dyn Fn(u64) -> [u64; 2]| {
        let [few, many] = CALLS.map(count);
        // A thread that happens to wait differs between the two counts.
        [0, 1].map(|at| many[at].saturating_sub(few[at]) as f64 / (CALLS[1] - CALLS[0]) as f64)
    };
    let [allocations, bytes] = per_call(&|calls| heap(&workload, calls));
    let [calls, locks] = per_call(&|calls| system_calls(&workload, folder, calls));
    let instructions = counter.of_call() / 1000;
    format!(
        "| of one call | |\n|---|---|\n| instructions | {instructions} thousand |\n| allocations | {allocations:.0} |\n\
         | bytes allocated | {bytes:.0} |\n| system calls | {calls:.1} |\n| of these, waits for locks and wake-ups (`futex`) \
         | {locks:.1} |\n"
    )
}

/// Allocations of a process and their bytes.
fn heap(workload: &Workload, calls: u64) -> [u64; 2] {
    let mut command = Command::new(super::COUNTER);
    command.args(["--tool=memcheck", "--leak-check=no", "--undef-value-errors=no"]).arg(this_program());
    let output = command.args(workload.arguments(calls)).output().expect("the counter starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    let line = errors.lines().find_map(|line| line.split_once("total heap usage: ")).expect("the usage of the heap").1;
    let number = |at: usize| {
        let word = line.split(' ').nth(at).expect("a number");
        word.replace(',', "").parse().expect("a number")
    };
    // `1,234 allocs, 1,200 frees, 567 bytes allocated`
    [number(0), number(4)]
}

/// Counts of all system calls of a process, and of its lock calls.
fn system_calls(workload: &Workload, folder: &Path, calls: u64) -> [u64; 2] {
    let summary = folder.join("summary");
    let mut command = Command::new("strace");
    command.args(["-f", "-c", "-U", "calls,name", "-o"]).arg(&summary).arg(this_program());
    output(command.args(workload.arguments(calls)), None);
    let text = fs::read_to_string(summary).expect("a summary");
    let count = |name: &str| {
        let line = text.lines().find(|line| line.split_whitespace().nth(1) == Some(name));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok())
    };
    // A program without locks that wait has no line of them.
    [count("total").expect("the number of all"), count("futex").unwrap_or(0)]
}

/// Runs a command with this input, and returns its output.
fn output(command: &mut Command, input: Option<&[u8]>) -> Vec<u8> {
    let program = command.get_program().to_string_lossy().into_owned();
    let stdin = input.map_or_else(Stdio::null, |_| Stdio::piped());
    let started = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child =
        started.unwrap_or_else(|error| panic!("`{program}`: {error}; `.ci/profile` installs what it needs"));
    let writer = child.stdin.take().zip(input.map(<[u8]>::to_vec));
    let writer = writer.map(|(mut pipe, input)| thread::spawn(move || pipe.write_all(&input)));
    let ended = child.wait_with_output().expect("it ends");
    // A program that reads less than all has failed.
    drop(writer.map(thread::JoinHandle::join));
    assert!(ended.status.success(), "`{program}`: {}", String::from_utf8_lossy(&ended.stderr));
    ended.stdout
}
