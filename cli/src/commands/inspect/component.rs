//! `inspect` of a program: the capabilities that it could request and the flags that grant them, imports that cannot be linked,
//! and its metadata. All text of the program is printed inert.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use toolcrib::source::inspect::{Capability, CapabilityRequest, Granted, ImportedInterface, Inspection, ProgramKind};
use toolcrib_base::render::{self, Tone};

const ASKS: [&str; 2] = ["COULD REQUEST", "GRANTED BY"];
const IMPORTS: [&str; 3] = ["FOR", "IMPORTS", "USES"];
const UNLINKED: [&str; 2] = ["CANNOT BE LINKED", "WHY"];
const NOT_TOOLS: [&str; 2] = ["NO TOOL", "WHY"];
const METADATA: [&str; 2] = ["METADATA", "FROM THE AUTHOR (NOT VERIFIED)"];

/// A program and its tools.
pub(super) struct Component {
    pub(super) path: PathBuf,
    pub(super) about: Inspection,
    /// Names of the tools.
    pub(super) tools: Vec<String>,
    /// Reason why it has none, if it could not be loaded.
    pub(super) problem: Option<String>,
}

impl Component {
    /// Inspects the program in a file; its tools are not known yet.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let about = toolcrib::source::inspect(path)?;
        Ok(Self { path: path.to_path_buf(), about, tools: Vec::new(), problem: None })
    }

    /// Returns all facts as JSON.
    pub(super) fn record(&self) -> anyhow::Result<Value> {
        let mut record = serde_json::to_value(&self.about)?;
        record["path"] = json!(self.path.to_string_lossy());
        record["tools"] = json!(self.tools);
        record["problem"] = json!(self.problem);
        Ok(record)
    }

    /// Returns the sheet of a program that is not shown as one tool.
    pub(super) fn sheet(&self) -> String {
        let mut lines = vec![self.place()];
        lines.extend(self.lines().into_iter().map(|(label, text)| format!("  {label:10}{text}")));
        std::iter::once(lines.join("\n")).chain(self.tables()).collect::<Vec<_>>().join("\n\n")
    }

    /// Returns the facts of one line each, with their labels.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let Inspection { kind, digest, bytes, core_modules, pure, exports, .. } = &self.about;
        let mut lines = vec![
            ("program", format!("{}, {}", self.place(), render::counted(*bytes, "byte"))),
            ("digest", digest.clone()),
            ("kind", self::kind(*kind, *core_modules).to_owned()),
        ];
        if let Some(exports) = exports.as_ref().filter(|exports| !exports.is_empty()) {
            lines.push(("exports", render::one_line(&exports.join(", "))));
        }
        if let Some(why) = pure {
            lines.push(("pure", format!("proven: it can reach only its inputs, because {why}")));
        }
        match (&self.problem, self.tools.is_empty()) {
            (Some(problem), _) => lines.push(("no tool", render::one_line(problem))),
            (None, false) => lines.push(("tools", render::one_line(&self.tools.join(", ")))),
            (None, true) => {}
        }
        lines.extend(self.about.notes.iter().map(|note| ("note", render::one_line(note))));
        lines
    }

    /// Returns the tables: requests, imports, imports that cannot be linked, exports that are no tools, metadata.
    pub(super) fn tables(&self) -> impl Iterator<Item = String> {
        let asks = self.about.asks.as_deref().unwrap_or_default();
        [requests(asks), imports(asks), unlinked(asks), self.not_tools(), self.metadata()].into_iter().flatten()
    }

    fn place(&self) -> String {
        render::one_line(&render::from_here(&self.path).to_string_lossy())
    }

    fn not_tools(&self) -> Option<String> {
        let rows = self.about.not_tools.iter().map(|one| [render::one_line(&one.export), render::one_line(&one.why)]);
        (!self.about.not_tools.is_empty()).then(|| render::table(NOT_TOOLS, rows))
    }

    fn metadata(&self) -> Option<String> {
        let metadata = &self.about.metadata;
        let texts = metadata.texts().map(|(field, text)| [field.to_owned(), render::one_line(text)]);
        let producers = metadata.producers.iter().map(|producer| {
            let with_version = format!("{} {}", producer.name, producer.version);
            [render::one_line(&producer.field), render::one_line(&with_version)]
        });
        let rows: Vec<_> = texts.chain(producers).collect();
        (!rows.is_empty()).then(|| render::table(METADATA, rows.into_iter()))
    }
}

fn kind(kind: ProgramKind, core_modules: usize) -> String {
    let word = match kind {
        ProgramKind::Rich => "rich tool",
        ProgramKind::Command => "command",
        ProgramKind::Module => return "core module for WASI preview 1".to_owned(),
        ProgramKind::Functions => "component of functions",
        ProgramKind::Interpreter => "interpreter of programs, for `run_code`",
        _ => "component, neither a command nor a rich tool nor one of functions",
    };
    match core_modules {
        1 => format!("{word}, 1 core module inside"),
        several => format!("{word}, {several} core modules inside"),
    }
}

fn requests(asks: &[CapabilityRequest]) -> Option<String> {
    let rows = asks.iter().map(|request| [request.capability.words().to_owned(), granted(request)]);
    let table = Some(render::table(ASKS, rows)).filter(|_| !asks.is_empty())?;
    let terminal = io::stdout().is_terminal();
    let tones = std::iter::once(None).chain(asks.iter().map(tone));
    let lines = table.lines().zip(tones).map(|(line, tone)| match tone {
        Some(tone) => render::paint(tone, line, terminal).into_owned(),
        None => line.to_owned(),
    });
    Some(lines.collect::<Vec<_>>().join("\n"))
}

fn granted(request: &CapabilityRequest) -> String {
    match request.granted {
        Granted::Always => "always available".to_owned(),
        Granted::OnRequest => "always available, unless the tool lists its capabilities without it".to_owned(),
        Granted::Flags if request.capability == Capability::Environment => {
            format!("arguments always available, variables {}", request.flags.join(", "))
        }
        Granted::Flags => request.flags.join(", "),
        _ if request.capability == Capability::Unknown => "cannot be linked".to_owned(),
        _ => "never granted".to_owned(),
    }
}

fn tone(request: &CapabilityRequest) -> Option<Tone> {
    match request.granted {
        Granted::Always => Some(Tone::Quiet),
        Granted::Never if request.capability == Capability::Unknown => Some(Tone::Bad),
        Granted::Never => Some(Tone::Doubtful),
        _ => None,
    }
}

fn imports(asks: &[CapabilityRequest]) -> Option<String> {
    let mut last = None;
    let interfaces = asks.iter().flat_map(|request| request.interfaces.iter().map(|it| (request.capability, it)));
    let rows = interfaces.map(|(capability, interface)| {
        let group = if last.replace(capability) == Some(capability) { "" } else { capability.words() };
        [group.to_owned(), full_name(interface), render::one_line(&interface.functions.join(" "))]
    });
    let table = render::table(IMPORTS, rows);
    (!asks.is_empty()).then_some(table)
}

fn unlinked(asks: &[CapabilityRequest]) -> Option<String> {
    let interfaces = asks.iter().flat_map(|request| &request.interfaces);
    let rows: Vec<_> =
        interfaces.filter_map(|interface| Some([full_name(interface), interface.cannot_link.clone()?])).collect();
    (!rows.is_empty()).then(|| render::table(UNLINKED, rows.into_iter()))
}

fn full_name(interface: &ImportedInterface) -> String {
    let version = interface.version.as_ref().map(|version| format!("@{version}")).unwrap_or_default();
    render::one_line(&(interface.name.clone() + &version))
}
