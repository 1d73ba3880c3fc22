//! The walker over the sections of a program. It reads section headers one after another from a file or from memory, seeks
//! over bodies that are not requested, and bounds the number of sections and the bytes of the bodies that are read.

use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;

use wasmparser::{BinaryReader, Parser, Payload};

use crate::error::{Error, Result};
use crate::form::Form;

/// Maximum sections of a program.
pub(crate) const MAX_SECTIONS: usize = 100_000;
/// Maximum custom sections of a program or a part, and entries that are read of one section.
pub(crate) const MAX_CUSTOM: usize = 1000;
/// Maximum nesting depth of modules and components.
pub(crate) const MAX_DEPTH: usize = 100;
/// Maximum bytes of section bodies that are read from a program.
const MAX_BYTES: u64 = 4 << 20;
/// Length of the magic number and the version.
pub(crate) const HEADER: usize = 8;

/// Section numbers of the binary format. Numbers of core modules carry `CORE` in their names.
pub(crate) mod id {
    pub(crate) const CUSTOM: u8 = 0;
    pub(crate) const CORE_TYPE: u8 = 1;
    pub(crate) const MODULE: u8 = 1;
    pub(crate) const CORE_IMPORT: u8 = 2;
    pub(crate) const COMPONENT: u8 = 4;
    pub(crate) const CORE_TABLE: u8 = 4;
    pub(crate) const CORE_MEMORY: u8 = 5;
    pub(crate) const ALIAS: u8 = 6;
    pub(crate) const CORE_EXPORT: u8 = 7;
    pub(crate) const TYPE: u8 = 7;
    pub(crate) const CANONICAL: u8 = 8;
    pub(crate) const IMPORT: u8 = 10;
    pub(crate) const EXPORT: u8 = 11;
    /// The highest number of a section in a module or a component.
    pub(crate) const LAST: u8 = 13;
}

/// One section.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    pub(crate) id: u8,
    /// Offset of the section number.
    pub(crate) start: u64,
    /// Offsets of the body.
    pub(crate) body: Range<u64>,
}

impl Section {
    /// Returns the whole section, with its number and size, as a range of a program in memory.
    pub(crate) fn whole(&self) -> Range<usize> {
        self.start as usize..self.body.end as usize
    }

    /// Returns the body as a range of a program in memory.
    pub(crate) fn range(&self) -> Range<usize> {
        self.body.start as usize..self.body.end as usize
    }
}

/// The sections of one module or component.
pub(crate) struct Sections<R> {
    source: BufReader<R>,
    form: Form,
    /// Offset in the source.
    at: u64,
    /// Offset of the next section.
    next: u64,
    end: u64,
    max_sections: usize,
    max_bytes: u64,
}

impl<'a> Sections<Cursor<&'a [u8]>> {
    /// Opens a program in memory.
    ///
    /// # Errors
    ///
    /// The header is incomplete or unknown.
    pub(crate) fn of(program: &'a [u8]) -> Result<Self> {
        Form::find(program).ok_or_else(|| Error::not_webassembly(program))?;
        Self::open(Cursor::new(program), program.len() as u64)
    }
}

impl<R: Read + Seek> Sections<R> {
    /// Opens a program of `size` bytes.
    ///
    /// # Errors
    ///
    /// The header is incomplete or unknown.
    pub(crate) fn open(source: R, size: u64) -> Result<Self> {
        let mut source = BufReader::new(source);
        let mut header = [0; HEADER];
        source.read_exact(&mut header).map_err(|_| Error::Truncated { at: 0 })?;
        let form = Form::find(&header).ok_or(Error::UnknownVersion)?;
        let at = HEADER as u64;
        if size < at {
            return Err(Error::Truncated { at: 0 });
        }
        Ok(Self { source, form, at, next: at, end: size, max_sections: MAX_SECTIONS, max_bytes: MAX_BYTES })
    }

    /// Returns the form of the program.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// Goes back to the first section and restores the bounds.
    pub(crate) fn rewind(&mut self) -> Result<()> {
        let at = HEADER as u64;
        self.source.seek(SeekFrom::Start(at)).map_err(|_| unreadable(at))?;
        (self.at, self.next) = (at, at);
        (self.max_sections, self.max_bytes) = (MAX_SECTIONS, MAX_BYTES);
        Ok(())
    }

