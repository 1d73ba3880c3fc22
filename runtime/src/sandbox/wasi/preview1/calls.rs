//! The 46 functions of preview 1. Each one reads its arguments from the program's memory and passes them on; a function
//! that returns an error here is not supported for any program.

use wasmtime_wasi::p1::types::{
    Advice, CiovecArray, Clockid, Dircookie, Errno, Event, Exitcode, Fd, Fdflags, Fdstat, Filedelta, Filesize,
    Filestat, Fstflags, IovecArray, Lookupflags, Oflags, Prestat, Riflags, Rights, Roflags, Sdflags, Siflags, Signal,
    Size, Subscription, Timestamp, Whence,
};
use wasmtime_wasi::p1::wasi_snapshot_preview1::WasiSnapshotPreview1;
use wasmtime_wasi::p2::bindings::filesystem::types::{Advice as Hint, HostDescriptor};
use wiggle::{GuestMemory, GuestPtr};

use crate::sandbox::wasi::descriptor_table::borrow;
use crate::sandbox::wasi::state::WasiState;

use super::descriptors::{self, folder};
use super::memory::{Result, path};
use super::paths::{self, Opening};
use super::{environment, listing, polling, stat, transfer};

type Memory<'a, 'm> = &'a mut GuestMemory<'m>;

impl WasiSnapshotPreview1 for WasiState {
    fn set_hostcall_fuel(&mut self, fuel: usize) {
        self.preview1.host_call = fuel;
    }

    fn args_get(&mut self, memory: Memory<'_, '_>, argv: GuestPtr<GuestPtr<u8>>, texts: GuestPtr<u8>) -> Result<()> {
        environment::write(memory, &environment::arguments(self)?, argv, texts)
    }

    fn args_sizes_get(&mut self, _: Memory<'_, '_>) -> Result<(Size, Size)> {
        environment::sizes(&environment::arguments(self)?)
    }

    fn environ_get(&mut self, memory: Memory<'_, '_>, list: GuestPtr<GuestPtr<u8>>, texts: GuestPtr<u8>) -> Result<()> {
        environment::write(memory, &environment::variables(self)?, list, texts)
    }

    fn environ_sizes_get(&mut self, _: Memory<'_, '_>) -> Result<(Size, Size)> {
        environment::sizes(&environment::variables(self)?)
    }

    fn clock_res_get(&mut self, _: Memory<'_, '_>, clock: Clockid) -> Result<Timestamp> {
        environment::resolution(self, clock)
    }

    fn clock_time_get(&mut self, _: Memory<'_, '_>, clock: Clockid, _: Timestamp) -> Result<Timestamp> {
        environment::now(self, clock)
    }

    async fn fd_advise(
        &mut self,
        _: Memory<'_, '_>,
        fd: Fd,
        at: Filesize,
        len: Filesize,
        advice: Advice,
    ) -> Result<()> {
        let file = borrow(&self.preview1.descriptors.file(fd)?.file);
        let hint = match advice {
            Advice::Normal => Hint::Normal,
            Advice::Sequential => Hint::Sequential,
            Advice::Random => Hint::Random,
            Advice::Willneed => Hint::WillNeed,
            Advice::Dontneed => Hint::DontNeed,
            Advice::Noreuse => Hint::NoReuse,
        };
        Ok(self.files().advise(file, at, len, hint).await?)
    }

    fn fd_allocate(&mut self, _: Memory<'_, '_>, fd: Fd, _: Filesize, _: Filesize) -> Result<()> {
        self.preview1.descriptors.file(fd)?;
        Err(Errno::Notsup.into())
    }

    async fn fd_close(&mut self, _: Memory<'_, '_>, fd: Fd) -> Result<()> {
        descriptors::close(self, fd)
    }

    async fn fd_datasync(&mut self, _: Memory<'_, '_>, fd: Fd) -> Result<()> {
        let file = self.preview1.descriptors.any(fd)?;
        Ok(self.files().sync_data(file).await?)
    }

    async fn fd_fdstat_get(&mut self, _: Memory<'_, '_>, fd: Fd) -> Result<Fdstat> {
        stat::of_descriptor(self, fd).await
    }

    fn fd_fdstat_set_flags(&mut self, _: Memory<'_, '_>, fd: Fd, flags: Fdflags) -> Result<()> {
        stat::set_flags(self, fd, flags)
    }

