//! Tools for the tests of interpreters.

use crate::tools::Tools;

/// Returns tools for tests of interpreters.
pub fn tools() -> Tools {
    Tools::new([
        (
            "fs_search",
            r#"{"type":"object","properties":{"pattern":{"type":"string"},"include":{"type":"array","items":{"type":"string"}},
            "limit":{"type":"integer"},"mode":{"enum":["text","regex"]}},"required":["pattern"],"additionalProperties":false}"#,
        ),
        ("add", r#"{"type":"object","properties":{"b":{"type":"number"},"a":{"type":"number"}},"required":["a","b"]}"#),
        ("any", r#"{"type":"object"}"#),
    ])
    .expect("schemas")
}
