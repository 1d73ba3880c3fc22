//! Programs: compiling them at most once per cache, and linking them with their imports.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use toolcrib_component::functions::is_contract;
use toolcrib_component::interfaces::{self, Link};
use toolcrib_component::{Form, preflight};
use wasmtime::component::{Component, ComponentExportIndex, InstancePre, Linker};
use wasmtime_wasi::p2::bindings::CommandPre;

use crate::error::Error;
use crate::figures::{CACHE_HITS, CACHE_MISSES, COMPILE_FAILURES, COMPILE_TIME, COMPILED};
use crate::store::cache::Cache;

use super::bindings::{self, Exports};
use super::cache::{self, Code, CodeCache, Imports};
use super::compiler::{self, CompileError, Compiler, Job};
use super::descriptor_budget::DescriptorBudget;
use super::engine::{EngineSet, GuestEngine, Instances};
use super::imports::add_tool_imports;
use super::state::CallState;
use super::wasi::{self, Certificates, HttpClient, preview1};

/// Words of the engine about a program that exceeds a sandbox's capacity, for which it has no type.
const EXCEEDED: [&str; 2] = ["exceeds the configured maximum", "exceeds the per-instance limit"];

/// Engines, linkers and compiled code.
pub(crate) struct Sandbox {
    pub(super) engines: EngineSet,
    cache: Option<CodeCache>,
    /// Compiler of the embedder; without one, programs are compiled in this process.
    compiler: Option<Arc<dyn Compiler>>,
    /// Descriptors that the guests of all calls share.
    pub(super) descriptors: Arc<DescriptorBudget>,
    pub(super) http_client: Arc<HttpClient>,
}

/// Compiled and linked program.
pub(crate) struct Program {
    pub(super) kind: ProgramKind,
    pub(super) counts_fuel: bool,
    /// SHA-256 of the file, as `sha256:HEX`.
    pub(crate) digest: String,
    /// `true` if the program imports an interface that [`WasiExtras`](wasi::WasiExtras) holds data for.
    pub(crate) needs_extras: bool,
}

/// Linked program by the way it is called.
pub(super) enum ProgramKind {
    /// Component that exports `wasi:cli/run`.
    Command {
        pre: CommandPre<CallState>,
        /// Export that checks arguments, if any.
        check: Option<ComponentExportIndex>,
    },
    /// Core module for preview 1, called by its `_start`.
    Module(wasmtime::InstancePre<CallState>),
    /// Component that exports `toolcrib:tool/call`.
    Rich(Box<RichProgram>),
    /// Component that exports functions of its own. Each call names one of them.
    Plain {
        pre: InstancePre<CallState>,
        /// Export that checks arguments, if any.
        check: Option<ComponentExportIndex>,
    },
}

/// Linked rich tool.
pub(super) struct RichProgram {
    pub(super) pre: InstancePre<CallState>,
    pub(super) exports: Exports,
}

impl Program {
    /// Returns the linked component; `None` for a core module.
    pub(super) fn component(&self) -> Option<&InstancePre<CallState>> {
        match &self.kind {
            ProgramKind::Command { pre, .. } => Some(pre.instance_pre()),
            ProgramKind::Module(_) => None,
            ProgramKind::Rich(rich) => Some(&rich.pre),
            ProgramKind::Plain { pre, .. } => Some(pre),
        }
    }

    /// Returns `true` if the program checks arguments itself.
    pub(crate) fn checks(&self) -> bool {
        match &self.kind {
            ProgramKind::Command { check, .. } | ProgramKind::Plain { check, .. } => check.is_some(),
            ProgramKind::Rich(rich) => rich.exports.check.is_some(),
            ProgramKind::Module(_) => false,
        }
    }
}

impl Sandbox {
    /// Creates the engine.
    pub(crate) fn new(
        instances: Instances,
        cache: Option<Cache>,
        compiler: Option<Arc<dyn Compiler>>,
        http_client: HttpClient,
    ) -> Result<Self, Error> {
        Ok(Self {
            engines: EngineSet::new(instances)?,
            cache: cache.map(CodeCache::new),
            compiler,
            descriptors: DescriptorBudget::of_process().clone(),
            http_client: Arc::new(http_client),
        })
    }

    /// Returns `true` if the requests of guests use these name servers and roots.
    pub(crate) fn has_network(&self, name_servers: &[SocketAddr], roots: &Certificates) -> bool {
        self.http_client.has_settings(name_servers, roots)
    }

