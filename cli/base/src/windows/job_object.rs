//! Job objects: processes that end together, within bounds that they cannot leave.

#![expect(unsafe_code, reason = "job objects have no safe interface in the standard library")]

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle};
use std::ptr::null;

/// Creation flag: the process waits until [`JobObject::admit`] lets it run, so that it runs nothing outside the job.
pub const SUSPENDED: u32 = 0x4;
/// Exit code of processes that [`JobObject::end`] ends, the same as after `Child::kill`.
const ENDED: u32 = 1;

/// Numbers for the kinds of information.
const BASIC_UI_RESTRICTIONS: i32 = 4;
const EXTENDED_LIMIT_INFORMATION: i32 = 9;

/// Flags that state which limits hold.
const LIMIT_PROCESS_TIME: u32 = 0x2;
const LIMIT_ACTIVE_PROCESS: u32 = 0x8;
const LIMIT_PROCESS_MEMORY: u32 = 0x100;
const DIE_ON_UNHANDLED_EXCEPTION: u32 = 0x400;
const KILL_ON_JOB_CLOSE: u32 = 0x2000;

/// All restrictions: handles of other processes' windows, clipboard, settings of system and display, global atoms, desktops, and
/// the end of the session.
const ALL_UI_RESTRICTIONS: u32 = 0xff;

/// Number of 100-nanosecond intervals, the unit of times, per second.
const UNITS_PER_SECOND: u64 = 10_000_000;

/// `JOBOBJECT_BASIC_LIMIT_INFORMATION`.
#[repr(C)]
#[derive(Default)]
struct BasicLimits {
    per_process_user_time: i64,
    per_job_user_time: i64,
    flags: u32,
    minimum_working_set: usize,
    maximum_working_set: usize,
    active_processes: u32,
    affinity: usize,
    priority_class: u32,
    scheduling_class: u32,
}

/// `JOBOBJECT_EXTENDED_LIMIT_INFORMATION`.
#[repr(C)]
#[derive(Default)]
struct ExtendedLimits {
    basic: BasicLimits,
    io: [u64; 6],
    process_memory: usize,
    job_memory: usize,
    peak_process_memory: usize,
    peak_job_memory: usize,
}

// The sizes that Windows documents and compares.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<BasicLimits>() == 64 && size_of::<ExtendedLimits>() == 144);

#[link(name = "kernel32")]
unsafe extern "system" {
    fn CreateJobObjectW(attributes: *const c_void, name: *const u16) -> RawHandle;
    fn SetInformationJobObject(job: RawHandle, kind: i32, information: *const c_void, length: u32) -> i32;
    fn AssignProcessToJobObject(job: RawHandle, process: RawHandle) -> i32;
    fn TerminateJobObject(job: RawHandle, code: u32) -> i32;
}

#[link(name = "ntdll")]
unsafe extern "system" {
    fn NtResumeProcess(process: RawHandle) -> i32;
}

/// Job object. Its processes, and all that they start, are killed when it is dropped or when this process ends.
#[derive(Debug)]
pub struct JobObject(OwnedHandle);

impl JobObject {
    /// Creates a job without other bounds.
    pub fn new() -> io::Result<Self> {
        let job = Self::create()?;
        let basic = BasicLimits { flags: KILL_ON_JOB_CLOSE, ..BasicLimits::default() };
        job.set(EXTENDED_LIMIT_INFORMATION, &ExtendedLimits { basic, ..ExtendedLimits::default() })?;
        Ok(job)
    }

    /// Creates a job for one process, which can start no other, with this much committed memory and this much processor time in
    /// user mode. A crash ends it without a window, and it reaches neither clipboard nor windows of other processes.
    pub fn for_one_process(memory: usize, processor_seconds: u64) -> io::Result<Self> {
        let job = Self::create()?;
        let time = processor_seconds.saturating_mul(UNITS_PER_SECOND);
        let limits = LIMIT_PROCESS_TIME | LIMIT_ACTIVE_PROCESS | LIMIT_PROCESS_MEMORY;
        let basic = BasicLimits {
            per_process_user_time: i64::try_from(time).unwrap_or(i64::MAX),
            flags: limits | DIE_ON_UNHANDLED_EXCEPTION | KILL_ON_JOB_CLOSE,
            active_processes: 1,
            ..BasicLimits::default()
        };
        let limits = ExtendedLimits { basic, process_memory: memory, ..ExtendedLimits::default() };
        job.set(EXTENDED_LIMIT_INFORMATION, &limits)?;
        job.set(BASIC_UI_RESTRICTIONS, &ALL_UI_RESTRICTIONS)?;
        Ok(job)
    }

