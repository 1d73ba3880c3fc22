//! Compiling in a place that can be stopped. A program of a few kilobytes can make a compiler work for ever and fill all
//! memory, and a compiler cannot be stopped from within: an embedder who has processes gives a [`Compiler`] that does the
//! work in one, with limits of its own, and kills it at its bound. This module knows the work and how it is told to
//! another process; of processes it knows nothing.
//!
//! The one side gives each [`Job`] to a process of the same program, with [`Job::send`], and gives back what that process
//! wrote, byte for byte. The other side is [`serve`], or [`Job::receive`] and [`Job::perform`].

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use toolcrib_component::Form;
use wasmtime::Engine;

use crate::source::MAX_PROGRAM_BYTES;

use super::engine;

/// How both sides begin: another version may ask for another thing, or make another thing of it.
const GREETING: &[u8] = concat!("toolcrib ", env!("CARGO_PKG_VERSION"), " compiles\n").as_bytes();
/// The most bytes of compiled code, whatever the program.
const MAX_CODE_BYTES: usize = 512 << 20;
/// The most bytes of compiled code for each byte of a program. Real ones take three to ten; a segment of data at the far
/// end of a memory makes megabytes of a few bytes.
const CODE_FOR_EACH_BYTE: usize = 64;
/// The bytes of compiled code that every program may have: one memory as the engine lays it out, whole.
const CODE_OF_ANY: usize = 16 << 20;
/// The most bytes of a text that says why there is no code.
const MAX_REASON_BYTES: usize = 4 << 10;
/// A number of bytes, as it is written.
const NUMBER: usize = size_of::<u64>();
/// What an answer is made of, before its bytes: the greeting, how it ended, how many bytes follow.
const ANSWER_HEAD: usize = GREETING.len() + 1 + NUMBER;

/// Who compiles programs in a place of their own. See the [module](self) for what it has to do.
pub trait Compiler: Send + Sync {
    /// Does a job, and gives what [`Job::perform`] wrote. It blocks for as long as that takes, and may be called on many
    /// threads at once. It must not outlast the place in which the work is done: when it returns, the work has ended.
    ///
    /// # Errors
    ///
    /// Why there is no answer.
    fn compile(&self, job: &Job<'_>) -> Result<Vec<u8>, Failure>;
}

/// Why a program was not compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It is the program's fault, and stays so: what is wrong with it, or which bound its compilation has passed.
    Program(String),
    /// It is the system's fault, which may pass: the next call tries again.
    System(String),
}

/// A program that is to be compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job<'a> {
    pub(super) program: Cow<'a, [u8]>,
    /// Whether the code is to count fuel, which another code does than one that does not.
    pub(super) counts_fuel: bool,
}

impl Job<'_> {
    /// The most bytes of an answer to it, in proportion to the program: one that is longer is not to be held.
    pub fn max_answer_bytes(&self) -> usize {
        ANSWER_HEAD + self.max_code_bytes()
    }

    fn max_code_bytes(&self) -> usize {
        self.program.len().saturating_mul(CODE_FOR_EACH_BYTE).saturating_add(CODE_OF_ANY).min(MAX_CODE_BYTES)
    }

    /// Writes the job for [`Job::receive`].
    ///
    /// # Errors
    ///
    /// What the other side's pipe answered.
    pub fn send(&self, mut to: impl Write) -> io::Result<()> {
        to.write_all(GREETING)?;
        to.write_all(&[u8::from(self.counts_fuel)])?;
        to.write_all(&(self.program.len() as u64).to_le_bytes())?;
        to.write_all(&self.program)?;
        to.flush()
    }

    /// Reads a job, and nothing that follows it.
    ///
    /// # Errors
    ///
    /// Where the other side is another version, or what it sent is no job.
    pub fn receive(mut from: impl Read) -> io::Result<Job<'static>> {
        let mut head = [0; ANSWER_HEAD];
        from.read_exact(&mut head)?;
        let (counts_fuel, size) = match head_of(&head) {
            Some((fuel @ (0 | 1), size)) if size <= MAX_PROGRAM_BYTES => (fuel == 1, size),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "no job of this version")),
        };
        let mut program = vec![0; size];
        from.read_exact(&mut program)?;
        Ok(Job { program: program.into(), counts_fuel })
    }

    /// Compiles, and writes the code, or why there is none.
    ///
    /// # Errors
    ///
    /// What the other side's pipe answered.
    pub fn perform(&self, mut to: impl Write) -> io::Result<()> {
        // A compiler that breaks is the program's doing, and is told like any other refusal.
        let made = catch_unwind(AssertUnwindSafe(|| {
            let engine = engine::for_compiling(self.counts_fuel).map_err(|error| format!("{error:#}"))?;
            compiled(&engine, &self.program).and_then(|code| self.within(code))
        }));
        let made = made.unwrap_or_else(|_| Err("the compiler broke on it".to_owned()));
        let (refused, bytes) = match &made {
            Ok(code) => (0, code.as_slice()),
            Err(reason) => (1, &reason.as_bytes()[..reason.len().min(MAX_REASON_BYTES)]),
        };
        to.write_all(GREETING)?;
        to.write_all(&[refused])?;
        to.write_all(&(bytes.len() as u64).to_le_bytes())?;
        to.write_all(bytes)?;
        to.flush()
    }

    /// The code, where it is not too large: that is the program's doing, and no other attempt makes it smaller.
    fn within(&self, code: Vec<u8>) -> Result<Vec<u8>, String> {
        let (found, most) = (code.len(), self.max_code_bytes());
        if found <= most {
            return Ok(code);
        }
        Err(format!(
            "its code has {found} bytes when it is compiled, and at most {most} are taken of a program of {} bytes",
            self.program.len()
        ))
    }
}

