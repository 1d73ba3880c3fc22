//! Bounded compilation. A program of a few kilobytes can keep a compiler busy without end or fill all memory, and a compiler
//! cannot be interrupted from within. An embedder can therefore supply a [`Compiler`] that compiles in a separate process
//! with limits of its own and kills it when a limit is exceeded. This module defines the job and the protocol between the
//! two processes; starting and limiting a process is left to the embedder.
//!
//! The parent writes each [`Job`] to a child process of the same program with [`Job::send`] and returns the child's output
//! unchanged. The child calls [`serve`], or [`Job::receive`] and [`Job::perform`].
//!
//! # Example
//!
//! A compiler that runs the embedder's own program with the argument `compile`. The limits on its time and memory are left
//! out.
//!
//! ```no_run
//! use std::io::{Read, stdin, stdout};
//! use std::process::{Command, Stdio};
//! use std::sync::Arc;
//!
//! use toolcrib::compiler::{CompileError, Compiler, Job, serve};
//! use toolcrib::{Audit, Runtime};
//!
//! struct ChildProcess;
//!
//! impl ChildProcess {
//!     fn run(job: &Job<'_>) -> std::io::Result<Vec<u8>> {
//!         let mut child = Command::new(std::env::current_exe()?)
//!             .arg("compile")
//!             .stdin(Stdio::piped())
//!             .stdout(Stdio::piped())
//!             .spawn()?;
//!         let (input, output) = (child.stdin.take(), child.stdout.take());
//!         job.send(input.expect("standard input is piped"))?;
//!         let mut answer = Vec::new();
//!         let max = job.max_answer_bytes() as u64;
//!         output.expect("standard output is piped").take(max).read_to_end(&mut answer)?;
//!         child.wait()?;
//!         Ok(answer)
//!     }
//! }
//!
//! impl Compiler for ChildProcess {
//!     fn compile(&self, job: &Job<'_>) -> Result<Vec<u8>, CompileError> {
//!         ChildProcess::run(job).map_err(|error| CompileError::system("the compiler process failed").caused_by(error))
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! if std::env::args().nth(1).as_deref() == Some("compile") {
//!     return Ok(serve(stdin().lock(), stdout().lock())?);
//! }
//! let runtime = Runtime::builder(Audit::off()).source("tools.json").compiler(Arc::new(ChildProcess)).build()?;
//! # Ok(())
//! # }
//! ```

use std::borrow::Cow;
use std::error::Error;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use toolcrib_component::Form;
use wasmtime::Engine;

use crate::source::MAX_PROGRAM_BYTES;

use super::engine::{self, CodeSettings};

/// First bytes of a job or an answer. They contain the version, because another version may have another protocol.
const GREETING: &[u8] = concat!("toolcrib ", env!("CARGO_PKG_VERSION"), " compiles\n").as_bytes();
/// Maximum bytes of compiled code for any program.
const MAX_CODE_BYTES: usize = 512 << 20;
/// Maximum bytes of compiled code per program byte. Real programs need three to ten; a data segment at the end of a
/// memory turns a few bytes into megabytes.
const CODE_BYTES_PER_PROGRAM_BYTE: usize = 64;
/// Bytes of compiled code that every program may have: one whole memory in the engine's layout.
const BASE_CODE_BYTES: usize = 16 << 20;
/// Maximum length of an error text in bytes.
const MAX_REASON_BYTES: usize = 4 << 10;
/// Length of an encoded byte count.
const LENGTH_LEN: usize = size_of::<u64>();
/// Length of an answer's head: the greeting, the status, and the number of bytes that follow.
const ANSWER_HEAD_LEN: usize = GREETING.len() + 1 + LENGTH_LEN;

/// Compiler that runs in a place of its own. The [module](self) describes its task.
pub trait Compiler: Send + Sync {
    /// Performs a job and returns the bytes that [`Job::perform`] wrote. This method blocks, is called on several threads at
    /// once, and returns only after the process that compiled has ended.
    ///
    /// # Errors
    ///
    /// [`CompileError::Program`] if the program exceeded a limit, [`CompileError::System`] if there is no answer for another
    /// reason.
    fn compile(&self, job: &Job<'_>) -> Result<Vec<u8>, CompileError>;
}

/// Reason why a program was not compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The program is at fault: it is invalid, or its compilation exceeded a limit. It is not compiled again.
    #[error("{0}")]
    Program(String),
    /// The system is at fault. The next call compiles the program again.
    #[error("{message}")]
    System {
        /// Description of the failure, without its cause's text.
        message: String,
        /// Cause of the failure, if known.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
}

impl CompileError {
    /// Creates an error of the system without a cause.
    pub fn system(message: impl Into<String>) -> Self {
        Self::System { message: message.into(), source: None }
    }

    /// Adds a cause to an error of the system. An error of a program has no cause and stays as it is.
    #[must_use]
    pub fn caused_by(self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        match self {
            Self::System { message, .. } => Self::System { message, source: Some(cause.into()) },
            program => program,
        }
    }

    /// Returns the text of the error and its cause.
    pub(crate) fn text(&self) -> String {
        match self.source() {
            Some(cause) => format!("{self}: {cause}"),
            None => self.to_string(),
        }
    }
}

/// Program to compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job<'a> {
    pub(super) program: Cow<'a, [u8]>,
    pub(super) settings: CodeSettings,
}

/// Bits of the byte with a job's settings.
const COUNTS_FUEL: u8 = 1;
const CHECKS_ACCESSES: u8 = 2;

impl CodeSettings {
    fn to_byte(self) -> u8 {
        (COUNTS_FUEL * u8::from(self.counts_fuel)) | (CHECKS_ACCESSES * u8::from(self.checks_accesses))
    }

    /// Returns the settings in a byte; `None` if it has other bits.
    fn from_byte(byte: u8) -> Option<Self> {
        let settings = Self { counts_fuel: byte & COUNTS_FUEL != 0, checks_accesses: byte & CHECKS_ACCESSES != 0 };
        (settings.to_byte() == byte).then_some(settings)
    }
}

impl Job<'_> {
    /// Returns the maximum length of an answer in bytes, in proportion to the program. A longer answer can be discarded
    /// unread.
    pub fn max_answer_bytes(&self) -> usize {
        ANSWER_HEAD_LEN + self.max_code_bytes()
    }

    fn max_code_bytes(&self) -> usize {
        let bytes = self.program.len().saturating_mul(CODE_BYTES_PER_PROGRAM_BYTE);
        bytes.saturating_add(BASE_CODE_BYTES).min(MAX_CODE_BYTES)
    }

    /// Writes the job for [`Job::receive`].
    ///
    /// # Errors
    ///
    /// The error of the writer.
    pub fn send(&self, mut to: impl Write) -> io::Result<()> {
        to.write_all(GREETING)?;
        to.write_all(&[self.settings.to_byte()])?;
        to.write_all(&(self.program.len() as u64).to_le_bytes())?;
        to.write_all(&self.program)?;
        to.flush()
    }

    /// Reads a job, and no byte after it.
    ///
    /// # Errors
    ///
    /// The error of the reader; [`io::ErrorKind::InvalidData`] if the sender has another version or sent no job.
    pub fn receive(mut from: impl Read) -> io::Result<Job<'static>> {
        let mut head = [0; ANSWER_HEAD_LEN];
        from.read_exact(&mut head)?;
        let job = parse_head(&head).and_then(|(byte, size)| Some((CodeSettings::from_byte(byte)?, size)));
        let Some((settings, size)) = job.filter(|(_, size)| *size <= MAX_PROGRAM_BYTES) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a compile job of this version"));
        };
        let mut program = vec![0; size];
        from.read_exact(&mut program)?;
        Ok(Job { program: program.into(), settings })
    }

    /// Compiles the program, and writes its code, or the reason for a failure.
    ///
    /// # Errors
    ///
    /// The error of the writer.
    pub fn perform(&self, mut to: impl Write) -> io::Result<()> {
        // A panic of the compiler is caused by the program, and reported as its error.
        let code = catch_unwind(AssertUnwindSafe(|| {
            let engine = engine::for_compiling(self.settings).map_err(|error| format!("{error:#}"))?;
            compiled(&engine, &self.program).and_then(|code| self.check_size(code))
        }));
        let code = code.unwrap_or_else(|_| Err("the compiler crashed on it".to_owned()));
        let (status, bytes) = match &code {
            Ok(code) => (0, code.as_slice()),
            Err(reason) => (1, &reason.as_bytes()[..reason.len().min(MAX_REASON_BYTES)]),
        };
        to.write_all(GREETING)?;
        to.write_all(&[status])?;
        to.write_all(&(bytes.len() as u64).to_le_bytes())?;
        to.write_all(bytes)?;
        to.flush()
    }

    /// Refuses code that is too large. Another attempt would not make it smaller.
    fn check_size(&self, code: Vec<u8>) -> Result<Vec<u8>, String> {
        let (found, max) = (code.len(), self.max_code_bytes());
        if found <= max {
            return Ok(code);
        }
        Err(format!(
            "its compiled code has {found} bytes, more than the {max} allowed for a program of {} bytes",
            self.program.len()
        ))
    }
}

