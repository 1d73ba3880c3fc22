//! Pages by their addresses, each in its frame.

use http::StatusCode;
use maud::html;

use super::layout::frame;
use super::query::Query;
use super::response::{self, Answer};
use super::revision::Subject;
use super::view::Views;
use super::visit::{Page, PageState, Tab, ViewError, Visit};
use super::{calls, decisions, export, figures, record, run, runs, start, tool, tools, trial, trust, verification};

impl Views {
    /// Makes a page or a file.
    pub(super) fn page(&self, visit: &Visit) -> Answer {
        // What changes while the page is made is seen by the next look.
        let revision = self.revision_of(visit);
        let page = match visit.page().split('/').collect::<Vec<_>>()[..] {
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
            ["figures"] => figures::page(self, visit),
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
        let done = match visit.page() {
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
            page if start::is_of_start(page) => {
                return match start::act(self, visit, form) {
                    Ok(page) => response::lead(&visit.path(&page)),
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
        self.revision(&Subject::of(visit.page()), &self.waiting())
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
