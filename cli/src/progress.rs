//! Progress bars on the terminal for work that takes longer than a moment.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Delay before a progress bar appears.
const DELAY: Duration = Duration::from_secs(1);
/// Interval at which a spinner moves.
const TICK: Duration = Duration::from_millis(100);

/// Creates a bar that counts `things`.
pub(crate) fn counted(what: &str, things: usize) -> ProgressBar {
    let bar = hidden(Some(things as u64));
    let template = format!("{what} {{bar:24}} {{pos}}/{{len}}");
    bar.with_style(ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Creates a bar for the transfer of `total` bytes.
pub(crate) fn bytes(what: &str, total: u64) -> ProgressBar {
    let bar = hidden(Some(total));
    let template = format!("{what} {{bar:24}} {{binary_bytes}}/{{binary_total_bytes}}");
    bar.with_style(ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Awaits `work` and shows a spinner if it takes longer than a moment.
pub(crate) async fn during<T>(what: &'static str, work: impl Future<Output = T>) -> T {
    let bar = hidden(None).with_message(what);
    shown(&bar, work).await
}

/// Awaits `work` and shows `bar` if it takes longer than a moment.
pub(crate) async fn shown<T>(bar: &ProgressBar, work: impl Future<Output = T>) -> T {
    let late = async {
        tokio::time::sleep(DELAY).await;
        if io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.enable_steady_tick(TICK);
        }
        std::future::pending::<T>().await
    };
    let end = tokio::select! {
        end = work => end,
        never = late => never,
    };
    bar.finish_and_clear();
    end
}

fn hidden(length: Option<u64>) -> ProgressBar {
    ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden())
}
