//! Effects that a call and all calls below it hold back until somebody agrees to them.

use std::sync::{Arc, Mutex};

use toolcrib_staging::Stage;

use crate::observe::SentRequests;

use super::held_requests::WaitingRequests;

/// Stage that a call shares with all calls below it, with the requests that they have sent.
#[derive(Debug)]
pub(crate) struct CallEffects {
    pub(crate) stage: Arc<Stage>,
    pub(crate) sent: SentRequests,
    /// Requests that wait for the same answer.
    pub(crate) requests: WaitingRequests,
    /// Explanations of the flows into the stage that rules ask about.
    pub(crate) flows: Mutex<Vec<String>>,
}
