//! Tool `fs_replace`: replaces a text or a regular expression in one file or in all files that globs select, completely or not at
//! all.

mod preview;
mod replacer;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use file_selection::{
    Entry, Filter, LeftOut, MAX_FILE_BYTES, MAX_FILES, check, counted, default_exclude, default_file_bytes,
    default_path,
};
use serde::{Deserialize, Serialize};
use toolcrib_guest::files::Tree;
use toolcrib_guest::{Error, PathContext, error};

use crate::preview::Preview;
use crate::replacer::{Options, Replaced, Replacer, TooLarge};

const MAX_PATTERN_BYTES: usize = 64 * 1024;
const MAX_REPLACEMENT_BYTES: usize = 64 * 1024;
/// Maximum changed files: writing them, and taking them back after a failed write, fits into the time and the quota of a call.
const MAX_CHANGED_FILES: usize = 2000;
/// Maximum size of all changed files, before and after: they are in memory together.
const MAX_CHANGED_BYTES: usize = 32 * 1024 * 1024;
const MAX_REPLACEMENTS: usize = 1_000_000;
/// Maximum changed files that are listed.
const MAX_LISTED: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    pattern: String,
    replacement: String,
    #[serde(default = "default_path")]
    path: String,
    #[serde(default)]
    regex: bool,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    include: Vec<String>,
    #[serde(default = "default_exclude")]
    exclude: Vec<String>,
    expected: Option<usize>,
    #[serde(default)]
    preview: bool,
    #[serde(default = "default_file_bytes")]
    max_file_bytes: u64,
}

#[derive(Serialize)]
struct Output {
    /// Number of replaced matches.
    replacements: usize,
    files_changed: usize,
    /// The first changed files.
    files: Vec<Changed>,
    #[serde(skip_serializing_if = "is_zero")]
    files_not_listed: usize,
    /// Number of matches that are equal to their replacement already.
    #[serde(skip_serializing_if = "is_zero")]
    unchanged_matches: usize,
    files_searched: usize,
    /// Files and folders that were not searched, each kind with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
    /// Differences that the call would make, if it is a preview.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    preview: Option<Preview>,
}

#[derive(Serialize)]
struct Changed {
    path: String,
    replacements: usize,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    for (name, text, limit) in
        [("pattern", &args.pattern, MAX_PATTERN_BYTES), ("replacement", &args.replacement, MAX_REPLACEMENT_BYTES)]
    {
        if text.len() > limit {
            return Err(error!("`{name}` is {} bytes, over the limit of {limit}", text.len()));
        }
    }
    if args.pattern.is_empty() {
        return Err(error!("`pattern` is empty"));
    }
    check("max_file_bytes", args.max_file_bytes, 1, MAX_FILE_BYTES)?;
    let options = Options { regex: args.regex, ignore_case: args.ignore_case };
    let replacer = Replacer::new(&args.pattern, &args.replacement, options)?;
    let mut edits = Edits { preview: args.preview.then(Preview::default), ..Edits::default() };
    edits.find(&args, &replacer)?;
    edits.judge(&args)?;
    let listed = edits.changed.len().min(MAX_LISTED);
    let output = Output {
        replacements: edits.replacements,
        files_changed: edits.changed.len(),
        files_not_listed: edits.changed.len() - listed,
        files: edits.changed.into_iter().take(MAX_LISTED).collect(),
        unchanged_matches: edits.same,
        files_searched: edits.searched,
        left_out: edits.left_out.reasons(edits.searched, args.max_file_bytes),
        preview: edits.preview,
    };
    if output.preview.is_none() {
        edits.tree.commit()?;
    }
    Ok(output)
}

/// Edits of all files, made in memory.
#[derive(Default)]
struct Edits {
    tree: Tree,
    changed: Vec<Changed>,
    replacements: usize,
    same: usize,
    searched: usize,
    /// Size of all changed files, before and after.
    bytes: usize,
    left_out: LeftOut,
    preview: Option<Preview>,
}

impl Edits {
    /// Edits every selected file.
    fn find(&mut self, args: &Args, replacer: &Replacer) -> Result<(), Error> {
        let filter = Filter::new(&args.include, &args.exclude)?;
        if fs::metadata(&args.path).at("replace in", &args.path)?.is_file() {
            if !filter.includes(Path::new(&args.path).file_name().unwrap_or_default().as_ref()) {
                self.left_out.count(&Entry::NotIncluded);
                return Ok(());
            }
            let text = file_selection::text(&args.path, args.max_file_bytes)
                .map_err(|reason| error!("replace in `{}`: {}", args.path, reason.of_one(args.max_file_bytes)))?;
            return self.edit(args.path.clone(), text, replacer);
        }
        for entry in file_selection::entries(&args.path, &filter) {
            let Entry::File(path) = entry else {
                self.left_out.count(&entry);
                continue;
            };
            if self.searched + self.left_out.files() == MAX_FILES {
                return Err(error!(
                    "more than {MAX_FILES} files are selected: narrow `path` or `include`; {UNTOUCHED}"
                ));
            }
            match file_selection::text(&path, args.max_file_bytes) {
                Ok(text) => self.edit(path, text, replacer)?,
                Err(reason) => self.left_out.skip(reason),
            }
        }
        Ok(())
    }

