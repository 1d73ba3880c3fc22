//! A TOML table with keys taken by name, so that remaining keys are errors. Every message names the file, the line and the
//! key.

use std::ops::Range;
use std::sync::Arc;

use anyhow::anyhow;
use serde_json::{Number, Value};
use toml_edit::{Document, Item, TableLike};
use toolcrib_base::render::{Mistake, excerpt};
use toolcrib_base::suggestion;

/// Distance of two marks in a text, in bytes.
const MARK_DISTANCE: usize = 256;

/// A text with its name.
#[derive(Debug, Clone)]
struct File<'a> {
    name: &'a str,
    text: &'a str,
    /// Marks in the order of the text, so that no place is counted from its beginning.
    marks: Arc<[Mark]>,
}

/// Line and column of a byte in a text, both from 1.
#[derive(Debug, Clone, Copy)]
struct Mark {
    byte: usize,
    line: usize,
    column: usize,
}

impl Mark {
    const FIRST: Self = Self { byte: 0, line: 1, column: 1 };

    /// Place after a character.
    fn after(self, c: char) -> Self {
        let byte = self.byte + c.len_utf8();
        match c {
            '\n' => Self { byte, line: self.line + 1, column: 1 },
            _ => Self { byte, column: self.column + 1, ..self },
        }
    }
}

impl<'a> File<'a> {
    fn new(name: &'a str, text: &'a str) -> Self {
        let (mut marks, mut at) = (vec![Mark::FIRST], Mark::FIRST);
        for c in text.chars() {
            at = at.after(c);
            if marks.last().is_none_or(|last| at.byte - last.byte >= MARK_DISTANCE) {
                marks.push(at);
            }
        }
        Self { name, text, marks: marks.into() }
    }

    /// Formats a message about a place in the file. A text without a name is of the command line, and has no places.
    fn at(&self, place: &Range<usize>, message: &str) -> String {
        if self.name.is_empty() {
            return message.to_owned();
        }
        let (line, column) = self.position(place);
        format!("{}:{line}:{column}: {message}", self.name)
    }

    /// Line and column of a place, both from 1; columns count characters.
    fn position(&self, place: &Range<usize>) -> (usize, usize) {
        let later = self.marks.partition_point(|mark| mark.byte <= place.start);
        let mut at = later.checked_sub(1).and_then(|last| self.marks.get(last)).copied().unwrap_or(Mark::FIRST);
        for c in self.text.get(at.byte..).unwrap_or_default().chars() {
            if at.byte >= place.start {
                break;
            }
            at = at.after(c);
        }
        (at.line, at.column)
    }
}

/// A table of a file.
#[derive(Debug)]
pub struct Table<'a> {
    file: File<'a>,
    name: String,
    entries: toml_edit::Table,
    known: Vec<&'static str>,
}

/// A value with its dotted key.
#[derive(Debug)]
pub struct Field<'a> {
    file: File<'a>,
    name: String,
    value: Item,
}

/// Place of a value in a file.
#[derive(Debug)]
pub struct Place<'a> {
    file: File<'a>,
    name: String,
    span: Range<usize>,
}

impl Place<'_> {
    /// An error about the value.
    pub fn error(&self, reason: &str) -> anyhow::Error {
        let message = self.file.at(&self.span, &format!("`{}`: {reason}", self.name));
        Mistake::of_key(message, &self.name).into()
    }
}

impl<'a> Table<'a> {
    /// The whole of a file; `name` is the file's in messages.
    pub fn parse(name: &'a str, text: &'a str) -> anyhow::Result<Self> {
        let file = File::new(name, text);
        let parsed = Document::parse(text).map_err(|error| {
            let place = error.span().unwrap_or_default();
            Mistake::of_text(file.at(&place, &format!("not TOML: {}", error.message())))
        })?;
        Ok(Self { file, name: String::new(), entries: parsed.into_table(), known: Vec::new() })
    }

