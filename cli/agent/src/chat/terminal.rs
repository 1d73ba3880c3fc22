//! Mode of the terminal while a line is edited. It is restored after the line, and at the end of the chat even if a key is
//! still awaited.

pub(super) use system::TerminalMode;

#[cfg(unix)]
mod system {
    use std::io::{self, Write};

    use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

    /// Sequences after which the terminal marks pasted text, and does not.
    const MARK_PASTED: &str = "\u{1b}[?2004h";
    const DO_NOT_MARK: &str = "\u{1b}[?2004l";

    /// Mode of the terminal at standard input, restored on drop.
    pub(in crate::chat) struct TerminalMode(Termios);

    impl TerminalMode {
        /// Notes the mode; `None` if standard input is not a terminal.
        pub(in crate::chat) fn save() -> Option<Self> {
            tcgetattr(io::stdin()).ok().map(Self)
        }

        /// Lets each key arrive at once, unseen, and pasted text with marks, until it is dropped. Ctrl-C is a key like others.
        pub(in crate::chat) fn keys() -> Option<Self> {
            let before = Self::save()?;
            let mut mode = before.0.clone();
            mode.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
            tcsetattr(io::stdin(), OptionalActions::Now, &mode).ok()?;
            tell(MARK_PASTED);
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

    impl Drop for TerminalMode {
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
    pub(in crate::chat) struct TerminalMode;

    impl TerminalMode {
        pub(in crate::chat) fn save() -> Option<Self> {
            None
        }

        pub(in crate::chat) fn keys() -> Option<Self> {
            None
        }
    }
}
