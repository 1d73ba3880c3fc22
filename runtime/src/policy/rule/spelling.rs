//! Texts of values for comparison with a pattern. A tool reads most spellings of a value alike: `4e15`,
//! `4000000000000000` and `4000000000000000.0` are one number, and the members of an object have no order. So a value
//! has one plain text, and restrictions compare the others too.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use crate::tool::Glob;

/// Whole numbers below this one are exact as floating-point numbers: 2^53.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// Text of a missing value, which tools read like `null`.
const NULL: &str = "null";

/// Returns the plain text of a number: all digits, without an exponent and without a zero fraction.
pub(crate) fn plain(number: &Number) -> String {
    match number.as_f64() {
        Some(wide) if number.is_f64() => plain_float(wide),
        _ => number.to_string(),
    }
}

fn plain_float(wide: f64) -> String {
    // Negative zero is zero for every tool.
    if wide == 0.0 { "0".to_owned() } else { format!("{wide}") }
}

/// Returns `true` if a permission for this pattern applies to a number: as it is written after it was read, so that a whole number
/// and one with a fraction, which may have been rounded, differ. Larger numbers that may have been rounded need a pattern for
/// everything.
pub(super) fn allows_number(pattern: &Glob, number: &Number) -> bool {
    let is_exact = !number.is_f64() || number.as_f64().is_some_and(|wide| wide.abs() < EXACT);
    let is_literal = || {
        let literal = serde_json::from_str::<Number>(pattern.as_str()).ok();
        let is_same = |literal: &Number| number.is_f64() == literal.is_f64() && plain(literal) == plain(number);
        literal.is_some_and(|literal| is_same(&literal))
    };
    pattern.is_everything() || is_exact && (pattern.is_match(&number.to_string()) || is_literal())
}

/// Returns `true` if a pattern is an array or object of JSON with a canonical text's meaning, or a pattern for it.
pub(crate) fn means(pattern: &Glob, canonical: &str) -> bool {
    let literal = || serde_json::from_str::<Value>(pattern.as_str()).ok();
    let glob = |literal: Value| canonical_part(&literal).to_string().parse::<Glob>().ok();
    pattern.as_str().starts_with(['{', '[']) && literal().and_then(glob).is_some_and(|glob| glob.is_match(canonical))
}

/// Returns `true` if a restriction applies to a number: by its plain text, as it was written, or as tools with floating-point
/// numbers read it.
pub(crate) fn matches_number(pattern: &Glob, number: &Number) -> bool {
    let rounded = || number.as_f64().is_some_and(|wide| pattern.is_match(&plain_float(wide)));
    pattern.is_match(&plain(number)) || pattern.is_match(&number.to_string()) || rounded() || is_near(pattern, number)
}

/// Returns `true` if a pattern is one number, and a tool with floating-point numbers reads it like this one.
fn is_near(pattern: &Glob, number: &Number) -> bool {
    let literal = || serde_json::from_str::<Number>(pattern.as_str()).ok()?.as_f64();
    pattern.as_str().starts_with(|first: char| first.is_ascii_digit() || first == '-') && literal() == number.as_f64()
}

/// Returns `true` if a pattern is the text of a missing value.
pub(crate) fn is_null(pattern: &Glob) -> bool {
    pattern.as_str() == NULL
}

/// Returns an array or object with plain numbers and with sorted members, or a plain number; `None` for any other value.
pub(crate) fn canonical(value: &Value) -> Option<Value> {
    match canonical_part(value) {
        Cow::Owned(value) => Some(value),
        Cow::Borrowed(_) => None,
    }
}