    /// The value of a key.
    pub fn take(&mut self, key: &'static str) -> Option<Field<'a>> {
        self.known.push(key);
        let value = self.entries.remove(key)?;
        Some(Field { file: self.file.clone(), name: inside(&self.name, key), value })
    }

    /// The value of a key, as [`Field::read`] reads it.
    pub fn read<T>(
        &mut self,
        key: &'static str,
        wanted: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> anyhow::Result<Option<T>> {
        self.take(key).map(|field| field.read(wanted, parse)).transpose()
    }

    /// The value of a key that is a positive whole number.
    pub fn count(&mut self, key: &'static str) -> anyhow::Result<Option<u64>> {
        self.take(key).map(|field| field.count(1, u64::MAX)).transpose()
    }

    /// The value of a key that is a table.
    pub fn table(&mut self, key: &'static str) -> anyhow::Result<Option<Table<'a>>> {
        self.take(key).map(Field::table).transpose()
    }

    /// The place of a key that the table has and should not have.
    pub(super) fn place(&self, key: &str) -> Option<Place<'a>> {
        let value = self.entries.get(key)?;
        Some(Place { file: self.file.clone(), name: inside(&self.name, key), span: span(value) })
    }

    /// Fails with a message about a key that the table needs and does not have.
    pub fn missing(&self, key: &str) -> anyhow::Error {
        anyhow!("{}: `{}` is missing", self.file.name, inside(&self.name, key))
    }

    /// Every key, whatever it is called, with its value.
    pub(crate) fn fields(self) -> impl Iterator<Item = (String, Field<'a>)> {
        let Table { file, name: table, entries, .. } = self;
        entries.into_iter().map(move |(key, value)| {
            let name = inside(&table, &key);
            (key, Field { file: file.clone(), name, value })
        })
    }

    /// Fails if the table has keys that were not taken.
    pub fn end(self) -> anyhow::Result<()> {
        let place = |key: &str| self.entries.key(key).and_then(toml_edit::Key::span).unwrap_or_default();
        let keys = self.entries.iter().map(|(key, _)| (place(key), key));
        let Some((place, key)) = keys.min_by_key(|(place, _)| place.start) else { return Ok(()) };
        let name = inside(&self.name, key);
        let message = self.file.at(&place, &format!("unknown key `{name}`"));
        Err(Mistake::of_key(message, &name).suggesting(suggestion::hint(key, &self.known)).into())
    }
}

impl<'a> Field<'a> {
    /// The table that it is.
    pub fn table(self) -> anyhow::Result<Table<'a>> {
        if !self.value.is_table_like() {
            return Err(self.wrong("a table"));
        }
        let Field { file, name, value } = self;
        let Ok(entries) = value.into_table() else { return Err(anyhow!("`{name}` is not a table")) };
        Ok(Table { file, name, entries, known: Vec::new() })
    }

    /// The place of the value, for an error that is found later.
    pub fn place(&self) -> Place<'a> {
        Place { file: self.file.clone(), name: self.name.clone(), span: span(&self.value) }
    }

    /// Line and column of the value, both from 1.
    pub(super) fn position(&self) -> (usize, usize) {
        self.file.position(&span(&self.value))
    }

    /// Line and column of each array item; empty for any other value.
    pub(super) fn item_positions(&self) -> Vec<(usize, usize)> {
        let places: Vec<_> = match &self.value {
            Item::Value(toml_edit::Value::Array(items)) => items.iter().map(toml_edit::Value::span).collect(),
            Item::ArrayOfTables(tables) => tables.iter().map(toml_edit::Table::span).collect(),
            _ => Vec::new(),
        };
        places.into_iter().map(|place| self.file.position(&place.unwrap_or_default())).collect()
    }

    /// The whole number from `min` to `max` that it is.
    pub(super) fn count(&self, min: u64, max: u64) -> anyhow::Result<u64> {
        let count = self.value.as_integer().and_then(|number| u64::try_from(number).ok());
        count.filter(|count| (min..=max).contains(count)).ok_or_else(|| match (min, max) {
            (1, u64::MAX) => self.wrong("a positive whole number"),
            (min, u64::MAX) => self.wrong(&format!("a whole number, at least {min}")),
            (min, max) => self.wrong(&format!("a whole number from {min} to {max}")),
        })
    }

    /// The number from 0 to `max` that it is.
    pub(super) fn number(&self, max: f64) -> anyhow::Result<f64> {
        #[expect(clippy::cast_precision_loss, reason = "compared with a small maximum")]
        let integer = self.value.as_integer().map(|number| number as f64);
        integer
            .or_else(|| self.value.as_float())
            .filter(|number| (0.0..=max).contains(number))
            .ok_or_else(|| self.wrong(&format!("a number from 0 to {max}")))
    }

