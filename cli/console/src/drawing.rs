//! Charts as vector graphics with attributes alone: bars in a row, each of several parts. The same numbers are in a table below.
//! Texts are outside of the graphic, so that they are legible at every width.

use maud::{Markup, html};

use super::layout::{self, table};

/// Height of a chart and width of a bar with its gap, in units of the graphic.
const HEIGHT: f64 = 100.0;
const STEP: f64 = 10.0;
/// Height of the lowest part that can be seen.
const MIN_PART: f64 = 1.0;
/// Length of a line of [`share`].
const LINE: f64 = 1_000.0;

/// Bar of a chart.
pub(super) struct Bar {
    /// Start of its time.
    pub(super) time: String,
    /// Value of the whole bar in words.
    pub(super) text: String,
    /// Parts in words.
    pub(super) parts_text: String,
    /// Parts from the bottom up: the number of their series, and their value.
    pub(super) parts: Vec<(usize, f64)>,
}

/// Chart.
pub(super) struct Chart<'a> {
    /// Identifier in the page.
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    /// Summary for those who do not see it.
    pub(super) summary: String,
    /// Highest value in words.
    pub(super) max: String,
    /// Name of the values.
    pub(super) unit: &'a str,
    pub(super) bars: Vec<Bar>,
}

impl Bar {
    fn value(&self) -> f64 {
        self.parts.iter().map(|(_, value)| value).sum()
    }
}

impl Chart<'_> {
    /// Draws the chart with its table.
    pub(super) fn draw(&self) -> Markup {
        let Self { id, title, summary, max, unit, bars } = self;
        let highest = bars.iter().map(Bar::value).fold(0.0, f64::max);
        let (width, label, about) = (bars.len() as f64 * STEP, format!("{id}-title"), format!("{id}-text"));
        let limits = bars.first().zip(bars.last());
        let rows: Vec<[Markup; 3]> = bars.iter().filter(|bar| bar.value() > 0.0).map(row).collect();
        html! {
            section.chart aria-labelledby=(format!("{id}-head")) {
                h2 id=(format!("{id}-head")) { (title) }
                @if highest > 0.0 {
                    p.scale { "up to " (max) }
                    svg.bars role="img" aria-labelledby=(format!("{label} {about}")) viewBox=(format!("0 0 {width} {HEIGHT}"))
                        preserveAspectRatio="none" {
                        title id=(label) { (title) }
                        desc id=(about) { (summary) }
                        line.grid x1="0" x2=(width) y1=(HEIGHT / 2.0) y2=(HEIGHT / 2.0) {}
                        @for (at, bar) in bars.iter().enumerate().filter(|(_, bar)| bar.value() > 0.0) {
                            g { title { (bar.time) ": " (bar.text) } (parts(at, bar, highest)) }
                        }
                    }
                    @if let Some((first, last)) = limits { p.scale { span { (first.time) } span { (last.time) } } }
                    details { summary { "The numbers of this chart" }
                        (table(title, ["From (UTC)", unit, "By tool"], rows))
                    }
                } @else {
                    p.empty { "None in this time." }
                }
            }
        }
    }
}

fn parts(at: usize, bar: &Bar, highest: f64) -> Markup {
    let mut top = HEIGHT;
    let mut place = |value: f64| {
        let height = (value / highest * HEIGHT).max(MIN_PART);
        top -= height;
        (top, height)
    };
    html! {
        @for (series, value) in bar.parts.iter().filter(|(_, value)| *value > 0.0) {
            @let (top, height) = place(*value);
            rect class=(series_class(*series)) x=(at as f64 * STEP + 1.0) width=(STEP - 2.0) y=(format!("{top:.2}"))
                height=(format!("{height:.2}")) {}
        }
    }
}

fn row(bar: &Bar) -> [Markup; 3] {
    [html! { time { (bar.time) } }, html! { (bar.text) }, layout::line(&bar.parts_text, 2_000)]
}

/// Class of the color of a series.
fn series_class(series: usize) -> String {
    format!("s{series}")
}

/// Draws the color of a series.
pub(super) fn swatch(series: usize) -> Markup {
    html! {
        svg.swatch viewBox="0 0 10 10" aria-hidden="true" focusable="false" {
            rect class=(series_class(series)) width="10" height="10" {}
        }
    }
}

/// Draws a share of a whole as a line, beside its number.
pub(super) fn share(value: f64, whole: f64) -> Markup {
    let length = (value / whole.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0) * LINE;
    line(&[("s0", 0.0, length.max(5.0))])
}

/// Draws pieces of a line of [`LINE`] units: their classes, places and lengths.
fn line(pieces: &[(&str, f64, f64)]) -> Markup {
    html! {
        svg.line viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            @for (class, at, length) in pieces {
                rect class=(class) x=(format!("{at:.1}")) width=(format!("{length:.1}")) height="10" {}
            }
        }
    }
}

/// Draws a period in the tone of its outcome. It begins at a place from 0 to 1, and its first part was a wait.
pub(super) fn period(tone: &str, at: f64, waited: f64, length: f64) -> Markup {
    let (at, waited, length) = (at * LINE, waited * LINE, (length * LINE).max(4.0));
    let at = at.min(LINE - length);
    line(&[("wait", at, waited.min(length)), (tone, at + waited.min(length), (length - waited.min(length)).max(2.0))])
}
