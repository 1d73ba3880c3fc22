//! One module of two that call each other: CPython, which has the memory, and the guest, which imports it. Imports of one that
//! the other exports become direct references; the exports of the guest remain, and the memory.

use std::collections::HashMap;

use wasm_encoder::reencode::{self, Reencode};
use wasm_encoder::{
    CodeSection, ConstExpr, CustomSection, DataSection, ElementSection, EntityType, ExportKind, ExportSection,
    FunctionSection, GlobalSection, GlobalType, ImportSection, MemorySection, MemoryType, Module, TableSection,
    TagSection, TypeSection, ValType,
};
use wasmparser::{ExternalKind, FunctionBody, Operator, Parser, Payload, TypeRef};

/// Size of a page in bytes.
const PAGE: u64 = 1 << 16;
/// End of the stack of CPython, which begins the memory: sessions use it between programs.
const PYTHON_STACK: i32 = 16 << 20;
/// Pages of the stack of the guest.
const STACK: u64 = 16;
/// Name of the module of CPython in imports of the guest.
const PYTHON: &str = "python";
/// Prefix of custom sections with the contract of a component.
const CONTRACT: &str = "component-type";

/// Sections of a module.
#[derive(Default)]
struct Sections<'a> {
    types: Option<wasmparser::TypeSectionReader<'a>>,
    imports: Vec<wasmparser::Import<'a>>,
    functions: Option<wasmparser::FunctionSectionReader<'a>>,
    tables: Option<wasmparser::TableSectionReader<'a>>,
    memories: Vec<wasmparser::MemoryType>,
    tags: Option<wasmparser::TagSectionReader<'a>>,
    globals: Option<wasmparser::GlobalSectionReader<'a>>,
    exports: HashMap<&'a str, wasmparser::Export<'a>>,
    elements: Option<wasmparser::ElementSectionReader<'a>>,
    bodies: Vec<FunctionBody<'a>>,
    data: Option<wasmparser::DataSectionReader<'a>>,
    contracts: Vec<(&'a str, &'a [u8])>,
    /// `true` if it has a start function.
    starts: bool,
}

impl<'a> Sections<'a> {
    fn read(module: &'a [u8]) -> Result<Self, String> {
        let mut sections = Self::default();
        for payload in Parser::new(0).parse_all(module) {
            let collected = |error: wasmparser::BinaryReaderError| error.to_string();
            match payload.map_err(collected)? {
                Payload::TypeSection(types) => sections.types = Some(types),
                Payload::ImportSection(imports) => {
                    sections.imports = imports.into_imports().collect::<Result<_, _>>().map_err(collected)?;
                }
                Payload::FunctionSection(functions) => sections.functions = Some(functions),
                Payload::TableSection(tables) => sections.tables = Some(tables),
                Payload::MemorySection(memories) => {
                    sections.memories = memories.into_iter().collect::<Result<_, _>>().map_err(collected)?;
                }
                Payload::GlobalSection(globals) => sections.globals = Some(globals),
                Payload::ExportSection(exports) => {
                    for export in exports {
                        let export = export.map_err(collected)?;
                        sections.exports.insert(export.name, export);
                    }
                }
                Payload::ElementSection(elements) => sections.elements = Some(elements),
                Payload::CodeSectionEntry(body) => sections.bodies.push(body),
                Payload::DataSection(data) => sections.data = Some(data),
                Payload::CustomSection(custom) if custom.name().starts_with(CONTRACT) => {
                    sections.contracts.push((custom.name(), custom.data()));
                }
                Payload::TagSection(tags) => sections.tags = Some(tags),
                Payload::StartSection { .. } => sections.starts = true,
                _ => (),
            }
        }
        Ok(sections)
    }

    fn export(&self, name: &str, kind: ExternalKind) -> Option<u32> {
        self.exports.get(name).filter(|export| export.kind == kind).map(|export| export.index)
    }

    fn imported(&self, is_kind: fn(&TypeRef) -> bool) -> u32 {
        self.imports.iter().filter(|import| is_kind(&import.ty)).count() as u32
    }

