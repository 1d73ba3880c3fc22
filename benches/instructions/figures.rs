//! Figures: measured and recorded numbers of instructions by the name of the work.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// File of the recorded figures; code that is not optimised has its own.
const RECORDED: &str = if cfg!(debug_assertions) { "recorded-dev.txt" } else { "recorded.txt" };

/// Numbers of instructions by the name of the work.
pub(crate) struct Figures(BTreeMap<String, u64>);

impl FromIterator<(String, u64)> for Figures {
    fn from_iter<I: IntoIterator<Item = (String, u64)>>(figures: I) -> Self {
        Self(figures.into_iter().collect())
    }
}

impl Figures {
    fn path() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../benches/instructions").join(RECORDED)
    }

    /// Reads the recorded figures: lines with a number and a name.
    pub(crate) fn recorded() -> Self {
        let text = fs::read_to_string(Self::path()).unwrap_or_default();
        let figure = |line: &str| {
            let (number, name) = line.trim().split_once(' ')?;
            Some((name.to_owned(), number.parse().ok()?))
        };
        text.lines().filter_map(figure).collect()
    }

    /// Replaces the recorded figures.
    pub(crate) fn record(&self) {
        let lines: String = self.0.iter().map(|(name, number)| format!("{number} {name}\n")).collect();
        fs::write(Self::path(), lines).expect("the figures are written");
    }

    /// Prints each figure beside the recorded one. Returns `false` if one is larger by more than `max` percent, or not recorded.
    pub(crate) fn compare(&self, recorded: &Self, max: u64) -> bool {
        let mut holds = true;
        for (name, &number) in &self.0 {
            let Some(&before) = recorded.0.get(name) else {
                println!("{name}: {number} instructions, and no figure is recorded");
                holds = false;
                continue;
            };
            let change = (number as f64 / before as f64 - 1.0) * 100.0;
            let is_more = number > before + before * max / 100;
            let verdict = if is_more { format!(": more than {max} % above it") } else { String::new() };
            println!("{name}: {number} instructions, {change:+.1} % of the recorded {before}{verdict}");
            holds &= !is_more;
        }
        if !holds {
            println!("after a wanted change, `.ci/instructions --record`, and with `--dev`, replace the figures");
        }
        holds
    }
}
