//! Escape sequences: Unix terminals obey them, and a Windows console only after it was told to.

pub(super) use system::are_obeyed;

#[cfg(unix)]
mod system {
    /// Returns `true` if colors appear as such on the terminals of this process.
    pub(in crate::render) fn are_obeyed() -> bool {
        true
    }
}

#[cfg(windows)]
mod system {
    use std::io;
    use std::os::windows::io::{AsHandle, BorrowedHandle};
    use std::sync::OnceLock;

    use crate::windows::console;

    /// Returns `true` if colors appear as such on the terminals of this process. The consoles are told once; one that refuses
    /// would show the sequences.
    pub(in crate::render) fn are_obeyed() -> bool {
        static OBEYED: OnceLock<bool> = OnceLock::new();
        *OBEYED.get_or_init(|| obeys(io::stdout().as_handle()) && obeys(io::stderr().as_handle()))
    }

    /// Returns `false` for a console that refuses. Terminals that are pipes here obey by themselves.
    fn obeys(stream: BorrowedHandle<'_>) -> bool {
        console::mode(stream).is_err() || console::obey_sequences(stream).is_ok()
    }
}
