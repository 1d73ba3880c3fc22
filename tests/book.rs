//! Runs the code blocks of the user's book (`cli/docs/src`) and of the README with the built program.
//!
//! Each page has a folder of its own, laid out like the repository: `target/crib` and `cli/demo` are copies. `toolcrib` is on
//! the `PATH`; the audit log, approvals, results and secrets lie outside of the folder. Blocks are taken in the order of the
//! page. A caption is the last line before a block, where it begins with a file name in backticks and ends with a colon.
//!
//! | block | treatment |
//! |---|---|
//! | `console` | A line that begins with `$ ` is a command for bash; a `\` at its end continues it. The lines after it are its expected output, standard error included: `…` stands for any characters, a line of `…` alone for any lines. A command exits with 0 unless it ends in `# exit N`. |
//! | `json`, `toml` | Parsed; with a caption also written to that file. |
//! | `markdown`, `yaml`, `text` | Written to the file that the caption names. |
//! | `wat` | Written to the file that the caption names, and assembled into the file beside it that ends in `.wasm`. |
//! | `rust` | With a caption, an excerpt of that file, which must exist by then; without one, an excerpt of this file. |
//!
//! `ignore` in the info string (such as `console,ignore`) marks a block that needs a network, a key or a compiler. Every other
//! block has to be one of the above: a block that nothing checks is an error.

#![cfg(unix)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use futures::future::{BoxFuture, FutureExt, ready};
use regex::Regex;
use toolcrib::hook::{Hook, ProposedCall, Verdict};
use toolcrib::policy::Permission;
use toolcrib::{Audit, HandlerError, Policy, Runtime, ToolCall, ToolResult};

use crate::crib::{Crib, TOOLCRIB, target};

/// Time limit of one command.
const MAX_COMMAND_TIME: Duration = Duration::from_secs(600);
/// Fewest blocks that are run or written, over all pages.
const MIN_CHECKED_BLOCKS: usize = 75;
/// Most bytes of the README.
const MAX_README_BYTES: usize = 8000;
const README: &str = "README.md";
const BOOK: &str = "cli/docs/src";
const SUMMARY: &str = "SUMMARY.md";

/// A fenced block of a page.
#[derive(Debug, Default)]
struct Block {
    line: usize,
    language: String,
    is_ignored: bool,
    caption: Option<String>,
    text: String,
}

/// A command of a `console` block with its expected end.
#[derive(Debug)]
struct Step {
    line: usize,
    command: String,
    code: i32,
    output: String,
}

/// Counts of blocks, and a message for each that fails.
#[derive(Default)]
struct Report {
    checked: usize,
    ignored: usize,
    failures: Vec<String>,
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the repository")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = repository().join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Paths of the README and of every page of the book, from the repository's root.
fn pages() -> Vec<PathBuf> {
    let entries = fs::read_dir(repository().join(BOOK)).expect("the book").map(|entry| entry.unwrap().file_name());
    let is_page = |name: &PathBuf| name.extension().is_some_and(|it| it == "md") && name != Path::new(SUMMARY);
    let mut pages: Vec<PathBuf> =
        entries.map(PathBuf::from).filter(is_page).map(|it| Path::new(BOOK).join(it)).collect();
    pages.sort();
    pages.insert(0, README.into());
    pages
}

/// Blocks of a page, in order.
fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut before, mut open) = (Vec::new(), "", None::<(usize, Block)>);
    for (index, line) in page.lines().enumerate() {
        let ticks = line.bytes().take_while(|byte| *byte == b'`').count();
        match open.take() {
            Some((fence, block)) if ticks >= fence && line.len() == ticks => {
                blocks.push(block);
                before = "";
            }
            Some((fence, mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some((fence, block));
            }
            None if ticks >= 3 => {
                let mut info = line[ticks..].split(',').map(str::trim);
                let language = info.next().unwrap_or_default().to_owned();
                let is_ignored = info.any(|word| word == "ignore");
                let caption = caption(before);
                open = Some((ticks, Block { line: index + 1, language, is_ignored, caption, ..Block::default() }));
            }
            None if line.trim().is_empty() => {}
            None => before = line,
        }
    }
    assert!(open.is_none(), "a block is not closed: {open:?}");
    blocks
}

