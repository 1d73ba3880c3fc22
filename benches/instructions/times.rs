//! Times of a start: one `toolcrib call` with a warm cache and manifests of several sizes, beside an empty program and an
//! interpreter that does nothing. All take turns in one run, so that another load of the machine falls on each.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::built::TOOLCRIB;
use super::counted::Workload;

/// Argument that measures times in place of instructions. A number of rounds may follow, and `--` with another command.
pub(crate) const FLAG: &str = "--times";
/// Rounds without a number.
const ROUNDS: usize = 200;
/// Numbers of tools in the manifests.
const TOOLS: [usize; 3] = [1, 21, 101];
/// Program that counts system calls, if it is installed.
const TRACER: &str = "strace";
/// Field with the page faults of ended children, behind the name of the program in `/proc/self/stat`.
const CHILD_FAULTS: usize = 8;

/// Command that is started in each round.
struct Program {
    name: String,
    words: Vec<String>,
    home: PathBuf,
    times: Vec<Duration>,
    faults: Option<u64>,
}

/// Measures and prints the table. `arguments` are those behind the flag: a number of rounds, and a command behind `--`.
pub(crate) fn measure(arguments: &[String]) {
    let rounds = arguments.first().filter(|rounds| !rounds.starts_with('-'));
    let rounds = rounds.map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"));
    // Cargo adds an argument at the end.
    let own = arguments.strip_suffix(&["--bench".to_owned()]).unwrap_or(arguments);
    let other = own.iter().position(|argument| argument == "--").map(|at| &own[at + 1..]);
    let folder = TempDir::new().expect("a folder");
    let mut programs = vec![Program::new("empty program", vec![empty(folder.path())], folder.path())];
    if let Some(python) = python() {
        programs.push(Program::new("python3 -c pass", vec![python, "-c".into(), "pass".into()], folder.path()));
    }
    for tools in TOOLS {
        let workload = Workload::in_folder(&folder.path().join(tools.to_string()), tools);
        let words = [vec![TOOLCRIB.to_owned()], workload.command()].concat();
        let name = format!("toolcrib call, {tools} {}", if tools == 1 { "tool" } else { "tools" });
        programs.push(Program::new(&name, words, &workload.home()));
    }
    if let Some(words) = other.filter(|words| !words.is_empty()) {
        let name =
            Path::new(&words[0]).file_name().map_or_else(|| words[0].clone(), |name| name.to_string_lossy().into());
        programs.push(Program::new(&format!("other: {name}"), words.to_vec(), folder.path()));
    }
    // The first round warms the caches of the system and of the program.
    programs.iter_mut().for_each(Program::start);
    for _ in 0..rounds {
        programs.iter_mut().for_each(Program::measure);
    }
    println!("{rounds} rounds; ratios are those of the minima\n");
    println!("program                     min      median   × empty   page faults   system calls");
    let floor = programs[0].minimum();
    for program in &mut programs {
        program.print(floor);
    }
}

impl Program {
    fn new(name: &str, words: Vec<String>, home: &Path) -> Self {
        Self { name: name.to_owned(), words, home: home.to_owned(), times: Vec::new(), faults: None }
    }

    /// Returns `true` if a command succeeds.
    fn run(&self, words: &[String]) -> bool {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(&self.home).env_clear().env("HOME", &self.home);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    fn start(&mut self) {
        assert!(self.run(&self.words), "{:?} failed", self.words);
    }

    fn measure(&mut self) {
        let before = child_faults();
        let start = Instant::now();
        self.start();
        self.times.push(start.elapsed());
        self.faults = before.zip(child_faults()).map(|(before, after)| after - before);
    }

    fn minimum(&self) -> f64 {
        self.times.iter().min().map_or(f64::NAN, Duration::as_secs_f64)
    }

    /// Returns the number of system calls; `None` without the program that counts them, or where it may not.
    fn system_calls(&self) -> Option<u64> {
        let summary = self.home.join("summary");
        let options = [TRACER, "-f", "-c", "-o", summary.to_str()?].map(str::to_owned);
        if !self.run(&[&options[..], &self.words].concat()) {
            return None;
        }
        let text = fs::read_to_string(summary).ok()?;
        text.lines().find(|line| line.ends_with(" total"))?.split_whitespace().nth(3)?.parse().ok()
    }

    fn print(&mut self, floor: f64) {
        self.times.sort();
        let [minimum, median] = [self.minimum(), self.times[self.times.len() / 2].as_secs_f64()];
        let number = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
        println!(
            "{:24} {:6.2} ms {:8.2} ms {:9.2} {:>13} {:>14}",
            self.name,
            minimum * 1e3,
            median * 1e3,
            minimum / floor,
            number(self.faults),
            number(self.system_calls()),
        );
    }
}

/// Compiles an empty program, and returns its path.
fn empty(folder: &Path) -> String {
    let (source, program) = (folder.join("empty.rs"), folder.join("empty"));
    fs::write(&source, "fn main() {}\n").expect("a source");
    let built = Command::new("rustc").args(["-O", "--edition=2024", "-o"]).arg(&program).arg(&source).status();
    assert!(built.expect("rustc runs").success());
    program.display().to_string()
}

/// Returns the path of Python itself: its name may belong to a script that looks for it.
fn python() -> Option<String> {
    let found = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
    let path = String::from_utf8(found.stdout).ok()?.trim().to_owned();
    (found.status.success() && !path.is_empty()).then_some(path)
}

/// Returns the page faults of the ended children of this process that needed no disk; `None` where the system does not tell.
fn child_faults() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(CHILD_FAULTS)?.parse().ok()
}
