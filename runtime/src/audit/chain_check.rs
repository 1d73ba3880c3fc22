//! What the lines of a log say of each other. It is given the lines in order, one at a time, and knows no file.
//!
//! A record that fits the chain of the one before it is sound, whatever its number. Where one does not fit, its number
//! decides: whether it was changed, whether others are missing before it, or whether it stands in a wrong place.

use std::collections::VecDeque;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::chain::{self, Chain, Link};
use super::problem::{LogProblemKind, Severity};
use super::snapshot::Place;

/// The most gaps and runs that are kept at once.
const MAX_KEPT: usize = 64;

/// Something found at a line, or in the log as a whole.
pub(super) type Finding = (Place, Severity, LogProblemKind);

#[derive(Debug, Default)]
pub(super) struct Walk {
    /// The head's record, if there is a head.
    head: Option<Link>,
    /// The latest record in its place.
    last: Option<Last>,
    /// A record that fits neither by its chain nor by its number, until the next line says more.
    doubtful: Option<(Place, Link)>,
    /// Lines without a chain since the last record.
    loose: Vec<Loose>,
    /// Missing records of the file being read that may still come.
    gaps: Vec<Gap>,
    place: Option<Place>,
    pub(super) found: VecDeque<Finding>,
    pub(super) records: u64,
    /// The number of the first record.
    pub(super) first: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Last {
    link: Link,
    /// The chain as it follows from the record and the one before it; another than the written one where somebody
    /// changed either.
    follows: Chain,
}

/// Lines one after another that have no chain.
#[derive(Debug)]
struct Loose {
    place: Place,
    lines: u64,
    /// Whether they are records, or pieces.
    whole: bool,
}

#[derive(Debug)]
struct Gap {
    place: Place,
    first: u64,
    last: u64,
}

impl Walk {
    pub(super) fn new(head: Option<Link>) -> Self {
        Self { head, ..Self::default() }
    }

    /// The latest record in its place.
    pub(super) fn last(&self) -> Option<Link> {
        self.last.map(|last| last.link)
    }

    /// Whether there was no line at all.
    pub(super) fn is_empty(&self) -> bool {
        self.place.is_none()
    }

    /// Takes the next line, and gives the chain that is written in it.
    pub(super) fn line(&mut self, place: Place, line: &[u8]) -> Option<Chain> {
        if self.place.is_some_and(|before| before.day != place.day) {
            self.close_gaps(0);
        }
        self.place = Some(place);
        let sealed = chain::sealed(line);
        if let Some((at, doubtful)) = self.doubtful.take() {
            match sealed {
                // The next record continues it, and has the number after the one that it should have.
                Some((covered, link)) if follows(doubtful.chain, covered, link) && link.seq == self.awaited() + 1 => {
                    let seq = self.awaited();
                    self.error(at, LogProblemKind::Changed { seq });
                    self.last = Some(Last { link: Link { seq, ..doubtful }, follows: doubtful.chain });
                }
                _ => self.place_by_number(at, doubtful),
            }
        }
        match sealed {
            None => self.loose_line(place, is_record(line)),
            Some((covered, link)) => self.record(place, line, covered, link),
        }
        sealed.map(|(_, link)| link.chain)
    }

    /// Says what the end of the log tells: what is still open, and what the head knows of and the lines do not.
    pub(super) fn end(&mut self) {
        if let Some((at, doubtful)) = self.doubtful.take() {
            self.place_by_number(at, doubtful);
        }
        let (awaited, end) = (self.awaited(), self.head.map_or(0, |head| head.seq));
        let missing = (end + 1).saturating_sub(awaited);
        if missing > 0 && missing == self.loose_lines() {
            self.loose_were_records(awaited);
        } else {
            self.drop_loose();
            if let Some(place) = self.place.filter(|_| missing > 0) {
                self.error(place, LogProblemKind::RemovedAtEnd { first: awaited, last: end });
            }
        }
        self.close_gaps(0);
    }

