//! Requests times that no clock reaches, and reports each result: endless waits that it does not await, and timestamps
//! for a file of its folder.

use std::process::ExitCode;

use toolcrib_guest::{Error, Value, error, json};
use wasip2::clocks::monotonic_clock::{resolution, subscribe_duration, subscribe_instant};
use wasip2::clocks::wall_clock::Datetime;
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{DescriptorFlags, NewTimestamp, OpenFlags, PathFlags};

fn main() -> ExitCode {
    toolcrib_guest::command(|_: Value| -> Result<Value, Error> {
        let waits = [u64::MAX, u64::MAX - 1, u64::MAX / 2];
        let mut ready: Vec<bool> = waits.map(|wait| subscribe_duration(wait).ready()).into();
        ready.extend(waits.map(|at| subscribe_instant(at).ready()));
        let past = subscribe_instant(0).ready();
        let folders = get_directories();
        let (folder, _) = folders.first().ok_or_else(|| error!("no folder is granted"))?;
        let file = folder
            .open_at(PathFlags::empty(), "stamped", OpenFlags::CREATE, DescriptorFlags::WRITE)
            .map_err(|code| error!("{}", code.name()))?;
        let mut stamps = Vec::new();
        for (seconds, nanoseconds) in
            [(u64::MAX, u32::MAX), (u64::MAX, 0), (0, u32::MAX), (i64::MAX as u64, 999_999_999)]
        {
            let time = NewTimestamp::Timestamp(Datetime { seconds, nanoseconds });
            let through = [
                file.set_times(time, time).err(),
                folder.set_times_at(PathFlags::empty(), "stamped", time, NewTimestamp::NoChange).err(),
            ];
            stamps.push(through.map(|code| code.map_or("set", |code| code.name()).to_owned()));
        }
        Ok(json!({ "ready": ready, "past": past, "fine": resolution() > 0, "stamps": stamps }))
    })
}
