//! Requests 2^40 random bytes from the host in one call.

use wasip2::random::random::get_random_bytes;

fn main() {
    std::hint::black_box(get_random_bytes(1 << 40));
}
