//! A crib of its own for each test: a folder with a manifest and programs, a home that is not the user's, and the built
//! program, run with nothing of the surroundings in its environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

/// The built program.
pub(crate) const TOOLCRIB: &str = env!("CARGO_BIN_EXE_toolcrib");

/// The folder of everything built.
pub(crate) fn target() -> PathBuf {
    let profile = Path::new(TOOLCRIB).parent().expect("the program lies in a profile's folder");
    profile.parent().expect("a profile's folder lies in the target folder").to_path_buf()
}

/// A test guest by the name of its file in `tests/guests/src/bin`.
pub(crate) fn guest(name: &str) -> PathBuf {
    target().join("guests/wasm32-wasip2/guest").join(format!("{name}.wasm"))
}

/// The crib of shipped tools.
pub(crate) fn toolbox() -> PathBuf {
    target().join("crib")
}

pub(crate) struct Crib {
    pub(crate) dir: TempDir,
}

impl Crib {
    pub(crate) fn new() -> Self {
        let crib = Self { dir: TempDir::new().expect("a temporary folder") };
        for folder in ["tools/bin", "home", "work", "audit"] {
            fs::create_dir_all(crib.path(folder)).unwrap();
        }
        crib
    }

    /// A crib with these guests, each a tool of its own name that may take any arguments.
    pub(crate) fn with_guests(guests: &[&str]) -> Self {
        let crib = Self::new();
        let tools = guests.iter().map(|name| crib.entry(name)).collect();
        crib.manifest(&json!({ "tools": Value::Array(tools) }));
        crib
    }

    /// A manifest entry for a guest, whose program is put into place.
    pub(crate) fn entry(&self, name: &str) -> Value {
        self.install(&guest(name), name);
        json!({ "name": name, "command": [format!("./tools/bin/{name}")] })
    }

    /// Puts a program into `tools/bin`.
    pub(crate) fn install(&self, program: &Path, name: &str) {
        fs::copy(program, self.path(format!("tools/bin/{name}.wasm"))).expect("the guest was built");
    }

    /// Compiles a text of WebAssembly into `tools/bin`.
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

    /// The program, in this crib's folder. The compile cache is shared by all tests, for it is sealed.
    pub(crate) fn toolcrib(&self, args: &[&str]) -> Command {
        let mut command = Command::new(TOOLCRIB);
        command
            .args(args)
            .current_dir(self.dir.path())
            .env_clear()
            .env("HOME", self.path("home"))
            .env("TOOLCRIB_CACHE_DIR", target().join("test-cache"))
            .env("TOOLCRIB_AUDIT_DIR", self.path("audit"))
            .env("TOOLCRIB_RESULTS_DIR", self.path("results"))
            .env("TOOLCRIB_APPROVALS", self.path("approvals.json"))
            // Whoever runs the tests has a keyring of their own.
            .env("TOOLCRIB_SECRETS_STORE", "file")
            .env("TOOLCRIB_SECRETS_FILE", self.path("secrets/secrets.enc"));
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::from(self.toolcrib(args).output().expect("the program starts"))
    }

    /// Calls a tool with `--json` and gives the one line it printed.
    pub(crate) fn call(&self, name: &str, arguments: &Value, flags: &[&str]) -> Value {
        let arguments = arguments.to_string();
        let mut args = vec!["call", name, &arguments, "--json"];
        args.extend(flags);
        let ran = self.run(&args);
        serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    }

    /// How a call ended.
    pub(crate) fn outcome(&self, name: &str, arguments: &Value, flags: &[&str]) -> String {
        self.call(name, arguments, flags)["receipt"]["outcome"].as_str().expect("a receipt").to_owned()
    }

    /// The files of the audit log, oldest first.
    pub(crate) fn logs(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path("audit")).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|it| it == "log")).collect();
        files.sort();
        files
    }

    /// The records of the audit log, in the order of their files.
    pub(crate) fn records(&self) -> Vec<Value> {
        let files = self.logs();
        let text: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
        text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
    }
}

/// What a run of the program left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}
