//! Raises the limit of open files, since many sandboxes hold many folders.

/// Raises the soft limit to the hard one. If the system refuses, the limit stays.
#[cfg(unix)]
pub(crate) fn allow_many() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // Without enough files, calls fail individually with an error.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Other systems have no such limit.
#[cfg(not(unix))]
pub(crate) fn allow_many() {}
