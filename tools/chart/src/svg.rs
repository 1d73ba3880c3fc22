//! SVG of a chart, without scripts, styles or external resources. All text in it is escaped.

use std::fmt::Write;

use crate::{Kind, Series};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 48.0;
const COLOURS: [&str; 8] = ["#3366cc", "#dc3912", "#ff9900", "#109618", "#990099", "#0099c6", "#dd4477", "#66aa00"];
/// Maximum labels below the chart; of more labels, some are left out.
const MAX_SHOWN: usize = 16;

/// Mapping of values to places on the picture.
struct Scale {
    least: f64,
    greatest: f64,
}

impl Scale {
    /// Scale from zero, or from the minimum if that is negative, to the maximum.
    fn of(series: &[Series]) -> Self {
        let values = || series.iter().flat_map(|series| series.values.iter().copied());
        let (least, greatest) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
        Self { least, greatest: if greatest > least { greatest } else { least + 1.0 } }
    }

    fn y(&self, value: f64) -> f64 {
        // Halved first: the difference of two large numbers may not be finite.
        let part = (value / 2.0 - self.least / 2.0) / (self.greatest / 2.0 - self.least / 2.0);
        HEIGHT - BOTTOM - part * (HEIGHT - BOTTOM - TOP)
    }
}

pub(crate) fn draw(title: &str, labels: &[String], series: &[Series], kind: Kind) -> String {
    let scale = Scale::of(series);
    let step = (WIDTH - LEFT - RIGHT) / labels.len() as f64;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\
         <text x=\"{LEFT}\" y=\"24\" font-size=\"16\">{}</text>",
        escaped(title)
    );
    // Writing to a string cannot fail.
    for value in [scale.least, scale.greatest] {
        let y = scale.y(value);
        let _ = write!(
            svg,
            "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{}\" y2=\"{y:.1}\" stroke=\"#cccccc\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
            WIDTH - RIGHT,
            LEFT - 8.0,
            y + 4.0
        );
    }
    let every = labels.len().div_ceil(MAX_SHOWN);
    for (at, label) in labels.iter().enumerate().step_by(every) {
        let x = LEFT + step * (at as f64 + 0.5);
        let label: String = label.chars().take(12).collect();
        let _ = write!(
            svg,
            "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - BOTTOM + 18.0,
            escaped(&label)
        );
    }
    for (place, one) in series.iter().enumerate() {
        let colour = COLOURS[place % COLOURS.len()];
        match kind {
            Kind::Bar => bars(&mut svg, &scale, one, (place, series.len(), step), colour),
            Kind::Line => line(&mut svg, &scale, one, step, colour),
        }
        let x = LEFT + place as f64 * 82.0;
        let name: String = one.name.chars().take(10).collect();
        let _ = write!(
            svg,
            "<rect x=\"{x}\" y=\"34\" width=\"10\" height=\"10\" fill=\"{colour}\"/><text x=\"{}\" y=\"43\">{}</text>",
            x + 14.0,
            escaped(&name)
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn bars(svg: &mut String, scale: &Scale, series: &Series, (place, of, step): (usize, usize, f64), colour: &str) {
    let width = step * 0.8 / of as f64;
    for (at, value) in series.values.iter().enumerate() {
        let x = LEFT + step * (at as f64 + 0.1) + width * place as f64;
        let (top, bottom) = (scale.y(value.max(0.0)), scale.y(value.min(0.0)));
        let _ = write!(
            svg,
            "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
            bottom - top
        );
    }
}

fn line(svg: &mut String, scale: &Scale, series: &Series, step: f64, colour: &str) {
    svg.push_str("<polyline points=\"");
    for (at, value) in series.values.iter().enumerate() {
        let _ = write!(svg, "{:.1},{:.1} ", LEFT + step * (at as f64 + 0.5), scale.y(*value));
    }
    let _ = write!(svg, "\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>");
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            c if c.is_control() => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}