    /// Compiles and links a program with this digest, or loads it from the cache. This blocks for as long as the compiler
    /// takes.
    ///
    /// # Errors
    ///
    /// [`CompileError::Program`] if the program is at fault, [`CompileError::System`] if the system is. The text contains no
    /// host path.
    pub(crate) fn prepare(&self, bytes: &[u8], digest: String, counts_fuel: bool) -> Result<Program, CompileError> {
        let engine = self.engine(counts_fuel)?;
        let program = (&*digest, Form::of(bytes), Imports::Tool);
        self.linked(engine, || Ok(bytes), program, |code| link(engine, code, digest.clone(), counts_fuel))
    }

    /// Returns `true` if the cache contains the code of a program with this digest that was linked as a tool.
    pub(crate) fn has_linked_tool(&self, digest: &str, counts_fuel: bool) -> bool {
        self.has_linked(digest, counts_fuel, Imports::Tool)
    }

    /// Returns `true` if the cache contains the code of a program with this digest that was linked as an interpreter.
    pub(crate) fn has_linked_interpreter(&self, digest: &str, counts_fuel: bool) -> bool {
        self.has_linked(digest, counts_fuel, Imports::Interpreter)
    }

    fn has_linked(&self, digest: &str, counts_fuel: bool, imports: Imports) -> bool {
        let engine = self.cache.as_ref().zip(self.engine(counts_fuel).ok());
        engine.is_some_and(|(cache, engine)| cache.has_linked(&engine.engine, digest, imports))
    }

    /// Loads and links a program with this digest without its bytes, if the cache contains its code.
    ///
    /// # Errors
    ///
    /// See [`Sandbox::prepare`].
    pub(crate) fn prepare_cached(&self, digest: &str, counts_fuel: bool) -> Result<Option<Program>, CompileError> {
        let engine = self.engine(counts_fuel)?;
        let Some(cache) = &self.cache else { return Ok(None) };
        let code = cache::FORMS.into_iter().find_map(|form| cache.get(&engine.engine, digest, form, Imports::Tool));
        CACHE_HITS.add(u64::from(code.is_some()));
        code.map(|code| link(engine, code, digest.to_owned(), counts_fuel)).transpose()
    }

    /// Compiles and links the component of an interpreter with the imports that `add_imports` links, and takes its exports by
    /// `finish`. Its bytes are read only if the cache has no code for their digest.
    ///
    /// # Errors
    ///
    /// [`CompileError::Program`] if the component is at fault, [`CompileError::System`] if the system is.
    pub(super) fn prepare_component<T>(
        &self,
        (digest, read): (&str, impl FnOnce() -> Result<Bytes, CompileError>),
        counts_fuel: bool,
        add_imports: impl FnOnce(&mut Linker<CallState>) -> wasmtime::Result<()>,
        finish: impl FnOnce(InstancePre<CallState>) -> Result<T, CompileError>,
    ) -> Result<T, CompileError> {
        let engine = self.engine(counts_fuel)?;
        let module = || CompileError::Program("a core module, but a component is required".to_owned());
        let read =
            || read().and_then(|bytes| if Form::of(&bytes) == Form::Component { Ok(bytes) } else { Err(module()) });
        self.linked(engine, read, (digest, Form::Component, Imports::Interpreter), |code| {
            let Code::Component(component) = code else { return Err(module()) };
            let mut linker = Linker::new(&engine.engine);
            let linked = wasi::add_imports(&mut linker, &engine.engine, &component);
            let linked =
                linked.and_then(|()| add_imports(&mut linker)).and_then(|()| linker.instantiate_pre(&component));
            finish(linked.map_err(|error| CompileError::Program(format!("{error:#}")))?)
        })
    }

    /// Returns `true` if there is room for an instance in addition to the instances of the calls.
    pub(crate) fn has_extra_instances(&self) -> bool {
        self.engines.has_extra_instances()
    }

    fn engine(&self, counts_fuel: bool) -> Result<&GuestEngine, CompileError> {
        self.engines.get(counts_fuel).map_err(|error| CompileError::system(error.to_string()))
    }

    /// Links a program with this digest by `link`, after its code was found in the cache, or its bytes were read and compiled.
    fn linked<T, B: AsRef<[u8]>>(
        &self,
        engine: &GuestEngine,
        read: impl FnOnce() -> Result<B, CompileError>,
        (digest, form, imports): (&str, Form, Imports),
        link: impl FnOnce(Code) -> Result<T, CompileError>,
    ) -> Result<T, CompileError> {
        if let Some(known) = self.cache.as_ref().and_then(|cache| cache.get(&engine.engine, digest, form, imports)) {
            CACHE_HITS.add(1);
            return link(known);
        }
        CACHE_MISSES.add(u64::from(self.cache.is_some()));
        let bytes = read()?;
        let began = Instant::now();
        let compiled = self.compiled(engine, bytes.as_ref());
        COMPILE_TIME.add(u64::try_from(began.elapsed().as_nanos()).unwrap_or_default());
        if compiled.is_ok() { &COMPILED } else { &COMPILE_FAILURES }.add(1);
        let code = compiled?;
        let loaded = cache::load(&engine.engine, &code, form).map_err(|error| {
            let reason = format!("the compiled program cannot be loaded: {error:#}");
            // A program that exceeds the capacity of a slot exceeds it on every later attempt too.
            match EXCEEDED.iter().any(|words| reason.contains(words)) {
                true => CompileError::Program(reason),
                false => CompileError::system(reason),
            }
        })?;
        let linked = link(loaded);
        let stored_as = match &linked {
            Ok(_) => Some(Some(imports)),
            Err(CompileError::Program(_)) => Some(None),
            Err(CompileError::System { .. }) => None,
        };
        if let Some((cache, linked)) = self.cache.as_ref().zip(stored_as) {
            cache.put(&engine.engine, digest, form, linked, &code);
        }
        linked
    }

