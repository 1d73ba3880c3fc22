//! How many instances a program makes in the end. A component inside can make two of another, which makes two of a third:
//! a compiler that writes all of them out would never end. So each component is weighed by what it makes, and only those
//! are instantiated whose weight can be told, which are all that stand in the program itself.

use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind, ComponentTypeRef, Instance,
    Payload,
};

use super::custom::Customs;
use super::told;

/// The most instances of modules and components, with all that those make in turn.
const MAX_INSTANCES: u64 = 1000;

/// The module or component that is being read, and those around it.
pub(super) struct Scopes<'a> {
    open: Vec<Scope<'a>>,
}

#[derive(Default)]
struct Scope<'a> {
    is_module: bool,
    /// The instances that it makes.
    weight: u64,
    /// The weight of each component that it has a number for.
    components: Vec<u64>,
    customs: Customs<'a>,
}

impl<'a> Scopes<'a> {
    pub(super) fn new() -> Self {
        Self { open: vec![Scope::default()] }
    }

    /// Goes on by one part of the program.
    ///
    /// # Errors
    ///
    /// A text that says what is too much, or cannot be weighed.
    pub(super) fn visit(&mut self, payload: Payload<'a>) -> Result<(), String> {
        let Some(scope) = self.open.last_mut() else { return Ok(()) };
        match payload {
            Payload::CustomSection(section) => scope.customs.add(&section)?,
            Payload::ModuleSection { .. } => self.open.push(Scope { is_module: true, ..Scope::default() }),
            Payload::ComponentSection { .. } => self.open.push(Scope::default()),
            Payload::End(_) => self.leave(),
            Payload::InstanceSection(section) => {
                for instance in section {
                    if let Instance::Instantiate { .. } = instance.map_err(told)? {
                        scope.make(1)?;
                    }
                }
            }
            Payload::ComponentInstanceSection(section) => {
                for instance in section {
                    if let ComponentInstance::Instantiate { component_index, .. } = instance.map_err(told)? {
                        // A number that stands for nothing, the compiler refuses.
                        let inside = scope.components.get(component_index as usize).copied().unwrap_or_default();
                        scope.make(inside.saturating_add(1))?;
                    }
                }
            }
            Payload::ComponentImportSection(section) => {
                for import in section {
                    let import = import.map_err(told)?;
                    if let ComponentTypeRef::Component(_) = import.ty {
                        let name: String = import.name.name.chars().take(100).collect();
                        return Err(format!("it imports `{name}`, a component to make instances of; build it in"));
                    }
                }
            }
            Payload::ComponentAliasSection(section) => {
                for alias in section {
                    self.alias(&alias.map_err(told)?)?;
                }
            }
            Payload::ComponentExportSection(section) => {
                for export in section {
                    let export = export.map_err(told)?;
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

    fn alias(&mut self, alias: &ComponentAlias<'_>) -> Result<(), String> {
        match alias {
            ComponentAlias::InstanceExport { kind: ComponentExternalKind::Component, name, .. } => {
                let name: String = name.chars().take(100).collect();
                Err(format!("it takes the component `{name}` out of an instance, to make instances of; build it in"))
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
    fn make(&mut self, instances: u64) -> Result<(), String> {
        self.weight = self.weight.saturating_add(instances);
        match self.weight {
            0..=MAX_INSTANCES => Ok(()),
            found => Err(format!("it makes {found} instances or more, and at most {MAX_INSTANCES} are compiled")),
        }
    }
}
