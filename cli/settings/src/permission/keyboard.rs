//! Reads lines from the terminal of a person: standard input, or `/dev/tty` (on Windows, `CONIN$`) if standard input is data.
//! Input typed before a prompt was shown is discarded and never answers it.

use std::io::{self, IsTerminal, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot::{self, Receiver, error::TryRecvError};
use toolcrib_base::input;
use toolcrib_base::terminal_mode::TerminalMode;

/// Maximum length of a typed line, in bytes. The rest of a longer line is discarded.
const MAX_LINE: usize = 16_384;
/// Minimum time without a key before a further question: whoever types a sentence answers only the first one.
const MIN_SILENCE: Duration = Duration::from_secs(1);

/// Input after a question that one key answers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    /// One key with a character.
    Key(char),
    /// Enter, Escape or the end of input.
    No,
    /// Ctrl-C.
    Interrupt,
    /// Pasted text, or a key without a character.
    Several,
    /// Whole line, where keys do not arrive one by one.
    Line(String),
}

impl Pressed {
    /// Returns the meaning of bytes that arrived at once.
    fn of(bytes: &[u8]) -> Self {
        match bytes {
            [] | [b'\n' | b'\r' | 0x04 | 0x1b] => Self::No,
            [0x03] => Self::Interrupt,
            [byte] if byte.is_ascii_graphic() => Self::Key(char::from(*byte)),
            _ => Self::Several,
        }
    }
}

/// Line that is typed where Escape may end it too.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TypedLine {
    Text(String),
    /// Escape: whatever was typed before it counts for nothing.
    Escape,
    /// End of input.
    End,
}

/// Byte of the key Escape.
const ESCAPE: u8 = 0x1b;

/// Terminal of a person. It is read on separate threads. For a line its mode is not changed: Ctrl-C keeps its effect.
#[derive(Debug, Default)]
pub(super) struct Keyboard {
    /// The terminal, if it is not standard input.
    terminal: Option<Arc<system::Terminal>>,
    /// A pending read. If its prompt was dropped, the next prompt awaits it.
    reading: Option<Receiver<TypedLine>>,
}

/// Word that is typed at the terminal, whichever question its first key answered.
static WORD: Mutex<Word> = Mutex::new(Word { latest: None });

/// Typed word whose first key was an answer.
#[derive(Debug, Default)]
struct Word {
    /// Time of its latest key.
    latest: Option<Instant>,
}

impl Word {
    /// Notes a key.
    fn proceed(&mut self, now: Instant) {
        self.latest = Some(now);
    }

