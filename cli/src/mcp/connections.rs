//! Connections to the server: their number is limited, and one that no request uses makes room for the next, so that clients
//! without a token cannot keep others out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// Room for connections.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    room: Arc<Semaphore>,
    idle: Arc<Mutex<Idle>>,
}

/// Connections that no request uses, the longest idle first.
#[derive(Debug, Default)]
struct Idle {
    next: u64,
    waiting: BTreeMap<u64, CancellationToken>,
}

/// Connection of a client.
#[derive(Debug)]
pub(super) struct Connection {
    connections: Connections,
    /// Number in the order of idle connections while no request uses the connection.
    idle: Mutex<Option<u64>>,
    closing: CancellationToken,
    _room: OwnedSemaphorePermit,
}

/// Use of a connection by a request, until its answer is sent.
#[derive(Debug)]
pub(super) struct Use(Arc<Connection>);

impl Connections {
    pub(super) fn new(most: usize) -> Self {
        Self { room: Arc::new(Semaphore::new(most)), idle: Arc::default() }
    }

    /// Waits for room and returns it. Without room, the longest idle connection is closed.
    pub(super) async fn room(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(room) = self.room.clone().try_acquire_owned() {
            return Some(room);
        }
        if let Some((_, closing)) = self.idle().waiting.pop_first() {
            closing.cancel();
        }
        self.room.clone().acquire_owned().await.ok()
    }

    /// Begins a connection that has sent nothing yet.
    pub(super) fn begin(&self, room: OwnedSemaphorePermit) -> Arc<Connection> {
        let closing = CancellationToken::new();
        let connection = Connection { connections: self.clone(), idle: Mutex::default(), closing, _room: room };
        connection.rest();
        Arc::new(connection)
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    /// Waits until the connection makes room for another.
    pub(super) async fn makes_room(&self) {
        self.closing.cancelled().await;
    }

    /// Marks the connection as used until the returned value is dropped.
    pub(super) fn used(self: &Arc<Self>) -> Use {
        self.leave();
        Use(self.clone())
    }

    /// Adds the connection to the idle ones.
    fn rest(&self) {
        let mut idle = self.connections.idle();
        let number = idle.next;
        idle.next += 1;
        idle.waiting.insert(number, self.closing.clone());
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = Some(number);
    }

    /// Removes the connection from the idle ones.
    fn leave(&self) {
        let number = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(number) = number {
            self.connections.idle().waiting.remove(&number);
        }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        self.0.rest();
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
        let all = Connections::new(3);
        let mut begun = Vec::new();
        for _ in 0..3 {
            begun.push(all.begin(all.room().await.unwrap()));
        }
        let used = begun[0].used();
        let mut waiting = Box::pin(all.room());
        assert!(waiting.as_mut().now_or_never().is_none(), "the connection has not ended yet");
        let closing: Vec<bool> = begun.iter().map(|one| one.makes_room().now_or_never().is_some()).collect();
        assert_eq!(closing, [false, true, false]);
        begun.remove(1);
        let room = waiting.now_or_never().flatten().expect("room");
        drop(used);
        begun.push(all.begin(room));
        // The one that was used rests for a shorter time than the one that never sent anything.
        assert!(all.room().now_or_never().is_none());
        let closing: Vec<bool> = begun.iter().map(|one| one.makes_room().now_or_never().is_some()).collect();
        assert_eq!(closing, [false, true, false]);
        drop(begun);
        assert!(all.idle().waiting.is_empty());
    }
}
