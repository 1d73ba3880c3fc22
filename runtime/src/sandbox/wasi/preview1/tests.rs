//! Functions of preview 1 as a program calls them, with a vector as its memory: any argument gets a correct result or
//! an error.

mod arguments;
mod codes;
mod listing;

use std::fs;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use tempfile::TempDir;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::WasiCtx;
use wasmtime_wasi::p1::types::Errno;
use wasmtime_wasi::p1::wasi_snapshot_preview1 as abi;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi_http::WasiHttpCtx;
use wiggle::{GuestError, GuestMemory};

use super::descriptors::open_standard;
use crate::policy::FlagHints;
use crate::sandbox::causes::OutputExceeded;
use crate::sandbox::descriptor_budget::DescriptorBudget;
use crate::sandbox::usage::Usage;
use crate::sandbox::wasi::{
    CappedStream, FileState, HttpAccess, HttpHooks, PathGuard, Preview1State, WasiExtras, WasiState,
};
use crate::tool::{Access, Limits};

const MEMORY: usize = 1 << 16;
/// Number of the one granted folder.
const FOLDER: i32 = 3;
/// Addresses at which the tests write arguments and read results.
const TEXT: i32 = 0x100;
const BUFFERS: i32 = 0x800;
const RESULT: i32 = 0xf00;
const ROOM: i32 = 0x1000;

const ALL_RIGHTS: i64 = (1 << 29) - 1;
const CREATE: i32 = 1;
const APPEND: i32 = 1;

/// Program without code, its state, and its granted folder.
struct Guest {
    host: WasiState,
    memory: Vec<u8>,
    folder: TempDir,
}

impl Guest {
    fn new() -> Self {
        Self::with(Limits::default(), true)
    }

