//! Spans in the JSON encoding of the OpenTelemetry protocol (`ExportTraceServiceRequest`): identifiers in hexadecimal, kinds and
//! statuses as numbers. Transport is separate.

use serde_json::{Value as Json, json};
use toolcrib_base::otlp::{attributes, nanoseconds, resource, scope};

use super::span::{Kind, Moment, Span};

/// The status of a span that failed.
const FAILED: u8 = 2;

/// Builds the body of an export request.
pub(super) fn request(spans: &[Span]) -> Json {
    json!({
        "resourceSpans": [{
            "resource": resource(Vec::new()),
            "scopeSpans": [{ "scope": scope(), "spans": spans.iter().map(span).collect::<Vec<_>>() }],
        }],
    })
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