    /// Reads the header of the next section; `None` after the last one.
    ///
    /// # Errors
    ///
    /// The section is incomplete, has an unknown number, or is one too many.
    pub(crate) fn next(&mut self) -> Result<Option<Section>> {
        let start = self.next;
        if start >= self.end {
            return Ok(None);
        }
        self.max_sections = self.max_sections.checked_sub(1).ok_or_else(too_many)?;
        self.go_to(start)?;
        let id = self.byte(start)?;
        if id > id::LAST {
            return Err(Error::Invalid(format!("the section at byte {start} has the unknown number {id}")));
        }
        let size = self.size(start)?;
        let body = self.at..self.at + size;
        if body.end > self.end {
            return Err(Error::Truncated { at: start });
        }
        self.next = body.end;
        Ok(Some(Section { id, start, body }))
    }

    /// Continues with the sections inside of a nested component or module, and then with those after it.
    ///
    /// # Errors
    ///
    /// The section does not contain a program of this form.
    pub(crate) fn enter(&mut self, section: &Section, form: Form) -> Result<()> {
        let header = self.source_bytes(section, HEADER as u64)?;
        if Form::find(&header) != Some(form) {
            return Err(unreadable(section.start));
        }
        self.next = section.body.start + HEADER as u64;
        Ok(())
    }

    /// Reads a section's body, at most `max` bytes of it.
    ///
    /// # Errors
    ///
    /// The bodies that were read exceed the bound, or the source cannot be read.
    pub(crate) fn read(&mut self, section: &Section, max: u64) -> Result<Vec<u8>> {
        let bytes = (section.body.end - section.body.start).min(max);
        self.max_bytes = self
            .max_bytes
            .checked_sub(bytes)
            .ok_or_else(|| Error::Limit(format!("its imports, exports and types have more than {MAX_BYTES} bytes")))?;
        self.source_bytes(section, max)
    }

    fn source_bytes(&mut self, section: &Section, max: u64) -> Result<Vec<u8>> {
        let bytes = (section.body.end - section.body.start).min(max);
        self.go_to(section.body.start)?;
        let mut body = vec![0; usize::try_from(bytes).map_err(|_| unreadable(section.start))?];
        self.source.read_exact(&mut body).map_err(|_| Error::Truncated { at: section.start })?;
        self.at += bytes;
        Ok(body)
    }

    fn go_to(&mut self, offset: u64) -> Result<()> {
        let step = i64::try_from(i128::from(offset) - i128::from(self.at)).map_err(|_| unreadable(offset))?;
        self.source.seek_relative(step).map_err(|_| unreadable(offset))?;
        self.at = offset;
        Ok(())
    }

    /// Reads one byte of the section header at `start`.
    fn byte(&mut self, start: u64) -> Result<u8> {
        let mut byte = [0];
        if self.at >= self.end || self.source.read_exact(&mut byte).is_err() {
            return Err(Error::Truncated { at: start });
        }
        self.at += 1;
        Ok(byte[0])
    }

    /// Reads a number with at most five 7-bit bytes, the lowest first.
    fn size(&mut self, start: u64) -> Result<u64> {
        let mut size = 0;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte(start)?;
            size |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(size);
            }
        }
        Err(Error::Invalid(format!("the section at byte {start} has a size of more than five bytes")))
    }
}

fn too_many() -> Error {
    Error::Limit(format!("it has more than {MAX_SECTIONS} sections"))
}

fn unreadable(at: u64) -> Error {
    Error::Invalid(format!("the section at byte {at} cannot be read"))
}

/// Splits the body of a custom section into its name and its content.
///
/// # Errors
///
/// The name is incomplete or not UTF-8.
pub(crate) fn custom(body: &[u8]) -> Result<(&str, &[u8])> {
    let mut reader = BinaryReader::new(body, 0);
    let name = reader.read_string()?;
    Ok((name, &body[body.len() - reader.bytes_remaining()..]))
}

/// Returns `true` if the body of a custom section, or its beginning, has this name.
pub(crate) fn is_named(body: &[u8], name: &str) -> bool {
    BinaryReader::new(body, 0).read_string().is_ok_and(|found| found == name)
}

/// Parses a whole program. Each payload comes with the nesting depth of the module or component that contains it.
pub(crate) fn payloads(program: &[u8]) -> impl Iterator<Item = Result<(usize, Payload<'_>)>> {
    let mut depth = 0_usize;
    Parser::new(0).parse_all(program).map(move |payload| {
        let payload = payload?;
        let within = depth;
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
        Ok((within, payload))
    })
}
