//! One tool: its source and trust, what it requests and what it is granted, its limits, its arguments and its facts.

use maud::{Markup, html};
use toolcrib::tool::{Row, Trust};
use toolcrib::{Runtime, Tool};
use toolcrib_base::render::{self, one_line, shell_path};
use toolcrib_packages::builtin;
use toolcrib_sources::tool_facts::{basis, disabled, granted, is_informative, limits, requested, shown, source};

use super::layout::{self, MAX_BLOCK, MAX_LISTED, MAX_TEXT, facts};
use super::record::grants;
use super::schema;
use super::states::word;
use super::table::table;
use super::view::Views;
use super::visit::{Page, Tab, ViewError, Visit};

const FACTS: [&str; 4] = ["Part", "Field", "From", "Value"];
const ARGUMENTS: [&str; 4] = ["Argument", "Type", "Rules", "Description"];
/// Facts that the table of arguments shows.
const SCHEMAS: [&str; 2] = ["runtime_input_schema", "model_input_schema"];

pub(super) fn page(views: &Views, visit: &Visit) -> Result<Page, ViewError> {
    let runtime = views.tools.runtime()?;
    let name = visit.query.get("name").unwrap_or_default();
    let Some(tool) = runtime.tool(name) else {
        return Err(ViewError::Unknown("No tool of this name is loaded.".to_owned()));
    };
    let rows = tool.rows().into_iter().filter(|row| is_informative(row) && !SCHEMAS.contains(&row.field));
    let schema = tool.parameters.as_ref().map(schema::rows);
    let content = html! {
        h1 { (layout::line(&tool.name, 120)) }
        @if let Some(description) = &tool.description { (layout::block(description, MAX_BLOCK)) }
        (facts(head(views, visit, &runtime, tool)))
        h2 { "Arguments" }
        @if let Some(text) = &tool.text { p { "It also takes plain text, as " code { (layout::line(&text.field, 120)) } "." } }
        @match schema {
            Some((rows, is_cut)) if !rows.is_empty() => {
                (table("Arguments, from the schema of the tool", ARGUMENTS, rows))
                @if is_cut { p.quiet { "The schema is larger: " code { "toolcrib schema" } " prints it whole." } }
            }
            _ => { p.quiet { "The tool states no arguments." } }
        }
        h2 { "Facts" }
        (table("Declared by the source, inferred from the program, or the safe default", FACTS, rows.map(fact).collect()))
    };
    Ok(Page { title: one_line(&render::shortened(&tool.name, 80)), tab: Tab::Tools, content })
}

fn head<'a>(views: &Views, visit: &Visit, runtime: &Runtime, tool: &Tool) -> Vec<(&'a str, Markup)> {
    let state = disabled(runtime, tool);
    let mut all = vec![
        (
            "State",
            html! {
                (word(if state.is_some() { "disabled" } else { "usable" }))
                @if let Some(reason) = state { " " (layout::line(reason, 1_000)) }
            },
        ),
        (
            "Source",
            html! { (layout::line(&source(tool), 300)) @if let Some(index) = tool.origin.index { " (tool[" (index) "])" } },
        ),
        ("Trust", trust(tool)),
        (
            "Signer",
            html! {
                @match views.tools.sources().signers(&tool.origin.path).as_deref() {
                    Some([]) => "no signer whom you trust has signed the installed bundle",
                    Some(signers) => (layout::line(&signers.join(", "), 300)),
                    None => span.quiet { "not known: the tool is not of an installed bundle" },
                }
            },
        ),
        (
            "Needs",
            html! {
                (layout::line(&requested(&tool.requested), 1_000))
                @if !tool.requested.declared { span.quiet { " (the source states nothing; flags decide)" } }
            },
        ),
        ("Granted", grants(&granted(runtime, tool))),
    ];
    let denied: Vec<String> = runtime
        .grant(&tool.name)
        .map(|grant| grant.denied().iter().map(|denial| denial.capability.clone()).collect())
        .unwrap_or_default();
    if !denied.is_empty() {
        all.push(("Not granted", grants(&denied)));
    }
    if let Some(limited) = runtime.limits(&tool.name) {
        all.push(("Limits", layout::line(&limits(limited), 400)));
    }
    if let Some(program) = tool.body.program() {
        all.push((
            "Program",
            html! { code { (layout::line(&render::from_here(program).display().to_string(), 300)) } },
        ));
    }
    if let Some(imports) = tool.imports.as_ref().filter(|imports| !imports.is_empty()) {
        all.push(("Imports", html! {
            details {
                summary { (imports.len()) " interfaces of the host" }
                ul.plain {
                    @for import in imports.iter().take(MAX_LISTED) { li { code { (layout::line(&import.from, 120)) } } }
                }
            }
        }));
    }
    if visit.session.decides() {
        let form = html! { "Try a call" };
        all.push(("Try", layout::link(&visit.path("tool/call"), "name", &tool.name, &form)));
    }
    let logged = html! { "Logged calls of this tool" };
    all.push(("Calls", layout::link(&visit.path("calls"), "tool", &tool.name, &logged)));
    all
}

/// Shows how far the source of a tool is trusted.
fn trust(tool: &Tool) -> Markup {
    if builtin::holds(&tool.origin.path) {
        return html! { "built in, as trusted as this program" };
    }
    html! {
        @match tool.origin.trust {
            Trust::Operator => { "named by the options of this command" }
            Trust::Reviewed => { "reviewed: everything that it requests is granted" }
            Trust::Host => { "part of the host" }
            _ => {
                "not reviewed: only flags grant what it requests. Review it with "
                code { "toolcrib trust " (layout::line(&shell_path(&tool.origin.path), 300)) }
            }
        }
    }
}

fn fact(row: Row) -> [Markup; 4] {
    [
        layout::line(row.partition, 60),
        html! { code { (layout::line(row.field, 60)) } },
        html! { span.quiet { (basis(row.basis)) } },
        layout::line(&shown(&row.value), MAX_TEXT),
    ]
}
