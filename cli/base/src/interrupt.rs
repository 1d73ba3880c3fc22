//! Handles signals: maps them to exit codes and ends the program, at once or, on the first Ctrl-C, after calls that must
//! not be interrupted have finished.

use std::pin::pin;
use std::process;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Exit code after Ctrl-C.
pub const INTERRUPTED: u8 = 130;
/// Maximum time for an interrupted command to stop its guests, log their calls and save the conversation.
const CLEANUP: Duration = Duration::from_millis(1500);
/// Time after which the process exits even if it is blocked.
const FORCED_EXIT: Duration = Duration::from_secs(2);

/// State of a requested shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shutdown {
    None,
    /// Calls that must not be interrupted may finish first.
    Soft,
    /// Nothing is awaited.
    Hard,
}

static SHUTDOWN: LazyLock<watch::Sender<Shutdown>> = LazyLock::new(|| watch::Sender::new(Shutdown::None));
/// Number of [`Guard`]s.
static GUARDS: AtomicUsize = AtomicUsize::new(0);

/// `true` if every signal is a soft request at first, as it is for a server.
static IS_SERVER: AtomicBool = AtomicBool::new(false);

/// `true` if Ctrl-C stops an answer and not the program, as in a chat at a terminal.
static IS_CHAT: AtomicBool = AtomicBool::new(false);
/// `true` once the program ends.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// While it lives, the command handles shutdown requests itself instead of being dropped.
pub struct Guard(());

/// Declares that the command handles [`soft_stop`] and [`hard_stop`].
pub fn guard() -> Guard {
    GUARDS.fetch_add(1, SeqCst);
    Guard(())
}

/// Declares that the command is a server: it handles [`soft_stop`], which the first of every signal requests.
pub fn server() -> Guard {
    IS_SERVER.store(true, SeqCst);
    guard()
}

/// Declares that the command is a chat. At a terminal, Ctrl-C requests [`soft_stop`] and then [`hard_stop`] until [`resume`],
/// and only a third one ends the program.
pub fn chat(is_at_terminal: bool) -> Guard {
    IS_CHAT.store(is_at_terminal, SeqCst);
    guard()
}

/// Withdraws the requests to stop an answer. A request to end the program stays.
pub fn resume() {
    if !is_ending() {
        SHUTDOWN.send_replace(Shutdown::None);
    }
}

/// `true` once the program ends.
pub fn is_ending() -> bool {
    IS_ENDING.load(SeqCst)
}

/// Waits until the program ends, in a chat.
pub async fn ended() {
    // An answer is stopped by the same requests, which mean nothing while none is given.
    loop {
        soft_stop().await;
        if is_ending() {
            return;
        }
        resume();
    }
}

/// Requests that a chat stops its answer, or stops it without waiting; `false` if both were requested.
fn stop_answer() -> bool {
    SHUTDOWN.send_if_modified(|state| {
        let next = match *state {
            Shutdown::None => Shutdown::Soft,
            Shutdown::Soft => Shutdown::Hard,
            Shutdown::Hard => return false,
        };
        *state = next;
        true
    })
}

impl Drop for Guard {
    fn drop(&mut self) {
        GUARDS.fetch_sub(1, SeqCst);
    }
}

/// Waits for a shutdown request.
pub async fn soft_stop() {
    at_least(Shutdown::Soft).await;
}

/// Waits for a request to shut down without waiting for anything.
pub async fn hard_stop() {
    at_least(Shutdown::Hard).await;
}

/// `true` after a shutdown request.
pub fn is_requested() -> bool {
    *SHUTDOWN.borrow() >= Shutdown::Soft
}

async fn at_least(least: Shutdown) {
    // The sender lives as long as the program.
    let _ = SHUTDOWN.subscribe().wait_for(|state| *state >= least).await;
}

/// Waits for Ctrl-C (130), SIGHUP (129) or SIGTERM (143) and returns the exit code; on Windows, for Ctrl-C or Ctrl-Break (130),
/// the end of the console or the session (129), or of the system (143). A signal that cannot be handled keeps its default effect.
pub async fn signal() -> u8 {
    let interrupted = async {
        // One stream for all: a signal between two streams would be lost.
        let Ok(mut interrupts) = system::interrupts() else { return std::future::pending().await };
        loop {
            if interrupts.recv().await.is_none() {
                std::future::pending::<()>().await;
            }
            if !IS_CHAT.load(SeqCst) || !stop_answer() {
                break;
            }
        }
    };
    tokio::select! {
        () = interrupted => INTERRUPTED,
        code = system::ended() => code,
    }
}

/// Interrupts the programs at the terminal, as Ctrl-C does unless it arrives as a key.
pub fn from_keyboard() {
    system::interrupt();
}