    /// The truth value that it is.
    pub(super) fn boolean(&self) -> anyhow::Result<bool> {
        self.value.as_bool().ok_or_else(|| self.wrong("`true` or `false`"))
    }

    /// The table that it is, as a JSON object.
    pub fn object(self) -> anyhow::Result<Value> {
        let mut object = self.value.as_table_like().map(json_of_table).ok_or_else(|| self.wrong("a table"))?;
        // Its members are in the same order, wherever they are in the file.
        object.sort_all_objects();
        Ok(object)
    }

    /// Parses a text. Errors name `wanted` if the value is not a text or `parse` fails without a message.
    pub fn read<T>(&self, wanted: &str, parse: impl Fn(&str) -> Result<T, String>) -> anyhow::Result<T> {
        let Some(text) = self.value.as_str() else { return Err(self.wrong(wanted)) };
        parse(text).map_err(|reason| match reason.is_empty() {
            true => self.wrong(wanted),
            false => self.place().error(&reason),
        })
    }

    /// The items of an array.
    pub fn items(self) -> anyhow::Result<Vec<Field<'a>>> {
        let item = |(at, value)| Field { file: self.file.clone(), name: format!("{}[{at}]", self.name), value };
        match self.value {
            Item::Value(toml_edit::Value::Array(items)) => {
                Ok(items.into_iter().map(Item::Value).enumerate().map(item).collect())
            }
            Item::ArrayOfTables(tables) => Ok(tables.into_iter().map(Item::Table).enumerate().map(item).collect()),
            _ => Err(self.wrong("an array")),
        }
    }

    fn wrong(&self, wanted: &str) -> anyhow::Error {
        let place = span(&self.value);
        let found = excerpt(self.file.text.get(place.clone()).unwrap_or_default());
        let message = self.file.at(&place, &format!("`{}` must be {wanted}, found `{found}`", self.name));
        Mistake::of_key(message, &self.name).into()
    }
}

/// The name of a key in a table; one with a dot is quoted as in the file.
fn inside(table: &str, key: &str) -> String {
    let key = if key.contains('.') { format!("{key:?}") } else { key.to_owned() };
    if table.is_empty() { key } else { format!("{table}.{key}") }
}

/// Place of an item. A table that only the keys below it name is at the first of them.
fn span(item: &Item) -> Range<usize> {
    let below = || item.as_table_like()?.iter().map(|(_, item)| span(item)).min_by_key(|place| place.start);
    item.span().or_else(below).unwrap_or_default()
}

/// Converts an item to JSON; values without a JSON form become text.
fn json_of(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => json_of_value(value),
        Item::Table(table) => json_of_table(table),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| json_of_table(table)).collect(),
    }
}

/// Converts a table to a JSON object.
pub fn json_of_table(table: &dyn TableLike) -> Value {
    table.iter().map(|(key, item)| (key.to_owned(), json_of(item))).collect()
}

fn json_of_value(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => Value::from(text.value().as_str()),
        toml_edit::Value::Integer(number) => Value::from(*number.value()),
        // Infinity is no JSON number.
        toml_edit::Value::Float(number) => {
            let number = *number.value();
            Number::from_f64(number).map_or_else(|| Value::from(number.to_string()), Value::Number)
        }
        toml_edit::Value::Boolean(value) => Value::from(*value.value()),
        toml_edit::Value::Datetime(time) => Value::from(time.value().to_string()),
        toml_edit::Value::Array(items) => items.iter().map(json_of_value).collect(),
        toml_edit::Value::InlineTable(table) => json_of_table(table),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_counted_in_lines_and_characters_wherever_the_marks_are() {
        let line = "ä = '漢字', ".repeat(100);
        let text = format!("{line}\n\n{line}{line}\r\n{}", "x\n".repeat(500));
        let file = File::new("t", &text);
        assert!(file.marks.len() > 10, "{}", file.marks.len());
        let (mut row, mut column) = (1, 1);
        for (at, c) in text.char_indices() {
            assert_eq!(file.position(&(at..at)), (row, column), "{at}");
            (row, column) = if c == '\n' { (row + 1, 1) } else { (row, column + 1) };
        }
        assert_eq!(file.position(&(text.len()..text.len())), (row, column));
        assert_eq!(File::new("t", "").position(&(0..0)), (1, 1));
    }
}
