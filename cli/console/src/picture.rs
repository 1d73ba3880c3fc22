//! Pictures in a result: only known types, with bytes that begin as their type says, within limits. A page shows them
//! as images: nothing in them runs or loads anything, not even in a drawing with scripts.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use toolcrib::call::Media;

/// Maximum bytes of a picture.
const MAX_BYTES: usize = 1 << 20;
/// Maximum width and height of a picture whose size its first bytes state, in points.
const MAX_SIDE: u64 = 10_000;
/// Type of drawings.
pub(super) const DRAWING: &str = "image/svg+xml";

/// Returns the address of an image with these bytes; otherwise the reason why a page does not show it.
pub(super) fn address(media: &Media) -> Result<String, &'static str> {
    let data = &media.data[..];
    if !media.mime_type.starts_with("image/") {
        return Err("not a picture");
    }
    if data.len() > MAX_BYTES {
        return Err("larger than 1 MiB");
    }
    let is_it = match media.mime_type.as_str() {
        "image/png" => data.starts_with(b"\x89PNG\r\n\x1a\n"),
        "image/jpeg" => data.starts_with(b"\xff\xd8\xff"),
        "image/gif" => data.starts_with(b"GIF8"),
        "image/webp" => data.starts_with(b"RIFF") && data.get(8..12) == Some(b"WEBP"),
        DRAWING => std::str::from_utf8(data).is_ok(),
        _ => return Err("of a type that the console does not show"),
    };
    if !is_it {
        return Err("of a type that its bytes do not match");
    }
    if sides(media).is_some_and(|(width, height)| width.max(height) > MAX_SIDE) {
        return Err("wider or higher than 10,000 points");
    }
    Ok(format!("data:{};base64,{}", media.mime_type, BASE64_STANDARD.encode(data)))
}

/// Returns the width and the height that the first bytes of a picture state.
fn sides(media: &Media) -> Option<(u64, u64)> {
    let number = |at: std::ops::Range<usize>| {
        media.data.get(at).map(|bytes| bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)))
    };
    let small = |at: usize| Some(number(at + 1..at + 2)? << 8 | number(at..at + 1)?);
    match media.mime_type.as_str() {
        "image/png" => Some((number(16..20)?, number(20..24)?)),
        "image/gif" => Some((small(6)?, small(8)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pictures_within_limits_are_shown() {
        let shown = |kind: &str, data: &[u8]| address(&Media::new(kind, None, data.to_vec()));
        let png = |side: u32| {
            [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &side.to_be_bytes(), &side.to_be_bytes()].concat()
        };
        assert!(shown("image/png", &png(100)).unwrap().starts_with("data:image/png;base64,iVBOR"));
        assert_eq!(shown("image/png", &png(60_000)), Err("wider or higher than 10,000 points"));
        assert_eq!(shown("image/png", b"GIF89a"), Err("of a type that its bytes do not match"));
        assert_eq!(shown("image/gif", b"GIF89a\xff\xff\x01\0"), Err("wider or higher than 10,000 points"));
        let drawing = shown(DRAWING, b"<svg onload='x'/>").unwrap();
        assert!(drawing.starts_with("data:image/svg+xml;base64,") && !drawing.contains('<'));
        assert_eq!(shown("text/html", b"<script>"), Err("not a picture"));
        assert_eq!(shown("image/x-icon", b"x"), Err("of a type that the console does not show"));
        assert_eq!(shown(DRAWING, &vec![b' '; MAX_BYTES + 1]), Err("larger than 1 MiB"));
    }
}
