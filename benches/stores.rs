//! A crib whose every store is in use (the audit log, the records, kept results, approvals, the compile cache and a folder
//! that a tool writes), and the question whether each of them is sound. It knows how to run the built program there, and
//! nothing of what is done to it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolcrib::audit::{self, LogProblemKind, Severity};
use toolcrib::policy::{Approval, Approvals};
use toolcrib::results::Results;

const TOOLCRIB: &str = env!("CARGO_BIN_EXE_toolcrib");
/// The approval that nobody takes back.
const STAYS: &str = "stays";
/// The one that is taken back.
pub(crate) const GOES: &str = "goes";
/// A program that says the same each time; small, so that it is compiled in a moment.
const SAYS: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 8) "\10\00\00\00\28\00\00\00{\"said\":\"a text that is kept whole\"}\n    ")
    (func (export "_start")
        (drop (call $write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 0)))))"#;

/// A crib in a folder of its own.
pub(crate) struct Stores {
    folder: TempDir,
}

/// What a user does there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// One call of a tool that appends a line to a file, with its answer kept.
    Call,
    /// A run of four such calls, two of them in one step.
    Run,
    /// A call whose tool is compiled first.
    Compile,
    /// Taking back an approval.
    Approvals,
}

impl Deed {
    pub(crate) const ALL: [Self; 4] = [Self::Call, Self::Run, Self::Compile, Self::Approvals];
}

