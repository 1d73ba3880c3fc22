//! Listing of a folder by cookies, with buffers of any size.

use std::fs;

use wasmtime_wasi::p1::types::Errno;
use wasmtime_wasi::p1::wasi_snapshot_preview1 as abi;
use wiggle::GuestMemory;

use super::{FOLDER, Guest, RESULT, ROOM, errno, now};

/// The right to read, which is all that listing needs.
const TO_READ: i64 = 2;

impl Guest {
    /// Returns the whole entries that one call writes from a cookie on: the next cookie of each, and its name.
    fn list(&mut self, fd: i32, room: i32, cookie: u64) -> Result<Vec<(u64, String)>, Errno> {
        let memory = &mut GuestMemory::Unshared(&mut self.memory);
        let ended = abi::fd_readdir(&mut self.host, memory, fd, ROOM, room, cookie as i64, RESULT);
        errno(now(ended))?;
        let (mut at, end) = (ROOM, ROOM + self.number(RESULT) as i32);
        let mut entries = Vec::new();
        while at + 24 <= end {
            let (next, length) = (self.long(at), self.number(at + 16) as i32);
            if at + 24 + length > end {
                break;
            }
            let name = &self.memory[(at + 24) as usize..][..length as usize];
            entries.push((next, String::from_utf8(name.to_vec()).unwrap()));
            at += 24 + length;
        }
        Ok(entries)
    }

    /// Returns every name in a folder, as a program with a buffer of this size lists it.
    fn names(&mut self, fd: i32, room: i32) -> Vec<String> {
        let (mut cookie, mut names) = (0, Vec::new());
        loop {
            let entries = self.list(fd, room, cookie).unwrap();
            let Some((last, _)) = entries.last() else { break };
            cookie = *last;
            names.extend(entries.into_iter().map(|(_, name)| name));
        }
        names.sort();
        names
    }
}

#[test]
fn cookies_go_on_where_a_listing_was_and_begin_it_again() {
    let mut guest = Guest::new();
    let mut expected = vec![".".to_owned(), "..".to_owned()];
    for number in 0..600 {
        let name = format!("file {number:04}");
        fs::write(guest.path().join(&name), "").unwrap();
        expected.push(name);
    }
    // Buffers that cut an entry at its name or at its head, and one that holds little more than one entry.
    for room in [40, 64, 100, 4096, 40_000] {
        assert_eq!(guest.names(FOLDER, room), expected, "{room}");
    }
    let all = guest.list(FOLDER, 60_000, 0).unwrap();
    for cookie in [2, 300, 1, 600, 255, 256, 601] {
        let rest = guest.list(FOLDER, 60_000, cookie).unwrap();
        assert_eq!(rest, all[cookie as usize..], "{cookie}");
    }
    assert_eq!(guest.list(FOLDER, 60_000, 602), Ok(Vec::new()));
    assert_eq!(guest.list(FOLDER, 60_000, u64::MAX), Ok(Vec::new()));
    assert_eq!(guest.list(FOLDER, 23, 0), Ok(Vec::new()), "no room for a head");
    fs::write(guest.path().join("new"), "").unwrap();
    assert!(guest.names(FOLDER, 4096).contains(&"new".to_owned()), "who begins again sees what came since");
}

#[test]
fn more_folders_are_listed_at_once_than_the_gate_lists() {
    let mut guest = Guest::new();
    let mut path = guest.path().to_path_buf();
    let folders: Vec<_> = (0..40)
        .map(|depth| {
            path.push("d");
            fs::create_dir(&path).unwrap();
            (0..20).for_each(|number| fs::write(path.join(format!("{number:02}")), "").unwrap());
            guest.open_for(TO_READ, &"d/".repeat(depth + 1), 0, 0).unwrap()
        })
        .collect();
    let mut cookies = vec![0; folders.len()];
    let mut counts = vec![0; folders.len()];
    // Each listing returns a few names in turn, as in a recursive walk.
    for _ in 0..30 {
        for (at, folder) in folders.iter().enumerate() {
            let entries = guest.list(*folder, 64, cookies[at]).unwrap();
            counts[at] += entries.len();
            cookies[at] = entries.last().map_or(cookies[at], |(next, _)| *next);
        }
    }
    let deepest = folders.len() - 1;
    assert!(counts[..deepest].iter().all(|count| *count == 23) && counts[deepest] == 22, "{counts:?}");
}
