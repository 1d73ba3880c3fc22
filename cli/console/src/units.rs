//! Numbers of a column in one unit with the same decimals, so that a reader can compare them by their length.

const KIB: f64 = 1_024.0;
const MIB: f64 = KIB * KIB;
const GIB: f64 = MIB * KIB;

/// Unit of all numbers in a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Unit {
    /// Name in the heading; empty for a plain number.
    name: &'static str,
    /// Amount of one unit, in that of the values.
    size: f64,
    decimals: usize,
}

impl Unit {
    /// Returns the unit for durations in milliseconds.
    pub(super) fn of_durations(values: impl IntoIterator<Item = f64>) -> Self {
        match largest(values) {
            ..10_000.0 => Self { name: "ms", size: 1.0, decimals: 1 },
            ..3_600_000.0 => Self { name: "s", size: 1_000.0, decimals: 2 },
            _ => Self { name: "min", size: 60_000.0, decimals: 1 },
        }
    }

    /// Returns the unit for sizes in bytes.
    pub(super) fn of_sizes(values: impl IntoIterator<Item = u64>) -> Self {
        let largest = largest(values.into_iter().map(|bytes| bytes as f64));
        let (name, size) = match largest {
            largest if largest < 10.0 * MIB => ("KiB", KIB),
            largest if largest < 10.0 * GIB => ("MiB", MIB),
            _ => ("GiB", GIB),
        };
        Self { name, size, decimals: 1 }
    }

    /// Returns the unit for amounts of money, whose currency is not known.
    pub(super) fn of_costs(values: impl IntoIterator<Item = f64>) -> Self {
        let decimals = if largest(values) < 10.0 { 4 } else { 2 };
        Self { name: "", size: 1.0, decimals }
    }

    /// Unit of whole numbers.
    pub(super) fn count() -> Self {
        Self { name: "", size: 1.0, decimals: 0 }
    }

    /// Returns a heading with the unit.
    pub(super) fn heading(self, label: &str) -> String {
        if self.name.is_empty() { label.to_owned() } else { format!("{label} ({})", self.name) }
    }

    /// Formats a value. A positive one that would round to zero is named as less than the last decimal.
    pub(super) fn show(self, value: f64) -> String {
        if !value.is_finite() {
            return "?".to_owned();
        }
        let amount = value / self.size;
        let least = 0.1_f64.powi(self.decimals.try_into().unwrap_or(i32::MAX));
        match amount {
            _ if value > 0.0 && amount < least / 2.0 => format!("<{least:.0$}", self.decimals),
            _ => grouped(&format!("{amount:.0$}", self.decimals)),
        }
    }
}

fn largest(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().filter(|value| value.is_finite()).fold(0.0, f64::max)
}

/// Separates the thousands of a number by commas.
fn grouped(number: &str) -> String {
    let (sign, number) = number.split_at(usize::from(number.starts_with('-')));
    let (whole, fraction) = number.split_at(number.find('.').unwrap_or(number.len()));
    let mut out = sign.to_owned();
    for (at, digit) in whole.char_indices() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_one_unit_for_short_and_long_values() {
        let short = Unit::of_durations([0.2, 6.04, 9_999.0]);
        assert_eq!(short.heading("Duration"), "Duration (ms)");
        assert_eq!([0.0, 0.01, 6.04, 9_999.0].map(|ms| short.show(ms)), ["0.0", "<0.1", "6.0", "9,999.0"]);
        let long = Unit::of_durations([6.0, 90_000.0]);
        assert_eq!([6.0, 0.1, 90_000.0].map(|ms| long.show(ms)), ["0.01", "<0.01", "90.00"]);
        assert_eq!(Unit::of_durations([7_200_000.0]).show(7_200_000.0), "120.0");
        let memory = Unit::of_sizes([0, 500 << 20]);
        assert_eq!(memory.heading("Memory"), "Memory (MiB)");
        assert_eq!([0, 1 << 20, 500 << 20].map(|bytes: u64| memory.show(bytes as f64)), ["0.0", "1.0", "500.0"]);
        assert_eq!(Unit::count().show(1_234_567.0), "1,234,567");
        assert_eq!(
            (Unit::of_costs([0.01]).show(0.01), Unit::of_costs([12.0]).show(-1_234.5)),
            ("0.0100".into(), "-1,234.50".into())
        );
    }

    #[test]
    fn no_value_of_a_log_breaks_a_column() {
        let unit = Unit::of_durations([f64::NAN, f64::INFINITY, -1.0]);
        assert_eq!([f64::NAN, f64::INFINITY, -1.0].map(|ms| unit.show(ms)), ["?", "?", "-1.0"]);
        assert!(Unit::of_sizes([u64::MAX]).show(u64::MAX as f64).len() < 30);
    }
}