/// Ends the command: requests a shutdown, softly on Ctrl-C or for a server, and, if the command has no [`Guard`] or on a second
/// signal, drops it. If the program has not ended soon after, the process exits with `code`.
pub async fn shut_down<T>(code: u8, mut command: JoinHandle<T>) {
    // Read once, before the request: the guard may be dropped before the command has ended.
    let guarded = GUARDS.load(SeqCst) > 0;
    IS_ENDING.store(true, SeqCst);
    if guarded && !IS_CHAT.load(SeqCst) && (code == INTERRUPTED || IS_SERVER.load(SeqCst)) {
        // Waits for the second signal before anybody is told to send it.
        let mut again = pin!(self::signal());
        let is_sent = futures::poll!(&mut again).is_ready();
        SHUTDOWN.send_replace(Shutdown::Soft);
        if !is_sent {
            tokio::select! {
                _ = &mut command => return,
                _ = again => {}
                () = system::patience(code) => {}
            }
        }
    }
    // Without this thread the wait below is still bounded.
    let _ = thread::Builder::new().spawn(move || {
        thread::sleep(FORCED_EXIT);
        process::exit(code.into());
    });
    SHUTDOWN.send_replace(Shutdown::Hard);
    if !guarded {
        command.abort();
    }
    // The result is irrelevant; the command has ended.
    if tokio::time::timeout(CLEANUP, &mut command).await.is_err() {
        command.abort();
    }
}

/// Makes writes beyond the file size limit fail with an error. By default the system ends the process, which a guest could
/// provoke. Requires a tokio runtime.
pub fn ignore_file_size_signal() {
    system::ignore_file_size_signal();
}

#[cfg(unix)]
mod system {
    use std::io;

    use rustix::process::Signal;
    use tokio::signal::unix::{self, SignalKind, signal};

    pub(super) fn interrupts() -> io::Result<unix::Signal> {
        signal(SignalKind::interrupt())
    }

    pub(super) fn interrupt() {
        // A process may always signal itself.
        let _ = rustix::process::kill_current_process_group(Signal::INT);
    }

    pub(super) fn ignore_file_size_signal() {
        // The handler stays installed after the stream is dropped; on failure the default effect remains.
        let _ = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()));
    }

    pub(super) async fn ended() -> u8 {
        tokio::select! {
            () = received(SignalKind::hangup()) => 129,
            () = received(SignalKind::terminate()) => 143,
        }
    }

    /// Waits until the system would end the process by itself: it never does.
    pub(super) async fn patience(_code: u8) {
        std::future::pending().await
    }

    async fn received(kind: SignalKind) {
        match signal(kind) {
            Ok(mut stream) => drop(stream.recv().await),
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(windows)]
mod system {
    use std::io;
    use std::time::Duration;

    use tokio::signal::windows::{CtrlC, ctrl_break, ctrl_c, ctrl_close, ctrl_logoff, ctrl_shutdown};

    pub(super) fn interrupts() -> io::Result<CtrlC> {
        ctrl_c()
    }

    /// Time for calls that must not be interrupted. Windows ends a process five seconds after its console was closed, and the
    /// records of the calls are to be written before.
    const PATIENCE: Duration = Duration::from_secs(2);

    /// Waits for an event; each kind of event has its own type. One that cannot be handled keeps its default effect.
    macro_rules! received {
        ($event:ident) => {
            async {
                match $event() {
                    Ok(mut stream) => drop(stream.recv().await),
                    Err(_) => std::future::pending().await,
                }
            }
        };
    }

    /// Does nothing: Ctrl-C never arrives as a key.
    pub(super) fn interrupt() {}

    pub(super) fn ignore_file_size_signal() {}

    /// Waits until the console is closed, or the user or the system asks the program to end.
    pub(super) async fn ended() -> u8 {
        tokio::select! {
            () = received!(ctrl_break) => super::INTERRUPTED,
            () = received!(ctrl_close) => 129,
            () = received!(ctrl_logoff) => 129,
            () = received!(ctrl_shutdown) => 143,
        }
    }

    /// Waits until the system is about to end the process by itself; not after Ctrl-C.
    pub(super) async fn patience(code: u8) {
        match code {
            super::INTERRUPTED => std::future::pending().await,
            _ => tokio::time::sleep(PATIENCE).await,
        }
    }
}

/// The time for a soft and a hard end, which Windows bounds to five seconds together.
#[cfg(all(test, windows))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_end_of_the_console_is_not_awaited_longer_than_windows_allows() {
        let began = tokio::time::Instant::now();
        system::patience(129).await;
        assert!(began.elapsed() + FORCED_EXIT < Duration::from_secs(5));
        let interrupted = tokio::time::timeout(Duration::from_secs(3), system::patience(INTERRUPTED));
        assert!(interrupted.await.is_err(), "Ctrl-C has no such end");
    }
}
