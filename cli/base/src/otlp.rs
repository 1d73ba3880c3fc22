//! OpenTelemetry protocol (OTLP 1.x) in its JSON encoding over HTTP, as traces and logs share it: 64-bit numbers as text,
//! attributes with the type of their value, and a collector's answer, which is read within bounds.

use std::time::{SystemTime, UNIX_EPOCH};

use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url};
use serde_json::{Value as Json, json};

use crate::render::{one_line, shortened};

/// Maximum bytes read of a collector's answer.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// Maximum characters of a collector's message.
const MAX_MESSAGE: usize = 200;

/// Attributes by name.
pub type Attributes = Vec<(&'static str, AttributeValue)>;

/// Value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeValue {
    /// A string.
    Text(String),
    /// An array of strings.
    Texts(Vec<String>),
    /// A whole number.
    Whole(i64),
    /// A number.
    Decimal(f64),
}

/// Answer of a collector.
#[derive(Debug)]
pub struct CollectorAnswer {
    /// Status of the answer.
    pub status: StatusCode,
    /// Value of the header `Retry-After`.
    pub retry_after: Option<String>,
    /// Content, up to a bound.
    body: Vec<u8>,
    /// `true` if the connection ended before the content.
    pub is_cut: bool,
}

/// Posts the body of an export request.
///
/// # Errors
///
/// The reason, without the address, if there is no answer.
pub async fn post(client: &Client, url: &Url, headers: HeaderMap, body: Vec<u8>) -> Result<CollectorAnswer, String> {
    let request = client.post(url.clone()).headers(headers).header(CONTENT_TYPE, "application/json").body(body);
    let transport = |error: reqwest::Error| format!("{:#}", anyhow::Error::from(error.without_url()));
    let response = request.send().await.map_err(transport)?;
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let status = response.status();
    let (body, is_cut) = read(response).await;
    Ok(CollectorAnswer { status, retry_after, body, is_cut })
}

impl CollectorAnswer {
    /// Describes a status other than success, with the collector's message.
    pub fn failure(&self) -> String {
        let text = one_line(&shortened(&String::from_utf8_lossy(&self.body), MAX_MESSAGE));
        if text.is_empty() { self.status.to_string() } else { format!("{}: {text}", self.status) }
    }

    /// Returns `true` if the body is a collector's: an object, or nothing.
    pub fn is_of_collector(&self) -> bool {
        is_of_collector(&self.body)
    }

    /// Returns the number of rejected items in a partial success, which `member` counts, and the collector's reason.
    pub fn rejected(&self, member: &str) -> Option<(u64, String)> {
        rejected(&self.body, member).map(|(count, why)| (count, one_line(&shortened(&why, MAX_MESSAGE))))
    }
}

/// Reads the start of a response; `true` if it ended early.
async fn read(mut response: Response) -> (Vec<u8>, bool) {
    let mut answer = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(more)) => answer.extend_from_slice(&more[..more.len().min(MAX_ANSWER_BYTES - answer.len())]),
            end => return (answer, end.is_err()),
        }
        if answer.len() == MAX_ANSWER_BYTES {
            return (answer, false);
        }
    }
}

fn is_of_collector(answer: &[u8]) -> bool {
    answer.trim_ascii().is_empty() || serde_json::from_slice::<Json>(answer).is_ok_and(|answer| answer.is_object())
}

fn rejected(answer: &[u8], member: &str) -> Option<(u64, String)> {
    let answer: Json = serde_json::from_slice(answer).ok()?;
    let part = answer.get("partialSuccess")?;
    let count = match part.get(member)? {
        Json::String(count) => count.parse().ok()?,
        count => count.as_u64()?,
    };
    let why = part.get("errorMessage").and_then(Json::as_str).unwrap_or("no reason given");
    (count > 0).then(|| (count, why.to_owned()))
}

/// Returns the resource of this program, with further attributes.
pub fn resource(further: Attributes) -> Json {
    let version = env!("CARGO_PKG_VERSION");
    let mut program = vec![("service.name", "toolcrib".into()), ("service.version", version.into())];
    program.extend(further);
    json!({ "attributes": attributes(&program) })
}

/// Returns the scope of this program.
pub fn scope() -> Json {
    json!({ "name": "toolcrib", "version": env!("CARGO_PKG_VERSION") })
}

/// Encodes attributes.
pub fn attributes(attributes: &Attributes) -> Vec<Json> {
    attributes.iter().map(|(name, attribute)| json!({ "key": name, "value": value(attribute) })).collect()
}

fn value(attribute: &AttributeValue) -> Json {
    match attribute {
        AttributeValue::Text(text) => json!({ "stringValue": text }),
        AttributeValue::Whole(number) => json!({ "intValue": number.to_string() }),
        AttributeValue::Decimal(number) => json!({ "doubleValue": number }),
        AttributeValue::Texts(texts) => {
            let values: Vec<Json> = texts.iter().map(|text| json!({ "stringValue": text })).collect();
            json!({ "arrayValue": { "values": values } })
        }
    }
}

/// Returns the nanoseconds since 1970 as text, since JSON numbers may lose precision.
pub fn nanoseconds(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Vec<String>> for AttributeValue {
    fn from(texts: Vec<String>) -> Self {
        Self::Texts(texts)
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        Self::Whole(number.try_into().unwrap_or(i64::MAX))
    }
}

impl From<f64> for AttributeValue {
    fn from(number: f64) -> Self {
        Self::Decimal(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_items_are_read_in_every_encoding() {
        for (answer, wanted) in [
            (r#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}"#, Some((2, "too old".to_owned()))),
            (r#"{"partialSuccess":{"rejectedSpans":1}}"#, Some((1, "no reason given".to_owned()))),
            (r#"{"partialSuccess":{"rejectedSpans":0,"errorMessage":"a warning"}}"#, None),
            (r#"{"partialSuccess":{"rejectedLogRecords":1}}"#, None),
            (r#"{"partialSuccess":{}}"#, None),
            ("{}", None),
            ("", None),
        ] {
            assert_eq!(rejected(answer.as_bytes(), "rejectedSpans"), wanted, "{answer}");
            assert!(is_of_collector(answer.as_bytes()), "{answer}");
        }
        for other in ["<html>log in</html>", "[]", "\"ok\"", "{\"partialSuccess\":"] {
            assert!(!is_of_collector(other.as_bytes()), "{other}");
        }
    }
}
