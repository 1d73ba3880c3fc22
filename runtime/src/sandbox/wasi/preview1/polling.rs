//! Polling of clocks and descriptors. Streams and files never block here, so that a subscription to one returns at
//! once; a clock is awaited for as long as the call may take.

use std::time::Duration;

use wasmtime_wasi::p1::types::{
    Clockid, Errno, Error, Event, EventFdReadwrite, Eventrwflags, Eventtype, Fd, Filesize, Size, Subclockflags,
    Subscription, SubscriptionClock, SubscriptionU, Timestamp, Userdata,
};
use wasmtime_wasi::p2::bindings::filesystem::types::HostDescriptor;
use wiggle::{GuestMemory, GuestPtr};

use crate::sandbox::wasi::descriptor_table::{Descriptor, OpenFile, borrow};
use crate::sandbox::wasi::state::WasiState;

use super::environment::now;
use super::memory::Result;

/// Maximum number of subscriptions per poll.
const MAX_SUBSCRIPTIONS: Size = 4096;

/// Subscription to a clock.
struct Alarm {
    userdata: Userdata,
    wait: Duration,
}

/// Waits for a ready subscription, then reports all that are ready.
pub(super) async fn poll(
    state: &mut WasiState,
    memory: &mut GuestMemory<'_>,
    subscriptions: GuestPtr<Subscription>,
    output: GuestPtr<Event>,
    count: Size,
) -> Result<Size> {
    if count == 0 || count > MAX_SUBSCRIPTIONS {
        return Err(Errno::Inval.into());
    }
    let (mut events, mut alarms) = (Vec::new(), Vec::new());
    for pointer in subscriptions.as_array(count).iter() {
        let Subscription { userdata, u } = memory.read(pointer?)?;
        match u {
            SubscriptionU::Clock(clock) => match time_left(state, &clock) {
                Ok(wait) => alarms.push(Alarm { userdata, wait }),
                Err(error) => {
                    events.push(event(userdata, Eventtype::Clock, Err(error.downcast().map_err(Error::trap)?)))
                }
            },
            SubscriptionU::FdRead(fd) => {
                let ready = ready(state, fd.file_descriptor, Eventtype::FdRead).await?;
                events.push(event(userdata, Eventtype::FdRead, ready));
            }
            SubscriptionU::FdWrite(fd) => {
                let ready = ready(state, fd.file_descriptor, Eventtype::FdWrite).await?;
                events.push(event(userdata, Eventtype::FdWrite, ready));
            }
        }
    }
    let waited = match alarms.iter().map(|alarm| alarm.wait).min() {
        Some(soonest) if events.is_empty() => {
            tokio::time::sleep(soonest).await;
            soonest
        }
        _ => Duration::ZERO,
    };
    let due = alarms.iter().filter(|alarm| alarm.wait <= waited);
    events.extend(due.map(|alarm| event(alarm.userdata, Eventtype::Clock, Ok(0))));
    let count = Size::try_from(events.len())?;
    for (pointer, event) in output.as_array(count).iter().zip(events) {
        memory.write(pointer?, event)?;
    }
    Ok(count)
}

/// Returns the time until a clock is due.
fn time_left(state: &mut WasiState, clock: &SubscriptionClock) -> Result<Duration> {
    let SubscriptionClock { id, timeout, flags, .. } = clock;
    if let Clockid::ProcessCputimeId | Clockid::ThreadCputimeId = id {
        return Err(Errno::Notsup.into());
    }
    let left: Timestamp = match flags.contains(Subclockflags::SUBSCRIPTION_CLOCK_ABSTIME) {
        true => timeout.saturating_sub(now(state, *id)?),
        false => *timeout,
    };
    Ok(Duration::from_nanos(left))
}

/// Returns the number of bytes that can be read, or the error for a descriptor that cannot be polled.
async fn ready(state: &mut WasiState, fd: Fd, kind: Eventtype) -> Result<Result<Filesize, Errno>> {
    let file = match (state.preview1.descriptors.get(fd), kind) {
        (Ok(Descriptor::Input(_)), Eventtype::FdRead) => return Ok(Ok(1)),
        (Ok(Descriptor::Output(_)), Eventtype::FdWrite) => return Ok(Ok(0)),
        (Ok(Descriptor::File(OpenFile { file, position, .. })), _) => (borrow(file), *position),
        _ => return Ok(Err(Errno::Badf)),
    };
    let (file, position) = file;
    if kind == Eventtype::FdWrite {
        return Ok(Ok(0));
    }
    match state.files().stat(file).await.map_err(Error::from) {
        Ok(stat) => Ok(Ok(stat.size.saturating_sub(position))),
        Err(error) => Ok(Err(error.downcast().map_err(Error::trap)?)),
    }
}

fn event(userdata: Userdata, type_: Eventtype, ready: Result<Filesize, Errno>) -> Event {
    let (error, nbytes) = match ready {
        Ok(bytes) => (Errno::Success, bytes),
        Err(error) => (error, 0),
    };
    Event { userdata, error, type_, fd_readwrite: EventFdReadwrite { nbytes, flags: Eventrwflags::empty() } }
}