    fn record(&mut self, place: Place, line: &[u8], covered: &[u8], link: Link) {
        self.records += 1;
        self.first.get_or_insert(link.seq);
        let awaited = self.awaited();
        if let Some(last) = self.last.or((link.seq == 1).then_some(Last::START)) {
            let fits = [last.link.chain, last.follows].iter().any(|before| follows(*before, covered, link));
            if fits && link.seq == awaited {
                self.drop_loose();
                self.accept(place, link, link.chain);
            } else if link.seq == awaited {
                self.drop_loose();
                self.error(place, LogProblemKind::Changed { seq: link.seq });
                self.accept(place, link, last.link.chain.after(covered));
            } else if link.seq == awaited + self.loose_lines() {
                self.loose_were_records(awaited);
                self.accept(place, link, link.chain);
            } else {
                self.doubtful = Some((place, link));
            }
            return;
        }
        // The log that is here begins later: of its first record nothing shows what it continues, only that it is one.
        if !is_object(line) {
            self.drop_loose();
            self.error(place, LogProblemKind::Changed { seq: link.seq });
        } else if link.seq == 1 + self.loose_lines() {
            self.loose_were_records(1);
        } else {
            // What stands before it is older than the chain, or pieces of the records that should stand there.
            let pieces = link.seq <= self.loose_lines();
            let older = self.loose.iter().any(|loose| loose.whole);
            self.drop_loose();
            if older || pieces {
                self.error(place, LogProblemKind::Removed { first: 1, last: link.seq - 1 });
            }
        }
        self.accept(place, link, link.chain);
    }

    /// The number of the record that should come next.
    fn awaited(&self) -> u64 {
        self.last.map_or(1, |last| last.link.next())
    }

    fn accept(&mut self, place: Place, link: Link, follows: Chain) {
        if let Some(head) = self.head
            && head.seq == link.seq
            && ![link.chain, follows].contains(&head.chain)
        {
            self.error(place, LogProblemKind::Replaced { seq: link.seq });
        }
        self.last = Some(Last { link, follows });
    }

    /// A record that does not continue the last: its number is all there is to go by.
    fn place_by_number(&mut self, place: Place, link: Link) {
        self.drop_loose();
        let awaited = self.awaited();
        if link.seq > awaited {
            self.close_gaps(MAX_KEPT - 1);
            self.gaps.push(Gap { place, first: awaited, last: link.seq - 1 });
            self.accept(place, link, link.chain);
            return;
        }
        self.error(place, LogProblemKind::Reordered { seq: link.seq, after: awaited - 1 });
        if let Some(at) = self.gaps.iter().position(|gap| (gap.first..=gap.last).contains(&link.seq)) {
            let Gap { place, first, last } = self.gaps.remove(at);
            let parts = [(first, link.seq - 1), (link.seq + 1, last)];
            let rest = parts.into_iter().filter(|(first, last)| first <= last);
            self.gaps.extend(rest.map(|(first, last)| Gap { place, first, last }));
        }
    }

    /// Gives up on all gaps but the `keep` latest.
    fn close_gaps(&mut self, keep: usize) {
        while self.gaps.len() > keep {
            let Gap { place, first, last } = self.gaps.remove(0);
            self.error(place, LogProblemKind::Removed { first, last });
        }
    }

    fn loose_line(&mut self, place: Place, whole: bool) {
        match self.loose.last_mut() {
            Some(run) if run.whole == whole && run.place.day == place.day => run.lines += 1,
            _ => {
                if self.loose.len() == MAX_KEPT {
                    self.drop_loose();
                }
                self.loose.push(Loose { place, lines: 1, whole });
            }
        }
    }

    fn loose_lines(&self) -> u64 {
        self.loose.iter().map(|loose| loose.lines).sum()
    }

    /// Exactly as many records are missing as there are lines without a chain: they were those records.
    fn loose_were_records(&mut self, mut seq: u64) {
        for Loose { place, lines, .. } in std::mem::take(&mut self.loose) {
            for line in place.line..place.line + lines {
                self.error(Place { line, ..place }, LogProblemKind::Changed { seq });
                seq += 1;
            }
        }
    }

