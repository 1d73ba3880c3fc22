//! Questions that one key answers, without Enter. Only a key that is pressed alone, after the question was shown, is an answer:
//! input typed before it is discarded, and several bytes at once are pasted text.

use std::io::{self, Write};

use toolcrib_base::render::{self, lock_terminal};

use super::keyboard::{Keyboard, Pressed};

/// Maximum number of keys that are not understood; after these the answer is no.
const MAX_UNCLEAR: usize = 10;

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
    let mut keyboard = Keyboard::default();
    for _ in 0..MAX_UNCLEAR {
        let pressed = keyboard.key(|| shown(&render::question(question))).await;
        let end = |word: &str| shown(&format!("{word}\n"));
        match pressed {
            Pressed::Key(key) if keys.contains(&key.to_ascii_lowercase()) => {
                end(&key.to_string());
                return KeyAnswer::Key(key.to_ascii_lowercase());
            }
            Pressed::Key('n' | 'N') => {
                end("n");
                return KeyAnswer::No;
            }
            Pressed::No => {
                end("");
                return KeyAnswer::No;
            }
            Pressed::Interrupt => {
                end("^C");
                return KeyAnswer::Interrupted;
            }
            Pressed::Key(_) | Pressed::Several => end(""),
            Pressed::Line(line) => match line.to_ascii_lowercase().as_bytes() {
                b"" | b"n" | b"no" => return KeyAnswer::No,
                [key] if keys.contains(&char::from(*key)) => return KeyAnswer::Key(char::from(*key)),
                _ => {}
            },
        }
        shown("Not understood: press one of the letters in brackets.\n");
    }
    KeyAnswer::No
}

fn shown(text: &str) {
    let _lock = lock_terminal();
    // If the terminal is gone, no answer will arrive either.
    let _ = io::stderr().write_all(text.as_bytes());
}
