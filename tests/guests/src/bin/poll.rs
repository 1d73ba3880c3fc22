//! Polls, forever, pollables that never become ready.

use wasip2::clocks::monotonic_clock::subscribe_duration;
use wasip2::io::poll::poll;

fn main() {
    let never = subscribe_duration(u64::MAX);
    loop {
        poll(&[&never]);
    }
}