impl Stores {
    /// A crib in which everything was done once: each store holds something.
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().expect("a folder");
        let crib = Path::new(TOOLCRIB).ancestors().nth(2).expect("the program lies two folders down").join("crib");
        let stores = Self::at(folder);
        for folder in ["tools/bin", "home", "work"] {
            fs::create_dir_all(stores.path(folder)).expect("a folder");
        }
        let shipped = fs::read(crib.join("tools.json")).expect("the crib was built");
        let shipped: Value = serde_json::from_slice(&shipped).expect("a manifest");
        let entries = shipped["tools"].as_array().expect("tools");
        let append = entries.iter().find(|entry| entry["name"] == "fs_append_file").expect("the tool").clone();
        let says = json!({"name": "says", "command": ["./tools/bin/says"], "capabilities": {}});
        fs::write(stores.path("tools.json"), json!({ "tools": [append, says] }).to_string()).expect("a manifest");
        let program = "tools/bin/fs_append_file.wasm";
        fs::copy(crib.join(program), stores.path(program)).expect("the crib was built");
        fs::write(stores.path("tools/bin/says.wasm"), wat::parse_str(SAYS).expect("valid text")).expect("a program");
        stores.script();
        for tool in [STAYS, GOES] {
            stores.approve(tool);
        }
        for deed in Deed::ALL {
            let ran = stores.program(deed, "first").output().expect("it starts");
            assert!(ran.status.success(), "{deed:?}: {}", String::from_utf8_lossy(&ran.stderr));
        }
        stores.approve(GOES);
        stores.forget_compiled();
        assert_eq!(stores.problems(), [""; 0], "before anything is done to them");
        assert!(stores.kept() >= 5 && stores.signed() == 6, "{} results, {} records", stores.kept(), stores.signed());
        stores
    }

    /// The stores in a folder.
    pub(crate) fn at(folder: TempDir) -> Self {
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program, about to do a deed; `mark` is what it leaves in the file.
    pub(crate) fn program(&self, deed: Deed, mark: &str) -> Command {
        self.under(TOOLCRIB, [""; 0], deed, mark)
    }

    /// The same, started by another program with these arguments.
    pub(crate) fn under(
        &self,
        starter: impl AsRef<OsStr>,
        with: impl IntoIterator<Item = impl AsRef<OsStr>>,
        deed: Deed,
        mark: &str,
    ) -> Command {
        let mut command = Command::new(&starter);
        command.args(with);
        if starter.as_ref() != TOOLCRIB {
            command.arg(TOOLCRIB);
        }
        let line = json!({"path": "lines", "content": format!("{mark}\n")}).to_string();
        match deed {
            Deed::Call => command.args(["call", "fs_append_file", &line, "--allow-write=work"]),
            Deed::Run => command.args(["run", "--script", "script.json", "--allow-write=work"]),
            Deed::Compile => {
                // What was compiled is not there: the program makes it anew.
                command.args(["call", "says", "--cache-dir", "fresh"])
            }
            Deed::Approvals => command.args(["approvals", "remove", GOES]),
        };
        if deed != Deed::Approvals {
            command.args(["--records", "records", "--max-inline", "16"]);
        }
        command.current_dir(self.folder.path()).env_clear().stdin(Stdio::null());
        for (name, place) in [
            ("HOME", "home"),
            ("TOOLCRIB_CACHE_DIR", "cache"),
            ("TOOLCRIB_AUDIT_DIR", "audit"),
            ("TOOLCRIB_RESULTS_DIR", "results"),
            ("TOOLCRIB_APPROVALS", "approvals.json"),
        ] {
            command.env(name, self.path(place));
        }
        command
    }

    /// Writes the script of a run.
    fn script(&self) {
        let call = |at: usize| {
            let arguments = json!({"path": "lines", "content": format!("run/{at}\n")});
            json!({"name": "fs_append_file", "arguments": arguments})
        };
        let turns = json!([{"tool_calls": [call(1)]}, {"tool_calls": [call(2), call(3)]}, {"tool_calls": [call(4)]},
            {"content": "done"}]);
        let script = json!({"prompt": "go", "turns": turns});
        fs::write(self.path("script.json"), script.to_string()).expect("a script");
    }

    /// Removes what [`Deed::Compile`] has compiled.
    pub(crate) fn forget_compiled(&self) {
        for path in self.in_folder("fresh").iter().filter(|path| path.extension().is_some_and(|it| it == "cwasm")) {
            // Another may have been faster.
            let _ = fs::remove_file(path);
        }
    }

    /// Gives an approval.
    pub(crate) fn approve(&self, tool: &str) {
        let mut approval = Approval::new(tool, "sha256:00", "ask *");
        approval.definition = Some("sha256:01".into());
        Approvals::file(self.path("approvals.json")).add(&approval).expect("an approval");
    }

    /// How many calls were signed for.
    pub(crate) fn signed(&self) -> u64 {
        let mut walk = audit::verify(self.path("audit")).expect("a log");
        walk.by_ref().for_each(drop);
        walk.summary().records
    }

    /// How many results are kept.
    pub(crate) fn kept(&self) -> usize {
        Results::folder(self.path("results")).list().map_or(0, |kept| kept.len())
    }

    /// How many lines of records are no whole records.
    pub(crate) fn torn(&self) -> usize {
        let lines = |path: PathBuf| fs::read_to_string(path).expect("text");
        let torn = |text: &String| text.lines().filter(|line| serde_json::from_str::<Value>(line).is_err()).count();
        self.in_folder("records").into_iter().map(lines).map(|text| torn(&text)).sum()
    }

    /// What is wrong with the stores; torn lines of records are counted by [`torn`](Self::torn) alone.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        match audit::verify(self.path("audit")) {
            Err(error) => problems.push(error.to_string()),
            Ok(walk) => problems.extend(walk.filter_map(|found| match found {
                Ok(problem) if problem.severity == Severity::Error => Some(format!("audit log: {}", problem.kind)),
                Ok(problem) if !matches!(problem.kind, LogProblemKind::Torn { .. }) => Some(problem.kind.to_string()),
                Ok(_) => None,
                Err(error) => Some(error.to_string()),
            })),
        }
        let results = Results::folder(self.path("results"));
        for path in self.in_folder("results") {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            if name.starts_with("res_") {
                problems.extend(results.open(name, ..).err().map(|error| error.to_string()));
            }
        }
        match Approvals::file(self.path("approvals.json")).read() {
            Ok(given) if given.iter().any(|one| one.tool == STAYS) => {}
            Ok(_) => problems.push("an approval that nobody took back is gone".to_owned()),
            Err(error) => problems.push(error.to_string()),
        }
        problems
    }

    /// The files of one of the folders.
    pub(crate) fn in_folder(&self, name: &str) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.path(name)) else { return Vec::new() };
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }
}
