//! Pages by their addresses, within a time limit, and their errors.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::StatusCode;
use maud::{Markup, html};
use toolcrib_agent::runs::RunStore;
use toolcrib_base::render::{self, one_line, shortened};
use toolcrib_sources::options::{Kept, Sources};

use super::export::Exports;
use super::layout::{Tab, frame};
use super::query::{Query, parameter};
use super::response::{self, Answer};
use super::revision::Subject;
use super::session::Session;
use super::tools::LoadedTools;
use super::trial::{self, Trials};
use super::{calls, charts, decisions, export, record, run, runs, tool, tools, trust, verification};

/// Maximum time to make a page.
const MAX_TIME: Duration = Duration::from_secs(10);
/// Maximum characters of an error.
const MAX_ERROR: usize = 2_000;

/// Everything that pages show.
pub struct Views {
    pub(super) runs: RunStore,
    /// Folder of the audit log.
    pub(super) audit: PathBuf,
    /// Files of permanent approvals and of calls that wait.
    pub(super) kept: Kept,
    pub(super) tools: LoadedTools,
    pub(super) exports: Exports,
    pub(super) trials: Trials,
}

/// Request of a session.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) session: Arc<Session>,
    /// Address of the page below that of the session.
    page: String,
    pub(super) query: Query,
    until: Instant,
}

/// Error of a page.
#[derive(Debug)]
pub(super) enum ViewError {
    /// There is no such page, or nothing of this name.
    Unknown(String),
    /// The page takes too long.
    Slow,
    /// Its content cannot be read, or an answer cannot be stored.
    Failed(anyhow::Error),
}

impl<E: Into<anyhow::Error>> From<E> for ViewError {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Page of a view: its title, its tab and its content.
pub(super) struct Page {
    pub(super) title: String,
    pub(super) tab: Tab,
    pub(super) content: Markup,
}

/// State that the frame of a page shows.
#[derive(Debug)]
pub(super) struct PageState {
    /// Revision of its subject before it was made.
    pub(super) revision: String,
    /// Number of calls that wait.
    pub(super) waiting: usize,
}

impl Visit {
    pub(super) fn new(session: Arc<Session>, page: String, query: Query) -> Self {
        Self { session, page, query, until: Instant::now() + MAX_TIME }
    }

    /// Returns the address of the events of the page.
    pub(super) fn events(&self) -> String {
        self.path(&format!("events{}", parameter("page", &self.page)))
    }

    /// Returns `true` for a page of which a session that only looks has nothing.
    pub(super) fn is_of_trial(&self) -> bool {
        self.page.starts_with("tool/")
    }

    /// Name of the page.
    pub(super) fn page(&self) -> &str {
        &self.page
    }

    /// Returns the path of a page of the session.
    pub(super) fn path(&self, page: &str) -> String {
        self.session.path(page)
    }

    /// Fails once the page takes too long.
    pub(super) fn check_time(&self) -> Result<(), ViewError> {
        if Instant::now() < self.until { Ok(()) } else { Err(ViewError::Slow) }
    }
}

impl Views {
    /// # Errors
    ///
    /// No folder is named, and the user has no home directory.
    pub fn new(runs: RunStore, sources: Sources) -> anyhow::Result<Self> {
        let (audit, kept) = (sources.log.folder()?, sources.rules.kept.clone());
        let trials = Trials::default();
        let tools = LoadedTools::new(sources, trials.clone());
        Ok(Self { runs, audit, kept, tools, exports: Exports::new(), trials })
    }

    /// Makes a page or a file.
    pub(super) fn page(&self, visit: &Visit) -> Answer {
        // What changes while the page is made is seen by the next look.
        let revision = self.revision_of(visit);
        let page = match visit.page.split('/').collect::<Vec<_>>()[..] {
            [""] | ["runs"] => runs::page(self, visit),
            ["runs", id] => run::page(self, visit, id),
            ["runs", id, "export"] => match export::run(self, id) {
                Ok(file) => return file,
                Err(error) => Err(error),
            },
            ["calls"] => calls::page(self, visit),
            ["calls", "export"] => match export::calls(self, visit) {
                Ok(file) => return file,
                Err(error) => Err(error),
            },
            ["charts"] => charts::page(self, visit),
            ["calls", file, line] => record::page(self, visit, file, line),
            ["verify"] => verification::page(self, visit),
            ["tools"] => tools::page(self, visit),
            ["tool"] => tool::page(self, visit),
            ["tool", "call"] => trial::entry(self, visit),
            ["tool", "trial"] => trial::page(self, visit),
            ["decisions"] => decisions::page(self, visit),
            _ => Err(ViewError::Unknown("No page has this address.".to_owned())),
        };
        self.framed(visit, revision, page)
    }

    /// Stores a decision, and leads to the page with its effect.
    pub(super) fn act(&self, visit: &Visit, form: &Query) -> Answer {
        let done = match visit.page.as_str() {
            "decisions" => decisions::answer(self, form),
            "decisions/revoke" => decisions::revoke(self, form),
            "decisions/trust" => trust::act(self, form),
            page @ ("tool/call" | "tool/trial") => {
                return match trial::act(self, visit, page, form) {
                    Ok(Err(answer)) => answer,
                    Ok(Ok(page)) => self.framed(visit, self.revision_of(visit), Ok(page)),
                    Err(error) => self.framed(visit, self.revision_of(visit), Err(error)),
                };
            }
            _ => Err(ViewError::Unknown("No form has this address.".to_owned())),
        };
        match done {
            Ok(query) => response::lead(&visit.path(&format!("decisions{query}"))),
            Err(error) => self.framed(visit, self.revision_of(visit), Err(error)),
        }
    }

    fn revision_of(&self, visit: &Visit) -> String {
        self.revision(&Subject::of(&visit.page), &self.waiting())
    }

    /// Frames a page or an error. The calls that wait are counted now, so that none of those on the page is missing.
    fn framed(&self, visit: &Visit, revision: String, page: Result<Page, ViewError>) -> Answer {
        let state = PageState { revision, waiting: self.waiting().count() };
        match page {
            Ok(page) => response::page(StatusCode::OK, frame(visit, &state, &page)),
            Err(error) => {
                let (status, title, text, hint) = error.in_words();
                let content = html! { h1 { (title) } p { (text) } @for hint in hint { p.quiet { (hint) } } };
                let page = Page { title: title.to_owned(), tab: Tab::None, content };
                response::page(status, frame(visit, &state, &page))
            }
        }
    }
}

impl ViewError {
    /// Returns the error in words.
    pub(super) fn text(self) -> String {
        self.in_words().2
    }

    fn in_words(self) -> (StatusCode, &'static str, String, Vec<String>) {
        let short = |text: &str| shortened(&one_line(text), MAX_ERROR).into_owned();
        match self {
            Self::Unknown(text) => (StatusCode::NOT_FOUND, "Not found", text, Vec::new()),
            Self::Slow => {
                let text =
                    format!("This takes more than {} seconds. Choose a day, or a shorter list.", MAX_TIME.as_secs());
                (StatusCode::SERVICE_UNAVAILABLE, "Too much to read", text, Vec::new())
            }
            Self::Failed(error) => {
                let hint = render::hint_of(&error).map(|hint| short(&hint)).into_iter().collect();
                (StatusCode::CONFLICT, "This did not work", short(&render::message(&error)), hint)
            }
        }
    }
}