/// The file name at the beginning of a line that ends in a colon.
fn caption(line: &str) -> Option<String> {
    let (name, rest) = line.strip_prefix('`')?.split_once('`')?;
    rest.ends_with(':').then(|| name.to_owned())
}

/// Commands of a `console` block. Text before the first command is an error.
fn steps(block: &Block) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_continued = false;
    for (offset, line) in block.text.lines().enumerate() {
        if is_continued {
            let step = steps.last_mut().ok_or("a line is continued before the first command")?;
            step.command += &format!("\n{line}");
            is_continued = line.ends_with('\\');
        } else if let Some(command) = line.strip_prefix("$ ") {
            let line = block.line + 1 + offset;
            steps.push(Step { line, command: command.to_owned(), code: 0, output: String::new() });
            is_continued = command.ends_with('\\');
        } else {
            let step = steps.last_mut().ok_or("the block begins with no `$ ` line; mark it `ignore` or add one")?;
            step.output += &format!("{}\n", line.trim_end());
        }
    }
    for step in &mut steps {
        if let Some((_, code)) = step.command.rsplit_once("# exit ") {
            step.code = code.trim().parse().map_err(|_| format!("`# exit {code}` is no exit code"))?;
        }
    }
    Ok(steps)
}

/// Matches a whole output against lines with `…` in them.
fn is_like(printed: &str, expected: &str) -> bool {
    let line = |line: &str| match line {
        "…" => "(?:.*\n)*".to_owned(),
        line => line.split('…').map(regex::escape).collect::<Vec<_>>().join(".*") + "\n",
    };
    let pattern: String = expected.lines().map(line).collect();
    let printed: String = printed.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    Regex::new(&format!(r"\A{pattern}\z")).expect("an escaped pattern").is_match(&printed)
}

/// Runs a command in a crib's working folder: its exit code, and everything that it prints.
fn run(crib: &Crib, command: &str) -> (Option<i32>, String) {
    let file = crib.path("printed");
    let printed = File::create(&file).expect("a file");
    let folders = [Path::new(TOOLCRIB).parent().expect("a folder").to_path_buf()];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(folders.into_iter().chain(std::env::split_paths(&path))).expect("a PATH");
    let program = crib.toolcrib(&[]);
    let variables = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let mut child = Command::new("bash")
        .args(["-c", command])
        .env_clear()
        .envs(variables)
        .env("PATH", path)
        .current_dir(crib.path("work"))
        .stdin(Stdio::null())
        .stdout(printed.try_clone().expect("a second handle"))
        .stderr(printed)
        .spawn()
        .expect("bash starts");
    let until = Instant::now() + MAX_COMMAND_TIME;
    let code = loop {
        match child.try_wait().expect("a child") {
            Some(status) => break status.code(),
            None if Instant::now() > until => {
                child.kill().expect("a child that runs");
                child.wait().expect("an end");
                break None;
            }
            None => thread::sleep(Duration::from_millis(2)),
        }
    };
    (code, String::from_utf8_lossy(&fs::read(file).expect("what was printed")).into_owned())
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).unwrap_or_else(|error| panic!("{}: {error}", from.display())) {
        let (from, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(from, to).expect("a copy");
        }
    }
}

/// A working folder that is laid out like the repository, as far as the page needs it.
fn working_folder(page: &str) -> Crib {
    let crib = Crib::new();
    if page.contains("target/crib") {
        copy(&target().join("crib"), &crib.path("work/target/crib"));
    }
    if page.contains("cli/demo") {
        copy(&repository().join("cli/demo"), &crib.path("work/cli/demo"));
    }
    crib
}

fn write(crib: &Crib, name: &str, content: impl AsRef<[u8]>) {
    let file = crib.path("work").join(name);
    fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    fs::write(file, content).expect("a file");
}

