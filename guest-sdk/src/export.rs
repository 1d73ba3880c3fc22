//! Exports of the WIT package `wit/tool`, implemented by the tools of a component. Knows no tool.

use std::marker::PhantomData;

use crate::bindings::tool::toolcrib::tool::types::Failure;
use crate::bindings::{prepare, present, preview, route, tool, validate};
use crate::tool::Toolbox;
use crate::{Answer, Call, Error, Opinion, Preparation, Presentation};

/// Exports of a component with the tools `T`.
#[derive(Debug)]
pub struct Component<T>(PhantomData<T>);

impl<T: Toolbox> tool::exports::toolcrib::tool::call::Guest for Component<T> {
    fn run(call: Call) -> Result<Answer, Failure> {
        T::run(&call).map_err(Failure::from)
    }
}

impl<T: Toolbox> validate::exports::toolcrib::tool::validate::Guest for Component<T> {
    fn check(call: Call) -> Result<(), String> {
        T::validate(&call).map_err(|error| error.to_string())
    }
}

impl<T: Toolbox> preview::exports::toolcrib::tool::preview::Guest for Component<T> {
    fn preview(call: Call) -> Option<String> {
        T::preview(&call)
    }
}

impl<T: Toolbox> prepare::exports::toolcrib::tool::prepare::Guest for Component<T> {
    fn prepare(tool: String, context: String) -> Result<String, Failure> {
        T::prepare(&Preparation { tool, context }).map_err(Failure::from)
    }
}

impl<T: Toolbox> route::exports::toolcrib::tool::route::Guest for Component<T> {
    fn claim(call: Call) -> Opinion {
        T::route(&call)
    }
}

impl<T: Toolbox> present::exports::toolcrib::tool::present::Guest for Component<T> {
    fn present(call: Call, outcome: Result<Answer, Failure>) -> Presentation {
        T::present(&call, outcome.map_err(Error::from_failure))
    }
}