    fn imported_functions(&self) -> u32 {
        self.imported(|kind| matches!(kind, TypeRef::Func(_)))
    }
}

/// Numbers of the items of one module in the merged one.
struct Numbers {
    types: u32,
    functions: Vec<u32>,
    tables: u32,
    tags: u32,
    globals: u32,
    elements: u32,
    data: u32,
}

impl Reencode for Numbers {
    type Error = std::convert::Infallible;

    fn type_index(&mut self, index: u32) -> Result<u32, reencode::Error> {
        Ok(self.types + index)
    }

    fn function_index(&mut self, index: u32) -> Result<u32, reencode::Error> {
        Ok(self.functions[index as usize])
    }

    fn table_index(&mut self, index: u32) -> Result<u32, reencode::Error> {
        Ok(self.tables + index)
    }

    fn tag_index(&mut self, index: u32) -> Result<u32, reencode::Error> {
        Ok(self.tags + index)
    }

    fn global_index(&mut self, index: u32) -> Result<u32, reencode::Error> {
        Ok(self.globals + index)
    }

    fn element_index(&mut self, index: u32) -> Result<u32, reencode::Error> {
        Ok(self.elements + index)
    }

    fn data_index(&mut self, index: u32) -> Result<u32, reencode::Error> {
        Ok(self.data + index)
    }
}

/// Returns the initial size of a module's memory in bytes.
///
/// # Errors
///
/// The bytes are no module, or it has no memory.
pub(crate) fn memory(module: &[u8]) -> Result<u64, String> {
    let sections = Sections::read(module)?;
    sections.memories.first().map(|memory| memory.initial * PAGE).ok_or_else(|| "the module has no memory".to_owned())
}

