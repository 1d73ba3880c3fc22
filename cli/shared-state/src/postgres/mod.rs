//! State of many servers in a PostgreSQL database. Each operation is one statement, so that no server can end within one. What a
//! server holds ends with its signs of life, by the clock of the database.
//!
//! The modules from the bottom up: `operation` (the statements), `stream` and `connect` (connections), `schema`, `turns` and `pool`, `later`
//! (work that waits for the database), `held` (claims), `entries` (values without a claim), and `upkeep`.

mod connect;
mod entries;
mod held;
mod later;
mod operation;
mod pool;
mod schema;
#[cfg_attr(unix, path = "socket_unix.rs")]
#[cfg_attr(not(unix), path = "socket_other.rs")]
mod socket;
mod stream;
mod turns;
mod upkeep;

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio_postgres::Row;
use tokio_postgres::types::FromSql;
use tokio_util::task::AbortOnDropHandle;
use toolcrib::source::digest;
use toolcrib_base::store_address::StoreAddress;

use self::connect::Connector;
use self::held::{DatabaseEntry, FoundEntry, UncertainClaim, UncertainPlace};
use self::later::LateWork;
use self::pool::Pool;
use crate::entry::{StateClaim, StateName};
use crate::error::StoreError;
use crate::quotas::{AdmittedCall, QuotaExceeded, QuotaLimits, QuotaPart, QuotaUse};
use crate::{StateStore, StoreFuture};

pub use self::operation::StoreOperation;
pub use self::pool::StoreObserver;

/// Interval between two attempts to connect at the start.
const RETRY: Duration = Duration::from_millis(500);
/// Maximum length of a space's name in bytes.
const MAX_SPACE: usize = 128;

/// Store in a database.
pub struct PostgresStore {
    inner: Arc<Inner>,
    upkeep: AbortOnDropHandle<()>,
}

/// Parts of the store that claims keep.
struct Inner {
    pool: Pool,
    /// Name of the servers that share state with one another.
    space: String,
    /// Name of this server, which no other has.
    server: String,
    late: Arc<LateWork>,
}

impl PostgresStore {
    /// Connects within the time of the address, and upgrades the schema. `space` is the name of the servers that share state.
    ///
    /// # Errors
    ///
    /// The database does not answer in time, refuses the user, or has the schema of a later program.
    pub async fn connect(address: StoreAddress, password: Option<&str>, space: &str) -> Result<Self, StoreError> {
        if space.is_empty() || space.len() > MAX_SPACE || space.chars().any(char::is_control) {
            return Err(StoreError::Unusable(format!("the name of a store has 1 to {MAX_SPACE} bytes")));
        }
        let end = Instant::now() + address.wait;
        let pool = loop {
            match Pool::connect(Connector::new(address.clone(), password)?).await {
                Err(StoreError::Unavailable(_)) if Instant::now() < end => tokio::time::sleep(RETRY).await,
                connected => break connected?,
            }
        };
        let server = format!("{:032x}", rand::random::<u128>());
        let inner = Arc::new(Inner { pool, space: space.to_owned(), server, late: Arc::default() });
        inner.live(upkeep::ALIVE).await?;
        let upkeep = AbortOnDropHandle::new(tokio::spawn(upkeep::keep_up(Arc::downgrade(&inner))));
        Ok(Self { inner, upkeep })
    }

    /// Notes all later operations.
    pub fn observe(&self, observer: Arc<dyn StoreObserver>) {
        self.inner.pool.observe(observer);
    }
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresStore").field("space", &self.inner.space).finish_non_exhaustive()
    }
}

impl StateStore for PostgresStore {
    fn insert(&self, name: StateName, value: Vec<u8>) -> StoreFuture<'_, Option<Vec<u8>>> {
        async move {
            name.check(&value)?;
            let row = self.inner.claim(&name, &value, rand::random(), None).await?;
            match read::<&str>(&row, 0)? {
                "new" => Ok(None),
                "existing" => read(&row, 1).map(Some),
                other => Err(StoreError::Unusable(format!("the database answers `{other}`"))),
            }
        }
        .boxed()
    }

    fn claim(&self, name: StateName, value: Vec<u8>) -> StoreFuture<'_, StateClaim> {
        async move {
            name.check(&value)?;
            let version = rand::random();
            let uncertain = UncertainClaim::new(&self.inner, &name, version);
            let claimed = self.inner.claim(&name, &value, version, Some(&self.inner.server)).await;
            uncertain.settle(&claimed);
            let row = claimed?;
            let inner = self.inner.clone();
            match read::<&str>(&row, 0)? {
                "new" => Ok(StateClaim::New(Box::new(DatabaseEntry::new(inner, name, version)))),
                "held" => Ok(StateClaim::Held),
                "existing" => {
                    let (value, version) = (read(&row, 1)?, read(&row, 2)?);
                    Ok(StateClaim::Existing(value, Box::new(FoundEntry { inner, name, version })))
                }
                other => Err(StoreError::Unusable(format!("the database answers `{other}`"))),
            }
        }
        .boxed()
    }

    fn admit<'a>(
        &'a self,
        owner: &'a Arc<str>,
        limits: &'a QuotaLimits,
        is_continued: bool,
    ) -> StoreFuture<'a, Result<AdmittedCall, QuotaExceeded>> {
        async move {
            let place = limits.running.map(|_| rand::random::<i64>());
            let running = limits.running.filter(|_| !is_continued).map(i64::from);
            let uncertain = UncertainPlace::new(&self.inner, owner, place);
            let row = self.inner.admit(owner, limits, (place, running), &uncertain.released).await;
            uncertain.settle(&row);
            let row = row?;
            let wait = read::<i64>(&row, 1)?.unsigned_abs();
            let part = match read::<i32>(&row, 0)? {
                0 => {
                    let (late, owner) = (self.inner.late.clone(), owner.clone());
                    return Ok(Ok(AdmittedCall::new(move || late.release(&owner, place.into_iter().collect()))));
                }
                1 => QuotaPart::Calls,
                2 => QuotaPart::ProcessorTime,
                3 => QuotaPart::Bytes,
                _ => return Ok(Err(QuotaExceeded { part: QuotaPart::Running, wait: 1 })),
            };
            Ok(Err(QuotaExceeded { part, wait }))
        }
        .boxed()
    }

    fn charge(&self, owner: &Arc<str>, limits: &QuotaLimits, used: QuotaUse) {
        // Nobody asks for the use of parts without a limit.
        if limits.cpu.is_some() || limits.bytes.is_some() {
            self.inner.late.charge((owner.clone(), limits.seconds()), used);
        }
    }

    fn is_available(&self) -> bool {
        self.inner.pool.is_available()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.upkeep.abort();
        self.inner.end().boxed()
    }
}

