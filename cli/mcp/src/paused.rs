//! Calls by programs that wait for their client's answer, between two requests. Each holds an instance of the interpreter, so
//! their number is small.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::running::RunningCall;

/// Maximum number of calls that were paused. It is below the number of programs that run at once.
pub(super) const MAX_PAUSED: usize = 12;
/// Maximum number of such calls for one client.
pub(super) const MAX_PAUSED_PER_CLIENT: usize = 8;

/// Calls that were paused, by a random identifier: until a request takes their result, or until they have ended and no request can
/// come any more.
#[derive(Default)]
pub(super) struct PausedCalls(Mutex<HashMap<String, Paused>>);

struct Paused {
    client: Arc<str>,
    /// The call with the time until which a request can take it; `None` while a request waits for it.
    call: Option<(RunningCall, Instant)>,
}

/// Place of one call. Dropping it makes room for another.
pub(super) struct Place {
    calls: Weak<PausedCalls>,
    pub(super) id: String,
}

impl PausedCalls {
    /// Takes a place for a call of a client; `None` if there are too many.
    pub(super) fn place(self: &Arc<Self>, client: &Arc<str>) -> Option<Place> {
        let mut calls = self.calls();
        let now = Instant::now();
        let over: Vec<_> = calls.extract_if(|_, paused| paused.is_over(now)).collect();
        let own = calls.values().filter(|paused| paused.client == *client).count();
        let place = (calls.len() < MAX_PAUSED && own < MAX_PAUSED_PER_CLIENT).then(|| {
            let id = format!("{:032x}", rand::random::<u128>());
            calls.insert(id.clone(), Paused { client: client.clone(), call: None });
            Place { calls: Arc::downgrade(self), id }
        });
        // They return their places.
        drop(calls);
        drop(over);
        place
    }

    /// Keeps a call in its place, for `max_age`, until a request takes it.
    pub(super) fn keep(&self, id: &str, call: RunningCall, max_age: Duration) {
        let mut calls = self.calls();
        if let Some(paused) = calls.get_mut(id) {
            paused.call = Some((call, Instant::now() + max_age));
        }
    }

    /// Returns `true` if a call in a place waits for an answer.
    pub(super) fn waits(&self, id: &str) -> bool {
        self.calls().get(id).is_some_and(|paused| paused.call.is_some())
    }

    /// Takes a call that waits for an answer.
    pub(super) fn take(&self, id: &str) -> Option<RunningCall> {
        self.calls().get_mut(id)?.call.take().map(|(call, _)| call)
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, Paused>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Paused {
    /// Returns `true` for a call that has ended and that no request can take any more.
    fn is_over(&self, now: Instant) -> bool {
        self.call.as_ref().is_some_and(|(call, until)| *until <= now && call.has_ended())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(calls) = self.calls.upgrade() else { return };
        // A call that is there is dropped after the lock.
        let _paused = calls.calls().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use tokio_util::sync::CancellationToken;
    use toolcrib::{Audit, Results, Runtime};
    use toolcrib_settings::permission::DenyFlags;

    use super::super::access::Identity;
    use super::super::caller::{Caller, Channel};
    use super::super::publication::Published;
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn call(work: impl Future<Output = ()> + Send + 'static) -> RunningCall {
        let runtime = Runtime::builder(Audit::off()).build().unwrap();
        let deny_flags = DenyFlags::new(std::iter::empty());
        let published = Published::new(runtime, Arc::default(), Results::folder("results"), deny_flags, 128);
        let identity = Identity::named("ada", Arc::new([]));
        let caller = Arc::new(Caller::new("probe".to_owned(), &identity, Channel::CommandLine));
        let work = work.map(|()| None).boxed();
        RunningCall::new("mcp_1".to_owned(), Arc::new(published), caller, work, None, CancellationToken::new())
    }

    #[test]
    fn the_number_of_paused_calls_is_bounded_for_each_client_and_in_all() {
        let calls = Arc::new(PausedCalls::default());
        let clients: [Arc<str>; 2] = ["ada".into(), "bob".into()];
        let mut places: Vec<Place> = (0..MAX_PAUSED_PER_CLIENT).map(|_| calls.place(&clients[0]).unwrap()).collect();
        assert!(calls.place(&clients[0]).is_none());
        places.extend((MAX_PAUSED_PER_CLIENT..MAX_PAUSED).map(|_| calls.place(&clients[1]).unwrap()));
        assert!(calls.place(&clients[1]).is_none());
        places.pop();
        assert!(calls.place(&clients[1]).is_some());
    }

    #[tokio::test]
    async fn a_call_runs_on_until_it_is_taken_once() {
        let calls = Arc::new(PausedCalls::default());
        let (ended, end) = tokio::sync::oneshot::channel();
        let mut call = call(async move { ended.send(()).unwrap() });
        let id = call.detach(calls.place(&"ada".into()).unwrap());
        calls.keep(&id, call, LONG);
        end.await.expect("it runs");
        assert!(calls.take("another").is_none());
        assert!(calls.take(&id).is_some() && calls.take(&id).is_none());
    }

    #[tokio::test]
    async fn a_call_leaves_its_place_once_it_has_ended_and_no_request_can_come() {
        let calls = Arc::new(PausedCalls::default());
        let client: Arc<str> = "ada".into();
        let keep = |work: futures::future::BoxFuture<'static, ()>, max_age| {
            let mut call = call(work);
            let id = call.detach(calls.place(&client).unwrap());
            calls.keep(&id, call, max_age);
            id
        };
        let over = keep(async {}.boxed(), Duration::ZERO);
        let runs = keep(std::future::pending().boxed(), Duration::ZERO);
        let fresh = keep(async {}.boxed(), LONG);
        // The tasks of this thread run.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        drop(calls.place(&client));
        let left = |id: &str| calls.calls().contains_key(id);
        assert_eq!((left(&over), left(&runs), left(&fresh)), (false, true, true));
    }

    #[tokio::test]
    async fn dropping_the_table_stops_its_calls() {
        let calls = Arc::new(PausedCalls::default());
        let (kept, dropped) = tokio::sync::oneshot::channel::<()>();
        let mut call = call(async move {
            std::future::pending::<()>().await;
            drop(kept);
        });
        let id = call.detach(calls.place(&"ada".into()).unwrap());
        calls.keep(&id, call, LONG);
        drop(calls);
        assert!(dropped.await.is_err());
    }
}
