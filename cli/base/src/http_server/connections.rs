//! Connections to the server: their number is limited, and one that no request uses makes room for the next, so that clients
//! without a token cannot keep others out.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Time without a request after which a connection makes room for another.
const IDLE: Duration = Duration::from_secs(1);
/// Time between two looks for a connection that makes room.
const INTERVAL: Duration = Duration::from_millis(100);

/// Room for connections.
#[derive(Debug, Clone)]
pub struct Connections {
    /// Maximum number of connections.
    most: usize,
    room: Arc<Semaphore>,
    /// Time without a request after which a connection makes room.
    min_idle: Duration,
    idle: Arc<Mutex<Idle>>,
}

/// Connections that no request uses, the longest idle first.
#[derive(Debug, Default)]
struct Idle {
    next: u64,
    /// Start of the time without a request, and the connection's end.
    waiting: BTreeMap<u64, (Instant, CancellationToken)>,
}

/// Connection of a client.
#[derive(Debug)]
pub struct Connection {
    connections: Connections,
    rest: Mutex<Rest>,
    closing: CancellationToken,
    _room: OwnedSemaphorePermit,
}

/// Time of a connection without a request.
#[derive(Debug)]
struct Rest {
    /// Number in the order of idle connections.
    number: u64,
    since: Instant,
}

/// Use of a connection by a request, until its answer is sent.
#[derive(Debug)]
pub struct Use {
    connection: Arc<Connection>,
    is_admitted: AtomicBool,
}

impl Connections {
    /// Creates the limits of a server with at most `most` connections.
    pub fn new(most: usize) -> Self {
        Self { most, room: Arc::new(Semaphore::new(most)), min_idle: IDLE, idle: Arc::default() }
    }

    /// Waits for room for a client that has connected, and returns it. Without room, the longest idle connection is closed.
    pub(crate) async fn room(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(room) = self.room.clone().try_acquire_owned() {
            return Some(room);
        }
        let mut room = pin!(self.room.clone().acquire_owned());
        loop {
            self.make_room();
            if let Ok(room) = tokio::time::timeout(INTERVAL, &mut room).await {
                return room.ok();
            }
        }
    }

    /// Returns the number of connections.
    pub fn number(&self) -> usize {
        self.most - self.room.available_permits()
    }

    /// Closes the longest idle connection.
    fn make_room(&self) {
        let mut idle = self.idle();
        if idle.waiting.first_key_value().is_some_and(|(_, (since, _))| since.elapsed() >= self.min_idle)
            && let Some((_, (_, closing))) = idle.waiting.pop_first()
        {
            closing.cancel();
        }
    }

    /// Begins a connection that has sent nothing yet.
    pub fn begin(&self, room: OwnedSemaphorePermit) -> Arc<Connection> {
        let (closing, rest) = (CancellationToken::new(), Mutex::new(self.next_rest()));
        let connection = Connection { connections: self.clone(), rest, closing, _room: room };
        connection.rest();
        Arc::new(connection)
    }

    fn next_rest(&self) -> Rest {
        let mut idle = self.idle();
        idle.next += 1;
        Rest { number: idle.next, since: Instant::now() }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Waits until the connection makes room for another.
    pub async fn makes_room(&self) {
        self.closing.cancelled().await;
    }

    /// Marks the connection as used until the returned value is dropped.
    pub fn used(self: &Arc<Self>) -> Use {
        self.leave();
        Use { connection: self.clone(), is_admitted: AtomicBool::new(false) }
    }

    /// Adds the connection to the idle ones.
    fn rest(&self) {
        let Rest { number, since } = *self.present_rest();
        self.connections.idle().waiting.insert(number, (since, self.closing.clone()));
    }

    /// Removes the connection from the idle ones.
    fn leave(&self) {
        let number = self.present_rest().number;
        self.connections.idle().waiting.remove(&number);
    }

    fn present_rest(&self) -> MutexGuard<'_, Rest> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Use {
    /// Marks the request as one of a client that may send it. Other requests do not shorten the time without a request.
    pub fn admit(&self) {
        self.is_admitted.store(true, Relaxed);
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        if self.is_admitted.load(Relaxed) {
            let next = self.connection.connections.next_rest();
            *self.connection.present_rest() = next;
        }
        self.connection.rest();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn the_longest_idle_connection_makes_room_and_a_used_one_does_not() {
        let all = Connections { min_idle: Duration::ZERO, ..Connections::new(3) };
        let mut begun = Vec::new();
        for _ in 0..3 {
            begun.push(all.begin(all.room().await.unwrap()));
        }
        let closing = |begun: &[Arc<Connection>]| -> Vec<bool> {
            begun.iter().map(|one| one.makes_room().now_or_never().is_some()).collect()
        };
        let used = begun[0].used();
        used.admit();
        let mut room = Box::pin(all.room());
        assert!(room.as_mut().now_or_never().is_none(), "the connection has not ended yet");
        assert_eq!(closing(&begun), [false, true, false]);
        drop(begun.remove(1));
        begun.push(all.begin(room.await.unwrap()));
        drop(used);
        // The one that was used rests for a shorter time than those that never sent anything.
        assert!(all.room().now_or_never().is_none());
        assert_eq!(closing(&begun), [false, true, false]);
        drop(begun);
        assert!(all.idle().waiting.is_empty());
    }

    #[tokio::test]
    async fn requests_that_are_not_admitted_do_not_keep_a_connection() {
        let all = Connections { min_idle: Duration::ZERO, ..Connections::new(2) };
        let (one, other) = (all.begin(all.room().await.unwrap()), all.begin(all.room().await.unwrap()));
        drop(one.used());
        assert!(all.room().now_or_never().is_none());
        assert!(one.makes_room().now_or_never().is_some() && other.makes_room().now_or_never().is_none());
    }

    #[tokio::test]
    async fn a_connection_that_rests_for_a_short_time_stays() {
        let all = Connections::new(1);
        let connection = all.begin(all.room().await.unwrap());
        let room = tokio::time::timeout(INTERVAL * 2, all.room()).await;
        assert!(room.is_err() && connection.makes_room().now_or_never().is_none());
        let mut room = Box::pin(all.room());
        tokio::select! {
            _ = room.as_mut() => panic!("the connection has not ended"),
            () = connection.makes_room() => {}
        }
    }
}
