//! What a person sees while the program makes something ready: nothing where that takes a moment, a line on the terminal
//! where it takes longer.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// After this long a person is told.
const SLOW: Duration = Duration::from_secs(1);
/// How often a line moves of which nobody knows how long it stays.
const TICK: Duration = Duration::from_millis(100);

/// A line about so many things, each counted when it is done.
pub(crate) fn counted(what: &str, things: usize) -> ProgressBar {
    let bar = hidden(Some(things as u64));
    let template = format!("{what} {{bar:24}} {{pos}}/{{len}}");
    bar.with_style(ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// The end of `work`, with a line about it where it takes longer than a moment.
pub(crate) async fn during<T>(what: &'static str, work: impl Future<Output = T>) -> T {
    let bar = hidden(None).with_message(what);
    shown(&bar, work).await
}

/// The end of `work`, with `bar` on the terminal where it takes longer than a moment.
pub(crate) async fn shown<T>(bar: &ProgressBar, work: impl Future<Output = T>) -> T {
    let late = async {
        tokio::time::sleep(SLOW).await;
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
