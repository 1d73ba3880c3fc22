//! How much a call may use. Every field is finite, and each has a test that exceeds it.

use std::time::Duration;

/// The limits of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Wall-clock time from instantiation to the end of the call.
    pub deadline: Duration,
    /// Bytes of all linear memories and tables together.
    pub memory: usize,
    /// Bytes of standard output, and so of the result.
    pub stdout: usize,
    /// Bytes of standard error.
    pub stderr: usize,
    /// Host resources (open files, streams, pollables) held at once.
    pub handles: usize,
    /// Bytes that a call may write to its folders, and by which it may make files grow: nothing that is overwritten,
    /// cut off or removed is given back.
    pub disk_bytes: u64,
    /// Files, folders and links that a call may make in its folders; none that is removed is given back.
    pub disk_entries: u64,
    /// Bytes that one host call may copy out of the guest.
    pub host_call: usize,
    /// Units of fuel, about one an instruction; counting them costs time, so `None` leaves them uncounted.
    pub fuel: Option<u64>,
    /// HTTP requests of a call together.
    pub requests: usize,
    /// HTTP requests that are under way at once, until their response was read or dropped.
    pub requests_at_once: usize,
    /// Bytes of one request's or response's head: its URL or status line and its headers.
    pub http_head: usize,
    /// Bytes of one request's body.
    pub request_body: usize,
    /// Bytes of all response bodies of a call together, as they are received: nothing is decompressed here.
    pub received: usize,
}

impl Limits {
    /// What is within both.
    pub(crate) fn least(&self, other: &Self) -> Self {
        Self {
            deadline: self.deadline.min(other.deadline),
            memory: self.memory.min(other.memory),
            stdout: self.stdout.min(other.stdout),
            stderr: self.stderr.min(other.stderr),
            handles: self.handles.min(other.handles),
            disk_bytes: self.disk_bytes.min(other.disk_bytes),
            disk_entries: self.disk_entries.min(other.disk_entries),
            host_call: self.host_call.min(other.host_call),
            fuel: self.fuel.into_iter().chain(other.fuel).min(),
            requests: self.requests.min(other.requests),
            requests_at_once: self.requests_at_once.min(other.requests_at_once),
            http_head: self.http_head.min(other.http_head),
            request_body: self.request_body.min(other.request_body),
            received: self.received.min(other.received),
        }
    }

    /// The longest deadline that any source may set: a day.
    pub const MAX_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);
    /// Bytes of the engine's stack for guest frames, the same for every call.
    pub const STACK: usize = 512 * 1024;
    /// The most core instances of one component: its program, its adapter, their shims, and the shared libraries of an
    /// interpreter. The sandbox has room for all of them in each of its slots, so that no component takes another's.
    pub const INSTANCES: u32 = 64;
    /// The most memories of one component.
    pub const MEMORIES: u32 = 4;
    /// The most tables of one component.
    pub const TABLES: u32 = 32;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(30),
            memory: 128 << 20,
            stdout: 1 << 20,
            stderr: 64 << 10,
            handles: 128,
            disk_bytes: 256 << 20,
            disk_entries: 10_000,
            host_call: 16 << 20,
            fuel: None,
            requests: 64,
            requests_at_once: 8,
            http_head: 64 << 10,
            request_body: 8 << 20,
            received: 16 << 20,
        }
    }
}

/// Limits that a source or an operator names; an absent one is left as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitRequest {
    /// See [`Limits::deadline`].
    pub deadline: Option<Duration>,
    /// See [`Limits::memory`].
    pub memory: Option<usize>,
    /// See [`Limits::stdout`].
    pub stdout: Option<usize>,
    /// See [`Limits::disk_bytes`].
    pub disk_bytes: Option<u64>,
    /// See [`Limits::disk_entries`].
    pub disk_entries: Option<u64>,
    /// See [`Limits::fuel`].
    pub fuel: Option<u64>,
    /// See [`Limits::requests`].
    pub requests: Option<usize>,
    /// See [`Limits::received`].
    pub received: Option<usize>,
}

