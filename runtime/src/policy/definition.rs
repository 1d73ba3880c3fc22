//! Digest of a tool's definition: everything in its source except its program's bytes. It binds an approval to the
//! definition that a person approved, and is only used for comparison.

use std::path::Path;

use serde_json::{Value, json};

use crate::source;
use crate::tool::{Basis, Body, Capabilities, FileRequest, Tool};

use super::real_path;

/// Computes the digest of a tool's definition, as `sha256:HEX`: description, schemas, fixed arguments, requests,
/// limits, stated behavior, and the source file. The position in that file is excluded, because other entries do not
/// change the tool.
pub(crate) fn definition(tool: &Tool) -> String {
    definition_at(tool, |path| real_path(path).to_string_lossy().into_owned())
}

/// Computes the digest of a tool's definition like [`definition`], with its paths as `place` writes them.
pub(super) fn definition_at(tool: &Tool, place: impl Fn(&Path) -> String) -> String {
    // `enablement` and `disabled` only determine whether it is called, and `imports` follow from the bytes of the
    // program.
    let Tool {
        name,
        description,
        parameters,
        text,
        body,
        requested,
        limits,
        interface,
        origin,
        enablement: _,
        imports: _,
        disabled: _,
        unusable: _,
    } = tool;
    let stated = interface.rows().into_iter().filter(|row| row.basis == Basis::Declared);
    let stated = stated.map(|row| json!([row.field, row.value]));
    let definition = json!({
        "name": name,
        "description": description,
        "parameters": parameters,
        "text": text.as_ref().map(|text| format!("{text:?}")),
        "body": describe_body(body),
        "requested": requests(requested, &place),
        "limits": format!("{limits:?}"),
        "stated": stated.collect::<Value>(),
        "source": [json!(origin.format.approval_name()), json!(place(&origin.path))],
    });
    source::digest(definition.to_string().as_bytes())
}

/// Describes the body and its fixed arguments. Bytes of programs have a digest of their own.
fn describe_body(body: &Body) -> Value {
    match body {
        Body::Command { program: _, argv, command_line: None } => json!(["command", argv]),
        Body::Command { program: _, argv, command_line: Some(line) } => json!(["command", argv, **line]),
        Body::Rich(rich) => json!(["rich", rich.tool]),
        Body::Typed(typed) => json!(["function", typed.function.to_string()]),
        Body::Script(script) => json!(["script", script.digest, script.background]),
        Body::Interpreter(interpreter) => {
            json!(["interpreter", interpreter.language, interpreter.guide, interpreter.implementation])
        }
        Body::Remote(remote) => json!(["remote", remote.digest]),
        Body::Skill(skill) => json!(["skill", skill.name, skill.digest]),
        Body::SkillScripts(skill) => json!(["scripts of a skill", skill.name, skill.digest]),
        Body::Absent => json!(["absent"]),
        Body::Builtin(builtin) => json!(["builtin", format!("{builtin:?}")]),
    }
}

fn requests(requested: &Capabilities, place: &impl Fn(&Path) -> String) -> Value {
    let files = match &requested.files {
        FileRequest::None => Value::Null,
        FileRequest::Workspace(access) => json!(access),
        // Folders do not depend on the spelling of the path of the source.
        FileRequest::Folders(folders) => {
            folders.iter().map(|folder| json!([place(&folder.path), folder.access])).collect::<Value>()
        }
    };
    json!({ "files": files, "others": describe_others(requested) })
}

