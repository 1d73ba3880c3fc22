//! Check of the database that servers share: it answers, and this program knows its schema. A missing schema is created.

use toolcrib_base::render::{hint_of, message};
use toolcrib_shared_state::StateStore;
use toolcrib_sources::options::Sources;

use super::{Finding, Status};
use crate::commands::mcp::connect_store;

const CHECK: &str = "store";

/// Checks the database of the settings, if there is one.
pub(super) async fn check(sources: &Sources) -> Option<Finding> {
    // Another check reports settings that cannot be read.
    let trusted = sources.trust.trusted().ok()?;
    let settings = sources.rules.config(&trusted, false).ok()?.store?;
    Some(match connect_store(&settings).await {
        Ok(store) => {
            store.close().await;
            Finding::ok(CHECK, format!("{}, for the servers `{}`", settings.address, settings.name))
        }
        Err(error) => {
            let fix = hint_of(&error).unwrap_or_else(|| "correct `server.store`".to_owned());
            Finding::wrong(CHECK, Status::Fail, message(&error), fix)
        }
    })
}