    /// Returns the time until the word has ended; `None` if it has.
    fn left(&self, now: Instant) -> Option<Duration> {
        let end = self.latest? + MIN_SILENCE;
        Some(end.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }
}

fn word() -> MutexGuard<'static, Word> {
    WORD.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keyboard {
    /// Opens the terminal; `None` if nobody can answer there, because standard error, where the prompts are printed, is no
    /// terminal, or because standard input is neither a terminal nor data.
    pub(super) fn open() -> Option<Self> {
        if !io::stderr().is_terminal() {
            return None;
        }
        if system::is_terminal(&io::stdin()) {
            return Some(Self::default());
        }
        // `/dev/null` and a closed standard input mean that nobody is to be asked.
        let terminal = input::is_data().then(system::terminal)??;
        Some(Self { terminal: Some(Arc::new(terminal)), reading: None })
    }

    /// Discards all input typed so far.
    pub(super) fn discard(&mut self) {
        let ended = |reading: &mut Receiver<_>| !matches!(reading.try_recv(), Err(TryRecvError::Empty));
        if self.reading.as_mut().is_some_and(ended) {
            self.reading = None;
        }
        system::discard(self.terminal.as_deref(), self.reading.is_some());
    }

    /// Reads the next key of standard input, after `ask` has shown its question. Without a pending read, and where the system
    /// has such a mode, it arrives at once; otherwise a line is read. Keys that were typed before the question, and the rest of
    /// the word that answered the previous one, are discarded.
    pub(super) async fn key(&mut self, ask: impl FnOnce()) -> Pressed {
        let mode = (self.terminal.is_none() && self.reading.is_none()).then(TerminalMode::keys).flatten();
        if mode.is_some() {
            self.end_word().await;
        }
        self.discard();
        ask();
        let Some(_mode) = mode else { return self.line().await.map_or(Pressed::No, Pressed::Line) };
        let (pressed, reading) = oneshot::channel();
        // Once the question is dropped, the thread reads nothing more: the next key is not its own.
        let _ = thread::Builder::new().name("keyboard".to_owned()).spawn(move || {
            while !pressed.is_closed() {
                if let Some(bytes) = system::key() {
                    let _ = pressed.send(bytes);
                    break;
                }
            }
        });
        let bytes = reading.await.unwrap_or_default();
        word().proceed(Instant::now());
        // What is left of pasted text reaches nobody.
        self.discard();
        Pressed::of(&bytes)
    }

    /// Waits until no further key of the previous answer arrives.
    async fn end_word(&mut self) {
        loop {
            let Some(left) = word().left(Instant::now()) else { return };
            tokio::time::sleep(left).await;
            if system::has_keys() {
                self.discard();
                word().proceed(Instant::now());
            }
        }
    }

    /// Reads the next line; `None` at the end of input.
    pub(super) async fn line(&mut self) -> Option<String> {
        match self.end_of_line(false).await {
            TypedLine::Text(line) => Some(line),
            TypedLine::Escape | TypedLine::End => None,
        }
    }

    /// Reads the next line, which Escape ends too where the system has such a mode; `ask` shows the question and is told of it.
    pub(super) async fn line_or_escape(&mut self, ask: impl FnOnce(bool)) -> TypedLine {
        let mode = (self.terminal.is_none() && self.reading.is_none()).then(TerminalMode::lines).flatten();
        self.discard();
        ask(mode.is_some());
        self.end_of_line(mode.is_some()).await
    }

    async fn end_of_line(&mut self, escapes: bool) -> TypedLine {
        let line = self.reading.get_or_insert_with(|| read(self.terminal.clone(), escapes)).await;
        self.reading = None;
        let line = line.unwrap_or(TypedLine::End);
        if matches!(line, TypedLine::Escape) {
            // It may be the first byte of another key, whose further bytes answer nothing.
            word().proceed(Instant::now());
        }
        line
    }
}

/// Reads a line on a thread of its own; with `escapes`, Escape ends it.
fn read(terminal: Option<Arc<system::Terminal>>, escapes: bool) -> Receiver<TypedLine> {
    let (typed, reading) = oneshot::channel();
    // Without a thread nothing is sent, which reads as the end of input.
    let _ = thread::Builder::new().name("keyboard".to_owned()).spawn(move || {
        let line = match &terminal {
            Some(terminal) => line_of(&mut &**terminal, escapes),
            None => line_of(&mut io::stdin().lock(), escapes),
        };
        // The prompt may be gone.
        let _ = typed.send(line);
    });
    reading
}

/// Reads a line with at most [`MAX_LINE`] bytes; with `escapes`, Escape ends it too.
fn line_of(input: &mut dyn Read, escapes: bool) -> TypedLine {
    let (mut line, mut byte, mut is_empty) = (Vec::new(), [0], true);
    loop {
        match input.read(&mut byte) {
            Ok(1..) => {}
            Ok(0) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        }
        is_empty = false;
        match byte {
            [b'\n'] => break,
            [ESCAPE] if escapes => return TypedLine::Escape,
            [byte] if line.len() < MAX_LINE => line.push(byte),
            _ => {}
        }
    }
    if is_empty { TypedLine::End } else { TypedLine::Text(String::from_utf8_lossy(&line).trim().to_owned()) }
}

#[cfg(unix)]
mod system {
    use std::fs::{File, OpenOptions};
    use std::io::{self, IsTerminal};
    use std::os::unix::fs::OpenOptionsExt;
    use std::time::Duration;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::OFlags;
    use rustix::io::{Errno, ioctl_fionread, read};
    use rustix::termios::{QueueSelector, tcflush};

    /// Time in which the rest of pasted text follows its first byte.
    const PASTE_TIME: Duration = Duration::from_millis(30);
    /// Maximum wait for a key, after which the reader looks whether its question still waits.
    const LOOK_TIME: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

    pub(super) type Terminal = File;

    pub(super) fn is_terminal(stdin: &io::Stdin) -> bool {
        stdin.is_terminal()
    }

    /// Opens the controlling terminal.
    pub(super) fn terminal() -> Option<Terminal> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(OFlags::NOCTTY.bits().cast_signed());
        options.open("/dev/tty").ok()
    }

