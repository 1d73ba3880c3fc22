//! Pseudo-terminal with a simulated person: its far end is the program's standard input and error. Standard output is a
//! pipe, as when a program reads the answer, unless it is on the terminal too.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::ioctl::{Getter, Setter, ioctl, opcode};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::crib::Ran;
use crate::crib::nesting::Direct;

/// Maximum wait for words on the terminal: tests share the machine.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// Sequences that switch the marks of pasted text, which nobody sees.
const MODES: [&str; 2] = ["\u{1b}[?2004h", "\u{1b}[?2004l"];
/// Columns of the terminal.
pub(crate) const COLUMNS: u16 = 100;

/// The program, and the person's end of its terminal.
pub(crate) struct Terminal {
    person: File,
    child: Child,
    arriving: Receiver<Vec<u8>>,
    seen: String,
    /// Bytes of a character that has not arrived whole.
    cut: Vec<u8>,
    read_to: usize,
    /// The command, if the call is made from a program instead.
    direct: Option<Direct>,
}

/// Results of the ended program.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    /// Everything on the terminal, including the typed text.
    pub(crate) terminal: String,
}

impl Left {
    /// Returns the text that a person sees on the terminal.
    pub(crate) fn shown(&self) -> String {
        without_modes(&self.terminal)
    }
}

/// Removes the sequences that switch the marks of pasted text.
fn without_modes(text: &str) -> String {
    MODES.iter().fold(text.to_owned(), |text, mode| text.replace(mode, ""))
}

impl Terminal {
    /// Starts the program on its own terminal.
    pub(crate) fn start(command: Command) -> Self {
        let (person, far) = pair();
        Self::start_with(command, far.try_clone().unwrap().into(), person, far)
    }

    /// Starts the program on its own terminal, where lines were typed before.
    pub(crate) fn start_after_typing(text: &str, command: Command) -> Self {
        let (mut person, far) = pair();
        person.write_all(text.as_bytes()).unwrap();
        // The terminal repeats a line, with one byte more, when it has it: the program cannot be faster.
        let mut repeated = vec![0; text.len() + text.matches('\n').count()];
        person.read_exact(&mut repeated).unwrap();
        Self::start_with(command, far.try_clone().unwrap().into(), person, far)
    }

    /// Starts the program with another standard input than its terminal.
    pub(crate) fn start_with_input(command: Command, input: Stdio) -> Self {
        let (person, far) = pair();
        Self::start_with(command, input, person, far)
    }

    /// Starts the program with its answer on the terminal too.
    pub(crate) fn start_whole(mut command: Command) -> Self {
        let (person, far) = pair();
        command.stdout(far.try_clone().unwrap());
        Self::start_at(command, far.try_clone().unwrap().into(), person, far)
    }

    fn start_with(mut command: Command, input: Stdio, person: File, far: File) -> Self {
        command.stdout(Stdio::piped());
        Self::start_at(command, input, person, far)
    }

    fn start_at(mut command: Command, input: Stdio, person: File, far: File) -> Self {
        let controlling = far.try_clone().unwrap();
        command.env("NO_COLOR", "1").stdin(input).stderr(far);
        at_terminal(&mut command, controlling);
        let direct = Direct::of(&command);
        let child = command.spawn().expect("the program starts");
        // Only the program holds the far end from here on: when it has ended, there is nothing more to read.
        drop(command);
        let (arrived, arriving) = mpsc::channel();
        let mut reader = person.try_clone().unwrap();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if arrived.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { person, child, arriving, seen: String::new(), cut: Vec::new(), read_to: 0, direct }
    }

    /// Waits for words after the previous ones, and returns the text in between.
    pub(crate) fn until(&mut self, words: &str) -> String {
        let started = Instant::now();
        loop {
            if let Some(at) = self.seen[self.read_to..].find(words) {
                let between = self.seen[self.read_to..][..at].to_owned();
                self.read_to += at + words.len();
                return between;
            }
            let left = MAX_WAIT.saturating_sub(started.elapsed());
            let arrived = self.arriving.recv_timeout(left);
            let bytes = arrived.unwrap_or_else(|_| panic!("no {words:?} on the terminal: {}", self.seen));
            self.see(&bytes);
        }
    }

    /// Waits for a question, and returns it.
    pub(crate) fn question(&mut self) -> String {
        self.until("Allow this call?");
        without_modes(&self.until("or [N]o? "))
    }

    /// Types text.
    pub(crate) fn types(&mut self, text: &str) {
        self.person.write_all(text.as_bytes()).unwrap();
    }

    /// Identifier of the process of the program.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Returns `true` if the terminal shows what is typed.
    pub(crate) fn echoes(&self) -> bool {
        tcgetattr(&self.person).unwrap().local_modes.contains(LocalModes::ECHO)
    }

    /// Waits for the end of the program.
    pub(crate) fn end(mut self) -> Left {
        let mut stdout = String::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_string(&mut stdout).unwrap();
        }
        let code = self.child.wait().unwrap().code();
        while let Ok(bytes) = self.arriving.recv_timeout(MAX_WAIT) {
            self.see(&bytes);
        }
        let terminal = self.seen.clone();
        match &self.direct {
            Some(direct) => {
                let ran = Ran { line: String::new(), code, stdout, stderr: String::new() };
                let Ran { code, stdout, .. } = direct.translated(ran);
                Left { code, stdout, terminal }
            }
            None => Left { code, stdout, terminal },
        }
    }

    fn see(&mut self, bytes: &[u8]) {
        self.cut.extend_from_slice(bytes);
        // The last character may be cut; its rest arrives next.
        let whole = match std::str::from_utf8(&self.cut) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.cut.len(),
        };
        let shown: Vec<u8> = self.cut.drain(..whole).collect();
        self.seen += &String::from_utf8_lossy(&shown).replace('\r', "");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A test that panicked leaves no program behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The person's end of a new terminal, and the program's end.
#[expect(unsafe_code, reason = "the numbers and types of these requests are those of ioctl_tty(2)")]
fn pair() -> (File, File) {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(OFlags::NOCTTY.bits().cast_signed());
    let person = options.open("/dev/ptmx").unwrap();
    // SAFETY: TIOCSPTLCK takes a pointer to an int, and TIOCGPTN fills one.
    let number = unsafe {
        ioctl(&person, Setter::<{ opcode::write::<u32>(b'T', 0x31) }, u32>::new(0)).unwrap();
        ioctl(&person, Getter::<{ opcode::read::<u32>(b'T', 0x30) }, u32>::new()).unwrap()
    };
    let far = options.open(format!("/dev/pts/{number}")).unwrap();
    tcsetwinsize(&far, Winsize { ws_row: 50, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    (person, far)
}

/// Makes a terminal the controlling terminal of the program, so that Ctrl-C reaches it.
#[expect(unsafe_code, reason = "two system calls between fork and exec, which allocate nothing")]
fn at_terminal(command: &mut Command, terminal: File) {
    let attach = move || {
        rustix::process::setsid()?;
        rustix::process::ioctl_tiocsctty(&terminal)?;
        Ok(())
    };
    // SAFETY: both calls may be made between fork and exec.
    unsafe { command.pre_exec(attach) };
}
