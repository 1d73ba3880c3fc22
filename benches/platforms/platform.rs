//! A platform: how its program is started here, its folders, and one run of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::answer::{Answer, Masks};

/// Variables of this process that runners need; the program gets no others.
const INHERITED: [&str; 6] = ["PATH", "WINEPREFIX", "WINEDEBUG", "WINEDLLOVERRIDES", "WINESERVER", "TMPDIR"];
/// Folders of the program in the folder of a case.
const FOLDERS: [&str; 4] = ["home", "work", "audit", "tools/bin"];

/// Message of Wine about its own connection to its server.
const WINE_FAILED: &str = "wine client error";
/// Maximum runs of a case; all but the last may end by a failure of Wine.
const MAX_RUNS: usize = 3;

/// Program of one platform.
pub(crate) struct Platform {
    pub(crate) name: String,
    /// Runner and program.
    words: Vec<String>,
    /// Folder of its cases and of its cache.
    folder: PathBuf,
    /// Time that its cases took, in sum.
    pub(crate) took: Mutex<Duration>,
    /// Number of cases that were run again, since Wine failed.
    pub(crate) repeats: AtomicUsize,
}

impl Platform {
    /// Reads `NAME=WORDS`, and empties its folder, except the cache.
    pub(crate) fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        let (name, words) = text.split_once('=').ok_or_else(|| format!("`{text}` is not NAME=COMMAND"))?;
        let words: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
        let program = words.last().ok_or_else(|| format!("`{text}` names no program"))?;
        if !Path::new(program).is_absolute() || !Path::new(program).is_file() {
            return Err(format!("`{program}` of `{name}` must be the whole path of a built program"));
        }
        let folder = folder.join(name);
        let _ = fs::remove_dir_all(folder.join("cases"));
        fs::create_dir_all(folder.join("cases"))
            .map_err(|error| format!("cannot create `{}`: {error}", folder.display()))?;
        Ok(Self { name: name.to_owned(), words, folder, took: Mutex::default(), repeats: AtomicUsize::default() })
    }

    /// `true` if the program is one for Windows.
    pub(crate) fn is_windows(&self) -> bool {
        self.words.last().is_some_and(|program| program.ends_with(".exe"))
    }

    /// Creates the folder of a case. It has the same name on each platform, so that relative paths are equal.
    pub(crate) fn folder_of(&self, number: usize) -> io::Result<PathBuf> {
        let folder = self.folder.join("cases").join(number.to_string());
        for name in FOLDERS {
            fs::create_dir_all(folder.join(name))?;
        }
        Ok(folder)
    }

    /// Command of the program in a folder of a case, with all its own folders there.
    pub(crate) fn command(&self, folder: &Path, arguments: &[String]) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).args(arguments).current_dir(folder).env_clear();
        for name in INHERITED {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        command
            // Wine reads arguments and names of files by it.
            .env("LC_ALL", "C.UTF-8")
            .env("HOME", folder.join("home"))
            .env("TOOLCRIB_CACHE_DIR", "../../cache")
            .env("TOOLCRIB_AUDIT_DIR", "audit")
            .env("TOOLCRIB_RESULTS_DIR", "results")
            .env("TOOLCRIB_KEYVALUE_DIR", "values")
            .env("TOOLCRIB_APPROVALS", "approvals.json")
            .env("TOOLCRIB_SECRETS_STORE", "file")
            .env("TOOLCRIB_SECRETS_FILE", "secrets.enc");
        command
    }

    /// Runs the program once, and adds what it printed and its exit code to an answer.
    pub(crate) fn run(&self, folder: &Path, arguments: &[String], answer: &mut Answer) -> io::Result<()> {
        let ended = self.command(folder, arguments).stdin(Stdio::null()).output()?;
        self.check_runner(ended.status, &ended.stderr)?;
        let line = arguments.first().map_or("", String::as_str);
        let masks = self.masks(folder);
        let code = ended.status.code().map_or_else(|| ended.status.to_string(), |code| code.to_string());
        answer.add(&format!("{line}: exit code"), code);
        answer.add(&format!("{line}: standard output"), masks.output(&ended.stdout));
        answer.add(&format!("{line}: standard error"), masks.text(&ended.stderr));
        Ok(())
    }

    /// Returns an error if Wine failed, and not the program: it lost its server, or a signal of this system ended it. A program
    /// for Windows ends by an exit code whatever it does.
    pub(crate) fn check_runner(&self, status: ExitStatus, messages: &[u8]) -> io::Result<()> {
        let messages = String::from_utf8_lossy(messages);
        match self.is_windows() && (status.code().is_none() || messages.contains(WINE_FAILED)) {
            true => Err(io::Error::new(io::ErrorKind::ConnectionAborted, format!("Wine failed: {status}: {messages}"))),
            false => Ok(()),
        }
    }

    /// Does the work of a folder of a case; if Wine failed, again in an empty folder.
    pub(crate) fn repeat<T>(&self, number: usize, work: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
        let mut runs = 1;
        loop {
            let folder = self.folder_of(number)?;
            match work(&folder) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted && runs < MAX_RUNS => {
                    self.repeats.fetch_add(1, Ordering::Relaxed);
                    runs += 1;
                    fs::remove_dir_all(&folder)?;
                }
                made => return made,
            }
        }
    }

    /// Masks of the folder of a case, and of the folder around it, in the spellings of this platform.
    pub(crate) fn masks(&self, folder: &Path) -> Masks {
        let around = folder.parent().unwrap_or(folder);
        let spelled = [(folder, "$FOLDER"), (around, "$AROUND")];
        let folders =
            spelled.into_iter().flat_map(|(path, mask)| self.spellings(path).into_iter().map(move |it| (it, mask)));
        Masks::of(folders.collect(), self.is_windows())
    }

    /// Spellings of a path, the longest first.
    fn spellings(&self, path: &Path) -> Vec<String> {
        let shown = path.display().to_string();
        if !self.is_windows() {
            return vec![shown];
        }
        // The file system of this machine is the drive `Z:` there.
        let backwards = format!("Z:{}", shown.replace('/', "\\"));
        vec![format!(r"\\?\{backwards}"), backwards.replace('\\', r"\\"), backwards, format!("Z:{shown}"), shown]
    }
}
