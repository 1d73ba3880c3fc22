//! Sealed state of a call that waits for input: bound to the caller, to the request and to a time, and used once. Several
//! servers accept the states of each other if they share a store with the key and the used states.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use rmcp::model::{RequestStateCodec, SealOptions};
use serde::{Deserialize, Serialize};
use toolcrib_base::render;
use toolcrib_shared_state::{StateKind, StateName, StateStore};

/// Time within which the client repeats the call, with the answer of its user.
pub(super) const MAX_AGE: Duration = Duration::from_secs(600);
/// Maximum number of used states that are remembered. Beyond it, every state is refused until the oldest expire.
const MAX_USED: usize = 65_536;
/// Length of the key in bytes.
const KEY_LEN: usize = 32;
/// Maximum difference between the clocks of servers that share states.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(10);
/// Name of the key in the store.
const SEAL_KEY: &str = "states";
/// Maximum number of questions per call.
const MAX_QUESTIONS: usize = 16;

/// Message about a state that is forged, changed, or of another caller or request.
const INVALID: &str =
    "the state belongs to another call, or to a server that has ended: call the tool again without it";
/// Message about a state that is used again.
const USED: &str = "the state of the call was used before: call the tool again without it";

/// Questions of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Questions {
    /// Digests of the questions that the user agreed to.
    pub(super) agreed: Vec<String>,
    /// Digest of the question that is open.
    pub(super) open: String,
    /// Program that waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) program: Option<PausedProgram>,
}

/// Program that was paused for a question about one of its calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PausedProgram {
    /// Identifier of its place in this server.
    pub(super) place: String,
    /// Number of calls that it has made, with the one in question.
    pub(super) calls: Option<u32>,
}

/// State as it is sealed.
#[derive(Debug, Serialize, Deserialize)]
struct Sealed {
    questions: Questions,
    /// Random identifier of the state.
    id: String,
    /// Expiry of the state for all servers, by the clock that sealed it.
    expires: Timestamp,
}

/// State that was used.
#[derive(Debug, Clone, PartialEq, Eq)]
struct UsedState {
    id: String,
    expires: Timestamp,
}

/// Seal of one server, or several that share a store.
pub struct Seal {
    codec: RequestStateCodec,
    /// States that were used here.
    used: Mutex<Vec<UsedState>>,
    /// Store of the states that some server has used.
    shared: Option<Arc<dyn StateStore>>,
}

impl Seal {
    /// Creates a seal with a random key. Only this process opens the states.
    ///
    /// # Errors
    ///
    /// The key is refused.
    pub fn new() -> anyhow::Result<Self> {
        Self::with(rand::random(), None)
    }

    /// Creates a seal with the key of a store. The first server creates the key.
    ///
    /// # Errors
    ///
    /// The store does not answer, or has another value as the key.
    pub async fn shared(store: Arc<dyn StateStore>) -> anyhow::Result<Self> {
        let own: [u8; KEY_LEN] = rand::random();
        let kept = store.insert(StateName::new(StateKind::SealKey, "", SEAL_KEY), own.to_vec()).await?;
        let key = match kept {
            None => own,
            Some(kept) => kept.try_into().ok().with_context(|| format!("the key of states has not {KEY_LEN} bytes"))?,
        };
        Self::with(key, Some(store))
    }

    fn with(key: [u8; KEY_LEN], shared: Option<Arc<dyn StateStore>>) -> anyhow::Result<Self> {
        let codec = RequestStateCodec::try_new(key).context("cannot seal states of calls")?;
        Ok(Self { codec, used: Mutex::default(), shared })
    }

    /// Seals the questions of a call. `binding` names the caller and the request.
    ///
    /// # Errors
    ///
    /// The call has asked too many questions, or they cannot be serialized.
    pub(super) fn seal(&self, questions: Questions, binding: &str) -> anyhow::Result<String> {
        anyhow::ensure!(questions.agreed.len() < MAX_QUESTIONS, "the call asks more than {MAX_QUESTIONS} questions");
        let id = format!("{:032x}", rand::random::<u128>());
        let expires = Timestamp::now() + MAX_AGE;
        let bytes = serde_json::to_vec(&Sealed { questions, id, expires })?;
        let options = SealOptions::new().associated_data(binding.as_bytes()).ttl(MAX_AGE);
        Ok(self.codec.seal_with(&bytes, &options))
    }

