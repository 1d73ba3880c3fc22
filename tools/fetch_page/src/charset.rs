//! Encoding of a page, and its text. The order of the sources is that of browsers: a byte order mark, the header, then a
//! declaration in the first bytes of the page.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Number of bytes in which a page may declare its encoding.
const DECLARATION: usize = 1024;

/// Text of a page.
pub(crate) struct Decoded {
    pub(crate) text: String,
    /// Name of the encoding, if some bytes are not valid in it.
    pub(crate) damaged: Option<&'static str>,
}

/// Decodes a page with this `content-type`.
pub(crate) fn decode(content_type: &str, body: &[u8]) -> Decoded {
    let declared = || declared(&body[..body.len().min(DECLARATION)]);
    let named = Encoding::for_bom(body).map(|(encoding, _)| encoding);
    let encoding = named.or_else(|| parameter(content_type)).or_else(declared).unwrap_or_else(|| {
        // A page that declares nothing is what most pages are, if it can be.
        if std::str::from_utf8(body).is_ok() { UTF_8 } else { WINDOWS_1252 }
    });
    let (text, encoding, has_errors) = encoding.decode(body);
    Decoded { text: text.into_owned(), damaged: has_errors.then_some(encoding.name()) }
}

/// Encoding in the header.
fn parameter(content_type: &str) -> Option<&'static Encoding> {
    let mut parameters = content_type.split(';').skip(1).filter_map(|part| part.split_once('='));
    let (_, label) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))?;
    Encoding::for_label(label.trim().trim_matches(['"', '\'']).as_bytes())
}

/// Encoding that an element `meta` or an XML declaration names.
fn declared(beginning: &[u8]) -> Option<&'static Encoding> {
    let beginning = String::from_utf8_lossy(beginning).to_ascii_lowercase();
    let after = |text: &'_ str, name: &str| {
        let text = text[text.find(name)? + name.len()..].trim_start().strip_prefix('=')?.trim_start().to_owned();
        let label = text.trim_start_matches(['"', '\'']);
        let end = label.find(|c: char| c.is_ascii_whitespace() || "\"'>;/?".contains(c)).unwrap_or(label.len());
        Encoding::for_label(&label.as_bytes()[..end])
    };
    let xml = beginning.trim_start().strip_prefix("<?xml").and_then(|rest| after(rest.split('>').next()?, "encoding"));
    let meta = || beginning.split("<meta").skip(1).find_map(|rest| after(rest.split('>').next()?, "charset"));
    // An encoding in which the declaration itself could not be read is not the page's.
    xml.or_else(meta).map(|encoding| if [UTF_16LE, UTF_16BE].contains(&encoding) { UTF_8 } else { encoding })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content_type: &str, body: &[u8]) -> String {
        decode(content_type, body).text
    }

    #[test]
    fn a_page_is_read_in_the_encoding_that_it_has() {
        let russian = [0xcf, 0xf0, 0xe8, 0xe2, 0xe5, 0xf2];
        assert_eq!(text("text/html; charset=windows-1251", &russian), "Привет");
        assert_eq!(text("text/html;Charset=\"CP1251\"", &russian), "Привет");
        let japanese = [b"<meta charset=\"Shift_JIS\">".as_slice(), &[0x93, 0xfa, 0x96, 0x7b]].concat();
        assert!(text("text/html", &japanese).ends_with("日本"));
        let equivalent = [
            b"<html><META http-equiv='Content-Type' content='text/html; charset=koi8-r'>".as_slice(),
            &[0xf0, 0xd2, 0xc9],
        ];
        assert!(text("text/html", &equivalent.concat()).ends_with("При"));
        let xml = [b"<?xml version='1.0' encoding='ISO-8859-2'?>".as_slice(), &[0xb1]].concat();
        assert!(text("application/xhtml+xml", &xml).ends_with('ą'));
        assert_eq!(text("text/html", b"\xff\xfeh\0i\0"), "hi");
        assert_eq!(text("text/html; charset=utf-16be", b"\0h\0i"), "hi");
        assert_eq!(text("text/plain", "\u{feff}grüß".as_bytes()), "grüß");
        assert_eq!(text("text/plain", b"gr\xfc\xdf"), "grüß", "neither declared nor UTF-8");
        assert_eq!(text("text/html; charset=windows-1251", b"\xef\xbb\xbfhi"), "hi", "the mark is stronger");
    }

    #[test]
    fn a_declaration_counts_in_the_first_kilobyte_and_not_for_its_own_encoding() {
        let late = [vec![b' '; DECLARATION], b"<meta charset=koi8-r>\xf0".to_vec()].concat();
        assert!(!text("text/html", &late).ends_with('П'));
        assert!(text("text/html", "<meta charset=utf-16>ü".as_bytes()).ends_with('ü'));
        assert!(text("text/html; charset=nonsense", "<meta charset=utf-8>ü".as_bytes()).ends_with('ü'));
    }

    #[test]
    fn bytes_that_are_not_of_the_encoding_are_reported() {
        assert_eq!(decode("text/html; charset=utf-8", b"a\xff").damaged, Some("UTF-8"));
        assert_eq!(decode("text/html; charset=utf-8", b"a").damaged, None);
    }
}