    fn fd_fdstat_set_rights(&mut self, _: Memory<'_, '_>, fd: Fd, _: Rights, _: Rights) -> Result<()> {
        self.preview1.descriptors.get(fd)?;
        Err(Errno::Notsup.into())
    }

    async fn fd_filestat_get(&mut self, _: Memory<'_, '_>, fd: Fd) -> Result<Filestat> {
        stat::of_open(self, fd).await
    }

    async fn fd_filestat_set_size(&mut self, _: Memory<'_, '_>, fd: Fd, size: Filesize) -> Result<()> {
        let file = borrow(&self.preview1.descriptors.file(fd)?.file);
        Ok(self.files().set_size(file, size).await?)
    }

    async fn fd_filestat_set_times(
        &mut self,
        _: Memory<'_, '_>,
        fd: Fd,
        accessed: Timestamp,
        changed: Timestamp,
        flags: Fstflags,
    ) -> Result<()> {
        let (accessed, changed) = stat::times(accessed, changed, flags)?;
        let file = self.preview1.descriptors.any(fd)?;
        Ok(self.files().set_times(file, accessed, changed).await?)
    }

    async fn fd_read(&mut self, memory: Memory<'_, '_>, fd: Fd, buffers: IovecArray) -> Result<Size> {
        transfer::read(self, memory, fd, buffers).await
    }

    async fn fd_pread(&mut self, memory: Memory<'_, '_>, fd: Fd, buffers: IovecArray, at: Filesize) -> Result<Size> {
        transfer::read_at(self, memory, fd, buffers, at).await
    }

    async fn fd_write(&mut self, memory: Memory<'_, '_>, fd: Fd, buffers: CiovecArray) -> Result<Size> {
        transfer::write(self, memory, fd, buffers).await
    }

    async fn fd_pwrite(&mut self, memory: Memory<'_, '_>, fd: Fd, buffers: CiovecArray, at: Filesize) -> Result<Size> {
        transfer::write_at(self, memory, fd, buffers, at).await
    }

    fn fd_prestat_get(&mut self, _: Memory<'_, '_>, fd: Fd) -> Result<Prestat> {
        descriptors::granted(self, fd)
    }

    fn fd_prestat_dir_name(&mut self, memory: Memory<'_, '_>, fd: Fd, at: GuestPtr<u8>, room: Size) -> Result<()> {
        descriptors::granted_name(self, memory, fd, at, room)
    }

    async fn fd_renumber(&mut self, _: Memory<'_, '_>, from: Fd, to: Fd) -> Result<()> {
        descriptors::renumber(self, from, to)
    }

    async fn fd_seek(&mut self, _: Memory<'_, '_>, fd: Fd, by: Filedelta, whence: Whence) -> Result<Filesize> {
        transfer::seek(self, fd, by, whence).await
    }

    async fn fd_sync(&mut self, _: Memory<'_, '_>, fd: Fd) -> Result<()> {
        let file = self.preview1.descriptors.any(fd)?;
        Ok(self.files().sync(file).await?)
    }

    fn fd_tell(&mut self, _: Memory<'_, '_>, fd: Fd) -> Result<Filesize> {
        Ok(self.preview1.descriptors.file(fd)?.position)
    }

    async fn fd_readdir(
        &mut self,
        memory: Memory<'_, '_>,
        fd: Fd,
        at: GuestPtr<u8>,
        room: Size,
        cookie: Dircookie,
    ) -> Result<Size> {
        listing::read(self, memory, fd, (at, room), cookie).await
    }

    async fn path_create_directory(&mut self, memory: Memory<'_, '_>, fd: Fd, name: GuestPtr<str>) -> Result<()> {
        let (name, folder) = (path(memory, name)?, folder(self, fd)?);
        Ok(self.files().create_directory_at(folder, name).await?)
    }

    async fn path_filestat_get(
        &mut self,
        memory: Memory<'_, '_>,
        fd: Fd,
        lookup: Lookupflags,
        name: GuestPtr<str>,
    ) -> Result<Filestat> {
        stat::of_path(self, fd, lookup, path(memory, name)?).await
    }

    async fn path_filestat_set_times(
        &mut self,
        memory: Memory<'_, '_>,
        fd: Fd,
        lookup: Lookupflags,
        name: GuestPtr<str>,
        accessed: Timestamp,
        changed: Timestamp,
        flags: Fstflags,
    ) -> Result<()> {
        paths::set_times(self, fd, lookup, path(memory, name)?, (accessed, changed, flags)).await
    }