    /// Opens a state of a client, once if this server continues the call (`continues`).
    ///
    /// # Errors
    ///
    /// The state was changed, has expired, was used, or is of another caller or request; or the store does not answer.
    pub(super) async fn open(
        &self,
        sealed: &str,
        (client, binding): (&str, &str),
        continues: impl FnOnce(&Questions) -> bool,
    ) -> anyhow::Result<Questions> {
        let bytes = self.codec.open_with(sealed, binding.as_bytes()).context(INVALID)?;
        let Sealed { questions, id, expires } = serde_json::from_slice(&bytes).context(INVALID)?;
        anyhow::ensure!(
            Timestamp::now() <= expires,
            "the state of the call has expired: call the tool again without it"
        );
        // Another server may continue it.
        if !continues(&questions) {
            return Ok(questions);
        }
        if let Some(store) = &self.shared {
            let name = StateName::new(StateKind::UsedState, client, &id);
            let used = store.insert(name, Vec::new()).await.map_err(|error| {
                render::warning(&format!("the state of a call is refused: {error}"));
                anyhow::anyhow!("the state of the call cannot be checked: repeat the request later")
            })?;
            anyhow::ensure!(used.is_none(), USED);
        }
        // Also if the store is lost.
        mark_used(&mut self.used.lock().unwrap_or_else(PoisonError::into_inner), UsedState { id, expires })?;
        Ok(questions)
    }
}