/// Describes all requests except those for files. Stored approvals depend on this text, so it keeps its field names
/// when fields of [`Capabilities`] are renamed.
fn describe_others(requested: &Capabilities) -> String {
    let Capabilities {
        files: _,
        env,
        secrets,
        network,
        exec,
        delegate,
        meta,
        cache,
        model,
        tools,
        from_program,
        declared,
    } = requested;
    format!(
        "Capabilities {{ files: None, env: {env:?}, secrets: {secrets:?}, network: {network:?}, exec: {exec:?}, \
         delegate: {delegate}, meta: {meta}, cache: {cache}, model: {model}, tools: {tools:?}, \
         by_program: {from_program}, stated: {declared} }}"
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::tool::tests::plain;
    use crate::tool::{Access, CommandLine, Destination, FolderRequest, Format, NetworkRequest, Script};

    fn tool() -> Tool {
        let mut tool = plain("t");
        tool.description = Some("says what it does".into());
        tool.parameters = Some(json!({"type": "object", "properties": {"a": {"type": "string"}}}));
        tool.body = Body::Command {
            program: "/x/t.wasm".into(),
            argv: vec!["./t".into(), "--dry-run".into()],
            command_line: None,
        };
        tool
    }

    #[test]
    fn every_change_of_a_definition_changes_its_digest() {
        let script = |background| {
            let digest = "sha256:00".into();
            Body::Script(Arc::new(Script { source: "x".into(), place: None, digest, background }))
        };
        type Change = Box<dyn Fn(&mut Tool)>;
        let changes: Vec<(&str, Change)> = vec![
            ("name", Box::new(|tool| tool.name = "u".into())),
            ("description", Box::new(|tool| tool.description = Some("says something else".into()))),
            ("no description", Box::new(|tool| tool.description = None)),
            ("schema", Box::new(|tool| tool.parameters.as_mut().unwrap()["properties"]["b"] = json!({}))),
            ("default", Box::new(|tool| tool.parameters.as_mut().unwrap()["properties"]["a"]["default"] = json!("x"))),
            (
                "fixed argument",
                Box::new(|tool| {
                    tool.body = Body::Command {
                        program: "/x/t.wasm".into(),
                        argv: vec!["./t".into(), "--force".into()],
                        command_line: None,
                    }
                }),
            ),
            (
                "joined arguments",
                Box::new(|tool| {
                    tool.body = Body::Command {
                        program: "/x/t.wasm".into(),
                        argv: vec!["./t --dry-run".into()],
                        command_line: None,
                    }
                }),
            ),
            (
                "command line",
                Box::new(|tool| {
                    let Body::Command { command_line, .. } = &mut tool.body else { unreachable!() };
                    *command_line = Some(Arc::new(CommandLine::passthrough()));
                }),
            ),
            ("script", Box::new(move |tool| tool.body = script(false))),
            ("background", Box::new(move |tool| tool.body = script(true))),
            ("environment", Box::new(|tool| tool.requested.env = vec!["TOKEN".into()])),
            ("files", Box::new(|tool| tool.requested.files = FileRequest::Workspace(Access::Read))),
            ("files to write", Box::new(|tool| tool.requested.files = FileRequest::Workspace(Access::Write))),
            (
                "folder",
                Box::new(|tool| {
                    tool.requested.files = FileRequest::Folders(vec![FolderRequest {
                        path: "/x".into(),
                        access: Access::Read,
                        beside: "/".into(),
                    }]);
                }),
            ),
            ("network", Box::new(|tool| tool.requested.network = NetworkRequest::Workspace)),
            (
                "host",
                Box::new(|tool| {
                    let host: Destination = "a.example".parse().unwrap();
                    tool.requested.network = NetworkRequest::Destinations(vec![host]);
                }),
            ),
            ("other tools", Box::new(|tool| tool.requested.tools = vec!["*".parse().unwrap()])),
            ("memory", Box::new(|tool| tool.limits.memory = Some(1 << 30))),
            ("deadline", Box::new(|tool| tool.limits.deadline = Some(std::time::Duration::from_secs(3)))),
            (
                "stated fact",
                Box::new(|tool| {
                    tool.interface.declare("is_read_only", json!(true)).unwrap();
                }),
            ),
            (
                "alias",
                Box::new(|tool| {
                    tool.interface.declare("aliases", json!(["v"])).unwrap();
                }),
            ),
            ("source", Box::new(|tool| tool.origin.path = Path::new("/elsewhere/tools.json").into())),
            ("format", Box::new(|tool| tool.origin.format = Format::AgentTool)),
        ];
        let mut seen = vec![("nothing", definition(&tool()))];
        assert_eq!(seen[0].1, definition(&tool()), "the same is the same");
        for (change, apply) in &changes {
            let mut tool = tool();
            apply(&mut tool);
            let digest = definition(&tool);
            assert!(seen.iter().all(|(_, known)| *known != digest), "{change}: {seen:?}");
            seen.push((change, digest));
        }
    }

    #[test]
    fn an_approval_of_an_earlier_version_still_applies() {
        let others = describe_others(&Capabilities { from_program: true, ..Capabilities::default() });
        assert_eq!(
            others,
            "Capabilities { files: None, env: [], secrets: [], network: None, exec: [], delegate: false, meta: false, \
             cache: false, model: false, tools: [], by_program: true, stated: false }"
        );
        assert_eq!(Format::AgentTool.approval_name(), "record");
        assert_eq!(Format::Markdown.approval_name(), "artifact");
        assert_eq!(definition(&tool()), "sha256:e2dcdf9bfd3f48ef81fcc99f582f85010e8957023d0abb5cc56da8b502465186");
        let line = r#"{"argv":[{"each":"argv","argv":["{argv}"],"options":true}],"stdin":"{stdin}","output":"text"}"#;
        assert_eq!(json!(CommandLine::passthrough()).to_string(), line);
    }

    #[test]
    fn the_position_in_a_file_and_the_spelling_of_its_path_are_no_part_of_a_definition() {
        let folder = tempfile::tempdir().unwrap();
        let mut tool = tool();
        tool.origin.path = folder.path().join("tools.json").into();
        let before = definition(&tool);
        tool.origin.index = Some(7);
        tool.origin.path = folder.path().join("./x/../tools.json").into();
        assert_eq!(definition(&tool), before);
    }
}
