//! Questions that one key answers, without Enter. Only a key that is pressed alone, after the question was shown, is an answer:
//! input typed before it is discarded, and several bytes at once are pasted text.

use std::io::{self, Write};

use toolcrib_base::interrupt;
use toolcrib_base::render::{self, lock_terminal};

use super::keyboard::{Keyboard, Pressed};

/// Maximum number of keys that are not understood; after these the answer is no.
const MAX_UNCLEAR: usize = 5;

/// Answer to a question with one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyAnswer {
    /// One of the keys that the question offers, in lower case.
    Key(char),
    /// Enter, Escape, `n`, the end of input, or nothing that is understood.
    No,
    /// Ctrl-C.
    Interrupted,
}

/// Asks a person at the terminal of standard input for one of `keys`, without Enter where the terminal allows it.
pub async fn ask_key(question: &str, keys: &[char]) -> KeyAnswer {
    ask_at(Keyboard::default(), question, keys).await
}

/// Asks a person at the terminal, which need not be standard input; [`KeyAnswer::No`] if nobody can answer there. Without a mode
/// for keys, a line is read. Ctrl-C interrupts the program.
pub async fn ask_person_key(question: &str, keys: &[char]) -> KeyAnswer {
    let Some(keyboard) = Keyboard::open() else { return KeyAnswer::No };
    match ask_at(keyboard, question, keys).await {
        KeyAnswer::Interrupted => interrupted().await,
        answer => answer,
    }
}

async fn ask_at(mut keyboard: Keyboard, question: &str, keys: &[char]) -> KeyAnswer {
    for _ in 0..MAX_UNCLEAR {
        match pressed(&mut keyboard, question, shown).await {
            Pressed::Key(key) if keys.contains(&key.to_ascii_lowercase()) => {
                return KeyAnswer::Key(key.to_ascii_lowercase());
            }
            Pressed::No | Pressed::Key('n' | 'N') => return KeyAnswer::No,
            Pressed::Interrupt => return KeyAnswer::Interrupted,
            Pressed::Key(_) | Pressed::Several => {}
            Pressed::Line(line) => match line.to_ascii_lowercase().as_str() {
                "" | "n" | "no" => return KeyAnswer::No,
                "yes" if keys.contains(&'y') => return KeyAnswer::Key('y'),
                line => match line.as_bytes() {
                    [key] if keys.contains(&char::from(*key)) => return KeyAnswer::Key(char::from(*key)),
                    _ => {}
                },
            },
        }
        explain("Not understood: press one of the letters in brackets.", shown);
    }
    KeyAnswer::No
}

/// Shows a question with `say`, reads its answer, and ends the line on the terminal, also if it is dropped.
pub(super) async fn pressed(keyboard: &mut Keyboard, question: &str, say: fn(&str)) -> Pressed {
    let line = OpenLine(say);
    let pressed = keyboard.key(|| say(&render::question(question))).await;
    match &pressed {
        Pressed::Key(key) => say(&key.to_string()),
        Pressed::Interrupt => say("^C"),
        Pressed::No | Pressed::Several => {}
        Pressed::Line(_) => line.ended(),
    }
    pressed
}

/// Says with `say` why a question is asked again.
pub(super) fn explain(text: &str, say: fn(&str)) {
    say(&format!("{}\n", render::question(text).trim_end()));
}

/// Interrupts the program, as Ctrl-C does without a question, and waits for its end.
pub(super) async fn interrupted<T>() -> T {
    interrupt::from_keyboard();
    std::future::pending().await
}

/// A line on which the user answers. Dropping it ends the line.
pub(super) struct OpenLine(pub(super) fn(&str));

impl OpenLine {
    /// Notes that the person has ended the line.
    pub(super) fn ended(self) {
        std::mem::forget(self);
    }
}

impl Drop for OpenLine {
    fn drop(&mut self) {
        (self.0)("\n");
    }
}

fn shown(text: &str) {
    let _lock = lock_terminal();
    // If the terminal is gone, no answer will arrive either.
    let _ = io::stderr().write_all(text.as_bytes());
}