/// Adds a state to those that were used, and removes those that have expired.
fn mark_used(used: &mut Vec<UsedState>, state: UsedState) -> anyhow::Result<()> {
    // Nobody has to remember a state that is refused for its age. The clocks of servers may differ.
    let now = Timestamp::now();
    used.retain(|used| now.duration_since(used.expires) <= MAX_CLOCK_SKEW);
    anyhow::ensure!(used.iter().all(|used| used.id != state.id), USED);
    anyhow::ensure!(used.len() < MAX_USED, "too many states were used; repeat the call later");
    used.push(state);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::UNIX_EPOCH;

    use base64::Engine as _;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    use rmcp::model::RequestStateError;
    use toolcrib_shared_state::FileStore;

    use super::*;

    fn any(_: &Questions) -> bool {
        true
    }

    fn store(folder: &Path) -> Arc<dyn StateStore> {
        Arc::new(FileStore::new(Some(folder.join("calls")), Some(folder)))
    }

    /// Opens a client's state.
    async fn open(seal: &Seal, sealed: &str, binding: &str) -> anyhow::Result<Questions> {
        seal.open(sealed, ("ada", binding), any).await
    }

    fn questions() -> Questions {
        Questions { agreed: vec!["a".to_owned()], open: "b".to_owned(), program: None }
    }

    #[tokio::test]
    async fn a_state_opens_once_for_its_caller_and_request() {
        let seal = Seal::new().unwrap();
        let sealed = seal.seal(questions(), "ada|echo").unwrap();
        for binding in ["bob|echo", "ada|other", ""] {
            assert!(open(&seal, &sealed, binding).await.is_err(), "{binding}");
        }
        assert_eq!(open(&seal, &sealed, "ada|echo").await.unwrap(), questions());
        let again = open(&seal, &sealed, "ada|echo").await.unwrap_err();
        assert_eq!(again.to_string(), USED);
    }

    #[tokio::test]
    async fn a_state_that_another_server_continues_is_not_used() {
        let seal = Seal::new().unwrap();
        let sealed = seal.seal(questions(), "x").unwrap();
        assert_eq!(seal.open(&sealed, ("ada", "x"), |_| false).await.unwrap(), questions());
        assert_eq!(open(&seal, &sealed, "x").await.unwrap(), questions());
        assert_eq!(open(&seal, &sealed, "x").await.unwrap_err().to_string(), USED);
    }

    #[tokio::test]
    async fn a_changed_state_and_one_of_another_process_are_refused() {
        let seal = Seal::new().unwrap();
        let sealed = seal.seal(questions(), "x").unwrap();
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(open(&seal, &changed, "x").await.is_err(), "{at}");
        }
        assert!(open(&Seal::new().unwrap(), &sealed, "x").await.is_err());
        assert!(open(&seal, &sealed, "x").await.is_ok());
    }

    #[tokio::test]
    async fn more_states_than_are_remembered_are_refused() {
        let seal = Seal::new().unwrap();
        let expires = Timestamp::now() + MAX_AGE;
        seal.used.lock().unwrap().extend((0..MAX_USED).map(|id| UsedState { id: id.to_string(), expires }));
        let sealed = seal.seal(questions(), "x").unwrap();
        assert!(open(&seal, &sealed, "x").await.unwrap_err().to_string().starts_with("too many states"));
    }

    #[tokio::test]
    async fn servers_with_one_folder_open_a_state_once_among_them() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("states");
        let (one, two) = (Seal::shared(store(&folder)).await.unwrap(), Seal::shared(store(&folder)).await.unwrap());
        let sealed = one.seal(questions(), "x").unwrap();
        assert!(open(&Seal::new().unwrap(), &sealed, "x").await.is_err());
        assert_eq!(open(&two, &sealed, "x").await.unwrap(), questions());
        for seal in [&one, &two, &Seal::shared(store(&folder)).await.unwrap()] {
            assert_eq!(open(seal, &sealed, "x").await.unwrap_err().to_string(), USED);
        }
        std::fs::remove_file(folder.join("states.json")).unwrap();
        assert_eq!(open(&two, &sealed, "x").await.unwrap_err().to_string(), USED, "without the file");
    }

    #[tokio::test]
    async fn expired_states_are_forgotten() {
        let state = |id: &str, age: SignedDuration| UsedState { id: id.to_owned(), expires: Timestamp::now() - age };
        let (second, day) = (SignedDuration::from_secs(1), SignedDuration::from_hours(24));
        let mut used = vec![state("old", MAX_CLOCK_SKEW + second), state("late", second), state("future", -day)];
        mark_used(&mut used, state("new", -second)).unwrap();
        assert_eq!(used.iter().map(|state| state.id.as_str()).collect::<Vec<_>>(), ["late", "future", "new"]);
        let sealed = Sealed { questions: questions(), id: "x".to_owned(), expires: Timestamp::now() - second };
        let seal = Seal::new().unwrap();
        let sealed = seal
            .codec
            .seal_with(&serde_json::to_vec(&sealed).unwrap(), &SealOptions::new().associated_data(b"x").ttl(MAX_AGE));
        assert_eq!(
            open(&seal, &sealed, "x").await.unwrap_err().to_string(),
            "the state of the call has expired: call the tool again without it"
        );
    }

    #[tokio::test]
    async fn a_state_expires() {
        let seal = Seal::new().unwrap();
        let (expires, id) = (Timestamp::now() + MAX_AGE, "x".to_owned());
        let bytes = serde_json::to_vec(&Sealed { questions: questions(), id, expires }).unwrap();
        let options = SealOptions::new().associated_data(b"x").ttl(Duration::from_millis(1));
        let sealed = seal.codec.seal_with(&bytes, &options);
        std::thread::sleep(Duration::from_millis(50));
        let error = open(&seal, &sealed, "x").await.unwrap_err();
        let expired = error.root_cause().downcast_ref::<RequestStateError>();
        assert!(matches!(expired, Some(RequestStateError::Expired)), "{error:?}");
        let sealed = seal.seal(questions(), "x").unwrap();
        // The time at which it expires precedes the questions, in milliseconds.
        let body = BASE64_URL_SAFE_NO_PAD.decode(sealed.rsplit('.').nth(1).unwrap()).unwrap();
        let expires = u64::from_be_bytes(body[..8].try_into().unwrap());
        let now = UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
        let age = MAX_AGE.as_millis() as u64;
        assert!((now + age / 2..=now + age).contains(&expires), "{expires} at {now}");
    }

    #[test]
    fn a_call_asks_a_bounded_number_of_questions() {
        let seal = Seal::new().unwrap();
        let asked =
            |number: usize| Questions { agreed: vec!["a".to_owned(); number], open: "b".to_owned(), program: None };
        assert!(seal.seal(asked(MAX_QUESTIONS - 1), "x").is_ok());
        let error = seal.seal(asked(MAX_QUESTIONS), "x").unwrap_err();
        assert_eq!(error.to_string(), "the call asks more than 16 questions");
    }
}
