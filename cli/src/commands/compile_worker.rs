//! `toolcrib compile-worker`: the process in which `toolcrib` compiles one program that nobody has to trust. It takes its
//! own limits first, then one job from standard input, and answers on standard output. It is for no person to call.

use std::io::{self, Read};
use std::process::{self, ExitCode};
use std::thread;

use anyhow::Context;
use toolcrib::compiler::Job;

/// Compile one program for the `toolcrib` that started this one.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The most processor time that it may take, in seconds
    #[arg(long)]
    pub(crate) seconds: u64,
    /// The most memory that it may take, in bytes
    #[arg(long)]
    pub(crate) memory: u64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    limits::take(args).context("cannot take the limits of a compiler")?;
    let job = Job::receive(io::stdin().lock()).context("no job arrives on standard input")?;
    thread::Builder::new().spawn(leave_with_the_other).context("cannot start a thread")?;
    job.perform(io::stdout().lock()).context("nobody takes the answer")?;
    Ok(ExitCode::SUCCESS)
}

/// Ends the process when the other side of standard input is gone: it stays open for as long as anybody waits.
fn leave_with_the_other() {
    let _ = io::stdin().read(&mut [0]);
    process::exit(1);
}

#[cfg(unix)]
mod limits {
    use std::io;
    use std::os::fd::{AsFd, AsRawFd};

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::{Args, memory};

    /// No core file, no file that grows, nothing more that is open; and its bounds of time and memory.
    pub(super) fn take(args: &Args) -> io::Result<()> {
        for (resource, most) in [(Resource::Core, 0), (Resource::Fsize, 0), (Resource::Nofile, first_free()?)] {
            take_one(resource, most)?;
        }
        take_time(args.seconds)?;
        memory::take(args)
    }

    /// The lowest number that an open file could get: where it is the limit, nothing is opened any more. What a compiler
    /// needs, it has: three standard streams.
    fn first_free() -> io::Result<u64> {
        let copy = io::stdin().as_fd().try_clone_to_owned()?;
        u64::try_from(copy.as_raw_fd()).map_err(io::Error::other)
    }

    /// Lowers one limit for good; one that is lower already stays.
    pub(super) fn take_one(resource: Resource, most: u64) -> io::Result<()> {
        let most = lowered(resource, most);
        Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
    }

    /// At the lower of the two bounds the system says that it was the time; at the upper one it kills without a word.
    fn take_time(seconds: u64) -> io::Result<()> {
        let most = lowered(Resource::Cpu, seconds.saturating_add(1));
        let told = most.saturating_sub(1);
        Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(told), maximum: Some(most) })?)
    }

    fn lowered(resource: Resource, most: u64) -> u64 {
        getrlimit(resource).maximum.map_or(most, |already| already.min(most))
    }
}

/// Other systems have no limits that a process takes for itself: there the time alone is bounded, by who started it.
#[cfg(not(unix))]
mod limits {
    use std::io;

    pub(super) fn take(_: &super::Args) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(target_os = "linux")]
mod memory {
    use std::io;

    use rustix::process::{Resource, Signal, set_parent_process_death_signal};

    use super::{Args, limits};

    /// Address space beside what is written to: the program itself, its libraries, and what allocators only reserve.
    const RESERVED: u64 = 2 << 30;

    /// The memory that can be written to, the address space, and that the process ends with the one that started it.
    pub(super) fn take(args: &Args) -> io::Result<()> {
        limits::take_one(Resource::Data, args.memory)?;
        limits::take_one(Resource::As, args.memory.saturating_add(RESERVED))?;
        Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
    }
}

/// Other systems know such a limit by name and do not hold it.
#[cfg(all(unix, not(target_os = "linux")))]
mod memory {
    use std::io;

    pub(super) fn take(_: &super::Args) -> io::Result<()> {
        Ok(())
    }
}