impl Inner {
    async fn claim(
        &self,
        name: &StateName,
        value: &[u8],
        version: i64,
        holder: Option<&str>,
    ) -> Result<Row, StoreError> {
        let (kind, seconds) = (name.kind.as_str(), name.kind.lifetime().as_secs_f64());
        let (entries, bytes) = name.kind.max_of_owner();
        let (entries, bytes) = (bounded(entries), bounded(bytes));
        let (owner, key) = (hashed(&name.owner), hashed(&name.key));
        self.pool
            .run_for(
                &owner,
                StoreOperation::Claim,
                &[&self.space, &kind, &owner, &key, &value, &version, &holder, &seconds, &entries, &bytes],
            )
            .await
    }

    /// Changes an entry from one version to another; `false` if it has neither.
    async fn change(
        &self,
        name: &StateName,
        (version, new): (i64, i64),
        value: Option<&[u8]>,
        holder: Option<&str>,
    ) -> Result<bool, StoreError> {
        let (kind, seconds) = (name.kind.as_str(), name.kind.lifetime().as_secs_f64());
        let (owner, key) = (hashed(&name.owner), hashed(&name.key));
        let row = self
            .pool
            .run(StoreOperation::Change, &[&self.space, &kind, &owner, &key, &version, &new, &value, &holder, &seconds])
            .await?;
        read(&row, 0)
    }

    async fn remove(&self, name: &StateName, version: i64) -> Result<(), StoreError> {
        let (owner, key) = (hashed(&name.owner), hashed(&name.key));
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
            [&self.space, &name.kind.as_str(), &owner, &key, &version];
        self.pool.run(StoreOperation::Remove, &values).await.map(drop)
    }

    async fn admit(
        &self,
        owner: &str,
        limits: &QuotaLimits,
        (place, running): (Option<i64>, Option<i64>),
        released: &Vec<i64>,
    ) -> Result<Row, StoreError> {
        let most = [limits.calls, limits.cpu.map(|cpu| cpu.as_micros() as u64), limits.bytes];
        let most: Vec<Option<i64>> = most.map(|most| most.map(bounded)).into();
        let adds = vec![1_i64, 0, 0];
        let (owner, seconds) = (hashed(owner), bounded(limits.seconds()));
        self.pool
            .run_for(
                &owner,
                StoreOperation::Admit,
                &[&self.space, &owner, &seconds, &adds, &most, &place, &running, &self.server, released],
            )
            .await
    }

    /// Adds the use of calls, beyond every limit.
    async fn add(&self, owner: &str, seconds: u64, used: QuotaUse) -> Result<(), StoreError> {
        let adds = vec![0, bounded(used.cpu.as_micros() as u64), bounded(used.bytes)];
        let (none, no_place, no_limit, released) = (vec![None::<i64>; 3], None::<i64>, None::<i64>, Vec::<i64>::new());
        let (owner, seconds) = (hashed(owner), bounded(seconds));
        self.pool
            .run(
                StoreOperation::Admit,
                &[&self.space, &owner, &seconds, &adds, &none, &no_place, &no_limit, &self.server, &released],
            )
            .await
            .map(drop)
    }
}

/// Returns a bounded name for one of any length. Strangers choose the names of owners and keys.
pub(crate) fn hashed(name: &str) -> String {
    digest(name.as_bytes()).trim_start_matches("sha256:").to_owned()
}

/// Returns a number that the database can add to another.
fn bounded(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX).min(1 << 60)
}

/// Reads a column.
fn read<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, StoreError> {
    row.try_get(column).map_err(|error| StoreError::Unusable(format!("the database answers in another form: {error}")))
}
