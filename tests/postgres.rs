//! A PostgreSQL server of a test, from the package of the system where there is one: a folder of its own, a free port of 127.0.0.1,
//! and a password. It ends with the test program. The tests of `cli/shared-state` use it too.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Password of the user.
pub(crate) const PASSWORD: &str = "tr0ub4dor-of-the-store";
/// User of the database, and name of the account that runs its server if the tests run as `root`.
const USER: &str = "postgres";
/// Waits for its input to end, which happens with the test program, and then ends the server.
const WATCH: &str = r#""$@" >/dev/null 2>&1 & server=$!; cat >/dev/null; kill -INT $server 2>/dev/null; wait $server"#;
/// Time to wait for a server on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Server of a database.
pub(crate) struct Postgres {
    folder: TempDir,
    programs: PathBuf,
    port: u16,
    running: Option<Child>,
}

impl Postgres {
    /// Creates a database and starts its server; `None`, with a message, where PostgreSQL is missing.
    pub(crate) fn start() -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!("SKIPPED: PostgreSQL is not installed: nothing is tested with a shared database");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("toolcrib-pg").tempdir().unwrap();
        let password = folder.path().join("password");
        fs::write(&password, PASSWORD).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut postgres = Self { folder, programs, port, running: None };
        if is_root() {
            own(postgres.folder.path());
        }
        let mut all = postgres.run_as();
        all.push(postgres.programs.join("initdb").display().to_string());
        all.extend([
            "-D".to_owned(),
            postgres.data().display().to_string(),
            format!("--pwfile={}", password.display()),
        ]);
        all.extend(["-U", USER, "-A", "scram-sha-256", "-N", "-E", "UTF8", "--locale=C"].map(str::to_owned));
        let created = Command::new(&all[0]).args(&all[1..]).current_dir("/").output().unwrap();
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
        postgres.resume();
        Some(postgres)
    }

    /// Starts the server again.
    pub(crate) fn resume(&mut self) {
        let (data, port) = (self.data(), self.port.to_string());
        let mut all = self.run_as();
        all.push(self.programs.join("postgres").to_str().unwrap().to_owned());
        all.extend(["-D", data.to_str().unwrap(), "-p", &port, "-h", "127.0.0.1", "-k", ""].map(str::to_owned));
        for setting in ["fsync=off", "shared_buffers=16MB", "max_connections=200", "dynamic_shared_memory_type=mmap"] {
            all.extend(["-c".to_owned(), setting.to_owned()]);
        }
        let mut command = Command::new("sh");
        command.args(["-c", WATCH, "sh"]).args(all).current_dir("/").stdin(Stdio::piped());
        self.running = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let until = Instant::now() + PATIENCE;
        while !self.psql("SELECT 1").0 {
            assert!(Instant::now() < until, "PostgreSQL does not start in time");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the server, which closes all connections.
    pub(crate) fn stop(&mut self) {
        if let Some(mut running) = self.running.take() {
            drop(running.stdin.take());
            let _ = running.wait();
        }
    }

    /// Address of the database.
    pub(crate) fn address(&self) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/postgres", self.port)
    }

    /// File with the password, which only this user can write.
    pub(crate) fn password_file(&self) -> PathBuf {
        self.folder.path().join("password")
    }

    /// Runs a statement, and returns what it prints.
    pub(crate) fn query(&self, statement: &str) -> String {
        let (is_done, printed) = self.psql(statement);
        assert!(is_done, "{statement}: {printed}");
        printed
    }

    fn psql(&self, statement: &str) -> (bool, String) {
        let port = self.port.to_string();
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["-h", "127.0.0.1", "-p", &port, "-U", USER, "-XAtq", "-v", "ON_ERROR_STOP=1", "postgres"]);
        command.env("PGPASSWORD", PASSWORD).current_dir("/").stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A client that finds no server may end before it reads.
        let _ = child.stdin.take().unwrap().write_all(statement.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = if output.status.success() { &output.stdout } else { &output.stderr };
        (output.status.success(), String::from_utf8_lossy(text).trim().to_owned())
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Start of a command that runs as the account of the server: it refuses to run as `root`.
    fn run_as(&self) -> Vec<String> {
        match is_root() {
            true => ["setpriv", "--reuid", USER, "--regid", USER, "--clear-groups"].map(str::to_owned).into(),
            false => Vec::new(),
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|ran| ran.stdout.trim_ascii() == b"0")
}

/// Gives a folder, without its files, to the account of the server, which must read the password.
fn own(folder: &Path) {
    let ran = Command::new("chown").args([USER, folder.to_str().unwrap()]).status().unwrap();
    assert!(ran.success());
    let ran = Command::new("chmod").args(["0755", folder.to_str().unwrap()]).status().unwrap();
    assert!(ran.success());
    let password = folder.join("password");
    let ran = Command::new("chmod").args(["0644", password.to_str().unwrap()]).status().unwrap();
    assert!(ran.success());
}

/// Folder of the programs.
fn programs() -> Option<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir("/usr/lib/postgresql").ok()?.flatten().map(|entry| entry.path().join("bin")).collect();
    all.retain(|folder| ["initdb", "postgres", "psql"].iter().all(|name| folder.join(name).exists()));
    all.sort();
    all.pop()
}