    fn with(limits: Limits, is_granted: bool) -> Self {
        let folder = TempDir::new().unwrap();
        let usage = Arc::new(Usage::default());
        let mut wasi = WasiCtx::builder();
        wasi.args(&["a", "bc"]).env("K", "v").stdin(MemoryInputPipe::new("standard input"));
        wasi.stdout(CappedStream::new(OutputExceeded::Stdout, limits.stdout, &usage));
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        let mut files = FileState::new(&limits, &usage, DescriptorBudget::of_process(), PathGuard::default());
        if is_granted {
            let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
            files.add_folder(dir.into_std_file(), Access::Write, &["/".to_owned()], None);
        }
        let mut host = WasiState {
            ctx: wasi.build(),
            table,
            files,
            http_hooks: HttpHooks::new(HttpAccess::Closed(FlagHints::default()), &limits, &usage),
            http: WasiHttpCtx::new(),
            preview1: Preview1State::default(),
            extras: WasiExtras::default(),
            log: None,
        };
        open_standard(&mut host).unwrap();
        host.preview1.host_call = limits.host_call;
        Self { host, memory: vec![0; MEMORY], folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn put(&mut self, at: i32, bytes: &[u8]) {
        self.memory[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    fn number(&self, at: i32) -> u32 {
        u32::from_le_bytes(self.memory[at as usize..][..4].try_into().unwrap())
    }

    fn long(&self, at: i32) -> u64 {
        u64::from_le_bytes(self.memory[at as usize..][..8].try_into().unwrap())
    }

    /// Writes one buffer for a function that takes several.
    fn buffer(&mut self, at: i32, length: i32) {
        self.put(BUFFERS, &at.to_le_bytes());
        self.put(BUFFERS + 4, &length.to_le_bytes());
    }

    fn open(&mut self, path: &str, oflags: i32, fdflags: i32) -> Result<i32, Errno> {
        self.open_for(ALL_RIGHTS, path, oflags, fdflags)
    }

    fn open_for(&mut self, rights: i64, path: &str, oflags: i32, fdflags: i32) -> Result<i32, Errno> {
        self.put(TEXT, path.as_bytes());
        let length = path.len() as i32;
        let ended = now(abi::path_open(
            &mut self.host,
            &mut GuestMemory::Unshared(&mut self.memory),
            FOLDER,
            1,
            TEXT,
            length,
            oflags,
            rights,
            ALL_RIGHTS,
            fdflags,
            RESULT,
        ));
        errno(ended)?;
        Ok(self.number(RESULT) as i32)
    }

    fn write(&mut self, fd: i32, text: &str) -> Result<u32, Errno> {
        self.put(ROOM, text.as_bytes());
        self.buffer(ROOM, text.len() as i32);
        let memory = &mut GuestMemory::Unshared(&mut self.memory);
        errno(now(abi::fd_write(&mut self.host, memory, fd, BUFFERS, 1, RESULT)))?;
        Ok(self.number(RESULT))
    }

    fn read(&mut self, fd: i32, most: i32) -> Result<String, Errno> {
        self.buffer(ROOM, most);
        let memory = &mut GuestMemory::Unshared(&mut self.memory);
        errno(now(abi::fd_read(&mut self.host, memory, fd, BUFFERS, 1, RESULT)))?;
        let read = self.number(RESULT) as usize;
        Ok(String::from_utf8(self.memory[ROOM as usize..][..read].to_vec()).unwrap())
    }

    fn seek(&mut self, fd: i32, by: i64, whence: i32) -> Result<u64, Errno> {
        let memory = &mut GuestMemory::Unshared(&mut self.memory);
        errno(now(abi::fd_seek(&mut self.host, memory, fd, by, whence, RESULT)))?;
        Ok(self.long(RESULT))
    }

    fn close(&mut self, fd: i32) -> Result<(), Errno> {
        errno(now(abi::fd_close(&mut self.host, &mut GuestMemory::Unshared(&mut self.memory), fd)))
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Returns the error of a function that does not trap.
fn errno(ended: wasmtime::Result<i32>) -> Result<(), Errno> {
    match ended.expect("the program goes on") {
        0 => Ok(()),
        error => Err(Errno::try_from(error).unwrap()),
    }
}

#[test]
fn a_file_is_read_where_it_was_written() {
    let mut guest = Guest::new();
    let file = guest.open("f", CREATE, 0).unwrap();
    assert_eq!(file, FOLDER + 1);
    assert_eq!(guest.write(file, "0123456789"), Ok(10));
    assert_eq!((guest.seek(file, 4, 0), guest.read(file, 3)), (Ok(4), Ok("456".to_owned())));
    assert_eq!((guest.seek(file, -1, 1), guest.read(file, 100)), (Ok(6), Ok("6789".to_owned())));
    assert_eq!((guest.seek(file, -2, 2), guest.write(file, "xyz")), (Ok(8), Ok(3)));
    assert_eq!((guest.seek(file, -1, 0), guest.seek(file, -12, 2)), (Err(Errno::Inval), Err(Errno::Inval)));
    assert_eq!(guest.seek(file, 0, 1), Ok(11), "what was refused has moved nothing");
    assert_eq!(fs::read(guest.path().join("f")).unwrap(), b"01234567xyz");
    assert_eq!((guest.seek(0, 0, 1), guest.seek(FOLDER, 0, 1)), (Err(Errno::Spipe), Err(Errno::Badf)));
    assert_eq!(guest.read(0, 8), Ok("standard".to_owned()));
    assert_eq!((guest.close(file), guest.close(file)), (Ok(()), Err(Errno::Badf)));
}

#[test]
fn appending_goes_to_the_end_wherever_the_file_stands() {
    let mut guest = Guest::new();
    let (one, other) = (guest.open("f", CREATE, APPEND).unwrap(), guest.open("f", 0, 0).unwrap());
    assert_eq!((guest.write(one, "ab"), guest.write(other, "AB")), (Ok(2), Ok(2)));
    assert_eq!((guest.seek(one, 0, 0), guest.write(one, "cd")), (Ok(0), Ok(2)));
    assert_eq!(fs::read(guest.path().join("f")).unwrap(), b"ABcd");
    assert_eq!(guest.seek(one, 0, 1), Ok(4));
}

#[test]
fn a_number_is_free_again_and_moves_what_it_stands_for() {
    let mut guest = Guest::new();
    let files = ["a", "b", "c"].map(|name| guest.open(name, CREATE, 0).unwrap());
    guest.close(files[0]).unwrap();
    assert_eq!(guest.open("d", CREATE, 0), Ok(files[0]), "the lowest number that is free");
    let renumber = |guest: &mut Guest, from, to| {
        errno(now(abi::fd_renumber(&mut guest.host, &mut GuestMemory::Unshared(&mut guest.memory), from, to)))
    };
    guest.write(files[2], "c").unwrap();
    renumber(&mut guest, files[2], files[1]).unwrap();
    guest.write(files[1], "C").unwrap();
    assert_eq!(fs::read(guest.path().join("c")).unwrap(), b"cC");
    assert_eq!(guest.write(files[2], "x"), Err(Errno::Badf));
    assert_eq!(renumber(&mut guest, files[1], 99), Err(Errno::Badf));
    assert_eq!(renumber(&mut guest, 99, files[1]), Err(Errno::Badf));
    assert_eq!(renumber(&mut guest, files[1], files[1]), Ok(()));
    renumber(&mut guest, files[1], 1).unwrap();
    guest.write(1, "!").unwrap();
    assert_eq!(fs::read(guest.path().join("c")).unwrap(), b"cC!", "standard output may be a file");
}

#[test]
fn a_call_that_copies_too_much_comes_back_short() {
    let mut guest = Guest::with(Limits { host_call: 100, ..Limits::default() }, true);
    let file = guest.open("f", CREATE, 0).unwrap();
    assert_eq!(guest.write(file, &"x".repeat(300)), Ok(100));
    guest.seek(file, 0, 0).unwrap();
    assert_eq!(guest.read(file, 300).map(|text| text.len()), Ok(100));
    // Only the first of many buffers are used.
    for number in 0..2000 {
        guest.put(0x2000 + number * 8, &ROOM.to_le_bytes());
        guest.put(0x2000 + number * 8 + 4, &0_i32.to_le_bytes());
    }
    guest.put(0x2000 + 1999 * 8 + 4, &1_i32.to_le_bytes());
    let memory = &mut GuestMemory::Unshared(&mut guest.memory);
    errno(now(abi::fd_write(&mut guest.host, memory, file, 0x2000, 2000, RESULT))).unwrap();
    assert_eq!(guest.number(RESULT), 0);
}

#[test]
fn an_address_outside_the_memory_ends_the_program() {
    let mut guest = Guest::new();
    let file = guest.open("f", CREATE, 0).unwrap();
    guest.write(file, "text").unwrap();
    guest.seek(file, 0, 0).unwrap();
    let ends = |ended: wasmtime::Result<i32>| assert!(ended.unwrap_err().is::<GuestError>());
    for (at, length) in [(MEMORY as i32, 1), (MEMORY as i32 - 1, 2), (-1, 1), (0, -1), (8, i32::MAX)] {
        guest.buffer(at, length);
        let memory = &mut GuestMemory::Unshared(&mut guest.memory);
        let host = &mut guest.host;
        ends(now(abi::fd_read(host, memory, file, BUFFERS, 1, RESULT)));
        ends(now(abi::fd_pread(host, memory, file, BUFFERS, 1, 0, RESULT)));
        ends(now(abi::fd_write(host, memory, file, BUFFERS, 1, RESULT)));
        ends(now(abi::fd_pwrite(host, memory, file, BUFFERS, 1, 0, RESULT)));
        ends(now(abi::fd_write(host, memory, 1, BUFFERS, 1, RESULT)));
        ends(now(abi::fd_readdir(host, memory, FOLDER, at, length, 0, RESULT)));
        ends(abi::random_get(host, memory, at, length));
        if length > 0 && length <= 4096 {
            ends(now(abi::path_unlink_file(host, memory, FOLDER, at, length)));
        }
    }
    let memory = &mut GuestMemory::Unshared(&mut guest.memory);
    ends(now(abi::fd_write(&mut guest.host, memory, file, MEMORY as i32 - 4, 1, RESULT)));
    for count in [1 << 13, 1 << 29, -1] {
        ends(now(abi::fd_write(&mut guest.host, memory, file, BUFFERS, count, RESULT)));
        ends(now(abi::fd_read(&mut guest.host, memory, file, BUFFERS, count, RESULT)));
    }
    ends(now(abi::poll_oneoff(&mut guest.host, memory, MEMORY as i32 - 8, 0, 1, RESULT)));
    ends(abi::clock_time_get(&mut guest.host, memory, 0, 0, MEMORY as i32));
    ends(abi::args_get(&mut guest.host, memory, 0, MEMORY as i32 - 1));
}

#[test]
fn what_is_asked_for_at_once_is_bounded() {
    let mut guest = Guest::new();
    let memory = &mut GuestMemory::Unshared(&mut guest.memory);
    let host = &mut guest.host;
    for count in [0, 4097, -1] {
        assert_eq!(errno(now(abi::poll_oneoff(host, memory, 0, 0, count, RESULT))), Err(Errno::Inval), "{count}");
    }
    assert_eq!(errno(now(abi::path_unlink_file(host, memory, FOLDER, 0, 4097))), Err(Errno::Nametoolong));
    let mut large = vec![0; 2 << 20];
    let memory = &mut GuestMemory::Unshared(&mut large);
    assert_eq!(errno(abi::random_get(host, memory, 0, 1 << 20)), Ok(()));
    assert!(abi::random_get(host, memory, 0, (1 << 20) + 1).is_err());
}

#[test]
fn what_no_tool_is_given_is_refused_and_noted() {
    let mut guest = Guest::new();
    let memory = &mut GuestMemory::Unshared(&mut guest.memory);
    let host = &mut guest.host;
    assert_eq!(errno(abi::sock_accept(host, memory, 3, 0, 0)), Err(Errno::Notsock));
    assert_eq!(errno(abi::sock_recv(host, memory, 3, 0, 0, 0, 0, 8)), Err(Errno::Notsock));
    assert_eq!(errno(abi::sock_send(host, memory, 3, 0, 0, 0, 0)), Err(Errno::Notsock));
    assert_eq!(errno(abi::sock_shutdown(host, memory, 3, 1)), Err(Errno::Notsock));
    let refused: Vec<_> = host.usage().refusals().into_iter().map(|denial| denial.capability).collect();
    let wanted = ["sockets:sock_accept", "sockets:sock_recv", "sockets:sock_send", "sockets:sock_shutdown"];
    assert_eq!(refused, wanted);
    assert_eq!(errno(abi::proc_raise(host, memory, 9)), Err(Errno::Notsup));
    let file = guest.open("f", CREATE, 0).unwrap();
    let memory = &mut GuestMemory::Unshared(&mut guest.memory);
    assert_eq!(errno(abi::fd_allocate(&mut guest.host, memory, file, 0, 1 << 40)), Err(Errno::Notsup));
    assert_eq!(fs::metadata(guest.path().join("f")).unwrap().len(), 0);
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_out_is_refused_and_noted() {
    let mut guest = Guest::new();
    let outside = TempDir::new().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    std::os::unix::fs::symlink(outside.path(), guest.path().join("out")).unwrap();
    for path in ["out/secret", "../secret", "/etc/passwd", "d/../../secret"] {
        assert!(guest.open(path, 0, 0).is_err(), "{path}");
    }
    assert!(!guest.host.usage().denials().is_empty());
}

#[test]
fn who_looks_for_folders_in_vain_is_noted_and_nobody_else() {
    for is_granted in [true, false] {
        let mut guest = Guest::with(Limits::default(), is_granted);
        for fd in FOLDER..=FOLDER + 1 {
            let memory = &mut GuestMemory::Unshared(&mut guest.memory);
            let _ = abi::fd_prestat_get(&mut guest.host, memory, fd, RESULT);
        }
        assert_eq!(guest.open("f", CREATE, 0).is_ok(), is_granted);
        assert_eq!(guest.host.usage().missed_folders(), !is_granted);
    }
}
