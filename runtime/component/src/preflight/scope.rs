//! The number of instances that a program creates. A nested component can create two instances of another, which creates two of
//! a third: a compiler that expands them all would never end. So each component has a weight, the number of instances that it
//! creates, and only components of known weight can be instantiated: those that the program itself contains.

use toolcrib_foundation::text::shown;
use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind, ComponentTypeRef, Instance,
    Payload,
};

use crate::error::{Error, Result};

use super::custom::CustomSections;
use super::limits::Limits;

/// The module or component that is being read, and those that enclose it.
pub(super) struct Scopes<'a> {
    max_instances: u64,
    open: Vec<Scope<'a>>,
}

#[derive(Default)]
struct Scope<'a> {
    is_module: bool,
    /// Number of instances that it creates.
    weight: u64,
    /// Weights in the index space of components.
    components: Vec<u64>,
    customs: CustomSections<'a>,
}

impl<'a> Scopes<'a> {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { max_instances: limits.instances, open: vec![Scope::default()] }
    }

    /// Visits the next part of the program.
    ///
    /// # Errors
    ///
    /// The program creates too many instances, or instances of a component of unknown weight.
    pub(super) fn visit(&mut self, payload: Payload<'a>) -> Result<()> {
        let max = self.max_instances;
        let Some(scope) = self.open.last_mut() else { return Ok(()) };
        match payload {
            Payload::CustomSection(section) => scope.customs.add(&section)?,
            Payload::ModuleSection { .. } => self.open.push(Scope { is_module: true, ..Scope::default() }),
            Payload::ComponentSection { .. } => self.open.push(Scope::default()),
            Payload::End(_) => self.leave(),
            Payload::InstanceSection(section) => {
                for instance in section {
                    if let Instance::Instantiate { .. } = instance? {
                        scope.create(1, max)?;
                    }
                }
            }
            Payload::ComponentInstanceSection(section) => {
                for instance in section {
                    if let ComponentInstance::Instantiate { component_index, .. } = instance? {
                        // The compiler refuses an index out of bounds.
                        let inside = scope.components.get(component_index as usize).copied().unwrap_or_default();
                        scope.create(inside.saturating_add(1), max)?;
                    }
                }
            }
            Payload::ComponentImportSection(section) => {
                for import in section {
                    let import = import?;
                    if let ComponentTypeRef::Component(_) = import.ty {
                        let name = shown(import.name.name);
                        return Err(Error::Unsupported(format!(
                            "it imports `{name}`, a component to instantiate; include it in the program"
                        )));
                    }
                }
            }
            Payload::ComponentAliasSection(section) => {
                for alias in section {
                    self.alias(&alias?)?;
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    let export = export?;
                    if export.kind == ComponentExternalKind::Component {
                        let weight = scope.components.get(export.index as usize).copied().unwrap_or_default();
                        scope.components.push(weight);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn leave(&mut self) {
        if let (Some(left), Some(around)) = (self.open.pop(), self.open.last_mut())
            && !left.is_module
        {
            around.components.push(left.weight);
        }
    }

    fn alias(&mut self, alias: &ComponentAlias<'_>) -> Result<()> {
        match alias {
            ComponentAlias::InstanceExport { kind: ComponentExternalKind::Component, name, .. } => {
                let name = shown(name);
                Err(Error::Unsupported(format!(
                    "it takes the component `{name}` out of an instance to instantiate it; include it in the program"
                )))
            }
            ComponentAlias::Outer { kind: ComponentOuterAliasKind::Component, count, index } => {
                let around = self.open.iter().rev().nth(*count as usize);
                let weight = around.and_then(|scope| scope.components.get(*index as usize)).copied();
                if let Some(scope) = self.open.last_mut() {
                    scope.components.push(weight.unwrap_or_default());
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Scope<'_> {
    fn create(&mut self, instances: u64, max: u64) -> Result<()> {
        self.weight = self.weight.saturating_add(instances);
        let found = self.weight;
        match found > max {
            true => Err(Error::Limit(format!("it makes {found} instances or more, and at most {max} are compiled"))),
            false => Ok(()),
        }
    }
}
