//! Metadata in the custom sections that WebAssembly tools agree on: name, version, authors and so on of the outermost
//! part, and every part's producers.

use serde::Serialize;
use toolcrib_foundation::text::{MAX_MESSAGE, MAX_RECORDED, truncate};
use wasmparser::{
    BinaryReaderError, ComponentName, ComponentNameSectionReader, CustomSectionReader, Name, NameSectionReader,
    ProducersSectionReader,
};

use crate::error::Error;
use crate::sections::MAX_CUSTOM;

/// Name of the producers section.
pub(super) const PRODUCERS: &str = "producers";
/// Maximum producers of a program, and parts of a name section that are read. The name of the module or component is the first
/// part.
const MAX_PRODUCERS: usize = 100;

/// Metadata of a program. Of a repeated section, the last one counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Metadata {
    /// Name.
    pub name: Option<String>,
    /// Version.
    pub version: Option<String>,
    /// Description.
    pub description: Option<String>,
    /// Authors.
    pub authors: Option<String>,
    /// Licenses.
    pub licenses: Option<String>,
    /// Location of the source code.
    pub source: Option<String>,
    /// Address of the home page.
    pub homepage: Option<String>,
    /// Revision of the source code.
    pub revision: Option<String>,
    /// Producers of the program and its parts, each once.
    pub producers: Vec<Producer>,
}

/// A language or tool that was used to make a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Producer {
    /// Field of the section: `language`, `processed-by` or `sdk`.
    pub field: String,
    /// Name.
    pub name: String,
    /// Version; empty if none is stated.
    pub version: String,
}

impl Metadata {
    /// Returns the texts that are present, each with its name in JSON.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [
            ("name", &self.name),
            ("version", &self.version),
            ("description", &self.description),
            ("authors", &self.authors),
            ("licenses", &self.licenses),
            ("source", &self.source),
            ("homepage", &self.homepage),
            ("revision", &self.revision),
        ];
        all.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?)))
    }

    /// Reads a custom section. Other sections are ignored.
    ///
    /// # Errors
    ///
    /// A description of the part that was left out, with the reason.
    pub(super) fn read(&mut self, section: &CustomSectionReader<'_>) -> Result<(), String> {
        let text = match section.name() {
            PRODUCERS => return self.read_producers(section),
            "name" => find_name(NameSectionReader::new(section.data_reader()), |name| match name {
                Name::Module { name, .. } => Some(name),
                _ => None,
            })?,
            "component-name" => find_name(ComponentNameSectionReader::new(section.data_reader()), |name| match name {
                ComponentName::Component { name, .. } => Some(name),
                _ => None,
            })?,
            other if self.field(other).is_none() => None,
            _ => Some(std::str::from_utf8(section.data()).map_err(|_| "it is not UTF-8")?),
        };
        let (Some(text), Some(field)) = (text, self.field(section.name())) else { return Ok(()) };
        *field = Some(truncate(text, MAX_MESSAGE));
        match text.chars().nth(MAX_MESSAGE) {
            Some(_) => Err(format!("it has {} bytes and is cut to {MAX_MESSAGE} characters", text.len())),
            None => Ok(()),
        }
    }

    fn field(&mut self, section: &str) -> Option<&mut Option<String>> {
        match section {
            "name" | "component-name" => Some(&mut self.name),
            "version" => Some(&mut self.version),
            "description" => Some(&mut self.description),
            "authors" => Some(&mut self.authors),
            "licenses" => Some(&mut self.licenses),
            "source" => Some(&mut self.source),
            "homepage" => Some(&mut self.homepage),
            "revision" => Some(&mut self.revision),
            _ => None,
        }
    }

    fn read_producers(&mut self, section: &CustomSectionReader<'_>) -> Result<(), String> {
        let mut values = 0;
        for field in ProducersSectionReader::new(section.data_reader()).map_err(malformed)? {
            let field = field.map_err(malformed)?;
            for value in field.values {
                let value = value.map_err(malformed)?;
                values += 1;
                if values > MAX_CUSTOM {
                    return Err(format!("more than {MAX_CUSTOM} in one section; only the first are kept"));
                }
                let [name, version] = [value.name, value.version].map(|text| truncate(text, MAX_RECORDED));
                let producer = Producer { field: field.name.to_owned(), name, version };
                if self.producers.contains(&producer) {
                    continue;
                }
                if self.producers.len() == MAX_PRODUCERS {
                    return Err(format!("more than {MAX_PRODUCERS}; only the first are kept"));
                }
                self.producers.push(producer);
            }
        }
        Ok(())
    }
}

