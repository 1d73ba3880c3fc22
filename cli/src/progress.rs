//! Progress bars on the terminal for work that takes longer than a moment.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::task::JoinHandle;

/// Delay before a progress bar appears.
const DELAY: Duration = Duration::from_secs(1);
/// Interval at which a spinner moves.
const TICK: Duration = Duration::from_millis(100);

/// Creates a bar that counts `things`, with the time that has passed; without things it is a spinner.
pub(crate) fn counted(what: &str, things: usize) -> ProgressBar {
    let bar = hidden(Some(things as u64));
    let template = match things {
        0 => format!("{{spinner}} {what} {{elapsed}}"),
        _ => format!("{what} {{bar:24}} {{pos}}/{{len}} {{elapsed}}"),
    };
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

/// A spinner with the time that has passed. It appears after a moment, and disappears when it is dropped.
#[derive(Debug)]
pub(crate) struct Spinner {
    bar: ProgressBar,
    delay: JoinHandle<()>,
}

/// Creates a spinner; `None` if standard error shows none.
pub(crate) fn spinner(what: &str) -> Option<Spinner> {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    if is_dumb || !io::stderr().is_terminal() {
        return None;
    }
    let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = hidden(None).with_style(style).with_message(what.to_owned());
    let late = bar.clone();
    let delay = tokio::spawn(async move {
        tokio::time::sleep(DELAY).await;
        if !late.is_finished() {
            late.set_draw_target(ProgressDrawTarget::stderr());
            late.enable_steady_tick(TICK);
        }
    });
    Some(Spinner { bar, delay })
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.delay.abort();
        self.bar.finish_and_clear();
    }
}

fn hidden(length: Option<u64>) -> ProgressBar {
    ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden())
}
