//! Log messages for people, in addition to standard error.

use crate::host;

pub use crate::bindings::tool::toolcrib::tool::log::Level;

/// Logs a detail for finding a fault.
pub fn debug(message: impl AsRef<str>) {
    host::log::log(Level::Debug, message.as_ref());
}

/// Logs information.
pub fn info(message: impl AsRef<str>) {
    host::log::log(Level::Info, message.as_ref());
}

/// Logs an unexpected condition.
pub fn warn(message: impl AsRef<str>) {
    host::log::log(Level::Warn, message.as_ref());
}

/// Logs a failure.
pub fn error(message: impl AsRef<str>) {
    host::log::log(Level::Error, message.as_ref());
}
