//! The checks of `doctor`. Each check returns one finding; values of variables are never shown.

use std::env;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use toolcrib::cache::{Cache, EntryKind};
use toolcrib::platform;
use toolcrib::policy::Approvals;
use toolcrib::source::{self, Severity};
use toolcrib::{Audit, Runtime};
use toolcrib_authoring::rust::{self, TARGET};
use toolcrib_base::parse::{rounded_size, size_in_words};
use toolcrib_base::render::{counted, hint_of, message};
use toolcrib_packages::builtin;
use toolcrib_packages::cache::LIMIT_VARIABLE;
use toolcrib_settings::config::{Config, DEFAULT_FILE};
use toolcrib_settings::secrets::SECRETS;
use toolcrib_settings::secrets::{PASSPHRASE, Protection, Vault};
use toolcrib_sources::options::{DeadRule, RuleCheck, Sources};

use super::{Finding, Status};

/// Start of the reason if the keyring cannot be reached over the Linux session bus.
const BUS_ERROR: &str = "zbus error: ";

const VARIABLES: [&str; 16] = [
    "TOOLCRIB_AUDIT_DIR",
    "TOOLCRIB_CONFIG",
    "TOOLCRIB_APPROVALS",
    "TOOLCRIB_RESULTS_DIR",
    "TOOLCRIB_KEYVALUE_DIR",
    "TOOLCRIB_SECRETS_FILE",
    "TOOLCRIB_SECRETS_STORE",
    "TOOLCRIB_CACHE_DIR",
    LIMIT_VARIABLE,
    "TOOLCRIB_REDACT",
    "TOOLCRIB_NO_LOG_ARGUMENTS",
    "OAI_BASE_URL",
    "OAI_MODEL",
    "OPENAI_BASE_URL",
    "OPENAI_MODEL",
    "NO_COLOR",
];

/// Runs all checks.
pub(super) fn all(sources: &Sources) -> Vec<Finding> {
    let mut findings = vec![version(), target(), cache(sources.compiling.cache())];
    findings.extend(system());
    findings.push(match sources.log.folder() {
        Ok(folder) => audit(&folder),
        Err(error) => Finding::wrong(
            "audit log",
            Status::Fail,
            error.to_string(),
            "set a directory with `--set records.audit_dir=DIR`",
        ),
    });
    findings.push(config(sources));
    findings.extend(interpreters(sources));
    findings.extend(sources.rules.kept.file().map(|approvals| self::approvals(&approvals)));
    findings.extend(sources.secrets.vault().ok().map(|vault| secrets(&vault)));
    match sources.paths() {
        Ok(paths) => findings.extend(paths.iter().map(|path| tools(path))),
        Err(error) => {
            let otherwise =
                "change to the directory with your `tools.json` or `.harness`, or pass a source with `--tools PATH`";
            let fix = hint_of(&error).unwrap_or_else(|| otherwise.to_owned());
            findings.push(Finding::wrong("tools", Status::Warn, message(&error), fix));
        }
    }
    findings.push(environment());
    findings
}

fn version() -> Finding {
    let (os, architecture) = (env::consts::OS, env::consts::ARCH);
    let detail = format!("{} with {} on {os} {architecture}", env!("CARGO_PKG_VERSION"), toolcrib_embedded::ENGINE);
    Finding::ok("toolcrib", detail)
}

/// Names the protections that this system lacks, and what makes calls slower on it; nothing on a system with everything.
fn system() -> Vec<Finding> {
    const CHECK: &str = "system";
    let (gaps, slower) = (platform::gaps(), slower().collect::<Vec<_>>());
    let fix = "run unreviewed tools on Linux; see \"Residual risks\" in the threat model";
    let gaps = (!gaps.is_empty()).then(|| Finding::wrong(CHECK, Status::Warn, gaps.join("; "), fix));
    gaps.into_iter().chain((!slower.is_empty()).then(|| Finding::ok("speed", slower.join("; ")))).collect()
}

