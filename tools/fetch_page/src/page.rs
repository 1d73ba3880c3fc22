//! Conversion of a response into text.

use toolcrib_guest::{Error, Result};

use crate::address::Address;
use crate::charset::{self, Decoded};
use crate::{Format, Response};

/// Columns of a line of text.
const WIDTH: usize = 100;
/// Maximum size of a page that is converted to text, in bytes: the conversion takes several times as much memory.
const MAX_HTML: usize = 4 << 20;

/// Answer for the model: the address of the page, and its text.
pub(crate) fn answer(fetched: &Response, address: &Address, format: Format, most: usize) -> Result<String> {
    let Response { status, content_type, body, .. } = fetched;
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if !(200..300).contains(status) {
        return Err(match status {
            404 | 410 => Error::not_found(format!("`{address}` answered {status}")),
            _ => Error::unavailable(format!("`{address}` answered {status}")),
        });
    }
    let is_html = kind == "text/html" || kind == "application/xhtml+xml";
    let is_text =
        is_html || kind.is_empty() || kind.starts_with("text/") || kind.ends_with("json") || kind.ends_with("xml");
    if !is_text {
        return Err(Error::invalid(format!("`{address}` is `{kind}`, not text: {} bytes", body.len())));
    }
    let Decoded { text: page, damaged } = charset::decode(content_type, body);
    let text = match is_html && format == Format::Text {
        true if body.len() > MAX_HTML => {
            let bytes = body.len();
            return Err(Error::invalid(format!("`{address}` has {bytes} bytes of HTML, over the limit of {MAX_HTML}")));
        }
        true => {
            html2text::from_read(page.as_bytes(), WIDTH).map_err(|error| Error::new(format!("`{address}`: {error}")))?
        }
        false => page.clone(),
    };
    let title = if is_html { title(&page) } else { None };
    let head = title.map_or_else(|| address.to_string(), |title| format!("{title} – {address}"));
    let text = text.trim();
    let end =
        damaged.map(|name| format!("\n\n[bytes that are not valid {name} are shown as \u{fffd}]")).unwrap_or_default();
    Ok(match text.char_indices().nth(most) {
        None => format!("{head}\n\n{text}{end}"),
        Some((cut, _)) => {
            let all = text.chars().count();
            format!("{head}\n\n{}\n\n[cut after {most} of {all} characters]{end}", &text[..cut])
        }
    })
}

/// Text of the element `title`, on one line.
fn title(page: &str) -> Option<String> {
    // ASCII lowercase keeps byte positions.
    let low = page.to_ascii_lowercase();
    let from = low.find("<title")?;
    let from = from + low[from..].find('>')? + 1;
    let to = from + low[from..].find("</title")?;
    let title = page[from..to].split_whitespace().collect::<Vec<_>>().join(" ");
    Some(title.chars().take(200).collect::<String>()).filter(|title| !title.is_empty())
}

#[cfg(test)]
mod tests {
    use toolcrib_guest::FailureKind;

    use super::*;

    fn page(status: u16, content_type: &str, body: &str, format: Format) -> Result<String> {
        let fetched = Response { status, location: None, content_type: content_type.into(), body: body.into() };
        answer(&fetched, &Address::parse("https://example.com/a#part").expect("an address"), format, 1000)
    }

    #[test]
    fn a_page_becomes_its_text_under_its_title_and_address() {
        let html = "<html><head><TITLE>A\n page</TITLE><script>no()</script></head><body><h1>Hi</h1><p>one <a href='/x'>two</a></p></body></html>";
        let text = page(200, "text/html; charset=utf-8", html, Format::Text).expect("text");
        assert!(text.starts_with("A page – https://example.com/a\n\n"), "{text}");
        assert!(text.contains("Hi") && text.contains("one [two]") && !text.contains("no()"), "{text}");
        assert!(page(200, "text/html", html, Format::Html).expect("html").ends_with(html));
        assert!(page(200, "text/plain", "just text", Format::Text).expect("text").ends_with("\n\njust text"));
        let cut = page(200, "text/plain", &"x".repeat(1001), Format::Text).expect("text");
        assert!(cut.ends_with("[cut after 1000 of 1001 characters]"), "{cut}");
    }

    #[test]
    fn what_is_no_page_says_so() {
        for (status, kind, wanted) in [
            (404, "text/html", FailureKind::NotFound),
            (500, "text/html", FailureKind::Unavailable),
            (200, "image/png", FailureKind::Invalid),
        ] {
            let error = page(status, kind, "x", Format::Text).expect_err("refused");
            assert_eq!(error.kind(), wanted, "{error}");
        }
    }

    #[test]
    fn a_redirect_stays_on_the_web_and_in_tls() {
        let from = Address::parse("https://example.com/a/b?c").expect("an address");
        assert_eq!(from.join("../d").expect("joined").path, "/d");
        assert_eq!(from.join("//other.example/x").expect("joined").authority, "other.example");
        for location in ["http://example.com/", "file:///etc/passwd", "https://u:p@example.com/", "ht tp"] {
            assert!(from.join(location).is_err(), "{location}");
        }
        for text in ["example.com", "ftp://example.com", "https://", "https://u@example.com"] {
            assert_eq!(Address::parse(text).expect_err(text).kind(), FailureKind::Invalid);
        }
    }
}