/// Returns the name of the module or component from a name section.
fn find_name<'a, N>(
    names: impl Iterator<Item = wasmparser::Result<N>>,
    select: impl Fn(N) -> Option<&'a str>,
) -> Result<Option<&'a str>, String> {
    for name in names.take(MAX_PRODUCERS) {
        if let Some(name) = select(name.map_err(malformed)?) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Returns an error's message without its offset, cut: it can contain names of the author's.
pub(super) fn shortened(error: &Error) -> String {
    match error {
        Error::Malformed(error) => truncate(error.message(), MAX_RECORDED),
        other => truncate(&other.to_string(), MAX_RECORDED),
    }
}

fn malformed(error: BinaryReaderError) -> String {
    shortened(&error.into())
}

#[cfg(test)]
mod tests {
    use wasmparser::{Parser, Payload};

    use super::*;

    fn sized(text: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut left = text.len();
        while left > 0x7f {
            bytes.push((left & 0x7f) as u8 | 0x80);
            left >>= 7;
        }
        bytes.push(left as u8);
        [bytes, text.to_vec()].concat()
    }

    /// Returns the metadata of these sections, each with its name, and the errors.
    fn read(sections: &[(&str, Vec<u8>)]) -> (Metadata, Vec<String>) {
        let bodies = sections.iter().map(|(name, body)| [sized(name.as_bytes()), body.clone()].concat());
        let sections: Vec<u8> = bodies.flat_map(|body| [vec![0], sized(&body)].concat()).collect();
        let module = [b"\0asm\x01\0\0\0".to_vec(), sections].concat();
        let (mut metadata, mut left_out) = (Metadata::default(), Vec::new());
        for payload in Parser::new(0).parse_all(&module) {
            if let Payload::CustomSection(section) = payload.unwrap() {
                left_out.extend(metadata.read(&section).err());
            }
        }
        (metadata, left_out)
    }

    /// Returns a section of `count` languages with one name and `versions` versions.
    fn languages(count: u16, versions: u16, name: &str) -> Vec<u8> {
        let one = |n: u16| [sized(name.as_bytes()), sized((n % versions).to_string().as_bytes())].concat();
        let count_in_bytes = vec![(count & 0x7f) as u8 | 0x80, (count >> 7) as u8];
        [vec![1], sized(b"language"), count_in_bytes, (0..count).flat_map(one).collect()].concat()
    }

    #[test]
    fn the_texts_of_the_sections_are_read() {
        let module = [vec![0], sized(&sized("é".as_bytes()))].concat();
        let texts = ["version", "description", "authors", "licenses", "source", "homepage", "revision"];
        let mut sections: Vec<_> = texts.iter().map(|name| (*name, format!("of {name}").into_bytes())).collect();
        sections.extend([("name", module), ("producers", languages(3, 1, "Rust")), ("other", vec![0xff])]);
        let (metadata, left_out) = read(&sections);
        let found: Vec<_> = metadata.texts().skip(1).map(|(name, text)| (name, text.to_owned())).collect();
        assert_eq!(found, texts.map(|name| (name, format!("of {name}"))));
        assert_eq!((metadata.name.as_deref(), left_out), (Some("é"), Vec::new()));
        let [language, name, version] = ["language", "Rust", "0"].map(str::to_owned);
        assert_eq!(metadata.producers, [Producer { field: language, name, version }]);
    }

    #[test]
    fn a_section_that_is_no_text_is_left_out_with_a_reason() {
        let (metadata, left_out) = read(&[("description", vec![0xff, 0xfe]), ("authors", Vec::new())]);
        assert_eq!((metadata.description, metadata.authors.as_deref()), (None, Some("")));
        assert_eq!(left_out, ["it is not UTF-8"]);
        for broken in [vec![0xff; 9], vec![2, 4, b'n', b'a', b'm', b'e', 0], vec![0, 1, 0xff]] {
            for section in ["name", "component-name", "producers"] {
                let (metadata, left_out) = read(&[(section, broken.clone())]);
                assert!(metadata.name.is_none() && metadata.producers.is_empty(), "{section} {broken:?}");
                assert!(left_out.len() <= 1);
            }
        }
        assert_eq!(read(&[("producers", vec![0xff])]).1.len(), 1);
    }

    #[test]
    fn a_text_beyond_a_bound_is_cut_with_a_reason() {
        let (metadata, left_out) = read(&[("description", vec![b'x'; MAX_MESSAGE])]);
        assert_eq!((metadata.description.map(|text| text.len()), left_out.len()), (Some(MAX_MESSAGE), 0));
        let (metadata, left_out) = read(&[("description", vec![b'x'; 1 << 20])]);
        assert_eq!(metadata.description.map(|text| text.chars().count()), Some(MAX_MESSAGE));
        assert_eq!(left_out, ["it has 1048576 bytes and is cut to 2000 characters"]);

        assert_eq!(read(&[("producers", languages(1000, 100, "a"))]).1, Vec::<String>::new());
        let (_, left_out) = read(&[("producers", languages(1001, 1, "a"))]);
        assert_eq!(left_out, ["more than 1000 in one section; only the first are kept"]);
        let (metadata, left_out) =
            read(&[("producers", languages(100, 100, "a")), ("producers", languages(1, 1, "b"))]);
        assert_eq!(metadata.producers.len(), MAX_PRODUCERS);
        assert_eq!(left_out, ["more than 100; only the first are kept"]);
        let (metadata, _) = read(&[("producers", languages(1, 1, &"a".repeat(5000)))]);
        assert_eq!(metadata.producers[0].name.chars().count(), MAX_RECORDED);
        let strange = [vec![1], sized(&[b'z'; 90_000]), vec![0]].concat();
        assert_eq!(read(&[("producers", strange)]).1[0].chars().count(), MAX_RECORDED);

        let unknown = [0x50, 0].repeat(MAX_PRODUCERS - 1);
        let name = [vec![0], sized(&sized(b"n"))].concat();
        assert_eq!(read(&[("name", [unknown.clone(), name.clone()].concat())]).0.name.as_deref(), Some("n"));
        assert_eq!(read(&[("name", [unknown, vec![0x50, 0], name].concat())]).0.name, None);
    }
}
