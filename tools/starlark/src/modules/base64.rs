//! Module `base64`: encodes and decodes texts, in the standard alphabet or in the URL-safe one, which has no padding.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;

use super::{bounded, error};

/// Accepts texts with and without padding.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT.with_encode_padding(false));

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    /// Encodes a text.
    fn encode(text: &str, #[starlark(default = false)] url_safe: bool) -> starlark::Result<String> {
        bounded("base64.encode", text)?;
        Ok(engine(url_safe).encode(text))
    }

    /// Decodes a text; the result must be UTF-8.
    fn decode(text: &str, #[starlark(default = false)] url_safe: bool) -> starlark::Result<String> {
        let bytes = engine(url_safe).decode(text).map_err(|what| error("base64.decode", what))?;
        String::from_utf8(bytes).map_err(|_| error("base64.decode", "the decoded bytes are not UTF-8 text"))
    }
}

fn engine(url_safe: bool) -> &'static GeneralPurpose {
    if url_safe { &URL_SAFE } else { &STANDARD }
}
