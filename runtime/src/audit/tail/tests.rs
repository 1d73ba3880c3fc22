//! Reading in parts: a place is found again, records that are written meanwhile follow, and records that are missing are named.

use std::fs;

use super::*;
use crate::audit::log::Log;

fn day(digits: &[u8]) -> Day {
    Day::of_digits(digits).unwrap()
}

/// Appends records to the log in a folder.
fn append(folder: &Path, on: &[u8], records: u64) {
    let log = Log::new(folder.to_path_buf());
    (0..records).for_each(|_| log.append(day(on), b"{\"ts\":\"\",\"tool\":\"t\"}").unwrap());
}

/// Numbers of the records that follow, and the problems.
fn rest(tail: &mut LogTail) -> (Vec<u64>, Vec<TailProblem>) {
    let (mut records, mut problems) = (Vec::new(), Vec::new());
    while let Some(event) = tail.next().unwrap() {
        match event {
            TailEvent::Record(record) => {
                assert_eq!(sealed(record.line.as_bytes()), Some((record.place.seq, record.place.chain)));
                records.push(record.place.seq);
            }
            TailEvent::Problem(problem) => problems.push(problem),
        }
    }
    (records, problems)
}

#[test]
fn the_records_after_a_place_are_whole_where_an_earlier_line_was_shortened() {
    let dir = tempfile::tempdir().unwrap();
    append(dir.path(), b"20260301", 5);
    let mut tail = super::tail(dir.path(), None).unwrap();
    while tail.place().is_none_or(|place| place.seq < 3) {
        tail.next().unwrap().unwrap();
    }
    let path = dir.path().join("20260301.log");
    let whole = fs::read_to_string(&path).unwrap();
    for shortened in ["\"ts\":\"\"", "\"ts\":"] {
        fs::write(&path, whole.replacen(shortened, "", 1)).unwrap();
        let mut after = super::tail(dir.path(), tail.place()).unwrap();
        assert_eq!(rest(&mut after), (vec![4, 5], vec![]), "{shortened}");
    }
}

#[test]
fn records_that_are_written_meanwhile_follow_over_the_end_of_a_day() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("later");
    let mut tail = super::tail(&folder, None).unwrap();
    assert_eq!(rest(&mut tail), (vec![], vec![]), "a log that does not exist yet");
    append(&folder, b"20260301", 3);
    assert_eq!(rest(&mut tail), (vec![1, 2, 3], vec![]));
    append(&folder, b"20260301", 1);
    // A writer creates the file of a new day before it has a record.
    fs::write(folder.join("20260302.log"), "").unwrap();
    assert_eq!(rest(&mut tail), (vec![4], vec![]));
    append(&folder, b"20260301", 1);
    append(&folder, b"20260303", 2);
    assert_eq!(rest(&mut tail), (vec![5, 6, 7], vec![]));
    assert_eq!(rest(&mut tail), (vec![], vec![]));
}

#[test]
fn only_a_change_is_looked_at_with_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("later");
    let mut tail = super::tail(&folder, None).unwrap();
    assert!(tail.is_unchanged().unwrap(), "a log that does not exist yet");
    append(&folder, b"20260302", 2);
    let path = folder.join("20260302.log");
    let later = folder.join("20260303.log");
    let mut changed = |expected: &[u64]| {
        assert!(!tail.is_unchanged().unwrap());
        assert_eq!(rest(&mut tail).0, expected);
        assert!(tail.is_unchanged().unwrap());
    };
    changed(&[1, 2]);
    append(&folder, b"20260302", 1);
    changed(&[3]);
    // The end of a record that is being written is no record yet.
    let text = fs::read(&path).unwrap();
    fs::write(&path, [&text[..], b"{\"ts\""].concat()).unwrap();
    changed(&[]);
    fs::write(&path, &text).unwrap();
    changed(&[]);
    fs::write(&later, "").unwrap();
    fs::write(folder.join("20260301.log"), "").unwrap();
    assert!(tail.is_unchanged().unwrap(), "files without a record");
    append(&folder, b"20260303", 1);
    let mut changed = |expected: &[u64]| {
        assert!(!tail.is_unchanged().unwrap());
        assert_eq!(rest(&mut tail).0, expected);
    };
    changed(&[4]);
    // Another file is in its place.
    fs::copy(&later, folder.join("other")).unwrap();
    fs::rename(folder.join("other"), &later).unwrap();
    changed(&[]);
    fs::remove_file(&later).unwrap();
    changed(&[1, 2, 3]);
}

