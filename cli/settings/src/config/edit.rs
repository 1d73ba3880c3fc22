//! Edits of a settings file that keep its comments and its order.

use anyhow::{Context, anyhow};
use toml_edit::{Array, DocumentMut, Item, Table, Value};
use toolcrib_base::render::{Advice, MAX_NAMED, excerpt, one_line};
use toolcrib_base::suggestion;

use super::key::{KEYS, Key, find, sections};
use super::kind::Kind;

/// Section in which a path may lead below the name.
const NESTED: &str = "config";
/// Table of the profiles.
const PROFILE: &str = "profile";

/// Change of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change<'a> {
    /// Sets the value.
    Set(&'a str),
    /// Adds an item to a list.
    Add(&'a str),
    /// Removes the key.
    Remove,
}

/// Splits a dotted name into the parts of its path, with the key.
///
/// # Errors
///
/// The key is unknown.
pub fn path_of(dotted: &str) -> anyhow::Result<(&'static Key, Vec<&str>)> {
    let Some(key) = find(dotted) else {
        let message = format!("unknown key `{}`", one_line(dotted));
        return Err(Advice::new(message, nearest(dotted)).into());
    };
    let (section, name) = dotted.split_once('.').context("a key has a section")?;
    let parts = match section {
        NESTED => std::iter::once(section).chain(name.split('.')).collect(),
        _ => vec![section, name],
    };
    Ok((key, parts))
}

/// Returns a hint about an unknown key: the nearest one, or the keys of its section.
fn nearest(dotted: &str) -> String {
    if let Some(key) = KEYS.iter().find(|key| key.options().contains(&dotted)) {
        return format!("did you mean `{key}`?");
    }
    let all: Vec<String> = KEYS.iter().map(ToString::to_string).collect();
    if let Some(nearest) = suggestion::nearest(dotted, all.iter().map(String::as_str)) {
        return format!("did you mean `{nearest}`?");
    }
    let section = dotted.split('.').next().unwrap_or_default();
    let named: Vec<&str> = KEYS.iter().filter(|key| key.section == section).map(|key| key.name).collect();
    match named.is_empty() {
        true => suggestion::hint(section, &sections()),
        false => suggestion::hint(dotted.split_once('.').map_or("", |(_, name)| name), &named),
    }
}

impl Change<'_> {
    /// Makes the change in a text, below the tables `above`; `None` if there is nothing to remove. A key that the text has can
    /// be removed even if it is unknown, but no section or profile as a whole: it may deny something.
    ///
    /// # Errors
    ///
    /// The text is not TOML, a part of the path is not a table, an item is added to something else than a list, or a section
    /// or a profile would be removed.
    pub fn make(self, text: &str, above: &[&str], dotted: &str) -> anyhow::Result<Option<String>> {
        let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| anyhow!("{error}"))?;
        let known = path_of(dotted);
        if self == Change::Remove {
            let parts: Vec<&str> =
                known.as_ref().map_or_else(|_| dotted.split('.').collect(), |(_, parts)| parts.clone());
            let path: Vec<&str> = above.iter().copied().chain(parts).collect();
            let (last, tables) = path.split_last().context("the path is not empty")?;
            if let Some(table) = below(document.as_table_mut(), &path).filter(|_| is_whole(&path)) {
                return keep(dotted, table).map(|()| None);
            }
            let removed = below(document.as_table_mut(), tables).and_then(|table| table.remove(last));
            return match (removed, known) {
                (Some(_), _) => Ok(Some(document.to_string())),
                (None, known) => known.map(|_| None),
            };
        }
        let (key, parts) = known?;
        let path: Vec<&str> = above.iter().copied().chain(parts.iter().copied()).collect();
        let (last, tables) = path.split_last().context("the path is not empty")?;
        let kind = if parts.len() > 2 { None } else { Some(&key.kind) };
        let mut table: &mut dyn toml_edit::TableLike = document.as_table_mut();
        for (depth, name) in tables.iter().enumerate() {
            let item = table.entry(name).or_insert_with(|| {
                let mut new = Table::new();
                new.set_implicit(depth + 1 < tables.len());
                Item::Table(new)
            });
            table = item.as_table_like_mut().ok_or_else(|| {
                let hint = "`toolcrib config edit` opens the file: write the keys in tables such as `[model]`";
                Advice::new(format!("`{}` is not a table", path[..=depth].join(".")), hint)
            })?;
        }
        let old = table.get(last).and_then(Item::as_value).cloned();
        let decor = old.as_ref().map(|old| old.decor().clone());
        if let (Change::Set(text) | Change::Add(text), Some(Kind::List(_))) = (self, kind) {
            refuse_broken_list(dotted, text)?;
        }
        let mut new = match self {
            Change::Add(item) => with_item(old, kind, item).ok_or_else(|| {
                let hint = format!("set its value without `--add`: `toolcrib config set {dotted} VALUE`");
                Advice::new(format!("`{dotted}` is not a list"), hint)
            })?,
            Change::Set(text) => value_of(kind, text),
            Change::Remove => return Ok(None),
        };
        match decor {
            Some(decor) => {
                *new.decor_mut() = decor;
                if let Some(item) = table.get_mut(last) {
                    *item = Item::Value(new);
                }
            }
            None => {
                table.insert(last, Item::Value(new));
            }
        }
        Ok(Some(document.to_string()))
    }
}

