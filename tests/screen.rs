//! Pages of snapshots: what the program prints for people, as one text that is compared with a file of `tests/snapshots`.
//! Only here is it decided which parts of a text differ between machines, times and builds.

use std::cell::RefCell;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::crib::{Crib, Ran, target};

/// Parts of a text that differ between machines, times and builds, each with its name in a snapshot.
const VOLATILE: [(&str, &str); 29] = [
    // A digest at the end of a line of a question goes on in the next one.
    (r"sha256:[0-9a-f]{16,}\n +\| [0-9a-f]+", "sha256:[digest]"),
    (r"sha256[:-][0-9a-f]{64}", "sha256:[digest]"),
    (r"sha256:[0-9a-f]{4,63}…", "sha256:[digest]…"),
    (r"\b[0-9a-f]{64}\b", "[digest]"),
    (r"\bbundle [0-9a-f]{12}…", "bundle [digest]…"),
    (r"\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?(Z| ?[+-]\d\d:?\d\d)?", "[time]"),
    (r"\b20\d{6}\.log\b", "[day].log"),
    (r"\binv_[0-9a-f]+_\d+", "inv_[id]"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "[id]"),
    (r"\bcall_[0-9a-f]{16}\b", "call_[id]"),
    (r#"(--resume |run `|runs (?:show|export|remove) |/runs/|"run":")([0-9a-z]{5}-[0-9a-z]{5})\b"#, "$1[run]"),
    (r"(?m)^[0-9a-z]{5}-[0-9a-z]{5}(  \[time)", "[run]      $1"),
    (r"\bminisign:RW[A-Za-z0-9+/]{54}", "minisign:[key]"),
    (r"\.unfinished-\w{6}|\.toolcrib-\w{6}\b|\btoolcrib-[0-9a-f]{16,32}", "[random name]"),
    // Durations, where none was asked for.
    (r#"("duration_ms":)\d+"#, "$1[duration]"),
    (r"(: exit \d+, )\d+(\.\d+)? (ms|s)\b", "$1[duration]"),
    (r"(?m)^( *(?:←|result) \S+ )\d+(\.\d+)? (ms|s|min)\b", "$1[duration]"),
    (r"( · |failed, |tested, |tools in |retrying in )\d+(\.\d+)? (ms|s|min)\b", "$1[duration]"),
    (r"(?m)^((?:ok     |FAILED) .*  )\d+(\.\d+)? (ms|s)$", "$1[duration]"),
    // Sizes of what a compiler made.
    (r"(\.wasm, )\d+ bytes", "$1[size]"),
    (r"\b\d+\.\d (KiB|MiB)\b", "[size]"),
    (r"\d+ compiled tools?, \d+ bundles?, ([\d.]+ [KMG]iB|\[size\])", "[what is cached]"),
    // The system, and what it says.
    (r"(127\.0\.0\.1|\[::1\]|localhost):[1-9]\d{3,4}\b", "$1:[port]"),
    (r"[A-Z][^:\n]* \(os error \d+\)", "[error of the system]"),
    (r"\S+[/\\]toolcrib-[A-Za-z0-9]{6}\.toml", "[file for the editor]"),
    (r" on (linux|macos|windows) \w+", " on [system]"),
    // Releases.
    (r"\b(wasmtime|toolcrib) \d+\.\d+\.\d+", "$1 [version]"),
    (r"(?m)^(ok   toolcrib     )\d+\.\d+\.\d+", "$1[version]"),
    (r"\b(wasi:[a-z/-]+@0\.2\.)\d+", "${1}x"),
];

/// Identifier of a run in the help.
const EXAMPLE: &str = "7k3md-x0q9a";

static EXPRESSIONS: LazyLock<Vec<(Regex, &str)>> =
    LazyLock::new(|| VOLATILE.map(|(volatile, name)| (Regex::new(volatile).unwrap(), name)).to_vec());

static FOLDER_IN_TABLE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\[(crib|target|repository)\]\S* {2,}").unwrap());

static PADDING: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(\S) {2,}").unwrap());

/// Path below a folder with a name, also in JSON.
static BELOW_FOLDER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"\[(?:crib|target|repository)\](?:[/\\]+[^\s"'`/\\]+)+"#).unwrap());

/// Escapes of a character, and other backslashes, which separate the parts of a path on Windows.
static BACKSLASH: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"\\(u\{|u[0-9a-f]{4}|["\\]|n["\\\s])|\\"#).unwrap());

static CONTROL: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"[\p{Cc}\p{Cf}--\n\t]").unwrap());