/// Checks one block. The error says what is wrong, without its place.
fn check(crib: &Crib, block: &Block) -> Result<(), String> {
    let text = block.text.as_str();
    match block.language.as_str() {
        "json" => serde_json::from_str::<serde_json::Value>(text).map(drop).map_err(|error| error.to_string())?,
        "toml" => toml_edit::Document::parse(text).map(drop).map_err(|error| error.to_string())?,
        "rust" => return check_excerpt(crib, block),
        "markdown" | "yaml" | "text" | "wat" if block.caption.is_some() => {}
        "markdown" | "yaml" | "text" | "wat" => return Err("a caption has to name the file of the block".to_owned()),
        other => return Err(format!("nothing checks a block of `{other}`: see the top of tests/book.rs")),
    }
    if let Some(name) = &block.caption {
        if block.language == "wat" {
            let binary = name.strip_suffix(".wat").ok_or("a caption of the text format has to end in `.wat`")?;
            write(crib, &format!("{binary}.wasm"), wat::parse_str(text).map_err(|error| error.to_string())?);
        }
        write(crib, name, text);
    }
    Ok(())
}

/// Checks that the lines of a block follow one another in its file, whatever their indentation.
fn check_excerpt(crib: &Crib, block: &Block) -> Result<(), String> {
    let source = match &block.caption {
        Some(name) => fs::read_to_string(crib.path("work").join(name)).map_err(|error| format!("{name}: {error}"))?,
        None => include_str!("book.rs").to_owned(),
    };
    let lines = |text: &str| text.lines().map(|line| format!("{}\n", line.trim())).collect::<String>();
    if lines(&source).contains(&lines(&block.text)) {
        Ok(())
    } else {
        Err(format!("the block is no excerpt of {}", block.caption.as_deref().unwrap_or("tests/book.rs")))
    }
}

/// Checks every block of a page.
fn check_page(page: &Path) -> Report {
    let text = read(page);
    let crib = working_folder(&text);
    let mut report = Report::default();
    let mut fail = |line: usize, what: String| report.failures.push(format!("{}:{line}: {what}", page.display()));
    for block in blocks(&text) {
        if block.is_ignored {
            report.ignored += 1;
            continue;
        }
        report.checked += 1;
        if block.language != "console" {
            check(&crib, &block).unwrap_or_else(|wrong| fail(block.line, wrong));
            continue;
        }
        for Step { line, command, code, output } in steps(&block).unwrap_or_else(|wrong| {
            fail(block.line, wrong);
            Vec::new()
        }) {
            let (ended, printed) = run(&crib, &command);
            if ended != Some(code) || !is_like(&printed, &output) {
                let ended = ended.map_or("stopped".to_owned(), |code| code.to_string());
                fail(
                    line,
                    format!("$ {command}\n-- expected, exit {code}:\n{output}-- printed, exit {ended}:\n{printed}"),
                );
            }
        }
    }
    report
}

#[test]
fn the_blocks_of_the_book_and_of_the_readme_do_as_they_say() {
    let pages = pages();
    let reports: Vec<Report> = thread::scope(|scope| {
        let threads: Vec<_> = pages.iter().map(|page| scope.spawn(move || check_page(page))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a report")).collect()
    });
    let failures: Vec<&str> = reports.iter().flat_map(|report| &report.failures).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} failures\n\n{}", failures.len(), failures.join("\n"));
    let checked: usize = reports.iter().map(|report| report.checked).sum();
    let ignored: usize = reports.iter().map(|report| report.ignored).sum();
    assert!(checked >= MIN_CHECKED_BLOCKS, "{checked} blocks are checked");
    assert!(ignored * 4 < checked, "{ignored} blocks are ignored, {checked} are checked");
}

#[test]
fn the_first_command_of_the_readme_plays_the_demonstration() {
    let readme = read(README);
    let command = readme.lines().find_map(|line| line.strip_prefix("cargo run -- ")).expect("the command");
    let crib = working_folder("target/crib cli/demo");
    let (code, printed) = run(&crib, &format!("toolcrib {command}"));
    assert_eq!(code, Some(0), "{printed}");
    assert!(crib.path("work/target/crib/demo/desk/plan.md").is_file(), "{printed}");
}

