//! Parses values of flags and settings: times, sizes, counts, name server addresses, and patterns that allow.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use toolcrib::policy::Pattern;
use toolcrib::tool::Glob;

/// Default port of a name server.
const DNS_PORT: u16 = 53;
/// Maximum time for which a call waits for approval elsewhere: calls in the file of pending calls expire after an hour.
const MAX_APPROVAL_WAIT: Duration = Duration::from_secs(60 * 60);
/// Maximum of a 32-bit count.
pub const MAX_COUNT: u64 = u32::MAX as u64;

/// Parses a time such as `30s`, `500ms` or `2m`; a number alone means seconds. The time must be positive and at most a day.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a time such as `30s`, `500ms` or `2m`, up to `24h`");
    let (number, unit) = number_and_unit(text).ok_or_else(wrong)?;
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let time = Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
    if time.is_zero() || time > toolcrib::tool::Limits::MAX_DEADLINE { Err(wrong()) } else { Ok(time) }
}

/// Parses a time of whole seconds, such as `60s` or `1h`.
pub fn window(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        time if time.subsec_nanos() == 0 => Ok(time),
        _ => Err(format!("`{text}` is not a time of whole seconds such as `60s` or `1h`")),
    }
}

/// Quota of calls to some tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolQuota {
    /// Pattern of the tools' names.
    pub tools: Glob,
    /// Maximum calls to all these tools together.
    pub calls: u64,
}

/// Parses a quota of tools, such as `fetch_page=100` or `fs_*=1000`.
pub fn tool_quota(text: &str) -> Result<ToolQuota, String> {
    let wrong =
        || format!("`{text}` is not a tool or a pattern with its calls, at least one, such as `fetch_page=100`");
    let (tools, calls) = text.split_once('=').ok_or_else(wrong)?;
    let (tools, calls) = (tools.trim(), calls.trim().parse().ok().filter(|calls| *calls > 0).ok_or_else(wrong)?);
    if tools.is_empty() || tools.contains([' ', ',', '(', ')']) {
        return Err(wrong());
    }
    Ok(ToolQuota { tools: tools.parse().map_err(|error| format!("{error}"))?, calls })
}

/// Parses a time in hours, days or weeks, such as `12h`, `30d` or `4w`, up to ten years.
pub fn lifetime(text: &str) -> Result<Duration, String> {
    /// Ten years.
    const MAX: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);
    let wrong = || format!("`{text}` is not a time such as `12h`, `30d` or `4w`, up to `3660d`");
    let (number, unit) = number_and_unit(text).ok_or_else(wrong)?;
    let hours = match unit {
        "h" => 1.0,
        "d" => 24.0,
        "w" => 24.0 * 7.0,
        _ => return Err(wrong()),
    };
    let time = Duration::try_from_secs_f64((number * hours * 3600.0).round()).map_err(|_| wrong())?;
    if time.is_zero() || time > MAX { Err(wrong()) } else { Ok(time) }
}

/// Parses a delay: a time, or zero.
pub fn delay(text: &str) -> Result<Duration, String> {
    if matches!(text.trim(), "0" | "0s" | "0ms") { Ok(Duration::ZERO) } else { duration(text) }
}

/// Parses the time for which a call waits for approval elsewhere.
pub fn approval_wait(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        wait if wait <= MAX_APPROVAL_WAIT => Ok(wait),
        _ => Err(format!("`{text}` is too long: a call waits at most `1h`")),
    }
}

/// Parses a size in bytes, such as `64MiB`, `512k` or `1048576`. Every unit is binary: `k` and `KiB` are both 1,024.
pub fn size(text: &str) -> Result<usize, String> {
    let wrong = || format!("`{text}` is not a size such as `64MiB`, `512KiB` or `1048576`");
    let (number, unit) = number_and_unit(text).ok_or_else(wrong)?;
    let shift = match unit.to_ascii_lowercase().trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return Err(wrong()),
    };
    let bytes = number * (1_u64 << shift) as f64;
    // Above 2^53 a float cannot represent every integer, and no call is that large.
    if bytes < 1.0 || bytes > (1_u64 << 53) as f64 {
        Err(wrong())
    } else {
        usize::try_from(bytes as u64).map_err(|_| wrong())
    }
}

/// Parses a whole number from `MIN` to `MAX`.
pub fn count<T: TryFrom<u64>, const MIN: u64, const MAX: u64>(text: &str) -> Result<T, String> {
    let number = text.trim().parse().ok().filter(|number| (MIN..=MAX).contains(number));
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| match MAX {
        u64::MAX => format!("expected a whole number, at least {MIN}"),
        _ => format!("expected a whole number from {MIN} to {MAX}"),
    })
}

/// Formats a size in the largest unit that gives a whole number.
pub fn size_in_words(bytes: usize) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} bytes"),
    }
}

/// Formats a time in the largest unit that gives a whole number.
pub fn time_in_words(milliseconds: u64) -> String {
    let units = [(3_600_000, "h"), (60_000, "min"), (1_000, "s")];
    match units.iter().find(|(unit, _)| milliseconds > 0 && milliseconds.is_multiple_of(*unit)) {
        Some((unit, name)) => format!("{} {name}", milliseconds / unit),
        None => format!("{milliseconds} ms"),
    }
}

/// Formats a size in the largest unit that it reaches, with one decimal.
pub fn rounded_size(bytes: u64) -> String {
    let units = [(1_u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} bytes"),
    }
}

