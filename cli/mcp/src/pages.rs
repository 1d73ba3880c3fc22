//! Pages of the lists that clients ask for.

use std::ops::Range;

use rmcp::model::ErrorData;

use super::handler::invalid;

/// Returns the bounds of the page that a cursor names, and the cursor of the next one.
///
/// # Errors
///
/// The cursor is none of the list.
pub(super) fn page(
    cursor: Option<String>,
    items: usize,
    size: usize,
) -> Result<(Range<usize>, Option<String>), ErrorData> {
    let start = match cursor {
        None => 0,
        Some(cursor) => {
            let start = cursor.parse().ok().filter(|start| *start < items);
            start.ok_or_else(|| invalid("unknown cursor: list from the start".to_owned()))?
        }
    };
    let end = items.min(start.saturating_add(size));
    Ok((start..end, (end < items).then(|| end.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_names_the_next_and_the_last_one_none() {
        assert_eq!(page(None, 5, 2).unwrap(), (0..2, Some("2".to_owned())));
        assert_eq!(page(Some("4".to_owned()), 5, 2).unwrap(), (4..5, None));
        assert_eq!(page(None, 0, 2).unwrap(), (0..0, None));
        for cursor in ["5", "-1", "x", ""] {
            assert!(page(Some(cursor.to_owned()), 5, 2).is_err(), "{cursor}");
        }
    }
}
