//! Notes for people, beside standard error.

use crate::host;

pub use crate::bindings::tool::toolcrib::tool::log::Level;

/// For whoever looks for a fault.
pub fn debug(message: impl AsRef<str>) {
    host::log::log(Level::Debug, message.as_ref());
}

/// For whoever wants to know.
pub fn info(message: impl AsRef<str>) {
    host::log::log(Level::Info, message.as_ref());
}

/// Something is not as it should be.
pub fn warn(message: impl AsRef<str>) {
    host::log::log(Level::Warn, message.as_ref());
}

/// Something has failed.
pub fn error(message: impl AsRef<str>) {
    host::log::log(Level::Error, message.as_ref());
}
