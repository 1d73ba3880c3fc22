//! Calls with a key of their client, which have their effect once: a repeated request with the key gets the first result. The store
//! keeps an entry for each key, which is held while its call runs; servers that share the store share the keys.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib::source::digest;
use toolcrib_shared_state::{HeldState, StateClaim, StateKind, StateName, StateStore, StoreError, UnheldState};

/// Maximum size of a kept result in bytes.
const MAX_RESULT: usize = 1 << 20;
/// Maximum length of a key in bytes.
pub(super) const MAX_KEY_LEN: usize = 256;

/// Keys of calls in a store.
#[derive(Debug)]
pub(super) struct KeyedCalls(Arc<dyn StateStore>);

/// Facts of a call with a key, as they are stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredCall {
    /// Digest of the tool's name and the arguments.
    request: String,
    begun: Timestamp,
    state: CallState,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CallState {
    /// The call was refused before its tool ran.
    Refused,
    /// The tool runs, or the server ended while it ran.
    Begun,
    /// The call has ended with this result; `None` if it was too large to be kept.
    Ended(Option<Value>),
}

/// State of the call with a key, as a request finds it.
#[derive(Debug)]
pub(super) enum KeyState {
    /// The call is new: the value keeps its key.
    New(KeyedCall),
    /// The call has ended with this result.
    Ended(Value),
    /// There is no result, for this reason.
    Without(String),
    /// The call began, and its server ended before the call did. The value makes it again.
    Lost(LostCall, Timestamp),
}

/// Key of a running call. Dropping it leaves the call as one that began and has no result.
#[derive(Debug)]
pub(super) struct KeyedCall {
    entry: Box<dyn HeldState>,
    call: StoredCall,
}

/// Key of a call that began and has no result.
#[derive(Debug)]
pub(super) struct LostCall {
    entry: Box<dyn UnheldState>,
    call: StoredCall,
}

impl KeyedCalls {
    /// Creates the keys of a store.
    pub(super) fn new(store: Arc<dyn StateStore>) -> Arc<Self> {
        Arc::new(Self(store))
    }

    /// Looks for the call of a client with a key. `request` is the text of the tool and its arguments.
    ///
    /// # Errors
    ///
    /// The store does not answer, cannot be used, or has too many keys.
    pub(super) async fn begin(&self, client: &str, key: &str, request: &str) -> Result<KeyState, StoreError> {
        let request = digest(request.as_bytes());
        let call = StoredCall { request, begun: Timestamp::now(), state: CallState::Begun };
        let name = StateName::new(StateKind::Call, client, key);
        let (stored, entry) = match self.0.claim(name, call.to_bytes()?).await? {
            StateClaim::New(entry) => return Ok(KeyState::New(KeyedCall { entry, call })),
            StateClaim::Held => return Ok(still_runs()),
            StateClaim::Existing(stored, entry) => (StoredCall::parse(&stored)?, entry),
        };
        let other = stored.request != call.request;
        Ok(match stored.state {
            CallState::Refused => LostCall { entry, call }.again().await?.map_or_else(still_runs, KeyState::New),
            _ if other => KeyState::Without("the key was used for another call: choose a new one".to_owned()),
            CallState::Begun => KeyState::Lost(LostCall { entry, call }, stored.begun),
            CallState::Ended(Some(result)) => KeyState::Ended(result),
            CallState::Ended(None) => KeyState::Without(format!(
                "the call with this key, of {:.0}, has ended; its result was over {} KiB, and was not kept",
                stored.begun,
                MAX_RESULT >> 10
            )),
        })
    }
}

/// Creates the state of a call that runs.
pub(super) fn still_runs() -> KeyState {
    KeyState::Without("the call with this key still runs: repeat the request later".to_owned())
}

impl StoredCall {
    fn parse(bytes: &[u8]) -> Result<Self, StoreError> {
        let wrong = |error| StoreError::Unusable(format!("the entry of the key is no record of a call: {error}"));
        serde_json::from_slice(bytes).map_err(wrong)
    }

    fn to_bytes(&self) -> Result<Vec<u8>, StoreError> {
        serde_json::to_vec(self).map_err(|error| StoreError::Unusable(error.to_string()))
    }
}

