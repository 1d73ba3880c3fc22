//! Trust in the sources and files of this console: what is not trusted, or has changed since it was, with everything that
//! `toolcrib trust` shows, and a button that trusts exactly what was shown. The command uses the same records.

use std::path::{Path, PathBuf};

use maud::{Markup, html};
use toolcrib::source::digest;
use toolcrib_base::render::{self, Advice, counted};
use toolcrib_packages::builtin;
use toolcrib_settings::subjects;
use toolcrib_settings::trust::{State, Subject, TrustRecord, TrustRecords, Trusted, review};
use toolcrib_settings::{config, instructions};
use toolcrib_sources::options::Sources;

use super::layout::{self, ROWS, hidden};
use super::query::{Query, parameter};
use super::states::word;
use super::table::table;
use super::view::Views;
use super::visit::{ViewError, Visit};

const HEADINGS: [&str; 5] = ["Path", "State", "Requests", "Trusted (UTC)", "End"];
/// Maximum characters of a review.
const MAX_REVIEW: usize = 60_000;

/// Path that can be trusted, as it is now.
pub(crate) struct Candidate {
    path: PathBuf,
    subject: anyhow::Result<Subject>,
}

/// Shows what waits for trust, and what is trusted.
pub(super) fn section(views: &Views, visit: &Visit) -> Result<Markup, ViewError> {
    let Some(records) = TrustRecords::of_user() else { return Ok(html! {}) };
    let trusted = views.tools.sources().trust.trusted()?;
    let recorded = records.read()?;
    let mut reviews = Vec::new();
    for candidate in candidates(views.tools.sources()) {
        visit.check_time()?;
        reviews.extend(review(visit, &trusted, &candidate));
    }
    let rows = recorded.iter().rev().take(ROWS).map(|record| row(visit, record)).collect();
    Ok(html! {
        h2 { "Trust" }
        @if let Some(done) = visit.query.get("trust") {
            p.verdict.good role="status" {
                @if done == "ended" { "The path is no longer trusted." } @else { "The content is trusted." }
            }
        }
        @if reviews.is_empty() { p.empty { "Everything that the sources here request is trusted, or they request nothing." } }
        @else {
            p { "Trust allows what is listed. What a line leaves to you (\u{201c}that you grant\u{201d}) needs an option such as "
                code { "--allow-read" } " too." }
        }
        @for review in reviews { (review) }
        @if !recorded.is_empty() {
            (table("Trusted paths, newest first", HEADINGS, rows))
            @if recorded.len() > ROWS { p.quiet { code { "toolcrib trust --list" } " lists all " (recorded.len()) "." } }
        }
    })
}

/// Returns the console's sources, and the settings and instructions of its folder.
fn candidates(sources: &Sources) -> Vec<Candidate> {
    let files = config::default_file().into_iter().chain(instructions::default_file());
    // A person agreed to an installed bundle when they installed it.
    let is_agreed = |path: &Path| builtin::holds(path) || sources.signers(path).is_some();
    let paths = sources.paths().unwrap_or_default().into_iter().filter(|path| !is_agreed(path));
    let paths = paths.chain(files).take(ROWS);
    paths.map(|path| Candidate { subject: subjects::read(&path), path }).collect()
}

