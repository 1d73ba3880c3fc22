//! Behaviours of a store, each tried with both: files, and a database where PostgreSQL is installed. Several openings of a store stand
//! for several servers.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[path = "../../../tests/postgres.rs"]
mod postgres;
#[path = "behaviours/versions.rs"]
mod versions;

use std::future::Future;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use toolcrib::{EntryGroup, SharedEntries};
use toolcrib_shared_state::{
    AdmittedCall, DatabaseEntries, FileStore, PostgresStore, QuotaExceeded, QuotaLimits, QuotaPart, QuotaUse,
    StateClaim, StateKind, StateName, StateStore, StoreError,
};

use self::postgres::{PASSWORD, Postgres};
use self::versions::versions_decide_about_changes_and_groups_have_exact_limits;

type Store = Arc<dyn StateStore>;

/// One store with a way to open it again.
enum Stores {
    Files(TempDir),
    Database(Arc<Postgres>, String),
}

impl Stores {
    async fn open(&self) -> Store {
        match self {
            Self::Files(folder) => {
                Arc::new(FileStore::new(Some(folder.path().join("calls")), Some(&folder.path().join("states"))))
            }
            Self::Database(postgres, space) => Arc::new(database(postgres, space).await),
        }
    }
}

async fn database(postgres: &Postgres, space: &str) -> PostgresStore {
    let address = postgres.address().parse().unwrap();
    PostgresStore::connect(address, Some(PASSWORD), space).await.unwrap()
}

/// Tries a behaviour with each store.
async fn each<F: Future<Output = ()>>(postgres: Option<&Arc<Postgres>>, behaviour: impl Fn(Stores) -> F) {
    static SPACES: AtomicU64 = AtomicU64::new(0);
    behaviour(Stores::Files(tempfile::tempdir().unwrap())).await;
    if let Some(postgres) = postgres {
        behaviour(Stores::Database(postgres.clone(), SPACES.fetch_add(1, Relaxed).to_string())).await;
    }
}

fn call(owner: &str, key: &str) -> StateName {
    StateName::new(StateKind::Call, owner, key)
}