/// Merges the module of CPython and the guest.
///
/// # Errors
///
/// The modules do not fit together.
pub(crate) fn modules(python: &[u8], guest: &[u8]) -> Result<Vec<u8>, String> {
    let (python, guest) = (Sections::read(python)?, Sections::read(guest)?);
    let failed = |error: reencode::Error| error.to_string();
    // That of the guest fills memory with zeros, which a fresh memory has.
    if python.starts {
        return Err("CPython has a start function".to_owned());
    }
    if stack_pointer(&python)? != Some(PYTHON_STACK) || stack_pointer(&guest)?.is_none() {
        return Err("the stack of a module is not where it is expected".to_owned());
    }
    let mut python_numbers = numbers(&python, [0; 6]);
    let mut guest_numbers = numbers(
        &guest,
        [
            python.types.as_ref().map_or(0, |types| types.count()),
            python.tables.as_ref().map_or(0, |tables| tables.count()),
            python.tags.as_ref().map_or(0, |tags| tags.count()),
            python.globals.as_ref().map_or(0, |globals| globals.count()),
            python.elements.as_ref().map_or(0, |elements| elements.count()),
            python.data.as_ref().map_or(0, |data| data.count()),
        ],
    );

    // Functions: the imports that remain, those of CPython, those of the guest.
    let mut imports = ImportSection::new();
    let is_kept = |import: &wasmparser::Import<'_>| import.module != PYTHON && matches!(import.ty, TypeRef::Func(_));
    let kept = guest.imports.iter().filter(|import| is_kept(import)).count() as u32;
    let first_of_guest = kept + python.bodies.len() as u32;
    let of_python = |index: u32| kept + (index - python.imported_functions());
    let of_guest = |index: u32| first_of_guest + (index - guest.imported_functions());
    for import in &python.imports {
        let found = guest.export(import.name, ExternalKind::Func);
        let missing = || format!("CPython imports `{}` `{}`, which the guest lacks", import.module, import.name);
        python_numbers.functions.push(of_guest(found.ok_or_else(missing)?));
    }
    python_numbers.functions.extend((0..python.bodies.len() as u32).map(|index| kept + index));
    let mut pages = python.memories.first().map_or(0, |memory| memory.initial);
    for import in &guest.imports {
        match import.ty {
            TypeRef::Func(kind) if is_kept(import) => {
                let number = imports.len();
                imports.import(import.module, import.name, EntityType::Function(guest_numbers.types + kind));
                guest_numbers.functions.push(number);
            }
            TypeRef::Func(_) => {
                let found = python.export(import.name, ExternalKind::Func);
                let found = found.ok_or_else(|| format!("CPython has no `{}`", import.name))?;
                guest_numbers.functions.push(of_python(found));
            }
            TypeRef::Memory(memory) => pages = pages.max(memory.initial),
            _ => return Err(format!("the guest imports `{}`, which is no function", import.name)),
        }
    }
    guest_numbers.functions.extend((0..guest.bodies.len() as u32).map(|index| first_of_guest + index));
    pages += STACK;

    let mut module = Module::new();
    let mut types = TypeSection::new();
    let mut functions = FunctionSection::new();
    let mut tables = TableSection::new();
    let mut tags = TagSection::new();
    let mut globals = GlobalSection::new();
    let mut elements = ElementSection::new();
    let mut code = CodeSection::new();
    let mut data = DataSection::new();
    for (sections, numbers) in [(&python, &mut python_numbers), (&guest, &mut guest_numbers)] {
        let is_guest = numbers.types > 0;
        if let Some(section) = sections.types.clone() {
            numbers.parse_type_section(&mut types, section).map_err(failed)?;
        }
        if let Some(section) = sections.functions.clone() {
            numbers.parse_function_section(&mut functions, section).map_err(failed)?;
        }
        if let Some(section) = sections.tables.clone() {
            numbers.parse_table_section(&mut tables, section).map_err(failed)?;
        }
        if let Some(section) = sections.tags.clone() {
            numbers.parse_tag_section(&mut tags, section).map_err(failed)?;
        }
        for (index, global) in sections.globals.clone().into_iter().flatten().enumerate() {
            let global = global.map_err(|error| error.to_string())?;
            if is_guest && index == 0 {
                // The stack pointer: the guest was linked with its stack at the addresses of the stack of CPython.
                let kind = GlobalType { val_type: ValType::I32, mutable: true, shared: false };
                globals.global(kind, &ConstExpr::i32_const((pages * PAGE) as i32));
            } else {
                numbers.parse_global(&mut globals, global).map_err(failed)?;
            }
        }
        if let Some(section) = sections.elements.clone() {
            numbers.parse_element_section(&mut elements, section).map_err(failed)?;
        }
        for body in &sections.bodies {
            numbers.parse_function_body(&mut code, body.clone()).map_err(failed)?;
        }
        if let Some(section) = sections.data.clone() {
            numbers.parse_data_section(&mut data, section).map_err(failed)?;
        }
    }
    let mut memories = MemorySection::new();
    memories.memory(MemoryType { minimum: pages, maximum: None, memory64: false, shared: false, page_size_log2: None });
    let mut exports = ExportSection::new();
    exports.export("memory", ExportKind::Memory, 0);
    let provided: Vec<_> = python.imports.iter().map(|import| import.name).collect();
    let mut kept: Vec<_> = guest.exports.values().filter(|export| export.kind == ExternalKind::Func).collect();
    kept.retain(|export| !provided.contains(&export.name));
    kept.sort_by_key(|export| export.name);
    for export in kept {
        exports.export(export.name, ExportKind::Func, of_guest(export.index));
    }
    module.section(&types).section(&imports).section(&functions).section(&tables).section(&memories);
    // A component without exceptions can run where the engine has none.
    if !tags.is_empty() {
        module.section(&tags);
    }
    module.section(&globals).section(&exports).section(&elements).section(&code).section(&data);
    for (name, data) in &guest.contracts {
        module.section(&CustomSection { name: (*name).into(), data: (*data).into() });
    }
    Ok(module.finish())
}

