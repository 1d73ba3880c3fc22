//! Module `log`: lines on standard error, with a level. `log` itself can be called, and is then `log.info`.

#![expect(unsafe_code, reason = "the language's derive for a type of its own")]

use std::fmt;
use std::io::Write;

use allocative::Allocative;
use starlark::collections::SmallMap;
use starlark::environment::{Methods, MethodsBuilder, MethodsStatic};
use starlark::eval::{Arguments, Evaluator};
use starlark::values::none::NoneType;
use starlark::values::{NoSerialize, ProvidesStaticType, StarlarkPagable, StarlarkValue, Value, starlark_value};
use starlark::{starlark_module, starlark_simple_value};

/// Value with the name `log`.
#[derive(Debug, ProvidesStaticType, NoSerialize, StarlarkPagable, Allocative)]
pub(super) struct Log;

starlark_simple_value!(Log);

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("log")
    }
}

#[starlark_value(type = "log")]
impl<'v> StarlarkValue<'v> for Log {
    fn get_methods() -> Option<&'static Methods> {
        static METHODS: MethodsStatic = MethodsStatic::new("log", methods);
        Some(METHODS.methods())
    }

    fn invoke(
        &self,
        _me: Value<'v>,
        args: &Arguments<'v, '_>,
        eval: &mut Evaluator<'v, '_, '_>,
    ) -> starlark::Result<Value<'v>> {
        let message = args.positional1(eval.heap())?;
        let named = args.names_map()?;
        tell("info", message, named.iter().map(|(name, value)| (name.as_str(), *value)));
        Ok(Value::new_none())
    }
}

#[starlark_module]
fn methods(builder: &mut MethodsBuilder) {
    fn debug<'v>(
        this: &Log,
        #[starlark(require = pos)] message: Value<'v>,
        #[starlark(kwargs)] named: SmallMap<String, Value<'v>>,
    ) -> starlark::Result<NoneType> {
        let _ = this;
        Ok(tell("debug", message, named.iter().map(|(name, value)| (name.as_str(), *value))))
    }

    fn info<'v>(
        this: &Log,
        #[starlark(require = pos)] message: Value<'v>,
        #[starlark(kwargs)] named: SmallMap<String, Value<'v>>,
    ) -> starlark::Result<NoneType> {
        let _ = this;
        Ok(tell("info", message, named.iter().map(|(name, value)| (name.as_str(), *value))))
    }

    fn warn<'v>(
        this: &Log,
        #[starlark(require = pos)] message: Value<'v>,
        #[starlark(kwargs)] named: SmallMap<String, Value<'v>>,
    ) -> starlark::Result<NoneType> {
        let _ = this;
        Ok(tell("warn", message, named.iter().map(|(name, value)| (name.as_str(), *value))))
    }

    fn error<'v>(
        this: &Log,
        #[starlark(require = pos)] message: Value<'v>,
        #[starlark(kwargs)] named: SmallMap<String, Value<'v>>,
    ) -> starlark::Result<NoneType> {
        let _ = this;
        Ok(tell("error", message, named.iter().map(|(name, value)| (name.as_str(), *value))))
    }
}

fn tell<'n, 'v>(level: &str, message: Value<'v>, named: impl Iterator<Item = (&'n str, Value<'v>)>) -> NoneType {
    let mut line = format!("{level}: {}", message.to_str());
    for (name, value) in named {
        line.push_str(&format!(" {name}={}", value.to_str()));
    }
    // One call is one line, whatever the values hold.
    write_line(&line.replace('\r', "\\r").replace('\n', "\\n"));
    NoneType
}

/// Writes a line to standard error at once. A closed standard error is not an error of the script.
pub(crate) fn write_line(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}