/// Names what makes calls slower on this system, and the fallback for each.
fn slower() -> impl Iterator<Item = &'static str> {
    let addresses = "address space is limited or costs memory here (`ulimit -v`, emulation): programs check each access to \
                     their memory, which takes longer";
    let pages =
        "the system does not list written pages (Linux 6.7 does): each call clears all memory of the call before it";
    [(platform::reserves_memory(), addresses), (platform::lists_written_pages(), pages)]
        .into_iter()
        .filter_map(|(has, otherwise)| (!has).then_some(otherwise))
}

/// Checks that tools can be built here. Running tools needs no toolchain.
fn target() -> Finding {
    let fix = format!("to build tools, run `rustup target add {TARGET}`; running tools needs nothing else");
    match rust::has_target(Path::new(".")) {
        Ok(true) => Finding::ok("rust target", format!("{TARGET} is installed: tools can be built here")),
        Ok(false) => Finding::wrong("rust target", Status::Warn, format!("{TARGET} is not installed"), fix),
        Err(_) => {
            let fix = "to build tools, install Rust with `rustup`; running tools needs nothing else";
            Finding::wrong("rust target", Status::Warn, "`rustc` not found", fix)
        }
    }
}

fn cache(cache: Option<Cache>) -> Finding {
    const CHECK: &str = "cache";
    let Some(cache) = cache else {
        let fix = "set a directory with `--set cache.dir=DIR` or TOOLCRIB_CACHE_DIR";
        return Finding::wrong(
            CHECK,
            Status::Warn,
            "none: no home directory was found, so every run compiles again",
            fix,
        );
    };
    let (folder, shown) = (cache.path(), cache.path().display());
    if let Err(error) = probe(folder) {
        let fix = "make it writable, or choose another with `--set cache.dir=DIR` or TOOLCRIB_CACHE_DIR";
        return Finding::wrong(CHECK, Status::Fail, format!("{shown} cannot be written: {error}"), fix);
    }
    if !folder.is_dir() {
        return Finding::ok(CHECK, format!("{shown}, created when the first tool is compiled"));
    }
    if !permissions::is_private(folder) {
        let advice = permissions::advice(folder);
        let fix = format!("{advice}: anyone who can write there controls the code that runs");
        return Finding::wrong(CHECK, Status::Warn, format!("{shown} is accessible to other users"), fix);
    }
    match cache.entries() {
        Ok(entries) => {
            let total = rounded_size(entries.iter().map(|entry| entry.bytes).sum());
            let limit = size_in_words(cache.limit() as usize);
            let of = |kind| entries.iter().filter(|entry| entry.kind == kind).count();
            let (bundles, downloads) = (of(EntryKind::Bundle), of(EntryKind::Download));
            let tools = counted(entries.len() - bundles - downloads, "compiled tool");
            let bundles = if bundles > 0 { format!(", {}", counted(bundles, "bundle")) } else { String::new() };
            Finding::ok(CHECK, format!("{shown}, {tools}{bundles}, {total} of {limit}"))
        }
        Err(error) => {
            let fix = "every run compiles again: choose another with `--set cache.dir=DIR`";
            Finding::wrong(CHECK, Status::Warn, error.to_string(), fix)
        }
    }
}

fn audit(folder: &Path) -> Finding {
    const CHECK: &str = "audit log";
    let shown = folder.display();
    if let Err(error) = probe(folder) {
        let fix = "calls are not run unlogged: make it writable, or choose another with `--set records.audit_dir=DIR` or TOOLCRIB_AUDIT_DIR";
        return Finding::wrong(CHECK, Status::Fail, format!("{shown} cannot be written: {error}"), fix);
    }
    if !folder.is_dir() {
        return Finding::ok(CHECK, format!("{shown}, created by the first call"));
    }
    if !permissions::is_private(folder) {
        let fix = format!("{}: records name folders and variables", permissions::advice(folder));
        return Finding::wrong(CHECK, Status::Warn, format!("{shown} is accessible to other users"), fix);
    }
    let bytes = contents(folder);
    let today = folder.join(jiff::Timestamp::now().strftime("%Y%m%d.log").to_string());
    let calls = fs::read(&today).map_or(0, |text| text.iter().filter(|byte| **byte == b'\n').count());
    Finding::ok(CHECK, format!("{shown}, {}, {} today", rounded_size(bytes), counted(calls, "call")))
}

