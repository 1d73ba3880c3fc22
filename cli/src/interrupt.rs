//! Waits for someone to end the program from outside, names the exit code for it, and sees to it that the program ends:
//! at once, or, where a person presses Ctrl-C for the first time, when what must not be cut off has ended.

use std::process;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The exit code of a program that was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;
/// How long an interrupted command may take to stop its guests, sign for their calls and save what was said.
const PARTING: Duration = Duration::from_millis(1500);
/// When the program ends whatever it is stuck in.
const END: Duration = Duration::from_secs(2);

/// How much the program is wanted to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    None,
    /// When what must not be cut off has ended.
    Soon,
    Now,
}

static WISH: LazyLock<watch::Sender<Wish>> = LazyLock::new(|| watch::Sender::new(Wish::None));
/// Commands that end by themselves when they are asked to.
static HOLDS: AtomicUsize = AtomicUsize::new(0);

/// As long as it lives, the command is asked to end and not dropped.
pub(crate) struct Hold(());

/// Says that the command listens to [`asked`] and [`insisted`].
pub(crate) fn hold() -> Hold {
    HOLDS.fetch_add(1, SeqCst);
    Hold(())
}

impl Drop for Hold {
    fn drop(&mut self) {
        HOLDS.fetch_sub(1, SeqCst);
    }
}

/// Returns once somebody wants the program to end.
pub(crate) async fn asked() {
    wished(Wish::Soon).await;
}

/// Returns once somebody wants the program to end without waiting for anything.
pub(crate) async fn insisted() {
    wished(Wish::Now).await;
}

/// Whether somebody wants the program to end.
pub(crate) fn is_asked() -> bool {
    *WISH.borrow() >= Wish::Soon
}

async fn wished(least: Wish) {
    // The sender lives as long as the program.
    let _ = WISH.subscribe().wait_for(|wish| *wish >= least).await;
}

/// Returns once the person presses Ctrl-C (130), closes the terminal (129), or the system asks the program to end (143).
/// Where a signal cannot be listened for, it keeps its usual effect.
pub(crate) async fn requested() -> u8 {
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = interrupted => INTERRUPTED,
        code = system::ended() => code,
    }
}

/// Ends the command: asks it to, and where it does not listen or somebody insists, drops it. Should the program not have
/// ended by itself soon after, it ends with `code` here.
pub(crate) async fn leave<T>(code: u8, mut command: JoinHandle<T>) {
    // Looked at once, before anything is asked: who listens may be done with listening, and not with ending, right after.
    let listens = HOLDS.load(SeqCst) > 0;
    if code == INTERRUPTED && listens {
        WISH.send_replace(Wish::Soon);
        tokio::select! {
            _ = &mut command => return,
            _ = requested() => {}
        }
    }
    // Without this thread the wait below is still bounded.
    let _ = thread::Builder::new().spawn(move || {
        thread::sleep(END);
        process::exit(code.into());
    });
    WISH.send_replace(Wish::Now);
    if !listens {
        command.abort();
    }
    // However it ends, it has ended.
    if tokio::time::timeout(PARTING, &mut command).await.is_err() {
        command.abort();
    }
}

/// Lets a write that is over the system's limit for files fail like any other: by default it ends the program, and a guest
/// could bring that about. This needs a tokio runtime.
pub(crate) fn outlive_large_files() {
    system::outlive_large_files();
}

#[cfg(unix)]
mod system {
    use rustix::process::Signal;
    use tokio::signal::unix::{SignalKind, signal};

    pub(super) fn outlive_large_files() {
        // The handler stays when nobody listens; where it cannot be set, things are as they were.
        let _ = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()));
    }

    pub(super) async fn ended() -> u8 {
        tokio::select! {
            () = received(SignalKind::hangup()) => 129,
            () = received(SignalKind::terminate()) => 143,
        }
    }

    async fn received(kind: SignalKind) {
        match signal(kind) {
            Ok(mut stream) => drop(stream.recv().await),
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(not(unix))]
mod system {
    pub(super) fn outlive_large_files() {}

    pub(super) async fn ended() -> u8 {
        std::future::pending().await
    }
}
