//! Check of the chain over a log's lines, in order, one line at a time, without access to files.
//!
//! A record that matches the chain value of the previous one is intact. If a record does not match, its number decides
//! whether it was changed, whether records before it are missing, or whether it was moved.

use std::collections::VecDeque;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::error::Severity;

use super::chain::{self, Chain, Link};
use super::day::Position;
use super::problem::LogProblemKind;

/// Maximum number of gaps, and runs of unchained lines, in memory.
const MAX_PENDING: usize = 64;

/// A problem at a line.
pub(super) type Finding = (Position, Severity, LogProblemKind);

/// State of the check after the lines so far.
#[derive(Debug, Default)]
pub(super) struct ChainCheck {
    /// Link in the head, if there is a head.
    head: Option<Link>,
    /// The last record in sequence.
    last: Option<LastRecord>,
    /// A record that matches neither by its chain value nor by its number, until the next line decides.
    undecided: Option<(Position, Link)>,
    /// Lines without a chain value since the last record.
    unchained: Vec<UnchainedRun>,
    /// Missing records that may still follow in the same file.
    gaps: Vec<Gap>,
    /// Position of the last line.
    position: Option<Position>,
    pub(super) findings: VecDeque<Finding>,
    pub(super) records: u64,
    /// Number of the first record.
    pub(super) first: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct LastRecord {
    link: Link,
    /// Chain value computed from the record and its predecessor; differs from the written one if either was changed.
    computed: Chain,
}

/// Consecutive lines without a chain value.
#[derive(Debug)]
struct UnchainedRun {
    position: Position,
    lines: u64,
    /// `true` if they are complete records, `false` if they are fragments.
    complete: bool,
}

/// Missing records.
#[derive(Debug)]
struct Gap {
    position: Position,
    first: u64,
    last: u64,
}

impl ChainCheck {
    pub(super) fn new(head: Option<Link>) -> Self {
        Self { head, ..Self::default() }
    }

    /// Returns the link of the last record in sequence.
    pub(super) fn last(&self) -> Option<Link> {
        self.last.map(|last| last.link)
    }

    /// Returns `true` if there was no line.
    pub(super) fn is_empty(&self) -> bool {
        self.position.is_none()
    }

    /// Checks the next line, and returns the chain value written in it.
    pub(super) fn line(&mut self, position: Position, line: &[u8]) -> Option<Chain> {
        if self.position.is_some_and(|previous| previous.day != position.day) {
            self.close_gaps(0);
        }
        self.position = Some(position);
        let sealed = chain::parse_sealed(line);
        if let Some((at, undecided)) = self.undecided.take() {
            match sealed {
                // The next record continues it, with the number after the one that it should have.
                Some((covered, link))
                    if continues(undecided.chain, covered, link) && link.seq == self.expected_seq() + 1 =>
                {
                    let seq = self.expected_seq();
                    self.error(at, LogProblemKind::Changed { seq });
                    self.last = Some(LastRecord { link: Link { seq, ..undecided }, computed: undecided.chain });
                }
                _ => self.place_by_number(at, undecided),
            }
        }
        match sealed {
            None => self.unchained_line(position, is_record(line)),
            Some((covered, link)) => self.record(position, line, covered, link),
        }
        sealed.map(|(_, link)| link.chain)
    }

    /// Checks the end of the log: pending lines, and records that only the head knows.
    pub(super) fn end(&mut self) {
        if let Some((at, undecided)) = self.undecided.take() {
            self.place_by_number(at, undecided);
        }
        let (expected, end) = (self.expected_seq(), self.head.map_or(0, |head| head.seq));
        let missing = (end + 1).saturating_sub(expected);
        if missing > 0 && missing == self.unchained_lines() {
            self.report_unchained_as_changed(expected);
        } else {
            self.report_unchained();
            if let Some(position) = self.position.filter(|_| missing > 0) {
                self.error(position, LogProblemKind::RemovedAtEnd { first: expected, last: end });
            }
        }
        self.close_gaps(0);
    }

    fn record(&mut self, position: Position, line: &[u8], covered: &[u8], link: Link) {
        self.records += 1;
        self.first.get_or_insert(link.seq);
        let expected = self.expected_seq();
        if let Some(last) = self.last.or((link.seq == 1).then_some(LastRecord::START)) {
            let fits = [last.link.chain, last.computed].iter().any(|previous| continues(*previous, covered, link));
            if fits && link.seq == expected {
                self.report_unchained();
                self.accept(position, link, link.chain);
            } else if link.seq == expected {
                self.report_unchained();
                self.error(position, LogProblemKind::Changed { seq: link.seq });
                self.accept(position, link, last.link.chain.after(covered));
            } else if link.seq == expected + self.unchained_lines() {
                self.report_unchained_as_changed(expected);
                self.accept(position, link, link.chain);
            } else {
                self.undecided = Some((position, link));
            }
            return;
        }
        // The log starts with a later record, whose predecessor is not available. Only its form is checked.
        if !is_object(line) {
            self.report_unchained();
            self.error(position, LogProblemKind::Changed { seq: link.seq });
        } else if link.seq == 1 + self.unchained_lines() {
            self.report_unchained_as_changed(1);
        } else {
            // The lines before it are older than the chain, or fragments of the missing records.
            let fragments = link.seq <= self.unchained_lines();
            let older = self.unchained.iter().any(|run| run.complete);
            self.report_unchained();
            if older || fragments {
                self.error(position, LogProblemKind::Removed { first: 1, last: link.seq - 1 });
            }
        }
        self.accept(position, link, link.chain);
    }

