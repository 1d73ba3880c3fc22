//! What a program says of itself in the custom sections that tools agree on, and what it was made with. The texts
//! are those of its outermost part alone, for what it is built of speaks for itself; what it was made with is told by every part.

use serde::Serialize;
use wasmparser::{
    BinaryReaderError, ComponentName, ComponentNameSectionReader, CustomSectionReader, Name, NameSectionReader,
    ProducersSectionReader,
};

use super::cut;

/// The name of the section of producers.
pub(super) const PRODUCERS: &str = "producers";
/// The most characters of one text that are kept.
const MAX_TEXT_LEN: usize = 2000;
/// The most producers that are kept and of one section looked at, and the most characters of a name and of a version.
const MAX_PRODUCERS: usize = 100;
const MAX_VALUES: usize = 1000;
const MAX_PRODUCER_LEN: usize = 200;
/// The most parts of a section of names that are looked at: the name of the whole stands first.
const MAX_NAMES: usize = 100;

/// What a program says of itself. Where a section stands twice, the last one holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Metadata {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Who made it.
    pub authors: Option<String>,
    /// Under which licenses.
    pub licenses: Option<String>,
    /// Where its sources lie.
    pub source: Option<String>,
    /// Where to read more of it.
    pub homepage: Option<String>,
    /// Of which state of its sources it was made.
    pub revision: Option<String>,
    /// What it and the parts inside of it were made with, each once.
    pub producers: Vec<Producer>,
}

/// Something that a program was made with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Producer {
    /// In what way: `language`, `processed-by` or `sdk`.
    pub field: String,
    /// Its name.
    pub name: String,
    /// Its version; empty where none is told.
    pub version: String,
}

impl Metadata {
    /// Each text that is there, under the name that it has in JSON.
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

    /// Reads one section, if it is one of these.
    ///
    /// # Errors
    ///
    /// A text that says what of it was left out, and why.
    pub(super) fn read(&mut self, section: &CustomSectionReader<'_>) -> Result<(), String> {
        let text = match section.name() {
            PRODUCERS => return self.read_producers(section),
            "name" => named(NameSectionReader::new(section.data_reader()), |name| match name {
                Name::Module { name, .. } => Some(name),
                _ => None,
            })?,
            "component-name" => named(ComponentNameSectionReader::new(section.data_reader()), |name| match name {
                ComponentName::Component { name, .. } => Some(name),
                _ => None,
            })?,
            other if self.place(other).is_none() => None,
            _ => Some(std::str::from_utf8(section.data()).map_err(|_| "it is not UTF-8")?),
        };
        let (Some(text), Some(place)) = (text, self.place(section.name())) else { return Ok(()) };
        *place = Some(cut(text, MAX_TEXT_LEN));
        match text.chars().nth(MAX_TEXT_LEN) {
            Some(_) => Err(format!("it has {} bytes and is cut to {MAX_TEXT_LEN} characters", text.len())),
            None => Ok(()),
        }
    }

    fn place(&mut self, section: &str) -> Option<&mut Option<String>> {
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
        for field in ProducersSectionReader::new(section.data_reader()).map_err(told)? {
            let field = field.map_err(told)?;
            for value in field.values {
                let value = value.map_err(told)?;
                values += 1;
                if values > MAX_VALUES {
                    return Err(format!("more than {MAX_VALUES} in one section, of which the first are kept"));
                }
                let [name, version] = [value.name, value.version].map(|text| cut(text, MAX_PRODUCER_LEN));
                let producer = Producer { field: field.name.to_owned(), name, version };
                if self.producers.contains(&producer) {
                    continue;
                }
                if self.producers.len() == MAX_PRODUCERS {
                    return Err(format!("more than {MAX_PRODUCERS}, of which the first are kept"));
                }
                self.producers.push(producer);
            }
        }
        Ok(())
    }
}

