//! Custom sections: those that the host reads are small and stand once, the others are not many.

use std::collections::HashSet;

use wasmparser::CustomSectionReader;

/// How the names of those begin that the host reads: the worlds that a module is for, and what a tool says of itself.
const READ: [&str; 3] = ["component-type", "toolcrib", "package-docs"];
/// The most bytes of one that is read.
const MAX_BYTES: usize = 1 << 20;
/// The most of them in one module or component.
const MAX_SECTIONS: usize = 1000;

/// The custom sections of one module or component, so far.
#[derive(Default)]
pub(super) struct Customs<'a> {
    read: HashSet<&'a str>,
    count: usize,
}

impl<'a> Customs<'a> {
    /// Takes note of one more.
    ///
    /// # Errors
    ///
    /// A text that names it and says why it is refused.
    pub(super) fn add(&mut self, section: &CustomSectionReader<'a>) -> Result<(), String> {
        self.count += 1;
        if self.count > MAX_SECTIONS {
            return Err(format!("a part of it has more than {MAX_SECTIONS} custom sections"));
        }
        let (name, bytes) = (section.name(), section.data().len());
        if !READ.iter().any(|beginning| name.starts_with(beginning)) {
            return Ok(());
        }
        let name_shown: String = name.chars().take(100).collect();
        if bytes > MAX_BYTES {
            return Err(format!(
                "its custom section `{name_shown}` has {bytes} bytes, and at most {MAX_BYTES} are read"
            ));
        }
        if !self.read.insert(name) {
            return Err(format!(
                "its custom section `{name_shown}` stands twice in one part, and only one can be meant"
            ));
        }
        Ok(())
    }
}