/// Does one job: the whole of what the other process has to do.
///
/// # Errors
///
/// Where no job arrives, or nobody takes the answer.
pub fn serve(from: impl Read, to: impl Write) -> io::Result<()> {
    Job::receive(from)?.perform(to)
}

/// The code of a program, compiled here and now.
pub(super) fn compiled(engine: &Engine, program: &[u8]) -> Result<Vec<u8>, String> {
    let code = match Form::of(program) {
        Form::Component => engine.precompile_component(program),
        Form::Module => engine.precompile_module(program),
    };
    code.map_err(|error| format!("{error:#}"))
}

/// The code in an answer.
pub(super) fn code(mut answer: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let cut = || Failure::System("the compiler's answer is not whole, or of another version".to_owned());
    let (refused, size) = answer.split_at_checked(ANSWER_HEAD).and_then(|(head, _)| head_of(head)).ok_or_else(cut)?;
    // Moved to the front where it lies: code can be large, and there is no second copy of it.
    answer.drain(..ANSWER_HEAD);
    match refused {
        _ if answer.len() != size => Err(cut()),
        0 => Ok(answer),
        1 if size <= MAX_REASON_BYTES => Err(Failure::Program(String::from_utf8_lossy(&answer).into_owned())),
        _ => Err(cut()),
    }
}

/// The byte and the number of bytes that follow the greeting, where it is ours.
fn head_of(head: &[u8]) -> Option<(u8, usize)> {
    let (byte, size) = head.strip_prefix(GREETING)?.split_first()?;
    Some((*byte, usize::try_from(u64::from_le_bytes(size.try_into().ok()?)).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a component that does nothing, in bytes: its header alone.
    const NOTHING: [u8; 8] = [0, b'a', b's', b'm', 0x0d, 0, 1, 0];

    fn answered(program: &[u8], counts_fuel: bool) -> Vec<u8> {
        let (mut sent, mut answer) = (Vec::new(), Vec::new());
        Job { program: program.into(), counts_fuel }.send(&mut sent).unwrap();
        serve(sent.as_slice(), &mut answer).unwrap();
        answer
    }

    #[test]
    fn code_comes_back_as_it_was_made_and_counts_fuel_where_that_was_asked() {
        for counts_fuel in [false, true] {
            let made = code(answered(&NOTHING, counts_fuel)).unwrap();
            let engine = engine::for_compiling(counts_fuel).unwrap();
            assert_eq!(made, engine.precompile_component(&NOTHING).unwrap());
        }
        assert_ne!(answered(&NOTHING, true), answered(&NOTHING, false));
    }

    #[test]
    fn what_is_no_program_is_refused_in_words() {
        let Err(Failure::Program(why)) = code(answered(b"\0asm\x0d\0\x01\0nonsense", false)) else { panic!() };
        assert!(!why.is_empty(), "{why}");
    }

    #[test]
    fn an_answer_may_be_as_long_as_the_program_lets_expect() {
        let most = |bytes: usize| Job { program: vec![0; bytes].into(), counts_fuel: false }.max_answer_bytes();
        assert_eq!(most(0), ANSWER_HEAD + (16 << 20));
        assert_eq!(most(1 << 20), ANSWER_HEAD + (80 << 20));
        assert_eq!(most(MAX_PROGRAM_BYTES), ANSWER_HEAD + MAX_CODE_BYTES);
        let job = Job { program: NOTHING[..].into(), counts_fuel: false };
        assert!(job.within(vec![0; job.max_code_bytes()]).is_ok());
        assert!(job.within(vec![0; job.max_code_bytes() + 1]).unwrap_err().contains("of a program of 8 bytes"));
    }

    #[test]
    fn no_part_and_no_foreign_answer_is_taken() {
        let whole = answered(&NOTHING, false);
        for cut in 0..whole.len() {
            assert!(matches!(code(whole[..cut].to_vec()), Err(Failure::System(_))), "{cut}");
        }
        let mut longer = whole.clone();
        longer.push(0);
        assert!(code(longer).is_err());
        for place in 0..ANSWER_HEAD {
            let mut other = whole.clone();
            other[place] ^= 0x40;
            assert!(code(other).is_err(), "{place}");
        }
    }

    #[test]
    fn no_part_of_a_job_is_done() {
        let mut sent = Vec::new();
        Job { program: NOTHING[..].into(), counts_fuel: false }.send(&mut sent).unwrap();
        for cut in 0..sent.len() {
            assert!(Job::receive(&sent[..cut]).is_err(), "{cut}");
        }
        let size = GREETING.len() + 1;
        sent[size..size + NUMBER].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(Job::receive(sent.as_slice()).is_err(), "a size that no program has");
    }
}
