//! The limits of a program that is compiled, and the counts that are held against them.

use wasmparser::{FunctionBody, Operator, Payload};

use crate::error::{Error, Result};
use crate::form::MAX_PROGRAM_BYTES;

/// Limits of a program. The largest known programs, interpreters of whole languages, reach a fifth of each default.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Maximum bytes.
    pub program_bytes: usize,
    /// Maximum core modules inside of a component.
    pub modules: u64,
    /// Maximum components inside of a component.
    pub components: u64,
    /// Maximum functions of all modules.
    pub functions: u64,
    /// Maximum local variables of all functions. A few bytes can declare tens of thousands, each with a cost.
    pub locals: u64,
    /// Maximum types.
    pub types: u64,
    /// Maximum imports.
    pub imports: u64,
    /// Maximum exports.
    pub exports: u64,
    /// Maximum globals.
    pub globals: u64,
    /// Maximum data segments. A linker that cuts data finely, as Go's does, stops at 100,000.
    pub data: u64,
    /// Maximum element segments.
    pub elements: u64,
    /// Maximum aliases and canonical functions.
    pub definitions: u64,
    /// Maximum instances of modules and components, with all that those create in turn.
    pub instances: u64,
    /// Maximum bytes of one function: a compiler's time and memory can grow faster than a function does.
    pub function_bytes: usize,
    /// Maximum targets in the branch tables of one function.
    pub branch_targets: usize,
    /// Maximum nesting depth of one function's blocks.
    pub block_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            program_bytes: MAX_PROGRAM_BYTES,
            modules: 200,
            components: 500,
            functions: 200_000,
            locals: 5_000_000,
            types: 100_000,
            imports: 100_000,
            exports: 100_000,
            globals: 100_000,
            data: 200_000,
            elements: 100_000,
            definitions: 200_000,
            instances: 1000,
            function_bytes: 2 << 20,
            branch_targets: 100_000,
            block_depth: 20_000,
        }
    }
}

/// Count for one kind of item in the whole program.
struct Count {
    items: &'static str,
    max: u64,
    found: u64,
}

impl Count {
    fn new(items: &'static str, max: u64) -> Self {
        Self { items, max, found: 0 }
    }

    fn add(&mut self, more: impl Into<u64>) -> Result<()> {
        self.found = self.found.saturating_add(more.into());
        let Self { items, max, found } = self;
        match found > max {
            true => Err(Error::Limit(format!("it has {found} {items} or more, and at most {max} are compiled"))),
            false => Ok(()),
        }
    }
}

/// Counts of a program so far.
pub(super) struct Counts<'l> {
    limits: &'l Limits,
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

impl<'l> Counts<'l> {
    pub(super) fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            modules: Count::new("core modules", limits.modules),
            components: Count::new("components inside", limits.components),
            functions: Count::new("functions", limits.functions),
            locals: Count::new("local variables", limits.locals),
            types: Count::new("types", limits.types),
            imports: Count::new("imports", limits.imports),
            exports: Count::new("exports", limits.exports),
            globals: Count::new("globals", limits.globals),
            data: Count::new("data segments", limits.data),
            elements: Count::new("element segments", limits.elements),
            definitions: Count::new("aliases and canonical functions", limits.definitions),
        }
    }

    /// Counts a section's items or a function's parts.
    ///
    /// # Errors
    ///
    /// A limit is exceeded, or a function cannot be parsed.
    pub(super) fn add(&mut self, payload: &Payload<'_>) -> Result<()> {
        match payload {
            Payload::ModuleSection { .. } => self.modules.add(1_u32),
            Payload::ComponentSection { .. } => self.components.add(1_u32),
            Payload::CodeSectionStart { count, .. } => self.functions.add(*count),
            Payload::CodeSectionEntry(body) => self.add_function(body),
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

    fn add_function(&mut self, body: &FunctionBody<'_>) -> Result<()> {
        let Limits { function_bytes, branch_targets, block_depth, .. } = *self.limits;
        let (at, bytes) = (body.range().start, body.range().len());
        let refused = |found: String| Err(Error::Limit(format!("the function at byte {at} has {found}")));
        if bytes > function_bytes {
            return refused(format!("{bytes} bytes, and at most {function_bytes} are compiled"));
        }
        for declared in body.get_locals_reader()? {
            self.locals.add(declared?.0)?;
        }
        let mut operators = body.get_operators_reader()?;
        let (mut targets, mut depth) = (0, 0_usize);
        while !operators.eof() {
            match operators.read()? {
                Operator::BrTable { targets: more } => targets += more.len() as usize,
                Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } | Operator::TryTable { .. } => {
                    depth += 1;
                }
                Operator::End => depth = depth.saturating_sub(1),
                _ => continue,
            }
            if targets > branch_targets {
                return refused(format!(
                    "branch tables of {targets} targets, and at most {branch_targets} are compiled"
                ));
            }
            if depth > block_depth {
                return refused(format!("blocks nested deeper than {block_depth} levels"));
            }
        }
        Ok(())
    }
}
