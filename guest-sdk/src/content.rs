//! File content in JSON: text unchanged, other bytes as base64.

use std::borrow::Cow;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

use crate::{Error, error};

/// Encoding of content: `"utf-8"`, the default, or `"base64"`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum Encoding {
    /// UTF-8 text.
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    /// Any bytes, in the standard alphabet with padding.
    #[serde(rename = "base64")]
    Base64,
}

impl Encoding {
    /// Decodes `content`, the argument named `field`.
    ///
    /// # Errors
    ///
    /// If the content is not valid base64 but should be.
    pub fn decode<'a>(self, field: &str, content: &'a str) -> Result<Cow<'a, [u8]>, Error> {
        match self {
            Self::Utf8 => Ok(Cow::Borrowed(content.as_bytes())),
            Self::Base64 => match BASE64_STANDARD.decode(content) {
                Ok(bytes) => Ok(bytes.into()),
                Err(wrong) => Err(error!("`{field}` is not base64: {wrong}")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Encoding::{Base64, Utf8};

    #[test]
    fn content_becomes_bytes() {
        assert_eq!(Utf8.decode("content", "é").unwrap(), "é".as_bytes());
        assert_eq!(Base64.decode("content", "AP8K").unwrap(), [0, 255, 10].as_slice());
        let wrong = Base64.decode("content", "no!").unwrap_err().to_string();
        assert!(wrong.starts_with("`content` is not base64: "), "{wrong}");
    }
}
