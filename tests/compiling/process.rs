//! Compilation in a separate process: stopped at its limits of time and memory, ended when no caller waits, and without
//! effect on the waiting process except the error.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use toolcrib::compiler::{CompileError, Compiler, Job};
use toolcrib::{Outcome, Runtime};

use super::bytes::slow;
use super::{SMALL, called, compiled, crib, outcome};
use crate::crib::{Crib, Ran, guest, peak_memory};

/// Maximum delay on a busy machine before a test reports a hang.
const BOUND: Duration = Duration::from_secs(30);

/// Program of eight megabytes that takes a compiler many seconds, and many times its own size.
fn endless() -> Vec<u8> {
    slow(4000, 100)
}

/// Processes that compile within this much memory; each test recognizes its own by the amount.
fn compilers(memory: usize) -> Vec<u32> {
    let wanted = format!("compile-worker\0--seconds\0{{}}\0--memory\0{memory}\0");
    let (before, after) = wanted.split_once("{}").unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ours = processes.filter_map(|process| {
        let id = process.file_name().to_str()?.parse().ok()?;
        let line = fs::read_to_string(process.path().join("cmdline")).ok()?;
        (line.contains(before) && line.ends_with(after)).then_some(id)
    });
    ours.collect()
}

/// Waits until one compiles, or none.
fn until_compiling(memory: usize, wanted: bool) -> u32 {
    until_another(memory, wanted, None)
}

