//! Facts about a tool that follow from its program's imports and its requests, for facts that its source does not declare. Only
//! rules that the sandbox enforces count as proof: a program reaches nothing but its imports, and a tool writes nothing unless
//! it requests to.

use toolcrib_component::interfaces::{self, Effect, preview1};

use crate::tool::{Access, Basis, Capabilities, Fact, FileRequest, Format, Import, Tool};

/// Fills in facts that are proven and not declared.
pub(super) fn infer(tool: &mut Tool) {
    let Some(imports) = tool.imports.as_deref() else { return };
    let reach = Reach::of(imports);
    if reach.network.is_some() || reach.other {
        return;
    }
    let interface = &mut tool.interface;
    interface.safety.is_open_world.infer(false);
    let stores = reach.stores && (tool.requested.cache || !tool.requested.declared);
    if !stores && (!reach.files || !requests_to_write(&tool.requested)) {
        interface.safety.is_read_only.infer(true);
    }
    // A tool that declares itself read-only is granted nothing to write, so the rest follows in either case.
    if interface.safety.is_read_only.value {
        interface.infer_read_only();
    }
}

/// Withdraws a declaration of an Agent Tool record that only the program could prove. Returns a sentence about it.
pub(super) fn doubt(tool: &mut Tool) -> Option<String> {
    let warning = unsafe_together(tool).filter(|_| tool.origin.format == Format::AgentTool)?;
    tool.interface.safety.is_concurrency_safe = Fact::default(false);
    Some(format!("{warning}, so each runs alone"))
}

/// Returns the declarations of a source that contradict known facts, each in a sentence.
pub(super) fn contradictions(tool: &Tool) -> Vec<String> {
    let safety = &tool.interface.safety;
    let mut found = Vec::new();
    let network = tool.imports.as_deref().and_then(|imports| Reach::of(imports).network);
    if let Some(network) = network.filter(|_| declared(&safety.is_open_world, false)) {
        found.push(format!("is_open_world is declared false, but its program imports `{network}`"));
    }
    // A Markdown tool has a separate word for calls that may run in parallel.
    found.extend(unsafe_together(tool).filter(|_| tool.origin.format != Format::Markdown).map(str::to_owned));
    if declared(&safety.is_read_only, true) && declared(&safety.is_destructive, true) {
        found.push("is_read_only and is_destructive are both declared true".to_owned());
    }
    if declared(&safety.is_read_only, true) && tool.requested.declared && requests_to_write(&tool.requested) {
        found.push(
            "is_read_only is declared true, but its capabilities request write access, which is not granted".to_owned(),
        );
    }
    found
}

fn unsafe_together(tool: &Tool) -> Option<&'static str> {
    let safety = &tool.interface.safety;
    (declared(&safety.is_concurrency_safe, true) && !safety.is_read_only.value)
        .then_some("is_concurrency_safe is declared true, but it is not read-only: parallel calls can conflict")
}

fn declared(fact: &Fact<bool>, value: bool) -> bool {
    fact.basis == Basis::Declared && fact.value == value
}

/// Returns `true` if a tool may be granted write access.
fn requests_to_write(requested: &Capabilities) -> bool {
    match &requested.files {
        FileRequest::None => !requested.declared,
        FileRequest::Workspace(access) => *access == Access::Write,
        FileRequest::Folders(folders) => folders.iter().any(|folder| folder.access == Access::Write),
    }
}

/// Effects that a program can have through its imports.
#[derive(Default)]
struct Reach {
    /// `true` if it can change files that it is granted.
    files: bool,
    /// `true` if it can store values for later calls.
    stores: bool,
    /// The first import that reaches a network.
    network: Option<String>,
    /// `true` if an import has another effect or is unknown.
    other: bool,
}

impl Reach {
    fn of(imports: &[Import]) -> Self {
        let mut reach = Self::default();
        for import in imports {
            if import.from != preview1::MODULE {
                reach.add(interfaces::effect(import), || import.from.clone());
                continue;
            }
            for function in &import.functions {
                reach.add(preview1::effect(function), || format!("{}.{function}", preview1::MODULE));
            }
        }
        reach
    }

    fn add(&mut self, effect: Effect, name: impl FnOnce() -> String) {
        match effect {
            Effect::None => {}
            Effect::Files => self.files = true,
            Effect::Store => self.stores = true,
            Effect::Network => {
                self.network.get_or_insert_with(name);
            }
            _ => self.other = true,
        }
    }
}
