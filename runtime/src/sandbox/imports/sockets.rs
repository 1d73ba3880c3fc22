//! `wasi:sockets`, which no tool is given: programs whose language always imports it are linked all the same, and refused
//! when they use it. Nothing behind these functions can reach a network, for there is nothing behind them.

use std::fmt;

use wasmtime::Engine;
use wasmtime::component::types::{ComponentFunc, ComponentInstance, ComponentItem, Type};
use wasmtime::component::{LinkerInstance, ResourceDynamic, ResourceType, Val};

use crate::call::Denial;
use crate::sandbox::host::Host;

/// How a function of it says that it was refused.
const DENIED: &str = "access-denied";
/// The most bytes kept of a function's name, which is a stranger's.
const MAX_NAME_LEN: usize = 64;

/// A function was called that can say nothing but that it did. It travels as the trap's cause.
#[derive(Debug)]
pub(crate) struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tool used a socket (`{}`), and no tool is given any", self.0)
    }
}

impl std::error::Error for Refused {}

/// What a function answers.
#[derive(Clone, Copy)]
enum Answer {
    /// That it was refused.
    Denied,
    /// A resource of this number, behind which there is nothing.
    Empty(u32),
    /// Nothing, in a way that its type has.
    Nothing,
    /// The call ends.
    Ends,
}

/// The resources that a component's imports have brought so far: one that is named again is the same.
#[derive(Default)]
pub(super) struct Refusing {
    known: Vec<ResourceType>,
}

impl Refusing {
    /// Takes note of an import that is linked elsewhere.
    pub(super) fn pass(&mut self, engine: &Engine, instance: &ComponentInstance) {
        for (_, export) in instance.exports(engine) {
            if let ComponentItem::Resource(resource) = export.ty {
                self.known.push(resource);
            }
        }
    }

    /// Links an interface.
    pub(super) fn add(
        &mut self,
        interface: &mut LinkerInstance<'_, Host>,
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
                    let told: String = name.chars().take(MAX_NAME_LEN).collect();
                    interface.func_new(name, move |mut store, _, given, results| {
                        let usage = &store.data().memory.usage;
                        if matches!(answer, Answer::Denied | Answer::Ends) {
                            usage.refused(Denial { capability: format!("sockets:{told}"), flag: None });
                        }
                        for value in given {
                            if let Val::Resource(resource) = value {
                                // A loan that is not given back would end the call.
                                resource.try_into_resource_dynamic(&mut store)?;
                            }
                        }
                        let value = match answer {
                            Answer::Denied => Val::Result(Err(Some(Box::new(Val::Enum(DENIED.to_owned()))))),
                            Answer::Empty(number) => {
                                let nothing = ResourceDynamic::new_own(0, number);
                                Val::Resource(nothing.try_into_resource_any(&mut store)?)
                            }
                            Answer::Nothing => Val::Option(None),
                            Answer::Ends => return Err(Refused(told.clone()).into()),
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

    fn answer(&self, function: &ComponentFunc) -> Answer {
        let mut results = function.results();
        match (results.next(), results.next()) {
            (Some(Type::Result(result)), None) => match result.err() {
                Some(Type::Enum(codes)) if codes.names().any(|name| name == DENIED) => Answer::Denied,
                _ => Answer::Ends,
            },
            (Some(Type::Option(_)), None) => Answer::Nothing,
            (Some(Type::Own(resource)), None) => {
                let number = self.known.iter().position(|known| *known == resource);
                number.and_then(|number| u32::try_from(number).ok()).map_or(Answer::Ends, Answer::Empty)
            }
            _ => Answer::Ends,
        }
    }
}
