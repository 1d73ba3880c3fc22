//! Printed text, as the engine writes it.

use std::borrow::Cow;

use monty_types::{MontyException, PrintWriterCallback};

/// Text that a program printed.
#[derive(Debug, Default)]
pub(crate) struct Output(pub(crate) code_guest::output::Output);

impl PrintWriterCallback for Output {
    fn stdout_write(&mut self, output: Cow<'_, str>) -> Result<(), MontyException> {
        self.0.write(&output);
        Ok(())
    }

    fn stdout_push(&mut self, end: char) -> Result<(), MontyException> {
        self.0.write(end.encode_utf8(&mut [0; 4]));
        Ok(())
    }
}
