//! Custom sections: those that the host reads are small and occur once in a part; the others are bounded in number.

use std::collections::HashSet;

use wasmparser::CustomSectionReader;

use crate::error::{Error, Result};
use crate::sections::MAX_CUSTOM;

/// Prefixes of the names that the host reads: a module's worlds, descriptors, docs.
const READ: [&str; 3] = ["component-type", "toolcrib", "package-docs"];
/// Maximum bytes of a section that is read.
const MAX_BYTES: usize = 1 << 20;

/// Custom sections of one module or component so far.
#[derive(Default)]
pub(super) struct CustomSections<'a> {
    read: HashSet<&'a str>,
    count: usize,
}

impl<'a> CustomSections<'a> {
    /// Adds a section.
    ///
    /// # Errors
    ///
    /// There are too many sections, or a section that the host reads is too large or repeated.
    pub(super) fn add(&mut self, section: &CustomSectionReader<'a>) -> Result<()> {
        self.count += 1;
        if self.count > MAX_CUSTOM {
            return Err(Error::Limit(format!("a part of it has more than {MAX_CUSTOM} custom sections")));
        }
        let (name, bytes) = (section.name(), section.data().len());
        if !READ.iter().any(|beginning| name.starts_with(beginning)) {
            return Ok(());
        }
        let shown = toolcrib_foundation::text::shown(name);
        if bytes > MAX_BYTES {
            return Err(Error::Limit(format!(
                "its custom section `{shown}` has {bytes} bytes, and at most {MAX_BYTES} are read"
            )));
        }
        if !self.read.insert(name) {
            return Err(Error::Invalid(format!(
                "its custom section `{shown}` occurs twice in one part, and only one is allowed"
            )));
        }
        Ok(())
    }
}
