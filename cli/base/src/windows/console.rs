//! The console: modes of its input and output, lines in UTF-16, and input that is thrown away.

#![expect(unsafe_code, reason = "consoles have no safe interface in the standard library")]

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle};
use std::ptr::null;
use std::sync::{Mutex, PoisonError};

use windows_sys::Win32::System::Console::{
    ENABLE_ECHO_INPUT, ENABLE_LINE_INPUT, ENABLE_PROCESSED_INPUT, ENABLE_VIRTUAL_TERMINAL_PROCESSING,
    FlushConsoleInputBuffer, GetConsoleMode, INPUT_RECORD, INPUT_RECORD_0, KEY_EVENT, KEY_EVENT_RECORD,
    KEY_EVENT_RECORD_0, ReadConsoleW, SetConsoleMode, WriteConsoleInputW,
};

/// Name that opens this process's console input, whatever standard input is.
const CONSOLE_INPUT: &str = "CONIN$";
/// Maximum number of UTF-16 units per read.
const MAX_UNITS: usize = 4096;
/// Character that ends the input if a line begins with it: Ctrl-Z.
const END_OF_INPUT: u16 = 0x1a;
/// The escape key, which clears the line that a person is typing.
const ESCAPE: u16 = 0x1b;

/// Mode of a console's input or output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode(u32);

impl Mode {
    /// Mode of an input in which a whole line is read and its characters are not shown.
    pub fn without_echo(self) -> Self {
        Self(self.0 & !ENABLE_ECHO_INPUT | ENABLE_LINE_INPUT | ENABLE_PROCESSED_INPUT)
    }

    /// Returns `true` if typed characters are shown.
    pub fn has_echo(self) -> bool {
        self.0 & ENABLE_ECHO_INPUT != 0
    }
}

/// Returns the mode of a console's input or output.
///
/// # Errors
///
/// The handle is none of a console: a file, a pipe, or a terminal of another system's making.
pub fn mode(console: BorrowedHandle<'_>) -> io::Result<Mode> {
    let mut mode = 0;
    // SAFETY: The handle is valid, or refused, and the pointer is written once.
    let done = unsafe { GetConsoleMode(console.as_raw_handle(), &raw mut mode) };
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(Mode(mode)) }
}

/// Sets the mode of a console's input or output.
pub fn set_mode(console: BorrowedHandle<'_>, mode: Mode) -> io::Result<()> {
    // SAFETY: The handle is valid, or refused.
    let done = unsafe { SetConsoleMode(console.as_raw_handle(), mode.0) };
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets a console's output obey escape sequences.
pub fn obey_sequences(console: BorrowedHandle<'_>) -> io::Result<()> {
    let mode = mode(console)?;
    match mode.0 & ENABLE_VIRTUAL_TERMINAL_PROCESSING {
        0 => set_mode(console, Mode(mode.0 | ENABLE_VIRTUAL_TERMINAL_PROCESSING)),
        _ => Ok(()),
    }
}

/// Throws away everything that was typed and not read.
pub fn discard_input(console: BorrowedHandle<'_>) -> io::Result<()> {
    // SAFETY: The handle is valid, or refused.
    let done = unsafe { FlushConsoleInputBuffer(console.as_raw_handle()) };
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Clears the line that a pending read has received in part, as the escape key does.
pub fn clear_line(console: BorrowedHandle<'_>) -> io::Result<()> {
    let key = |is_down: bool| KEY_EVENT_RECORD {
        bKeyDown: is_down.into(),
        wRepeatCount: 1,
        wVirtualKeyCode: ESCAPE,
        wVirtualScanCode: 1,
        uChar: KEY_EVENT_RECORD_0 { UnicodeChar: ESCAPE },
        dwControlKeyState: 0,
    };
    let event =
        |is_down| INPUT_RECORD { EventType: KEY_EVENT as u16, Event: INPUT_RECORD_0 { KeyEvent: key(is_down) } };
    let (events, mut written) = ([event(true), event(false)], 0);
    // SAFETY: The handle is valid, or refused; the pointer refers to as many events as stated, which are only read.
    let done =
        unsafe { WriteConsoleInputW(console.as_raw_handle(), events.as_ptr(), events.len() as u32, &raw mut written) };
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Console input of this process, as UTF-8.
#[derive(Debug)]
pub struct ConsoleInput {
    console: File,
    /// Bytes of the line that is being read.
    rest: Mutex<VecDeque<u8>>,
}

impl ConsoleInput {
    /// Opens it; fails without a console.
    pub fn open() -> io::Result<Self> {
        // Modes are changed and input is thrown away only with the right to write.
        let console = OpenOptions::new().read(true).write(true).open(CONSOLE_INPUT)?;
        mode(console.as_handle())?;
        Ok(Self { console, rest: Mutex::default() })
    }

    /// Reads UTF-16 units from one line; none at the end of input.
    fn units(&self) -> io::Result<Vec<u16>> {
        let (mut units, mut count) = (vec![0_u16; MAX_UNITS], 0);
        let handle = self.console.as_raw_handle();
        // SAFETY: The handle is valid, and the buffer has the stated number of units.
        let done = unsafe { ReadConsoleW(handle, units.as_mut_ptr().cast(), MAX_UNITS as u32, &raw mut count, null()) };
        if done == 0 {
            return Err(io::Error::last_os_error());
        }
        if count == 0 {
            // Ctrl-C ends the read.
            return Err(ErrorKind::Interrupted.into());
        }
        units.truncate(count as usize);
        Ok(if units.first() == Some(&END_OF_INPUT) { Vec::new() } else { units })
    }
}

impl AsHandle for ConsoleInput {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.console.as_handle()
    }
}

impl Read for &ConsoleInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        if rest.is_empty() {
            rest.extend(String::from_utf16_lossy(&self.units()?).into_bytes());
        }
        rest.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_without_echo_reads_lines_and_shows_nothing() {
        let raw = Mode(ENABLE_ECHO_INPUT | 0x80);
        assert!(raw.has_echo());
        assert_eq!(raw.without_echo(), Mode(ENABLE_LINE_INPUT | ENABLE_PROCESSED_INPUT | 0x80));
        assert!(!raw.without_echo().has_echo());
    }

    #[test]
    fn a_file_is_no_console() {
        let file = tempfile::tempfile().expect("a file");
        assert!(mode(file.as_handle()).is_err());
        assert!(obey_sequences(file.as_handle()).is_err());
        assert!(discard_input(file.as_handle()).is_err());
        assert!(clear_line(file.as_handle()).is_err());
    }
}
