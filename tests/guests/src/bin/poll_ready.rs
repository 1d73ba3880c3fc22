//! Polls, forever, a pollable that is always ready: every iteration is a call to the host that returns immediately.

use wasip2::clocks::monotonic_clock::subscribe_duration;
use wasip2::io::poll::poll;

fn main() {
    let always = subscribe_duration(0);
    loop {
        poll(&[&always]);
    }
}
