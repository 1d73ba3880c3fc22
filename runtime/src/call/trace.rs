//! Position of a call in a distributed trace, in the form that the W3C Trace Context header `traceparent` has
//! (<https://www.w3.org/TR/trace-context/>). It identifies and proves nothing: a caller can state any.

use std::num::{NonZeroU64, NonZeroU128};

/// Length of a version 00 `traceparent`. Each later version begins with the same form.
const LEN: usize = 55;
/// Maximum length of a `traceparent` with a later version.
const MAX_LEN: usize = 256;

/// Trace of a caller, and its span that made the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    trace: NonZeroU128,
    parent: NonZeroU64,
}

impl TraceContext {
    /// Reads a `traceparent`. Of a later version than 00 only the start is read, as that version requires. Returns `None` if
    /// it is malformed, or longer than 256 characters. The flags are checked and not kept.
    pub fn parse(traceparent: &str) -> Option<Self> {
        let text = traceparent.as_bytes();
        if text.len() > MAX_LEN {
            return None;
        }
        let (head, rest) = text.split_at_checked(LEN)?;
        let version = hex(&head[..2])?;
        let is_whole = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.first().is_none_or(|next| *next == b'-'),
        };
        let has_dashes = [2, 35, 52].iter().all(|at| head[*at] == b'-');
        if !is_whole || !has_dashes {
            return None;
        }
        hex(&head[53..])?;
        let trace = NonZeroU128::new(hex(&head[3..35])?)?;
        let parent = NonZeroU64::new(hex(&head[36..52])?.try_into().ok()?)?;
        Some(Self { trace, parent })
    }

    /// Identifier of the trace, never 0.
    pub fn trace_id(&self) -> u128 {
        self.trace.get()
    }

    /// Identifier of the caller's span, never 0.
    pub fn parent_id(&self) -> u64 {
        self.parent.get()
    }
}

/// Reads at most 32 lowercase hexadecimal digits.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some((number << 4) | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const PARENT: &str = "00f067aa0ba902b7";

    fn wanted() -> TraceContext {
        let trace = NonZeroU128::new(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736).unwrap();
        TraceContext { trace, parent: NonZeroU64::new(0x00f0_67aa_0ba9_02b7).unwrap() }
    }

    #[test]
    fn a_traceparent_is_read_whatever_its_flags() {
        for flags in ["00", "01", "02", "ff"] {
            let found = TraceContext::parse(&format!("00-{TRACE}-{PARENT}-{flags}"));
            assert_eq!(found, Some(wanted()), "{flags}");
        }
        let wanted = wanted();
        assert_eq!(format!("{:032x}-{:016x}", wanted.trace_id(), wanted.parent_id()), format!("{TRACE}-{PARENT}"));
    }

    #[test]
    fn of_a_later_version_only_the_start_is_read() {
        for (version, rest) in [("01", ""), ("cc", "-"), ("fe", "-what the future brings"), ("0a", "--")] {
            let found = TraceContext::parse(&format!("{version}-{TRACE}-{PARENT}-01{rest}"));
            assert_eq!(found, Some(wanted()), "{version} {rest}");
        }
        for wrong in [
            format!("01-{TRACE}-{PARENT}-01."),
            format!("01-{TRACE}-{PARENT}-013"),
            format!("01-{TRACE}-{PARENT}-0x-more"),
            format!("01-{TRACE}-{PARENT}"),
        ] {
            assert_eq!(TraceContext::parse(&wrong), None, "{wrong}");
        }
        let longest = |more: usize| format!("01-{TRACE}-{PARENT}-01-{}", "a".repeat(MAX_LEN - LEN - 1 + more));
        assert_eq!(TraceContext::parse(&longest(0)), Some(wanted()));
        assert_eq!(TraceContext::parse(&longest(1)), None);
        assert_eq!(TraceContext::parse(&longest(10_000_000)), None);
    }

    #[test]
    fn a_malformed_one_is_none() {
        for wrong in [
            String::new(),
            "00".to_owned(),
            "-".repeat(LEN),
            "é".repeat(LEN),
            format!("ff-{TRACE}-{PARENT}-01"),
            format!("0-{TRACE}-{PARENT}-001"),
            format!("0x-{TRACE}-{PARENT}-01"),
            format!("00-{TRACE}-{PARENT}-01-"),
            format!("00-{TRACE}-{PARENT}-01-more"),
            format!("00-{TRACE}-{PARENT}-1"),
            format!("00-{TRACE}-{PARENT}-0G"),
            format!("00-{TRACE}-{PARENT}-0A"),
            format!("00-{TRACE}-{PARENT}"),
            format!(" 00-{TRACE}-{PARENT}-01"),
            format!("00-{TRACE}-{PARENT}-01 "),
            format!("00-{TRACE}-{PARENT}-01\n"),
            format!("00_{TRACE}-{PARENT}-01"),
            format!("00-{TRACE}_{PARENT}-01"),
            format!("00-{TRACE}-{PARENT}_01"),
            format!("00-{}-{PARENT}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-{}-01", PARENT.to_uppercase()),
            format!("00-{}-{PARENT}-01", "0".repeat(32)),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{}-{PARENT}-01", &TRACE[1..]),
            format!("00-{TRACE}0-{PARENT}-01"),
            format!("00-{}é-{PARENT}-01", &TRACE[2..]),
            format!("00-+{}-{PARENT}-01", &TRACE[1..]),
            format!("00-{TRACE}-{PARENT}-01,00-{TRACE}-{PARENT}-01"),
        ] {
            assert_eq!(TraceContext::parse(&wrong), None, "{wrong:?}");
        }
    }
}
