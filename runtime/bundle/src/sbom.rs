//! Software bill of materials as a CycloneDX 1.6 document in JSON, which depends on its input alone.
//!
//! The document has no time, and its serial number is derived from its content, so that a bundle with an SBOM stays
//! deterministic.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use toolcrib_foundation::text::MAX_NAME;

use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::json;
use crate::path::BundlePath;
use crate::text::{self, MAX_TEXT_LENGTH, Text};

/// Maximum number of components per SBOM.
pub const MAX_SBOM_COMPONENTS: usize = 16_384;

/// Component type, in the vocabulary of CycloneDX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SbomKind {
    /// Program that runs by itself, such as a tool.
    Application,
    /// Library that is linked into a program.
    Library,
    /// Other file.
    File,
}

impl SbomKind {
    /// Returns the word of CycloneDX.
    fn as_str(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Library => "library",
            Self::File => "file",
        }
    }
}

/// Component of an SBOM.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct SbomComponent {
    /// Name, which may be the same for several components.
    pub name: String,
    /// Version.
    pub version: Option<String>,
    /// Path of the file inside the bundle.
    pub path: Option<BundlePath>,
    /// Digest of the file.
    pub digest: Option<Digest>,
    /// Type.
    pub kind: SbomKind,
    /// Description.
    pub description: Option<String>,
    /// Licence as an SPDX expression.
    pub licenses: Option<String>,
    /// Package URL, such as `pkg:cargo/serde@1.0.0`.
    pub package_url: Option<String>,
    /// Components that are linked into this one.
    pub parts: Vec<SbomComponent>,
}

impl SbomComponent {
    /// Returns a component with a type and a name.
    #[must_use]
    pub fn new(kind: SbomKind, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            version: None,
            path: None,
            digest: None,
            kind,
            description: None,
            licenses: None,
            package_url: None,
            parts: Vec::new(),
        }
    }

    /// Removes the texts that a bill refuses, so that foreign metadata cannot prevent it. The name is kept as far as it can be
    /// shown.
    #[must_use]
    pub fn without_invalid_texts(mut self) -> Self {
        self.name = text::visible(&self.name, MAX_NAME);
        if self.name.is_empty() {
            self.name = "unnamed".to_owned();
        }
        self.description = self.description.map(|text| text::visible(&text, MAX_TEXT_LENGTH));
        self.version = self.version.filter(|text| Text::Version.check("version", text).is_ok());
        self.licenses = self.licenses.filter(|text| Text::License.check("licence", text).is_ok());
        self.package_url = self.package_url.filter(|text| Text::PackageUrl.check("package URL", text).is_ok());
        self
    }

    /// Checks every text.
    fn check(&self) -> Result<()> {
        Text::ToolName.check("name of a component", &self.name)?;
        for (kind, field, text) in [
            (Text::Version, "version of a component", &self.version),
            (Text::Prose, "description of a component", &self.description),
            (Text::License, "licence of a component", &self.licenses),
            (Text::PackageUrl, "package URL of a component", &self.package_url),
        ] {
            text.as_ref().map_or(Ok(()), |text| kind.check(field, text))?;
        }
        Ok(())
    }
}

/// SBOM (software bill of materials) for a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sbom {
    /// The bundle itself. Its parts are the components of the bill.
    pub subject: SbomComponent,
}

impl Sbom {
    /// Returns the bill of `subject`.
    #[must_use]
    pub fn new(subject: SbomComponent) -> Self {
        Self { subject }
    }