/// Receives and performs one job: the complete task of a compiler process.
///
/// # Errors
///
/// The error of the reader or the writer; [`io::ErrorKind::InvalidData`] if not a compile job of this version arrives.
pub fn serve(from: impl Read, to: impl Write) -> io::Result<()> {
    Job::receive(from)?.perform(to)
}

/// Compiles a program in this process.
pub(super) fn compiled(engine: &Engine, program: &[u8]) -> Result<Vec<u8>, String> {
    let code = match Form::of(program) {
        Form::Component => engine.precompile_component(program),
        Form::Module => engine.precompile_module(program),
    };
    code.map_err(|error| format!("{error:#}"))
}

/// Returns the code in an answer.
pub(super) fn code(mut answer: Vec<u8>) -> Result<Vec<u8>, CompileError> {
    let invalid = || CompileError::system("the compiler's answer is incomplete or of another version");
    let head = answer.split_at_checked(ANSWER_HEAD_LEN).and_then(|(head, _)| parse_head(head));
    let (status, size) = head.ok_or_else(invalid)?;
    // Moved in place: code can be large, and a second copy of it would double the memory.
    answer.drain(..ANSWER_HEAD_LEN);
    match status {
        _ if answer.len() != size => Err(invalid()),
        0 => Ok(answer),
        1 if size <= MAX_REASON_BYTES => Err(CompileError::Program(String::from_utf8_lossy(&answer).into_owned())),
        _ => Err(invalid()),
    }
}

