//! Rules over values that a schema cannot express: comparisons of an argument with another one or with a constant.

use std::cmp::Ordering;

use serde_json::Value;

use crate::tool::{Comparison, Operand, ValueRule};

use super::clock::step;

/// Number of steps per rule, which may compare two large values.
const STEPS_PER_RULE: usize = 1024;

/// Rules of one tool.
#[derive(Debug)]
pub(super) struct Rules(Vec<ValueRule>);

impl Rules {
    pub(super) fn new(rules: &[ValueRule]) -> Self {
        Self(rules.to_vec())
    }

    /// Checks arguments.
    ///
    /// # Errors
    ///
    /// The message of the first violated rule.
    pub(super) fn check(&self, arguments: &Value) -> Result<(), String> {
        match self.0.iter().take_while(|_| step(STEPS_PER_RULE)).find(|rule| !holds(rule, arguments)) {
            Some(rule) => Err(format!("invalid values: {}", rule.message.clone().unwrap_or_else(|| describe(rule)))),
            None => Ok(()),
        }
    }
}

/// Returns `true` if a rule holds. It holds if one of its arguments is absent: the schema decides which are required.
fn holds(rule: &ValueRule, arguments: &Value) -> bool {
    let left = arguments.pointer(&rule.field);
    let right = match &rule.than {
        Operand::Field(field) => arguments.pointer(field),
        Operand::Value(value) => Some(value),
    };
    let (Some(left), Some(right)) = (left, right) else { return true };
    let order = compare(left, right);
    match rule.is {
        Comparison::Equal => order == Some(Ordering::Equal),
        Comparison::NotEqual => order != Some(Ordering::Equal),
        Comparison::Less => order == Some(Ordering::Less),
        Comparison::AtMost => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Comparison::More => order == Some(Ordering::Greater),
        Comparison::AtLeast => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

/// Compares two values. Values of different types have no order, nor do objects and arrays that differ.
fn compare(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => match (left.as_i128(), right.as_i128()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ => left.as_f64()?.partial_cmp(&right.as_f64()?),
        },
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        _ => (left == right).then_some(Ordering::Equal),
    }
}

/// Describes a rule for a message.
fn describe(rule: &ValueRule) -> String {
    let than = match &rule.than {
        Operand::Field(field) => format!("`{field}`"),
        Operand::Value(value) => value.to_string(),
    };
    format!("`{}` must be {} {than}", rule.field, rule.is.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(rule: (&str, Comparison, Operand), arguments: Value) -> Result<(), String> {
        let rule = ValueRule { field: rule.0.into(), is: rule.1, than: rule.2, message: None };
        Rules(vec![rule]).check(&arguments)
    }

    #[test]
    fn one_argument_is_held_against_another() {
        let rule = || ("/start", Comparison::AtMost, Operand::Field("/end".into()));
        assert_eq!(check(rule(), json!({"start": 2, "end": 3})), Ok(()));
        assert_eq!(check(rule(), json!({"start": 2})), Ok(()));
        let error = check(rule(), json!({"start": 9007199254740993_i64, "end": 9007199254740992_i64})).unwrap_err();
        assert_eq!(error, "invalid values: `/start` must be <= `/end`");
        let equal = ("/a", Comparison::Equal, Operand::Field("/b".into()));
        assert!(check(equal, json!({"a": u64::MAX, "b": u64::MAX - 1})).is_err(), "no whole number is rounded");
        let less = ("/a", Comparison::Less, Operand::Field("/b".into()));
        assert_eq!(check(less, json!({"a": -1, "b": u64::MAX})), Ok(()));
    }

    #[test]
    fn values_of_different_kinds_do_not_compare() {
        let rule = |is| ("/a", is, Operand::Value(json!("x")));
        assert!(check(rule(Comparison::AtMost), json!({"a": 1})).is_err());
        assert!(check(rule(Comparison::Equal), json!({"a": 1})).is_err());
        assert!(check(rule(Comparison::NotEqual), json!({"a": 1})).is_ok());
        assert!(check(rule(Comparison::NotEqual), json!({"a": "x"})).is_err());
    }
}
