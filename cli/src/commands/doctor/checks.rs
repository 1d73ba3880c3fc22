//! What a doctor looks at. Each check reads one thing and words one finding; values of variables are never shown.

use std::env;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use toolcrib::policy::Approvals;
use toolcrib::source::{self, Severity};

use crate::config::{Config, DEFAULT_FILE};
use crate::options::{SECRETS, Sources};
use crate::rust::{self, TARGET};
use crate::secrets::{PASSPHRASE, Protection, Vault};

use super::{Finding, Status};

const VARIABLES: [&str; 12] = [
    "TOOLCRIB_AUDIT_DIR",
    "TOOLCRIB_CONFIG",
    "TOOLCRIB_APPROVALS",
    "TOOLCRIB_RESULTS_DIR",
    "TOOLCRIB_KEYVALUE_DIR",
    "TOOLCRIB_SECRETS_FILE",
    "TOOLCRIB_SECRETS_STORE",
    "TOOLCRIB_CACHE_DIR",
    "TOOLCRIB_REDACT",
    "OAI_BASE_URL",
    "OAI_MODEL",
    "NO_COLOR",
];

pub(super) fn all(sources: &Sources) -> Vec<Finding> {
    let mut findings = vec![version(), target(), cache(sources.compiling.folder())];
    findings.push(match sources.log.folder() {
        Ok(folder) => audit(&folder),
        Err(error) => {
            Finding::wrong("audit log", Status::Fail, error.to_string(), "name a folder with `--audit-dir DIR`")
        }
    });
    findings.push(config(sources));
    findings.extend(sources.rules.kept.file().map(|approvals| agreed(&approvals)));
    findings.extend(sources.secrets.kept.vault().ok().map(|vault| secrets(&vault)));
    match sources.paths() {
        Ok(paths) => findings.extend(paths.iter().map(|path| tools(path))),
        Err(error) => {
            let cure = "change to the folder of your `tools.json` or `.harness`, or name a source with `--tools PATH`";
            findings.push(Finding::wrong("tools", Status::Warn, error.to_string(), cure));
        }
    }
    findings.push(environment());
    findings
}

fn version() -> Finding {
    let (os, architecture) = (env::consts::OS, env::consts::ARCH);
    let detail = format!("{} with {} on {os} {architecture}", env!("CARGO_PKG_VERSION"), env!("TOOLCRIB_ENGINE"));
    Finding::ok("toolcrib", detail)
}

/// Whether tools can be built here; to run them nothing is needed.
fn target() -> Finding {
    let cure = format!("to build tools, run `rustup target add {TARGET}`; to use them nothing is needed");
    match rust::has_target(Path::new(".")) {
        Ok(true) => Finding::ok("rust target", format!("{TARGET} is installed: tools can be built here")),
        Ok(false) => Finding::wrong("rust target", Status::Warn, format!("{TARGET} is not installed"), cure),
        Err(_) => Finding::wrong("rust target", Status::Warn, "there is no `rustc` here", cure),
    }
}

fn cache(folder: Option<PathBuf>) -> Finding {
    const CHECK: &str = "cache";
    let Some(folder) = folder else {
        let cure = "name a folder with `--cache-dir DIR` or TOOLCRIB_CACHE_DIR";
        return Finding::wrong(CHECK, Status::Warn, "none: you have no home folder, and every run compiles anew", cure);
    };
    let shown = folder.display();
    if let Err(error) = probe(&folder) {
        let cure = "make it writable, or name another with `--cache-dir DIR`";
        return Finding::wrong(CHECK, Status::Fail, format!("{shown} cannot be written: {error}"), cure);
    }
    if !folder.is_dir() {
        return Finding::ok(CHECK, format!("{shown}, made when the first tool is compiled"));
    }
    if !private::is_private(&folder) {
        let cure = format!("run `chmod 700 {shown}`: whoever writes there decides what runs");
        return Finding::wrong(CHECK, Status::Warn, format!("{shown} is open to other users"), cure);
    }
    let (files, bytes) = contents(&folder);
    Finding::ok(CHECK, format!("{shown}, {files} compiled tools, {}", mebibytes(bytes)))
}

fn audit(folder: &Path) -> Finding {
    const CHECK: &str = "audit log";
    let shown = folder.display();
    if let Err(error) = probe(folder) {
        let cure = "no call runs unlogged: make it writable, or name another with `--audit-dir DIR`";
        return Finding::wrong(CHECK, Status::Fail, format!("{shown} cannot be written: {error}"), cure);
    }
    if !folder.is_dir() {
        return Finding::ok(CHECK, format!("{shown}, made by the first call"));
    }
    if !private::is_private(folder) {
        let cure = format!("run `chmod 700 {shown}`: records name folders and variables");
        return Finding::wrong(CHECK, Status::Warn, format!("{shown} is open to other users"), cure);
    }
    let (_, bytes) = contents(folder);
    let today = folder.join(jiff::Timestamp::now().strftime("%Y%m%d.log").to_string());
    let calls = fs::read(&today).map_or(0, |text| text.iter().filter(|byte| **byte == b'\n').count());
    Finding::ok(CHECK, format!("{shown}, {}, {calls} calls today", mebibytes(bytes)))
}

