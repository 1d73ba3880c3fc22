//! Charts as drawings in a page, scaled to their data. Their colors come from the style sheet, so that they follow the light and
//! the dark scheme; each has a table with the same numbers below it.

use maud::{Markup, html};

use super::layout::plain;
use super::units::Unit;

/// Size of a drawing, and its axes.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 190.0;
const LEFT: f64 = 44.0;
const BOTTOM: f64 = 22.0;
const TOP: f64 = 10.0;
/// Maximum names below the columns.
const MAX_LABELS: usize = 5;
/// Maximum bars in a chart, and characters in a name.
pub(super) const MAX_BARS: usize = 8;
const MAX_NAME: usize = 44;
/// Height of a bar with its name.
const BAR: f64 = 27.0;
/// Minimum height of failures, so that a few among many are seen.
const MIN_HEIGHT: f64 = 2.0;

/// Column of a chart over time.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    /// Short time, for the axis.
    pub(super) label: String,
    /// Whole time, for the pointer.
    pub(super) time: String,
    pub(super) calls: u64,
    pub(super) failures: u64,
}

/// Draws calls over time: a column for each bucket, with its failures at the bottom.
pub(super) fn columns(title: &str, buckets: &[Bucket]) -> Markup {
    let largest = buckets.iter().map(|bucket| bucket.calls).max().unwrap_or_default();
    let steps = steps(largest);
    let top = steps.last().copied().unwrap_or(1).max(1) as f64;
    let (floor, room) = (HEIGHT - BOTTOM, HEIGHT - BOTTOM - TOP);
    let height = |calls: u64| calls as f64 / top * room;
    let width = (WIDTH - LEFT) / buckets.len().max(1) as f64;
    let every = buckets.len().div_ceil(MAX_LABELS).max(1);
    let left = |at: usize| LEFT + width * at as f64;
    let summary =
        format!("{title}: at most {} in one of {} spans of time", Unit::count().show(largest as f64), buckets.len());
    html! {
        figure.chart {
            figcaption { (title) }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(summary) {
                @for step in &steps {
                    @let y = floor - height(*step);
                    line.grid x1=(LEFT) x2=(WIDTH) y1=(number(y)) y2=(number(y)) {}
                    text x=(LEFT - 6.0) y=(number(y + 4.0)) text-anchor="end" { (Unit::count().show(*step as f64)) }
                }
                @for (at, bucket) in buckets.iter().enumerate() {
                    @let (x, inner) = (left(at) + width * 0.1, width * 0.8);
                    @let whole = height(bucket.calls);
                    @let failed = height(bucket.failures.min(bucket.calls)).max(MIN_HEIGHT);
                    g {
                        title { (bucket.time) " UTC: " (bucket.calls) " calls, " (bucket.failures) " not ok" }
                        rect.ok x=(number(x)) width=(number(inner)) y=(number(floor - whole)) height=(number(whole)) {}
                        @if bucket.failures > 0 {
                            rect.bad x=(number(x)) width=(number(inner)) y=(number(floor - failed)) height=(number(failed)) {}
                        }
                    }
                    @if at % every == 0 {
                        text x=(number(left(at) + width / 2.0)) y=(HEIGHT - 6.0) text-anchor=(if at == 0 && width < 60.0 { "start" } else { "middle" }) { (bucket.label) }
                    }
                }
                line.axis x1=(LEFT) x2=(WIDTH) y1=(floor) y2=(floor) {}
            }
            p.legend { span.key.ok { "ok" } " " span.key.bad { "not ok" } " " span { "UTC" } }
        }
    }
}