    /// No record is missing in the place of the lines without a chain. Older than the chain are those before its start.
    fn drop_loose(&mut self) {
        for Loose { place, lines, whole } in std::mem::take(&mut self.loose) {
            let found = match (whole, self.last) {
                (false, _) => (place, Severity::Warning, LogProblemKind::Torn { lines }),
                (true, None) => (place, Severity::Warning, LogProblemKind::Unchained { lines }),
                (true, Some(_)) => (place, Severity::Error, LogProblemKind::Unchained { lines }),
            };
            self.found.push_back(found);
        }
    }

    fn error(&mut self, place: Place, found: LogProblemKind) {
        self.found.push_back((place, Severity::Error, found));
    }
}

impl Last {
    const START: Self = Self { link: Link::START, follows: Link::START.chain };
}

fn follows(before: Chain, covered: &[u8], link: Link) -> bool {
    before.after(covered) == link.chain
}

/// Whether a line without a link is a record of a time without the chain, and no piece of one.
fn is_record(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Unchained {
        chain: Option<IgnoredAny>,
    }
    line.starts_with(b"{") && serde_json::from_slice::<Unchained>(line).is_ok_and(|record| record.chain.is_none())
}

fn is_object(line: &[u8]) -> bool {
    line.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(line).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::day::Day;

    /// The lines of a log with this many records, and its head.
    fn log(records: u64) -> (Vec<Vec<u8>>, Link) {
        let mut head = Link::START;
        let lines = (1..=records).map(|n| {
            let mut line = Vec::new();
            head = head.seal(format!("{{\"tool\":\"t{n}\"}}").as_bytes(), &mut line);
            line.pop();
            line
        });
        (lines.collect(), head)
    }

    fn findings(lines: &[Vec<u8>], head: Option<Link>) -> Vec<(u64, Severity, LogProblemKind)> {
        let mut walk = Walk::new(head);
        for (line, number) in lines.iter().zip(1..) {
            walk.line(Place { day: Day::of_digits(b"20260301").unwrap(), line: number }, line);
        }
        walk.end();
        walk.found.into_iter().map(|(place, severity, found)| (place.line, severity, found)).collect()
    }

    /// What is found in a log of six records after `act`.
    fn after(act: impl FnOnce(&mut Vec<Vec<u8>>)) -> Vec<(u64, Severity, LogProblemKind)> {
        let (mut lines, head) = log(6);
        act(&mut lines);
        findings(&lines, Some(head))
    }

    const fn error(line: u64, found: LogProblemKind) -> (u64, Severity, LogProblemKind) {
        (line, Severity::Error, found)
    }

    #[test]
    fn a_sound_log_has_no_problem_wherever_it_begins() {
        assert_eq!(after(|_| ()), []);
        assert_eq!(after(|lines| drop(lines.drain(..3))), []);
        let (lines, head) = log(6);
        let behind = Link { seq: 5, chain: chain::sealed(&lines[4]).unwrap().1.chain };
        assert_eq!(findings(&lines, Some(behind)), [], "a head that is behind");
        assert_eq!(findings(&lines, None), []);
        assert_eq!(findings(&[], None), []);
        assert_ne!(head, behind);
    }

    #[test]
    fn each_way_of_tampering_has_its_name() {
        let changed = |line, seq| error(line, LogProblemKind::Changed { seq });
        let text = |line: &[u8]| String::from_utf8(line.to_vec()).unwrap();
        let with = |from: &str, to: &str| {
            let (from, to) = (from.to_owned(), to.to_owned());
            move |lines: &mut Vec<Vec<u8>>| lines[2] = text(&lines[2]).replace(&from, &to).into_bytes()
        };
        assert_eq!(after(with("t3", "t4")), [changed(3, 3)]);
        assert_eq!(after(with("\"seq\":3", "\"seq\":9")), [changed(3, 3)]);
        assert_eq!(after(with("\"seq\":3", "\"seq\":1")), [changed(3, 3)]);
        assert_eq!(after(with("chain", "chaos")), [changed(3, 3)]);
        assert_eq!(after(|lines| lines[5] = b"{".to_vec()), [changed(6, 6)]);
        let digit = |lines: &mut Vec<Vec<u8>>| {
            let at = lines[2].len() - 3;
            lines[2][at] = if lines[2][at] == b'0' { b'1' } else { b'0' };
        };
        assert_eq!(after(digit), [changed(3, 3)]);
        assert_eq!(after(|lines| drop(lines.remove(2))), [error(3, LogProblemKind::Removed { first: 3, last: 3 })]);
        assert_eq!(after(|lines| drop(lines.drain(1..4))), [error(2, LogProblemKind::Removed { first: 2, last: 4 })]);
        assert_eq!(
            after(|lines| drop(lines.drain(4..))),
            [error(4, LogProblemKind::RemovedAtEnd { first: 5, last: 6 })]
        );
        assert_eq!(after(|lines| lines.swap(2, 3)), [error(4, LogProblemKind::Reordered { seq: 3, after: 4 })]);
        let moved = |lines: &mut Vec<Vec<u8>>| {
            let line = lines.remove(1);
            lines.insert(4, line);
        };
        assert_eq!(after(moved), [error(5, LogProblemKind::Reordered { seq: 2, after: 5 })]);
        let copied = |lines: &mut Vec<Vec<u8>>| lines.insert(3, lines[1].clone());
        assert_eq!(after(copied), [error(4, LogProblemKind::Reordered { seq: 2, after: 3 })]);
    }

    #[test]
    fn lines_without_a_chain_are_told_apart() {
        let unchained = || b"{\"tool\":\"old\"}".to_vec();
        let older = |lines: &mut Vec<Vec<u8>>| drop(lines.splice(0..0, [unchained(), unchained()]));
        assert_eq!(after(older), [(1, Severity::Warning, LogProblemKind::Unchained { lines: 2 })]);
        assert_eq!(after(|lines| lines.insert(3, unchained())), [error(4, LogProblemKind::Unchained { lines: 1 })]);
        let torn = |at| move |lines: &mut Vec<Vec<u8>>| lines.insert(at, b"{\"ts\":\"20".to_vec());
        for at in [0, 3, 6] {
            assert_eq!(after(torn(at)), [(at as u64 + 1, Severity::Warning, LogProblemKind::Torn { lines: 1 })]);
        }
        let hidden = |lines: &mut Vec<Vec<u8>>| {
            lines.remove(0);
            older(lines);
        };
        let (older, gone) = (LogProblemKind::Unchained { lines: 2 }, LogProblemKind::Removed { first: 1, last: 1 });
        assert_eq!(after(hidden), [(1, Severity::Warning, older), error(3, gone)]);
    }

    #[test]
    fn a_log_that_is_written_anew_from_somewhere_is_not_the_one_of_its_head() {
        let (lines, head) = log(6);
        let (_, mut link) = chain::sealed(&lines[3]).unwrap();
        let mut forged = lines[..4].to_vec();
        for _ in 5..=6 {
            let mut line = Vec::new();
            link = link.seal(b"{\"tool\":\"forged\"}", &mut line);
            line.pop();
            forged.push(line);
        }
        assert_eq!(findings(&forged, Some(head)), [error(6, LogProblemKind::Replaced { seq: 6 })]);
    }

    #[test]
    fn no_change_of_a_byte_goes_unseen_and_none_panics() {
        let (lines, head) = log(3);
        let text = lines.join(&b'\n');
        for at in 0..text.len() {
            for byte in [text[at] ^ 1, b'\n', b'"', b'0', b'9', 0xff] {
                let mut changed = text.clone();
                changed[at] = byte;
                let split: Vec<_> = changed.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
                let found = findings(&split, Some(head));
                let seen = found.iter().any(|(_, severity, _)| *severity == Severity::Error);
                assert!(seen || changed == text, "byte {at} to {byte}: {found:?}");
            }
        }
    }
}
