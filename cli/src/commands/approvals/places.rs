//! Places for approvals and waiting calls: this user's files, and the database in `server.store`, which servers share.

use std::path::Path;
use std::sync::Arc;

use toolcrib::policy::Approvals;
use toolcrib_base::render::Advice;
use toolcrib_base::short_id;
use toolcrib_settings::config::Config;
use toolcrib_settings::permission::{PendingCall, PendingCalls};
use toolcrib_settings::trust::{TrustRecords, Trusted};
use toolcrib_shared_state::{DatabaseEntries, PostgresStore, StateStore};
use toolcrib_sources::options::Kept;

use crate::commands::mcp::connect_store;

/// All places, the database before the files.
pub(super) struct ApprovalPlaces {
    kept: Vec<Kept>,
    database: Option<Arc<PostgresStore>>,
}

impl ApprovalPlaces {
    /// Names the files and, with `server.store`, connects to the database.
    ///
    /// # Errors
    ///
    /// The settings or the database cannot be used.
    pub(super) async fn open(kept: Kept, config: Option<&Path>) -> anyhow::Result<Self> {
        let trusted = Trusted::read(&[], TrustRecords::of_user().as_ref())?;
        let Some(settings) = Config::load(config, &trusted, false)?.store else {
            return Ok(Self { kept: vec![kept], database: None });
        };
        let database = Arc::new(connect_store(&settings).await?);
        let shared = kept.clone().shared_in(Arc::new(DatabaseEntries::lists(database.clone())));
        Ok(Self { kept: vec![shared, kept], database: Some(database) })
    }

    pub(super) async fn close(self) {
        if let Some(database) = self.database {
            database.close().await;
        }
    }

    /// Returns the permanent approvals of each place.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(super) fn approvals(&self) -> anyhow::Result<Vec<Approvals>> {
        let (last, shared) = self.split();
        let shared = shared.iter().filter_map(Kept::file).filter(Approvals::is_shared);
        let all: Vec<_> = shared.chain(last.and_then(Kept::file)).collect();
        match all.is_empty() {
            true => {
                let message = "no file for approvals: no home directory was found";
                Err(Advice::new(message, "name one with `--set approvals.file=FILE`").into())
            }
            false => Ok(all),
        }
    }

    /// Lists the calls of all places that wait or have an unused answer, oldest first.
    ///
    /// # Errors
    ///
    /// A place cannot be read, or there is none.
    pub(super) fn waiting(&self) -> anyhow::Result<Vec<PendingCall>> {
        let mut all = Vec::new();
        for (calls, _) in self.pending()? {
            all.extend(calls.list()?);
        }
        all.sort_by_key(|call| call.asked);
        Ok(all)
    }

    /// Finds the place where a call waits, with its calls and permanent approvals. Without such a call it is the
    /// last place, which explains why there is none.
    ///
    /// # Errors
    ///
    /// A place cannot be read, or there is none.
    pub(super) fn of_call(&self, typed: &str) -> anyhow::Result<(PendingCalls, Option<Approvals>)> {
        let mut all = self.pending()?;
        let last = all.pop();
        for (calls, approvals) in all {
            let id = short_id::parse(typed);
            if calls.list()?.iter().any(|call| Some(&call.id) == id.as_ref()) {
                return Ok((calls, approvals));
            }
        }
        last.ok_or_else(no_pending)
    }

    fn pending(&self) -> anyhow::Result<Vec<(PendingCalls, Option<Approvals>)>> {
        let (last, shared) = self.split();
        let of = |kept: &Kept| Some((kept.pending()?, kept.file()));
        let shared = shared.iter().filter_map(of).filter(|(calls, _)| calls.is_shared());
        let all: Vec<_> = shared.chain(last.and_then(of)).collect();
        if all.is_empty() { Err(no_pending()) } else { Ok(all) }
    }

    /// Splits the files from the database.
    fn split(&self) -> (Option<&Kept>, &[Kept]) {
        self.kept.split_last().map_or((None, &[]), |(last, shared)| (Some(last), shared))
    }
}

fn no_pending() -> anyhow::Error {
    let message = "no file for pending calls: no home directory was found";
    Advice::new(message, "name one with `--set approvals.pending=FILE`").into()
}
