//! Plot of an axis as SVG: both scales logarithmic, each curve with a dashed line of linear growth through its last point.

use std::fmt::Write;

use super::curve::{Axis, Curve, Unit};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
/// Space beside the plot for labels.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 16.0;
const BOTTOM: f64 = 48.0;
/// Height of a line of the legend.
const LINE: f64 = 18.0;
/// Colours of the curves, which differ in brightness too.
const COLOURS: [&str; 5] = ["#1f5fa8", "#c8590a", "#2c8a4b", "#8a2c7a", "#555555"];

/// Logarithmic scale from a range of values to a range of places.
struct Scale {
    /// Decades of the values.
    from: f64,
    to: f64,
    /// Places of both ends.
    places: (f64, f64),
}

impl Scale {
    /// Covers the values with whole decades.
    fn over(values: impl Iterator<Item = f64> + Clone, places: (f64, f64)) -> Self {
        let from = values.clone().fold(f64::INFINITY, f64::min).log10().floor();
        let to = values.fold(0.0, f64::max).log10().ceil();
        Self { from, to: to.max(from + 1.0), places }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value.log10() - self.from) / (self.to - self.from);
        self.places.0 + share * (self.places.1 - self.places.0)
    }

    /// Powers of ten.
    fn decades(&self) -> impl Iterator<Item = f64> {
        (self.from as i32..=self.to as i32).map(|power| 10_f64.powi(power))
    }
}

/// Draws the axis.
pub(crate) fn svg(axis: &Axis) -> String {
    let points = axis.curves.iter().flat_map(|curve| curve.points.iter());
    let x = Scale::over(points.clone().map(|point| point.0), (LEFT, WIDTH - RIGHT));
    let y = Scale::over(points.map(|point| point.1), (HEIGHT - BOTTOM, TOP));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<title>{}: time by size</title>\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         fill=\"#ffffff\"/>\n",
        axis.title
    );
    grid(&mut svg, axis, &x, &y);
    for (curve, colour) in axis.curves.iter().zip(COLOURS) {
        draw(&mut svg, curve, colour, &x, &y);
    }
    let legend = axis.curves.iter().map(|curve| (curve.name, curve.slope())).zip(COLOURS).enumerate();
    for (at, ((name, slope), colour)) in legend {
        let place = TOP + 14.0 + LINE * at as f64;
        let (left, text, name) = (LEFT + 12.0, LEFT + 42.0, name.replace('`', ""));
        line(
            &mut svg,
            (left, place - 4.0),
            (left + 24.0, place - 4.0),
            &format!("stroke=\"{colour}\" stroke-width=\"2\""),
        );
        let _ = writeln!(svg, "<text x=\"{text}\" y=\"{place}\" fill=\"#222222\">{name} (slope {slope:.2})</text>");
    }
    svg + "</svg>\n"
}

/// Draws the decades of both scales with their labels.
fn grid(svg: &mut String, axis: &Axis, x: &Scale, y: &Scale) {
    let (bottom, grey) = (HEIGHT - BOTTOM, "stroke=\"#dddddd\"");
    for size in x.decades() {
        let place = x.place(size);
        line(svg, (place, TOP), (place, bottom), grey);
        text(svg, (place, bottom + 18.0), "middle", &size_text(axis.unit, size));
    }
    for seconds in y.decades() {
        let place = y.place(seconds);
        line(svg, (LEFT, place), (WIDTH - RIGHT, place), grey);
        text(svg, (LEFT - 8.0, place + 4.0), "end", &time_text(seconds));
    }
    let caption = format!("{} (dashed: linear growth)", axis.label);
    text(svg, ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10.0), "middle", &caption);
}

/// Draws a curve, and linear growth through its last point.
fn draw(svg: &mut String, curve: &Curve, colour: &str, x: &Scale, y: &Scale) {
    let Some(&(last, time)) = curve.points.last() else { return };
    // From the last point to the left, as far as the plot goes.
    let lowest = 10_f64.powf(y.from);
    let left = (last * lowest / time).max(10_f64.powf(x.from));
    let dashed = format!("stroke=\"{colour}\" stroke-dasharray=\"4 4\" opacity=\"0.6\"");
    line(svg, (x.place(left), y.place(time * left / last)), (x.place(last), y.place(time)), &dashed);
    let places: Vec<_> = curve.points.iter().map(|point| (x.place(point.0), y.place(point.1))).collect();
    let path: Vec<_> = places.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let path = path.join(" ");
    let _ = writeln!(svg, "<polyline points=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>");
    for (x, y) in places {
        let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>");
    }
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), style: &str) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(svg, "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" {style}/>");
}

fn text(svg: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"#444444\">{text}</text>");
}

/// Size in words: `10,000` or `1 MB`.
pub(crate) fn size_text(unit: Unit, size: f64) -> String {
    let (size, suffix) = match unit {
        Unit::Count => (size, ""),
        Unit::Bytes if size >= 1e6 => (size / 1e6, " MB"),
        Unit::Bytes => (size / 1e3, " KB"),
    };
    if size < 10.0 && size.fract() > 0.01 {
        return format!("{size:.1}{suffix}");
    }
    let digits = format!("{size:.0}");
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    format!("{}{suffix}", groups.join(","))
}

/// Time in words, with two digits.
pub(crate) fn time_text(seconds: f64) -> String {
    let (value, unit) = match seconds {
        1.0.. => (seconds, "s"),
        1e-3.. => (seconds * 1e3, "ms"),
        _ => (seconds * 1e6, "µs"),
    };
    match value < 9.95 && value.fract() > 0.01 {
        true => format!("{value:.1} {unit}"),
        false => format!("{value:.0} {unit}"),
    }
}