    /// Reads the bytes of one key: more than one if more follow at once. Nothing at the end of input; `None` if no key has
    /// arrived for a while.
    pub(super) fn key() -> Option<Vec<u8>> {
        let stdin = io::stdin();
        if let Ok(0) | Err(Errno::INTR) = poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&LOOK_TIME)) {
            return None;
        }
        let mut bytes = vec![0; 256];
        let count = loop {
            match read(io::stdin(), bytes.as_mut_slice()) {
                Err(Errno::INTR) => {}
                count => break count.unwrap_or(0),
            }
        };
        bytes.truncate(count);
        if count == 1 {
            std::thread::sleep(PASTE_TIME);
            bytes.extend(has_keys().then_some(0));
        }
        Some(bytes)
    }

    /// Returns `true` if keys have arrived that were not read.
    pub(super) fn has_keys() -> bool {
        ioctl_fionread(io::stdin()).unwrap_or(0) > 0
    }

    /// Discards what was typed; the system keeps no line apart for a pending read.
    pub(super) fn discard(terminal: Option<&Terminal>, _is_pending: bool) {
        // Fails only if the file is not a terminal, and then there is no prompt.
        let _ = match terminal {
            Some(terminal) => tcflush(terminal, QueueSelector::IFlush),
            None => tcflush(io::stdin(), QueueSelector::IFlush),
        };
    }
}

#[cfg(windows)]
mod system {
    use std::io;
    use std::os::windows::io::AsHandle;

    use toolcrib_base::windows::console::{self, ConsoleInput};

    pub(super) type Terminal = ConsoleInput;

    /// Returns `true` for a console. Other terminals are pipes here: typed input cannot be discarded from them, so no
    /// question is asked there.
    pub(super) fn is_terminal(stdin: &io::Stdin) -> bool {
        console::mode(stdin.as_handle()).is_ok()
    }

    /// Reads no key: this system has no mode for it.
    pub(super) fn key() -> Option<Vec<u8>> {
        Some(Vec::new())
    }

    /// Returns `false`: no key arrives alone.
    pub(super) fn has_keys() -> bool {
        false
    }

    /// Opens the input of the console.
    pub(super) fn terminal() -> Option<Terminal> {
        ConsoleInput::open().ok()
    }

    /// Discards what was typed, and, with a pending read, also the line that it has received in part.
    pub(super) fn discard(terminal: Option<&Terminal>, is_pending: bool) {
        let stdin = io::stdin();
        let console = terminal.map_or_else(|| stdin.as_handle(), AsHandle::as_handle);
        // Fails only if the console is gone, and then there is no prompt.
        let _ = console::discard_input(console);
        if is_pending {
            let _ = console::clear_line(console);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_is_a_key_and_several_are_pasted() {
        for (bytes, pressed) in [
            (&b"y"[..], Pressed::Key('y')),
            (b"\n", Pressed::No),
            (b"\x1b", Pressed::No),
            (b"", Pressed::No),
            (b"\x03", Pressed::Interrupt),
            (b"y\n", Pressed::Several),
            (b"y\0", Pressed::Several),
            (b"\x1b[200~y\x1b[201~", Pressed::Several),
            (b"\x1b[A", Pressed::Several),
            ("é".as_bytes(), Pressed::Several),
            (b"\t", Pressed::Several),
        ] {
            assert_eq!(Pressed::of(bytes), pressed, "{bytes:?}");
        }
    }

    #[test]
    fn the_rest_of_a_word_belongs_to_its_first_key() {
        let begin = Instant::now();
        let after = |ms| begin + Duration::from_millis(ms);
        let mut word = Word::default();
        assert_eq!(word.left(begin), None, "no question was answered yet");
        word.proceed(begin);
        assert_eq!(word.left(after(100)), Some(Duration::from_millis(900)));
        assert_eq!(word.left(after(1000)), None);
        for key in [900, 1_800, 2_700, 3_600] {
            word.proceed(after(key));
            assert_eq!(
                word.left(after(key + 900)),
                Some(Duration::from_millis(100)),
                "a slow sentence has no end before its last key"
            );
        }
        assert_eq!(word.left(after(4_600)), None);
    }

    #[test]
    fn a_line_ends_at_its_break_or_its_maximum_length() {
        let text = |text: &str| TypedLine::Text(text.to_owned());
        let mut typed = " y \nn".as_bytes();
        assert_eq!(line_of(&mut typed, false), text("y"));
        assert_eq!(line_of(&mut typed, false), text("n"));
        assert_eq!(line_of(&mut typed, false), TypedLine::End);
        let long = format!("{}\ny\n", "x".repeat(MAX_LINE + 1));
        let mut typed = long.as_bytes();
        assert_eq!(line_of(&mut typed, false), text(&"x".repeat(MAX_LINE)));
        assert_eq!(line_of(&mut typed, false), text("y"), "the rest of a long line answers nothing");
        assert_eq!(line_of(&mut "\n".as_bytes(), false), text(""));
        // A reason with an escape counts for nothing; elsewhere it is a part of the line.
        assert_eq!(line_of(&mut "keep i\x1b".as_bytes(), true), TypedLine::Escape);
        assert_eq!(line_of(&mut "a\x1bb\n".as_bytes(), false), text("a\x1bb"));
    }
}