    /// Writes the document as canonical JSON. Equal parts on different levels become one component.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Text`] for invalid texts, and [`Error::Document`] for more than [`MAX_SBOM_COMPONENTS`] components or
    /// parts that are nested deeper than three levels.
    pub fn to_json(&self) -> Result<Vec<u8>> {
        let mut graph = Graph::default();
        let subject = graph.add(&self.subject, 0)?;
        let metadata = graph.components.remove(&subject);
        let mut document = json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": { "component": metadata },
            "components": graph.components.into_values().collect::<Vec<_>>(),
            "dependencies": graph.dependencies.iter()
                .map(|(reference, parts)| json!({ "ref": reference, "dependsOn": parts }))
                .collect::<Vec<_>>(),
        });
        let digest = Digest::of(&write(&document)?);
        document["serialNumber"] = format!("urn:uuid:{}", uuid(digest)).into();
        write(&document)
    }
}

/// Components and dependencies by their references.
#[derive(Default)]
struct Graph {
    components: BTreeMap<String, Value>,
    dependencies: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    /// Adds a component and its parts, and returns its reference: a digest of everything that is stated about it.
    fn add(&mut self, component: &SbomComponent, depth: usize) -> Result<String> {
        if depth > 3 {
            return Err(Error::document("the SBOM", "parts are nested deeper than three levels"));
        }
        component.check()?;
        let parts = component.parts.iter().map(|part| self.add(part, depth + 1)).collect::<Result<BTreeSet<_>>>()?;
        let mut value = describe(component);
        let digest = Digest::of(&write(&json!([value, parts]))?);
        let reference = format!("{}:{}", component.kind.as_str(), &digest.hex()[..32]);
        value.insert("bom-ref".to_owned(), reference.clone().into());
        self.components.insert(reference.clone(), value.into());
        self.dependencies.insert(reference.clone(), parts);
        if self.components.len() > MAX_SBOM_COMPONENTS {
            return Err(Error::document("the SBOM", format!("it has more than {MAX_SBOM_COMPONENTS} components")));
        }
        Ok(reference)
    }
}

/// Returns the fields of a component without its reference.
fn describe(component: &SbomComponent) -> Map<String, Value> {
    let mut value = Map::new();
    let mut set = |key: &str, field: Option<Value>| field.map(|field| value.insert(key.to_owned(), field));
    set("type", Some(component.kind.as_str().into()));
    set("name", Some(component.name.as_str().into()));
    set("version", component.version.as_deref().map(Value::from));
    set("description", component.description.as_deref().map(Value::from));
    set("purl", component.package_url.as_deref().map(Value::from));
    set("licenses", component.licenses.as_deref().map(|expression| json!([{ "expression": expression }])));
    set("hashes", component.digest.map(|digest| json!([{ "alg": "SHA-256", "content": digest.hex() }])));
    let path = component.path.as_ref();
    set("properties", path.map(|path| json!([{ "name": "toolcrib:path", "value": path.as_str() }])));
    value
}

