//! What people see while a call runs. The model is told none of it.

use serde::Serialize;

use crate::{Part, Result, host};

/// Shows a line of text.
pub fn text(text: impl Into<String>) {
    part(&Part::text(text));
}

/// Shows a value.
///
/// # Errors
///
/// Where it is no JSON.
pub fn json(value: &(impl Serialize + ?Sized)) -> Result<()> {
    part(&Part::json(value)?);
    Ok(())
}

/// Says how far the call is: so many steps, of so many where their number is known.
pub fn measure(done: u64, total: impl Into<Option<u64>>) {
    host::progress::measure(done, total.into());
}

/// Shows a part.
pub fn part(part: &Part) {
    host::progress::show(part);
}
