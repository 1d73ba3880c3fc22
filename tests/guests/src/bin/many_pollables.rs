//! Creates pollables without end and drops none: a flood of handles that needs no grant.

use wasip2::clocks::monotonic_clock::subscribe_duration;

fn main() {
    let mut kept = Vec::new();
    loop {
        kept.push(subscribe_duration(u64::MAX));
    }
}
