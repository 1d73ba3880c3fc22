//! Media types that a client accepts (RFC 9110, section 12.5.1). The library of the protocol wants both of its types by name,
//! and clients may state them by ranges, or accept everything without a word.

use http::header::{ACCEPT, HeaderMap, HeaderValue};

/// Types of the protocol's answers, as they are named in the header.
const TYPES: [(&str, &str); 2] = [("application", "json"), ("text", "event-stream")];
const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Names both protocol types in the header of a client that accepts both.
pub(super) fn expand(headers: &mut HeaderMap) {
    let values = headers.get_all(ACCEPT).iter().map(|value| value.to_str().unwrap_or_default());
    let ranges: Vec<Range<'_>> = values.flat_map(|value| value.split(',')).filter_map(Range::read).collect();
    if !headers.contains_key(ACCEPT) || TYPES.iter().all(|wanted| accepts(&ranges, *wanted)) {
        headers.insert(ACCEPT, BOTH);
    }
}

/// Range of media types with its weight.
struct Range<'h> {
    kind: &'h str,
    subtype: &'h str,
    is_refused: bool,
}

impl<'h> Range<'h> {
    fn read(text: &'h str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let is_refused = weight.is_some_and(|weight| weight.parse() == Ok(0.0_f32));
        Some(Self { kind, subtype, is_refused })
    }

    /// Returns how closely the range names a type; `None` if it does not include the type.
    fn closeness(&self, (kind, subtype): (&str, &str)) -> Option<u8> {
        let names = |range: &str, name: &str| range.eq_ignore_ascii_case(name);
        match (self.kind, self.subtype) {
            ("*", "*") => Some(0),
            (own, "*") if names(own, kind) => Some(1),
            (own, sub) if names(own, kind) && names(sub, subtype) => Some(2),
            _ => None,
        }
    }
}

/// Returns `true` if the closest range to a type accepts it.
fn accepts(ranges: &[Range<'_>], wanted: (&str, &str)) -> bool {
    let close = ranges.iter().filter_map(|range| Some((range.closeness(wanted)?, range.is_refused)));
    close.max_by_key(|(closeness, _)| *closeness).is_some_and(|(_, is_refused)| !is_refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(values: &[&'static str]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT, HeaderValue::from_static(value));
        }
        expand(&mut headers);
        headers.get_all(ACCEPT).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_client_that_accepts_both_types_in_any_way_names_both() {
        for values in [
            &["*/*"][..],
            &["application/*, text/*"],
            &["application/*", "text/*;q=0.5"],
            &["text/event-stream", "Application/JSON; charset=utf-8"],
            &["text/html, */*;q=0.1"],
            &[],
        ] {
            assert_eq!(expanded(values), ["application/json, text/event-stream"], "{values:?}");
        }
    }

    #[test]
    fn a_client_that_refuses_one_is_left_as_it_is() {
        for values in [
            &["application/json"][..],
            &["text/event-stream"],
            &["*/*, text/event-stream;q=0"],
            &["*/*;q=0.0"],
            &["nonsense"],
            &["application/*, text/html"],
        ] {
            assert_eq!(expanded(values), values, "{values:?}");
        }
    }
}
