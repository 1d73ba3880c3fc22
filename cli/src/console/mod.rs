//! The console: pages on a loopback address for people who would rather look than read. It shows kept runs, the audit log, tools
//! and calls that wait for approval, all through the modules that the commands use, and stores answers where they store them.
//! It calls no tool, and no tool or model reaches it.
//!
//! | module | owns |
//! |---|---|
//! | `server` | connections, limits, and the checks of each request |
//! | `session` | tokens of the printed addresses, and the sessions that they begin |
//! | `response` | answers with the headers that confine a page |
//! | `events`, `revision` | what keeps an open page current, with `live.js` in it |
//! | `query` | parameters of an address and of a form |
//! | `view` | which page an address names, and its errors |
//! | `layout` | the frame of a page, tables, texts that are cut |
//! | `history` | reading the audit log by the filter of an address |
//! | `figures`, `durations`, `drawing` | figures of calls by tool and time, and their charts |
//! | `timeline` | the calls of a run as bars |
//! | `export` | files to store |
//! | `runs`, `run`, `calls`, `charts`, `record`, `verification`, `tools`, `tool`, `schema`, `decisions` | one page each |

mod calls;
mod charts;
mod decisions;
mod drawing;
mod durations;
mod events;
mod export;
mod figures;
mod history;
mod layout;
mod query;
mod record;
mod response;
mod revision;
mod run;
mod runs;
mod schema;
mod server;
mod session;
mod timeline;
mod tool;
mod tools;
mod verification;
mod view;

pub(crate) use server::Console;
pub(crate) use view::Views;