fn config(sources: &Sources) -> Finding {
    const CHECK: &str = "config";
    match sources.trust.trusted().and_then(|trusted| sources.rules.config(&trusted, true)) {
        Ok(Config { files, .. }) if files.is_empty() => {
            Finding::ok(CHECK, format!("none: no `{DEFAULT_FILE}` in this directory, and no settings of your own"))
        }
        Ok(config) => {
            let (rules, masks) = (counted(config.rules.len(), "rule"), counted(config.masks.len(), "mask"));
            let files: Vec<String> = config.files.iter().map(|file| file.display().to_string()).collect();
            let shown = format!("{}: {rules}, {masks}", files.join(", "));
            match sources.policy(&config).map(|policy| sources.check_rules(policy, &config.rules)) {
                Ok(RuleCheck::Checked(warnings)) if warnings.is_empty() => match sources.missing_folders().first() {
                    Some((missing, repair)) => {
                        let text = format!("{shown}; {missing}: it grants nothing");
                        Finding::wrong(CHECK, Status::Warn, text, *repair)
                    }
                    None => Finding::ok(CHECK, shown),
                },
                Ok(RuleCheck::Checked(warnings)) => {
                    let fix = "correct the name of the tool in the rule, or keep it for the tools of another folder";
                    Finding::wrong(CHECK, Status::Warn, format!("{shown}; {}", warnings.join("; ")), fix)
                }
                Ok(RuleCheck::Dead(DeadRule { message, repair })) => stopped(&message, Some(repair)),
                // The check of the tools reports a source that cannot be loaded.
                Ok(RuleCheck::Unchecked(_)) => Finding::ok(CHECK, format!("{shown}, not checked against tools")),
                Ok(RuleCheck::Stopped(error)) | Err(error) => stopped(&message(&error), hint_of(&error)),
            }
        }
        Err(error) => stopped(&message(&error), hint_of(&error)),
    }
}

/// Findings about the interpreters in the settings. A wrong interpreter stops every program.
fn interpreters(sources: &Sources) -> Vec<Finding> {
    const CHECK: &str = "interpreter";
    // The check of the settings reports why there are none.
    let config = sources.trust.trusted().and_then(|trusted| sources.rules.config(&trusted, false)).unwrap_or_default();
    let check = |file: &PathBuf| match Runtime::builder(Audit::off()).code_component(file) {
        Ok(_) => Finding::ok(CHECK, file.display().to_string()),
        Err(error) => {
            let fix = "correct `sources.interpreters`; no program runs until then";
            Finding::wrong(CHECK, Status::Fail, error.to_string(), fix)
        }
    };
    config.interpreters.iter().map(check).collect()
}

/// Finding about settings that stop every command.
fn stopped(message: &str, repair: Option<String>) -> Finding {
    let repair = repair.unwrap_or_else(|| "correct the file".to_owned());
    Finding::wrong("config", Status::Fail, message, format!("{repair}; no call runs until then"))
}

fn approvals(file: &Approvals) -> Finding {
    const CHECK: &str = "approvals";
    match file.read() {
        Ok(stored) => {
            Finding::ok(CHECK, format!("{}, {}", file.path().display(), counted(stored.len(), "permanent approval")))
        }
        Err(error) => Finding::wrong(CHECK, Status::Fail, error.to_string(), error.hint().unwrap_or_default()),
    }
}