/// Parses two amounts of money, for a million tokens of prompts and of answers.
pub fn price(text: &str) -> Result<(f64, f64), String> {
    let wrong = || format!("`{text}` is not a price: write two amounts for a million tokens, such as `0.25/2`");
    let (prompt, answer) = text.trim().split_once('/').ok_or_else(wrong)?;
    let amount = |text: &str| text.trim().parse().ok().filter(|amount| (0.0..=1e9).contains(amount));
    Ok((amount(prompt).ok_or_else(wrong)?, amount(answer).ok_or_else(wrong)?))
}

/// Parses the address of a name server, with or without a port.
pub fn name_server(text: &str) -> Result<SocketAddr, String> {
    let alone = || text.parse::<IpAddr>().map(|address| SocketAddr::new(address, DNS_PORT));
    let wrong = |_| format!("`{text}` is not the address of a name server such as `192.0.2.53` or `127.0.0.1:5353`");
    text.parse().or_else(|_| alone()).map_err(wrong)
}

/// Parses an address to listen on: an IP address with a port, `localhost` with a port, or a port alone.
pub fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix("localhost:").unwrap_or(text).parse().ok();
    let local = port.map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let expected = "expected an IP address with a port, such as `127.0.0.1:8931`, or a port alone";
    local.or_else(|| text.parse().ok()).ok_or_else(|| expected.to_owned())
}

fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim()))
}

/// Message about a class of tools in an allow rule.
pub fn not_allowed(class: &Pattern) -> String {
    format!("`{}`: a class of tools can be asked about or denied, but not allowed; name the tools", class.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, millis) in
            [("30s", 30_000), ("500ms", 500), ("2m", 120_000), ("5", 5_000), ("0.5", 500), ("24h", 86_400_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "0", "s", "-1s", "1d", "25h", "1e3", "NaN", "1s2"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_quota_of_tools_has_a_name_or_pattern_and_calls() {
        for (text, name, calls) in [("a=1", "a", 1), (" fs_* = 1000 ", "fs_read", 1000)] {
            let quota = tool_quota(text).unwrap();
            assert!(quota.tools.is_match(name) && quota.calls == calls, "{text}");
        }
        for text in
            ["", "a", "a=", "=1", "a=0", "a=-1", "a=1.5", "a b=1", "a(b=c)=1", "a,b=1", "a=18446744073709551616"]
        {
            assert!(tool_quota(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_life_of_something_has_hours_days_or_weeks() {
        for (text, hours) in [("12h", 12), ("30d", 720), ("4w", 672), ("0.5d", 12), ("3660d", 87_840)] {
            assert_eq!(lifetime(text), Ok(Duration::from_hours(hours)), "{text}");
        }
        for text in ["", "30", "0d", "30m", "3661d", "-1d", "1e9d"] {
            assert!(lifetime(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_window_has_whole_seconds() {
        assert_eq!(window("1m"), Ok(Duration::from_mins(1)));
        for text in ["100ms", "1.5s", "25h", ""] {
            assert!(window(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_server_listens_at_an_address_with_a_port() {
        for (text, address) in [("8931", "127.0.0.1:8931"), ("localhost:1", "127.0.0.1:1"), ("[::]:80", "[::]:80")] {
            assert_eq!(listen_address(text).map(|address| address.to_string()).as_deref(), Ok(address));
        }
        for text in ["", "host:1", "127.0.0.1", "99999"] {
            assert!(listen_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_size_is_told_in_its_largest_whole_unit() {
        for (bytes, words) in [(0, "0 bytes"), (1000, "1000 bytes"), (1536, "1536 bytes"), (3 << 29, "1536 MiB")] {
            assert_eq!(size_in_words(bytes), words);
        }
        assert_eq!(size_in_words(2 << 30), "2 GiB");
    }

    #[test]
    fn a_size_is_rounded_to_one_decimal() {
        for (bytes, words) in
            [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (5 << 20, "5.0 MiB"), (7 << 29, "3.5 GiB")]
        {
            assert_eq!(rounded_size(bytes), words);
        }
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in
            [("64MiB", 64 << 20), ("512k", 512 << 10), ("1048576", 1 << 20), ("1.5 KB", 1536), ("7B", 7)]
        {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "0", "MiB", "-1", "1T", "9999999999GiB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_count_is_a_whole_number_in_its_range() {
        assert_eq!(count::<u16, 1, 1000>("1000"), Ok(1000));
        for text in ["0", "1001", "abc", "-1", "1.5", ""] {
            let error = "expected a whole number from 1 to 1000".to_owned();
            assert_eq!(count::<u16, 1, 1000>(text), Err(error), "{text}");
        }
        let error = "expected a whole number, at least 0".to_owned();
        assert_eq!(count::<u64, 0, { u64::MAX }>("none"), Err(error));
    }

    #[test]
    fn a_name_server_is_an_address() {
        for (text, address) in
            [("192.0.2.53", "192.0.2.53:53"), ("127.0.0.1:5353", "127.0.0.1:5353"), ("::1", "[::1]:53")]
        {
            assert_eq!(name_server(text).map(|address| address.to_string()).as_deref(), Ok(address));
        }
        for text in ["", "dns.example", "127.0.0.1:", "127.0.0.1:99999"] {
            assert!(name_server(text).is_err(), "{text}");
        }
    }
}