/// Returns `true` for the path of the profiles, a profile, or a section with several keys.
fn is_whole(path: &[&str]) -> bool {
    let inner: &[&str] = match path {
        [PROFILE] => &[],
        [PROFILE, _, inner @ ..] => inner,
        all => all,
    };
    inner.is_empty() || matches!(inner, [section] if sections().contains(section))
}

/// Refuses to remove a table as a whole.
fn keep(dotted: &str, table: &dyn toml_edit::TableLike) -> anyhow::Result<()> {
    let dotted = one_line(dotted);
    let name = |(key, _): (&str, &Item)| format!("`{dotted}.{}`", one_line(key));
    let keys: Vec<String> = table.iter().take(MAX_NAMED).map(name).collect();
    let hint = match keys.is_empty() {
        true => "`toolcrib config edit` opens the file".to_owned(),
        false => format!("`toolcrib config unset KEY` removes one key: {}", keys.join(", ")),
    };
    Err(Advice::new(format!("`{dotted}` is a table, which is not removed as a whole: nothing was changed"), hint)
        .into())
}

fn below<'a>(table: &'a mut Table, path: &[&str]) -> Option<&'a mut dyn toml_edit::TableLike> {
    let mut at: &mut dyn toml_edit::TableLike = table;
    for name in path {
        at = at.get_mut(name)?.as_table_like_mut()?;
    }
    Some(at)
}

/// Keys of lists whose items may begin with a bracket, such as `[::1]:443`.
const BRACKETED: [&str; 3] = ["allow.net", "deny.net", "network.nameservers"];

/// Refuses a text that begins as a list and is none: taken as one item, a denial would deny nothing.
fn refuse_broken_list(dotted: &str, text: &str) -> anyhow::Result<()> {
    let Some(inner) = text.trim_start().strip_prefix('[') else { return Ok(()) };
    let begins = inner.trim_start().starts_with(['"', '\'']) || !BRACKETED.contains(&dotted);
    if !begins || matches!(text.trim().parse::<Value>(), Ok(Value::Array(_))) {
        return Ok(());
    }
    let hint = "write `[\"a\", \"b\"]`, or one item alone; an item that begins with a bracket needs the first form";
    Err(Advice::new(format!("`{dotted}`: `{}` is not a list", excerpt(text)), hint).into())
}

/// Converts a text of the command line: a list may be one item, and text needs no quotes.
fn value_of(kind: Option<&Kind>, text: &str) -> Value {
    let written = || text.trim().parse::<Value>().ok();
    match kind {
        Some(Kind::List(of)) => match written() {
            Some(value @ Value::Array(_)) => value,
            _ => Value::Array(Array::from_iter([value_of(Some(of), text)])),
        },
        Some(Kind::Text { .. } | Kind::Path(_) | Kind::Word(_)) => Value::from(text),
        _ => written().unwrap_or_else(|| Value::from(text)),
    }
}

