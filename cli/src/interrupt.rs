//! Waits for someone to end the program from outside, and names the exit code for it.

use std::process::ExitCode;

/// Returns once the person presses Ctrl-C (130) or the system asks the program to end (143). Where a signal cannot be
/// listened for, it keeps its usual effect.
pub(crate) async fn requested() -> ExitCode {
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = interrupted => ExitCode::from(130),
        () = system::terminated() => ExitCode::from(143),
    }
}

#[cfg(unix)]
mod system {
    use tokio::signal::unix::{SignalKind, signal};

    pub(super) async fn terminated() {
        match signal(SignalKind::terminate()) {
            Ok(mut stream) => drop(stream.recv().await),
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(not(unix))]
mod system {
    pub(super) async fn terminated() {
        std::future::pending().await
    }
}
