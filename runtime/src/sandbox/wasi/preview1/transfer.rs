//! Reads and writes by number, at a given position or at the file's own. The number of bytes and of buffers of one call
//! is bounded; beyond either bound the call returns short, as preview 1 allows.

use bytes::Bytes;
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor as Handle;
use wasmtime_wasi::p1::types::{CiovecArray, Errno, Error, Fd, Filedelta, Filesize, IovecArray, Size, Whence};
use wasmtime_wasi::p2::bindings::filesystem::types::HostDescriptor;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, StreamError};
use wiggle::{GuestError, GuestMemory, GuestPtr, GuestType};

use crate::sandbox::causes::WriteRefused;
use crate::sandbox::wasi::descriptor_table::{Descriptor, OpenFile, borrow};
use crate::sandbox::wasi::state::WasiState;

use super::memory::Result;

/// Maximum number of buffers per call.
const MAX_BUFFERS: usize = 1024;
/// Maximum number of bytes that are copied at once.
const MAX_CHUNK: Size = 64 << 10;

/// Buffers of a program, as chunks in its memory.
type Chunks = Vec<GuestPtr<[u8]>>;

/// Splits an array's buffers into chunks of bounded size. A buffer that is not entirely in memory is refused, even if
/// only a part of it is used.
fn chunks<T: GuestType>(
    state: &WasiState,
    memory: &GuestMemory<'_>,
    array: GuestPtr<[T]>,
    position: impl Fn(T) -> (GuestPtr<u8>, Size),
) -> Result<Chunks> {
    let bytes = array.len().checked_mul(T::guest_size()).ok_or(GuestError::PtrOverflow)?;
    memory.as_slice(GuestPtr::new((array.offset_base(), bytes)))?;
    let mut left = u32::try_from(state.preview1.host_call).unwrap_or(u32::MAX);
    let mut chunks = Chunks::new();
    for buffer in array.iter().take(MAX_BUFFERS) {
        let (at, length) = position(memory.read(buffer?)?);
        memory.as_slice(at.as_array(length))?;
        let length = length.min(left);
        left -= length;
        for start in (0..length).step_by(MAX_CHUNK as usize) {
            chunks.push(at.add(start)?.as_array(MAX_CHUNK.min(length - start)));
        }
    }
    Ok(chunks)
}

fn read_chunks(state: &WasiState, memory: &GuestMemory<'_>, buffers: IovecArray) -> Result<Chunks> {
    chunks(state, memory, buffers, |buffer| (buffer.buf, buffer.buf_len))
}

fn write_chunks(state: &WasiState, memory: &GuestMemory<'_>, buffers: CiovecArray) -> Result<Chunks> {
    chunks(state, memory, buffers, |buffer| (buffer.buf, buffer.buf_len))
}

/// Reads from a stream, or from a file at its position.
pub(super) async fn read(
    state: &mut WasiState,
    memory: &mut GuestMemory<'_>,
    fd: Fd,
    buffers: IovecArray,
) -> Result<Size> {
    let chunks = read_chunks(state, memory, buffers)?;
    match state.preview1.descriptors.get(fd)? {
        Descriptor::Input(stream) => {
            let stream = borrow(stream);
            read_stream(state, memory, &stream, &chunks).await
        }
        Descriptor::File(OpenFile { file, position, .. }) => {
            let (file, position) = (borrow(file), *position);
            let count = read_file(state, memory, &file, &chunks, position).await?;
            state.preview1.descriptors.file_mut(fd)?.position = position.saturating_add(count.into());
            Ok(count)
        }
        Descriptor::Folder(_) | Descriptor::Output(_) => Err(Errno::Badf.into()),
    }
}

/// Reads from a file at a given position.
pub(super) async fn read_at(
    state: &mut WasiState,
    memory: &mut GuestMemory<'_>,
    fd: Fd,
    buffers: IovecArray,
    at: Filesize,
) -> Result<Size> {
    let chunks = read_chunks(state, memory, buffers)?;
    let file = borrow(&state.preview1.descriptors.file(fd)?.file);
    read_file(state, memory, &file, &chunks, at).await
}

async fn read_stream(
    state: &mut WasiState,
    memory: &mut GuestMemory<'_>,
    stream: &Resource<DynInputStream>,
    chunks: &[GuestPtr<[u8]>],
) -> Result<Size> {
    let mut count = 0;
    for chunk in chunks {
        let len = chunk.len();
        let read = match state.table.get_mut(stream)?.blocking_read(len as usize).await {
            Ok(read) => read,
            Err(StreamError::Closed) => break,
            Err(error) if count == 0 => return Err(error.into()),
            Err(_) => break,
        };
        let length = u32::try_from(read.len())?.min(len);
        memory.copy_from_slice(&read[..length as usize], chunk.as_ptr().as_array(length))?;
        count += length;
        if length < len {
            break;
        }
    }
    Ok(count)
}

