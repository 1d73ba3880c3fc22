//! A crib with data in every store (the audit log, the Agent Tool records, stored results, approvals, the compile cache
//! and a folder that a tool writes), and checks that each of them is sound. Runs the built program there, and knows
//! nothing of the faults.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolcrib::audit::{self, LogProblemKind, Severity};
use toolcrib::policy::{Approval, Approvals};
use toolcrib::results::Results;

pub(crate) const TOOLCRIB: &str = env!("CARGO_BIN_EXE_toolcrib");
/// Approval that is never revoked.
const KEPT: &str = "stays";
/// Approval that is revoked.
pub(crate) const REVOKED: &str = "goes";
/// Program with a constant answer; small, so that it compiles quickly.
const PROGRAM: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 8) "\10\00\00\00\28\00\00\00{\"said\":\"a text that is kept whole\"}\n    ")
    (func (export "_start")
        (drop (call $write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 0)))))"#;

/// Crib in its own folder.
pub(crate) struct Stores {
    folder: TempDir,
}

/// Action of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// One call of a tool that appends a line to a file, with a stored result.
    Call,
    /// Run with four such calls, two of them in one step.
    Run,
    /// Call of a tool that must be compiled first.
    Compile,
    /// Revocation of an approval.
    Approvals,
}

impl Action {
    pub(crate) const ALL: [Self; 4] = [Self::Call, Self::Run, Self::Compile, Self::Approvals];
}

/// Name of the script of a run with a mark.
pub(crate) fn script_name(mark: &str) -> String {
    format!("script-{mark}.json")
}

impl Stores {
    /// Creates a crib in which every action was executed once: each store holds data.
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
        fs::write(stores.path("tools/bin/says.wasm"), wat::parse_str(PROGRAM).expect("valid text")).expect("a program");
        for tool in [KEPT, REVOKED] {
            stores.approve(tool);
        }
        for action in Action::ALL {
            let ran = stores.program(action, "first").output().expect("it starts");
            assert!(ran.status.success(), "{action:?}: {}", String::from_utf8_lossy(&ran.stderr));
        }
        stores.approve(REVOKED);
        stores.remove_compiled();
        assert_eq!(stores.problems(), [""; 0], "before anything is done to them");
        assert!(
            stores.kept() >= 5 && stores.recorded() == 6,
            "{} results, {} records",
            stores.kept(),
            stores.recorded()
        );
        stores
    }

    /// Opens the stores in a folder.
    pub(crate) fn at(folder: TempDir) -> Self {
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Command of the program for an action; `mark` is the line that it writes to the file.
    pub(crate) fn program(&self, action: Action, mark: &str) -> Command {
        self.under(TOOLCRIB, [""; 0], action, mark)
    }

    /// The same command, started by another program with these arguments.
    pub(crate) fn under(
        &self,
        starter: impl AsRef<OsStr>,
        with: impl IntoIterator<Item = impl AsRef<OsStr>>,
        action: Action,
        mark: &str,
    ) -> Command {
        let mut command = Command::new(&starter);
        command.args(with);
        if starter.as_ref() != TOOLCRIB {
            command.arg(TOOLCRIB);
        }
        let line = json!({"path": "lines", "content": format!("{mark}\n")}).to_string();
        match action {
            Action::Call => command.args(["call", "fs_append_file", &line, "--allow-write=work"]),
            Action::Run => {
                self.script(mark);
                command.args(["run", "--script", &script_name(mark), "--allow-write=work"])
            }
            Action::Compile => {
                // The compiled code is missing, so the program compiles it anew.
                command.args(["call", "says", "--set", "cache.dir=fresh"])
            }
            Action::Approvals => command.args(["approvals", "remove", REVOKED]),
        };
        if action != Action::Approvals {
            command.args(["--records", "records", "--set", "results.max_inline=16"]);
        }
        self.enter(&mut command);
        command
    }

    /// Gives a command the folder and the stores.
    pub(crate) fn enter(&self, command: &mut Command) {
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
    }

    /// Writes the script of a run, whose calls write lines with this mark.
    fn script(&self, mark: &str) {
        let call = |at: usize| {
            let arguments = json!({"path": "lines", "content": format!("{mark}/{at}\n")});
            json!({"name": "fs_append_file", "arguments": arguments})
        };
        let turns = json!([{"tool_calls": [call(1)]}, {"tool_calls": [call(2), call(3)]}, {"tool_calls": [call(4)]},
            {"content": "done"}]);
        let script = json!({"prompt": mark, "turns": turns});
        fs::write(self.path(&script_name(mark)), script.to_string()).expect("a script");
    }

    /// Removes the code that [`Action::Compile`] has compiled.
    pub(crate) fn remove_compiled(&self) {
        for path in self.in_folder("fresh").iter().filter(|path| path.extension().is_some_and(|it| it == "cwasm")) {
            // Another process may have been faster.
            let _ = fs::remove_file(path);
        }
    }

    /// Grants an approval.
    pub(crate) fn approve(&self, tool: &str) {
        let mut approval = Approval::new(tool, "sha256:00", "ask *");
        approval.definition = Some("sha256:01".into());
        Approvals::file(self.path("approvals.json")).add(&approval).expect("an approval");
    }

    /// Number of recorded calls.
    pub(crate) fn recorded(&self) -> u64 {
        let mut walk = audit::verify(self.path("audit")).expect("a log");
        walk.by_ref().for_each(drop);
        walk.summary().records
    }

    /// Number of stored results.
    pub(crate) fn kept(&self) -> usize {
        Results::folder(self.path("results")).list().map_or(0, |kept| kept.len())
    }

    /// Number of incomplete lines in Agent Tool records.
    pub(crate) fn torn(&self) -> usize {
        let lines = |path: PathBuf| fs::read_to_string(path).expect("text");
        let torn = |text: &String| text.lines().filter(|line| serde_json::from_str::<Value>(line).is_err()).count();
        self.in_folder("records").into_iter().map(lines).map(|text| torn(&text)).sum()
    }

    /// Problems of the stores; only [`torn`](Self::torn) counts incomplete lines of Agent Tool records.
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
            Ok(given) if given.iter().any(|one| one.tool == KEPT) => {}
            Ok(_) => problems.push("an approval that nobody took back is gone".to_owned()),
            Err(error) => problems.push(error.to_string()),
        }
        problems
    }

    /// Files of one of the folders.
    pub(crate) fn in_folder(&self, name: &str) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.path(name)) else { return Vec::new() };
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }
}
