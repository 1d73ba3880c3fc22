//! Usage of one call: figures that are counted while it runs, its HTTP request log, its memory budget and its time on
//! the processor. Nothing here knows an interface of a guest.

mod call_effects;
mod call_flow;
mod counters;
mod held_requests;
mod memory;
mod metered;
mod request_error;
mod request_log;
#[cfg(unix)]
mod thread_clock;
#[cfg(windows)]
#[path = "thread_clock_windows.rs"]
mod thread_clock;

pub(crate) use call_effects::CallEffects;
pub(crate) use counters::{MAX_RECORDED, Usage};
pub(crate) use held_requests::{SentRequest, WaitingRequest, WaitingRequests};
pub(super) use memory::MemoryBudget;
pub(super) use metered::Metered;
pub(super) use request_error::{MAX_HEADERS, RequestError, RequestPhase};
