//! Spans in the JSON encoding of the OpenTelemetry protocol (OTLP 1.x, `ExportTraceServiceRequest`): identifiers in
//! hexadecimal, 64-bit numbers as text, kinds and statuses as numbers. Transport is separate.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};

use super::span::{Attributes, Kind, Moment, Span, Value};

/// The status of a span that failed.
const FAILED: u8 = 2;

/// Builds the body of an export request.
pub(super) fn request(spans: &[Span]) -> Json {
    let version = env!("CARGO_PKG_VERSION");
    let program = vec![("service.name", Value::from("toolcrib")), ("service.version", Value::from(version))];
    json!({
        "resourceSpans": [{
            "resource": { "attributes": attributes(&program) },
            "scopeSpans": [{
                "scope": { "name": "toolcrib", "version": version },
                "spans": spans.iter().map(span).collect::<Vec<_>>(),
            }],
        }],
    })
}

/// Returns the number of rejected spans and the reason from a partial success.
pub(super) fn rejected(answer: &[u8]) -> Option<(u64, String)> {
    let answer: Json = serde_json::from_slice(answer).ok()?;
    let part = answer.get("partialSuccess")?;
    let count = match part.get("rejectedSpans")? {
        Json::String(count) => count.parse().ok()?,
        count => count.as_u64()?,
    };
    let why = part.get("errorMessage").and_then(Json::as_str).unwrap_or("no reason given");
    (count > 0).then(|| (count, why.to_owned()))
}

fn span(span: &Span) -> Json {
    let mut json = json!({
        "traceId": format!("{:032x}", span.place.trace),
        "spanId": format!("{:016x}", span.id),
        "name": span.name,
        "kind": match span.kind {
            Kind::Internal => 1,
            Kind::Client => 3,
        },
        "startTimeUnixNano": nanoseconds(span.start),
        "endTimeUnixNano": nanoseconds(span.end),
        "attributes": attributes(&span.attributes),
        "events": span.moments.iter().map(moment).collect::<Vec<_>>(),
    });
    if let Some(parent) = span.place.parent {
        json["parentSpanId"] = format!("{parent:016x}").into();
    }
    if span.failed {
        json["status"] = json!({ "code": FAILED });
    }
    json
}

fn moment(moment: &Moment) -> Json {
    json!({
        "name": moment.name,
        "timeUnixNano": nanoseconds(moment.at),
        "attributes": attributes(&moment.attributes),
    })
}

fn attributes(attributes: &Attributes) -> Vec<Json> {
    attributes.iter().map(|(name, attribute)| json!({ "key": name, "value": value(attribute) })).collect()
}

fn value(attribute: &Value) -> Json {
    match attribute {
        Value::Text(text) => json!({ "stringValue": text }),
        Value::Whole(number) => json!({ "intValue": number.to_string() }),
        Value::Decimal(number) => json!({ "doubleValue": number }),
        Value::Texts(texts) => {
            let values: Vec<Json> = texts.iter().map(|text| json!({ "stringValue": text })).collect();
            json!({ "arrayValue": { "values": values } })
        }
    }
}

/// Nanoseconds since 1970 as text, since JSON numbers may lose precision.
fn nanoseconds(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_spans_are_read_in_every_encoding() {
        for (answer, wanted) in [
            (r#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}"#, Some((2, "too old".to_owned()))),
            (r#"{"partialSuccess":{"rejectedSpans":1}}"#, Some((1, "no reason given".to_owned()))),
            (r#"{"partialSuccess":{"rejectedSpans":0,"errorMessage":"a warning"}}"#, None),
            (r#"{"partialSuccess":{}}"#, None),
            ("{}", None),
            ("", None),
        ] {
            assert_eq!(rejected(answer.as_bytes()), wanted, "{answer}");
        }
    }
}
