//! Asks the host for 2^40 random bytes in one call.

use wasip2::random::random::get_random_bytes;

fn main() {
    std::hint::black_box(get_random_bytes(1 << 40));
}
