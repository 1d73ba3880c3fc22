//! Sealed state of a call that waits for input: bound to the caller, to the request and to a time, and used once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use rmcp::model::{RequestStateCodec, SealOptions};
use serde::{Deserialize, Serialize};

/// Time within which the client repeats the call.
const MAX_AGE: Duration = Duration::from_secs(600);
/// Maximum number of used states that are remembered. Beyond it, every state is refused until the oldest expire.
const MAX_USED: usize = 65_536;
/// Maximum number of questions of one call.
const MAX_QUESTIONS: usize = 16;

/// Questions of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Questions {
    /// Digests of the questions that the user agreed to.
    pub(super) agreed: Vec<String>,
    /// Digest of the question that is open.
    pub(super) open: String,
}

/// State as it is sealed.
#[derive(Debug, Serialize, Deserialize)]
struct Sealed {
    questions: Questions,
    /// Random number of the state.
    number: (u64, u64),
}

/// Seal of this process.
pub(super) struct Seal {
    codec: RequestStateCodec,
    used: Mutex<HashMap<(u64, u64), Instant>>,
}

impl Seal {
    /// Creates a seal with a random key.
    ///
    /// # Errors
    ///
    /// The key is refused.
    pub(super) fn new() -> anyhow::Result<Self> {
        let key: [u8; 32] = rand::random();
        let codec = RequestStateCodec::try_new(key).context("cannot seal states of calls")?;
        Ok(Self { codec, used: Mutex::default() })
    }

    /// Seals the questions of a call. `binding` names the caller and the request.
    ///
    /// # Errors
    ///
    /// The call has asked too many questions, or they cannot be serialized.
    pub(super) fn seal(&self, questions: Questions, binding: &str) -> anyhow::Result<String> {
        anyhow::ensure!(questions.agreed.len() < MAX_QUESTIONS, "the call asks more than {MAX_QUESTIONS} questions");
        self.seal_for(questions, binding, MAX_AGE)
    }

    fn seal_for(&self, questions: Questions, binding: &str, age: Duration) -> anyhow::Result<String> {
        let bytes = serde_json::to_vec(&Sealed { questions, number: rand::random() })?;
        let options = SealOptions::new().associated_data(binding.as_bytes()).ttl(age);
        Ok(self.codec.seal_with(&bytes, &options))
    }

    /// Opens a state, once.
    ///
    /// # Errors
    ///
    /// The state was changed, has expired, was used, or is of another caller or request.
    pub(super) fn open(&self, sealed: &str, binding: &str) -> anyhow::Result<Questions> {
        let bytes = self.codec.open_with(sealed, binding.as_bytes()).context("the state of the call is not valid")?;
        let Sealed { questions, number } =
            serde_json::from_slice(&bytes).context("the state of the call is not valid")?;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() >= MAX_USED {
            used.retain(|_, since| since.elapsed() < MAX_AGE);
        }
        anyhow::ensure!(used.len() < MAX_USED, "too many states were used; repeat the call later");
        anyhow::ensure!(used.insert(number, Instant::now()).is_none(), "the state of the call was used before");
        Ok(questions)
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use base64::Engine as _;
    use base64::prelude::BASE64_URL_SAFE_NO_PAD;
    use rmcp::model::RequestStateError;

    use super::*;

    fn questions() -> Questions {
        Questions { agreed: vec!["a".to_owned()], open: "b".to_owned() }
    }

    #[test]
    fn a_state_opens_once_for_its_caller_and_request() {
        let seal = Seal::new().unwrap();
        let sealed = seal.seal(questions(), "ada|echo").unwrap();
        for binding in ["bob|echo", "ada|other", ""] {
            assert!(seal.open(&sealed, binding).is_err(), "{binding}");
        }
        assert_eq!(seal.open(&sealed, "ada|echo").unwrap(), questions());
        let again = seal.open(&sealed, "ada|echo").unwrap_err();
        assert_eq!(again.to_string(), "the state of the call was used before");
    }

    #[test]
    fn a_changed_state_and_one_of_another_process_are_refused() {
        let seal = Seal::new().unwrap();
        let sealed = seal.seal(questions(), "x").unwrap();
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(seal.open(&changed, "x").is_err(), "{at}");
        }
        assert!(Seal::new().unwrap().open(&sealed, "x").is_err());
        assert!(seal.open(&sealed, "x").is_ok());
    }

    #[test]
    fn more_states_than_are_remembered_are_refused() {
        let seal = Seal::new().unwrap();
        let now = Instant::now();
        seal.used.lock().unwrap().extend((0..MAX_USED as u64).map(|number| ((number, 0), now)));
        let sealed = seal.seal(questions(), "x").unwrap();
        assert!(seal.open(&sealed, "x").unwrap_err().to_string().starts_with("too many states"));
    }

    #[test]
    fn a_state_expires() {
        let seal = Seal::new().unwrap();
        let sealed = seal.seal_for(questions(), "x", Duration::from_millis(1)).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let error = seal.open(&sealed, "x").unwrap_err();
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
        let asked = |number: usize| Questions { agreed: vec!["a".to_owned(); number], open: "b".to_owned() };
        assert!(seal.seal(asked(MAX_QUESTIONS - 1), "x").is_ok());
        let error = seal.seal(asked(MAX_QUESTIONS), "x").unwrap_err();
        assert_eq!(error.to_string(), "the call asks more than 16 questions");
    }
}
