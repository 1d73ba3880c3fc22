//! Rules for people: claims that an issuer states, and the rights of those that have them.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::access::TokenScope;

/// Claims with words that are separated by spaces.
const WORDS: [&str; 2] = ["scope", "scp"];
/// Maximum characters of a claim in a name. A record has 128 for the whole name: the label and the mark fit too.
const MAX_NAME: usize = 40;
/// Digits of a person's mark.
const MARK: usize = 16;

/// Rights of people with some claims.
#[derive(Debug)]
pub(super) struct ClaimRule {
    /// Claims that a token must have, all of them.
    pub(super) claims: Map<String, Value>,
    /// Permissions and rules of the person, in addition to those for all.
    pub(super) options: Arc<[String]>,
    /// Parts of the server that the person may use.
    pub(super) scopes: Arc<[TokenScope]>,
}

impl ClaimRule {
    /// Returns `true` if the claims of a token fit.
    pub(super) fn admits(&self, claims: &Map<String, Value>) -> bool {
        self.claims.iter().all(|(name, wanted)| match claims.get(name) {
            Some(Value::String(words)) if WORDS.contains(&name.as_str()) => {
                let words: Value = words.split(' ').collect();
                has(&words, wanted)
            }
            Some(found) => has(found, wanted),
            None => false,
        })
    }
}

/// Returns `true` if a claim has a wanted value, one of several, or a wanted object.
fn has(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (_, Value::Array(several)) => several.iter().any(|one| has(found, one)),
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| found.get(name).is_some_and(|found| has(found, wanted)))
        }
        (Value::Array(all), _) => all.contains(wanted),
        _ => found == wanted,
    }
}

/// Returns `true` if a token's scopes include one, by the claim `scope`, or else `scp`.
pub(super) fn has_scope(claims: &Map<String, Value>, scope: &str) -> bool {
    let stated = WORDS.iter().find_map(|name| claims.get(*name));
    match stated {
        Some(Value::String(words)) => words.split(' ').any(|word| word == scope),
        Some(Value::Array(all)) => all.iter().any(|one| one == scope),
        _ => false,
    }
}

/// Returns a person's name for records and approvals: the issuer's label, and the subject or another claim. No token has a name with
/// a `/`. A text that is not exactly the subject is followed by `#` and digits of the holder's digest, because several people may
/// have the same one: no two people share a name.
pub(super) fn name(label: &str, claim: Option<&Value>, subject: &str, holder: &str) -> Arc<str> {
    let text = claim.and_then(Value::as_str).filter(|text| !text.is_empty()).unwrap_or(subject);
    let is_plain = |c: char| c.is_alphanumeric() || "-_.@+|".contains(c);
    let plain: String = text.chars().take(MAX_NAME).map(|c| if is_plain(c) { c } else { '_' }).collect();
    if plain == subject {
        return format!("{label}/{plain}").into();
    }
    let digits = holder.rsplit(':').next().unwrap_or_default();
    let mark: String = digits.chars().take(MARK).collect();
    format!("{label}/{plain}#{mark}").into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_rule_wants_all_of_its_claims() {
        let token = map(json!({
            "groups": ["dev", "ops"], "verified": true, "level": 3, "scope": "openid tools:call",
            "realm_access": {"roles": ["admin"]}, "realm_access.roles": "forged",
        }));
        let admits = |claims: Value| {
            ClaimRule { claims: map(claims), options: Arc::default(), scopes: Arc::default() }.admits(&token)
        };
        for claims in [
            json!({}),
            json!({"groups": "dev"}),
            json!({"groups": ["qa", "ops"]}),
            json!({"verified": true, "level": 3}),
            json!({"scope": "tools:call"}),
            json!({"realm_access": {"roles": "admin"}}),
        ] {
            assert!(admits(claims.clone()), "{claims}");
        }
        for claims in [
            json!({"groups": "de"}),
            json!({"groups": "dev", "verified": false}),
            json!({"verified": "true"}),
            json!({"scope": "tools"}),
            json!({"realm_access": {"roles": "forged"}}),
            json!({"realm_access": "admin"}),
            json!({"missing": "x"}),
            json!({"level": {"x": 3}}),
        ] {
            assert!(!admits(claims.clone()), "{claims}");
        }
    }

    #[test]
    fn scopes_are_words_or_items() {
        for (claims, is) in [
            (json!({"scope": "a tools:call"}), true),
            (json!({"scp": "tools:call"}), true),
            (json!({"scp": ["tools:call"]}), true),
            (json!({"scope": "a", "scp": "tools:call"}), false),
            (json!({"scope": "tools:calls"}), false),
            (json!({"scope": {"tools:call": 1}}), false),
            (json!({}), false),
        ] {
            assert_eq!(has_scope(&map(claims.clone()), "tools:call"), is, "{claims}");
        }
    }

    #[test]
    fn a_name_is_one_word_that_no_token_and_no_other_person_has() {
        let holder = format!("sha256:{}", "0123456789abcdef".repeat(4));
        let of = |claim: Value, subject: &str| name("corp", Some(&claim), subject, &holder).to_string();
        assert_eq!(of(json!("ada@example.com"), "7"), "corp/ada@example.com#0123456789abcdef");
        assert_ne!(of(json!("8"), "7"), of(json!("8"), "8"), "the name of one is the subject of another");
        for claim in [json!(""), json!(null), json!(["x"]), json!(1), json!("7")] {
            assert_eq!(of(claim, "7"), "corp/7");
        }
        assert_eq!(of(json!("a: b\n\u{202e}c"), "7"), "corp/a__b__c#0123456789abcdef");
        assert_eq!(of(json!(null), "a b"), "corp/a_b#0123456789abcdef", "another subject has the same letters");
        let long = name(&"l".repeat(64), Some(&json!("ä".repeat(1000))), "7", &holder);
        assert!(long.chars().count() <= 128 && long.ends_with("#0123456789abcdef"), "{long}");
    }
}
