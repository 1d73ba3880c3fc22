//! Bill of materials for a bundle: its tools and hooks, their programs with digests, and the packages that program
//! metadata names.

use std::collections::BTreeMap;

use anyhow::Context;
use toolcrib::source;
use toolcrib::source::inspect::{Inspection, Metadata as ProgramMetadata};
use toolcrib_bundle::{Metadata, Sbom, SbomComponent, SbomKind};

use super::contents::{Contents, PackedTool};

/// Field of a program's producers that names linked packages. The others name compilers and their tools.
const LINKED: &str = "sdk";

/// Facts about the programs of a bundle, by their paths in it.
pub(super) struct Programs(BTreeMap<String, Inspection>);

impl Programs {
    /// Reads the programs of a bundle. Nothing is compiled or run.
    pub(super) fn read(contents: &Contents) -> anyhow::Result<Self> {
        let programs = contents.tools.iter().filter_map(|tool| tool.program.as_ref());
        let mut found = BTreeMap::new();
        for program in programs {
            let Some(file) = contents.files.get(program).filter(|_| !found.contains_key(program)) else { continue };
            found.insert(program.clone(), source::inspect(&file.path)?);
        }
        Ok(Self(found))
    }

    /// Returns the text that all programs with a text state, if they agree.
    pub(super) fn agreed(&self, text: impl Fn(&ProgramMetadata) -> Option<&String>) -> Option<&str> {
        let mut stated = self.0.values().filter_map(|program| text(&program.metadata));
        let first = stated.next()?;
        stated.all(|other| other == first).then_some(first)
    }

    /// Writes the bill of a bundle.
    pub(super) fn bill(&self, metadata: &Metadata, contents: &Contents) -> anyhow::Result<Vec<u8>> {
        let mut subject = SbomComponent::new(SbomKind::Application, &metadata.name);
        subject.version = Some(metadata.version.clone());
        subject.licenses.clone_from(&metadata.licenses);
        for tool in &contents.tools {
            subject.parts.push(self.tool(tool)?);
        }
        for hook in &contents.hooks {
            let mut part = SbomComponent::new(SbomKind::Application, format!("hook {}", hook.tool.name));
            part.description.clone_from(&hook.tool.description);
            subject.parts.push(part.without_invalid_texts());
        }
        Sbom::new(subject).to_json().context("cannot write the bill of materials")
    }

    fn tool(&self, packed: &PackedTool) -> anyhow::Result<SbomComponent> {
        let mut tool = SbomComponent::new(SbomKind::Application, &packed.tool.name);
        tool.description.clone_from(&packed.tool.description);
        tool.path = Some(packed.definition.parse()?);
        if let Some((path, program)) = packed.program.as_ref().and_then(|path| self.0.get_key_value(path)) {
            tool.parts.push(component(path, program)?);
        }
        Ok(tool.without_invalid_texts())
    }
}

/// Describes a program and the packages that its metadata names.
fn component(path: &str, program: &Inspection) -> anyhow::Result<SbomComponent> {
    let metadata = &program.metadata;
    let file = path.rsplit('/').next().unwrap_or(path);
    let mut part = SbomComponent::new(SbomKind::Application, metadata.name.as_deref().unwrap_or(file));
    part.version.clone_from(&metadata.version);
    part.description.clone_from(&metadata.description);
    part.licenses.clone_from(&metadata.licenses);
    part.path = Some(path.parse()?);
    part.digest = Some(program.digest.parse()?);
    let packages = metadata.producers.iter().filter(|producer| producer.field == LINKED);
    let packages = packages.map(|producer| {
        let mut package = SbomComponent::new(SbomKind::Library, &producer.name);
        package.version = Some(producer.version.clone());
        package.without_invalid_texts()
    });
    part.parts = packages.collect();
    Ok(part.without_invalid_texts())
}
