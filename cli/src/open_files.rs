//! How many files the program may have open at once: as many as the system lets it, since many sandboxes hold many
//! folders.

/// Raises the soft limit to the hard one. Where that is refused, the limit stays as it is.
#[cfg(unix)]
pub(crate) fn allow_many() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // Calls fail one by one where files are short, and say so.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Elsewhere there is no such limit.
#[cfg(not(unix))]
pub(crate) fn allow_many() {}
