//! Windows of a copy: the records with its lowest or highest numbers, each with the versions that the copy has of it. A window is
//! bounded by its versions and not by its numbers, so that numbers without records cost nothing.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use sha2::{Digest, Sha256};
use toolcrib::audit::{self, Chain};

use super::copy_lines::{self, CopiedRecord};

/// Maximum number of versions of a record that are kept.
pub(crate) const MAX_VERSIONS: usize = 8;

/// A version of a record in a copy.
#[derive(Debug)]
pub(crate) struct CopiedVersion {
    digest: [u8; 32],
    /// Chain value that the line states.
    pub(crate) chain: Chain,
    /// Chain value of the record before in the copy, if the line continues it.
    pub(crate) before: Option<Chain>,
    /// Index of the file, and line in it.
    pub(crate) position: (usize, u64),
}

/// Lines of a copy with one number.
#[derive(Debug, Default)]
pub(crate) struct CopiedNumber {
    pub(crate) versions: Vec<CopiedVersion>,
    /// Lines that repeat a version.
    pub(crate) repeated: u64,
    /// Lines with further versions.
    pub(crate) further: u64,
}

/// Numbers that a window keeps if it cannot keep all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowSide {
    Lowest,
    Highest,
}

/// Records of a copy in a range of numbers.
#[derive(Debug)]
pub(crate) struct CopyWindow {
    pub(crate) numbers: BTreeMap<u64, CopiedNumber>,
    /// Range that the window has whole.
    pub(crate) range: RangeInclusive<u64>,
    /// `true` if the copy has further records in the range that was asked for.
    pub(crate) is_cut: bool,
}

impl CopiedNumber {
    /// Removes the version with this line; `false` if there is none.
    pub(crate) fn take(&mut self, line: &str) -> bool {
        let digest = digest(line);
        let found = self.versions.iter().position(|version| version.digest == digest);
        found.map(|index| self.versions.swap_remove(index)).is_some()
    }

    /// Adds a line; `true` if it is a new version that is kept.
    fn add(&mut self, record: &CopiedRecord<'_>) -> bool {
        let digest = digest(record.text);
        let (chain, position) = (record.chain, record.position);
        if self.versions.iter().any(|version| version.digest == digest) {
            self.repeated += 1;
        } else if self.versions.len() < MAX_VERSIONS {
            self.versions.push(CopiedVersion { digest, chain, before: None, position });
            return true;
        } else {
            self.further += 1;
        }
        false
    }
}

impl CopyWindow {
    /// Reads the records in a range: at most `size` versions, or two numbers.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub(crate) fn read(
        files: &[PathBuf],
        range: RangeInclusive<u64>,
        size: usize,
        side: WindowSide,
    ) -> anyhow::Result<Self> {
        let (mut start, mut end) = range.into_inner();
        let (mut numbers, mut kept, mut is_cut) = (BTreeMap::<u64, CopiedNumber>::new(), 0, false);
        copy_lines::each(files, |record| {
            if record.seq < start || record.seq > end {
                return;
            }
            kept += usize::from(numbers.entry(record.seq).or_default().add(&record));
            while kept > size && numbers.len() > 2 {
                let left_out = match side {
                    WindowSide::Lowest => numbers.pop_last(),
                    WindowSide::Highest => numbers.pop_first(),
                };
                let Some((seq, number)) = left_out else { break };
                kept -= number.versions.len();
                is_cut = true;
                match side {
                    WindowSide::Lowest => end = seq - 1,
                    WindowSide::Highest => start = seq + 1,
                }
            }
        })?;
        Ok(Self { numbers, range: start..=end, is_cut })
    }

    /// Finds the record before each version, wherever the copy has it.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub(crate) fn link(&mut self, files: &[PathBuf]) -> anyhow::Result<()> {
        let numbers = &mut self.numbers;
        copy_lines::each(files, |record| {
            if !numbers.contains_key(&record.seq) {
                return;
            }
            let continued = |chain: &Chain| audit::continues(*chain, record.text.as_bytes());
            let before = match record.seq {
                1 => Some(Chain::START).filter(continued),
                seq => numbers
                    .get(&(seq - 1))
                    .and_then(|number| number.versions.iter().map(|version| version.chain).find(continued)),
            };
            let digest = digest(record.text);
            let versions = numbers.get_mut(&record.seq).into_iter().flat_map(|number| &mut number.versions);
            versions.filter(|version| version.digest == digest).for_each(|version| version.before = before);
        })
        .map(drop)
    }
}

fn digest(line: &str) -> [u8; 32] {
    Sha256::digest(line.as_bytes()).into()
}
