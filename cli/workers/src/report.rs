//! Report of a call: its outcome, its answer, its media and its log, as one bounded JSON text.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use toolcrib::call::{Form, Media, Written};
use toolcrib::worker::WorkerAnswer;
use toolcrib::{Outcome, ToolError, ToolResult};

/// Maximum bytes of a log in a report. The rest is cut.
const MAX_LOG: usize = 32 << 10;
/// Room of a report for all but the answer and its media.
const ROOM: usize = 512 << 10;
/// Maximum number of media in a report.
const MAX_MEDIA: usize = 256;

/// Report of a call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Report {
    outcome: String,
    /// Answer as one JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<String>,
    /// `true` if the answer is a text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_text: bool,
    /// Message of an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Object of an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    details: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    media: Vec<ReportedMedia>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    log: String,
}

/// Media in a report, as base64.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReportedMedia {
    mime_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    data: String,
}

/// Returns the maximum report size in bytes for an answer with at most `max_answer` bytes.
pub(crate) fn max_report(max_answer: usize) -> usize {
    // A text in JSON takes at most twice its bytes, since an answer has no control characters; base64 takes less.
    max_answer.saturating_mul(2).saturating_add(ROOM)
}

/// Writes the report of a result.
pub(crate) fn write(result: &ToolResult) -> Vec<u8> {
    let withheld = result.receipt.withheld.is_some();
    let outcome = match &result.outcome {
        // The rule is about the model of this machine, and the caller's model is no nearer.
        Ok(_) if withheld => Err(ToolError::new(Outcome::Denied, "a rule of the worker withholds the answer")),
        Ok(_) if result.receipt.written == Some(Written::Missing) => Ok(None),
        Ok(line) => Ok(Some(line.clone())),
        Err(error) => Err(error.clone()),
    };
    let media = match outcome {
        Ok(_) => result.media.iter().map(ReportedMedia::of).collect(),
        Err(_) => Vec::new(),
    };
    let log = toolcrib_base::render::shortened(&result.log, MAX_LOG).into_owned();
    let mut report = Report {
        outcome: Outcome::Ok.as_str().to_owned(),
        line: None,
        is_text: result.form == Form::Text,
        error: None,
        details: None,
        media,
        log,
    };
    match outcome {
        Ok(line) => report.line = line,
        Err(ToolError { outcome, message, json }) => {
            (report.outcome, report.error, report.details) = (outcome.as_str().to_owned(), Some(message), json);
            report.is_text = false;
        }
    }
    serialized(&report)
}

/// Writes the report of an error that has no result.
pub(crate) fn write_error(error: ToolError) -> Vec<u8> {
    let ToolError { outcome, message, json } = error;
    let outcome = outcome.as_str().to_owned();
    let (line, media, log) = (None, Vec::new(), String::new());
    serialized(&Report { outcome, line, is_text: false, error: Some(message), details: json, media, log })
}

fn serialized(report: &Report) -> Vec<u8> {
    // A report has no maps and no floating-point numbers, so writing it does not fail.
    serde_json::to_vec(report).unwrap_or_default()
}

/// Reads a report.
///
/// # Errors
///
/// The reason why it is no report.
pub(crate) fn read(bytes: &[u8]) -> Result<WorkerAnswer, String> {
    let report: Report =
        serde_json::from_slice(bytes).map_err(|error| format!("no report, at column {}", error.column()))?;
    let outcome = Outcome::ALL.into_iter().find(|outcome| outcome.as_str() == report.outcome);
    let outcome = outcome.ok_or_else(|| "a report has an unknown outcome".to_owned())?;
    if report.media.len() > MAX_MEDIA {
        return Err(format!("a report has {} media, more than the {MAX_MEDIA} allowed", report.media.len()));
    }
    let outcome = match (outcome, report.error) {
        (Outcome::Ok, None) => Ok(report.line),
        (Outcome::Ok, Some(_)) => return Err("a report of a success has an error".to_owned()),
        (_, None) => return Err("a report of a failure has no error".to_owned()),
        (_, Some(_)) if report.line.is_some() || !report.media.is_empty() => {
            return Err("a report of a failure has an answer".to_owned());
        }
        (outcome, Some(message)) => Err(ToolError { outcome, message, json: report.details }),
    };
    let media: Result<Vec<Media>, String> = report.media.into_iter().map(ReportedMedia::read).collect();
    let mut answer = WorkerAnswer::new(outcome);
    answer.media = media?;
    answer.form = if report.is_text { Form::Text } else { Form::Json };
    answer.log = report.log;
    Ok(answer)
}

impl ReportedMedia {
    fn of(media: &Media) -> Self {
        let data = BASE64_STANDARD.encode(&media.data);
        Self { mime_type: media.mime_type.clone(), name: media.name.clone(), data }
    }

    fn read(self) -> Result<Media, String> {
        let data = BASE64_STANDARD.decode(&self.data).map_err(|error| format!("media are no base64: {error}"))?;
        Ok(Media::new(self.mime_type, self.name, data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_with_media_is_read() {
        let text = br#"{"outcome":"ok","line":"{\"a\":1}","media":[{"mimeType":"image/png","data":"AQI="}],"log":"x"}"#;
        let answer = read(text).unwrap();
        assert_eq!(answer.outcome, Ok(Some(r#"{"a":1}"#.to_owned())));
        assert_eq!((&answer.media[0].data[..], answer.log.as_str()), (&[1, 2][..], "x"));
    }

    #[test]
    fn an_error_survives_its_way() {
        let error = ToolError { json: Some("{}".to_owned()), ..ToolError::new(Outcome::Denied, "no") };
        assert_eq!(read(&write_error(error.clone())).unwrap(), WorkerAnswer::new(Err(error)));
    }

    #[test]
    fn a_report_that_contradicts_itself_is_refused() {
        let many = vec![r#"{"mimeType":"a/b","data":""}"#; MAX_MEDIA + 1].join(",");
        for text in [
            r#"{"outcome":"fine"}"#,
            r#"{"outcome":"ok","error":"x"}"#,
            r#"{"outcome":"failed"}"#,
            r#"{"outcome":"failed","error":"x","line":"1"}"#,
            r#"{"outcome":"ok","line":"1","more":1}"#,
            r#"{"outcome":"ok","line":1}"#,
            r#"{"outcome":"ok","media":[{"mimeType":"a/b","data":"!"}]}"#,
            &format!(r#"{{"outcome":"ok","media":[{many}]}}"#),
            "",
        ] {
            assert!(read(text.as_bytes()).is_err(), "{text:.80}");
        }
    }
}
