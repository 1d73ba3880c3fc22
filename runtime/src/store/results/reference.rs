//! References to results: unguessable names. Text that does not have exactly their form never reaches the file system.

use std::fmt;

use toolcrib_foundation::text::shown;

use crate::error::Error;

const PREFIX: &str = "res_";
/// Hexadecimal digits of 128 random bits.
const DIGITS: usize = 32;

/// `res_` and 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference(String);

impl Reference {
    /// Creates a reference from 128 random bits of the system.
    pub(super) fn random() -> Result<Self, getrandom::Error> {
        let mut bits = [0; DIGITS / 2];
        getrandom::fill(&mut bits)?;
        Ok(Self(format!("{PREFIX}{:032x}", u128::from_ne_bytes(bits))))
    }

    /// Parses a reference.
    ///
    /// # Errors
    ///
    /// [`Error::NoResult`] if the text does not have exactly the form of a reference.
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        match text.strip_prefix(PREFIX) {
            Some(digits) if digits.len() == DIGITS && digits.bytes().all(digit) => Ok(Self(text.to_owned())),
            _ => Err(Error::NoResult {
                reference: shown(text),
                reason: format!("a reference is `{PREFIX}` and {DIGITS} of the digits 0-9 and a-f"),
            }),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_reference_has_the_form_and_is_unique() {
        let [one, other] = [(); 2].map(|()| Reference::random().expect("random bits"));
        assert_ne!(one, other);
        assert_eq!(Reference::parse(one.as_str()).expect("the form"), one);
    }

    #[test]
    fn text_without_exactly_the_form_is_no_reference() {
        let good = "res_0123456789abcdef0123456789abcdef";
        assert!(Reference::parse(good).is_ok());
        let long = format!("{good}0");
        let dressed = format!(" {good}");
        let upper = good.replace('a', "A");
        for bad in
            ["", "res_", "../x", "/res_x", &good[..35], &long, &dressed, &upper, &good[4..], &good.replace('0', "/")]
        {
            let error = Reference::parse(bad).expect_err(bad);
            assert!(matches!(error, Error::NoResult { .. }), "{error}");
        }
        let endless = "é".repeat(1 << 20);
        assert!(Reference::parse(&endless).expect_err("no reference").to_string().len() < 256);
    }
}
