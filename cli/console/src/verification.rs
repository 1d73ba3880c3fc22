//! Verification of the audit log: every problem at its place, with the records around it.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use maud::{Markup, html};
use toolcrib::audit::{self, LogProblem, Severity};
use toolcrib_base::parse::rounded_size;
use toolcrib_base::render::{self, counted};
use toolcrib_settings::audit_facts::describe;

use super::layout::{self, MAX_LISTED};
use super::record::{Record, address};
use super::states::word;
use super::table::table;
use super::view::Views;
use super::visit::{Page, Tab, ViewError, Visit};

/// Maximum size of a log that is verified for a page: checking a sound log is one step.
const MAX_BYTES: u64 = 512 << 20;
/// Records or problems between two looks at the time.
const INTERVAL: usize = 1_000;
const HEADINGS: [&str; 4] = ["Place", "Severity", "Problem", "Records there"];

/// Record at a place, in a few words.
type Around = BTreeMap<(String, u64), Markup>;

pub(super) fn page(views: &Views, visit: &Visit) -> Result<Page, ViewError> {
    if !views.audit.is_dir() {
        return Ok(framed(html! { h1 { "Verification" } p.empty { "No call is logged yet." } }));
    }
    let bytes = size(&views.audit)?;
    if bytes > MAX_BYTES {
        return Ok(framed(html! {
            h1 { "Verification" }
            p { "The log has " (rounded_size(bytes)) ", which is too much for a page. In a terminal, "
                code { "toolcrib audit verify" } " checks it." }
        }));
    }
    let mut verification = audit::verify(&views.audit)?;
    let (mut problems, mut errors, mut warnings) = (Vec::new(), 0_usize, 0_usize);
    for (at, problem) in verification.by_ref().enumerate() {
        if at % INTERVAL == 0 {
            visit.check_time()?;
        }
        let problem = problem?;
        *if problem.severity == Severity::Error { &mut errors } else { &mut warnings } += 1;
        if problems.len() < MAX_LISTED {
            problems.push(problem);
        }
    }
    visit.check_time()?;
    let summary = describe(verification.summary());
    let around = around(views, visit, &problems)?;
    let left_out = (errors + warnings).saturating_sub(problems.len());
    let rows: Vec<[Markup; 4]> = problems.iter().map(|problem| row(problem, &around)).collect();
    Ok(framed(html! {
        h1 { "Verification" }
        @if errors > 0 {
            p.verdict.bad role="status" { "The log was changed: " (counted(errors, "error"))
                @if warnings > 0 { ", " (counted(warnings, "warning")) } "." }
        } @else if warnings > 0 {
            p.verdict.doubt role="status" { "The records are as they were written; " (counted(warnings, "warning")) "." }
        } @else {
            p.verdict.good role="status" { "Every record is as it was written, and none is missing." }
        }
        (layout::block(&summary, 1_000))
        @if !rows.is_empty() { (table("Problems in the order of the log", HEADINGS, rows)) }
        @if left_out > 0 { p { (counted(left_out, "more problem")) ": " code { "toolcrib audit verify" } " lists all." } }
        p.quiet {
            "Whoever can write the folder can also write a whole new log. To notice that, keep the value after "
            code { "head" } " elsewhere, and pass it to " code { "toolcrib audit verify --head" } "."
        }
    }))
}

/// Size of the files in the log's folder.
fn size(folder: &Path) -> io::Result<u64> {
    let sizes = fs::read_dir(folder)?.flatten().filter_map(|entry| entry.metadata().ok());
    Ok(sizes.filter(|about| about.is_file()).map(|about| about.len()).sum())
}

fn framed(content: Markup) -> Page {
    Page { title: "Verification".to_owned(), tab: Tab::Calls, content }
}

fn row(problem: &LogProblem, around: &Around) -> [Markup; 4] {
    let (name, line) = (file_name(problem), problem.line);
    let severity = if problem.severity == Severity::Error { "error" } else { "warning" };
    let records = html! {
        @if let Some(line) = line {
            ol.plain {
                @for at in nearby(line) {
                    @if let Some(record) = around.get(&(name.clone(), at)) {
                        li aria-current=[(at == line).then_some("true")] { span.quiet { "line " (at) ": " } (record) }
                    } @else if at == line {
                        li aria-current="true" { span.quiet { "line " (at) ": " } "not a record" }
                    }
                }
            }
        }
    };
    [
        html! { code { (layout::line(&render::from_here(&problem.file).display().to_string(), 200)) @if let Some(line) = line { ":" (line) } } },
        word(severity),
        layout::line(&problem.kind.to_string(), 400),
        records,
    ]
}

/// Reads the records around the problems.
fn around(views: &Views, visit: &Visit, problems: &[LogProblem]) -> Result<Around, ViewError> {
    let mut around = Around::new();
    let places = problems.iter().filter_map(|problem| Some((file_name(problem), problem.line?)));
    let wanted: BTreeMap<(String, u64), ()> =
        places.flat_map(|(name, line)| nearby(line).map(move |at| ((name.clone(), at), ()))).collect();
    if wanted.is_empty() {
        return Ok(around);
    }
    for (at, entry) in audit::records(&views.audit)?.enumerate() {
        if at % INTERVAL == 0 {
            visit.check_time()?;
        }
        let record = Record::of(&entry?);
        let place = (record.file.clone(), record.line);
        if wanted.contains_key(&place) {
            let shown = html! {
                a href=(visit.path(&address(&record.file, record.line))) { (layout::time(&record.ts)) } " "
                (layout::line(&record.tool, 60)) " " (word(&record.outcome))
            };
            around.insert(place, shown);
        }
    }
    Ok(around)
}

/// Lines beside a line, and itself.
fn nearby(line: u64) -> std::ops::RangeInclusive<u64> {
    line.saturating_sub(1).max(1)..=line.saturating_add(1)
}

fn file_name(problem: &LogProblem) -> String {
    problem.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