#[test]
fn the_readme_is_short_and_every_page_is_in_the_summary() {
    let bytes = read(README).len();
    assert!(bytes <= MAX_README_BYTES, "the README has {bytes} bytes, more than {MAX_README_BYTES}");
    let summary = read(Path::new(BOOK).join(SUMMARY));
    for page in pages().iter().skip(1) {
        let name = page.file_name().expect("a name").to_string_lossy();
        assert!(summary.contains(&format!("({name})")), "`{name}` is not in {SUMMARY}");
    }
}

/// Name of a heading in a link, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let kept = |c: char| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || "-_".contains(c) => Some(c.to_ascii_lowercase()),
        _ => None,
    };
    heading.trim_start_matches('#').trim().chars().filter_map(kept).collect()
}

#[test]
fn links_lead_to_files_and_headings_that_exist() {
    let link = Regex::new(r"\]\(([^)\s]+)\)").expect("a pattern");
    let mut dead = Vec::new();
    for page in pages().into_iter().chain([Path::new(BOOK).join(SUMMARY)]) {
        let text = read(&page);
        let targets = link.captures_iter(&text).map(|found| found[1].to_owned());
        for target in targets.filter(|target| !target.contains("://")) {
            let (path, heading) = target.split_once('#').unwrap_or((target.as_str(), ""));
            let file = match path {
                "" => page.clone(),
                path => page.parent().expect("a folder").join(path),
            };
            let is_file = repository().join(&file).exists();
            let is_heading = heading.is_empty()
                || is_file && read(&file).lines().any(|line| line.starts_with('#') && anchor(line) == heading);
            if !is_file || !is_heading {
                dead.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

/// Program of the page `embedding.md`, which shows an excerpt.
async fn first_line_of_the_jobs(folder: &Path) -> Result<ToolResult, toolcrib::Error> {
    let runtime = Runtime::builder(Audit::folder(folder.join("audit")))
        .source(folder.join("target/crib"))
        .policy(Policy::default().allow(Permission::Read(folder.join("target/crib/demo/desk"))))
        .build()?;
    let arguments = r#"{"path":"jobs.md","start":1,"end":1}"#;
    let result = runtime.call(ToolCall::new("call-1", "fs_read_lines", arguments)).await;
    Ok(result)
}

/// Hook of the page `embedding.md`: it blocks tools that are not read-only.
struct ReadOnly;

impl Hook for ReadOnly {
    fn name(&self) -> &str {
        "read-only"
    }

    fn before<'a>(&'a self, call: ProposedCall<'a>) -> BoxFuture<'a, Result<Verdict, HandlerError>> {
        let verdict = match call.tool.interface.safety.is_read_only.value {
            true => Verdict::Pass,
            false => Verdict::Block("this program changes nothing".to_owned()),
        };
        ready(Ok(verdict)).boxed()
    }
}

#[tokio::test]
async fn the_program_of_the_page_on_embedding_reads_a_line() {
    let crib = working_folder("target/crib");
    let mut result = first_line_of_the_jobs(&crib.path("work")).await.expect("a runtime");
    // A busy machine may not compile the program within the deadline.
    for _ in 0..3 {
        if result.receipt.outcome == toolcrib::Outcome::Deadline {
            result = first_line_of_the_jobs(&crib.path("work")).await.expect("a runtime");
        }
    }
    assert_eq!(result.receipt.outcome, toolcrib::Outcome::Ok, "{}", result.content());
}

#[tokio::test]
async fn the_hook_of_the_page_on_embedding_blocks_what_is_not_read_only() {
    let crib = working_folder("target/crib");
    let folder = crib.path("work/target/crib");
    let policy = Policy::default().allow(Permission::Write(folder.join("demo/desk")));
    let builder = Runtime::builder(Audit::off()).source(&folder).policy(policy);
    let runtime = builder.hook(Arc::new(ReadOnly)).build().expect("a runtime");
    for (name, outcome) in [("fs_stat", toolcrib::Outcome::Ok), ("fs_rm", toolcrib::Outcome::Denied)] {
        runtime.prepare(name).await.expect("a program");
        let result = runtime.call(ToolCall::new("call-1", name, r#"{"path":"jobs.md"}"#)).await;
        assert_eq!(result.receipt.outcome, outcome, "{}", result.content());
    }
}
