//! Raises the limit of open files, since many sandboxes hold many folders.

pub(crate) use system::allow_many;

#[cfg(unix)]
mod system {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    /// Maximum that the system accepts as the soft limit although its hard limit is higher or infinite: `OPEN_MAX` of macOS.
    /// Other systems accept every value up to the hard limit.
    const MAX_ACCEPTED: Option<u64> = if cfg!(target_vendor = "apple") { Some(10_240) } else { None };

    /// Raises the soft limit as far as the system accepts. If it refuses, the limit stays.
    pub(crate) fn allow_many() {
        let limit = getrlimit(Resource::Nofile);
        if let Some(raised) = raised(&limit, MAX_ACCEPTED) {
            // Without enough files, calls fail individually with an error.
            let _ = setrlimit(Resource::Nofile, raised);
        }
    }

    /// Returns the limit with the greatest soft limit that is accepted; `None` if the present one is not smaller. `None` in a
    /// limit means infinite.
    fn raised(limit: &Rlimit, accepted: Option<u64>) -> Option<Rlimit> {
        let most = match (limit.maximum, accepted) {
            (Some(maximum), Some(accepted)) => Some(maximum.min(accepted)),
            (maximum, accepted) => maximum.or(accepted),
        };
        let is_greater = limit.current.is_some_and(|current| most.is_none_or(|most| most > current));
        is_greater.then_some(Rlimit { current: most, maximum: limit.maximum })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_limit_is_raised_as_far_as_the_system_accepts_and_never_lowered() {
            for (current, maximum, accepted, soft) in [
                (Some(256), None, Some(10_240), Some(Some(10_240))),
                (Some(256), Some(1024), Some(10_240), Some(Some(1024))),
                (Some(256), Some(1 << 20), Some(10_240), Some(Some(10_240))),
                (Some(20_000), None, Some(10_240), None),
                (None, None, Some(10_240), None),
                (Some(1024), Some(4096), None, Some(Some(4096))),
                (Some(1024), None, None, Some(None)),
                (Some(4096), Some(4096), None, None),
            ] {
                let raised = raised(&Rlimit { current, maximum }, accepted);
                assert_eq!(raised.as_ref().map(|limit| limit.current), soft, "{current:?} {maximum:?} {accepted:?}");
                assert!(raised.is_none_or(|limit| limit.maximum == maximum), "the hard limit stays");
            }
        }
    }
}

/// Other systems have no such limit.
#[cfg(not(unix))]
mod system {
    pub(crate) fn allow_many() {}
}
