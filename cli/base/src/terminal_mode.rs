//! Mode of the terminal while keys are awaited: while a line is edited, or a question has one key as its answer. Another one for
//! lines that Escape ends.

/// Mode of the terminal at standard input, restored on drop.
pub struct TerminalMode {
    _before: system::Mode,
}

impl TerminalMode {
    /// Notes the mode; `None` if standard input is not a terminal.
    pub fn save() -> Option<Self> {
        system::Mode::save().map(|before| Self { _before: before })
    }

    /// Lets each key arrive at once, unseen, and pasted text with marks, until it is dropped. Ctrl-C is a key like others.
    pub fn keys() -> Option<Self> {
        system::Mode::keys().map(|before| Self { _before: before })
    }

    /// Lets Escape end a line as Enter does, until it is dropped. The system edits the line, and Ctrl-C keeps its effect.
    pub fn lines() -> Option<Self> {
        system::Mode::lines().map(|before| Self { _before: before })
    }
}

#[cfg(unix)]
mod system {
    use std::io::{self, Write};

    use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

    /// Byte of the key Escape.
    const ESCAPE: u8 = 0x1b;

    /// Sequences after which the terminal marks pasted text, and does not.
    const MARK_PASTED: &str = "\u{1b}[?2004h";
    const DO_NOT_MARK: &str = "\u{1b}[?2004l";

    /// Mode that is restored on drop.
    pub(super) struct Mode(Termios);

    impl Mode {
        pub(super) fn save() -> Option<Self> {
            tcgetattr(io::stdin()).ok().map(Self)
        }

        pub(super) fn keys() -> Option<Self> {
            let before = Self::save()?;
            let mut mode = before.0.clone();
            mode.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
            tcsetattr(io::stdin(), OptionalActions::Now, &mode).ok()?;
            tell(MARK_PASTED);
            Some(before)
        }

        pub(super) fn lines() -> Option<Self> {
            let before = Self::save()?;
            let mut mode = before.0.clone();
            mode.special_codes[SpecialCodeIndex::VEOL] = ESCAPE;
            tcsetattr(io::stdin(), OptionalActions::Now, &mode).ok()?;
            Some(before)
        }
    }

    /// Writes a sequence to the terminal, unless it obeys none.
    fn tell(sequence: &str) {
        if std::env::var_os("TERM").is_none_or(|term| term != "dumb") {
            // The terminal may be closed.
            let _ = io::stderr().write_all(sequence.as_bytes());
        }
    }

    impl Drop for Mode {
        fn drop(&mut self) {
            tell(DO_NOT_MARK);
            // Fails if standard input is no longer a terminal.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
        }
    }
}

#[cfg(not(unix))]
mod system {
    /// Nothing to restore: keys arrive at once here.
    pub(super) struct Mode;

    impl Mode {
        pub(super) fn save() -> Option<Self> {
            None
        }

        pub(super) fn keys() -> Option<Self> {
            None
        }

        pub(super) fn lines() -> Option<Self> {
            None
        }
    }
}
