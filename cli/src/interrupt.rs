//! Waits for someone to end the program from outside, names the exit code for it, and sees to it that the program ends.

use std::process;
use std::thread;
use std::time::Duration;

use tokio::task::JoinHandle;

/// How long an interrupted command may take to stop its guests, sign for their calls and save what was said.
const PARTING: Duration = Duration::from_millis(1500);
/// When the program ends whatever it is stuck in.
const END: Duration = Duration::from_secs(2);

/// Returns once the person presses Ctrl-C (130), closes the terminal (129), or the system asks the program to end (143).
/// Where a signal cannot be listened for, it keeps its usual effect.
pub(crate) async fn requested() -> u8 {
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = interrupted => 130,
        code = system::ended() => code,
    }
}

/// Drops the command, and waits a moment until that is done. Should the program not have ended by itself soon after, it
/// ends with `code` here.
pub(crate) async fn leave<T>(code: u8, command: JoinHandle<T>) {
    // Without this thread the wait below is still bounded.
    let _ = thread::Builder::new().spawn(move || {
        thread::sleep(END);
        process::exit(code.into());
    });
    command.abort();
    // However it ends, it has ended.
    let _ = tokio::time::timeout(PARTING, command).await;
}

#[cfg(unix)]
mod system {
    use tokio::signal::unix::{SignalKind, signal};

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
    pub(super) async fn ended() -> u8 {
        std::future::pending().await
    }
}
