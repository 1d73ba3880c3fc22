//! `Crib`: a temporary folder with a manifest, programs and a home. Runs the built program there with an empty
//! environment.

#[path = "command_line.rs"]
mod command_line;
#[path = "nesting.rs"]
pub(crate) mod nesting;
#[path = "staged_calls.rs"]
pub(crate) mod staged_calls;

use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(crate) use command_line::line;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Path of the built program.
pub(crate) const TOOLCRIB: &str = env!("CARGO_BIN_EXE_toolcrib");

/// Target folder.
pub(crate) fn target() -> PathBuf {
    let profile = Path::new(TOOLCRIB).parent().expect("the program lies in a profile's folder");
    profile.parent().expect("a profile's folder lies in the target folder").to_path_buf()
}

/// Peak memory of a process of the program so far, in bytes. Until the system has started the program in it, a new process
/// shows the memory of the tests.
pub(crate) fn peak_memory(process: u32) -> Option<u64> {
    // Before the memory is read: the program and its memory take their place in the process together.
    let running = fs::read_link(format!("/proc/{process}/exe")).ok()?;
    if running != Path::new(TOOLCRIB).canonicalize().ok()? {
        return None;
    }
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim();
    Some(peak.strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

/// Path of a test guest, by the name of its file in `tests/guests/src/bin`.
pub(crate) fn guest(name: &str) -> PathBuf {
    toolcrib_test_programs::guest(name)
}

/// Creates a link to a file.
#[cfg(unix)]
pub(crate) fn link(target: &str, path: &Path) {
    std::os::unix::fs::symlink(target, path).expect("a link");
}

/// Creates a link to a file.
#[cfg(windows)]
pub(crate) fn link(target: &str, path: &Path) {
    std::os::windows::fs::symlink_file(target, path).expect("a link");
}

/// Takes the access to a folder away from other users.
#[cfg(unix)]
fn keep_private(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).expect("a folder of our own");
}

#[cfg(not(unix))]
fn keep_private(_: &Path) {}

/// Folder of the shipped tools.
pub(crate) fn toolbox() -> PathBuf {
    target().join("crib")
}

pub(crate) struct Crib {
    pub(crate) dir: TempDir,
    /// `true` if the crib's own manifest and settings are trusted.
    pub(crate) trusts: bool,
}

impl Crib {
    pub(crate) fn new() -> Self {
        let crib = Self { dir: TempDir::new().expect("a temporary folder"), trusts: true };
        for folder in ["tools/bin", "home", "work", "audit"] {
            fs::create_dir_all(crib.path(folder)).unwrap();
        }
        // Whatever the machine gives to new folders.
        keep_private(&crib.path("audit"));
        crib
    }

    /// Creates a crib with these guests, each a tool of its name that accepts any arguments.
    pub(crate) fn with_guests(guests: &[&str]) -> Self {
        let crib = Self::new();
        let tools = guests.iter().map(|name| crib.entry(name)).collect();
        crib.manifest(&json!({ "tools": Value::Array(tools) }));
        crib
    }

    /// Installs a guest, and returns its manifest entry.
    pub(crate) fn entry(&self, name: &str) -> Value {
        self.install(&guest(name), name);
        json!({ "name": name, "command": [format!("./tools/bin/{name}")] })
    }

    /// Copies a program to `tools/bin`.
    pub(crate) fn install(&self, program: &Path, name: &str) {
        fs::copy(program, self.path(format!("tools/bin/{name}.wasm"))).expect("the guest was built");
    }

    /// Compiles WebAssembly text to `tools/bin`.
    pub(crate) fn install_wat(&self, name: &str, text: &str) {
        let bytes = wat::parse_str(text).expect("valid text");
        fs::write(self.path(format!("tools/bin/{name}.wasm")), bytes).unwrap();
    }

    pub(crate) fn manifest(&self, manifest: &Value) {
        fs::write(self.path("tools.json"), manifest.to_string()).unwrap();
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Trusts the manifest and the settings of this crib as they are now, as `toolcrib trust` does.
    fn trust(&self) {
        let manifest = self.path("tools.json");
        let reviewed = toolcrib::policy::review(&manifest).ok().map(|review| (review.path, review.digest));
        let settings = self.path("toolcrib.toml").canonicalize().ok();
        let settings = settings.and_then(|path| {
            let digest = toolcrib::source::digest(&fs::read(&path).ok()?);
            Some((path, digest))
        });
        let record = |(path, digest): (PathBuf, String)| json!({ "path": path, "digest": digest, "given": "2026-01-31T12:00:00Z", "items": [] });
        let trusted: Vec<Value> = reviewed.into_iter().chain(settings).map(record).collect();
        let file = self.trusted_file();
        let text = json!({ "trusted": trusted }).to_string();
        // A program that runs may read the file at this moment.
        if fs::read_to_string(&file).ok().as_deref() != Some(&text) {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
    }

    /// File of the trusted paths.
    pub(crate) fn trusted_file(&self) -> PathBuf {
        self.path("home/.local/state/toolcrib/trusted.json")
    }

    /// Command of the program in this crib's folder; the crib's manifest and settings are trusted. All tests share the
    /// compile cache, because it is sealed.
    pub(crate) fn toolcrib(&self, args: &[&str]) -> Command {
        if self.trusts {
            self.trust();
        }
        let mut command = Command::new(TOOLCRIB);
        match nesting::command(args) {
            Some(from_program) => command.args(from_program),
            None => command.args(staged_calls::command(args)),
        };
        command
            .current_dir(self.dir.path())
            .env_clear()
            .env("HOME", self.path("home"))
            // The machine may have settings of its own.
            .env("TOOLCRIB_SYSTEM_CONFIG", self.path("home/etc/config.toml"))
            .env("TOOLCRIB_CACHE_DIR", target().join("test-cache"))
            .env("TOOLCRIB_AUDIT_DIR", self.path("audit"))
            .env("TOOLCRIB_RESULTS_DIR", self.path("results"))
            .env("TOOLCRIB_APPROVALS", self.path("approvals.json"))
            // The person who runs the tests has their own keyring.
            .env("TOOLCRIB_SECRETS_STORE", "file")
            .env("TOOLCRIB_SECRETS_FILE", self.path("secrets/secrets.enc"));
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(&mut self.toolcrib(args))
    }

    /// Calls a tool with `--json` and returns the printed line.
    pub(crate) fn call(&self, name: &str, arguments: &Value, flags: &[&str]) -> Value {
        let arguments = arguments.to_string();
        let mut args = vec!["call", name, &arguments, "--json"];
        args.extend(flags);
        let ran = self.run(&args);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }

    /// Outcome of a call.
    pub(crate) fn outcome(&self, name: &str, arguments: &Value, flags: &[&str]) -> String {
        self.call(name, arguments, flags)["receipt"]["outcome"].as_str().expect("a receipt").to_owned()
    }

    /// Files of the audit log, oldest first.
    pub(crate) fn logs(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("audit")).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|it| it == "log")).collect();
        files.sort();
        files
    }

    /// Records of the audit log, in the order of their files.
    pub(crate) fn records(&self) -> Vec<Value> {
        let files = self.logs();
        let text: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        let records =
            text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")));
        records.filter_map(nesting::without_program).collect()
    }
}