    fn edit(&mut self, path: String, text: String, replacer: &Replacer) -> Result<(), Error> {
        self.searched += 1;
        let limit = usize::try_from(MAX_FILE_BYTES).unwrap_or(usize::MAX);
        let Replaced { text: after, replaced, same } = match replacer.replace(&text, limit) {
            Ok(Some(replaced)) => replaced,
            Ok(None) => return Ok(()),
            Err(TooLarge) => {
                return Err(error!("`{path}` would be over the limit of {MAX_FILE_BYTES} bytes; {UNTOUCHED}"));
            }
        };
        self.same += same;
        if replaced == 0 {
            return Ok(());
        }
        self.replacements += replaced;
        self.bytes += text.len() + after.len();
        let over = |what: &str| error!("{what}: narrow `path` or `include`, and call once for each part; {UNTOUCHED}");
        if self.changed.len() == MAX_CHANGED_FILES {
            return Err(over(&format!("more than {MAX_CHANGED_FILES} files would change")));
        }
        if self.bytes > MAX_CHANGED_BYTES {
            return Err(over(&format!(
                "the changed files are over {MAX_CHANGED_BYTES} bytes before and after together"
            )));
        }
        if self.replacements > MAX_REPLACEMENTS {
            return Err(over(&format!("more than {MAX_REPLACEMENTS} replacements")));
        }
        match &mut self.preview {
            Some(preview) => preview.add(&path, &text, &after),
            None => self.tree.edit(&path, text, after),
        }
        self.changed.push(Changed { path, replacements: replaced });
        Ok(())
    }

    /// Refuses edits that change nothing, or make another number of replacements than expected.
    fn judge(&mut self, args: &Args) -> Result<(), Error> {
        let Self { replacements, same, searched, .. } = *self;
        let files = counted(searched, "searched file");
        if let Some(expected) = args.expected.filter(|expected| *expected != replacements) {
            let equal = match same {
                0 => String::new(),
                _ => format!(" (and {same} equal to the replacement already)"),
            };
            let places: Vec<String> = self.changed.iter().take(MAX_NAMED).map(Changed::describe).collect();
            let more = if self.changed.len() > MAX_NAMED { ", …" } else { "" };
            let places = if places.is_empty() { String::new() } else { format!(": {}{more}", places.join(", ")) };
            return Err(error!(
                "{} in {files}{equal}, not the `expected` {expected}; {UNTOUCHED}{places}{}",
                counted(replacements, "replacement"),
                self.reasons(args)
            ));
        }
        if replacements > 0 {
            return Ok(());
        }
        if same > 0 {
            return Err(error!("every match ({same}) is equal to its replacement already; {UNTOUCHED}"));
        }
        let hint = match args.regex {
            true if args.pattern.contains("\\r") => "; write `\\n` for every line break, also for `\\r\\n`",
            false if args.pattern.contains(SPECIAL) => {
                "; the pattern is plain text: set `regex` for a regular expression"
            }
            _ => "",
        };
        let pattern = shown(&args.pattern);
        Err(error!("nothing matches `{pattern}` in {files}; {UNTOUCHED}{hint}{}", self.reasons(args)))
    }

    /// Returns the reasons for everything that was left out, for an error.
    fn reasons(&mut self, args: &Args) -> String {
        let reasons = std::mem::take(&mut self.left_out).reasons(self.searched, args.max_file_bytes);
        if reasons.is_empty() { String::new() } else { format!("; not searched: {}", reasons.join(", ")) }
    }
}

impl Changed {
    fn describe(&self) -> String {
        format!("`{}` {}", self.path, self.replacements)
    }
}

/// End of an error before anything is written.
const UNTOUCHED: &str = "no file was changed";
/// Characters that mean something in a regular expression, and are rare in plain text.
const SPECIAL: [char; 7] = ['\\', '^', '$', '*', '+', '?', '|'];
/// Maximum files with their numbers in an error.
const MAX_NAMED: usize = 10;
/// Maximum characters of the pattern in an error.
const MAX_SHOWN: usize = 200;

fn shown(pattern: &str) -> String {
    match pattern.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &pattern[..end]),
        None => pattern.to_owned(),
    }
}