/// Draws a bar for each name, scaled to the largest value.
pub(super) fn bars(title: &str, unit: Unit, values: &[(String, f64)]) -> Markup {
    let shown = &values[..values.len().min(MAX_BARS)];
    let largest = shown.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    let height = BAR.mul_add(shown.len() as f64, 4.0).max(BAR);
    let title = unit.heading(title);
    html! {
        figure.chart {
            figcaption { (title) }
            svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(format!("{title}: {} bars", shown.len())) {
                @for (at, (name, value)) in shown.iter().enumerate() {
                    @let y = BAR * at as f64;
                    text x="0" y=(number(y + 13.0)) { (plain(name, MAX_NAME)) }
                    text x=(WIDTH) y=(number(y + 13.0)) text-anchor="end" { (unit.show(*value)) }
                    rect.track x="0" y=(number(y + 18.0)) width=(WIDTH) height="4" {}
                    rect.value x="0" y=(number(y + 18.0)) width=(number(share(*value, largest) * WIDTH)) height="4" {}
                }
            }
            @if values.len() > shown.len() { p.legend { "the first " (shown.len()) " of " (values.len()) } }
        }
    }
}

/// Draws a span of time within a whole: its wait, and its work.
pub(super) fn span(begin: f64, waited: f64, worked: f64, whole: f64) -> Markup {
    let at = |ms: f64| number(share(ms, whole) * 100.0);
    // The shortest span can still be seen.
    let visible = |ms: f64| number((share(ms, whole) * 100.0).max(0.6));
    html! {
        svg.span viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
            rect.track width="100" height="10" {}
            @if waited > 0.0 { rect.wait x=(at(begin)) width=(at(waited)) height="10" {} }
            rect.value x=(at((begin + waited).min(whole * 0.994))) width=(visible(worked)) height="10" {}
        }
    }
}

/// Draws a value beside its number, as a share of the largest one.
pub(super) fn bar(value: f64, largest: f64) -> Markup {
    span(0.0, 0.0, value, largest)
}

fn share(value: f64, whole: f64) -> f64 {
    let share = value / whole;
    if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
}

/// Formats a place in a drawing.
fn number(place: f64) -> String {
    format!("{place:.1}")
}

/// Returns round numbers from zero to at least the largest value, two to five of them.
fn steps(largest: u64) -> Vec<u64> {
    let mut width = 1_u64;
    while width.saturating_mul(4) < largest {
        let leading = width.to_string().starts_with('2');
        width = if leading { width / 2 * 5 } else { width.saturating_mul(2) };
    }
    (0..=largest.div_ceil(width).max(1)).map(|at| at.saturating_mul(width)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(calls: u64, failures: u64) -> Bucket {
        Bucket { label: "09:30".to_owned(), time: "09:30".to_owned(), calls, failures }
    }

    #[test]
    fn axes_end_just_above_the_largest_value_at_round_numbers() {
        assert_eq!(steps(0), [0, 1]);
        assert_eq!(steps(3), [0, 1, 2, 3]);
        assert_eq!(steps(1_116), [0, 500, 1_000, 1_500]);
        for largest in [1, 9, 47, 99, 104, 12_345, u64::MAX] {
            let steps = steps(largest);
            assert!((2..=6).contains(&steps.len()) && steps.last() >= Some(&largest), "{largest}: {steps:?}");
        }
    }

    #[test]
    fn columns_are_scaled_to_the_data_and_stay_in_the_drawing() {
        let drawn = columns("Calls", &[bucket(4, 1), bucket(0, 0), bucket(2, 9)]).into_string();
        assert!(drawn.contains("class=\"ok\"") && drawn.matches("class=\"bad\"").count() >= 2, "{drawn}");
        assert!(drawn.contains("height=\"158.0\""), "the axis ends at 4: {drawn}");
        assert!(!drawn.contains("NaN") && !drawn.contains("\"-"), "{drawn}");
        assert!(!columns("Calls", &[]).into_string().contains("NaN"));
        let wild = [("<b>".to_owned(), f64::INFINITY), ("y".repeat(500), f64::NAN), ("z".to_owned(), -1.0)];
        let drawn =
            bars("p99", Unit::of_durations([1.0]), &wild).into_string() + &span(f64::NAN, 1.0, -5.0, 0.0).into_string();
        assert!(!drawn.contains("<b>") && !drawn.contains("NaN") && !drawn.contains("inf\""), "{drawn}");
    }
}
