//! `toolcrib compile-worker`: the process in which `toolcrib` compiles one untrusted program. It sets its own limits, reads
//! one job from standard input and writes the result to standard output. The command is internal.

use std::io::{self, Read};
use std::process::{self, ExitCode};
use std::thread;

use anyhow::Context;
use toolcrib::compiler::Job;

/// Compile one program for the `toolcrib` that started this one.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Maximum processor time in seconds
    #[arg(long)]
    pub(crate) seconds: u64,
    /// Maximum memory in bytes
    #[arg(long)]
    pub(crate) memory: u64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    limits::take(args).context("cannot set the compiler limits")?;
    let job = Job::receive(io::stdin().lock()).context("cannot read a job from standard input")?;
    thread::Builder::new().spawn(exit_with_parent).context("cannot start a thread")?;
    job.perform(io::stdout().lock()).context("cannot write the result")?;
    Ok(ExitCode::SUCCESS)
}

/// Exits the process when standard input is closed. The parent keeps it open while it awaits the result.
fn exit_with_parent() {
    let _ = io::stdin().read(&mut [0]);
    process::exit(1);
}

#[cfg(unix)]
mod limits {
    use std::io;
    use std::os::fd::{AsFd, AsRawFd};

    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    use super::{Args, memory};

    /// Disables core files, growing files and new open files, and sets the limits of time and memory.
    pub(super) fn take(args: &Args) -> io::Result<()> {
        for (resource, most) in [(Resource::Core, 0), (Resource::Fsize, 0), (Resource::Nofile, first_free()?)] {
            take_one(resource, most)?;
        }
        take_time(args.seconds)?;
        memory::take(args)
    }

    /// Lowest free file descriptor. As the limit of open files it prevents opening more: the compiler needs only its
    /// three standard streams.
    fn first_free() -> io::Result<u64> {
        let copy = io::stdin().as_fd().try_clone_to_owned()?;
        u64::try_from(copy.as_raw_fd()).map_err(io::Error::other)
    }

    /// Lowers one limit permanently; a lower limit stays.
    pub(super) fn take_one(resource: Resource, most: u64) -> io::Result<()> {
        let most = lowered(resource, most);
        Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
    }

    /// Sets the soft limit, which signals that the time is used up, below the hard limit, which kills silently.
    fn take_time(seconds: u64) -> io::Result<()> {
        let most = lowered(Resource::Cpu, seconds.saturating_add(1));
        let soft = most.saturating_sub(1);
        Ok(setrlimit(Resource::Cpu, Rlimit { current: Some(soft), maximum: Some(most) })?)
    }

    fn lowered(resource: Resource, most: u64) -> u64 {
        getrlimit(resource).maximum.map_or(most, |already| already.min(most))
    }
}

/// The parent has put this process into a job object with the limits of time, memory and processes.
#[cfg(windows)]
mod limits {
    use std::io;

    use toolcrib_base::windows::integrity;

    /// Gives up the right to change files, settings and other processes.
    pub(super) fn take(_: &super::Args) -> io::Result<()> {
        integrity::lower()
    }
}

#[cfg(target_os = "linux")]
mod memory {
    use std::io;

    use rustix::process::{Resource, Signal, set_parent_process_death_signal};

    use super::{Args, limits};

    /// Address space beyond writable memory: the program, its libraries, and allocator reservations.
    const RESERVED: u64 = 2 << 30;

    /// Limits writable memory and address space, and makes the process end with its parent.
    pub(super) fn take(args: &Args) -> io::Result<()> {
        limits::take_one(Resource::Data, args.memory)?;
        limits::take_one(Resource::As, args.memory.saturating_add(RESERVED))?;
        Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
    }
}

/// Other systems define this limit but do not enforce it.
#[cfg(all(unix, not(target_os = "linux")))]
mod memory {
    use std::io;

    pub(super) fn take(_: &super::Args) -> io::Result<()> {
        Ok(())
    }
}
