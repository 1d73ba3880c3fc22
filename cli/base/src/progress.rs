//! Progress on the terminal of work that takes longer than a moment: its name, a bar or a spinner, and the elapsed time. In
//! plain mode, one line says what is going on, and for some work also where there is no terminal.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::task::JoinHandle;

use crate::render;

/// Delay before progress appears: it is seen within a second of a start.
const DELAY: Duration = Duration::from_millis(700);
/// Interval at which a spinner moves.
const TICK: Duration = Duration::from_millis(100);
/// Template of work without a known size; `msg` is its name.
const SPINNER: &str = "{spinner} {wide_msg} {elapsed}";

/// Creates progress of `things` that [`ProgressBar::set_message`] names while they are worked on.
pub fn counted(what: &str, things: usize) -> ProgressBar {
    let bar = hidden(Some(things as u64)).with_message(what.to_owned());
    // Nothing is counted of nothing: other work may follow.
    let template = if things == 0 { SPINNER } else { "{spinner} {pos}/{len} {wide_msg} {elapsed}" };
    styled(bar, template)
}

/// Creates a bar for the transfer of `total` bytes.
pub fn bytes(what: &str, total: u64) -> ProgressBar {
    let bar = hidden(Some(total)).with_message(what.to_owned());
    styled(bar, "{msg} {bar:24} {binary_bytes}/{binary_total_bytes}")
}

/// Awaits `work` and shows a spinner if it takes longer than a moment.
pub async fn during<T>(what: impl Into<Cow<'static, str>>, work: impl Future<Output = T>) -> T {
    let bar = styled(hidden(None).with_message(what), SPINNER);
    shown(&bar, work).await
}

/// Awaits `work` and shows `bar` if it takes longer than a moment.
pub async fn shown<T>(bar: &ProgressBar, work: impl Future<Output = T>) -> T {
    announced(bar, work, || None).await
}

/// Awaits `work` and shows `bar` if it takes longer than a moment; where there is no terminal, `line` says what is going on.
pub async fn announced<T>(
    bar: &ProgressBar,
    work: impl Future<Output = T>,
    line: impl FnOnce() -> Option<String>,
) -> T {
    let late = async {
        tokio::time::sleep(DELAY).await;
        if io::stderr().is_terminal() {
            match render::is_plain() {
                true => render::aside(&bar.message()),
                false => {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    bar.enable_steady_tick(TICK);
                }
            }
        } else if let Some(line) = line() {
            render::aside(&line);
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
pub struct Spinner {
    bar: ProgressBar,
    delay: JoinHandle<()>,
}

/// Creates a spinner; `None` if standard error shows none. In plain mode, one line takes its place at once.
pub fn spinner(what: &str) -> Option<Spinner> {
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let is_terminal = io::stderr().is_terminal();
    if is_terminal && render::is_plain() {
        render::aside(what);
    }
    if is_dumb || render::is_plain() || !is_terminal {
        return None;
    }
    let bar = styled(hidden(None).with_message(what.to_owned()), SPINNER);
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

/// Line with the end of a text that still arrives. It disappears when it is dropped.
#[derive(Debug)]
pub struct Preview(ProgressBar);

impl Preview {
    /// Creates an empty line; `None` if standard error shows none.
    pub fn new() -> Option<Self> {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if is_dumb || render::is_plain() || !io::stderr().is_terminal() {
            return None;
        }
        let bar = styled(hidden(None), "{spinner} {wide_msg}");
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.enable_steady_tick(TICK);
        Some(Self(bar))
    }

    /// Shows a text on the line.
    pub fn show(&self, text: String) {
        self.0.set_message(text);
    }
}

impl Drop for Preview {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Parts of some work that are under way, named by its progress.
#[derive(Clone)]
pub struct Underway {
    bar: ProgressBar,
    names: Arc<Mutex<Vec<String>>>,
}

impl Underway {
    /// Creates an empty list of parts, which a bar shows.
    pub fn on(bar: &ProgressBar) -> Self {
        Self { bar: bar.clone(), names: Arc::default() }
    }

    /// Names a part until `work` on it ends.
    pub async fn during<T>(&self, name: String, work: impl Future<Output = T>) -> T {
        self.change(|names| names.push(name.clone()));
        let end = work.await;
        self.change(|names| names.retain(|other| *other != name));
        end
    }

    fn change(&self, change: impl FnOnce(&mut Vec<String>)) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut names);
        if !names.is_empty() {
            self.bar.set_message(format!("compiling {}", names.join(", ")));
        }
    }
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    bar.with_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner()))
}

fn hidden(length: Option<u64>) -> ProgressBar {
    ProgressBar::with_draw_target(length, ProgressDrawTarget::hidden())
}
