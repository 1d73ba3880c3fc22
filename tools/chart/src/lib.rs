//! Tool `chart`: draws a chart for people and returns the statistics to the model.

mod svg;

use serde::{Deserialize, Serialize};
use toolcrib_guest::{Answer, Error, Part, Result, Schema, tool, tools};

tools!(chart);

const MAX_SERIES: usize = 8;
const MAX_VALUES: usize = 200;

// Form of the chart. A doc comment would be sent to the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, Schema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    #[default]
    Bar,
    Line,
}

// Named numbers. A doc comment would be sent to the model.
#[derive(Debug, Deserialize, Schema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Series {
    #[arg(max_length = 100)]
    name: String,
    /// One per label
    values: Vec<f64>,
}

/// Statistics of a series, for the model.
#[derive(Serialize)]
struct Statistics<'a> {
    name: &'a str,
    min: f64,
    max: f64,
    mean: f64,
}

#[derive(Serialize)]
struct Drawn<'a> {
    title: &'a str,
    values: usize,
    series: Vec<Statistics<'a>>,
}

/// Show people a chart. Returns minimum, maximum and mean of each series.
#[tool(read_only, summary = "chart {title}")]
fn chart(
    #[arg(max_length = 200)] title: String,
    #[arg(max_items = 200, items(max_length = 100))] labels: Vec<String>,
    #[arg(max_items = 8)] series: Vec<Series>,
    #[arg(default = "bar")] kind: Kind,
) -> Result<Answer> {
    if series.is_empty() || series.len() > MAX_SERIES {
        return Err(Error::invalid(format!("{} series, expected 1 to {MAX_SERIES}", series.len())));
    }
    if labels.is_empty() || labels.len() > MAX_VALUES {
        return Err(Error::invalid(format!("{} labels, expected 1 to {MAX_VALUES}", labels.len())));
    }
    for Series { name, values } in &series {
        if values.len() != labels.len() {
            let (values, labels) = (values.len(), labels.len());
            return Err(Error::invalid(format!("`{name}` has {values} values for {labels} labels")));
        }
    }
    let statistics = series.iter().map(|Series { name, values }| Statistics {
        name,
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        mean: values.iter().sum::<f64>() / values.len() as f64,
    });
    let drawn = Drawn { title: &title, values: labels.len(), series: statistics.collect() };
    let picture = svg::draw(&title, &labels, &series, kind);
    Ok(Answer::json(&drawn)?.show(Part::media("image/svg+xml", picture).named("chart.svg")))
}

#[cfg(test)]
mod tests {
    use toolcrib_guest::{Value, json, testing};

    use super::*;

    fn answer(arguments: Value) -> Result<Answer> {
        testing::call::<chart>(arguments)
    }

    #[test]
    fn people_get_the_picture_and_the_model_its_numbers() {
        let answer = answer(json!({
            "title": "a < b", "labels": ["x", "y"], "series": [{"name": "s & t", "values": [1, 3]}],
        }))
        .expect("a chart");
        let [Part::Json(statistics)] = &answer.content[..] else { panic!("{:?}", answer.content) };
        let statistics: Value = statistics.parse().expect("JSON");
        assert_eq!(statistics["series"][0], json!({"name": "s & t", "min": 1.0, "max": 3.0, "mean": 2.0}));
        let [Part::Media(picture)] = &answer.display[..] else { panic!("no picture") };
        let text = String::from_utf8(picture.data.clone()).expect("text");
        assert!(text.starts_with("<svg") && text.contains("a &lt; b") && text.contains("s &amp; t"), "{text}");
        assert_eq!(text.matches("<rect").count(), 1 + 2 + 1, "the ground, two bars and a key");
    }

    #[test]
    fn a_line_goes_through_all_values_also_where_they_are_one() {
        for values in [json!([1, -1, 2]), json!([5, 5, 5]), json!([0, 0, 0])] {
            let made = answer(json!({
                "title": "t", "labels": ["a", "b", "c"], "kind": "line", "series": [{"name": "s", "values": values}],
            }));
            let made = made.expect("a chart");
            let [Part::Media(picture)] = &made.display[..] else { panic!("no picture") };
            let text = String::from_utf8_lossy(&picture.data).into_owned();
            assert!(text.contains("<polyline") && !text.contains("NaN"), "{text}");
        }
    }

    #[test]
    fn values_without_labels_are_refused() {
        let error = answer(json!({"title": "t", "labels": ["a"], "series": [{"name": "s", "values": [1, 2]}]}));
        assert_eq!(error.expect_err("refused").to_string(), "`s` has 2 values for 1 labels");
    }
}
