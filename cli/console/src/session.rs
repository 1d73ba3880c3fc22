//! Tokens of the printed addresses, and the sessions that they begin. A session has a path of its own, so that its cookie goes
//! to no other program that listens on this machine, and two sessions of one browser do not meet. Nothing outlives the process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue, header};
use toolcrib::source::digest;

/// Name of the cookie.
const COOKIE: &str = "toolcrib";
/// Maximum number of sessions with the same rights. A further one ends the oldest of them, and none with other rights.
const MAX_SESSIONS: usize = 16;
/// Bytes of a token.
const TOKEN_LEN: usize = 32;
/// Bytes of a session's name in its path.
const NAME_LEN: usize = 9;

/// Rights of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rights {
    /// Looks, decides, and starts runs.
    Start,
    /// Looks and decides.
    Decide,
    /// Looks.
    Read,
}

/// Session of a browser.
#[derive(Debug)]
pub(super) struct Session {
    /// Name in the path of all its pages. It is no secret.
    pub(super) name: String,
    pub(super) rights: Rights,
    /// Text in every form, which no other page knows.
    pub(super) form_token: String,
    /// Digest of the cookie.
    cookie: String,
}

/// Sessions since the program started.
#[derive(Debug)]
pub(super) struct Sessions {
    /// Digests of the tokens that begin a session.
    tokens: Vec<(String, Rights)>,
    open: Mutex<Vec<Arc<Session>>>,
}

/// Creates a random text.
pub(super) fn random<const LEN: usize>() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(rand::random::<[u8; LEN]>())
}

impl Sessions {
    /// Creates tokens with these rights, and returns them too: only their digests stay.
    pub(super) fn new(rights: &[Rights]) -> (Self, Vec<String>) {
        let tokens: Vec<String> = rights.iter().map(|_| random::<TOKEN_LEN>()).collect();
        let digests = tokens.iter().map(|token| digest(token.as_bytes())).zip(rights.iter().copied()).collect();
        (Self { tokens: digests, open: Mutex::default() }, tokens)
    }

    /// Begins a session, and returns it with the header that stores its cookie; `None` for a wrong token.
    pub(super) fn begin(&self, token: &str) -> Option<(Arc<Session>, HeaderValue)> {
        // The time of a comparison of digests says nothing about the token.
        let given = digest(token.as_bytes());
        let (_, rights) = self.tokens.iter().find(|(token, _)| *token == given)?;
        let (secret, name) = (random::<TOKEN_LEN>(), random::<NAME_LEN>());
        let cookie = format!("{COOKIE}={secret}; Path=/{name}/; HttpOnly; SameSite=Strict");
        let form_token = random::<TOKEN_LEN>();
        let session = Arc::new(Session { name, rights: *rights, form_token, cookie: digest(secret.as_bytes()) });
        let mut open = self.open();
        let has_same = |one: &Arc<Session>| one.rights == session.rights;
        if open.iter().filter(|one| has_same(one)).count() >= MAX_SESSIONS {
            let oldest = open.iter().position(has_same);
            oldest.map(|at| open.remove(at));
        }
        open.push(session.clone());
        Some((session, HeaderValue::try_from(cookie).ok()?))
    }

    /// Returns the session with this name, if the request has its cookie.
    pub(super) fn find(&self, name: &str, headers: &HeaderMap) -> Option<Arc<Session>> {
        let session = self.open().iter().find(|session| session.name == name)?.clone();
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut given = lines.flat_map(|line| line.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
        given.any(|(name, value)| name == COOKIE && digest(value.as_bytes()) == session.cookie).then_some(session)
    }

    fn open(&self) -> MutexGuard<'_, Vec<Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Returns `true` if a form is one of this session's pages.
    pub(super) fn sent(&self, form_token: Option<&str>) -> bool {
        form_token.is_some_and(|given| digest(given.as_bytes()) == digest(self.form_token.as_bytes()))
    }

    /// Returns `true` if the session may decide.
    pub(super) fn decides(&self) -> bool {
        self.rights != Rights::Read
    }

    /// Returns `true` if the session may start runs.
    pub(super) fn starts(&self) -> bool {
        self.rights == Rights::Start
    }

    /// Returns the path of a page.
    pub(super) fn path(&self, page: &str) -> String {
        format!("/{}/{page}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookie(stored: &HeaderValue) -> HeaderMap {
        let stored = stored.to_str().unwrap().split(';').next().unwrap();
        HeaderMap::from_iter([(header::COOKIE, HeaderValue::from_str(&format!("other=1; {stored}")).unwrap())])
    }

    #[test]
    fn a_session_is_found_by_its_name_and_its_own_cookie() {
        let (sessions, tokens) = Sessions::new(&[Rights::Decide, Rights::Read, Rights::Start]);
        assert!(sessions.begin("").is_none() && sessions.begin(&tokens[0][1..]).is_none());
        let (one, first) = sessions.begin(&tokens[0]).unwrap();
        let (other, second) = sessions.begin(&tokens[1]).unwrap();
        assert!(one.decides() && !one.starts() && !other.decides() && !other.starts());
        let third = sessions.begin(&tokens[2]).unwrap().0;
        assert!(third.decides() && third.starts());
        assert!(sessions.find(&one.name, &cookie(&first)).is_some());
        assert!(sessions.find(&one.name, &cookie(&second)).is_none());
        assert!(
            sessions.find(&other.name, &HeaderMap::new()).is_none() && sessions.find("", &cookie(&first)).is_none()
        );
        assert!(one.sent(Some(&one.form_token)) && !one.sent(Some(&other.form_token)) && !one.sent(None));
        let stored = first.to_str().unwrap();
        assert!(stored.ends_with(&format!("; Path=/{}/; HttpOnly; SameSite=Strict", one.name)), "{stored}");
    }

    #[test]
    fn the_number_of_sessions_is_bounded() {
        let (sessions, tokens) = Sessions::new(&[Rights::Decide, Rights::Read]);
        let (first, stored) = sessions.begin(&tokens[0]).unwrap();
        for _ in 0..=MAX_SESSIONS {
            sessions.begin(&tokens[1]).unwrap();
        }
        for _ in 1..MAX_SESSIONS {
            sessions.begin(&tokens[0]).unwrap();
        }
        assert!(sessions.find(&first.name, &cookie(&stored)).is_some());
        sessions.begin(&tokens[0]).unwrap();
        assert!(sessions.find(&first.name, &cookie(&stored)).is_none());
        assert_eq!(sessions.open().len(), 2 * MAX_SESSIONS);
    }
}
