//! Parts of each page: the request, the content, and the error in its place.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::StatusCode;
use maud::Markup;
use toolcrib_base::render::{self, one_line, shortened};

use super::query::{Query, parameter};
use super::session::Session;

/// Maximum time to make a page.
const MAX_TIME: Duration = Duration::from_secs(10);
/// Maximum characters of an error on a page.
const MAX_ERROR: usize = 2_000;

/// Part of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Runs,
    Calls,
    Figures,
    Tools,
    Decisions,
    /// No part, for errors.
    None,
}

/// Request of a session.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) session: Arc<Session>,
    /// Address of the page below the session address.
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

    /// Returns the address of the page's events.
    pub(super) fn events(&self) -> String {
        self.path(&format!("events{}", parameter("page", &self.page)))
    }

    /// Returns `true` for a page of a tried call, which a session that only looks does not have.
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

impl ViewError {
    /// Returns the error in words.
    pub(super) fn text(self) -> String {
        self.in_words().2
    }

    /// Returns the status, the title, the text and the hints of the error.
    pub(super) fn in_words(self) -> (StatusCode, &'static str, String, Vec<String>) {
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
