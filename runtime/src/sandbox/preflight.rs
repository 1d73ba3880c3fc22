//! A look at a program before anything of it is compiled: one pass over its bytes, in time and memory in proportion to
//! their number, that counts what compiling has to pay for. What is beyond a bound is refused with what was found; whether
//! the rest is valid, the compiler says.

mod custom;
mod feature;
mod scope;

use wasmparser::{BinaryReaderError, FunctionBody, Operator, Parser, Payload};

use crate::source::{MAX_PROGRAM_BYTES, check_nesting};

use super::cache::Form;
use super::wasi::preview1;
use scope::Scopes;

/// The most bytes of one function: a compiler's work and memory can grow faster than a function does.
const MAX_FUNCTION_BYTES: usize = 2 << 20;
/// The most targets of the branch tables of one function.
const MAX_TARGETS: usize = 100_000;
/// The deepest that the blocks of one function may be nested.
const MAX_BLOCK_DEPTH: usize = 20_000;

/// Refuses a program that is none, or of which compiling would have to pay for more than any tool needs.
///
/// # Errors
///
/// A text that says what was found, and how much of it is taken.
pub(super) fn check(program: &[u8]) -> Result<(), String> {
    if program.len() > MAX_PROGRAM_BYTES {
        return Err(format!("more than the {MAX_PROGRAM_BYTES} bytes that are loaded"));
    }
    if !Parser::is_component(program) && !Parser::is_core_wasm(program) {
        return Err("not a WebAssembly component or module; compile it for `wasm32-wasip2` or `wasm32-wasip1`".into());
    }
    check_nesting(program)?;
    let mut counts = Counts::default();
    let mut scopes = Scopes::new();
    for payload in Parser::new(0).parse_all(program) {
        let payload = payload.map_err(told)?;
        counts.count(&payload)?;
        feature::check(&payload)?;
        scopes.visit(payload)?;
    }
    match Form::of(program) {
        Form::Component => Ok(()),
        Form::Module => preview1::check(program),
    }
}

/// How much there is of something in the whole program.
struct Count {
    what: &'static str,
    most: u64,
    found: u64,
}

impl Count {
    const fn of(what: &'static str, most: u64) -> Self {
        Self { what, most, found: 0 }
    }

    fn add(&mut self, more: impl Into<u64>) -> Result<(), String> {
        self.found = self.found.saturating_add(more.into());
        let Self { what, most, found } = self;
        if found > most {
            Err(format!("it has {found} {what} or more, and at most {most} are compiled"))
        } else {
            Ok(())
        }
    }
}

/// What is counted. The largest programs that are known, interpreters of whole languages, have a fifth of each.
struct Counts {
    modules: Count,
    components: Count,
    functions: Count,
    locals: Count,
    types: Count,
    imports: Count,
    exports: Count,
    globals: Count,
    data: Count,
    elements: Count,
    definitions: Count,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            modules: Count::of("core modules", 200),
            components: Count::of("components inside", 500),
            functions: Count::of("functions", 200_000),
            // A few bytes can declare tens of thousands of them, each of which costs the compiler.
            locals: Count::of("local variables", 5_000_000),
            types: Count::of("types", 100_000),
            imports: Count::of("imports", 100_000),
            exports: Count::of("exports", 100_000),
            globals: Count::of("globals", 100_000),
            // A linker that cuts its data finely, as Go's does, stops at 100,000.
            data: Count::of("segments of data", 200_000),
            elements: Count::of("segments of elements", 100_000),
            definitions: Count::of("aliases and canonical functions", 200_000),
        }
    }
}

impl Counts {
    fn count(&mut self, payload: &Payload<'_>) -> Result<(), String> {
        match payload {
            Payload::ModuleSection { .. } => self.modules.add(1_u32),
            Payload::ComponentSection { .. } => self.components.add(1_u32),
            Payload::CodeSectionStart { count, .. } => self.functions.add(*count),
            Payload::CodeSectionEntry(body) => self.function(body),
            Payload::TypeSection(section) => self.types.add(section.count()),
            Payload::CoreTypeSection(section) => self.types.add(section.count()),
            Payload::ComponentTypeSection(section) => self.types.add(section.count()),
            Payload::ImportSection(section) => self.imports.add(section.count()),
            Payload::ComponentImportSection(section) => self.imports.add(section.count()),
            Payload::ExportSection(section) => self.exports.add(section.count()),
            Payload::ComponentExportSection(section) => self.exports.add(section.count()),
            Payload::GlobalSection(section) => self.globals.add(section.count()),
            Payload::DataSection(section) => self.data.add(section.count()),
            Payload::ElementSection(section) => self.elements.add(section.count()),
            Payload::ComponentAliasSection(section) => self.definitions.add(section.count()),
            Payload::ComponentCanonicalSection(section) => self.definitions.add(section.count()),
            _ => Ok(()),
        }
    }

    fn function(&mut self, body: &FunctionBody<'_>) -> Result<(), String> {
        let (at, bytes) = (body.range().start, body.range().len());
        let refused = |found: String| Err(format!("the function at byte {at} has {found}"));
        if bytes > MAX_FUNCTION_BYTES {
            return refused(format!("{bytes} bytes, and at most {MAX_FUNCTION_BYTES} are compiled"));
        }
        for declared in body.get_locals_reader().map_err(told)? {
            self.locals.add(declared.map_err(told)?.0)?;
        }
        let mut operators = body.get_operators_reader().map_err(told)?;
        let (mut targets, mut depth) = (0, 0_usize);
        while !operators.eof() {
            match operators.read().map_err(told)? {
                Operator::BrTable { targets: more } => targets += more.len() as usize,
                Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } | Operator::TryTable { .. } => {
                    depth += 1;
                }
                Operator::End => depth = depth.saturating_sub(1),
                _ => continue,
            }
            if targets > MAX_TARGETS {
                return refused(format!("branch tables of {targets} targets, and at most {MAX_TARGETS} are compiled"));
            }
            if depth > MAX_BLOCK_DEPTH {
                return refused(format!("blocks nested deeper than {MAX_BLOCK_DEPTH} levels"));
            }
        }
        Ok(())
    }
}

fn told(error: BinaryReaderError) -> String {
    error.to_string()
}
