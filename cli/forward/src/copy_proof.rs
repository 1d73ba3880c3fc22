//! Proof of records that the log no longer has. The log's first record states the chain value of the one before it, and each record
//! states that of its predecessor: from the log downwards, one version of each number is certain, and everything else is not. A
//! chain that somebody computed anew does not lead to the log.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use toolcrib::audit::{self, Chain};

use super::copy_window::{CopiedNumber, CopyWindow, WindowSide};

/// Passes each number of the copy in a range to `judge`, highest first, with `true` if a version of it is proven. `log` is the
/// number and the line of the log's first record, after the range.
///
/// # Errors
///
/// A file cannot be read.
pub(crate) fn each_proof(
    files: &[PathBuf],
    range: RangeInclusive<u64>,
    log: (u64, &str),
    size: usize,
    mut judge: impl FnMut(u64, &CopiedNumber, bool),
) -> anyhow::Result<()> {
    let (first, mut end) = range.into_inner();
    // The next number downwards with its chain value, as long as it is certain.
    let mut certain: Option<(u64, Chain)> = None;
    loop {
        let mut window = CopyWindow::read(files, first..=end, size, WindowSide::Highest)?;
        window.link(files)?;
        // The next window has the record before the lowest number of this one.
        let lowest = if window.is_cut { window.numbers.keys().next().copied() } else { None };
        for (&seq, number) in window.numbers.iter().rev().take_while(|(seq, _)| lowest != Some(**seq)) {
            if seq + 1 == log.0 {
                let leads = |chain: &Chain| audit::continues(*chain, log.1.as_bytes());
                certain = number.versions.iter().map(|version| version.chain).find(leads).map(|chain| (seq, chain));
            }
            let chain = certain.filter(|(at, _)| *at == seq).map(|(_, chain)| chain);
            let stated = number.versions.iter().filter(|version| Some(version.chain) == chain);
            let before = stated.filter_map(|version| version.before).next();
            certain = before.map(|before| (seq - 1, before));
            judge(seq, number, before.is_some());
        }
        match lowest {
            Some(seq) => end = seq,
            None => return Ok(()),
        }
    }
}
