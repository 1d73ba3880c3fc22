//! Schema of the database: created and upgraded by the first server that needs it, while the others wait.

use tokio_postgres::{Client, Error};

use crate::error::StoreError;

/// Upgrades in their order; each belongs to one version, and none is changed once it was released.
const UPGRADES: [&str; 3] = [include_str!("schema_1.sql"), include_str!("schema_2.sql"), include_str!("schema_3.sql")];
/// Number of the lock that upgrades take, for this program alone.
const LOCK: i64 = 0x746f_6f6c_6372_6962;

/// Brings the schema to the version of this program, in one transaction.
///
/// # Errors
///
/// The schema is of a later program, or the user may not change it.
pub(super) async fn upgrade(client: &mut Client) -> Result<(), StoreError> {
    let failed = |error: Error| super::connect::failure(&error);
    if version(client).await.map_err(failed)? == Some(UPGRADES.len()) {
        return Ok(());
    }
    let transaction = client.transaction().await.map_err(failed)?;
    // Upgrades may take longer than other statements.
    transaction
        .batch_execute("SET LOCAL statement_timeout = '60s'; SET LOCAL lock_timeout = '30s'")
        .await
        .map_err(failed)?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await.map_err(failed)?;
    let found = version(transaction.client()).await.map_err(failed)?;
    let first = found.unwrap_or_default();
    if first > UPGRADES.len() {
        return Err(StoreError::Unusable(format!(
            "the database has version {first} of the schema `toolcrib`, and this program knows {}: use a later version of toolcrib",
            UPGRADES.len()
        )));
    }
    if found.is_none() {
        let create =
            "CREATE SCHEMA IF NOT EXISTS toolcrib; CREATE TABLE toolcrib.schema_version (version integer NOT NULL)";
        transaction.batch_execute(create).await.map_err(failed)?;
        transaction.execute("INSERT INTO toolcrib.schema_version VALUES (0)", &[]).await.map_err(failed)?;
    }
    for upgrade in &UPGRADES[first..] {
        transaction.batch_execute(upgrade).await.map_err(failed)?;
    }
    let last = UPGRADES.len() as i32;
    transaction.execute("UPDATE toolcrib.schema_version SET version = $1", &[&last]).await.map_err(failed)?;
    transaction.commit().await.map_err(failed)
}

/// Returns the version of the schema; `None` if there is none.
async fn version(client: &Client) -> Result<Option<usize>, Error> {
    // From the tables themselves: functions about names may not know yet what another server has just created.
    let exists = "SELECT EXISTS (SELECT FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid \
                  WHERE n.nspname = 'toolcrib' AND c.relname = 'schema_version')";
    let exists: bool = client.query_one(exists, &[]).await?.try_get(0)?;
    if !exists {
        return Ok(None);
    }
    let version: i32 = client.query_one("SELECT max(version) FROM toolcrib.schema_version", &[]).await?.try_get(0)?;
    Ok(Some(usize::try_from(version).unwrap_or_default()))
}
