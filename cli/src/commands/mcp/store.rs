//! Store of `toolcrib mcp`: files, or the database in `server.store`, which many servers share.

use std::path::Path;
use std::sync::Arc;

use toolcrib::SharedEntries;
use toolcrib::results::SharedResults;
use toolcrib_base::progress;
use toolcrib_base::render::Advice;
use toolcrib_mcp::{Handler, SharedTokens};
use toolcrib_settings::config::StoreSettings;
use toolcrib_shared_state::{DatabaseEntries, DatabaseResults, FileStore, PostgresStore, StateStore, StoreError};
use toolcrib_sources::options::Sources;

use super::noted_log::NotedLog;
use crate::commands::audit::AuditHeads;

/// Store of a server.
pub(super) struct OpenedStore {
    pub(super) store: Arc<dyn StateStore>,
    database: Option<Arc<PostgresStore>>,
}

impl OpenedStore {
    /// Connects to the database of the settings, or uses files.
    ///
    /// # Errors
    ///
    /// The database cannot be used.
    pub(super) async fn open(settings: Option<&StoreSettings>, files: FileStore) -> anyhow::Result<Self> {
        Ok(match settings {
            None => Self { store: Arc::new(files), database: None },
            Some(settings) => {
                let database = Arc::new(connect(settings).await?);
                Self { store: database.clone(), database: Some(database) }
            }
        })
    }

    /// Returns `true` for a database.
    pub(super) fn is_database(&self) -> bool {
        self.database.is_some()
    }

    /// Returns the store of results that all servers read; `None` without a database.
    pub(super) fn results(&self) -> Option<Arc<dyn SharedResults>> {
        let database = self.database.clone()?;
        Some(Arc::new(DatabaseResults::new(database)))
    }

    /// Lets a server's sources use the lists and the values of tools that all servers share, with a database.
    pub(super) fn share(&self, sources: &mut Sources) {
        let Some(database) = &self.database else { return };
        let lists: Arc<dyn SharedEntries> = Arc::new(DatabaseEntries::lists(database.clone()));
        sources.rules.kept = sources.rules.kept.clone().shared_in(lists);
        sources.shared_values = Some(Arc::new(DatabaseEntries::tool_values(database.clone())));
    }

    /// Notes the head of the audit log in a directory from now on; `None` without a database.
    pub(super) fn note_log(&self, folder: &Path) -> Option<NotedLog> {
        let database = self.database.clone()?;
        Some(NotedLog::start(AuditHeads::new(database, folder)))
    }

    /// Returns the tokens that all servers accept; `None` without a database.
    pub(super) fn tokens(&self) -> Option<Arc<SharedTokens>> {
        self.database.clone().map(SharedTokens::new).map(Arc::new)
    }

    /// Lets a server count the operations of the database, and refuse requests while it does not answer.
    pub(super) fn attach(&self, handler: Handler) -> Handler {
        if let Some(database) = &self.database {
            database.observe(handler.store_observer());
            return handler.on_store(self.store.clone());
        }
        handler
    }
}

/// Connects to the configured database, with progress, within its time to wait.
///
/// # Errors
///
/// The database does not answer, or cannot be used.
pub(crate) async fn connect(settings: &StoreSettings) -> anyhow::Result<PostgresStore> {
    let address = &settings.address;
    let password = settings.password()?;
    let message = format!("waiting for the shared store {address}");
    let bar = progress::counted(&message, 0);
    let connection = PostgresStore::connect(address.clone(), password.as_deref(), &settings.name);
    let connected = progress::announced(&bar, connection, || Some(message)).await;
    connected.map_err(|error| {
        let hint = match &error {
            StoreError::Unavailable(_) => {
                "start the database, or correct `server.store`; `connect_timeout` of the address is the time to wait"
            }
            _ => "correct `server.store`, or the rights of its user; the book describes them under \"Shared state\"",
        };
        anyhow::Error::from(error).context(Advice::new(format!("cannot use the shared store {address}"), hint))
    })
}
