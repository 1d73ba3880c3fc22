//! List of used names in one file, which several servers share: each name is used once.

use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolcrib::ListFile;

use crate::entry::StateKind;
use crate::error::StoreError;

/// Maximum file size in bytes: all names with about 90 bytes each.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// Name that was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsedName {
    id: String,
    expires: Timestamp,
}

/// File of used names.
#[derive(Debug, Clone)]
pub(crate) struct UsedList(ListFile<UsedName>);

impl UsedList {
    /// Names the file without opening it.
    pub(crate) fn new(path: &Path) -> Self {
        Self(ListFile::new(path, "used", MAX_FILE_BYTES))
    }

    /// Adds a name, and removes those that have expired; `false` if it was used before. This blocks.
    ///
    /// # Errors
    ///
    /// The file cannot be used, or has too many names.
    pub(crate) fn add(&self, kind: StateKind, id: &str) -> Result<bool, StoreError> {
        let (now, most) = (Timestamp::now(), kind.max_in_files().0);
        let name = UsedName { id: id.to_owned(), expires: now + kind.lifetime() };
        let changed = self.0.change(|used| {
            used.retain(|used| now <= used.expires);
            if used.iter().any(|used| used.id == name.id) {
                return Ok(false);
            }
            if used.len() as u64 >= most {
                return Err(StoreError::Full(format!("{most} states were used; repeat the call later")));
            }
            used.push(name);
            Ok(true)
        });
        let unusable = |error| StoreError::Unusable(format!("cannot use `{}`: {error}", self.0.path().display()));
        changed.map_err(unusable)?
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn expired_names_are_forgotten_and_too_many_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let list = UsedList::new(&folder.path().join("used.json"));
        let now = Timestamp::now();
        let name = |id: String, expires| UsedName { id, expires };
        let old = name("old".to_owned(), now - Duration::from_secs(1));
        let full = (1..65_536).map(|id| name(id.to_string(), now + Duration::from_mins(1)));
        list.0.change(|used| used.extend(full.chain([old]))).unwrap();
        assert_eq!(list.add(StateKind::UsedState, "old"), Ok(true), "it had expired");
        assert_eq!(list.add(StateKind::UsedState, "old"), Ok(false));
        assert!(matches!(list.add(StateKind::UsedState, "more"), Err(StoreError::Full(_))));
        assert_eq!(list.add(StateKind::UsedState, "7"), Ok(false));
    }
}
