//! The console: pages on a loopback address for people who would rather look than read. It shows kept runs, the audit log, tools
//! and calls that wait for approval, all through the modules that the commands use, and stores answers where they store them.
//! A person tries a tool in it by the way of every call, and starts runs as child processes. No tool or model reaches it.
//!
//! | module | owns |
//! |---|---|
//! | `server` | connections, limits, and the checks of each request |
//! | `session` | tokens of the printed addresses, and the sessions that they begin |
//! | `response` | answers with the headers that confine a page |
//! | `events`, `revision` | what keeps an open page current, with `live.js` in it |
//! | `query` | parameters of an address and of a form |
//! | `routes` | which page an address names |
//! | `view` | runs, log, approvals and tools that all pages show |
//! | `visit` | the request, the content and the error of a page |
//! | `loaded`, `loaded_tools`, `file_stamp` | the tools, read again once their files or the decisions about them change |
//! | `parts`, `picture` | parts of a result, and which pictures are images |
//! | `layout` | the frame of a page, forms, texts that are cut |
//! | `table` | tables, and the links that sort them |
//! | `units`, `states` | numbers in one unit, and states in everyday words |
//! | `chart` | charts that are scaled to their data |
//! | `content`, `csv` | texts of tools by their form: JSON, separated values, Markdown |
//! | `history` | reading the audit log by the filter of an address |
//! | `tally`, `durations` | figures of calls by tool and time |
//! | `logged`, `timeline` | what the audit log says about the calls of a run, and these calls in time |
//! | `export` | files to store |
//! | `runs`, `run`, `calls`, `figures`, `record`, `verification`, `tools`, `tool`, `schema`, `decisions`, `trust` | one page or part each |
//! | `start`, `launcher` | runs that a page starts: their forms, and their processes |
//! | `form` | the form of a tool's arguments: fields from a schema, and arguments from fields |
//! | `trial` | calls that a person tries: form, preview, result |

mod calls;
mod chart;
mod content;
mod csv;
mod decisions;
mod durations;
mod events;
mod export;
mod figures;
mod file_stamp;
mod form;
mod history;
mod launcher;
mod layout;
mod loaded;
mod loaded_tools;
mod logged;
mod markdown;
mod parts;
mod picture;
mod query;
mod record;
mod response;
mod revision;
mod routes;
mod run;
mod runs;
mod schema;
mod server;
mod session;
mod start;
mod states;
mod table;
mod tally;
mod timeline;
mod tool;
mod tools;
mod trial;
mod trust;
mod units;
mod verification;
mod view;
mod visit;

pub use launcher::Launcher;
pub use server::{Console, Shares};
pub use view::Views;