/// The same, except for one process that is about to end.
fn until_another(memory: usize, wanted: bool, known: Option<u32>) -> u32 {
    let started = Instant::now();
    loop {
        let mut found = compilers(memory);
        found.retain(|found| Some(*found) != known);
        if found.is_empty() != wanted {
            return found.first().copied().unwrap_or_default();
        }
        assert!(started.elapsed() < BOUND, "compiling: {found:?}, wanted: {wanted}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn started(crib: &Crib, memory: usize) -> Child {
    let mut command = crib.toolcrib(&["call", "n", "{}", "--compile-memory", &memory.to_string()]);
    command.arg("--cache-dir").arg(crib.path("cache"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn a_program_that_takes_too_long_to_compile_is_stopped_and_named() {
    let memory = (2 << 30) + 4096;
    let crib = crib(&endless());
    let started = Instant::now();
    let (outcome, output) =
        called(&crib, &["--set", "limits.compile_timeout=700ms", "--compile-memory", &memory.to_string()]);
    assert_eq!(outcome, "bad-component", "{output}");
    assert_eq!(
        output,
        "compilation took more than 1 s of processor time; raise the limit with `--set limits.compile_timeout=TIME`"
    );
    assert!(started.elapsed() < BOUND, "{:?}", started.elapsed());
    assert_eq!(compilers(memory), [0; 0], "its process is gone");
    assert_eq!(compiled(&crib.path("cache")).len(), 0, "nothing of it is kept");
    assert_eq!(crib.records().len(), 1);
}

/// A process that other work keeps from the processor uses none of its processor time.
#[test]
fn a_compilation_that_gets_no_processor_is_stopped_and_is_no_fault_of_the_program() {
    let memory = (2 << 30) + 28_672;
    let crib = crib(&endless());
    let mut command =
        crib.toolcrib(&["call", "n", "{}", "--set=limits.compile_timeout=1s", "--compile-memory", &memory.to_string()]);
    command.arg("--cache-dir").arg(crib.path("cache")).stdin(Stdio::null()).stdout(Stdio::piped());
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    // The call tries once more by itself: the first process ends at once, the second gets no processor.
    let first = until_compiling(memory, true);
    kill_process(Pid::from_raw(first.cast_signed()).unwrap(), Signal::KILL).unwrap();
    let second = until_another(memory, true, Some(first));
    kill_process(Pid::from_raw(second.cast_signed()).unwrap(), Signal::STOP).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert!(ran.stderr.contains("compilation did not end within 20 s: the machine is overloaded"), "{ran:?}");
    assert_eq!(compilers(memory), [0; 0], "its process is gone");
    assert_eq!(compiled(&crib.path("cache")).len(), 0, "nothing of it is kept");
}

#[test]
fn a_program_that_takes_too_much_memory_to_compile_is_stopped_and_the_host_stays_small() {
    let memory = 64 << 20;
    let crib = crib(&endless());
    let mut child = started(&crib, memory);
    let (mut host, mut compiler) = (0, 0);
    while child.try_wait().unwrap().is_none() {
        host = host.max(peak_memory(child.id()).unwrap_or_default());
        compiler = compilers(memory).iter().filter_map(|id| peak_memory(*id)).fold(compiler, u64::max);
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("compilation exceeded 64 MiB of memory"), "{told}");
    assert_eq!(crib.records()[0]["outcome"], "bad-component");
    assert!(host > 0 && host < 256 << 20, "the host held {host} bytes");
    // Its writable memory is limited; the code of the program itself comes on top.
    assert!(compiler > 0 && compiler < memory as u64 + (128 << 20), "the compiler held {compiler} bytes");
    assert_eq!(compilers(memory), [0; 0], "its process is gone");
    assert_eq!(compiled(&crib.path("cache")).len(), 0, "nothing of it is kept");
}

#[test]
fn no_process_is_left_when_the_caller_is_interrupted_or_killed() {
    for (memory, sent, code) in [((2 << 30) + 8192, Signal::INT, Some(130)), ((2 << 30) + 12_288, Signal::KILL, None)] {
        let crib = crib(&endless());
        let mut child = started(&crib, memory);
        until_compiling(memory, true);
        signal(&child, sent);
        let since = Instant::now();
        assert_eq!(child.wait().unwrap().code(), code);
        until_compiling(memory, false);
        assert!(since.elapsed() < BOUND, "{:?}", since.elapsed());
        assert_eq!(compiled(&crib.path("cache")).len(), 0, "nothing of it is kept");
    }
}

#[test]
fn a_compiler_that_is_killed_is_the_systems_fault_and_the_next_call_is_well() {
    let memory = (2 << 30) + 16_384;
    let crib = crib(&endless());
    let child = started(&crib, memory);
    let compiler = until_compiling(memory, true);
    kill_process(Pid::from_raw(compiler.cast_signed()).unwrap(), Signal::KILL).unwrap();
    // The call tries once more by itself, for its own answer.
    let again = until_another(memory, true, Some(compiler));
    kill_process(Pid::from_raw(again.cast_signed()).unwrap(), Signal::KILL).unwrap();
    let output = child.wait_with_output().unwrap();
    let told = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(told[0].contains("prepare the tool's program right now; the call itself is not at fault"), "{told:?}");
    assert!(!told[0].contains("signal"), "how the system fails is not for the model: {told:?}");
    assert!(told[1].contains("the compiler process ended early: signal: 9"), "{told:?}");
    fs::write(crib.path("tools/bin/n.wasm"), wat::parse_str(SMALL).unwrap()).unwrap();
    assert_eq!(called(&crib, &[]).0, "ok");
}

#[test]
fn the_compiler_has_no_files_no_variables_and_its_own_limits() {
    let memory = (2 << 30) + 20_480;
    let crib = crib(&endless());
    let mut child = started(&crib, memory);
    let compiler = until_compiling(memory, true);
    let of =
        |file: &str| fs::read(format!("/proc/{compiler}/{file}")).map(|it| String::from_utf8_lossy(&it).into_owned());
    // Setting its limits is its first action; a moment later they apply.
    let since = Instant::now();
    let limits = loop {
        let limits = of("limits").unwrap();
        if limits.lines().any(|line| line.starts_with("Max data size") && line.contains(&memory.to_string())) {
            break limits;
        }
        assert!(since.elapsed() < BOUND, "{limits}");
    };
    let values = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        let values = line[name.len()..].split_whitespace().take(2).map(|value| value.parse().unwrap_or(u64::MAX));
        <[u64; 2]>::try_from(values.collect::<Vec<_>>()).unwrap()
    };
    assert_eq!([values("Max core file size"), values("Max file size")], [[0; 2]; 2]);
    let [output, killed] = values("Max cpu time");
    assert!(output < killed && killed < u64::MAX, "{output} {killed}");
    assert!(
        !limits.lines().any(|line| line.starts_with("Max address space") && line.contains("unlimited")),
        "{limits}"
    );
    let variables = of("environ").unwrap();
    assert!(variables.starts_with("RAYON_NUM_THREADS=") && variables.matches('=').count() == 1, "{variables:?}");
    assert_eq!(fs::read_link(format!("/proc/{compiler}/cwd")).unwrap().to_str(), Some("/"));
    let files = fs::read_dir(format!("/proc/{compiler}/fd")).unwrap();
    let files: Vec<_> = files.flatten().filter_map(|file| fs::read_link(file.path()).ok()).collect();
    let plain =
        |file: &&std::path::PathBuf| !file.to_string_lossy().starts_with("pipe:") && !file.ends_with("dev/null");
    assert_eq!(files.iter().filter(plain).count(), 0, "{files:?}");
    // Every descriptor number of the limit is in use, so that no other file can be opened.
    let [most, for_good] = values("Max open files");
    assert!(most == for_good && most <= files.len() as u64, "{most} {for_good} {files:?}");
    for number in 0..most {
        assert!(fs::symlink_metadata(format!("/proc/{compiler}/fd/{number}")).is_ok(), "{number} is free");
    }
    // It starts its worker threads all the same: beside the first, the one that waits for the other side.
    let since = Instant::now();
    while fs::read_dir(format!("/proc/{compiler}/task")).unwrap().count() < 3 {
        assert!(since.elapsed() < BOUND, "no thread compiles");
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, Signal::KILL);
    child.wait().unwrap();
}

/// Compiler that keeps its job, as another process would receive it.
#[derive(Default)]
struct Keeping(Mutex<Vec<u8>>);

impl Compiler for Keeping {
    fn compile(&self, job: &Job<'_>) -> Result<Vec<u8>, CompileError> {
        job.send(&mut *self.0.lock().unwrap()).unwrap();
        Err(CompileError::Program("kept".to_owned()))
    }
}

#[test]
fn a_worker_that_used_up_its_processor_time_says_so() {
    let crib = crib(&endless());
    let keeping = Arc::new(Keeping::default());
    let runtime = Runtime::builder(toolcrib::Audit::off())
        .trusted_source(crib.path("tools.json"))
        .compiler(keeping.clone())
        .build()
        .unwrap();
    assert_eq!(outcome(&runtime), Outcome::BadComponent);
    let mut worker = crib.toolcrib(&["compile-worker", "--seconds", "1", "--memory", "4000000000"]);
    let mut worker = worker.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = worker.stdin.take().unwrap();
    input.write_all(&keeping.0.lock().unwrap()).unwrap();
    let status = worker.wait().unwrap();
    assert_eq!(status.signal(), Some(Signal::XCPU.as_raw()), "a plain kill would not tell why: {status}");
    drop(input);
}

#[test]
fn what_ships_compiles_well_within_a_tenth_of_the_memory() {
    let crib = Crib::with_guests(&["echo"]);
    let cache = crib.path("cache");
    let flags = ["--set", "limits.compile_memory=200MiB", "--cache-dir", cache.to_str().unwrap()];
    assert_eq!(crib.outcome("echo", &json!({"a": 1}), &flags), "ok");
    let fuelled = [flags.as_slice(), &["--set", "limits.fuel=1000000000"]].concat();
    let line = crib.call("echo", &json!({"a": 1}), &fuelled);
    assert!(line["receipt"]["fuel"].as_u64().is_some_and(|fuel| fuel > 1000), "the code counts fuel: {line}");
    assert_eq!(compiled(&cache).len(), 2);
    assert!(guest("echo").exists());
}

#[test]
fn the_worker_refuses_what_is_no_job() {
    let crib = Crib::new();
    let ran = crib.run(&["compile-worker", "--seconds", "5", "--memory", "1000000000"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("cannot read a job from standard input"), "{ran:?}");
    assert!(!crib.run(&["--help"]).stdout.contains("compile-worker"), "it is for no person");
}

#[test]
fn a_run_that_is_interrupted_while_its_tools_are_compiled_is_kept() {
    for (index, more) in [&[][..], &["--json"], &["-q"]].into_iter().enumerate() {
        let memory = (2 << 30) + 65_536 + 4096 * index;
        let crib = crib(&endless());
        fs::write(crib.path("script.json"), json!({"turns": [{"content": "done"}]}).to_string()).unwrap();
        let memory_text = memory.to_string();
        let args = ["run", "go", "--script", "script.json", "--compile-memory", &memory_text];
        let mut command = crib.toolcrib(&[&args[..], more].concat());
        command.arg("--cache-dir").arg(crib.path("cache"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        until_compiling(memory, true);
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        if !more.contains(&"-q") {
            let line = said.find(|line| line.contains("compiling")).expect("a line about the compilation");
            assert_eq!(line, "info: compiling n; 0 of 1 tool ready");
        }
        signal(&child, Signal::INT);
        let rest: Vec<String> = said.collect();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{rest:?}");
        let listed: Value = serde_json::from_str(&crib.run(&["runs", "list", "--json"]).stdout).unwrap();
        let id = listed[0]["id"].as_str().unwrap_or_else(|| panic!("no run is kept: {rest:?}"));
        assert_eq!((&listed[0]["prompt"], &listed[0]["state"]), (&json!("go"), &json!("interrupted")), "{listed}");
        let told = String::from_utf8(output.stdout).unwrap();
        if more == ["--json"] {
            let end: Value = serde_json::from_str(&told).unwrap_or_else(|error| panic!("{error}: {told}"));
            assert_eq!((&end["type"], &end["reason"], &end["run"]), (&json!("end"), &json!("interrupted"), &json!(id)));
        } else {
            let way = format!("run saved; continue: `toolcrib run --resume {id}`");
            assert!(told.is_empty() && rest.iter().any(|line| line.contains(&way)), "{told} {rest:?}");
        }
    }
}
