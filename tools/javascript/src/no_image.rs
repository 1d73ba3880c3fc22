//! Sessions of tests on other targets: there are none.

/// Refuses a session.
pub(crate) fn save() -> Result<Vec<u8>, String> {
    Err("sessions need WebAssembly".to_owned())
}

/// Refuses a session.
pub(crate) fn restore(_: Vec<u8>) -> Result<(), String> {
    save().map(drop)
}
