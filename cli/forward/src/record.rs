//! Records as they are sent: the line of the log, or the line without its arguments, and the few facts that receivers sort by.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolcrib::audit::{LogPlace, SealedRecord};

/// Maximum characters of a host name.
const MAX_HOST: usize = 255;

/// A record that is sent.
#[derive(Debug, Clone)]
pub(crate) struct ForwardedRecord {
    /// One JSON object, as in the log, or without arguments.
    pub(crate) line: String,
    pub(crate) place: LogPlace,
}

/// Importance of a record for receivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordGrade {
    /// The call had a result.
    Info,
    /// The call was refused.
    Warning,
    /// The call failed by itself, or the line is no record.
    Error,
}

/// Facts in a record. Those that it does not have are empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RecordFacts {
    pub(crate) ts: String,
    pub(crate) tool: String,
    pub(crate) outcome: String,
    pub(crate) run: String,
    pub(crate) call_id: String,
    pub(crate) invocation: String,
    pub(crate) door: String,
    pub(crate) trace: String,
    pub(crate) parent_span: String,
}

impl ForwardedRecord {
    /// Takes a record of the log, with or without its arguments.
    pub(crate) fn new(record: SealedRecord, has_arguments: bool) -> Self {
        let SealedRecord { line, place, .. } = record;
        let line = if has_arguments { line } else { without_arguments(&line, &place) };
        Self { line, place }
    }

    /// Reads the facts; none of a line that was changed and is no longer a record.
    pub(crate) fn facts(&self) -> RecordFacts {
        serde_json::from_str(&self.line).unwrap_or_default()
    }
}

impl RecordFacts {
    /// Grades the outcome of the call.
    pub(crate) fn grade(&self) -> RecordGrade {
        match self.outcome.as_str() {
            "ok" => RecordGrade::Info,
            "denied" => RecordGrade::Warning,
            _ => RecordGrade::Error,
        }
    }
}

/// Replaces control characters by spaces. A line of the log has no line break, and may have others.
pub(crate) fn plain(line: &str) -> Cow<'_, str> {
    if line.chars().any(char::is_control) { line.replace(char::is_control, " ").into() } else { line.into() }
}

/// Removes the members that state arguments or may quote one from a record, and leaves everything else as it is: `arguments`,
/// `denied`, and `restsOn` of the decision. Of a line that cannot be read, only its place remains.
pub(crate) fn without_arguments(line: &str, place: &LogPlace) -> String {
    let Ok(parts) = argument_parts(line) else {
        return format!("{{\"seq\":{},\"chain\":\"{}\"}}", place.seq, place.chain);
    };
    let (mut short, mut start) = (String::new(), 0);
    for part in parts {
        short.push_str(&line[start..part.start]);
        start = part.end;
    }
    short + &line[start..]
}

/// Finds the members with arguments in a record, each with the comma before it, in their order.
fn argument_parts(line: &str) -> Result<Vec<Range<usize>>, ()> {
    #[derive(Deserialize)]
    struct Members<'a> {
        #[serde(borrow, default)]
        arguments: Option<&'a RawValue>,
        #[serde(borrow, default)]
        denied: Option<&'a RawValue>,
        #[serde(borrow, default)]
        decision: Option<Decision<'a>>,
    }
    #[derive(Deserialize)]
    struct Decision<'a> {
        #[serde(borrow, default, rename = "restsOn")]
        rests_on: Option<&'a RawValue>,
    }
    let Members { arguments, denied, decision } = serde_json::from_str(line).map_err(|_| ())?;
    let rests_on = decision.and_then(|decision| decision.rests_on);
    let mut parts = Vec::new();
    for (name, value) in [(",\"arguments\":", arguments), (",\"denied\":", denied), (",\"restsOn\":", rests_on)] {
        let Some(value) = value.map(RawValue::get) else { continue };
        // The value borrows from the line.
        let start = (value.as_ptr() as usize).checked_sub(line.as_ptr() as usize).ok_or(())?;
        let before = line.get(..start).ok_or(())?.strip_suffix(name).ok_or(())?;
        parts.push(before.len()..start + value.len());
    }
    parts.sort_by_key(|part| part.start);
    Ok(parts)
}

/// Returns the name of this machine, as far as files or variables of the system have it.
#[cfg(not(windows))]
pub fn host_name() -> Option<String> {
    let files = ["/proc/sys/kernel/hostname", "/etc/hostname"];
    let read = |file| plain_host(&std::fs::read_to_string(file).ok()?);
    files.into_iter().find_map(read).or_else(|| plain_host(&std::env::var("HOSTNAME").ok()?))
}

/// Returns the name of this machine, as far as files or variables of the system have it.
#[cfg(windows)]
pub fn host_name() -> Option<String> {
    plain_host(&std::env::var("COMPUTERNAME").ok()?)
}

/// Returns a host name of visible ASCII characters.
fn plain_host(name: &str) -> Option<String> {
    let plain: String = name.chars().filter(char::is_ascii_graphic).take(MAX_HOST).collect();
    (!plain.is_empty()).then_some(plain)
}

#[cfg(test)]
mod tests {
    use toolcrib::audit::Day;

    use super::*;

    #[test]
    fn arguments_are_removed_and_nothing_else_changes() {
        let chain = "0".repeat(64);
        let place =
            LogPlace { seq: 7, chain: chain.parse().unwrap(), day: "2026-03-01".parse::<Day>().unwrap(), offset: 0 };
        for (line, expected) in [
            (r#"{"ts":"","ms":1.50,"arguments":{"json":{"a":"}"}},"seq":7}"#, r#"{"ts":"","ms":1.50,"seq":7}"#),
            (r#"{"ts":"","x":{"arguments":1},"arguments":2}"#, r#"{"ts":"","x":{"arguments":1}}"#),
            (r#"{"ts":",\"arguments\":1","arguments":1,"seq":7}"#, r#"{"ts":",\"arguments\":1","seq":7}"#),
            (r#"{"ts":"","seq":7}"#, r#"{"ts":"","seq":7}"#),
            (
                r#"{"ts":"","decision":{"behavior":"deny","restsOn":"/key"},"denied":[{"capability":"read:/key"}],"ms":1,"arguments":2,"seq":7}"#,
                r#"{"ts":"","decision":{"behavior":"deny"},"ms":1,"seq":7}"#,
            ),
            (
                r#"{"argv":[],"denied":[],"x":1,"decision":{"reason":"rule","restsOn":"a","z":1}}"#,
                r#"{"argv":[],"x":1,"decision":{"reason":"rule","z":1}}"#,
            ),
        ] {
            assert_eq!(without_arguments(line, &place), expected);
        }
        let nothing = format!("{{\"seq\":7,\"chain\":\"{chain}\"}}");
        for forged in [
            r#"{"arguments":1}"#,
            r#"{"ts":"", "arguments" : 1}"#,
            r#"{"a":1,"arguments":1,"arguments":2}"#,
            r#"{"ts":"","arguments":"secret"#,
            r#"{"ts":"","decision":"secret"}"#,
            r#"{"ts":"","decision":{"rests\u004fn":"secret"}}"#,
            r#"{"denied":["secret"]}"#,
            "no JSON",
        ] {
            assert_eq!(without_arguments(forged, &place), nothing, "{forged}");
        }
    }
}