/// Shows a path that is not trusted as it is now; `None` for one that is, or that requests nothing.
fn review(visit: &Visit, trusted: &Trusted, candidate: &Candidate) -> Option<Markup> {
    let path = render::from_here(&candidate.path).display().to_string();
    let subject = match &candidate.subject {
        Ok(subject) => subject,
        Err(error) => {
            let text = format!("{path}: {}", render::message(error));
            return Some(html! { p.problem { (layout::line(&text, 1_000)) } });
        }
    };
    let state = trusted.state(subject);
    let name = match &state {
        State::Trusted => return None,
        State::Unknown if !subject.has_requests() => return None,
        State::Unknown => "not trusted",
        State::Changed(_) => "changed",
    };
    let shown = render::from_here(&candidate.path).display().to_string();
    let text = review::text(&shown, subject, &state);
    // Only what a person can see here is trusted here.
    let is_whole = subject.lists_all_requests() && text.chars().count() <= MAX_REVIEW;
    let label = format!("trust-{}", &key(&subject.path)[7..19]);
    Some(html! {
        article.card aria-labelledby=(label) {
            h3 id=(label) { (layout::line(&path, 300)) " " (word(name)) }
            (layout::block(&text, MAX_REVIEW))
            @if !is_whole {
                p.problem { "This is too long to review here: read it with " code { "toolcrib trust --json" } "." }
            } @else if visit.session.decides() {
                form.decide method="post" action=(visit.path("decisions/trust")) {
                    (hidden(visit, &[("path", &key(&subject.path)), ("digest", &subject.digest)]))
                    p {
                        button.allow name="do" value="trust" { "Trust this content" }
                        span.quiet { " until any of it changes" }
                    }
                }
            }
        }
    })
}

fn row(visit: &Visit, record: &TrustRecord) -> [Markup; 5] {
    let path = render::from_here(&record.path).display().to_string();
    let requests: usize = record.items.iter().map(|item| item.requests.len()).sum();
    let state = match subjects::read(&record.path) {
        Ok(subject) if subject.digest == record.digest => "trusted",
        Ok(_) => "changed",
        Err(_) => "unreadable",
    };
    let label = render::one_line(&render::shortened(&format!("Stop trusting {path}"), 300));
    [
        html! { code { (layout::line(&path, 300)) } },
        word(state),
        html! { (counted(requests, "request")) },
        layout::time(&record.given.to_string()),
        html! {
            @if visit.session.decides() {
                form method="post" action=(visit.path("decisions/trust")) {
                    (hidden(visit, &[("path", &key(&record.path))]))
                    button.deny name="do" value="end" aria-label=(label) { "End trust" }
                }
            } @else { span.quiet { "–" } }
        },
    ]
}

/// Digest that names a path in a form.
fn key(path: &Path) -> String {
    digest(path.as_os_str().as_encoded_bytes())
}

/// Trusts what was shown, or ends a trust; returns the parameters of the page that confirms it.
pub(super) fn act(views: &Views, form: &Query) -> Result<String, ViewError> {
    let none =
        || Advice::new("no file for trusted paths: no home directory was found", "set HOME to your home directory");
    let records = TrustRecords::of_user().ok_or_else(none)?;
    let wanted = form.get("path").unwrap_or_default();
    let done = match form.get("do") {
        Some("trust") => trust(views, &records, wanted, form.get("digest").unwrap_or_default())?,
        Some("end") => end(&records, wanted)?,
        _ => return Err(ViewError::Unknown("The form has no answer.".to_owned())),
    };
    views.tools.reload();
    Ok(parameter("trust", done))
}

fn trust(views: &Views, records: &TrustRecords, wanted: &str, shown: &str) -> Result<&'static str, ViewError> {
    let subjects = candidates(views.tools.sources()).into_iter().filter_map(|candidate| candidate.subject.ok());
    let found = subjects.into_iter().find(|subject| key(&subject.path) == wanted);
    let subject = found.ok_or_else(|| ViewError::Unknown("No source of this console has this path.".to_owned()))?;
    if subject.digest != shown || !subject.lists_all_requests() {
        let path = render::from_here(&subject.path).display().to_string();
        let message = format!("`{}` has changed since it was shown: it is not trusted", render::one_line(&path));
        return Err(Advice::new(message, "go back to Decisions and review it as it is now").into());
    }
    records.add(&subject)?;
    Ok("given")
}

fn end(records: &TrustRecords, wanted: &str) -> Result<&'static str, ViewError> {
    let found = records.read()?.into_iter().find(|record| key(&record.path) == wanted);
    match found.map(|record| records.remove(&record.path)).transpose()? {
        Some(true) => Ok("ended"),
        _ => Err(ViewError::Unknown("This path is no longer trusted.".to_owned())),
    }
}