    fn create() -> io::Result<Self> {
        // SAFETY: Both arguments may be null: no attributes, so that no process inherits the handle, and no name.
        let job = unsafe { CreateJobObjectW(null(), null()) };
        if job.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: The handle is valid, and nothing else closes it.
        Ok(Self(unsafe { OwnedHandle::from_raw_handle(job) }))
    }

    fn set<T>(&self, kind: i32, information: &T) -> io::Result<()> {
        let length = size_of::<T>() as u32;
        // SAFETY: The handle is valid, and the pointer refers to `length` bytes, which are read only during the call.
        let done =
            unsafe { SetInformationJobObject(self.0.as_raw_handle(), kind, (&raw const *information).cast(), length) };
        if done == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Puts a process into the job. It must not run anything yet that the job is to bound.
    pub fn assign(&self, process: &impl AsRawHandle) -> io::Result<()> {
        // SAFETY: Both handles are valid during the call.
        let done = unsafe { AssignProcessToJobObject(self.0.as_raw_handle(), process.as_raw_handle()) };
        if done == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Puts a process that was created with [`SUSPENDED`] into the job, and lets it run.
    pub fn admit(&self, process: &impl AsRawHandle) -> io::Result<()> {
        self.assign(process)?;
        // SAFETY: The handle is valid during the call, with all rights of a creator.
        let status = unsafe { NtResumeProcess(process.as_raw_handle()) };
        if status < 0 { Err(io::Error::other("a process cannot be resumed")) } else { Ok(()) }
    }

    /// Kills all processes of the job.
    pub fn end(&self) {
        // It fails only without processes. SAFETY: The handle is valid.
        let _ = unsafe { TerminateJobObject(self.0.as_raw_handle(), ENDED) };
    }
}

/// Handle of a process, as `tokio` gives it.
#[derive(Debug, Clone, Copy)]
pub struct ProcessHandle(pub RawHandle);

impl AsRawHandle for ProcessHandle {
    fn as_raw_handle(&self) -> RawHandle {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::windows::process::CommandExt;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;

    /// Time after which a test reports a hang.
    const BOUND: Duration = Duration::from_secs(30);

    /// Starts a process whose child waits for a key, both with one standard output.
    fn family() -> Child {
        let mut command = Command::new("cmd");
        command.args(["/c", "cmd /c pause"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.creation_flags(SUSPENDED).spawn().expect("a process")
    }

    /// Reads until every process of the family has ended, because each holds the standard output.
    fn until_ended(child: &mut Child) {
        let began = Instant::now();
        let mut output = child.stdout.take().expect("a pipe");
        let mut text = Vec::new();
        output.read_to_end(&mut text).expect("the output");
        child.wait().expect("a status");
        assert!(began.elapsed() < BOUND, "{:?}", began.elapsed());
    }

    #[test]
    fn a_process_ends_with_its_children_at_the_end_of_the_job() {
        for is_dropped in [false, true] {
            let (job, mut child) = (JobObject::new().expect("a job"), family());
            job.admit(&child).expect("a member");
            let mut first = [0];
            child
                .stdout
                .as_mut()
                .expect("a pipe")
                .read_exact(&mut first)
                .expect("the child of the child asks for a key");
            if is_dropped {
                drop(job);
            } else {
                job.end();
            }
            until_ended(&mut child);
        }
    }

    #[test]
    fn a_suspended_process_runs_nothing_before_it_is_admitted() {
        let mut command = Command::new("cmd");
        command.args(["/c", "exit 7"]).creation_flags(SUSPENDED);
        let mut child = command.spawn().expect("a process");
        std::thread::sleep(Duration::from_millis(500));
        assert!(child.try_wait().expect("a state").is_none());
        let job = JobObject::for_one_process(1 << 30, 60).expect("a job with bounds");
        job.admit(&child).expect("a member");
        assert_eq!(child.wait().expect("a status").code(), Some(7));
    }
}
