//! `toolcrib approvals pending`, `allow` and `deny`: shows the calls that wait for approval, and answers them.

use std::io;

use terminal_size::{Height, Width, terminal_size_of};
use toolcrib_base::render::{self, one_line};
use toolcrib_settings::permission::PendingCall;

use super::places::ApprovalPlaces;

const HEADINGS: [&str; 6] = ["ID", "TOOL", "CLIENT", "ASKED", "STATE", "RULE"];
/// Width of output that is not a terminal, in columns.
const DEFAULT_WIDTH: usize = 80;

/// Lists calls.
pub(super) fn list(calls: &[PendingCall], json: bool) -> anyhow::Result<()> {
    if json {
        return render::print_json(&serde_json::to_string(calls)?);
    }
    let row = |call: &PendingCall| {
        let asked = format!("{:.0}", call.asked);
        let [id, tool, client, rule] = [&call.id, &call.tool, &call.client, &call.rests_on].map(|text| one_line(text));
        [id, tool, client, asked, call.state().to_owned(), rule]
    };
    render::print(&render::table(HEADINGS, calls.iter().map(row)))
}

/// Shows one call in full.
pub(super) fn show(places: &ApprovalPlaces, id: &str, json: bool) -> anyhow::Result<()> {
    let call = places.of_call(id)?.0.find(id)?;
    match json {
        true => render::print_json(&serde_json::to_string(&call)?),
        false => render::print(call.sheet(width(terminal_size_of(io::stdout()))).trim_end()),
    }
}

/// Allows a call. With `always`, also stores a permanent approval.
pub(super) fn allow(places: &ApprovalPlaces, id: &str, always: bool) -> anyhow::Result<()> {
    let (calls, approvals) = places.of_call(id)?;
    if always && approvals.is_none() {
        // It names the missing file.
        places.approvals()?;
    }
    let (call, permanent) = calls.allow(id, approvals.as_ref().filter(|_| always))?;
    if let Some(approval) = permanent {
        let tool = one_line(&call.tool);
        render::aside(&format!(
            "allowed permanently: every `{tool}` call that `{}` asks about; `toolcrib approvals remove {tool}` revokes it",
            one_line(&approval.rule)
        ));
        return Ok(());
    }
    confirm(&call, "passes");
    Ok(())
}

/// Allows a call, and further ones in the session that waits.
pub(super) fn allow_session(places: &ApprovalPlaces, id: &str) -> anyhow::Result<()> {
    let call = places.of_call(id)?.0.allow_session(id)?;
    let scope = call.session_scope().unwrap_or_default();
    render::aside(&format!("allowed `{}`, which waits for this answer, and {scope}", one_line(&call.tool)));
    Ok(())
}

/// Denies a call; the model gets the reason, if it is not empty.
pub(super) fn deny(places: &ApprovalPlaces, id: &str, reason: &str) -> anyhow::Result<()> {
    let call = places.of_call(id)?.0.deny(id, reason)?;
    confirm(&call, "is denied");
    Ok(())
}

fn confirm(call: &PendingCall, then: &str) {
    if call.until.is_some() {
        let (tool, client) = (one_line(&call.tool), one_line(&call.client));
        return render::aside(&format!("{} `{tool}` for `{client}`, which waits for this answer", call.state()));
    }
    render::aside(&format!(
        "{} `{}` for `{}`: the same call {then} once if it is repeated until {:.0}",
        call.state(),
        one_line(&call.tool),
        one_line(&call.client),
        call.expires()
    ));
}

/// Width of a terminal in columns.
fn width(size: Option<(Width, Height)>) -> usize {
    size.map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0))
}