/// Initial value of a module's first global, if that can be its stack pointer.
fn stack_pointer(sections: &Sections<'_>) -> Result<Option<i32>, String> {
    let failed = |error: wasmparser::BinaryReaderError| error.to_string();
    let Some(global) = sections.globals.clone().into_iter().flatten().next() else { return Ok(None) };
    let global = global.map_err(failed)?;
    let value = match global.init_expr.get_operators_reader().read().map_err(failed)? {
        Operator::I32Const { value } if global.ty.mutable => Some(value),
        _ => None,
    };
    Ok(value)
}

/// Numbers of a module whose items follow as many others.
fn numbers(sections: &Sections<'_>, [types, tables, tags, globals, elements, data]: [u32; 6]) -> Numbers {
    let count = sections.imported_functions() as usize + sections.bodies.len();
    Numbers { types, functions: Vec::with_capacity(count), tables, tags, globals, elements, data }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PYTHON_TEXT: &str = r#"(module
        (import "system" "twice" (func $twice (param i32) (result i32)))
        (memory (export "memory") 256)
        (global (mut i32) (i32.const 16777216))
        (table 1 funcref) (elem (i32.const 0) func $run)
        (func $run (export "run") (result i32) (call $twice (i32.const 21))))"#;
    const GUEST_TEXT: &str = r#"(module
        (import "python" "memory" (memory 257))
        (import "python" "run" (func $run (result i32)))
        (import "host" "now" (func $now (result i32)))
        (global $stack (mut i32) (i32.const 1048576))
        (table 1 funcref) (elem (i32.const 0) func $answer)
        (func (export "twice") (param i32) (result i32) (i32.mul (local.get 0) (i32.const 2)))
        (func $answer (export "answer") (result i32) (i32.add (call $run) (i32.add (call $now) (global.get $stack)))))"#;

    fn merged(python: &str, guest: &str) -> Result<Vec<u8>, String> {
        let bytes = |text: &str| wat::parse_str(text).expect("a module");
        modules(&bytes(python), &bytes(guest))
    }

    #[test]
    fn two_modules_become_one_that_imports_what_neither_has() {
        let merged = merged(PYTHON_TEXT, GUEST_TEXT).expect("a module");
        wasmparser::validate(&merged).expect("a valid module");
        let sections = Sections::read(&merged).expect("a module");
        let imports: Vec<_> = sections.imports.iter().map(|import| import.name).collect();
        assert_eq!(imports, ["now"]);
        let mut exports: Vec<_> = sections.exports.keys().copied().collect();
        exports.sort_unstable();
        assert_eq!(exports, ["answer", "memory"]);
        assert_eq!(sections.memories[0].initial, 257 + STACK);
    }

    #[test]
    fn exceptions_of_both_remain() {
        let throws = "(tag $other) (tag $own (param i32)) (func (export \"throws\") (throw $own (i32.const 1)))";
        let python = PYTHON_TEXT.replace("(memory", &format!("{throws} (memory"));
        let merged = merged(&python, &GUEST_TEXT.replace("(global $stack", &format!("{throws} (global $stack")))
            .expect("a module");
        wasmparser::validate(&merged).expect("a valid module");
        let tags = Sections::read(&merged).expect("a module").tags;
        assert_eq!(tags.map(|tags| tags.count()), Some(4));
    }

    #[test]
    fn modules_that_do_not_fit_together_are_refused() {
        for (python, guest) in [
            (PYTHON_TEXT.replace("\"twice\"", "\"thrice\""), GUEST_TEXT.to_owned()),
            (PYTHON_TEXT.to_owned(), GUEST_TEXT.replace("\"python\" \"run\"", "\"python\" \"walk\"")),
            (PYTHON_TEXT.replace("16777216", "1048576"), GUEST_TEXT.to_owned()),
            (PYTHON_TEXT.replace("(table 1", "(func $begin) (start $begin) (table 1"), GUEST_TEXT.to_owned()),
        ] {
            assert!(merged(&python, &guest).is_err(), "{python} {guest}");
        }
        assert!(memory(&wat::parse_str("(module)").expect("a module")).is_err());
    }
}
