//! Distribution of durations in a fixed size, for medians and percentiles to a few percent.

/// Classes per doubling of the duration: neighbours differ by about 6 %.
const CLASSES: f64 = 12.0;
/// Number of classes: from a microsecond to more than a month.
const LEN: usize = 512;

/// Number of durations in classes of equal ratio.
#[derive(Debug, Clone)]
pub(super) struct Durations {
    classes: Box<[u32]>,
    count: u64,
    max: f64,
}

impl Durations {
    pub(super) fn new() -> Self {
        Self { classes: vec![0; LEN].into(), count: 0, max: 0.0 }
    }

    /// Adds a duration in milliseconds.
    pub(super) fn add(&mut self, ms: f64) {
        let class = ((ms * 1_000.0).max(1.0).log2() * CLASSES) as usize;
        let class = &mut self.classes[class.min(LEN - 1)];
        *class = class.saturating_add(1);
        self.count += 1;
        self.max = self.max.max(ms);
    }

    /// Returns the longest duration in milliseconds.
    pub(super) fn max(&self) -> f64 {
        self.max
    }

    /// Returns the duration in milliseconds that a share of all durations does not exceed, such as 0.5 for the median.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let rank = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut passed = 0;
        let is_in = |count: &u32| {
            passed += u64::from(*count);
            passed >= rank
        };
        let middle = |class: usize| ((class as f64 + 0.5) / CLASSES).exp2() / 1_000.0;
        self.classes.iter().position(is_in).map_or(0.0, middle).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_a_few_percent() {
        let mut durations = Durations::new();
        assert!(durations.quantile(0.5) == 0.0 && durations.max() == 0.0);
        (1..=1_000).for_each(|ms| durations.add(f64::from(ms)));
        for (share, ms) in [(0.5, 500.0), (0.99, 990.0), (0.01, 10.0)] {
            let found = durations.quantile(share);
            assert!((found / ms - 1.0).abs() < 0.04, "{share}: {found}");
        }
        assert!(durations.quantile(1.0) <= 1_000.0 && durations.max() == 1_000.0);
    }

    #[test]
    fn no_duration_is_too_short_or_too_long() {
        let mut durations = Durations::new();
        [0.0, -1.0, 1e300, f64::MAX].into_iter().for_each(|ms| durations.add(ms));
        assert_eq!(durations.max(), f64::MAX);
        assert!(durations.quantile(0.25) <= 0.002 && durations.quantile(1.0) > 1e9);
    }
}