/// Waits until a claim is as expected: a store may release what is dropped a moment later.
async fn until(store: &Store, name: &StateName, holds: impl Fn(&StateClaim) -> bool) -> StateClaim {
    for _ in 0..1000 {
        let claim = store.claim(name.clone(), b"new".to_vec()).await.unwrap();
        if holds(&claim) {
            return claim;
        }
        drop(claim);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("it does not hold in time");
}

async fn an_entry_is_inserted_once(stores: Stores) {
    let (one, two) = (stores.open().await, stores.open().await);
    let key = StateName::new(StateKind::SealKey, "", "k");
    assert_eq!(one.insert(key.clone(), vec![1; 32]).await, Ok(None));
    assert_eq!(two.insert(key, vec![2; 32]).await, Ok(Some(vec![1; 32])));
    let state = StateName::new(StateKind::UsedState, "ada", "s");
    let used = futures_of(50, |number| {
        let store = if number % 2 == 0 { one.clone() } else { two.clone() };
        let state = state.clone();
        async move { store.insert(state, Vec::new()).await.unwrap().is_none() }
    });
    assert_eq!(used.await.into_iter().filter(|is_new| *is_new).count(), 1);
    let large = StateName::new(StateKind::UsedState, "ada", "large");
    assert!(matches!(one.insert(large, vec![0]).await, Err(StoreError::Full(_))));
}

async fn a_claim_is_held_by_one_and_its_last_value_stays(stores: Stores) {
    let (one, two) = (stores.open().await, stores.open().await);
    let claims = futures_of(40, |number| {
        let store = if number % 2 == 0 { one.clone() } else { two.clone() };
        async move { store.claim(call("ada", "k"), b"begun".to_vec()).await.unwrap() }
    });
    let mut held = Vec::new();
    for claim in claims.await {
        match claim {
            StateClaim::New(entry) => held.push(entry),
            StateClaim::Held => {}
            StateClaim::Existing(..) => panic!("nobody has finished"),
        }
    }
    assert_eq!(held.len(), 1);
    // The entries of others are others.
    assert!(matches!(two.claim(call("bob", "k"), b"begun".to_vec()).await.unwrap(), StateClaim::New(_)));
    held.pop().unwrap().finish(b"ended".to_vec()).await.unwrap();
    for store in [&one, &two] {
        match store.claim(call("ada", "k"), b"again".to_vec()).await.unwrap() {
            StateClaim::Existing(value, _) => assert_eq!(value, b"ended"),
            other => panic!("{other:?}"),
        }
    }
    let large = vec![0; StateKind::Call.max_value() + 1];
    assert!(matches!(one.claim(call("ada", "large"), large).await, Err(StoreError::Full(_))));
}

async fn a_dropped_claim_is_taken_by_one(stores: Stores) {
    let (one, two) = (stores.open().await, stores.open().await);
    let name = call("ada", "k");
    assert!(matches!(one.claim(name.clone(), b"begun".to_vec()).await.unwrap(), StateClaim::New(_)));
    let found = until(&two, &name, |claim| matches!(claim, StateClaim::Existing(..))).await;
    let StateClaim::Existing(value, entry) = found else { unreachable!() };
    assert_eq!(value, b"begun");
    let held = entry.hold(b"again".to_vec()).await.unwrap().expect("nobody was quicker");
    assert!(matches!(one.claim(name.clone(), b"x".to_vec()).await.unwrap(), StateClaim::Held));
    held.finish(b"ended".to_vec()).await.unwrap();
    let StateClaim::Existing(value, _) = one.claim(name, b"x".to_vec()).await.unwrap() else { panic!("it has ended") };
    assert_eq!(value, b"ended");
}

/// Limits of a window that does not end within the next minutes.
fn limits() -> QuotaLimits {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let hours = if 24 * 3600 - now % (24 * 3600) > 1200 { 24 } else { 23 };
    QuotaLimits { window: Duration::from_hours(hours), calls: None, cpu: None, bytes: None, running: None }
}

async fn admitted(store: &Store, owner: &str, limits: &QuotaLimits) -> Result<AdmittedCall, QuotaExceeded> {
    store.admit(&owner.into(), limits, false).await.unwrap()
}

async fn quotas_are_exact_and_of_one_owner(stores: Stores) {
    let store = stores.open().await;
    // Files count in each server.
    let others = match &stores {
        Stores::Files(_) => [store.clone(), store.clone()],
        Stores::Database(..) => [stores.open().await, stores.open().await],
    };
    let all = [store.clone(), others[0].clone(), others[1].clone()];
    let calls = QuotaLimits { calls: Some(50), ..limits() };
    let results = futures_of(120, |number| {
        let store = all[number % 3].clone();
        async move { admitted(&store, "ada", &calls).await.map(drop) }
    })
    .await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 50);
    let refused = results.into_iter().find_map(Result::err).unwrap();
    assert!(refused.part == QuotaPart::Calls && (600..=86_400).contains(&refused.wait), "{refused:?}");
    assert!(admitted(&store, "bob", &calls).await.is_ok(), "another owner notices nothing");

    let running = QuotaLimits { running: Some(2), ..limits() };
    let [first, second] = [admitted(&all[0], "eve", &running).await, admitted(&all[1], "eve", &running).await];
    let refused = admitted(&all[2], "eve", &running).await.unwrap_err();
    assert_eq!(refused, QuotaExceeded { part: QuotaPart::Running, wait: 1 });
    assert!(store.admit(&"eve".into(), &running, true).await.unwrap().is_ok(), "it goes on with one of them");
    assert!(first.is_ok());
    drop(first);
    // The server itself knows at once.
    assert!(admitted(&all[0], "eve", &running).await.is_ok());
    drop(second);

    for (limits, part) in [
        (QuotaLimits { cpu: Some(Duration::from_secs(2)), ..limits() }, QuotaPart::ProcessorTime),
        (QuotaLimits { bytes: Some(100), ..limits() }, QuotaPart::Bytes),
    ] {
        let owner: Arc<str> = format!("{part:?}").into();
        assert!(admitted(&store, &owner, &limits).await.is_ok());
        store.charge(&owner, &limits, QuotaUse { cpu: Duration::from_secs(3), bytes: 150 });
        let mut refused = None;
        for _ in 0..1000 {
            refused = admitted(&all[2], &owner, &limits).await.err();
            if refused.is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(refused.map(|refused| refused.part), Some(part));
    }
}

/// Runs futures at once.
async fn futures_of<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    number: usize,
    future: impl Fn(usize) -> F,
) -> Vec<T> {
    let tasks: Vec<_> = (0..number).map(|number| tokio::spawn(future(number))).collect();
    let mut all = Vec::new();
    for task in tasks {
        all.push(task.await.unwrap());
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_stores_behave_alike() {
    let postgres = Postgres::start().map(Arc::new);
    let postgres = postgres.as_ref();
    if let Some(postgres) = postgres {
        an_older_schema_is_upgraded_with_its_rows(postgres).await;
    }
    each(postgres, an_entry_is_inserted_once).await;
    each(postgres, a_claim_is_held_by_one_and_its_last_value_stays).await;
    each(postgres, a_dropped_claim_is_taken_by_one).await;
    each(postgres, quotas_are_exact_and_of_one_owner).await;
    if let Some(postgres) = postgres {
        an_owner_cannot_fill_the_database(postgres).await;
        entries_are_read_by_their_names_and_the_oldest_give_way(postgres).await;
        versions_decide_about_changes_and_groups_have_exact_limits(postgres).await;
        entries_of_a_dead_server_are_free_and_expired_rows_leave(postgres).await;
    }
}

async fn an_owner_cannot_fill_the_database(postgres: &Postgres) {
    let store = database(postgres, "room").await;
    let name = |key: &str| call("ada", key);
    assert!(matches!(store.claim(name("a"), vec![0; 100]).await.unwrap(), StateClaim::New(_)));
    let row = "FROM toolcrib.owner_room WHERE space = 'room'";
    let ada = postgres.query(&format!("SELECT owner {row}"));
    let row = format!("{row} AND owner = '{ada}'");
    assert_eq!(postgres.query(&format!("SELECT entries, bytes {row}")), "1|100");
    for (column, most, before) in [("entries", 10_000, 1), ("bytes", 256 << 20, 100)] {
        let set = |value| {
            postgres.query(
                &row.replace("FROM toolcrib.owner_room", &format!("UPDATE toolcrib.owner_room SET {column} = {value}")),
            )
        };
        set(most);
        let full = store.claim(name(column), Vec::new()).await.unwrap_err();
        assert!(matches!(&full, StoreError::Full(text) if text.contains("10000 entries")), "{full}");
        assert!(matches!(store.claim(call("bob", column), Vec::new()).await.unwrap(), StateClaim::New(_)));
        // The entries of before can be read.
        let found = store.claim(name("a"), Vec::new()).await.unwrap();
        assert!(matches!(found, StateClaim::Held | StateClaim::Existing(..)));
        set(before);
    }
    assert!(matches!(store.claim(name("b"), Vec::new()).await.unwrap(), StateClaim::New(_)));
    assert!(store.is_available(), "a refusal is an answer");
}

async fn entries_of_a_dead_server_are_free_and_expired_rows_leave(postgres: &Postgres) {
    let (dead, store) = (database(postgres, "dead").await, database(postgres, "dead").await);
    let store: Store = Arc::new(store);
    let StateClaim::New(held) = dead.claim(call("ada", "k"), b"begun".to_vec()).await.unwrap() else { panic!("new") };
    let running = QuotaLimits { running: Some(1), ..limits() };
    let place = dead.admit(&"ada".into(), &running, false).await.unwrap().unwrap();
    assert!(matches!(store.claim(call("ada", "k"), Vec::new()).await.unwrap(), StateClaim::Held));
    assert!(admitted(&store, "ada", &running).await.is_err());
    // It ends without a word, and its signs of life with it.
    std::mem::forget((held, place));
    dead.close().await;
    let found = store.claim(call("ada", "k"), Vec::new()).await.unwrap();
    assert!(matches!(found, StateClaim::Existing(value, _) if value == b"begun"));
    assert!(admitted(&store, "ada", &running).await.is_ok());
    postgres.query("UPDATE toolcrib.entry SET ends = now() - interval '1s' WHERE space = 'dead'");
    let swept = "SELECT toolcrib.sweep(500); SELECT count(*) FROM toolcrib.entry WHERE space = 'dead'; \
                 SELECT count(*) FROM toolcrib.owner_room WHERE space = 'dead'";
    assert_eq!(postgres.query(swept), "f\n0\n0");
    assert!(matches!(store.claim(call("ada", "k"), Vec::new()).await.unwrap(), StateClaim::New(_)));
}

/// Text of the first version of the schema, as it was released.
const FIRST: &str = include_str!("../src/postgres/schema_1.sql");

/// Leaves a database with rows as the first version of the program did, upgrades it, and tries both versions with it.
async fn an_older_schema_is_upgraded_with_its_rows(postgres: &Postgres) {
    let claim = |key: &str| {
        format!(
            "SELECT outcome FROM toolcrib.claim('old', 'call', '{owner}', '{key}', 'begun', 7, NULL, 600, 10, 1000)",
            owner = toolcrib::source::digest(b"ada").trim_start_matches("sha256:"),
            key = toolcrib::source::digest(key.as_bytes()).trim_start_matches("sha256:"),
        )
    };
    postgres.query("CREATE SCHEMA toolcrib; CREATE TABLE toolcrib.schema_version (version integer NOT NULL)");
    postgres.query(&format!("INSERT INTO toolcrib.schema_version VALUES (1); {FIRST}"));
    assert_eq!(postgres.query(&claim("before")), "new");
    let store: Store = Arc::new(database(postgres, "old").await);
    assert_eq!(postgres.query("SELECT version FROM toolcrib.schema_version"), "3");
    let found = store.claim(call("ada", "before"), Vec::new()).await.unwrap();
    assert!(matches!(found, StateClaim::Existing(value, _) if value == b"begun"));
    // A server of the first version goes on.
    assert_eq!((postgres.query(&claim("before")), postgres.query(&claim("after"))), ("existing".into(), "new".into()));
    let found = store.claim(call("ada", "after"), Vec::new()).await.unwrap();
    assert!(matches!(found, StateClaim::Existing(..)));
}

async fn entries_are_read_by_their_names_and_the_oldest_give_way(postgres: &Postgres) {
    let store = database(postgres, "values").await;
    let name = |owner: &str, key: &str| StateName::new(StateKind::Result, owner, key);
    store.put(&name("ada", "a"), b"first").await.unwrap();
    assert_eq!(store.get(&name("ada", "a")).await, Ok(Some(b"first".to_vec())));
    // Neither another owner nor another kind has it.
    assert_eq!(store.get(&name("bob", "a")).await, Ok(None));
    assert_eq!(store.get(&StateName::new(StateKind::Token, "ada", "a")).await, Ok(None));
    assert_eq!(store.list(StateKind::Result, "bob").await, Ok(vec![]));
    let large = store.put(&name("ada", "b"), &vec![0; StateKind::Result.max_value() + 1]).await.unwrap_err();
    assert!(matches!(large, StoreError::Full(_)), "{large}");
    // With the maximum of entries, or of bytes, the oldest give way, and those of others stay.
    store.put(&name("bob", "a"), b"other").await.unwrap();
    let ada = "FROM toolcrib.owner_room WHERE space = 'values' AND entries = 1 AND bytes = 5 AND owner <> ''";
    assert_eq!(postgres.query(&format!("SELECT count(*) {ada}")), "2");
    postgres.query(
        "INSERT INTO toolcrib.entry SELECT space, kind, owner, n::text, n, NULL, value, ends + n * interval '1 s' \
         FROM toolcrib.entry, generate_series(1, 999) n WHERE space = 'values' AND value = 'first'; \
         UPDATE toolcrib.owner_room SET entries = 1000, bytes = 5000 WHERE space = 'values' AND owner = \
         (SELECT owner FROM toolcrib.entry WHERE space = 'values' AND value = 'first' LIMIT 1)",
    );
    store.put(&name("ada", "c"), b"newest").await.unwrap();
    assert_eq!(store.get(&name("ada", "a")).await, Ok(None));
    assert_eq!(store.get(&name("ada", "c")).await, Ok(Some(b"newest".to_vec())));
    let room = "SELECT entries, bytes FROM toolcrib.owner_room WHERE space = 'values' ORDER BY entries";
    assert_eq!(postgres.query(room), "1|5\n1000|5001");
    let max = 128 << 20;
    postgres.query(&format!("UPDATE toolcrib.owner_room SET bytes = {max} WHERE space = 'values' AND entries = 1000"));
    store.put(&name("ada", "d"), b"more").await.unwrap();
    assert_eq!(store.get(&name("ada", "d")).await, Ok(Some(b"more".to_vec())));
    assert_eq!(store.get(&name("bob", "a")).await, Ok(Some(b"other".to_vec())));
    assert_eq!(store.forget(&name("ada", "d")).await, Ok(true));
    assert_eq!((store.forget(&name("ada", "d")).await, store.get(&name("ada", "d")).await), (Ok(false), Ok(None)));
    postgres.query("UPDATE toolcrib.entry SET ends = now() - interval '1 s' WHERE space = 'values'");
    assert_eq!(store.get(&name("bob", "a")).await, Ok(None));
    assert_eq!(store.list(StateKind::Result, "bob").await, Ok(vec![]));
    postgres.query(
        "DELETE FROM toolcrib.entry WHERE space = 'values'; DELETE FROM toolcrib.owner_room WHERE space = 'values'",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_gone_is_named_within_a_bounded_time_and_nothing_is_lost() {
    let Some(mut postgres) = Postgres::start() else { return };
    // All servers of a cluster start at once.
    let address = postgres.address();
    let stores = futures_of(6, |_| {
        let address = address.parse().unwrap();
        async move { PostgresStore::connect(address, Some(PASSWORD), "x").await.map(Arc::new) }
    });
    let mut stores = stores.await;
    let store: Store = stores.pop().unwrap().unwrap();
    let other: Store = stores.pop().unwrap().unwrap();
    assert!(stores.iter().all(Result::is_ok));
    drop(stores);
    let StateClaim::New(held) = store.claim(call("ada", "k"), b"begun".to_vec()).await.unwrap() else { panic!("new") };
    let lists = DatabaseEntries::lists(Arc::new(database(&postgres, "x").await));
    postgres.stop();
    let group = EntryGroup::new("g", None);
    let gone = [lists.read(&group, "k").unwrap_err(), lists.beginnings(&group, 1).unwrap_err()];
    assert!(gone.iter().all(|error| error.kind() == ErrorKind::NotConnected), "{gone:?}");
    let lost = store.claim(call("ada", "during"), b"begun".to_vec()).await.unwrap_err();
    assert!(matches!(lost, StoreError::Unavailable(_)) && !store.is_available(), "{lost}");
    let owner = "ada".into();
    let refused = store.admit(&owner, &QuotaLimits { calls: Some(9), ..limits() }, false).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    held.finish(b"ended".to_vec()).await.unwrap();
    postgres.resume();
    let ended = until(&other, &call("ada", "k"), |claim| !matches!(claim, StateClaim::Held)).await;
    assert!(matches!(ended, StateClaim::Existing(value, _) if value == b"ended"), "it was written later");
    // A call that was not made left nothing.
    let made = until(&other, &call("ada", "during"), |claim| !matches!(claim, StateClaim::Held)).await;
    assert!(matches!(made, StateClaim::New(_)));
    assert!(store.is_available() || store.claim(call("ada", "k"), Vec::new()).await.is_ok());

    let connect = |text: String, password: &'static str| async move {
        PostgresStore::connect(text.parse().unwrap(), Some(password), "x").await.unwrap_err().to_string()
    };
    let wrong = connect(postgres.address(), "hunter2").await;
    assert!(wrong.contains("password authentication failed") && !wrong.contains("hunter2"), "{wrong}");
    let none = connect(format!("{}x", postgres.address()), PASSWORD).await;
    assert!(none.contains("does not exist"), "{none}");
    let encrypted = connect(format!("{}?sslmode=verify-full&connect_timeout=1", postgres.address()), PASSWORD).await;
    assert!(!encrypted.contains(PASSWORD) && encrypted.contains("TLS"), "{encrypted}");
    postgres.query("UPDATE toolcrib.schema_version SET version = 99");
    assert!(postgres.password_file().exists());
    let later = connect(postgres.address(), PASSWORD).await;
    assert!(later.contains("version 99"), "{later}");
    postgres.stop();
    let gone = connect(format!("{}?connect_timeout=1", postgres.address()), PASSWORD).await;
    assert!(gone.contains("does not answer"), "{gone}");
}
