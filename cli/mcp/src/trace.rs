//! Trace of a request, as its client states it: in the request's metadata, or over HTTP in a header. A malformed one is
//! ignored.

use http::HeaderMap;
use http::request::Parts;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use serde_json::{Map, Value};
use toolcrib::call::TraceContext;

/// Key in a request's metadata, and name of the header.
const TRACEPARENT: &str = "traceparent";

/// Returns the trace of a request.
pub(super) fn of(context: &RequestContext<RoleServer>) -> Option<TraceContext> {
    stated(&context.meta, context.extensions.get::<Parts>().map(|parts| &parts.headers))
}

/// Reads the metadata, and a header only if the metadata states no trace. Several headers are none: nobody knows which counts.
fn stated(meta: &Map<String, Value>, headers: Option<&HeaderMap>) -> Option<TraceContext> {
    if let Some(value) = meta.get(TRACEPARENT) {
        return value.as_str().and_then(TraceContext::parse);
    }
    let mut all = headers?.get_all(TRACEPARENT).iter();
    let only = all.next().filter(|_| all.next().is_none())?;
    only.to_str().ok().and_then(TraceContext::parse)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::json;

    use super::*;

    const IN_META: &str = "00-11111111111111111111111111111111-1111111111111111-01";
    const IN_HEADER: &str = "00-22222222222222222222222222222222-2222222222222222-01";

    fn meta(value: Value) -> Map<String, Value> {
        Map::from_iter([(TRACEPARENT.to_owned(), value)])
    }

    fn headers(values: &[&[u8]]) -> HeaderMap {
        values
            .iter()
            .map(|value| (http::HeaderName::from_static(TRACEPARENT), HeaderValue::from_bytes(value).unwrap()))
            .collect()
    }

    #[test]
    fn the_metadata_precedes_the_header() {
        let header = headers(&[IN_HEADER.as_bytes()]);
        assert_eq!(stated(&meta(json!(IN_META)), Some(&header)), TraceContext::parse(IN_META));
        assert_eq!(stated(&meta(json!(IN_META)), None), TraceContext::parse(IN_META));
        assert_eq!(stated(&Map::new(), Some(&header)), TraceContext::parse(IN_HEADER));
        assert_eq!(stated(&Map::new(), None), None);
    }

    #[test]
    fn a_malformed_one_is_ignored() {
        let header = headers(&[IN_HEADER.as_bytes()]);
        for wrong in [json!(null), json!(7), json!([IN_META]), json!({"traceparent": IN_META}), json!("00"), json!("")]
        {
            assert_eq!(stated(&meta(wrong.clone()), Some(&header)), None, "{wrong}");
        }
        for wrong in
            [&[b"00".as_slice()][..], &[b""], &[b"\xff\xfe"], &[IN_HEADER.as_bytes(), IN_HEADER.as_bytes()], &[]]
        {
            assert_eq!(stated(&Map::new(), Some(&headers(wrong))), None, "{wrong:?}");
        }
    }
}