/// Folders of this machine, in both spellings, each with its name in a snapshot: the longest first.
static FOLDERS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let temporary = std::env::temp_dir();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folders = [(temporary, "[crib]"), (target(), "[target]"), (repository.to_owned(), "[repository]")];
    let spellings = folders.into_iter().flat_map(|(folder, name)| {
        [folder.canonicalize().unwrap_or_else(|_| folder.clone()), folder].map(|folder| (folder, name))
    });
    let mut spellings: Vec<(PathBuf, &str)> = spellings.collect();
    spellings.sort_by_key(|(folder, _)| std::cmp::Reverse(folder.as_os_str().len()));
    let expression = |(folder, name): (PathBuf, &'static str)| {
        let folder = folder.to_string_lossy();
        let parts = folder.trim_end_matches(['/', '\\']).split(['/', '\\']).map(regex::escape);
        let below = if name == "[crib]" { r"[/\\]+\.tmp[A-Za-z0-9]{6}" } else { "" };
        let separator = if cfg!(windows) { r"[/\\]+" } else { "/" };
        (Regex::new(&format!("{}{below}", parts.collect::<Vec<_>>().join(separator))).unwrap(), name)
    };
    spellings.into_iter().map(expression).collect()
});

/// Folder in which the program runs.
pub(crate) trait Stage {
    /// Command of the program with these arguments.
    fn program(&self, arguments: &[&str]) -> Command;
}

impl Stage for Crib {
    fn program(&self, arguments: &[&str]) -> Command {
        self.toolcrib(arguments)
    }
}

/// Text of a snapshot: commands of the program and what they print, one after the other.
pub(crate) struct Page {
    text: RefCell<String>,
    /// Parts that differ between runs of this page alone, such as sizes of compiled programs.
    hidden: Vec<(Regex, &'static str)>,
}

impl Page {
    pub(crate) fn new() -> Self {
        Self { text: RefCell::default(), hidden: Vec::new() }
    }

    /// Gives a name to what differs between builds or runs on this page, and is not what the page is about.
    pub(crate) fn hide(mut self, expression: &str, name: &'static str) -> Self {
        self.hidden.push((Regex::new(expression).unwrap(), name));
        self
    }

    /// Page about built programs: their compiler decides on their imports and their metadata.
    pub(crate) fn of_programs() -> Self {
        let imports = Self::new().hide(r"(?m)^(FOR +IMPORTS +USES\n)(?:.+\n)+", "$1[imports]\n");
        imports.hide(r"(?m)^(METADATA .*\n)(?:.+\n)+", "$1[metadata]\n")
    }

    /// Writes a line about what follows.
    pub(crate) fn note(&self, words: impl AsRef<str>) {
        self.write(&words.as_ref().lines().map(|line| format!("# {line}\n")).collect::<String>());
    }

    /// Runs the program, and shows the command and its output.
    pub(crate) fn run(&self, stage: &impl Stage, arguments: &[&str]) -> Ran {
        self.command(&mut stage.program(arguments))
    }

    /// Runs a command of the program, and shows it, with the variables that are not in every crib, and its output.
    pub(crate) fn command(&self, command: &mut Command) -> Ran {
        let ran = Ran::of(command);
        self.show(&ran);
        ran
    }

    /// Shows a command that has ended.
    pub(crate) fn show(&self, ran: &Ran) {
        assert!(!ran.line.is_empty(), "the command line is known: {ran:?}");
        let mut text = format!("$ {}\n", ran.line);
        for (name, output) in [("standard output", &ran.stdout), ("standard error", &ran.stderr)] {
            if !output.is_empty() {
                let end = if output.ends_with('\n') { "" } else { "\n" };
                write!(text, "[{name}]\n{output}{end}").unwrap();
            }
        }
        match ran.code {
            Some(code) => writeln!(text, "[exit code {code}]\n").unwrap(),
            None => text += "[no exit code]\n\n",
        }
        self.write(&text);
    }

