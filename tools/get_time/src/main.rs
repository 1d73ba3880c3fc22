//! Tool `get_time`: returns the time in an IANA time zone. The zones are compiled in, because the sandbox has none.

use std::process::ExitCode;

use jiff::Timestamp;
use jiff::tz::TimeZoneDatabase;
use serde::{Deserialize, Serialize};
use toolcrib_guest::{Error, error};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Args {
    timezone: Option<String>,
    /// Former name of `timezone`.
    tz: Option<String>,
}

#[derive(Serialize)]
struct Output {
    timezone: String,
    /// Local time with the offset, to the second.
    iso: String,
    /// Same instant as `iso`, in UTC.
    utc: String,
    /// Seconds since 1970-01-01T00:00:00Z.
    unix: i64,
    offset: String,
    abbreviation: String,
    weekday: String,
    daylight_saving: bool,
}

fn main() -> ExitCode {
    toolcrib_guest::command(run)
}

fn run(args: Args) -> Result<Output, Error> {
    let name = args.timezone.or(args.tz).ok_or_else(|| error!("`timezone` is required"))?;
    let zone = TimeZoneDatabase::bundled()
        .get(&name)
        .map_err(|_| error!("unknown time zone `{name}`; use an IANA name, e.g. `Europe/Helsinki`"))?;
    let now = Timestamp::now();
    let info = zone.to_offset_info(now);
    let (abbreviation, daylight_saving) = (info.abbreviation().into(), info.dst().is_dst());
    let now = now.to_zoned(zone.clone());
    Ok(Output {
        timezone: zone.iana_name().unwrap_or(&name).into(),
        iso: now.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
        utc: now.timestamp().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        unix: now.timestamp().as_second(),
        offset: now.strftime("%:z").to_string(),
        abbreviation,
        weekday: now.strftime("%A").to_string(),
        daylight_saving,
    })
}