impl LimitRequest {
    /// This, and what it leaves open as `other` names it.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            deadline: self.deadline.or(other.deadline),
            memory: self.memory.or(other.memory),
            stdout: self.stdout.or(other.stdout),
            disk_bytes: self.disk_bytes.or(other.disk_bytes),
            disk_entries: self.disk_entries.or(other.disk_entries),
            fuel: self.fuel.or(other.fuel),
            requests: self.requests.or(other.requests),
            received: self.received.or(other.received),
        }
    }

    /// This with nothing above `most`.
    pub(crate) fn at_most(self, most: &Limits) -> Self {
        Self {
            deadline: self.deadline.map(|own| own.min(most.deadline)),
            memory: self.memory.map(|own| own.min(most.memory)),
            stdout: self.stdout.map(|own| own.min(most.stdout)),
            disk_bytes: self.disk_bytes.map(|own| own.min(most.disk_bytes)),
            disk_entries: self.disk_entries.map(|own| own.min(most.disk_entries)),
            fuel: self.fuel,
            requests: self.requests.map(|own| own.min(most.requests)),
            received: self.received.map(|own| own.min(most.received)),
        }
    }

    /// `base` with what this names in its place.
    pub fn over(&self, base: Limits) -> Limits {
        Limits {
            deadline: self.deadline.unwrap_or(base.deadline).min(Limits::MAX_DEADLINE),
            memory: self.memory.unwrap_or(base.memory),
            stdout: self.stdout.unwrap_or(base.stdout),
            disk_bytes: self.disk_bytes.unwrap_or(base.disk_bytes),
            disk_entries: self.disk_entries.unwrap_or(base.disk_entries),
            fuel: self.fuel.or(base.fuel),
            requests: self.requests.unwrap_or(base.requests),
            received: self.received.unwrap_or(base.received),
            ..base
        }
    }

    /// What a tool may use that asks for this, where an operator sets `most`: it stands in the place of the defaults, and
    /// nothing is above it. Only a source of the operator's own gets more than the defaults by asking, but for time, of
    /// which whoever asks gets up to the longest that the operator names.
    pub(crate) fn within(&self, most: &Self, defaults: Limits, is_operators: bool) -> Limits {
        // The longest time is no time that a tool has by itself.
        let deadline = most.deadline.map_or(defaults.deadline, |most| defaults.deadline.min(most));
        let base = Limits { deadline, ..most.over(defaults) };
        if is_operators {
            return most.cap(self.over(base));
        }
        let longest = most.deadline.unwrap_or(defaults.deadline).min(Limits::MAX_DEADLINE);
        Limits { deadline: self.deadline.map_or(base.deadline, |asked| asked.min(longest)), ..self.cap(base) }
    }

    /// `limits` with nothing above what this names.
    pub fn cap(&self, limits: Limits) -> Limits {
        let fuel = match (limits.fuel, self.fuel) {
            (Some(asked), Some(most)) => Some(asked.min(most)),
            (asked, most) => asked.or(most),
        };
        Limits {
            deadline: self.deadline.map_or(limits.deadline, |most| limits.deadline.min(most)),
            memory: self.memory.map_or(limits.memory, |most| limits.memory.min(most)),
            stdout: self.stdout.map_or(limits.stdout, |most| limits.stdout.min(most)),
            disk_bytes: self.disk_bytes.map_or(limits.disk_bytes, |most| limits.disk_bytes.min(most)),
            disk_entries: self.disk_entries.map_or(limits.disk_entries, |most| limits.disk_entries.min(most)),
            fuel,
            requests: self.requests.map_or(limits.requests, |most| limits.requests.min(most)),
            received: self.received.map_or(limits.received, |most| limits.received.min(most)),
            ..limits
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_only_lowers() {
        let asked = LimitRequest { memory: Some(1 << 30), fuel: Some(7), ..Default::default() }.over(Limits::default());
        let capped = LimitRequest { memory: Some(1 << 20), fuel: Some(9), ..Default::default() }.cap(asked);
        assert_eq!((capped.memory, capped.fuel), (1 << 20, Some(7)));
    }

    #[test]
    fn a_stranger_asks_for_less_and_an_operator_for_more() {
        let most = LimitRequest { memory: Some(1 << 30), deadline: Some(Duration::from_secs(5)), ..Default::default() };
        let asked = LimitRequest { memory: Some(1 << 40), stdout: Some(1 << 40), ..Default::default() };
        let [own, strangers] = [true, false].map(|own| asked.within(&most, Limits::default(), own));
        assert_eq!((own.memory, own.stdout), (1 << 30, 1 << 40));
        assert_eq!((strangers.memory, strangers.stdout), (1 << 30, Limits::default().stdout));
        let less = LimitRequest { memory: Some(7), fuel: Some(8), ..Default::default() };
        let less = less.within(&most, Limits::default(), false);
        assert_eq!((less.memory, less.fuel, less.deadline), (7, Some(8), Duration::from_secs(5)));
        let none = LimitRequest::default();
        let longest = LimitRequest { deadline: Some(Duration::from_secs(3600)), ..Default::default() };
        assert_eq!(none.within(&longest, Limits::default(), true).deadline, Limits::default().deadline);
        let long = LimitRequest { deadline: Some(Duration::from_secs(99)), ..Default::default() };
        assert_eq!(long.within(&none, Limits::default(), false).deadline, Limits::default().deadline);
        assert_eq!(long.within(&most, Limits::default(), true).deadline, Duration::from_secs(5));
        assert_eq!(long.within(&longest, Limits::default(), false).deadline, Duration::from_secs(99));
        assert_eq!(long.within(&most, Limits::default(), false).deadline, Duration::from_secs(5));
    }

    #[test]
    fn no_source_sets_a_deadline_beyond_a_day() {
        let asked = LimitRequest { deadline: Some(Duration::MAX), ..Default::default() }.over(Limits::default());
        assert_eq!(asked.deadline, Limits::MAX_DEADLINE);
    }
}
