//! Module `url`: parses and joins addresses, and encodes texts for them.

use fluent_uri::{Uri, UriRef};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use starlark::values::{Heap, Value};

use super::{Fields, bounded, error, fields};

/// All characters except those that RFC 3986 never encodes.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    /// Parses an address into `scheme`, `host`, `port`, `path`, `query` and `fragment`; `None` for a missing part.
    fn parse<'v>(url: &str, heap: Heap<'v>) -> starlark::Result<Fields<'v>> {
        let parsed = absolute(url).map_err(|what| error("url.parse", what))?;
        let authority = parsed.authority();
        let text = |part: Option<&str>| part.map_or(Value::new_none(), |part| heap.alloc(part));
        let port = authority.and_then(|authority| authority.port()).and_then(|port| port.as_str().parse::<u16>().ok());
        Ok(fields([
            ("scheme", heap.alloc(parsed.scheme().as_str().to_ascii_lowercase())),
            ("host", text(authority.map(|authority| authority.host()))),
            ("port", port.map_or(Value::new_none(), |port| heap.alloc(i32::from(port)))),
            ("path", heap.alloc(parsed.path().as_str())),
            ("query", text(parsed.query().map(|query| query.as_str()))),
            ("fragment", text(parsed.fragment().map(|fragment| fragment.as_str()))),
        ]))
    }

    /// Encodes a text for a path or a query.
    fn encode(text: &str) -> starlark::Result<String> {
        bounded("url.encode", text)?;
        Ok(utf8_percent_encode(text, RESERVED).to_string())
    }

    /// Decodes a text; the result must be UTF-8.
    fn decode(text: &str) -> starlark::Result<String> {
        let decoded = percent_decode_str(text).decode_utf8();
        decoded.map(|text| text.into_owned()).map_err(|_| error("url.decode", "the decoded bytes are not UTF-8 text"))
    }

    /// Resolves a reference against an address.
    fn join(base: &str, reference: &str) -> starlark::Result<String> {
        joined(base, reference).map_err(|what| error("url.join", what))
    }
}

/// Parses an address that has a scheme.
pub(super) fn absolute(url: &str) -> Result<Uri<&str>, String> {
    Uri::parse(url).map_err(|what| format!("`{url}` is not an absolute address: {what}"))
}

fn joined(base: &str, reference: &str) -> Result<String, String> {
    let base = absolute(base)?;
    let reference = UriRef::parse(reference).map_err(|what| format!("`{reference}` is not an address: {what}"))?;
    let base = base.strip_fragment();
    reference.resolve_against(&base).map(Uri::into_string).map_err(|what| what.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_joined_as_on_a_page() {
        let joined = |reference| joined("http://a/b/c/d?q#f", reference);
        assert_eq!(joined("g").as_deref(), Ok("http://a/b/c/g"));
        assert_eq!(joined("../../../g").as_deref(), Ok("http://a/g"));
        assert_eq!(joined("?y").as_deref(), Ok("http://a/b/c/d?y"));
        assert_eq!(joined("//g").as_deref(), Ok("http://g"));
        assert!(joined("a b").is_err());
    }
}
