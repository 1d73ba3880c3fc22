//! Every function with arbitrary arguments: none harms the host.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use wasmtime_wasi::p1::wasi_snapshot_preview1 as abi;
use wiggle::GuestMemory;

use super::{ALL_RIGHTS, BUFFERS, Guest, MEMORY, ROOM, TEXT, now};
use crate::tool::Limits;

/// Calls a function of preview 1 by its number.
async fn called(guest: &mut Guest, number: usize, a: [i64; 9]) {
    let (host, memory) = (&mut guest.host, &mut GuestMemory::Unshared(&mut guest.memory));
    let i = |at: usize| a[at] as i32;
    // The result and the trap do not matter here: the call returns and the host survives.
    let _ = match number {
        0 => abi::args_get(host, memory, i(0), i(1)),
        1 => abi::args_sizes_get(host, memory, i(0), i(1)),
        2 => abi::environ_get(host, memory, i(0), i(1)),
        3 => abi::environ_sizes_get(host, memory, i(0), i(1)),
        4 => abi::clock_res_get(host, memory, i(0), i(1)),
        5 => abi::clock_time_get(host, memory, i(0), a[1], i(2)),
        6 => abi::fd_advise(host, memory, i(0), a[1], a[2], i(3)).await,
        7 => abi::fd_allocate(host, memory, i(0), a[1], a[2]),
        8 => abi::fd_close(host, memory, i(0)).await,
        9 => abi::fd_datasync(host, memory, i(0)).await,
        10 => abi::fd_fdstat_get(host, memory, i(0), i(1)).await,
        11 => abi::fd_fdstat_set_flags(host, memory, i(0), i(1)),
        12 => abi::fd_fdstat_set_rights(host, memory, i(0), a[1], a[2]),
        13 => abi::fd_filestat_get(host, memory, i(0), i(1)).await,
        // The test's own folder is empty, and a file of any size can be created in it.
        14 => abi::fd_filestat_set_size(host, memory, i(0), a[1]).await,
        15 => abi::fd_filestat_set_times(host, memory, i(0), a[1], a[2], i(3)).await,
        16 => abi::fd_pread(host, memory, i(0), i(1), i(2), a[3], i(4)).await,
        17 => abi::fd_prestat_get(host, memory, i(0), i(1)),
        18 => abi::fd_prestat_dir_name(host, memory, i(0), i(1), i(2)),
        19 => abi::fd_pwrite(host, memory, i(0), i(1), i(2), a[3], i(4)).await,
        20 => abi::fd_read(host, memory, i(0), i(1), i(2), i(3)).await,
        21 => abi::fd_readdir(host, memory, i(0), i(1), i(2), a[3], i(4)).await,
        22 => abi::fd_renumber(host, memory, i(0), i(1)).await,
        23 => abi::fd_seek(host, memory, i(0), a[1], i(2), i(3)).await,
        24 => abi::fd_sync(host, memory, i(0)).await,
        25 => abi::fd_tell(host, memory, i(0), i(1)),
        26 => abi::fd_write(host, memory, i(0), i(1), i(2), i(3)).await,
        27 => abi::path_create_directory(host, memory, i(0), i(1), i(2)).await,
        28 => abi::path_filestat_get(host, memory, i(0), i(1), i(2), i(3), i(4)).await,
        29 => abi::path_filestat_set_times(host, memory, i(0), i(1), i(2), i(3), a[4], a[5], i(6)).await,
        30 => abi::path_link(host, memory, i(0), i(1), i(2), i(3), i(4), i(5), i(6)).await,
        31 => abi::path_open(host, memory, i(0), i(1), i(2), i(3), i(4), a[5], a[6], i(7), i(8)).await,
        32 => abi::path_readlink(host, memory, i(0), i(1), i(2), i(3), i(4), i(5)).await,
        33 => abi::path_remove_directory(host, memory, i(0), i(1), i(2)).await,
        34 => abi::path_rename(host, memory, i(0), i(1), i(2), i(3), i(4), i(5)).await,
        35 => abi::path_symlink(host, memory, i(0), i(1), i(2), i(3), i(4)).await,
        36 => abi::path_unlink_file(host, memory, i(0), i(1), i(2)).await,
        37 => abi::poll_oneoff(host, memory, i(0), i(1), i(2), i(3)).await,
        38 => abi::proc_exit(host, memory, i(0)).map(|()| 0),
        39 => abi::proc_raise(host, memory, i(0)),
        40 => abi::sched_yield(host, memory),
        41 => abi::random_get(host, memory, i(0), i(1)),
        42 => abi::sock_accept(host, memory, i(0), i(1), i(2)),
        43 => abi::sock_recv(host, memory, i(0), i(1), i(2), i(3), i(4), i(5)),
        44 => abi::sock_send(host, memory, i(0), i(1), i(2), i(3), i(4)),
        _ => abi::sock_shutdown(host, memory, i(0), i(1)),
    };
}

/// Values with a meaning: descriptors, flags, addresses of texts and buffers, memory ends, extremes.
fn argument() -> impl Strategy<Value = i64> {
    prop_oneof![
        4 => 0..10_i64,
        2 => prop::sample::select(vec![i64::from(TEXT), i64::from(TEXT) + 2, i64::from(BUFFERS), i64::from(ROOM)]),
        2 => 0..MEMORY as i64,
        1 => MEMORY as i64 - 32..MEMORY as i64 + 32,
        1 => prop::sample::select(vec![-1, i64::from(i32::MIN), i64::from(i32::MAX), i64::MIN, i64::MAX, ALL_RIGHTS]),
        1 => any::<i64>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn no_arguments_harm_the_host(
        calls in vec((0..46_usize, prop::array::uniform9(argument())), 1..40),
        words in vec(prop_oneof![0..16_u32, 0..MEMORY as u32, any::<u32>()], 1024),
    ) {
        // The quota keeps written files small.
        let mut guest = Guest::with(Limits { disk_bytes: 1 << 20, ..Limits::default() }, true);
        words.iter().enumerate().for_each(|(at, word)| guest.put(BUFFERS + 4 * at as i32, &word.to_le_bytes()));
        guest.put(TEXT, b"a/b../../\0c.");
        now(async {
            for (number, arguments) in calls {
                // A waiting call is stopped, as by a deadline.
                let _ = tokio::time::timeout(Duration::from_millis(5), called(&mut guest, number, arguments)).await;
            }
        });
        prop_assert_eq!(guest.memory.len(), MEMORY);
        let usage = guest.host.usage().clone();
        prop_assert!(usage.disk_bytes.load(Relaxed) <= 1 << 20);
    }
}
