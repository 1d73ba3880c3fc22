//! Creation of async runtimes.

use std::io;
use std::panic::{self, AssertUnwindSafe};

use tokio::runtime::{Builder, Runtime};

/// Builds an async runtime. Tokio panics if the system refuses a thread; the panic becomes an error here.
pub fn build(builder: &mut Builder) -> io::Result<Runtime> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| ()));
    let created = panic::catch_unwind(AssertUnwindSafe(|| builder.build()));
    panic::set_hook(hook);
    created.unwrap_or_else(|_| Err(io::Error::other("the system is out of threads or memory")))
}
