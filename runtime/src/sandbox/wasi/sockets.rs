//! `wasi:sockets`, which no tool is given. Programs in languages that always import it are linked, and refused when
//! they use it. There is no network behind these functions.

use wasmtime::Engine;
use wasmtime::component::types::{ComponentFunc, ComponentInstance, ComponentItem, Type};
use wasmtime::component::{LinkerInstance, ResourceDynamic, ResourceType, Val};

use crate::call::Denial;
use crate::sandbox::causes::SocketRefused;

use super::state::WasiStore;

/// Error code of a refusal.
const DENIED: &str = "access-denied";

/// Result of a stub.
#[derive(Clone, Copy)]
enum StubResult {
    /// The error code of a refusal.
    Denied,
    /// A resource of this number without any content.
    Empty(u32),
    /// `none`.
    Nothing,
    /// A trap that ends the call.
    Ends,
}

/// Stubs of one component, with the resource types that its imports have declared so far: a type that is named again is
/// the same.
#[derive(Default)]
pub(super) struct SocketStubs {
    known: Vec<ResourceType>,
}

impl SocketStubs {
    /// Adds the resource types of an import that is linked elsewhere.
    pub(super) fn pass(&mut self, engine: &Engine, instance: &ComponentInstance) {
        for (_, export) in instance.exports(engine) {
            if let ComponentItem::Resource(resource) = export.ty {
                self.known.push(resource);
            }
        }
    }

    /// Links an interface.
    pub(super) fn add_to_linker<T: WasiStore>(
        &mut self,
        interface: &mut LinkerInstance<'_, T>,
        engine: &Engine,
        instance: &ComponentInstance,
    ) -> wasmtime::Result<()> {
        for (name, export) in instance.exports(engine) {
            match export.ty {
                ComponentItem::Resource(resource) if !self.known.contains(&resource) => {
                    let number = u32::try_from(self.known.len())?;
                    self.known.push(resource);
                    interface.resource(name, ResourceType::host_dynamic(number), |_, _| Ok(()))?;
                }
                ComponentItem::ComponentFunc(function) => {
                    let answer = self.answer(&function);
                    let short_name = toolcrib_foundation::text::clipped(name);
                    interface.func_new(name, move |mut store, _, params, results| {
                        let usage = store.data_mut().wasi().usage();
                        if matches!(answer, StubResult::Denied | StubResult::Ends) {
                            usage.refused(Denial { capability: format!("sockets:{short_name}"), flag: None });
                        }
                        for value in params {
                            if let Val::Resource(resource) = value {
                                // A borrow that is not returned would trap.
                                resource.try_into_resource_dynamic(&mut store)?;
                            }
                        }
                        let value = match answer {
                            StubResult::Denied => Val::Result(Err(Some(Box::new(Val::Enum(DENIED.to_owned()))))),
                            StubResult::Empty(number) => {
                                let nothing = ResourceDynamic::new_own(0, number);
                                Val::Resource(nothing.try_into_resource_any(&mut store)?)
                            }
                            StubResult::Nothing => Val::Option(None),
                            StubResult::Ends => return Err(SocketRefused(short_name.clone()).into()),
                        };
                        results.iter_mut().for_each(|result| *result = value.clone());
                        Ok(())
                    })?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn answer(&self, function: &ComponentFunc) -> StubResult {
        let mut results = function.results();
        match (results.next(), results.next()) {
            (Some(Type::Result(result)), None) => match result.err() {
                Some(Type::Enum(codes)) if codes.names().any(|name| name == DENIED) => StubResult::Denied,
                _ => StubResult::Ends,
            },
            (Some(Type::Option(_)), None) => StubResult::Nothing,
            (Some(Type::Own(resource)), None) => {
                let number = self.known.iter().position(|known| *known == resource);
                number.and_then(|number| u32::try_from(number).ok()).map_or(StubResult::Ends, StubResult::Empty)
            }
            _ => StubResult::Ends,
        }
    }
}