impl LostCall {
    /// Notes that the call begins again; `None` if another request was quicker.
    ///
    /// # Errors
    ///
    /// The store does not answer.
    pub(super) async fn again(self) -> Result<Option<KeyedCall>, StoreError> {
        let Self { entry, call } = self;
        let held = entry.hold(call.to_bytes()?).await?;
        Ok(held.map(|entry| KeyedCall { entry, call }))
    }
}

impl KeyedCall {
    /// Keeps the result of the call, or notes that it was refused before its tool ran (`None`).
    ///
    /// # Errors
    ///
    /// The result cannot be written: the call is then one that began and has no result.
    pub(super) async fn end(mut self, result: Option<&Value>) -> Result<(), StoreError> {
        self.call.state = match result {
            None => CallState::Refused,
            Some(result) => {
                let is_small = serde_json::to_vec(result).is_ok_and(|bytes| bytes.len() <= MAX_RESULT);
                CallState::Ended(is_small.then(|| result.clone()))
            }
        };
        self.entry.finish(self.call.to_bytes()?).await
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;
    use toolcrib_shared_state::FileStore;

    use super::*;

    fn calls() -> (tempfile::TempDir, Arc<KeyedCalls>) {
        let folder = tempfile::tempdir().unwrap();
        let calls = KeyedCalls::new(Arc::new(FileStore::new(Some(folder.path().join("calls")), None)));
        (folder, calls)
    }

    async fn new(calls: &KeyedCalls, client: &str, request: &str) -> KeyedCall {
        match calls.begin(client, "k", request).await.unwrap() {
            KeyState::New(call) => call,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn the_first_result_is_the_result_of_each_repetition() {
        let (_folder, calls) = calls();
        let call = new(&calls, "ada", "echo").await;
        let running = calls.begin("ada", "k", "echo").await.unwrap();
        assert!(matches!(running, KeyState::Without(why) if why.contains("still runs")));
        new(&calls, "bob", "echo").await.end(None).await.unwrap();
        call.end(Some(&json!({"n": 1}))).await.unwrap();
        for _ in 0..2 {
            let again = calls.begin("ada", "k", "echo").await.unwrap();
            assert!(matches!(again, KeyState::Ended(result) if result == json!({"n": 1})));
        }
        let other = calls.begin("ada", "k", "rm").await.unwrap();
        assert!(matches!(other, KeyState::Without(why) if why.contains("another call")));
        // A refused call had no effect.
        new(&calls, "bob", "echo").await.end(Some(&json!("x".repeat(MAX_RESULT)))).await.unwrap();
        let large = calls.begin("bob", "k", "echo").await.unwrap();
        assert!(matches!(large, KeyState::Without(why) if why.contains("not kept")));
    }

    #[tokio::test]
    async fn a_call_whose_server_ended_is_lost_and_can_be_made_again_on_request_alone() {
        let (_folder, calls) = calls();
        drop(new(&calls, "ada", "echo").await);
        for _ in 0..2 {
            assert!(matches!(calls.begin("ada", "k", "echo").await.unwrap(), KeyState::Lost(..)));
        }
        let KeyState::Lost(again, _) = calls.begin("ada", "k", "echo").await.unwrap() else { panic!("it is lost") };
        again.again().await.unwrap().expect("nothing else is quicker").end(Some(&json!(2))).await.unwrap();
        let ended = calls.begin("ada", "k", "echo").await.unwrap();
        assert!(matches!(ended, KeyState::Ended(result) if result == 2));
    }

    #[tokio::test]
    async fn a_file_that_is_no_record_of_a_call_is_an_error_and_nothing_runs() {
        let (folder, calls) = calls();
        new(&calls, "ada", "echo").await.end(Some(&json!(1))).await.unwrap();
        let files = fs::read_dir(folder.path().join("calls")).unwrap().map(|entry| entry.unwrap().path());
        let file = files.into_iter().find(|path| path.extension().unwrap() == "json").unwrap();
        fs::write(file, "{").unwrap();
        calls.begin("ada", "k", "echo").await.unwrap_err();
    }
}
