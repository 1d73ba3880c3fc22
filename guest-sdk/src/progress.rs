//! Output for people while a call runs. The model receives none of it.

use serde::Serialize;

use crate::{Part, Result, host};

/// Shows a line of text.
pub fn text(text: impl Into<String>) {
    part(&Part::text(text));
}

/// Shows a JSON value.
///
/// # Errors
///
/// If the value cannot be written as JSON.
pub fn json(value: &(impl Serialize + ?Sized)) -> Result<()> {
    part(&Part::json(value)?);
    Ok(())
}

/// Reports progress: `done` of `total` steps, if the total is known.
pub fn measure(done: u64, total: impl Into<Option<u64>>) {
    host::progress::measure(done, total.into());
}

/// Shows a part.
pub fn part(part: &Part) {
    host::progress::show(part);
}