/// Returns a version 8 UUID (RFC 9562, section 5.8) from the first bytes of a digest.
fn uuid(digest: Digest) -> String {
    let hex = digest.hex();
    let variant = ["8", "9", "a", "b"][usize::from(digest.as_bytes()[8] >> 6)];
    format!("{}-{}-8{}-{variant}{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

/// Writes canonical JSON.
fn write(value: &Value) -> Result<Vec<u8>> {
    json::write(value).map_err(|source| Error::Json { document: "the SBOM".to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str) -> SbomComponent {
        let mut part = SbomComponent::new(SbomKind::Library, name);
        part.version = Some("1.0.0".to_owned());
        part.licenses = Some("MIT OR Apache-2.0".to_owned());
        part.package_url = Some(format!("pkg:cargo/{name}@1.0.0"));
        part
    }

    fn bill(reversed: bool) -> Sbom {
        let mut tool = SbomComponent::new(SbomKind::Application, "read");
        tool.digest = Some(Digest::of(b"read"));
        tool.path = Some("tools/read.wasm".parse().unwrap());
        tool.parts = vec![part("serde"), part("itoa")];
        let mut other = SbomComponent::new(SbomKind::Application, "write");
        other.parts = vec![part("itoa"), part("serde")];
        let mut subject = SbomComponent::new(SbomKind::Application, "acme/files");
        subject.version = Some("1.2.0".to_owned());
        subject.parts = vec![tool, other];
        if reversed {
            subject.parts.reverse();
            subject.parts.iter_mut().for_each(|tool| tool.parts.reverse());
        }
        Sbom::new(subject)
    }

    #[test]
    fn the_document_does_not_depend_on_the_order_of_its_parts() {
        assert_eq!(bill(false).to_json().unwrap(), bill(true).to_json().unwrap());
    }

    #[test]
    fn the_document_lists_each_component_once_and_names_its_parts() {
        let document: Value = serde_json::from_slice(&bill(false).to_json().unwrap()).unwrap();
        assert_eq!(document["specVersion"], "1.6");
        assert_eq!(document["metadata"]["component"]["name"], "acme/files");
        assert!(document["metadata"].get("timestamp").is_none());
        let components = document["components"].as_array().unwrap();
        assert_eq!(components.len(), 4, "two tools and two libraries");
        let references = components.iter().map(|c| c["bom-ref"].as_str().unwrap()).collect::<BTreeSet<_>>();
        assert_eq!(references.len(), 4);
        let read = components.iter().find(|c| c["name"] == "read").unwrap();
        assert_eq!(read["hashes"][0]["content"], Digest::of(b"read").hex());
        assert_eq!(read["properties"][0]["value"], "tools/read.wasm");
        let dependencies = document["dependencies"].as_array().unwrap();
        let parts = dependencies.iter().find(|d| d["ref"] == read["bom-ref"]).unwrap();
        assert_eq!(parts["dependsOn"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn the_serial_number_is_a_uuid_that_follows_the_content() {
        let serial = |bill: &Sbom| {
            let document: Value = serde_json::from_slice(&bill.to_json().unwrap()).unwrap();
            document["serialNumber"].as_str().unwrap().to_owned()
        };
        let first = serial(&bill(false));
        let groups = first.strip_prefix("urn:uuid:").unwrap().split('-').map(str::len).collect::<Vec<_>>();
        assert_eq!(groups, [8, 4, 4, 4, 12]);
        assert_eq!(&first["urn:uuid:".len() + 14..][..1], "8");
        let mut changed = bill(false);
        changed.subject.version = Some("1.2.1".to_owned());
        assert_ne!(serial(&changed), first);
    }

    #[test]
    fn too_many_components_and_too_deep_parts_are_refused() {
        let mut subject = SbomComponent::new(SbomKind::Application, "a");
        subject.parts = (0..MAX_SBOM_COMPONENTS).map(|n| part(&n.to_string())).collect();
        assert!(matches!(Sbom::new(subject).to_json(), Err(Error::Document { .. })));
        let mut deep = part("d");
        for name in ["c", "b", "a", "z"] {
            let mut outer = part(name);
            outer.parts = vec![deep];
            deep = outer;
        }
        assert!(matches!(Sbom::new(deep).to_json(), Err(Error::Document { .. })));
    }

    #[test]
    fn foreign_texts_cannot_prevent_a_bill() {
        let mut foreign = part(" a\u{202e}b ");
        foreign.version = Some("1.0 (dirty)".to_owned());
        foreign.licenses = Some("MIT/Apache-2.0".to_owned());
        foreign.description = Some("x\u{1b}[2J".repeat(MAX_TEXT_LENGTH));
        let plain = foreign.without_invalid_texts();
        assert_eq!((plain.name.as_str(), plain.version.as_deref(), plain.licenses.as_deref()), ("a b", None, None));
        assert!(Sbom::new(plain).to_json().is_ok());
        assert_eq!(part("\u{202e}").without_invalid_texts().name, "unnamed");
    }

    #[test]
    fn texts_that_mislead_a_reader_are_refused() {
        let bill = Sbom::new(part("a\u{202e}b"));
        assert!(matches!(bill.to_json(), Err(Error::Text(_))));
    }
}