#[test]
fn a_place_is_found_again_by_another_reader_and_where_files_were_moved_away() {
    let dir = tempfile::tempdir().unwrap();
    append(dir.path(), b"20260301", 3);
    append(dir.path(), b"20260302", 3);
    let mut tail = super::tail(dir.path(), None).unwrap();
    let mut places = Vec::new();
    while let Some(TailEvent::Record(record)) = tail.next().unwrap() {
        places.push(record.place);
    }
    assert_eq!((places.len(), tail.place()), (6, places.last().copied()));
    for place in &places {
        let left = (place.seq + 1..=6).collect::<Vec<_>>();
        assert_eq!(rest(&mut super::tail(dir.path(), Some(*place)).unwrap()), (left.clone(), vec![]));
        let elsewhere = LogPlace { day: day(b"20260228"), offset: 7, ..*place };
        assert_eq!(rest(&mut super::tail(dir.path(), Some(elsewhere)).unwrap()), (left, vec![]), "searched");
    }
    fs::remove_file(dir.path().join("20260301.log")).unwrap();
    for (read, expected) in [
        (2, (vec![4, 5, 6], vec![])),
        (1, (vec![4, 5, 6], vec![TailProblem::Removed { first: 3, last: 3 }])),
        (0, (vec![4, 5, 6], vec![TailProblem::Removed { first: 2, last: 3 }])),
    ] {
        assert_eq!(rest(&mut super::tail(dir.path(), Some(places[read])).unwrap()), expected);
    }
    assert_eq!(rest(&mut super::tail(dir.path(), None).unwrap()), (vec![4, 5, 6], vec![]), "a first reader");
}

#[test]
fn a_changed_line_and_another_log_are_named_and_still_read() {
    let dir = tempfile::tempdir().unwrap();
    append(dir.path(), b"20260301", 4);
    let path = dir.path().join("20260301.log");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("\"t\"", "\"x\"", 2).replacen("\"x\"", "\"t\"", 1)).unwrap();
    let mut tail = super::tail(dir.path(), None).unwrap();
    assert_eq!(rest(&mut tail), (vec![1, 2, 3, 4], vec![TailProblem::Changed { seq: 2 }]));
    let place = tail.place();
    fs::write(&path, text.lines().filter(|line| !line.contains("\"seq\":3")).collect::<Vec<_>>().join("\n") + "\n")
        .unwrap();
    assert_eq!(
        rest(&mut super::tail(dir.path(), None).unwrap()),
        (vec![1, 2, 4], vec![TailProblem::Removed { first: 3, last: 3 }])
    );
    // The log is begun anew, for a reader that goes on and for a new one.
    fs::remove_file(&path).unwrap();
    fs::remove_file(dir.path().join("head")).unwrap();
    append(dir.path(), b"20260302", 2);
    let restarted = (vec![1, 2], vec![TailProblem::Restarted { after: 4 }]);
    assert_eq!(rest(&mut tail), restarted);
    assert_eq!(rest(&mut super::tail(dir.path(), place).unwrap()), restarted);
}

#[test]
fn an_unfinished_last_line_waits_and_a_torn_one_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    append(dir.path(), b"20260301", 3);
    let path = dir.path().join("20260301.log");
    let text = fs::read(&path).unwrap();
    let third = text.len() - text.len() / 3;
    let mut tail = super::tail(dir.path(), None).unwrap();
    fs::write(&path, &text[..third + 9]).unwrap();
    assert_eq!(rest(&mut tail).0, [1, 2]);
    fs::write(&path, &text[..text.len() - 1]).unwrap();
    assert_eq!(rest(&mut tail), (vec![3], vec![]), "its line break alone is missing");
    let place = tail.place().map(|place| LogPlace { day: day(b"20260228"), ..place });
    assert_eq!(rest(&mut super::tail(dir.path(), place).unwrap()), (vec![], vec![]), "searched");
    fs::write(&path, &text).unwrap();
    append(dir.path(), b"20260301", 1);
    assert_eq!(rest(&mut tail), (vec![4], vec![]));
    // Fragments of killed writers, within a file and at the end of a day.
    let torn = |text: &str| {
        let mut file = File::options().append(true).open(&path).unwrap();
        io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    };
    torn("{\"ts\":\"2026");
    assert_eq!(rest(&mut tail), (vec![], vec![]), "it may still be written");
    append(dir.path(), b"20260301", 1);
    assert_eq!(rest(&mut tail), (vec![5], vec![TailProblem::Unchained { lines: 1 }]));
    torn("{\"ts\"");
    append(dir.path(), b"20260302", 1);
    assert_eq!(rest(&mut tail), (vec![6], vec![TailProblem::Unchained { lines: 1 }]));
}

#[test]
fn a_reader_beside_writers_of_several_days_misses_and_repeats_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let days: [&[u8]; 3] = [b"20260301", b"20260302", b"20260303"];
    std::thread::scope(|scope| {
        let writers = [(); 3].map(|()| scope.spawn(|| days.iter().for_each(|day| append(dir.path(), day, 60))));
        let mut tail = super::tail(dir.path(), None).unwrap();
        let mut read = Vec::new();
        while read.len() < 540 {
            let is_over = writers.iter().all(|writer| writer.is_finished());
            let (records, problems) = rest(&mut tail);
            assert!(problems.is_empty(), "{problems:?}");
            assert!(!is_over || read.len() + records.len() == 540, "{}", read.len());
            read.extend(records);
            // Another reader goes on at the place of this one.
            tail = super::tail(dir.path(), tail.place()).unwrap();
        }
        assert_eq!(read, (1..=540).collect::<Vec<_>>());
    });
}
