//! Results of calls in the database, so that each server can read those of the others.

use std::io;
use std::sync::Arc;

use tokio::runtime::Handle;
use toolcrib::results::SharedResults;
use toolcrib_base::render;

use crate::entry::{StateKind, StateName};
use crate::error::StoreError;
use crate::postgres::PostgresStore;

/// Results in a database.
#[derive(Debug)]
pub struct DatabaseResults {
    store: Arc<PostgresStore>,
    /// Runtime of the connections: the methods block.
    runtime: Handle,
}

impl DatabaseResults {
    /// Uses a database. This is called within its runtime.
    pub fn new(store: Arc<PostgresStore>) -> Self {
        Self { store, runtime: Handle::current() }
    }
}

impl SharedResults for DatabaseResults {
    fn max_len(&self) -> u64 {
        StateKind::Result.max_value() as u64
    }

    fn put(&self, owner: Option<&str>, reference: &str, result: Vec<u8>) -> io::Result<()> {
        let put = self.runtime.block_on(self.store.put(&name(owner, reference), &result));
        put.map_err(|error| {
            render::warning(&format!("a long result is readable at this server alone: {error}"));
            io::Error::other(error)
        })
    }

    fn get(&self, owner: Option<&str>, reference: &str) -> io::Result<Option<Vec<u8>>> {
        let get = self.runtime.block_on(self.store.get(&name(owner, reference)));
        get.map_err(|error: StoreError| io::Error::other(error))
    }
}

fn name(owner: Option<&str>, reference: &str) -> StateName {
    StateName::new(StateKind::Result, owner.unwrap_or_default(), reference)
}
