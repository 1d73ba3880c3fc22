//! Text of everything in a tool's definition except its description, its schema and its named requests, one fact a line. A
//! release is compared by it, and the difference is shown to the person who agrees.

use std::fmt::Display;

use serde_json::json;
use toolcrib::tool::{Basis, Body, Capabilities, FileRequest, Glob, NetworkRequest, ScriptedHook, Tool};

/// Facts that are compared elsewhere.
const COMPARED_ELSEWHERE: [&str; 2] = ["description", "runtime_input_schema"];

/// Formats the facts of a tool.
pub(crate) fn tool(tool: &Tool) -> String {
    let mut lines = body(&tool.body);
    lines.extend(ceilings(&tool.requested));
    lines.extend(limits(tool));
    let declared = tool.interface.rows().into_iter().filter(|row| row.basis == Basis::Declared);
    let declared = declared.filter(|row| !COMPARED_ELSEWHERE.contains(&row.field));
    lines.extend(declared.map(|row| format!("{}: {}", row.field, row.value)));
    // A rebuild against other versions of the same interfaces can do nothing more.
    let interface = |from: &str| from.split('@').next().unwrap_or(from).to_owned();
    let mut imports: Vec<String> =
        tool.imports.iter().flat_map(|all| all.iter()).map(|it| interface(&it.from)).collect();
    imports.sort();
    imports.dedup();
    lines.extend(imports.into_iter().map(|import| format!("imports {import}")));
    lines.join("\n")
}

/// Formats the facts of a hook.
pub(crate) fn hook(hook: &ScriptedHook) -> String {
    let mut lines = vec![tool(&hook.tool), format!("event: {}", hook.event), format!("priority: {}", hook.priority)];
    lines.extend(hook.when.tools.iter().map(|glob| format!("handles {}", glob.as_str())));
    lines.extend(hook.when.arguments.iter().map(|(name, glob)| format!("handles {name}={}", glob.as_str())));
    lines.extend(hook.when.expression.iter().map(|expression| format!("handles if {expression}")));
    lines.join("\n")
}

fn body(body: &Body) -> Vec<String> {
    match body {
        Body::Command { program: _, argv, command_line } => {
            let fixed = argv.iter().skip(1).map(|one| format!("fixed argument: {one}"));
            let line = command_line.iter().map(|line| format!("command line: {}", json!(line)));
            fixed.chain(line).collect()
        }
        Body::Rich(rich) => vec![format!("tool of the component: {}", rich.tool)],
        Body::Typed(typed) => vec![format!("function: {}", typed.function)],
        Body::Script(script) => {
            let background = if script.background { ", in the background" } else { "" };
            vec![format!("script: {}{background}", script.digest)]
        }
        Body::Remote(remote) => {
            let server = [format!("server: {}", remote.server.address), format!("tool of the server: {}", remote.name)];
            let claims = ["title", "annotations"]
                .into_iter()
                .filter_map(|field| Some(format!("{field}, as the server claims: {}", remote.pinned.get(field)?)));
            server.into_iter().chain(claims).collect()
        }
        Body::Skill(skill) => {
            // Nothing that it names is granted: a person reads it.
            let stated = skill.front_matter.get("allowed-tools").map(|stated| format!("allowed-tools: {stated}"));
            let files = skill.files.iter().map(|file| format!("file: {} {}", file.path, file.digest));
            stated.into_iter().chain(files).collect()
        }
        Body::SkillScripts(skill) => vec![format!("scripts of the skill {}", skill.digest)],
        _ => Vec::new(),
    }
}

/// Requests without a name: at most everything that the user's flags allow.
fn ceilings(requested: &Capabilities) -> Vec<String> {
    if !requested.declared {
        return vec!["gets everything that flags allow".to_owned()];
    }
    let mut lines = Vec::new();
    if let FileRequest::Workspace(access) = &requested.files {
        lines.push(format!("folders that flags allow: {}", access.as_str()));
    }
    if requested.network == NetworkRequest::Workspace {
        lines.push("hosts that flags allow".to_owned());
    }
    for (kind, names) in [("programs", &requested.exec), ("tools", &requested.tools)] {
        let is_all = |name: &&Glob| name.as_str().chars().all(|c| c == '*');
        lines.extend(names.iter().filter(is_all).map(|_| format!("{kind} that flags allow")));
    }
    if requested.from_program {
        lines.push("requests are declared by the program".to_owned());
    }
    lines
}

fn limits(tool: &Tool) -> Vec<String> {
    fn line(name: &str, value: Option<impl Display>) -> Option<String> {
        value.map(|value| format!("limit {name}: {value}"))
    }
    let limits = &tool.limits;
    let all = [
        line("deadline in ms", limits.deadline.map(|deadline| deadline.as_millis())),
        line("memory", limits.memory),
        line("stdout", limits.stdout),
        line("disk-bytes", limits.disk_bytes),
        line("disk-entries", limits.disk_entries),
        line("fuel", limits.fuel),
        line("requests", limits.requests),
        line("received", limits.received),
    ];
    all.into_iter().flatten().collect()
}
