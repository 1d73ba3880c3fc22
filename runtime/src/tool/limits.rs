//! Resource limits of a call. Every field except fuel is finite by default, and each limit has a test that exceeds it.

use std::time::Duration;

/// Limits of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
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
    /// Bytes that a call may write to its folders or make files grow by. Overwriting, truncating or
    /// removing files frees nothing.
    pub disk_bytes: u64,
    /// Files, folders and links that a call may create in its folders. Removing them frees nothing.
    pub disk_entries: u64,
    /// Bytes that one host call may copy out of the guest.
    pub host_call: usize,
    /// Units of fuel, about one per instruction. Counting fuel costs time; with `None` it is not counted.
    pub fuel: Option<u64>,
    /// HTTP requests of a call in total.
    pub requests: usize,
    /// Concurrent HTTP requests. A request ends when its response has been read or dropped.
    pub requests_at_once: usize,
    /// Bytes of one request or response head: URL or status line, and headers.
    pub http_head: usize,
    /// Bytes of one request's body.
    pub request_body: usize,
    /// Total bytes of the response bodies in a call, as received: the host decompresses nothing.
    pub received: usize,
}

impl Limits {
    /// Maximum deadline from any source: a day.
    pub const MAX_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);
    /// Maximum size in bytes of the engine's stack for guest frames, equal for every call.
    pub const MAX_STACK: usize = 512 * 1024;
    /// Maximum number of core instances per component: its program, its adapter, their shims, and an interpreter's
    /// shared libraries. The sandbox reserves this number for each slot, so components do not compete for instances.
    pub const MAX_INSTANCES: u32 = 64;
    /// Maximum number of memories per component.
    pub const MAX_MEMORIES: u32 = 4;
    /// Maximum number of tables per component.
    pub const MAX_TABLES: u32 = 32;
    /// Maximum number of elements per table.
    pub const MAX_TABLE_ELEMENTS: usize = 1 << 16;

    /// Returns the default limits with another deadline.
    pub fn with_deadline(deadline: Duration) -> Self {
        Self { deadline, ..Self::default() }
    }

    /// Returns the lower limit of both in every field.
    pub(crate) fn min(&self, other: &Self) -> Self {
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

/// Limits from a source or an operator; an absent limit is unspecified.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
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
    /// Fills unspecified limits from `other`.
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

    /// Lists the limits that are higher than the defaults, by their names: sizes in bytes, the deadline in milliseconds.
    pub(crate) fn raised(&self) -> Vec<(&'static str, u128)> {
        let default = Limits::default();
        let above = |value: Option<u128>, default: u128| value.filter(|value| *value > default);
        let size = |value: Option<usize>, default: usize| above(value.map(|value| value as u128), default as u128);
        let count = |value: Option<u64>, default: u64| above(value.map(u128::from), default.into());
        let limits = [
            ("deadline", above(self.deadline.map(|it| it.as_millis()), default.deadline.as_millis())),
            ("memory", size(self.memory, default.memory)),
            ("stdout", size(self.stdout, default.stdout)),
            ("disk-bytes", count(self.disk_bytes, default.disk_bytes)),
            ("disk-entries", count(self.disk_entries, default.disk_entries)),
            ("requests", size(self.requests, default.requests)),
            ("received", size(self.received, default.received)),
        ];
        limits.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }

    /// Lowers each specified limit except fuel to the limit in `max`.
    pub(crate) fn capped_at(self, max: &Limits) -> Self {
        Self {
            deadline: self.deadline.map(|own| own.min(max.deadline)),
            memory: self.memory.map(|own| own.min(max.memory)),
            stdout: self.stdout.map(|own| own.min(max.stdout)),
            disk_bytes: self.disk_bytes.map(|own| own.min(max.disk_bytes)),
            disk_entries: self.disk_entries.map(|own| own.min(max.disk_entries)),
            fuel: self.fuel,
            requests: self.requests.map(|own| own.min(max.requests)),
            received: self.received.map(|own| own.min(max.received)),
        }
    }

    /// Returns `base` with the specified limits replaced.
    pub fn apply_to(&self, base: Limits) -> Limits {
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

    /// Returns the limits of a tool that requests these, under the operator's `ceiling`. A limit of the ceiling replaces
    /// the default and is never exceeded. Only a trusted source can raise a limit above the default; the deadline is an
    /// exception: any source can raise it up to the ceiling, or up to the default if the ceiling has no deadline.
    pub(crate) fn resolve(&self, ceiling: &Self, defaults: Limits, is_trusted: bool) -> Limits {
        // The ceiling can lower the default deadline, but does not raise it.
        let deadline = ceiling.deadline.map_or(defaults.deadline, |max| defaults.deadline.min(max));
        let base = Limits { deadline, ..ceiling.apply_to(defaults) };
        if is_trusted {
            return ceiling.cap(self.apply_to(base));
        }
        let max = ceiling.deadline.unwrap_or(defaults.deadline).min(Limits::MAX_DEADLINE);
        Limits { deadline: self.deadline.map_or(base.deadline, |requested| requested.min(max)), ..self.cap(base) }
    }

    /// Lowers each of `limits` to the specified limit.
    pub fn cap(&self, limits: Limits) -> Limits {
        let fuel = match (limits.fuel, self.fuel) {
            (Some(fuel), Some(max)) => Some(fuel.min(max)),
            (fuel, max) => fuel.or(max),
        };
        Limits {
            deadline: self.deadline.map_or(limits.deadline, |max| limits.deadline.min(max)),
            memory: self.memory.map_or(limits.memory, |max| limits.memory.min(max)),
            stdout: self.stdout.map_or(limits.stdout, |max| limits.stdout.min(max)),
            disk_bytes: self.disk_bytes.map_or(limits.disk_bytes, |max| limits.disk_bytes.min(max)),
            disk_entries: self.disk_entries.map_or(limits.disk_entries, |max| limits.disk_entries.min(max)),
            fuel,
            requests: self.requests.map_or(limits.requests, |max| limits.requests.min(max)),
            received: self.received.map_or(limits.received, |max| limits.received.min(max)),
            ..limits
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_only_lowers() {
        let asked =
            LimitRequest { memory: Some(1 << 30), fuel: Some(7), ..Default::default() }.apply_to(Limits::default());
        let capped = LimitRequest { memory: Some(1 << 20), fuel: Some(9), ..Default::default() }.cap(asked);
        assert_eq!((capped.memory, capped.fuel), (1 << 20, Some(7)));
    }

    #[test]
    fn a_stranger_asks_for_less_and_an_operator_for_more() {
        let most = LimitRequest { memory: Some(1 << 30), deadline: Some(Duration::from_secs(5)), ..Default::default() };
        let asked = LimitRequest { memory: Some(1 << 40), stdout: Some(1 << 40), ..Default::default() };
        let [own, strangers] = [true, false].map(|own| asked.resolve(&most, Limits::default(), own));
        assert_eq!((own.memory, own.stdout), (1 << 30, 1 << 40));
        assert_eq!((strangers.memory, strangers.stdout), (1 << 30, Limits::default().stdout));
        let less = LimitRequest { memory: Some(7), fuel: Some(8), ..Default::default() };
        let less = less.resolve(&most, Limits::default(), false);
        assert_eq!((less.memory, less.fuel, less.deadline), (7, Some(8), Duration::from_secs(5)));
        let none = LimitRequest::default();
        let longest = LimitRequest { deadline: Some(Duration::from_secs(3600)), ..Default::default() };
        assert_eq!(none.resolve(&longest, Limits::default(), true).deadline, Limits::default().deadline);
        let long = LimitRequest { deadline: Some(Duration::from_secs(99)), ..Default::default() };
        assert_eq!(long.resolve(&none, Limits::default(), false).deadline, Limits::default().deadline);
        assert_eq!(long.resolve(&most, Limits::default(), true).deadline, Duration::from_secs(5));
        assert_eq!(long.resolve(&longest, Limits::default(), false).deadline, Duration::from_secs(99));
        assert_eq!(long.resolve(&most, Limits::default(), false).deadline, Duration::from_secs(5));
    }

    #[test]
    fn no_source_sets_a_deadline_beyond_a_day() {
        let asked = LimitRequest { deadline: Some(Duration::MAX), ..Default::default() }.apply_to(Limits::default());
        assert_eq!(asked.deadline, Limits::MAX_DEADLINE);
    }
}
