//! Authentication challenges: the header `WWW-Authenticate` of a 401 response.
//!
//! Source: RFC 9110, section 11.6.1. Two schemes are known, `Bearer` and `Basic`; others are skipped.

use crate::error::{Error, What};
use crate::limits::MAX_URL_BYTES;

/// Challenge that the client can meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// A token is required, from the token server `realm`.
    Bearer { realm: String, service: Option<String> },
    /// User name and password are required.
    Basic,
}

/// Parses the values of all `WWW-Authenticate` headers. `Bearer` is preferred, as it keeps the password away from the
/// registry. `None` if no scheme is known.
pub(crate) fn parse<'a>(headers: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<Challenge>, Error> {
    let mut found = None;
    for header in headers {
        if header.len() > MAX_URL_BYTES {
            return Err(Error::TooLarge { what: What::Challenge, limit: MAX_URL_BYTES as u64 });
        }
        let text = std::str::from_utf8(header).ok().filter(|text| text.is_ascii()).ok_or_else(malformed)?;
        for challenge in challenges(text)? {
            match challenge {
                Challenge::Bearer { .. } => return Ok(Some(challenge)),
                Challenge::Basic => found = Some(challenge),
            }
        }
    }
    Ok(found)
}

/// One parameter of a challenge: name and value.
type Parameter = (String, String);

fn challenges(text: &str) -> Result<Vec<Challenge>, Error> {
    let mut raw: Vec<(String, Vec<Parameter>)> = Vec::new();
    let mut rest = text.trim_start_matches([' ', '\t', ',']);
    while !rest.is_empty() {
        let (name, after) = token(rest)?;
        let trimmed = after.trim_start_matches([' ', '\t']);
        match trimmed.strip_prefix('=') {
            // A parameter of the scheme before it.
            Some(value) if !raw.is_empty() => {
                let (value, after) = parameter_value(value.trim_start_matches([' ', '\t']))?;
                if let Some((_, parameters)) = raw.last_mut() {
                    parameters.push((name.to_ascii_lowercase(), value));
                }
                let after = after.trim_start_matches([' ', '\t']);
                if !after.is_empty() && !after.starts_with(',') {
                    return Err(malformed());
                }
                rest = after.trim_start_matches([' ', '\t', ',']);
            }
            Some(_) => return Err(malformed()),
            // A scheme. It is divided from its parameters by a space.
            None if after.is_empty() || after.starts_with([' ', '\t', ',']) => {
                raw.push((name.to_ascii_lowercase(), Vec::new()));
                rest = after.trim_start_matches([' ', '\t', ',']);
            }
            None => return Err(malformed()),
        }
    }
    raw.into_iter().filter_map(|(scheme, parameters)| known(&scheme, parameters).transpose()).collect()
}

fn known(scheme: &str, parameters: Vec<Parameter>) -> Result<Option<Challenge>, Error> {
    let mut realm = None;
    let mut service = None;
    for (name, value) in parameters {
        let field = match name.as_str() {
            "realm" => &mut realm,
            "service" => &mut service,
            _ => continue,
        };
        if field.replace(value).is_some() {
            return Err(malformed());
        }
    }
    match scheme {
        "basic" => Ok(Some(Challenge::Basic)),
        "bearer" => Ok(Some(Challenge::Bearer { realm: realm.ok_or_else(malformed)?, service })),
        _ => Ok(None),
    }
}

fn token(text: &str) -> Result<(&str, &str), Error> {
    let symbol = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let end = text.find(|c| !symbol(c)).unwrap_or(text.len());
    if end == 0 { Err(malformed()) } else { Ok(text.split_at(end)) }
}

fn parameter_value(text: &str) -> Result<(String, &str), Error> {
    let Some(quoted) = text.strip_prefix('"') else {
        return token(text).map(|(value, rest)| (value.to_owned(), rest));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Ok((value, &quoted[at + 1..])),
            '\\' => value.push(characters.next().ok_or_else(malformed)?.1),
            ' '..='~' => value.push(character),
            _ => return Err(malformed()),
        }
    }
    Err(malformed())
}

fn malformed() -> Error {
    Error::malformed(What::Challenge, "the header `WWW-Authenticate` does not follow RFC 9110")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Option<Challenge> {
        parse([text.as_bytes()]).unwrap()
    }

    fn bearer(realm: &str, service: Option<&str>) -> Option<Challenge> {
        Some(Challenge::Bearer { realm: realm.to_owned(), service: service.map(str::to_owned) })
    }

    #[test]
    fn the_usual_challenges_are_understood() {
        let text = r#"Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a:pull""#;
        assert_eq!(one(text), bearer("https://auth.example/token", Some("registry.example")));
        assert_eq!(one(r#"Basic realm="x""#), Some(Challenge::Basic));
        assert_eq!(one("basic"), Some(Challenge::Basic));
        assert_eq!(one("Negotiate"), None);
        assert_eq!(one(r#"BEARER Realm = "https://a/\"b" , error="x""#), bearer("https://a/\"b", None));
        assert_eq!(parse([]).unwrap(), None);
    }

    #[test]
    fn a_token_is_preferred_over_a_password() {
        let expected = bearer("https://a/t", None);
        assert_eq!(one(r#"Basic realm="x", Bearer realm="https://a/t""#), expected);
        assert_eq!(parse([&b"Basic realm=\"x\""[..], b"Bearer realm=\"https://a/t\""]).unwrap(), expected);
    }

    #[test]
    fn a_malformed_challenge_is_refused() {
        for text in [
            "Bearer",
            r#"Bearer realm="https://a"#,
            r#"Bearer realm="a" realm="b""#,
            r#"Bearer realm="a",realm="b""#,
            r#"realm="a""#,
            r#"Bearer realm="a\"#,
            "Bearer realm=\"a\u{7f}\"",
            "Bearer realm=\"ä\"",
            r#"Bearer realm="""#.trim_end_matches('"'),
            "Bearer/1",
        ] {
            assert!(matches!(parse([text.as_bytes()]), Err(Error::Malformed { .. })), "{text}");
        }
    }

    #[test]
    fn a_challenge_over_the_limit_is_refused() {
        let long = format!("Bearer realm=\"https://a/{}\"", "x".repeat(MAX_URL_BYTES));
        assert!(matches!(parse([long.as_bytes()]), Err(Error::TooLarge { .. })));
    }
}