/// The name of the whole in a section of names.
fn named<'a, N>(
    names: impl Iterator<Item = wasmparser::Result<N>>,
    whole: impl Fn(N) -> Option<&'a str>,
) -> Result<Option<&'a str>, String> {
    for name in names.take(MAX_NAMES) {
        if let Some(name) = whole(name.map_err(told)?) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Why a section cannot be read. Names of the author's can stand in it.
pub(super) fn told(error: BinaryReaderError) -> String {
    cut(error.message(), MAX_PRODUCER_LEN)
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

    /// What these sections tell, each with its name, and what was left out.
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

    /// So many languages, all of one name, of so many versions.
    fn languages(count: u16, versions: u16, name: &str) -> Vec<u8> {
        let one = |n: u16| [sized(name.as_bytes()), sized((n % versions).to_string().as_bytes())].concat();
        let count_in_bytes = vec![(count & 0x7f) as u8 | 0x80, (count >> 7) as u8];
        [vec![1], sized(b"language"), count_in_bytes, (0..count).flat_map(one).collect()].concat()
    }

    #[test]
    fn what_stands_in_the_sections_is_read() {
        let module = [vec![0], sized(&sized("é".as_bytes()))].concat();
        let texts = ["version", "description", "authors", "licenses", "source", "homepage", "revision"];
        let mut sections: Vec<_> = texts.iter().map(|name| (*name, format!("of {name}").into_bytes())).collect();
        sections.extend([("name", module), ("producers", languages(3, 1, "Rust")), ("other", vec![0xff])]);
        let (metadata, left_out) = read(&sections);
        let told: Vec<_> = metadata.texts().skip(1).map(|(name, text)| (name, text.to_owned())).collect();
        assert_eq!(told, texts.map(|name| (name, format!("of {name}"))));
        assert_eq!((metadata.name.as_deref(), left_out), (Some("é"), Vec::new()));
        let [language, name, version] = ["language", "Rust", "0"].map(str::to_owned);
        assert_eq!(metadata.producers, [Producer { field: language, name, version }]);
    }

    #[test]
    fn what_is_no_text_is_left_out_and_said() {
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
    fn what_is_beyond_a_bound_is_cut_and_said() {
        let (metadata, left_out) = read(&[("description", vec![b'x'; MAX_TEXT_LEN])]);
        assert_eq!((metadata.description.map(|text| text.len()), left_out.len()), (Some(MAX_TEXT_LEN), 0));
        let (metadata, left_out) = read(&[("description", vec![b'x'; 1 << 20])]);
        assert_eq!(metadata.description.map(|text| text.chars().count()), Some(MAX_TEXT_LEN));
        assert_eq!(left_out, ["it has 1048576 bytes and is cut to 2000 characters"]);

        assert_eq!(read(&[("producers", languages(1000, 100, "a"))]).1, Vec::<String>::new());
        let (_, left_out) = read(&[("producers", languages(1001, 1, "a"))]);
        assert_eq!(left_out, ["more than 1000 in one section, of which the first are kept"]);
        let (metadata, left_out) =
            read(&[("producers", languages(100, 100, "a")), ("producers", languages(1, 1, "b"))]);
        assert_eq!(metadata.producers.len(), MAX_PRODUCERS);
        assert_eq!(left_out, ["more than 100, of which the first are kept"]);
        let (metadata, _) = read(&[("producers", languages(1, 1, &"a".repeat(5000)))]);
        assert_eq!(metadata.producers[0].name.chars().count(), MAX_PRODUCER_LEN);
        let strange = [vec![1], sized(&[b'z'; 90_000]), vec![0]].concat();
        assert_eq!(read(&[("producers", strange)]).1[0].chars().count(), MAX_PRODUCER_LEN);

        let unknown = [0x50, 0].repeat(MAX_NAMES - 1);
        let name = [vec![0], sized(&sized(b"n"))].concat();
        assert_eq!(read(&[("name", [unknown.clone(), name.clone()].concat())]).0.name.as_deref(), Some("n"));
        assert_eq!(read(&[("name", [unknown, vec![0x50, 0], name].concat())]).0.name, None);
    }
}
