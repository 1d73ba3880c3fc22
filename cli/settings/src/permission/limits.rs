//! Hints about calls that were stopped at a limit: the flag that raises it, or the field of the tool that sets it.

use std::time::Duration;

use toolcrib::Outcome;
use toolcrib::tool::LimitRequest;

/// Returns a hint about a limit that stopped a call; `None` for a limit that cannot be raised. `own` are the limits in the tool's
/// definition, and `deadline` is the one of the call, as far as they are known.
pub fn limit_hint(outcome: Outcome, own: Option<&LimitRequest>, deadline: Option<Duration>) -> Option<String> {
    let requested = own.and_then(|own| own.deadline);
    if outcome == Outcome::Deadline
        && let Some((requested, deadline)) = requested.zip(deadline)
        && requested > deadline
    {
        return Some(format!(
            "the tool's definition asks for {requested:?}, but the limit here is {deadline:?}: `--set limits.max_timeout=TIME` raises it"
        ));
    }
    let is_own = |limit: fn(&LimitRequest) -> bool| own.is_some_and(limit);
    let (flags, field) = match outcome {
        Outcome::Deadline => (
            "`--set limits.tool_timeout=TIME`, and `--set limits.max_timeout=TIME` where that is lower,",
            is_own(|own| own.deadline.is_some())
                .then_some(("`timeoutSec`; in Markdown and records `timeout_ms`", "`--set limits.max_timeout=TIME`")),
        ),
        Outcome::Memory => (
            "`--max-memory=SIZE`",
            is_own(|own| own.memory.is_some()).then_some(("`limits.memoryMb`", "`--max-memory=SIZE`")),
        ),
        Outcome::Fuel => (
            "`--set limits.fuel=UNITS`",
            is_own(|own| own.fuel.is_some()).then_some(("`limits.fuel`", "`--set limits.fuel=UNITS`")),
        ),
        Outcome::OutputLimit => (
            "`--set limits.max_output=SIZE`, or `--set limits.max_received=SIZE` for responses of servers,",
            is_own(|own| own.stdout.is_some() || own.received.is_some()).then_some((
                "`limits.outputKb` or `limits.receivedKb`",
                "`--set limits.max_output=SIZE` or `--set limits.max_received=SIZE`",
            )),
        ),
        Outcome::Quota => (
            "`--set limits.max_disk=SIZE` for bytes, or `--set limits.max_disk_entries=N` for files,",
            is_own(|own| own.disk_bytes.is_some() || own.disk_entries.is_some()).then_some((
                "`limits.diskMb` or `limits.diskEntries`",
                "`--set limits.max_disk=SIZE` or `--set limits.max_disk_entries=N`",
            )),
        ),
        Outcome::RequestLimit => (
            "`--set limits.max_requests=N`",
            is_own(|own| own.requests.is_some()).then_some(("`limits.requests`", "`--set limits.max_requests=N`")),
        ),
        _ => return None,
    };
    Some(match field {
        Some((field, most)) => {
            format!("the tool's definition sets this limit ({field}): raise it there, and {most} if that is lower")
        }
        None => format!("{flags} raises the limit, if you trust the tool with more"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_names_its_flag_or_the_field_that_sets_it() {
        assert_eq!(
            limit_hint(Outcome::Memory, None, None).as_deref(),
            Some("`--max-memory=SIZE` raises the limit, if you trust the tool with more")
        );
        let mut own = LimitRequest::default();
        assert_eq!(limit_hint(Outcome::Memory, Some(&own), None), limit_hint(Outcome::Memory, None, None));
        own.memory = Some(1 << 20);
        let hint = limit_hint(Outcome::Memory, Some(&own), None).expect("a hint");
        assert!(hint.contains("(`limits.memoryMb`)") && hint.contains("`--max-memory=SIZE`"), "{hint}");
        own.deadline = Some(Duration::from_secs(60));
        let of_deadline =
            |seconds| limit_hint(Outcome::Deadline, Some(&own), Some(Duration::from_secs(seconds))).expect("a hint");
        assert!(of_deadline(60).contains("`timeout_ms`): raise it there"), "{}", of_deadline(60));
        let capped =
            "the tool's definition asks for 60s, but the limit here is 2s: `--set limits.max_timeout=TIME` raises it";
        assert_eq!(of_deadline(2), capped);
        for outcome in Outcome::ALL {
            let is_raised = matches!(
                outcome,
                Outcome::Deadline
                    | Outcome::Memory
                    | Outcome::Fuel
                    | Outcome::OutputLimit
                    | Outcome::Quota
                    | Outcome::RequestLimit
            );
            assert_eq!(limit_hint(outcome, None, None).is_some(), is_raised, "{outcome}");
        }
    }
}