fn config(sources: &Sources) -> Finding {
    const CHECK: &str = "config";
    match sources.rules.config() {
        Ok(Config { path: None, .. }) => {
            Finding::ok(CHECK, format!("none: there is no `{DEFAULT_FILE}` in this folder"))
        }
        Ok(Config { path: Some(path), rules, masks, .. }) => {
            let (shown, rules, masks) = (path.display(), rules.len(), masks.len());
            Finding::ok(CHECK, format!("{shown} is sound: {rules} rules over calls, {masks} masks"))
        }
        Err(error) => Finding::wrong(
            CHECK,
            Status::Fail,
            format!("{error:#}"),
            "no call runs with half of its rules: mend the file",
        ),
    }
}

fn agreed(approvals: &Approvals) -> Finding {
    const CHECK: &str = "approvals";
    match approvals.read() {
        Ok(given) => Finding::ok(CHECK, format!("{}, {} for always", approvals.path().display(), given.len())),
        Err(error) => Finding::wrong(CHECK, Status::Fail, error.to_string(), error.hint().unwrap_or_default()),
    }
}

/// Where secrets are kept, and whether they can be opened; no value leaves its store for this.
fn secrets(vault: &Vault) -> Finding {
    const CHECK: &str = "secrets";
    let shown = vault.path().display();
    let keyring = match vault.probe_keyring() {
        Ok(()) => "the system's keyring answers".to_owned(),
        Err(error) => format!("no keyring: {}", error.reason()),
    };
    let file = match vault.protection() {
        Ok(Protection::Missing) => format!("{shown} is made when it is needed"),
        Ok(Protection::KeyFile) => format!("{shown} is locked by the key beside it"),
        Ok(Protection::Passphrase) => format!("{shown} is locked with a passphrase"),
        Err(error) => {
            let cure = "no call gets a secret of it: mend it, or keep secrets elsewhere with `--secrets-file FILE`";
            return Finding::wrong(CHECK, Status::Fail, format!("{error:#}"), cure);
        }
    };
    match vault.list() {
        Ok(kept) => Finding::ok(CHECK, format!("{} kept; {keyring}; {file}", kept.len())),
        Err(error) => {
            let cure = format!("set {PASSPHRASE}, or see what is wrong with `toolcrib secret list`");
            Finding::wrong(CHECK, Status::Warn, format!("{error:#}; {keyring}"), cure)
        }
    }
}

fn tools(path: &Path) -> Finding {
    let problems = source::check(path);
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    let shown = path.display();
    match problems.first() {
        None => Finding::ok("tools", format!("{shown} is sound")),
        Some(first) => {
            let status = if errors > 0 { Status::Fail } else { Status::Warn };
            let detail = format!("{shown}: {errors} errors, {} warnings; first: {first}", problems.len() - errors);
            Finding::wrong("tools", status, detail, format!("run `toolcrib validate {shown}`"))
        }
    }
}

fn environment() -> Finding {
    let (set, unset): (Vec<_>, Vec<_>) =
        VARIABLES.into_iter().chain(SECRETS).partition(|name| env::var_os(name).is_some());
    let names = |names: Vec<&str>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Finding::ok("environment", format!("set: {}; not set: {}", names(set), names(unset)))
}

/// Whether files can be made in a folder, or where it would be made.
fn probe(folder: &Path) -> io::Result<()> {
    let there = folder.ancestors().find(|above| above.exists()).unwrap_or(Path::new("."));
    let file = there.join(format!(".toolcrib-doctor-{}", std::process::id()));
    OpenOptions::new().write(true).create_new(true).open(&file)?;
    fs::remove_file(&file)
}

/// How many files a folder and those in it hold, and how large they are.
fn contents(folder: &Path) -> (usize, u64) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.fold((0, 0), |(files, bytes), entry| match entry.metadata() {
        Ok(about) if about.is_file() => (files + 1, bytes + about.len()),
        Ok(about) if about.is_dir() => {
            let (more, larger) = contents(&entry.path());
            (files + more, bytes + larger)
        }
        _ => (files, bytes),
    })
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(unix)]
mod private {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    pub(super) fn is_private(folder: &Path) -> bool {
        folder.metadata().is_ok_and(|about| about.permissions().mode() & 0o077 == 0)
    }
}

#[cfg(not(unix))]
mod private {
    use std::path::Path;

    /// Other systems keep a user's folders private by inheritance.
    pub(super) fn is_private(_: &Path) -> bool {
        true
    }
}