/// Adds an item to a list, or begins one; `None` if the key holds no list.
fn with_item(old: Option<Value>, kind: Option<&Kind>, item: &str) -> Option<Value> {
    let Some(Kind::List(of)) = kind else { return None };
    let mut list = match old {
        Some(Value::Array(list)) => list,
        Some(_) => return None,
        None => Array::new(),
    };
    list.push(value_of(Some(of), item));
    Some(Value::Array(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_keeps_comments_and_order() {
        let text = "# mine\n[model]\nname = \"a\" # for now\n\n[permissions]\ndeny = [\n  \"x\", # never\n]\n";
        let set = Change::Set("b").make(text, &[], "model.name").unwrap().unwrap();
        assert_eq!(set, text.replace("\"a\"", "\"b\""));
        let added = Change::Add("y").make(text, &[], "permissions.deny").unwrap().unwrap();
        assert!(added.contains("\"x\"") && added.contains("# never") && added.contains("\"y\""), "{added}");
        let new = Change::Set("64MiB").make(text, &["profile", "ci"], "limits.max_memory").unwrap().unwrap();
        assert_eq!(new, format!("{text}\n[profile.ci.limits]\nmax_memory = \"64MiB\"\n"));
        let removed = Change::Remove.make(&new, &["profile", "ci"], "limits.max_memory").unwrap().unwrap();
        assert!(removed.starts_with(text) && !removed.contains("64MiB"), "{removed}");
        assert_eq!(Change::Remove.make(text, &[], "model.api").unwrap(), None);
        assert!(Change::Remove.make(text, &[], "model.nam").is_err(), "an unknown key that the text does not have");
        let with_unknown = text.replace("name =", "nam = 1\nname =");
        let removed = Change::Remove.make(&with_unknown, &[], "model.nam").unwrap().unwrap();
        assert_eq!(removed, text, "an unknown key that it has");
        let with_profile = "[permissions]\ndeny = [\"a\"]\n[profile.ci.deny]\nnet = [\"x\"]\n[safety]\na = 1\n";
        for (above, key) in [
            (&[][..], "permissions"),
            (&[], "profile"),
            (&[], "profile.ci"),
            (&[], "profile.ci.deny"),
            (&["profile", "ci"], "deny"),
        ] {
            let error = Change::Remove.make(with_profile, above, key).unwrap_err();
            assert!(error.to_string().starts_with(&format!("`{key}` is a table")), "{key}: {error}");
        }
        let removed = Change::Remove.make(with_profile, &[], "safety").unwrap().unwrap();
        assert_eq!(removed, with_profile.replace("[safety]\na = 1\n", ""), "an unknown table");
        assert!(Change::Remove.make("permissions = 3\n", &[], "permissions").unwrap().is_some(), "no table");
    }

    #[test]
    fn a_value_is_written_as_its_kind() {
        for (key, text, line) in [
            ("limits.concurrency", "4", "concurrency = 4"),
            ("model.temperature", "0.5", "temperature = 0.5"),
            ("allow.model", "true", "model = true"),
            ("allow.read", "~/notes", "read = [\"~/notes\"]"),
            ("allow.read", "[\"a\", \"b\"]", "read = [\"a\", \"b\"]"),
            ("model.name", "7", "name = \"7\""),
            ("masks.keys", "sk-[a-z]+", "keys = \"sk-[a-z]+\""),
            ("config.summarize.style", "brief", "style = \"brief\""),
        ] {
            let text = Change::Set(text).make("", &[], key).unwrap().unwrap();
            assert!(text.contains(line), "{key}: {text}");
        }
    }

    #[test]
    fn an_unknown_key_names_the_nearest() {
        for (key, hint) in [
            ("model.nam", "did you mean `model.name`?"),
            ("limit.max_memory", "did you mean `limits.max_memory`?"),
            ("permissions.dney", "did you mean `permissions.deny`?"),
            ("max-memory", "did you mean `limits.max_memory`?"),
            ("cache.unheard_of", "expected one of `dir`, `max`"),
        ] {
            let error = path_of(key).unwrap_err();
            assert_eq!(error.downcast_ref::<Advice>().map(Advice::hint), Some(hint), "{key}");
        }
    }
}
