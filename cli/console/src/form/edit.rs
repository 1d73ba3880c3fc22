//! Changes of a form's lists: an item more, or one less.

use super::{Fields, MAX_ITEMS};

/// Kinds of a part's fields.
const KINDS: [char; 5] = ['v', 'e', 'n', 'k', 'u'];

/// Applies the button of a form: `add:PATH` or `remove:PATH:ITEM`. Returns `false` for another button.
pub(crate) fn edit(fields: &mut Fields, button: &str) -> bool {
    let parts: Vec<&str> = button.split(':').collect();
    match parts[..] {
        ["add", path] => {
            let count = count(fields, path);
            if count < MAX_ITEMS {
                fields.insert(format!("n:{path}"), (count + 1).to_string());
            }
            true
        }
        ["remove", path, item] => {
            remove(fields, path, item);
            true
        }
        _ => false,
    }
}

fn count(fields: &Fields, path: &str) -> usize {
    fields.get(&format!("n:{path}")).and_then(|count| count.parse().ok()).unwrap_or(0).min(MAX_ITEMS)
}

/// Removes an item, such as `2` from a list or `m2` from members; later ones move up.
fn remove(fields: &mut Fields, path: &str, item: &str) {
    let mark = if item.starts_with('m') { "m" } else { "" };
    let (Ok(item), count) = (item[mark.len()..].parse::<usize>(), count(fields, path)) else { return };
    if item >= count {
        return;
    }
    let of = |fields: &Fields, at: usize| -> Vec<(char, String)> {
        let own = |kind: char, name: &str| {
            let rest = name.strip_prefix(&format!("{kind}:{path}.{mark}{at}"))?;
            (rest.is_empty() || rest.starts_with('.')).then(|| rest.to_owned())
        };
        KINDS.iter().flat_map(|kind| fields.keys().filter_map(move |name| Some((*kind, own(*kind, name)?)))).collect()
    };
    for at in item..count {
        for (kind, rest) in of(fields, at) {
            let value = fields.remove(&format!("{kind}:{path}.{mark}{at}{rest}"));
            if let (Some(value), true) = (value, at > item) {
                fields.insert(format!("{kind}:{path}.{mark}{}{rest}", at - 1), value);
            }
        }
    }
    fields.insert(format!("n:{path}"), (count - 1).to_string());
}