    /// Returns the compiled code of a component or a core module.
    fn compiled(&self, engine: &GuestEngine, bytes: &[u8]) -> Result<Vec<u8>, CompileError> {
        preflight::check(bytes, &preflight::Limits::default())
            .map_err(|error| CompileError::Program(error.to_string()))?;
        match &self.compiler {
            None => compiler::compiled(&engine.engine, bytes).map_err(CompileError::Program),
            Some(compiler) => {
                compiler::code(compiler.compile(&Job { program: bytes.into(), settings: engine.settings })?)
            }
        }
    }
}

/// Links compiled code with its imports.
///
/// # Errors
///
/// See [`Sandbox::prepare`].
fn link(engine: &GuestEngine, code: Code, digest: String, counts_fuel: bool) -> Result<Program, CompileError> {
    let component = match code {
        Code::Component(component) => component,
        Code::Module(module) => {
            let pre = preview1::link(&engine.engine, &module).map_err(CompileError::Program)?;
            return Ok(Program { kind: ProgramKind::Module(pre), counts_fuel, digest, needs_extras: false });
        }
    };
    let exports = Exports::of(&component);
    let is_plain = is_plain(engine, &component);
    let is_tool = exports.is_some() || is_plain;
    let link_error = |error: wasmtime::Error| CompileError::system(format!("{error:#}"));
    let mut linker = Linker::new(&engine.engine);
    wasi::add_imports(&mut linker, &engine.engine, &component).map_err(link_error)?;
    let needs_extras = wasi::add_drafts(&mut linker, &engine.engine, &component).map_err(link_error)?;
    if is_tool {
        add_tool_imports(&mut linker).map_err(link_error)?;
    }
    let pre = linker.instantiate_pre(&component);
    let pre = pre.map_err(|error| CompileError::Program(import_error(engine, &component, is_tool, &error)))?;
    let kind = match (exports, CommandPre::new(pre.clone())) {
        (Some(exports), _) => ProgramKind::Rich(Box::new(RichProgram { pre, exports })),
        (None, Ok(pre)) => ProgramKind::Command { pre, check: bindings::check_export(&component) },
        (None, Err(_)) if is_plain => ProgramKind::Plain { pre, check: bindings::check_export(&component) },
        (None, Err(_)) => return Err(CompileError::Program(export_error(engine, &component))),
    };
    Ok(Program { kind, counts_fuel, digest, needs_extras })
}

/// Returns `true` if a component exports something besides the interfaces of hosts.
fn is_plain(engine: &GuestEngine, component: &Component) -> bool {
    component.component_type().exports(&engine.engine).any(|(name, _)| !is_contract(name))
}

/// Explains why a component cannot be linked, by the imports that are not available.
fn import_error(engine: &GuestEngine, component: &Component, is_tool: bool, error: &wasmtime::Error) -> String {
    let imports = component.component_type();
    let unknown: Vec<_> = imports
        .imports(&engine.engine)
        .map(|(name, _)| name)
        .filter(|name| interfaces::find_import(name).is_none_or(|known| known.link == Link::Tools && !is_tool))
        .map(|name| format!("`{name}`"))
        .collect();
    match unknown.is_empty() {
        true => format!("{error:#}"),
        false => {
            format!("it imports {}, which is not available to tools; build it without this import", unknown.join(", "))
        }
    }
}

/// Explains why a component cannot be called, by its exports.
fn export_error(engine: &GuestEngine, component: &Component) -> String {
    let component = component.component_type();
    let exports: Vec<_> = component.exports(&engine.engine).map(|(name, _)| format!("`{name}`")).collect();
    let exports = if exports.is_empty() { "nothing".to_owned() } else { exports.join(", ") };
    format!(
        "not a tool: it exports {exports}; a tool exports functions of its own, a command `wasi:cli/run`, a rich tool `{}`",
        bindings::CALL
    )
}