async fn read_file(
    state: &mut WasiState,
    memory: &mut GuestMemory<'_>,
    file: &Resource<Handle>,
    chunks: &[GuestPtr<[u8]>],
    at: Filesize,
) -> Result<Size> {
    let mut count: Size = 0;
    for chunk in chunks {
        let len = chunk.len();
        let position = at.checked_add(count.into()).ok_or(Errno::Overflow)?;
        let (read, _) = match state.files().read(borrow(file), len.into(), position).await {
            Ok(read) => read,
            Err(error) if count == 0 => return Err(error.into()),
            Err(_) => break,
        };
        let length = u32::try_from(read.len())?.min(len);
        memory.copy_from_slice(&read[..length as usize], chunk.as_ptr().as_array(length))?;
        count += length;
        if length < len {
            break;
        }
    }
    Ok(count)
}

/// Writes to a stream, or to a file at its position.
pub(super) async fn write(
    state: &mut WasiState,
    memory: &mut GuestMemory<'_>,
    fd: Fd,
    buffers: CiovecArray,
) -> Result<Size> {
    let chunks = write_chunks(state, memory, buffers)?;
    match state.preview1.descriptors.get(fd)? {
        Descriptor::Output(stream) => {
            let stream = borrow(stream);
            write_stream(state, memory, &stream, &chunks).await
        }
        Descriptor::File(OpenFile { file, append: true, .. }) => {
            let file = borrow(file);
            let count = append(state, memory, &file, &chunks).await?;
            let end = state.files().stat(file).await?.size;
            state.preview1.descriptors.file_mut(fd)?.position = end;
            Ok(count)
        }
        Descriptor::File(OpenFile { file, position, .. }) => {
            let (file, position) = (borrow(file), *position);
            let count = write_file(state, memory, &file, &chunks, position).await?;
            state.preview1.descriptors.file_mut(fd)?.position = position.saturating_add(count.into());
            Ok(count)
        }
        Descriptor::Folder(_) | Descriptor::Input(_) => Err(Errno::Badf.into()),
    }
}

/// Writes to a file at a given position, or to its end if it is open for appending.
pub(super) async fn write_at(
    state: &mut WasiState,
    memory: &mut GuestMemory<'_>,
    fd: Fd,
    buffers: CiovecArray,
    at: Filesize,
) -> Result<Size> {
    let chunks = write_chunks(state, memory, buffers)?;
    let OpenFile { file, append: appends, .. } = state.preview1.descriptors.file(fd)?;
    let (file, appends) = (borrow(file), *appends);
    match appends {
        true => append(state, memory, &file, &chunks).await,
        false => write_file(state, memory, &file, &chunks, at).await,
    }
}

async fn write_stream(
    state: &mut WasiState,
    memory: &GuestMemory<'_>,
    stream: &Resource<DynOutputStream>,
    chunks: &[GuestPtr<[u8]>],
) -> Result<Size> {
    let mut count = 0;
    for chunk in chunks {
        let bytes = Bytes::from(memory.to_vec(*chunk)?);
        state.table.get_mut(stream)?.blocking_write_and_flush(bytes).await?;
        count += chunk.len();
    }
    Ok(count)
}

async fn write_file(
    state: &mut WasiState,
    memory: &GuestMemory<'_>,
    file: &Resource<Handle>,
    chunks: &[GuestPtr<[u8]>],
    at: Filesize,
) -> Result<Size> {
    let mut count: Size = 0;
    for chunk in chunks {
        let bytes = memory.to_vec(*chunk)?;
        let position = at.checked_add(count.into()).ok_or(Errno::Fbig)?;
        let written = match state.files().write(borrow(file), bytes, position).await {
            Ok(written) => u32::try_from(written)?,
            Err(error) if count == 0 => return Err(error.into()),
            // The bytes written so far are reported first; the next call reports the error.
            Err(_) => break,
        };
        count += written;
        if written < chunk.len() {
            break;
        }
    }
    Ok(count)
}

/// Appends to a file.
async fn append(
    state: &mut WasiState,
    memory: &GuestMemory<'_>,
    file: &Resource<Handle>,
    chunks: &[GuestPtr<[u8]>],
) -> Result<Size> {
    let stream = state.files().append_via_stream(borrow(file))?;
    let mut count = 0;
    let mut ended = Ok(());
    for chunk in chunks {
        let bytes = Bytes::from(memory.to_vec(*chunk)?);
        ended = state.table.get_mut(&stream)?.blocking_write_and_flush(bytes).await;
        if ended.is_err() {
            break;
        }
        count += chunk.len();
    }
    state.table.delete(stream)?;
    match ended {
        Err(error) if count == 0 => Err(stream_error(error)),
        _ => Ok(count),
    }
}

/// Returns the error for a write to a file stream.
fn stream_error(error: StreamError) -> Error {
    let refused = match &error {
        StreamError::LastOperationFailed(cause) => cause.downcast_ref::<WriteRefused>().copied(),
        _ => None,
    };
    match refused {
        Some(refused) => refused.code().into(),
        None => error.into(),
    }
}

/// Moves the position of a file.
pub(super) async fn seek(state: &mut WasiState, fd: Fd, by: Filedelta, whence: Whence) -> Result<Filesize> {
    let OpenFile { file, position, .. } = state.preview1.descriptors.file(fd)?;
    let from = match whence {
        Whence::Set => 0,
        Whence::Cur => *position,
        Whence::End => {
            let file = borrow(file);
            state.files().stat(file).await?.size
        }
    };
    let position = from.checked_add_signed(by).ok_or(Errno::Inval)?;
    state.preview1.descriptors.file_mut(fd)?.position = position;
    Ok(position)
}
