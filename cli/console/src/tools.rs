//! List of the tools that the command's options load.

use maud::{Markup, html};
use toolcrib::{Runtime, Tool};
use toolcrib_sources::tool_facts::{disabled, first_sentence, granted, needs, permissions, source};

use super::layout::{self, MAX_CELL, ROWS, choice, field, pager};
use super::states::word;
use super::table::{Column, SortKey, SortOrder, columns};
use super::view::Views;
use super::visit::{Page, Tab, ViewError, Visit};

/// Orders of the list.
const KEYS: [SortKey; 3] = [("tool", false), ("state", false), ("source", false)];
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
    let order = SortOrder::read(query, &KEYS);
    let compared = |tool: &Tool| match order.key {
        "state" => disabled(&runtime, tool).is_some().to_string(),
        "source" => source(tool),
        _ => String::new(),
    };
    found.sort_by_cached_key(|tool| (compared(tool), tool.name.clone()));
    if order.is_descending {
        found.reverse();
    }
    let (page, all) = (query.page(), found.len());
    let rows: Vec<[Markup; 6]> =
        found.into_iter().skip(page * ROWS).take(ROWS).map(|tool| row(visit, &runtime, tool)).collect();
    let headings = [
        Column::text("Tool").by("tool"),
        Column::text("State").by("state"),
        Column::text("Needs"),
        Column::text("Granted"),
        Column::text("Source").by("source"),
        Column::text("Description"),
    ];
    let content = html! {
        h1 { "Tools" }
        form.filter role="search" {
            (field("q", "Search", "name or description", query))
            (choice("state", "State", "all", STATES.map(|state| (state, state)), query.get("state")))
            (order.fields())
            button { "Filter" }
            @if text.is_some() || query.get("state").is_some() || !order.is_default() { a href=(visit.path("tools")) { "Show all" } }
        }
        @if rows.is_empty() { p.empty { "No tool matches." } } @else {
            (columns("Tools, their needs and what these options grant", headings, rows, Some((query, order))))
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
        layout::cell(&needs, MAX_CELL),
        layout::path_cell(&permissions(&granted(runtime, tool)), MAX_CELL),
        layout::line(&source(tool), 80),
        layout::cell(&first_sentence(tool), MAX_CELL),
    ]
}