    /// Shows a text that is no output, such as a file or what a terminal shows.
    pub(crate) fn text(&self, name: &str, text: impl AsRef<str>) {
        let text = text.as_ref();
        let end = if text.ends_with('\n') { "" } else { "\n" };
        self.write(&format!("[{name}]\n{text}{end}\n"));
    }

    fn write(&self, text: &str) {
        let mut text = filtered(text);
        for (expression, name) in &self.hidden {
            text = expression.replace_all(&text, *name).into_owned();
        }
        *self.text.borrow_mut() += &text;
    }

    /// Compares the page with `tests/snapshots/NAME.snap`.
    pub(crate) fn matches(self, name: &str) {
        let mut text = self.text.into_inner();
        // A column is as wide as the folders of this machine.
        if FOLDER_IN_TABLE.is_match(&text) {
            text = PADDING.replace_all(&text, "$1  ").into_owned();
        }
        assert!(!text.is_empty(), "a page without anything is compared with nothing");
        assert_shown(name, &text);
    }
}

/// Compares a text with `tests/snapshots/NAME.snap`. To accept a difference, see `tests/README.md`.
fn assert_shown(name: &str, text: &str) {
    let (group, name) = name.split_once('/').expect("a name of a snapshot has a group");
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(snapshots().join(group));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// Folder of the snapshots.
pub(crate) fn snapshots() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/snapshots")
}

/// Text without what differs between machines, times and builds, and with visible control characters.
pub(crate) fn filtered(text: &str) -> String {
    let mut text = text.replace("\r\n", "\n");
    for (expression, name) in FOLDERS.iter() {
        text = expression.replace_all(&text, *name).into_owned();
    }
    if cfg!(windows) {
        text = with_slashes(&text);
    }
    for (expression, name) in EXPRESSIONS.iter() {
        text = expression.replace_all(&text, |found: &Captures| named(found, name)).into_owned();
    }
    // Where the user's settings lie on macOS.
    text = text.replace("home/Library/Application Support/", "home/.config/");
    let visible = |found: &Captures| format!("⟨{:x}⟩", u32::from(found[0].chars().next().unwrap()));
    CONTROL.replace_all(&text, visible).into_owned()
}

/// Text with the paths of Windows in the form of other systems. Escapes of characters stay.
fn with_slashes(text: &str) -> String {
    let text = BELOW_FOLDER.replace_all(text, |found: &Captures| found[0].replace(r"\\", "/").replace('\\', "/"));
    let separator = |found: &Captures| if found.get(1).is_some() { found[0].to_owned() } else { "/".to_owned() };
    BACKSLASH.replace_all(&text, separator).into_owned()
}

#[test]
fn only_the_separators_of_paths_are_replaced() {
    for (text, expected) in [
        (r"[crib]\work\a.txt", "[crib]/work/a.txt"),
        (r#"{\"at\":\"[crib]\\work\\n.txt\"}"#, r#"{\"at\":\"[crib]/work/n.txt\"}"#),
        (r"tools\bin\n.wasm", "tools/bin/n.wasm"),
        (r#"{"path":"a\\b","text":"\u{1b}[31m\"\u001b\n"}"#, r#"{"path":"a\\b","text":"\u{1b}[31m\"\u001b\n"}"#),
    ] {
        assert_eq!(with_slashes(text), expected);
    }
}

/// Name of a volatile part in a snapshot.
fn named(found: &Captures, name: &str) -> String {
    match name {
        // As long as it was, so that columns stay below their headings.
        "[time]" if found.get(2).is_none() => format!("[time{}]", " ".repeat(found[0].len() - name.len())),
        // The help stays as it is.
        "$1[run]" if &found[2] == EXAMPLE => found[0].to_owned(),
        name => {
            let mut text = String::new();
            found.expand(name, &mut text);
            text
        }
    }
}