    async fn path_link(
        &mut self,
        memory: Memory<'_, '_>,
        from: Fd,
        lookup: Lookupflags,
        old: GuestPtr<str>,
        to: Fd,
        new: GuestPtr<str>,
    ) -> Result<()> {
        let (old, new) = (path(memory, old)?, path(memory, new)?);
        paths::link(self, (from, lookup, old), (to, new)).await
    }

    async fn path_open(
        &mut self,
        memory: Memory<'_, '_>,
        fd: Fd,
        lookup: Lookupflags,
        name: GuestPtr<str>,
        oflags: Oflags,
        rights: Rights,
        _: Rights,
        fdflags: Fdflags,
    ) -> Result<Fd> {
        paths::open(self, fd, path(memory, name)?, Opening { lookup, oflags, rights, fdflags }).await
    }

    async fn path_readlink(
        &mut self,
        memory: Memory<'_, '_>,
        fd: Fd,
        name: GuestPtr<str>,
        at: GuestPtr<u8>,
        room: Size,
    ) -> Result<Size> {
        let name = path(memory, name)?;
        paths::read_link(self, memory, fd, name, (at, room)).await
    }

    async fn path_remove_directory(&mut self, memory: Memory<'_, '_>, fd: Fd, name: GuestPtr<str>) -> Result<()> {
        let (name, folder) = (path(memory, name)?, folder(self, fd)?);
        Ok(self.files().remove_directory_at(folder, name).await?)
    }

    async fn path_rename(
        &mut self,
        memory: Memory<'_, '_>,
        from: Fd,
        old: GuestPtr<str>,
        to: Fd,
        new: GuestPtr<str>,
    ) -> Result<()> {
        let (old, new) = (path(memory, old)?, path(memory, new)?);
        paths::rename(self, (from, old), (to, new)).await
    }

    async fn path_symlink(
        &mut self,
        memory: Memory<'_, '_>,
        target: GuestPtr<str>,
        fd: Fd,
        name: GuestPtr<str>,
    ) -> Result<()> {
        let (target, name, folder) = (path(memory, target)?, path(memory, name)?, folder(self, fd)?);
        Ok(self.files().symlink_at(folder, target, name).await?)
    }

    async fn path_unlink_file(&mut self, memory: Memory<'_, '_>, fd: Fd, name: GuestPtr<str>) -> Result<()> {
        let (name, folder) = (path(memory, name)?, folder(self, fd)?);
        Ok(self.files().unlink_file_at(folder, name).await?)
    }

    async fn poll_oneoff(
        &mut self,
        memory: Memory<'_, '_>,
        subscriptions: GuestPtr<Subscription>,
        events: GuestPtr<Event>,
        count: Size,
    ) -> Result<Size> {
        polling::poll(self, memory, subscriptions, events, count).await
    }

    fn proc_exit(&mut self, _: Memory<'_, '_>, code: Exitcode) -> wasmtime::Error {
        environment::exit(code)
    }

    fn proc_raise(&mut self, _: Memory<'_, '_>, _: Signal) -> Result<()> {
        Err(Errno::Notsup.into())
    }

    fn sched_yield(&mut self, _: Memory<'_, '_>) -> Result<()> {
        Ok(())
    }

    fn random_get(&mut self, memory: Memory<'_, '_>, at: GuestPtr<u8>, bytes: Size) -> Result<()> {
        environment::random(self, memory, at, bytes)
    }

    fn sock_accept(&mut self, _: Memory<'_, '_>, fd: Fd, _: Fdflags) -> Result<Fd> {
        environment::no_socket(self, fd, "sock_accept")
    }

    fn sock_recv(&mut self, _: Memory<'_, '_>, fd: Fd, _: IovecArray, _: Riflags) -> Result<(Size, Roflags)> {
        environment::no_socket(self, fd, "sock_recv")
    }

    fn sock_send(&mut self, _: Memory<'_, '_>, fd: Fd, _: CiovecArray, _: Siflags) -> Result<Size> {
        environment::no_socket(self, fd, "sock_send")
    }

    fn sock_shutdown(&mut self, _: Memory<'_, '_>, fd: Fd, _: Sdflags) -> Result<()> {
        environment::no_socket(self, fd, "sock_shutdown")
    }
}