/// Returns the byte after the greeting and the number of bytes that follow; `None` if the greeting is another.
fn parse_head(head: &[u8]) -> Option<(u8, usize)> {
    let (byte, size) = head.strip_prefix(GREETING)?.split_first()?;
    Some((*byte, usize::try_from(u64::from_le_bytes(size.try_into().ok()?)).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a component that does nothing, in bytes: its header alone.
    const NOTHING: [u8; 8] = [0, b'a', b's', b'm', 0x0d, 0, 1, 0];

    const PLAIN: CodeSettings = CodeSettings { counts_fuel: false, checks_accesses: false };

    fn answered(program: &[u8], settings: CodeSettings) -> Vec<u8> {
        let (mut sent, mut answer) = (Vec::new(), Vec::new());
        Job { program: program.into(), settings }.send(&mut sent).unwrap();
        serve(sent.as_slice(), &mut answer).unwrap();
        answer
    }

    #[test]
    fn code_comes_back_as_it_was_made_with_the_settings_of_the_job() {
        let mut answers = Vec::new();
        for byte in 0..4 {
            let settings = CodeSettings::from_byte(byte).unwrap();
            let answer = answered(&NOTHING, settings);
            let made = code(answer.clone()).unwrap();
            assert_eq!(made, engine::for_compiling(settings).unwrap().precompile_component(&NOTHING).unwrap());
            assert!(!answers.contains(&answer), "each setting changes the code");
            answers.push(answer);
        }
        assert!((4..=255).all(|byte| CodeSettings::from_byte(byte).is_none()), "bits of another version are refused");
    }

    #[test]
    fn what_is_no_program_is_refused_in_words() {
        let Err(CompileError::Program(reason)) = code(answered(b"\0asm\x0d\0\x01\0nonsense", PLAIN)) else { panic!() };
        assert!(!reason.is_empty(), "{reason}");
    }

    #[test]
    fn an_answer_may_be_as_long_as_the_program_lets_expect() {
        let max = |bytes: usize| Job { program: vec![0; bytes].into(), settings: PLAIN }.max_answer_bytes();
        assert_eq!(max(0), ANSWER_HEAD_LEN + (16 << 20));
        assert_eq!(max(1 << 20), ANSWER_HEAD_LEN + (80 << 20));
        assert_eq!(max(MAX_PROGRAM_BYTES), ANSWER_HEAD_LEN + MAX_CODE_BYTES);
        let job = Job { program: NOTHING[..].into(), settings: PLAIN };
        assert!(job.check_size(vec![0; job.max_code_bytes()]).is_ok());
        assert!(job.check_size(vec![0; job.max_code_bytes() + 1]).unwrap_err().contains("for a program of 8 bytes"));
    }

    #[test]
    fn no_part_and_no_foreign_answer_is_taken() {
        let whole = answered(&NOTHING, PLAIN);
        for cut in 0..whole.len() {
            assert!(matches!(code(whole[..cut].to_vec()), Err(CompileError::System { .. })), "{cut}");
        }
        let mut longer = whole.clone();
        longer.push(0);
        assert!(code(longer).is_err());
        for place in 0..ANSWER_HEAD_LEN {
            let mut other = whole.clone();
            other[place] ^= 0x40;
            assert!(code(other).is_err(), "{place}");
        }
    }

    #[test]
    fn no_part_of_a_job_is_done() {
        let mut sent = Vec::new();
        Job { program: NOTHING[..].into(), settings: PLAIN }.send(&mut sent).unwrap();
        for cut in 0..sent.len() {
            assert!(Job::receive(&sent[..cut]).is_err(), "{cut}");
        }
        let size = GREETING.len() + 1;
        sent[size..size + LENGTH_LEN].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(Job::receive(sent.as_slice()).is_err(), "a size that no program has");
    }
}
