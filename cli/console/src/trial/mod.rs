//! Calls that a person tries in the console. A call goes the way of every call and stops where it is decided: the page then shows
//! its preview and the decision, and it goes on by a click, so that what is shown is what runs. It has one record, also if nobody
//! lets it go on.
//!
//! | module | owns |
//! |---|---|
//! | `desk` | the calls that are tried, each with its state |
//! | `gate` | where a call stops: before a question is answered, and before an allowed call starts |
//! | `drive` | the course of one call, to its result or its end with the program |
//! | `entry` | the page with the form of the arguments, and its buttons |
//! | `page` | the page of a call: its preview, its progress, its result |
//! | `outcome` | a result within limits, with its pictures |

mod desk;
mod drive;
mod entry;
mod gate;
mod outcome;
mod page;

pub(super) use desk::Trials;
pub(super) use entry::{MAX_FIELDS, MAX_FORM, act, page as entry};
pub(super) use page::page;