/// Waits until this many calls have started, by the `--records` that a program writes to a folder.
#[cfg(unix)]
pub(crate) fn until_started(records: &Path, calls: usize) {
    let since = std::time::Instant::now();
    let started = || {
        let progress = fs::read_to_string(records.join("progress.ndjson")).unwrap_or_default();
        progress.lines().filter(|line| line.contains("\"started\"")).count()
    };
    while started() < calls {
        assert!(since.elapsed().as_secs() < 120, "{} of {calls} calls have started", started());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Waits until the program has its handler for interrupts.
#[cfg(target_os = "linux")]
pub(crate) fn until_it_listens(process: u32) {
    let since = std::time::Instant::now();
    let caught = |line: &str| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok();
    loop {
        let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
        if status.lines().find_map(caught).is_some_and(|signals| signals & 2 != 0) {
            return;
        }
        assert!(since.elapsed().as_secs() < 120, "the program listens");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Output and exit code of the program.
pub(crate) struct Ran {
    /// Command line, where it is known.
    pub(crate) line: String,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl fmt::Debug for Ran {
    /// Shows what the program printed, without its command line, which may have what it must not repeat.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ran = formatter.debug_struct("Ran");
        ran.field("code", &self.code).field("stdout", &self.stdout).field("stderr", &self.stderr).finish()
    }
}

impl Ran {
    /// Runs a command of the program.
    pub(crate) fn of(command: &mut Command) -> Self {
        let outside = staged_calls::Outside::of(command);
        let output = command.output().expect("the program starts");
        outside.into_iter().for_each(|outside| outside.assert_unchanged(command));
        Self::left(command, output)
    }

    /// Runs a command of the program with a text on its standard input. A program that refuses its arguments does not read it.
    pub(crate) fn with_input(command: &mut Command, input: impl AsRef<[u8]>) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let _ = child.stdin.take().expect("a pipe").write_all(input.as_ref());
        let output = child.wait_with_output().expect("an end");
        Self::left(command, output)
    }

    fn left(command: &Command, output: Output) -> Self {
        let ran = Self { line: command_line::line(command), ..Self::from(output) };
        match nesting::Direct::of(command) {
            Some(direct) => direct.translated(ran),
            None => staged_calls::committed(command, ran),
        }
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            line: String::new(),
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}
