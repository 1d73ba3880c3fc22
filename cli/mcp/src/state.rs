//! Sealed state of a call that waits for input: bound to the caller, to the request and to a time, and used once. Several
//! servers accept the states of each other if they share a folder with the key and the used states.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use rmcp::model::{RequestStateCodec, SealOptions};
use serde::{Deserialize, Serialize};
use toolcrib::ListFile;
use toolcrib::owner_only::{OwnerOnlyFile, SharedAccess};

/// Time within which the client repeats the call, with the answer of its user.
pub(super) const MAX_AGE: Duration = Duration::from_secs(600);
/// Maximum number of used states that are remembered. Beyond it, every state is refused until the oldest expire.
const MAX_USED: usize = 65_536;
/// Length of the key in bytes.
const KEY_LEN: usize = 32;
/// Maximum size of the used states file in bytes: [`MAX_USED`] of about 90 bytes.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// Maximum difference between the clocks of servers that share states.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(10);
/// Maximum wait for the lock of the key.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(2);
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsedState {
    id: String,
    expires: Timestamp,
}

/// Seal of one server, or several that share a folder.
pub struct Seal {
    codec: RequestStateCodec,
    /// States that were used here.
    used: Mutex<Vec<UsedState>>,
    /// File of the states that some server has used.
    shared: Option<ListFile<UsedState>>,
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

    /// Creates a seal with the key of a folder. The first server creates the key.
    ///
    /// # Errors
    ///
    /// The folder or the key cannot be used, or other users can read or write it.
    pub fn shared(folder: &Path) -> anyhow::Result<Self> {
        let file = OwnerOnlyFile::new(folder.join("states.key"), KEY_LEN as u64, SharedAccess::None);
        let unusable = || format!("cannot use the key `{}`", file.path().display());
        let key = key(&file).with_context(unusable)?;
        let used = ListFile::new(folder.join("states.json"), "used", MAX_FILE_BYTES);
        Self::with(key, Some(used))
    }

    fn with(key: [u8; KEY_LEN], shared: Option<ListFile<UsedState>>) -> anyhow::Result<Self> {
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

    /// Opens a state, once if this server continues the call (`continues`). This may wait for a file.
    ///
    /// # Errors
    ///
    /// The state was changed, has expired, was used, or is of another caller or request.
    pub(super) fn open(
        &self,
        sealed: &str,
        binding: &str,
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
        let state = UsedState { id, expires };
        if let Some(file) = &self.shared {
            let unusable = || format!("cannot use the states in `{}`", file.path().display());
            file.change(|used| mark_used(used, state.clone())).with_context(unusable)??;
        }
        // Also if the file is lost.
        mark_used(&mut self.used.lock().unwrap_or_else(PoisonError::into_inner), state)?;
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

/// Reads the key of a folder, or creates it.
fn key(file: &OwnerOnlyFile) -> anyhow::Result<[u8; KEY_LEN]> {
    let lock = file.lock(MAX_LOCK_WAIT)?;
    if let Some(key) = file.read()? {
        return key.try_into().ok().with_context(|| format!("expected {KEY_LEN} bytes"));
    }
    let key: [u8; KEY_LEN] = rand::random();
    file.replace(&lock, &key)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use base64::Engine as _;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    use rmcp::model::RequestStateError;

    use super::*;

    fn any(_: &Questions) -> bool {
        true
    }

    fn questions() -> Questions {
        Questions { agreed: vec!["a".to_owned()], open: "b".to_owned(), program: None }
    }

    #[test]
    fn a_state_opens_once_for_its_caller_and_request() {
        let seal = Seal::new().unwrap();
        let sealed = seal.seal(questions(), "ada|echo").unwrap();
        for binding in ["bob|echo", "ada|other", ""] {
            assert!(seal.open(&sealed, binding, any).is_err(), "{binding}");
        }
        assert_eq!(seal.open(&sealed, "ada|echo", any).unwrap(), questions());
        let again = seal.open(&sealed, "ada|echo", any).unwrap_err();
        assert_eq!(again.to_string(), USED);
    }

    #[test]
    fn a_state_that_another_server_continues_is_not_used() {
        let seal = Seal::new().unwrap();
        let sealed = seal.seal(questions(), "x").unwrap();
        assert_eq!(seal.open(&sealed, "x", |_| false).unwrap(), questions());
        assert_eq!(seal.open(&sealed, "x", any).unwrap(), questions());
        assert_eq!(seal.open(&sealed, "x", any).unwrap_err().to_string(), USED);
    }

    #[test]
    fn a_changed_state_and_one_of_another_process_are_refused() {
        let seal = Seal::new().unwrap();
        let sealed = seal.seal(questions(), "x").unwrap();
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(seal.open(&changed, "x", any).is_err(), "{at}");
        }
        assert!(Seal::new().unwrap().open(&sealed, "x", any).is_err());
        assert!(seal.open(&sealed, "x", any).is_ok());
    }

    #[test]
    fn more_states_than_are_remembered_are_refused() {
        let seal = Seal::new().unwrap();
        let expires = Timestamp::now() + MAX_AGE;
        seal.used.lock().unwrap().extend((0..MAX_USED).map(|id| UsedState { id: id.to_string(), expires }));
        let sealed = seal.seal(questions(), "x").unwrap();
        assert!(seal.open(&sealed, "x", any).unwrap_err().to_string().starts_with("too many states"));
    }

    #[test]
    fn servers_with_one_folder_open_a_state_once_among_them() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("states");
        let (one, two) = (Seal::shared(&folder).unwrap(), Seal::shared(&folder).unwrap());
        let sealed = one.seal(questions(), "x").unwrap();
        assert!(Seal::new().unwrap().open(&sealed, "x", any).is_err());
        assert_eq!(two.open(&sealed, "x", any).unwrap(), questions());
        for seal in [&one, &two, &Seal::shared(&folder).unwrap()] {
            assert_eq!(seal.open(&sealed, "x", any).unwrap_err().to_string(), USED);
        }
        std::fs::remove_file(folder.join("states.json")).unwrap();
        assert_eq!(two.open(&sealed, "x", any).unwrap_err().to_string(), USED, "without the file");
    }

    #[test]
    fn a_key_of_another_length_is_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("states");
        drop(Seal::shared(&folder).unwrap());
        for key in [&b""[..], b"short", &[7; KEY_LEN + 1]] {
            std::fs::write(folder.join("states.key"), key).unwrap();
            let error = Seal::shared(&folder).err().unwrap().to_string();
            assert!(error.contains("states.key"), "{error}");
            assert_eq!(std::fs::read(folder.join("states.key")).unwrap(), key);
        }
    }

    #[test]
    fn expired_states_are_forgotten() {
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
            seal.open(&sealed, "x", any).unwrap_err().to_string(),
            "the state of the call has expired: call the tool again without it"
        );
    }

    #[test]
    fn a_state_expires() {
        let seal = Seal::new().unwrap();
        let (expires, id) = (Timestamp::now() + MAX_AGE, "x".to_owned());
        let bytes = serde_json::to_vec(&Sealed { questions: questions(), id, expires }).unwrap();
        let options = SealOptions::new().associated_data(b"x").ttl(Duration::from_millis(1));
        let sealed = seal.codec.seal_with(&bytes, &options);
        std::thread::sleep(Duration::from_millis(50));
        let error = seal.open(&sealed, "x", any).unwrap_err();
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
