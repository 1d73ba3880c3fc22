//! Operations on files that another program may hold open for a moment, such as a virus scanner or a search index. Windows
//! refuses them until the file is closed.

use std::io;
use std::time::{Duration, Instant};

/// Maximum time for which a refused operation is repeated.
pub const MAX_WAIT: Duration = Duration::from_secs(2);
/// First interval between two attempts; each is twice as long as the one before, up to a maximum.
const FIRST_INTERVAL: Duration = Duration::from_millis(1);
const MAX_INTERVAL: Duration = Duration::from_millis(50);

/// Access is denied, also while a removed file is still open.
const ERROR_ACCESS_DENIED: i32 = 5;
/// Another program has the file open and does not share it.
const ERROR_SHARING_VIOLATION: i32 = 32;
/// Another program has locked a part of the file.
const ERROR_LOCK_VIOLATION: i32 = 33;
/// The file is mapped into memory.
const ERROR_USER_MAPPED_FILE: i32 = 1224;

/// Returns `true` for an error of Windows that can pass once another program closes the file.
#[must_use]
pub fn is_passing(code: Option<i32>) -> bool {
    let passing = [ERROR_ACCESS_DENIED, ERROR_SHARING_VIOLATION, ERROR_LOCK_VIOLATION, ERROR_USER_MAPPED_FILE];
    code.is_some_and(|code| passing.contains(&code))
}

/// Repeats an operation for [`MAX_WAIT`] while another program holds its file open.
///
/// # Errors
///
/// The error of the last attempt. If it is one of those, the message says that another program holds the file.
pub fn patiently<T>(attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    patiently_within(MAX_WAIT, attempt)
}

fn patiently_within<T>(wait: Duration, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let (end, mut interval) = (Instant::now() + wait, FIRST_INTERVAL);
    loop {
        match attempt() {
            Err(error) if !is_passing(error.raw_os_error()) => return Err(error),
            Err(error) if Instant::now() >= end => {
                let reason = format!("another program holds the file open, or its rights refuse the change: {error}");
                return Err(io::Error::new(error.kind(), reason));
            }
            Err(_) => std::thread::sleep(interval),
            done => return done,
        }
        interval = (2 * interval).min(MAX_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_file_is_waited_for_and_no_longer_than_the_bound() {
        let mut left = 3;
        let freed = patiently_within(Duration::from_secs(60), || {
            left -= 1;
            if left > 0 { Err(io::Error::from_raw_os_error(ERROR_SHARING_VIOLATION)) } else { Ok(7) }
        });
        assert_eq!(freed.unwrap(), 7);
        let start = Instant::now();
        let mut attempts = 0;
        let held = patiently_within(Duration::from_millis(30), || -> io::Result<()> {
            attempts += 1;
            Err(io::Error::from_raw_os_error(ERROR_LOCK_VIOLATION))
        });
        assert!(held.unwrap_err().to_string().contains("another program holds the file open"));
        assert!(attempts > 1 && start.elapsed() < Duration::from_secs(20));
    }

    #[test]
    fn another_error_is_returned_at_once() {
        let mut attempts = 0;
        let failed = patiently(|| -> io::Result<()> {
            attempts += 1;
            Err(io::ErrorKind::NotFound.into())
        });
        assert_eq!((failed.unwrap_err().kind(), attempts), (io::ErrorKind::NotFound, 1));
    }
}
