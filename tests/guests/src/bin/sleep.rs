//! Sleeps an hour inside one call to the host.

use std::thread;
use std::time::Duration;

fn main() {
    thread::sleep(Duration::from_secs(60 * 60));
}