fn canonical_part(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::Number(number) if number.is_f64() => {
            let whole = plain(number).parse::<i64>().ok();
            whole.map_or(Cow::Borrowed(value), |whole| Cow::Owned(Value::from(whole)))
        }
        Value::Array(items) => Cow::Owned(items.iter().map(|item| canonical_part(item).into_owned()).collect()),
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| name.as_str());
            let members = members.into_iter().map(|(name, value)| (name.clone(), canonical_part(value).into_owned()));
            Cow::Owned(Value::Object(members.collect::<Map<_, _>>()))
        }
        _ => Cow::Borrowed(value),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::json;

    use super::*;
    use crate::call::Behavior;
    use crate::policy::rule::{Rule, RuleDecision, Rules};
    use crate::policy::{Allowed, Grant};
    use crate::tool::Tool;

    fn is_denied(rule: &str, tool: &Tool, arguments: &str) -> bool {
        let mut rules = Rules::default();
        rules.add(Rule::new(Behavior::Deny, rule.parse().unwrap(), "test"));
        let grant = Grant::new(tool, &Allowed::default(), &HashMap::new()).unwrap();
        matches!(rules.decide(tool, &grant, &serde_json::from_str(arguments).unwrap()), RuleDecision::Deny(_))
    }

    /// Writes a decimal number, `digits` with a point before the last `fraction` of them, in another form.
    fn spelled(digits: i64, fraction: usize, form: usize) -> String {
        let sign = if digits < 0 { "-" } else { "" };
        let all = format!("{:0>width$}", digits.unsigned_abs(), width = fraction + 1);
        let (whole, rest) = all.split_at(all.len() - fraction);
        let point = if rest.is_empty() { String::new() } else { format!(".{rest}") };
        let digits_alone = all.trim_start_matches('0');
        match form {
            0 => format!("{sign}{whole}{point}"),
            1 if rest.is_empty() => format!("{sign}{whole}.0"),
            1 => format!("{sign}{whole}.{rest}0"),
            2 => format!("{sign}{whole}{point}e0"),
            3 => format!("{sign}{whole}{point}E+00"),
            4 if digits != 0 => format!("{sign}{digits_alone}e-{fraction}"),
            _ if digits != 0 => format!("{sign}{digits_alone}00e-{}", fraction + 2),
            _ => "-0".to_owned(),
        }
    }

    #[test]
    fn no_other_spelling_of_a_number_passes_a_denial() {
        let tool = crate::tool::tests::plain("t");
        let mut seed = 7_u64;
        let mut next = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % bound
        };
        for _ in 0..2_000 {
            let size = 10_u64.pow(u32::try_from(next(15) + 1).unwrap());
            let digits = i64::try_from(next(size)).unwrap() * if next(3) == 0 { -1 } else { 1 };
            let fraction = usize::try_from(next(6)).unwrap() % 4;
            for form in 0..6 {
                let [written, given] =
                    [spelled(digits, fraction, form), spelled(digits, fraction, usize::try_from(next(6)).unwrap())];
                let same = written.parse::<f64>().unwrap() == given.parse::<f64>().unwrap();
                assert!(same, "{written} {given}: the test is wrong");
                assert!(
                    is_denied(&format!("t(n={written})"), &tool, &format!(r#"{{"n":{given}}}"#)),
                    "{written} {given}"
                );
            }
        }
        for (rule, given) in [
            ("t(id=4000000000000000)", "4e15"),
            ("t(id=4000000000000000)", "4000000000000000.0"),
            ("t(id=9007199254740993)", "9007199254740993.0"),
            ("t(id=9007199254740992)", "9007199254740993"),
            ("t(id=0)", "-0"),
            ("t(id=-0.0)", "0"),
            ("t(id=1e2)", "100"),
            ("t(id=4*)", "4e15"),
        ] {
            assert!(is_denied(rule, &tool, &format!(r#"{{"id":{given}}}"#)), "{rule} {given}");
        }
        for (rule, given) in [("t(id=4)", "40"), ("t(id=1)", "1.5"), ("t(id=1)", r#""1.0""#), ("t(id=1)", "-1")] {
            assert!(!is_denied(rule, &tool, &format!(r#"{{"id":{given}}}"#)), "{rule} {given}");
        }
    }

    #[test]
    fn a_permission_applies_to_no_other_value_than_its_pattern() {
        let tool = crate::tool::tests::plain("t");
        let is_allowed = |rule: &str, arguments: &str| {
            let mut rules = Rules::default();
            rules.add(Rule::new(Behavior::Allow, rule.parse().unwrap(), "test"));
            let grant = Grant::new(&tool, &Allowed::default(), &HashMap::new()).unwrap();
            matches!(rules.decide(&tool, &grant, &serde_json::from_str(arguments).unwrap()), RuleDecision::Allow(_))
        };
        for (rule, given, expected) in [
            ("t(v=1.10)", r#"{"v":"1.10"}"#, true),
            ("t(v=1.10)", r#"{"v":"1.1"}"#, false),
            ("t(v=1.10)", r#"{"v":1.1}"#, true),
            ("t(v=1.5)", r#"{"v":1.5}"#, true),
            ("t(v=10)", r#"{"v":9.99999999999999999999}"#, false),
            ("t(v=10)", r#"{"v":10}"#, true),
            ("t(v=10.0)", r#"{"v":10}"#, false),
            ("t(v=2.0)", r#"{"v":"2"}"#, false),
            ("t(v=1e3)", r#"{"v":"1000"}"#, false),
            ("t(v=1e3)", r#"{"v":1000}"#, false),
            ("t(v=1e3)", r#"{"v":1000.0}"#, true),
            ("t(v=123456789012345678901234567890)", r#"{"v":123456789012345678901234567891}"#, false),
            ("t(v=9007199254740993)", r#"{"v":9007199254740993}"#, true),
            ("t(v=9007199254740993)", r#"{"v":9007199254740993.0}"#, false),
            ("t(v=1*)", r#"{"v":1e300}"#, false),
            ("t(v=*)", r#"{"v":1e300}"#, true),
        ] {
            assert_eq!(is_allowed(rule, given), expected, "{rule} {given}");
        }
    }

    #[test]
    fn a_missing_argument_and_another_order_of_members_pass_no_denial() {
        let tool = crate::tool::tests::plain("t");
        assert!(is_denied("t(mode=null)", &tool, "{}") && is_denied("t(mode=null)", &tool, r#"{"mode":null}"#));
        assert!(!is_denied("t(mode=*)", &tool, "{}"), "any value, and none is given");
        for given in [r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, r#"{"b":2.0,"a":1e0}"#] {
            assert!(is_denied(r#"t(at="{"a":1,*")"#, &tool, &format!(r#"{{"at":{given}}}"#)), "{given}");
        }
        for given in [r#"{"a":1,"b":[2]}"#, r#"{"b":[2.0],"a":1e0}"#] {
            assert!(is_denied(r#"t(at="{"b":[2],"a":1}")"#, &tool, &format!(r#"{{"at":{given}}}"#)), "{given}");
        }
        assert!(!is_denied(r#"t(at="{"b":2,"a":1}")"#, &tool, r#"{"at":{"b":1,"a":2}}"#));
        assert!(is_denied(r#"t(at="{"b":"x*","a":1}")"#, &tool, r#"{"at":{"a":1,"b":"xyz"}}"#));
        let value = json!({"b": 2.0, "a": {"d": 1, "c": [1e3, -0.0]}});
        assert_eq!(canonical(&value).unwrap().to_string(), r#"{"a":{"c":[1000,0],"d":1},"b":2}"#);
        assert_eq!(canonical(&json!("text")), None);
    }
}
