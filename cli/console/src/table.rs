//! Tables: columns with texts or numbers, and links in their headings that sort by them.

use maud::{Markup, html};

use super::query::Query;

/// Parameters for an order in an address, and the two directions.
const SORT: &str = "sort";
const DIRECTION: &str = "order";
const UP: &str = "up";
const DOWN: &str = "down";

/// Column of a table.
#[derive(Debug, Clone)]
pub(super) struct Column {
    label: String,
    is_number: bool,
    key: Option<&'static str>,
}

/// Key that sorts a list: its name in an address, and `true` if the largest value comes first.
pub(super) type SortKey = (&'static str, bool);

/// Order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SortOrder {
    pub(super) key: &'static str,
    pub(super) is_descending: bool,
    /// All keys of the list, the default first.
    keys: &'static [SortKey],
}

impl Column {
    pub(super) fn text(label: impl Into<String>) -> Self {
        Self { label: label.into(), is_number: false, key: None }
    }

    pub(super) fn number(label: impl Into<String>) -> Self {
        Self { is_number: true, ..Self::text(label) }
    }

    /// Lets the heading sort the list by this key.
    pub(super) fn by(self, key: &'static str) -> Self {
        Self { key: Some(key), ..self }
    }
}

impl SortOrder {
    /// Reads the order in an address: one of the keys, or the first one.
    pub(super) fn read(query: &Query, keys: &'static [SortKey]) -> Self {
        let wanted = query.get(SORT);
        let (key, begins) = keys.iter().find(|(key, _)| wanted == Some(key)).unwrap_or(&keys[0]);
        let is_descending = match query.get(DIRECTION) {
            Some(UP) => false,
            Some(DOWN) => true,
            _ => *begins,
        };
        Self { key, is_descending, keys }
    }

    /// Returns `true` for the order of an address that names none.
    pub(super) fn is_default(self) -> bool {
        (self.key, self.is_descending) == self.keys[0]
    }

    /// Turns an ascending comparison into this direction.
    pub(super) fn directed(self, ascending: std::cmp::Ordering) -> std::cmp::Ordering {
        if self.is_descending { ascending.reverse() } else { ascending }
    }

    /// Hidden fields of a form that keep this order.
    pub(super) fn fields(self) -> Markup {
        let direction = if self.is_descending { DOWN } else { UP };
        html! {
            @if !self.is_default() {
                input type="hidden" name=(SORT) value=(self.key);
                input type="hidden" name=(DIRECTION) value=(direction);
            }
        }
    }

    /// Describes the order behind the name of a list.
    pub(super) fn in_words(self) -> String {
        format!("by {}, {}", self.key, if self.is_descending { "descending" } else { "ascending" })
    }

    /// Returns the address of the same list by a key: in its own direction at first, then in the other one.
    fn address(self, query: &Query, key: &'static str) -> String {
        let begins = self.keys.iter().find(|(of, _)| *of == key).is_none_or(|(_, begins)| *begins);
        let is_descending = if key == self.key { !self.is_descending } else { begins };
        query.changed(&[(SORT, key), (DIRECTION, if is_descending { DOWN } else { UP })])
    }

    fn aria(self, key: Option<&'static str>) -> Option<&'static str> {
        let is_own = key == Some(self.key);
        is_own.then_some(if self.is_descending { "descending" } else { "ascending" })
    }
}

/// Table of texts with a caption, without an order.
pub(super) fn table<const N: usize>(caption: &str, headings: [&str; N], rows: Vec<[Markup; N]>) -> Markup {
    columns(caption, headings.map(Column::text), rows, None)
}

/// Table with a caption. On a narrow screen each row becomes a card, and the roles keep its meaning for screen readers.
pub(super) fn columns<const N: usize>(
    caption: &str,
    columns: [Column; N],
    rows: Vec<[Markup; N]>,
    order: Option<(&Query, SortOrder)>,
) -> Markup {
    html! {
        table role="table" class=[order.map(|_| "sorted")] {
            caption { (caption) }
            thead role="rowgroup" {
                tr role="row" {
                    @for column in &columns {
                        @let sorted = order.and_then(|(_, order)| order.aria(column.key));
                        th scope="col" role="columnheader" class=[class(column)] aria-sort=[sorted] { (heading(column, order)) }
                    }
                }
            }
            tbody role="rowgroup" {
                @for row in rows {
                    tr role="row" {
                        @for (cell, column) in row.into_iter().zip(&columns) {
                            td role="cell" class=[class(column)] data-label=(column.label) { div { (cell) } }
                        }
                    }
                }
            }
        }
    }
}

fn class(column: &Column) -> Option<&'static str> {
    column.is_number.then_some("num")
}

fn heading(column: &Column, order: Option<(&Query, SortOrder)>) -> Markup {
    let sorting = order.and_then(|(query, order)| Some((query, order, column.key?)));
    html! {
        @match sorting {
            Some((query, order, key)) => a href=(order.address(query, key)) {
                (column.label)
                @match order.aria(Some(key)) {
                    Some("descending") => span aria-hidden="true" { " ↓" },
                    Some(_) => span aria-hidden="true" { " ↑" },
                    None => {}
                }
            },
            None => (column.label),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [SortKey; 2] = [("time", true), ("tool", false)];

    #[test]
    fn headings_sort_and_turn_the_direction() {
        let shown = |query: &[u8]| {
            let query = Query::read(query);
            let order = SortOrder::read(&query, &KEYS);
            let all = [Column::text("Tool").by("tool"), Column::number("Time").by("time"), Column::text("Rest")];
            (order, columns("c", all, vec![], Some((&query, order))).into_string())
        };
        let (order, page) = shown(b"q=a&page=3");
        assert!(order.is_default() && order.is_descending, "{order:?}");
        for part in [
            "?q=a&amp;sort=tool&amp;order=up",
            "?q=a&amp;sort=time&amp;order=up",
            "aria-sort=\"descending\"",
            "class=\"num\"",
        ] {
            assert!(page.contains(part), "{part} in {page}");
        }
        let (order, page) = shown(b"sort=tool&order=down");
        assert!((order.key, order.is_descending, order.is_default()) == ("tool", true, false), "{order:?}");
        assert!(page.contains("?sort=tool&amp;order=up") && page.contains("?sort=time&amp;order=down"), "{page}");
        assert!(shown(b"sort=%3Cx%3E&order=%3Cx%3E").0.is_default());
    }
}
