//! Conversations that last, through the built program: kept runs, their continuation after a kill at any place, budgets, and
//! the chat. The model is a local server that answers by the conversation it is sent.

mod budgets;
#[cfg(target_os = "linux")]
mod chatting;
mod compacting;
#[cfg(target_os = "linux")]
mod continuing;
#[cfg(target_os = "linux")]
mod first_folder;
mod keeping;
#[cfg(unix)]
mod killing;
#[cfg(target_os = "linux")]
mod laid_out;
mod listing;
mod long;
mod model;
mod place;
#[cfg(unix)]
mod prefixes;
pub(crate) mod programs;
mod running;
mod stalling;
#[cfg(unix)]
mod waiting;
