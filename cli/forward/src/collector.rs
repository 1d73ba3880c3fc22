//! OpenTelemetry collectors: records as `LogRecord`s in one request per batch. The body is the record's line, so that a receiver can
//! compute its chain value again.

use std::env;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode, Url};
use serde_json::{Value, json};
use toolcrib_base::http;
use toolcrib_base::otlp::{Attributes, attributes, nanoseconds, post, resource, scope};
use toolcrib_base::render::usage_error;
use toolcrib_base::retry::{is_transient, retry_after};

use super::forwarding::SendFailure;
use super::record::{ForwardedRecord, RecordGrade};

/// Time limit of one request.
const MAX_TIME: Duration = Duration::from_secs(30);
/// Variable with headers of the requests, `NAME=VALUE` separated by commas, as OpenTelemetry defines it.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";

/// Connection to a collector.
#[derive(Debug)]
pub(crate) struct Collector {
    client: Client,
    url: Url,
    headers: HeaderMap,
    /// Name of the machine.
    host: String,
}

impl Collector {
    /// Prepares requests to a collector, with the headers that the environment names.
    ///
    /// # Errors
    ///
    /// The variable is not valid, or there is no HTTP client.
    pub(crate) fn new(url: Url, host: &str) -> anyhow::Result<Self> {
        let text = env::var(HEADERS).unwrap_or_default();
        let headers = headers(&text).map_err(usage_error)?;
        let client = if http::is_loopback(&url) { http::local_client() } else { http::client() }?;
        Ok(Self { client, url, headers, host: host.to_owned() })
    }

    /// Sends a batch. Returns a message about records that the collector rejected for ever.
    pub(crate) async fn send(&self, batch: &[ForwardedRecord]) -> Result<Option<(u64, String)>, SendFailure> {
        let body = request(batch, &self.host).to_string().into_bytes();
        let sent = tokio::time::timeout(MAX_TIME, post(&self.client, &self.url, self.headers.clone(), body));
        let answer = match sent.await {
            Ok(answer) => answer.map_err(SendFailure::retry)?,
            Err(_) => return Err(SendFailure::retry(format!("no answer within {MAX_TIME:?}"))),
        };
        let asked = answer.retry_after.as_deref().and_then(|header| retry_after(header, Timestamp::now()));
        match answer.status {
            // It may have rejected some, which the rest of the answer says.
            status if status.is_success() && answer.is_cut => {
                Err(SendFailure::retry("the connection ended within the answer".to_owned()))
            }
            status if status.is_success() && !answer.is_of_collector() => {
                Err(SendFailure::retry("the answer is not from a collector".to_owned()))
            }
            status if status.is_success() => Ok(answer.rejected("rejectedLogRecords")),
            StatusCode::PAYLOAD_TOO_LARGE => Err(SendFailure::TooLarge(answer.failure())),
            status if is_transient(status.as_u16()) => Err(SendFailure::Retry { why: answer.failure(), asked }),
            _ => Err(SendFailure::Refused(answer.failure())),
        }
    }
}

/// Parses the headers of the environment. An error does not repeat a value, which may be a key.
fn headers(text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let wrong = || format!("{HEADERS}: expected `NAME=VALUE`, separated by commas");
        let (name, value) = entry.split_once('=').ok_or_else(wrong)?;
        let value = decoded(value.trim()).ok_or_else(wrong)?;
        let name: HeaderName = name.trim().parse().map_err(|_| wrong())?;
        let mut value = HeaderValue::from_bytes(&value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Ok(headers)
}

/// Decodes `%` and two hexadecimal digits.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = std::str::from_utf8(after.get(..2)?).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &after[2..];
    }
    Some(bytes)
}

/// Builds an `ExportLogsServiceRequest`.
fn request(batch: &[ForwardedRecord], host: &str) -> Value {
    let observed = nanoseconds(SystemTime::now());
    let records: Vec<Value> = batch.iter().map(|record| log_record(record, &observed)).collect();
    json!({
        "resourceLogs": [{
            "resource": resource(vec![("host.name", host.into())]),
            "scopeLogs": [{ "scope": scope(), "logRecords": records }],
        }],
    })
}

fn log_record(record: &ForwardedRecord, observed: &str) -> Value {
    let (facts, place) = (record.facts(), &record.place);
    let (severity, word) = severity(facts.grade());
    let mut named: Attributes = vec![
        ("log.record.uid", place.chain.to_string().as_str().into()),
        ("log.file.name", format!("{}.log", place.day.to_string().replace('-', "")).as_str().into()),
        ("toolcrib.seq", place.seq.into()),
        ("toolcrib.chain", place.chain.to_string().as_str().into()),
    ];
    for (name, value) in [
        ("gen_ai.tool.name", &facts.tool),
        ("gen_ai.tool.call.id", &facts.call_id),
        ("gen_ai.conversation.id", &facts.run),
        ("toolcrib.outcome", &facts.outcome),
        ("toolcrib.invocation", &facts.invocation),
        ("toolcrib.door", &facts.door),
    ] {
        if !value.is_empty() {
            named.push((name, value.as_str().into()));
        }
    }
    let mut json = json!({
        "observedTimeUnixNano": observed,
        "severityNumber": severity,
        "severityText": word,
        "body": { "stringValue": record.line },
        "attributes": attributes(&named),
    });
    if let Some(time) = facts.ts.parse::<Timestamp>().ok().map(SystemTime::from) {
        json["timeUnixNano"] = nanoseconds(time).into();
    }
    for (name, value, digits) in [("traceId", &facts.trace, 32), ("spanId", &facts.parent_span, 16)] {
        if value.len() == digits && value.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            json[name] = value.as_str().into();
        }
    }
    json
}

/// Number and name of a severity.
fn severity(grade: RecordGrade) -> (u8, &'static str) {
    match grade {
        RecordGrade::Info => (9, "INFO"),
        RecordGrade::Warning => (13, "WARN"),
        RecordGrade::Error => (17, "ERROR"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_decoded_and_a_wrong_one_is_not_repeated() {
        let read = headers("Authorization=Bearer%20ab%2C=,, x-scope = one ").unwrap();
        assert_eq!(read.get("authorization").unwrap().as_bytes(), b"Bearer ab,=");
        assert_eq!(read.get("x-scope").unwrap(), "one");
        assert!(headers("").unwrap().is_empty());
        for wrong in ["secret", "a b=secret", "a=secret%2", "a=secret%zz", "a=secret%0a"] {
            let error = headers(wrong).unwrap_err();
            assert!(error.contains(HEADERS) && !error.contains("secret"), "{error}");
        }
    }
}
