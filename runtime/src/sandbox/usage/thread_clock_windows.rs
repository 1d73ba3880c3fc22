//! Processor time of the current thread on Windows: its cycles, at a rate that is measured once. The times that Windows itself
//! states advance by whole ticks of 10 to 16 ms, longer than most calls; they are used where it counts no cycles.

#![expect(unsafe_code, reason = "the standard library does not state the processor time of a thread")]

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::Threading::{GetCurrentThread, GetThreadTimes};
use windows_sys::Win32::System::WindowsProgramming::QueryThreadCycleTime;

/// Number of rate measurements, and the time for each. An interruption makes a measurement too low, so the greatest
/// holds.
const MEASUREMENTS: usize = 8;
const MEASUREMENT: Duration = Duration::from_micros(200);
/// Lowest rate that can be one of a processor, in cycles per microsecond.
const MIN_RATE: u64 = 10;
/// Length in nanoseconds of the units in which Windows states times.
const UNIT: u64 = 100;

/// Returns the processor time of the current thread.
pub(super) fn thread_time() -> Duration {
    static RATE: OnceLock<Option<u64>> = OnceLock::new();
    let rate = *RATE.get_or_init(rate);
    match rate.zip(cycles()) {
        Some((rate, cycles)) => time_of(cycles, rate),
        None => stated_time(),
    }
}

/// Converts cycles at a rate in cycles per second.
fn time_of(cycles: u64, rate: u64) -> Duration {
    let nanos = u128::from(cycles) * 1_000_000_000 / u128::from(rate.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// Measures the cycles per second; `None` if they are not counted.
fn rate() -> Option<u64> {
    let measured = (0..MEASUREMENTS).filter_map(|_| {
        let (began, before) = (Instant::now(), cycles()?);
        while began.elapsed() < MEASUREMENT {
            std::hint::spin_loop();
        }
        let (used, time) = (cycles()?.saturating_sub(before), began.elapsed());
        u64::try_from(u128::from(used) * 1_000_000_000 / time.as_nanos()).ok()
    });
    measured.max().filter(|rate| *rate >= MIN_RATE * 1_000_000)
}

/// Returns the cycles of the current thread; `None` if they are not counted.
fn cycles() -> Option<u64> {
    let mut cycles = 0;
    // SAFETY: The pseudo handle of this thread is always valid, and the pointer is written once.
    let done = unsafe { QueryThreadCycleTime(GetCurrentThread(), &raw mut cycles) };
    (done != 0).then_some(cycles)
}

/// Returns the time that Windows states: in the system and in the program.
fn stated_time() -> Duration {
    let [mut created, mut exited, mut system, mut user] = [FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 }; 4];
    // SAFETY: The pseudo handle of this thread is always valid, and each pointer is written once.
    let done = unsafe {
        GetThreadTimes(GetCurrentThread(), &raw mut created, &raw mut exited, &raw mut system, &raw mut user)
    };
    if done == 0 {
        return Duration::ZERO;
    }
    let units = |time: FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    let units = units(system).saturating_add(units(user));
    Duration::from_nanos(units.saturating_mul(UNIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_takes_no_processor_time_and_a_computation_does() {
        let before = thread_time();
        std::thread::sleep(Duration::from_millis(300));
        let slept = thread_time().saturating_sub(before);
        assert!(slept < Duration::from_millis(100), "{slept:?}");
        let (began, before) = (Instant::now(), thread_time());
        while began.elapsed() < Duration::from_millis(300) {
            std::hint::spin_loop();
        }
        let computed = thread_time().saturating_sub(before);
        assert!(computed > Duration::from_millis(50) && computed < Duration::from_millis(400), "{computed:?}");
    }

    #[test]
    fn cycles_are_converted_at_their_rate() {
        assert_eq!(time_of(3_000_000, 3_000_000_000), Duration::from_millis(1));
        assert_eq!(time_of(u64::MAX, 1), Duration::from_nanos(u64::MAX), "without an overflow");
    }
}
