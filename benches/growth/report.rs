//! The page of the book: the table of an axis, and its place in the page, between two comments.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::curve::Axis;
use super::plot;

/// Folder of the book.
fn book() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src")
}

/// Times by size in Markdown, with the slopes in the last row.
pub(crate) fn table(axis: &Axis) -> String {
    let mut sizes: Vec<f64> = axis.curves.iter().flat_map(|curve| &curve.points).map(|point| point.0).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let mut table = format!("| {} |", axis.label);
    axis.curves.iter().for_each(|curve| table += &format!(" {} |", curve.name));
    table += "\n|---|";
    axis.curves.iter().for_each(|_| table += "---|");
    table.push('\n');
    for size in sizes {
        let _ = write!(table, "| {} |", plot::size_text(axis.unit, size));
        for curve in &axis.curves {
            let time = curve.points.iter().find(|point| point.0 == size).map(|point| plot::time_text(point.1));
            let _ = write!(table, " {} |", time.unwrap_or_default());
        }
        table.push('\n');
    }
    table += "| slope over the last decade |";
    axis.curves.iter().for_each(|curve| table += &format!(" {:.2} |", curve.slope()));
    table.push('\n');
    table
}

/// Writes the plot of an axis, and replaces its part of the page.
pub(crate) fn write(name: &str, axis: &Axis) {
    let plots = book().join("growth");
    fs::create_dir_all(&plots).expect("a folder");
    fs::write(plots.join(format!("{name}.svg")), plot::svg(axis)).expect("the plot is written");
    let page = book().join("growth.md");
    let text = fs::read_to_string(&page).expect("the page");
    let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = text.split_once(&begin).expect("the page has the begin of the part");
    let (_, after) = rest.split_once(&end).expect("the page has the end of the part");
    let part = format!("![{}: time by size](growth/{name}.svg)\n\n{}", axis.title, table(axis));
    fs::write(page, format!("{before}{begin}{part}{end}{after}")).expect("the page is written");
}
