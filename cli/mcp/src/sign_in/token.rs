//! Check of one token (RFC 7519, RFC 9068). Everything in it is a stranger's until the signature, the issuer, the audience and the
//! time are checked.

use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use toolcrib_foundation::json::{Limits, parse_within};

use super::fault::TokenFault;
use super::signature::ALGORITHMS;

/// Maximum length of a token in bytes.
pub(super) const MAX_TOKEN: usize = 8 << 10;
/// Maximum difference between the clocks of the issuer and the server, in seconds.
pub(super) const MAX_SKEW: u32 = 60;
/// Maximum length of a subject or key identifier in bytes.
const MAX_ID: usize = 255;
/// Limits of the JSON in a token.
const LIMITS: Limits = Limits { depth: 16, values: 2000 };
/// Members of a head that change how the rest is read.
const EXTENSIONS: [&str; 5] = ["crit", "b64", "enc", "zip", "cty"];
/// Claims of ID tokens (OpenID Connect Core, section 2, and the front channel's) and of logout and other event tokens (RFC 8417).
const OF_OTHERS: [&str; 5] = ["nonce", "at_hash", "c_hash", "s_hash", "events"];

/// Token before the check of its signature.
#[derive(Debug)]
pub(super) struct UncheckedToken<'t> {
    text: &'t str,
    algorithm: Algorithm,
    key: Option<String>,
    claims: Map<String, Value>,
}

/// Claims of a valid token.
#[derive(Debug)]
pub(super) struct Claims {
    pub(super) subject: String,
    /// End of the token, with the difference of the clocks.
    pub(super) expires: Timestamp,
    pub(super) all: Map<String, Value>,
}

impl<'t> UncheckedToken<'t> {
    /// Splits a token, and checks its form.
    pub(super) fn parse(text: &'t str) -> Result<Self, TokenFault> {
        if text.len() > MAX_TOKEN {
            return Err(TokenFault::Malformed);
        }
        let mut parts = text.split('.');
        let (Some(head), Some(claims), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
            return Err(TokenFault::Malformed);
        };
        let (head, claims) = (object(head)?, object(claims)?);
        let algorithm = head.get("alg").and_then(Value::as_str).ok_or(TokenFault::Malformed)?;
        let algorithm = Algorithm::from_str(algorithm).ok().filter(|one| ALGORITHMS.contains(one));
        let algorithm = algorithm.ok_or(TokenFault::Algorithm)?;
        if EXTENSIONS.iter().any(|member| head.contains_key(*member)) {
            return Err(TokenFault::Extension);
        }
        let kind = head.get("typ").map_or("jwt", |kind| kind.as_str().unwrap_or_default());
        let kind =
            kind.get(..12).filter(|start| start.eq_ignore_ascii_case("application/")).map_or(kind, |_| &kind[12..]);
        // Some providers state no type of their own for access tokens. The audience of an ID token is the client, which may be
        // registered as one with the server: its claims tell it apart.
        let is_other = match kind.to_ascii_lowercase().as_str() {
            "at+jwt" => false,
            "jwt" => OF_OTHERS.iter().any(|claim| claims.contains_key(*claim)),
            _ => true,
        };
        if is_other {
            return Err(TokenFault::Kind);
        }
        let key = match head.get("kid") {
            None => None,
            Some(Value::String(key)) if key.len() <= MAX_ID => Some(key.clone()),
            Some(_) => return Err(TokenFault::Malformed),
        };
        Ok(Self { text, algorithm, key, claims })
    }

    /// Returns the issuer that the token states.
    pub(super) fn issuer(&self) -> Option<&str> {
        self.claims.get("iss").and_then(Value::as_str)
    }

    /// Returns the key's identifier and the algorithm that the token states.
    pub(super) fn key(&self) -> (Option<&str>, Algorithm) {
        (self.key.as_deref(), self.algorithm)
    }

    /// Checks the signature by a key of the issuer, the audience and the time.
    pub(super) fn check(self, key: &DecodingKey, issuer: &str, audience: &str) -> Result<Claims, TokenFault> {
        let mut validation = Validation::new(self.algorithm);
        validation.leeway = MAX_SKEW.into();
        validation.validate_nbf = true;
        validation.set_issuer(&[issuer]);
        validation.set_audience(&[audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        decode::<IgnoredAny>(self.text, key, &validation).map_err(|error| match error.kind() {
            ErrorKind::InvalidSignature => TokenFault::Signature,
            ErrorKind::InvalidIssuer => TokenFault::Issuer,
            ErrorKind::InvalidAudience => TokenFault::Audience,
            ErrorKind::ExpiredSignature => TokenFault::Expired,
            ErrorKind::ImmatureSignature => TokenFault::Early,
            ErrorKind::InvalidAlgorithm => TokenFault::Algorithm,
            ErrorKind::MissingRequiredClaim(name) if name == "aud" => TokenFault::Audience,
            ErrorKind::MissingRequiredClaim(_) | ErrorKind::InvalidClaimFormat(_) => TokenFault::Claims,
            _ => TokenFault::Malformed,
        })?;
        // The library accepts an issuer in an array, and knows neither the time of issue nor a bound key.
        if self.issuer() != Some(issuer) {
            return Err(TokenFault::Issuer);
        }
        if self.claims.contains_key("cnf") {
            return Err(TokenFault::Bound);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        if let Some(issued) = self.claims.get("iat") {
            let issued = issued.as_f64().ok_or(TokenFault::Claims)?;
            if issued > now + f64::from(MAX_SKEW) {
                return Err(TokenFault::Early);
            }
        }
        let expires = self.claims.get("exp").and_then(Value::as_f64).ok_or(TokenFault::Claims)?;
        #[expect(clippy::cast_possible_truncation, reason = "a number out of range becomes one that is no time")]
        let expires = Timestamp::from_second((expires + f64::from(MAX_SKEW)) as i64).map_err(|_| TokenFault::Claims)?;
        let subject = self.claims.get("sub").and_then(Value::as_str).ok_or(TokenFault::Claims)?.to_owned();
        if subject.is_empty() || subject.len() > MAX_ID || subject.chars().any(char::is_control) {
            return Err(TokenFault::Claims);
        }
        Ok(Claims { subject, expires, all: self.claims })
    }
}

/// Decodes a part of a token that is a JSON object without a member twice.
fn object(part: &str) -> Result<Map<String, Value>, TokenFault> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| TokenFault::Malformed)?;
    match parse_within(&bytes, LIMITS) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(TokenFault::Malformed),
    }
}
