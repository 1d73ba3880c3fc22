//! Curves of least times by size, and their slope.

use std::time::{Duration, Instant};

/// Fewest runs of one point, unless they take longer than the maximum.
const MIN_RUNS: usize = 3;
/// Time in which a point is measured again, and time after which it is not.
const MIN_TIME: Duration = Duration::from_millis(400);
const MAX_TIME: Duration = Duration::from_secs(20);
/// Part of the sizes over which the slope is fitted.
const DECADE: f64 = 10.0;

/// Meaning of the sizes of an axis.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Unit {
    Count,
    Bytes,
}

/// Curves over the same sizes.
pub(crate) struct Axis {
    /// Subject of the axis, as a heading.
    pub(crate) title: &'static str,
    /// Meaning of a size, as a label.
    pub(crate) label: &'static str,
    pub(crate) unit: Unit,
    pub(crate) curves: Vec<Curve>,
}

/// Times by size.
pub(crate) struct Curve {
    pub(crate) name: &'static str,
    /// Sizes in ascending order, each with its least time in seconds.
    pub(crate) points: Vec<(f64, f64)>,
}

impl Axis {
    pub(crate) fn new<const N: usize>(
        title: &'static str,
        label: &'static str,
        unit: Unit,
        curves: [&'static str; N],
    ) -> Self {
        let curves = curves.into_iter().map(|name| Curve { name, points: Vec::new() }).collect();
        Self { title, label, unit, curves }
    }

    /// Adds a point to the curve of this name.
    pub(crate) fn add(&mut self, curve: &str, size: usize, time: Duration) {
        let curve = self.curves.iter_mut().find(|known| known.name == curve).expect("a known curve");
        curve.points.push((size as f64, time.as_secs_f64()));
    }

    /// Takes the lesser time of both for each point.
    pub(crate) fn lower(&mut self, other: Self) {
        for (curve, other) in self.curves.iter_mut().zip(other.curves) {
            for (point, other) in curve.points.iter_mut().zip(other.points) {
                point.1 = point.1.min(other.1);
            }
        }
    }
}

/// Maximum slope; beyond it, a curve is clearly steeper than linear.
pub(crate) const MAX_SLOPE: f64 = 1.3;

impl Curve {
    /// Returns `true` if the time grows at most linearly, within what the machine adds. A slope that is no number is none.
    pub(crate) fn grows_linearly(&self) -> bool {
        self.slope() <= MAX_SLOPE
    }

    /// Slope of the logarithm of the time over the logarithm of the size, by least squares over the last decade: 1 is
    /// linear.
    pub(crate) fn slope(&self) -> f64 {
        let from = self.points.last().map_or(0.0, |(size, _)| size / DECADE * 0.99);
        let last: Vec<_> =
            self.points.iter().filter(|(size, _)| *size >= from).map(|(x, y)| (x.ln(), y.ln())).collect();
        let middle = |which: fn(&(f64, f64)) -> f64| last.iter().map(which).sum::<f64>() / last.len() as f64;
        let (x, y) = (middle(|point| point.0), middle(|point| point.1));
        let spread: f64 = last.iter().map(|point| (point.0 - x).powi(2)).sum();
        last.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / spread
    }
}

/// Returns the least time of several runs, which the load of the machine lengthens least.
pub(crate) fn least(mut run: impl FnMut()) -> Duration {
    let (started, mut least) = (Instant::now(), Duration::MAX);
    for runs in 1.. {
        let start = Instant::now();
        run();
        least = least.min(start.elapsed());
        let spent = started.elapsed();
        if spent > MAX_TIME || (runs >= MIN_RUNS && spent > MIN_TIME) {
            break;
        }
    }
    least
}
