//! Entries with versions: lists of the servers and values of tools, by two servers of one database.

use std::io::ErrorKind;
use std::sync::Arc;

use toolcrib::{EntryGroup, ExpectedVersion, SharedEntries};
use toolcrib_shared_state::{DatabaseEntries, StateKind};

use crate::database;
use crate::postgres::Postgres;

pub(crate) async fn versions_decide_about_changes_and_groups_have_exact_limits(postgres: &Postgres) {
    let open = async || Arc::new(database(postgres, "versions").await);
    let (one, two) = (open().await, open().await);
    let (ada, bob) = (EntryGroup::new("ada", Some("ada".into())), EntryGroup::new("bob", Some("bob".into())));
    for kind in [DatabaseEntries::lists, DatabaseEntries::tool_values] {
        let (one, two) = (kind(one.clone()), kind(two.clone()));
        let change = |entries: &DatabaseEntries, expected, value: Option<&[u8]>| {
            entries.replace(&ada, "k", expected, value).unwrap()
        };
        assert_eq!(one.read(&ada, "k").unwrap(), None);
        assert!(change(&one, ExpectedVersion::Absent, Some(b"first")));
        assert!(!change(&two, ExpectedVersion::Absent, Some(b"other")));
        let first = two.read(&ada, "k").unwrap().unwrap();
        assert_eq!(first.value, b"first");
        assert_eq!(two.read(&ada, "k").unwrap().unwrap(), first, "an unchanged value is the same again");
        assert!(change(&one, ExpectedVersion::Present(first.version), Some(b"second")));
        assert!(!change(&two, ExpectedVersion::Present(first.version), Some(b"other")));
        assert!(!change(&two, ExpectedVersion::Present(first.version), None));
        assert_eq!(two.read(&ada, "k").unwrap().unwrap().value, b"second");
        assert!(change(&two, ExpectedVersion::Any, Some(b"third")));
        assert_eq!(
            (one.beginnings(&ada, 3).unwrap(), one.beginnings(&bob, 3).unwrap()),
            (vec![b"thi".to_vec()], vec![])
        );
        // Another group has it not, and removing it there changes nothing.
        assert_eq!(one.read(&bob, "k").unwrap(), None);
        assert!(one.replace(&bob, "k", ExpectedVersion::Any, None).unwrap());
        assert_eq!(one.read(&ada, "k").unwrap().unwrap().value, b"third");
        assert!(change(&one, ExpectedVersion::Any, None) && two.read(&ada, "k").unwrap().is_none());
    }
    let values = Arc::new(DatabaseEntries::tool_values(one.clone()));
    let set = |group: &EntryGroup, key: &str, len: usize| {
        values.replace(group, key, ExpectedVersion::Any, Some(&vec![b'v'; len]))
    };
    set(&ada, "k0", 1).unwrap();
    let large = set(&ada, "k0", StateKind::ToolValue.max_value() + 1).unwrap_err();
    assert_eq!(large.kind(), ErrorKind::QuotaExceeded, "{large}");
    let row = "owner_room SET entries = 999, bytes = 16777206 WHERE space = 'versions' AND kind = 'tool-value' AND entries = 1";
    postgres.query(&format!("UPDATE toolcrib.{row}"));
    // Ten bytes are left, and one entry.
    assert!(set(&ada, "k0", 11).is_ok());
    for (key, len) in [("k0", 12), ("k1", 1)] {
        assert_eq!(set(&ada, key, len).unwrap_err().kind(), ErrorKind::QuotaExceeded);
    }
    assert!(set(&ada, "k0", 1).is_ok() && set(&ada, "k1", 10).is_ok());
    assert_eq!(set(&ada, "k2", 0).unwrap_err().kind(), ErrorKind::QuotaExceeded);
    assert!(set(&bob, "k2", 100).is_ok(), "another group notices nothing");
    // Servers that count at the same time lose nothing.
    let counted = EntryGroup::new("counted", None);
    let servers = [DatabaseEntries::lists(one.clone()), DatabaseEntries::lists(two)];
    std::thread::scope(|scope| {
        for server in &servers {
            scope.spawn(|| {
                for _ in 0..20 {
                    loop {
                        let found = server.read(&counted, "n").unwrap();
                        let next = found.as_ref().map_or(1, |found| found.value[0] + 1);
                        let expected = found.map_or(ExpectedVersion::Absent, |it| ExpectedVersion::Present(it.version));
                        if server.replace(&counted, "n", expected, Some(&[next])).unwrap() {
                            break;
                        }
                    }
                }
            });
        }
    });
    assert_eq!(servers[0].read(&counted, "n").unwrap().unwrap().value, [40]);
    assert_eq!(servers[1].read(&counted, "n").unwrap().unwrap().value, [40]);
}
