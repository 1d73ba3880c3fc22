//! Records as they are sent: the line of the log, or the line without its arguments, and the few facts that receivers sort by.

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
    /// Returns `true` if the call had a result.
    pub(crate) fn is_ok(&self) -> bool {
        self.outcome == "ok"
    }

    /// Returns `true` if the call was refused and did not fail by itself.
    pub(crate) fn is_denied(&self) -> bool {
        self.outcome == "denied"
    }
}

/// Removes the member `arguments` from a record and leaves everything else as it is. Of a line that cannot be read, only its place
/// remains.
pub(crate) fn without_arguments(line: &str, place: &LogPlace) -> String {
    match arguments_in(line) {
        Ok(None) => line.to_owned(),
        Ok(Some(part)) => format!("{}{}", &line[..part.start], &line[part.end..]),
        Err(()) => format!("{{\"seq\":{},\"chain\":\"{}\"}}", place.seq, place.chain),
    }
}

/// Finds the member `arguments` in a record, with the comma before it.
fn arguments_in(line: &str) -> Result<Option<Range<usize>>, ()> {
    #[derive(Deserialize)]
    struct Arguments<'a> {
        #[serde(borrow, default)]
        arguments: Option<&'a RawValue>,
    }
    const NAME: &str = ",\"arguments\":";
    let Arguments { arguments } = serde_json::from_str(line).map_err(|_| ())?;
    let Some(value) = arguments.map(RawValue::get) else { return Ok(None) };
    // The value borrows from the line.
    let start = (value.as_ptr() as usize).checked_sub(line.as_ptr() as usize).ok_or(())?;
    let before = line.get(..start).ok_or(())?.strip_suffix(NAME).ok_or(())?;
    Ok(Some(before.len()..start + value.len()))
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
        ] {
            assert_eq!(without_arguments(line, &place), expected);
        }
        let nothing = format!("{{\"seq\":7,\"chain\":\"{chain}\"}}");
        for forged in [
            r#"{"arguments":1}"#,
            r#"{"ts":"", "arguments" : 1}"#,
            r#"{"a":1,"arguments":1,"arguments":2}"#,
            r#"{"ts":"","arguments":"secret"#,
            "no JSON",
        ] {
            assert_eq!(without_arguments(forged, &place), nothing, "{forged}");
        }
    }
}
