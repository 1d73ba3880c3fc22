//! List of the tools that the command's options load.

use maud::{Markup, html};
use toolcrib::{Runtime, Tool};
use toolcrib_sources::tool_facts::{disabled, first_sentence, granted, needs, permissions, source};

use super::layout::{self, MAX_CELL, ROWS, choice, field, pager, table, word};
use super::view::Views;
use super::visit::{Page, Tab, ViewError, Visit};

const HEADINGS: [&str; 6] = ["Tool", "State", "Needs", "Granted", "Source", "Description"];
/// States of a tool.
const STATES: [&str; 2] = ["usable", "disabled"];

pub(super) fn page(views: &Views, visit: &Visit) -> Result<Page, ViewError> {
    let (query, runtime) = (&visit.query, views.tools.runtime()?);
    let text = query.get("q").map(str::to_lowercase);
    let is_found = |tool: &Tool| {
        text.as_ref().is_none_or(|text| {
            let description = tool.description.as_deref().unwrap_or_default();
            tool.name.to_lowercase().contains(text) || description.to_lowercase().contains(text)
        })
    };
    let is_wanted = |tool: &Tool| match query.get("state") {
        Some("usable") => disabled(&runtime, tool).is_none(),
        Some("disabled") => disabled(&runtime, tool).is_some(),
        _ => true,
    };
    let mut found: Vec<&Tool> = runtime.tools().filter(|tool| is_wanted(tool) && is_found(tool)).collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    let (page, all) = (query.page(), found.len());
    let rows: Vec<[Markup; 6]> =
        found.into_iter().skip(page * ROWS).take(ROWS).map(|tool| row(visit, &runtime, tool)).collect();
    let content = html! {
        h1 { "Tools" }
        form.filter role="search" {
            (field("q", "Search", "name or description", query))
            (choice("state", "State", "all", STATES, query.get("state")))
            button { "Filter" }
            @if text.is_some() || query.get("state").is_some() { a href=(visit.path("tools")) { "Show all" } }
        }
        @if rows.is_empty() { p.empty { "No tool matches." } } @else {
            (table("Tools with what they need and what these options grant", HEADINGS, rows))
        }
        (pager(query, page, all > (page + 1) * ROWS))
    };
    Ok(Page { title: "Tools".to_owned(), tab: Tab::Tools, content })
}

fn row(visit: &Visit, runtime: &Runtime, tool: &Tool) -> [Markup; 6] {
    let needs = if tool.requested.declared { permissions(&needs(tool)) } else { "undeclared".to_owned() };
    let state = if disabled(runtime, tool).is_some() { "disabled" } else { "usable" };
    [
        layout::link(&visit.path("tool"), "name", &tool.name, &layout::line(&tool.name, 80)),
        word(state),
        layout::line(&needs, MAX_CELL),
        layout::line(&permissions(&granted(runtime, tool)), MAX_CELL),
        layout::line(&source(tool), 80),
        layout::line(&first_sentence(tool), MAX_CELL),
    ]
}