    /// Returns the number that the next record should have.
    fn expected_seq(&self) -> u64 {
        self.last.map_or(1, |last| last.link.next())
    }

    /// Takes a record as the last in sequence, and compares it with the head.
    fn accept(&mut self, position: Position, link: Link, computed: Chain) {
        if let Some(head) = self.head
            && head.seq == link.seq
            && ![link.chain, computed].contains(&head.chain)
        {
            self.error(position, LogProblemKind::Replaced { seq: link.seq });
        }
        self.last = Some(LastRecord { link, computed });
    }

    /// Classifies a record that does not continue the last one by its number.
    fn place_by_number(&mut self, position: Position, link: Link) {
        self.report_unchained();
        let expected = self.expected_seq();
        if link.seq > expected {
            self.close_gaps(MAX_PENDING - 1);
            self.gaps.push(Gap { position, first: expected, last: link.seq - 1 });
            self.accept(position, link, link.chain);
            return;
        }
        self.error(position, LogProblemKind::Reordered { seq: link.seq, after: expected - 1 });
        if let Some(at) = self.gaps.iter().position(|gap| (gap.first..=gap.last).contains(&link.seq)) {
            let Gap { position, first, last } = self.gaps.remove(at);
            let parts = [(first, link.seq - 1), (link.seq + 1, last)];
            let rest = parts.into_iter().filter(|(first, last)| first <= last);
            self.gaps.extend(rest.map(|(first, last)| Gap { position, first, last }));
        }
    }

    /// Reports all gaps except the latest `keep`.
    fn close_gaps(&mut self, keep: usize) {
        while self.gaps.len() > keep {
            let Gap { position, first, last } = self.gaps.remove(0);
            self.error(position, LogProblemKind::Removed { first, last });
        }
    }

    fn unchained_line(&mut self, position: Position, complete: bool) {
        match self.unchained.last_mut() {
            Some(run) if run.complete == complete && run.position.day == position.day => run.lines += 1,
            _ => {
                if self.unchained.len() == MAX_PENDING {
                    self.report_unchained();
                }
                self.unchained.push(UnchainedRun { position, lines: 1, complete });
            }
        }
    }

    fn unchained_lines(&self) -> u64 {
        self.unchained.iter().map(|run| run.lines).sum()
    }

    /// Reports unchained lines as changed records: exactly as many records are missing.
    fn report_unchained_as_changed(&mut self, mut seq: u64) {
        for UnchainedRun { position, lines, .. } in std::mem::take(&mut self.unchained) {
            for line in position.line..position.line + lines {
                self.error(Position { line, ..position }, LogProblemKind::Changed { seq });
                seq += 1;
            }
        }
    }

    /// Reports unchained lines in addition to all records. Those before the first record are older than the chain.
    fn report_unchained(&mut self) {
        for UnchainedRun { position, lines, complete } in std::mem::take(&mut self.unchained) {
            let finding = match (complete, self.last) {
                (false, _) => (position, Severity::Warning, LogProblemKind::Torn { lines }),
                (true, None) => (position, Severity::Warning, LogProblemKind::Unchained { lines }),
                (true, Some(_)) => (position, Severity::Error, LogProblemKind::Unchained { lines }),
            };
            self.findings.push_back(finding);
        }
    }

    fn error(&mut self, position: Position, kind: LogProblemKind) {
        self.findings.push_back((position, Severity::Error, kind));
    }
}

impl LastRecord {
    const START: Self = Self { link: Link::START, computed: Link::START.chain };
}

/// Returns `true` if a record continues the chain from its predecessor.
fn continues(previous: Chain, covered: &[u8], link: Link) -> bool {
    previous.after(covered) == link.chain
}

/// Returns `true` if a line without a link is a complete record from before the chain, not a fragment.
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

    /// Creates the lines of a log with this many records, and its head.
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
        let mut check = ChainCheck::new(head);
        for (line, number) in lines.iter().zip(1..) {
            check.line(Position { day: Day::of_digits(b"20260301").unwrap(), line: number }, line);
        }
        check.end();
        check.findings.into_iter().map(|(position, severity, kind)| (position.line, severity, kind)).collect()
    }

    /// Checks a log of six records after a change.
    fn after(act: impl FnOnce(&mut Vec<Vec<u8>>)) -> Vec<(u64, Severity, LogProblemKind)> {
        let (mut lines, head) = log(6);
        act(&mut lines);
        findings(&lines, Some(head))
    }

    const fn error(line: u64, kind: LogProblemKind) -> (u64, Severity, LogProblemKind) {
        (line, Severity::Error, kind)
    }

    #[test]
    fn an_intact_log_has_no_problem_wherever_it_starts() {
        assert_eq!(after(|_| ()), []);
        assert_eq!(after(|lines| drop(lines.drain(..3))), []);
        let (lines, head) = log(6);
        let behind = Link { seq: 5, chain: chain::parse_sealed(&lines[4]).unwrap().1.chain };
        assert_eq!(findings(&lines, Some(behind)), [], "a head that is behind");
        assert_eq!(findings(&lines, None), []);
        assert_eq!(findings(&[], None), []);
        assert_ne!(head, behind);
    }

    #[test]
    fn each_kind_of_tampering_has_its_name() {
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
    fn kinds_of_lines_without_a_chain_are_distinguished() {
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
    fn a_log_with_a_rewritten_end_does_not_match_its_head() {
        let (lines, head) = log(6);
        let (_, mut link) = chain::parse_sealed(&lines[3]).unwrap();
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
    fn every_change_of_a_byte_is_detected_without_a_panic() {
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