/// Checks that the secret store can be opened. No value is read.
fn secrets(vault: &Vault) -> Finding {
    const CHECK: &str = "secrets";
    let shown = vault.path().display();
    let keyring = match vault.probe_keyring() {
        Ok(()) => "the system keyring is available".to_owned(),
        Err(error) => match error.reason().strip_prefix(BUS_ERROR) {
            Some(_) => "no keyring: no service answers on the session bus".to_owned(),
            None => format!("no keyring: {}", error.reason()),
        },
    };
    let file = match vault.protection() {
        Ok(Protection::Missing) => format!("{shown} is created when needed"),
        Ok(Protection::KeyFile) => format!("{shown} is encrypted with the key file next to it"),
        Ok(Protection::Passphrase) => format!("{shown} is encrypted with a passphrase"),
        Err(error) => {
            let fix = "its secrets are unavailable: fix it, or use another file with `--set secrets.file=FILE`";
            return Finding::wrong(CHECK, Status::Fail, format!("{error:#}"), fix);
        }
    };
    match vault.list() {
        Ok(kept) => Finding::ok(CHECK, format!("{} stored; {keyring}; {file}", kept.len())),
        Err(error) => {
            let fix = format!("set {PASSPHRASE}, or run `toolcrib secret list` for details");
            Finding::wrong(CHECK, Status::Warn, format!("{error:#}; {keyring}"), fix)
        }
    }
}

fn tools(path: &Path) -> Finding {
    let problems = source::check(path);
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    let shown = match builtin::holds(path) {
        true => format!("{}, as trusted as this program", builtin::LABEL),
        false => path.display().to_string(),
    };
    match problems.first() {
        None => Finding::ok("tools", format!("{shown}: no problems found")),
        Some(first) => {
            let status = if errors > 0 { Status::Fail } else { Status::Warn };
            let warnings = counted(problems.len() - errors, "warning");
            let detail = format!("{shown}: {}, {warnings}; first: {first}", counted(errors, "error"));
            Finding::wrong("tools", status, detail, format!("run `toolcrib validate {shown}`"))
        }
    }
}

fn environment() -> Finding {
    let known = VARIABLES.into_iter().chain(SECRETS);
    let set: Vec<&str> = known.filter(|name| env::var_os(name).is_some()).collect();
    Finding::ok(
        "environment",
        if set.is_empty() { "no variable is set".to_owned() } else { format!("set: {}", set.join(", ")) },
    )
}

/// Checks that files can be created in a folder, or in its nearest existing parent.
fn probe(folder: &Path) -> io::Result<()> {
    let there = folder.ancestors().find(|above| above.exists()).unwrap_or(Path::new("."));
    let file = there.join(format!(".toolcrib-doctor-{}", std::process::id()));
    OpenOptions::new().write(true).create_new(true).open(&file)?;
    fs::remove_file(&file)
}

/// Returns the total size of the files below a folder.
fn contents(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(about) if about.is_file() => about.len(),
        Ok(about) if about.is_dir() => contents(&entry.path()),
        _ => 0,
    };
    entries.map(size).sum()
}

#[cfg(unix)]
mod permissions {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    pub(super) fn is_private(folder: &Path) -> bool {
        folder.metadata().is_ok_and(|about| about.permissions().mode() & 0o077 == 0)
    }

    /// Advises how to make a folder private.
    pub(super) fn advice(folder: &Path) -> String {
        format!("run `chmod 700 {}`", folder.display())
    }
}

#[cfg(windows)]
mod permissions {
    use std::path::Path;

    use toolcrib_windows_files::access::OtherAccess;
    use toolcrib_windows_files::check_folder;

    /// Returns `true` for a user's folder that only the user, the system and the administrators can access.
    pub(super) fn is_private(folder: &Path) -> bool {
        check_folder(folder, true, OtherAccess::None).is_ok()
    }

    /// Advises how to make a folder private.
    pub(super) fn advice(folder: &Path) -> String {
        format!("run `icacls \"{}\" /inheritance:r /grant:r \"%USERNAME%:(OI)(CI)F\"`", folder.display())
    }
}
