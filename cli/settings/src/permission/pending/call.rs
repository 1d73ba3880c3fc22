//! A call that waits for an answer: the bounded texts that a person sees, and the key that identifies the same call when it
//! is repeated.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolcrib::policy::{Approval, ApprovalRequest};
use toolcrib::source::digest;
use toolcrib_base::render::{counted, inert_json, one_line, shortened};
use toolcrib_base::short_id;

use crate::permission::layout::pretty;
use crate::permission::sheet::{Sheet, calls, granted_text, reach, scope};
use crate::permission::{RequestDetails, action, difference, effects};

/// Maximum time for which a call waits for an answer.
pub(super) const MAX_WAIT: SignedDuration = SignedDuration::from_secs(60 * 60);
/// Maximum time between an answer and the repeated call.
pub(super) const MAX_ANSWER_AGE: SignedDuration = SignedDuration::from_secs(15 * 60);
/// Maximum time after its end in which a run takes a call back.
const MAX_RUN_DELAY: SignedDuration = SignedDuration::from_secs(5);
/// Maximum difference between the clocks of hosts that share the file.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(60);
/// Maximum length of the arguments that are stored, in characters.
const MAX_ARGUMENTS: usize = 16_384;
/// Maximum length of a preview, in characters.
const MAX_PREVIEW: usize = 2_000;
/// Maximum length of the effects that a call has held back, in characters.
const MAX_EFFECTS: usize = 65_536;
/// Maximum number of granted permissions that are stored.
const MAX_GRANTS: usize = 32;
/// Maximum length of the name of a client and of a granted permission, in characters.
const MAX_NAME: usize = 256;
/// Maximum length of every other text, in characters.
const MAX_TEXT: usize = 1_024;
/// Maximum length of the approval for further calls, in bytes of JSON. A longer one is not offered.
const MAX_APPROVAL: usize = 8_192;

/// Call that waits for an answer, or has an answer that is not used yet. All texts come from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PendingCall {
    /// Identifier that the person types.
    pub id: String,
    /// Name of the tool.
    pub tool: String,
    /// Client that called the tool, by a name that it may have chosen itself.
    pub client: String,
    /// Identity of the client for the server, which counts the calls of each identity.
    #[serde(default)]
    pub(crate) owner: String,
    /// Beginning of the arguments, as JSON text.
    pub(crate) arguments: String,
    /// Number of characters at the end of the arguments that are not stored.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) left_out: usize,
    /// Preview of the call, as written by the tool or its author.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) preview: Option<String>,
    /// Lines that the call would change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) changes: Option<String>,
    /// Action of the call in one line, from the definition of a tool that somebody vouches for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Explanation of the flow, if a rule about flows asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) flow: Option<String>,
    /// Permissions that the tool is granted.
    #[serde(default)]
    pub(crate) granted: Vec<String>,
    /// Rule or reason that requires the approval.
    pub rests_on: String,
    /// Reason for the approval in the tool's definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// Source of the tool and its program.
    pub(crate) source: String,
    /// Fixed arguments of the program, as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fixed: Option<String>,
    /// Properties of the tool with their basis.
    pub(crate) properties: String,
    /// Time of the first request.
    pub asked: Timestamp,
    /// Digest that identifies the same call of the same client.
    pub(crate) key: String,
    /// Time until which a process waits; `None` for a call that is refused meanwhile, and waits to be repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Lock that the process holds while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<String>,
    /// Scope of a permanent approval; `None` if each call requires its own approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approval: Option<Approval>,
    /// Answer of the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<PendingAnswer>,
}

/// Answer to a pending call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingAnswer {
    /// `true` if the call may run once.
    pub allowed: bool,
    /// Time of the answer.
    pub(crate) time: Timestamp,
    /// Reason of a denial, which the model gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `true` if further calls in the scope may run too, in the session that waits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) session: bool,
}

impl PendingCall {
    /// Creates the call of a request, with a new identifier and without an answer.
    ///
    /// # Errors
    ///
    /// The system has no random numbers.
    pub fn new(request: &ApprovalRequest<'_>, client: &str, owner: &str) -> anyhow::Result<Self> {
        let tool = request.tool;
        let short = |text: &str| shortened(text, MAX_TEXT).into_owned();
        let RequestDetails { source, fixed, properties, changes } = RequestDetails::new(request);
        let length = request.arguments.chars().count();
        Ok(Self {
            id: short_id::random()?,
            tool: short(&tool.name),
            client: shortened(client, MAX_NAME).into_owned(),
            owner: shortened(owner, MAX_NAME).into_owned(),
            arguments: request.arguments.chars().take(MAX_ARGUMENTS).collect(),
            left_out: length.saturating_sub(MAX_ARGUMENTS),
            preview: request.preview.map(|text| shortened(text, MAX_PREVIEW).into_owned()),
            changes: changes.map(|lines| {
                shortened(&lines, if request.effects.is_some() { MAX_EFFECTS } else { MAX_PREVIEW }).into_owned()
            }),
            action: action(request).as_deref().map(short),
            flow: request.flow.map(|text| shortened(text, MAX_PREVIEW).into_owned()),
            granted: bounded_grants(request.granted),
            rests_on: short(request.rests_on),
            reason: tool.interface.permission.approval_reason.value.as_deref().map(short),
            source: short(&source),
            fixed: fixed.as_deref().map(short),
            properties: short(&properties),
            asked: Timestamp::now(),
            key: key(request, client),
            until: None,
            run: None,
            approval: request.approval.filter(|approval| is_short(approval)).cloned(),
            answer: None,
        })
    }

    /// Sets the lock and the time until which a process waits.
    pub(super) fn held_by(self, run: Option<String>, until: Timestamp) -> Self {
        Self { run, until: Some(until), ..self }
    }

    /// The process no longer waits: the call waits from now on to be repeated, and an answer covers that repetition alone.
    pub(super) fn release(&mut self) {
        (self.run, self.until, self.asked) = (None, None, Timestamp::now());
        self.answer.iter_mut().for_each(|answer| answer.session = false);
    }

    /// Returns `true` if no one answered in time, or the answer was not used in time. A time in the future counts as passed
    /// unless the clock of another host explains it.
    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        let (since, max) = self.age();
        // A process takes its call back itself.
        let max = if self.until.is_some() { max + MAX_RUN_DELAY } else { max };
        !(-MAX_CLOCK_SKEW..=max).contains(&now.duration_since(since))
    }

    /// Time at which the call is forgotten.
    pub fn expires(&self) -> Timestamp {
        let (since, max) = self.age();
        since.checked_add(max).unwrap_or(Timestamp::MAX)
    }

    /// Start and maximum length of the present state.
    fn age(&self) -> (Timestamp, SignedDuration) {
        match (&self.answer, self.until) {
            (Some(answer), _) => (answer.time, MAX_ANSWER_AGE),
            (None, Some(until)) => (self.asked, until.duration_since(self.asked).min(MAX_WAIT)),
            (None, None) => (self.asked, MAX_WAIT),
        }
    }

    /// State as one word.
    pub fn state(&self) -> &'static str {
        match self.answer.as_ref().map(|answer| answer.allowed) {
            None => "waiting",
            Some(true) => "allowed",
            Some(false) => "denied",
        }
    }

    /// Returns the facts about the call, each with its label, as inert text that may have several lines.
    pub fn rows(&self) -> Vec<(&'static str, String)> {
        let left_out = || format!("{} of the arguments, which are too long", counted(self.left_out, "more character"));
        let lines = |text: &String| text.lines().map(one_line).collect::<Vec<_>>().join("\n");
        let rows = [
            ("Action", self.action.as_deref().map(one_line)),
            ("Client", Some(one_line(&self.client))),
            ("Tool", Some(one_line(&self.tool))),
            ("Source", Some(one_line(&self.source))),
            ("Fixed", self.fixed.as_ref().map(|fixed| one_line(&inert_json(fixed)))),
            ("Changes", self.changes.as_deref().map(difference::shown)),
            ("Arguments", Some(pretty(&inert_json(&self.arguments)))),
            ("Left out", (self.left_out > 0).then(left_out)),
            ("Tool says", self.preview.as_ref().map(lines)),
            ("Properties", Some(one_line(&self.properties))),
            ("Granted", Some(granted_text(&self.granted))),
            ("Flow", self.flow.as_deref().map(one_line)),
            ("Asked by", Some(one_line(&self.rests_on))),
            ("Reason", self.reason.as_deref().map(one_line)),
        ];
        rows.into_iter().filter_map(|(label, text)| Some((label, text?))).collect()
    }

    /// Returns the calls that a permanent approval would cover; `None` if each call requires its own.
    pub fn always_scope(&self) -> Option<String> {
        self.approval.as_ref().map(|approval| format!("{}, {}", scope(approval), reach(approval, &self.client)))
    }

    /// Returns the calls that an approval for the session would cover; `None` if no process waits, or if each call requires its
    /// own approval.
    pub fn session_scope(&self) -> Option<String> {
        let approval = self.approval.as_ref().filter(|_| self.until.is_some())?;
        Some(format!("{} in the session of `{}`", calls(approval), one_line(&self.client)))
    }

    /// Formats everything that a person needs for an answer, for a terminal of `width` columns. Text from outside cannot
    /// imitate a line of the program.
    pub fn sheet(&self, width: usize) -> String {
        let mut sheet = Sheet::empty(width, true);
        sheet.row("Call", &one_line(&self.id));
        for (label, text) in self.rows() {
            match label {
                "Changes" => sheet.lines_row(label, &text),
                _ => sheet.row(label, &text),
            }
        }
        if let Some(scope) = self.session_scope() {
            sheet.row("Session", &format!("`--session` applies to {scope}"));
        }
        if let Some(scope) = self.always_scope() {
            sheet.row("Always", &format!("`--always` applies to {scope}"));
        }
        sheet.row("Asked", &format!("{:.0}", self.asked));
        sheet.row("State", &format!("{} until {:.0}", self.state(), self.expires()));
        sheet.text
    }
}

/// Computes the key of a call: a digest of the owner and its client, the tool with its program and definition, the arguments, the rule and
/// the grants. Each part is preceded by its length, so that no part can pass for another.
pub fn key(request: &ApprovalRequest<'_>, client: &str) -> String {
    let ApprovalRequest { tool, digest: program, definition, arguments, rests_on, granted, owner, .. } = request;
    let arguments = canonical(arguments);
    // Effects that cannot be compared are those of no other call.
    let held = request.effects.map(|held| effects::digest_of(held).unwrap_or(request.invocation.to_owned()));
    // An owner's answer is for no other client, whatever name that one has.
    let owner = owner.map(|owner| format!("+{owner}")).unwrap_or_default();
    let parts = [&owner, client, &tool.name, program, definition, &arguments, rests_on];
    let parts = parts.into_iter().chain(held.as_deref());
    let mut bytes = Vec::new();
    for part in parts.chain(granted.iter().map(String::as_str)) {
        bytes.extend((part.len() as u64).to_be_bytes());
        bytes.extend(part.as_bytes());
    }
    digest(&bytes)
}

/// Sorts the fields of JSON objects, because clients can write them in another order when they repeat a call. A text that
/// parsing would change, such as one with a repeated field or a long number, stays as it is.
fn canonical(text: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(text) else { return text.to_owned() };
    let written = value.to_string();
    if written != text {
        return text.to_owned();
    }
    value.sort_all_objects();
    value.to_string()
}

fn bounded_grants(granted: &[String]) -> Vec<String> {
    let mut bounded: Vec<String> =
        granted.iter().take(MAX_GRANTS).map(|one| shortened(one, MAX_NAME).into_owned()).collect();
    if let Some(more @ 1..) = granted.len().checked_sub(MAX_GRANTS) {
        bounded.push(format!("… and {more} more"));
    }
    bounded
}

fn is_short(approval: &Approval) -> bool {
    serde_json::to_string(approval).is_ok_and(|text| text.len() <= MAX_APPROVAL)
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[cfg(test)]
pub(super) mod tests {
    use toolcrib::policy::ApprovalAnswer;

    use super::*;

    /// Creates a waiting call of a client; calls with one key are the same call.
    pub(in crate::permission::pending) fn call(key: &str, client: &str) -> PendingCall {
        PendingCall {
            id: short_id::random().unwrap(),
            tool: "fs_rm".into(),
            client: client.into(),
            owner: client.into(),
            arguments: r#"{"path":"plan.md"}"#.into(),
            left_out: 0,
            preview: None,
            changes: None,
            action: None,
            flow: None,
            granted: vec!["write:/srv/work".into()],
            rests_on: "ask fs_rm (test)".into(),
            reason: None,
            source: "/srv/tools.json".into(),
            fixed: None,
            properties: "destructive (declared)".into(),
            asked: Timestamp::now(),
            key: key.into(),
            until: None,
            run: None,
            approval: None,
            answer: None,
        }
    }

    #[test]
    fn fields_in_another_order_are_the_same_arguments_and_other_values_are_not() {
        assert_eq!(canonical(r#"{"b":{"d":1,"c":[2]},"a":"x"}"#), r#"{"a":"x","b":{"c":[2],"d":1}}"#);
        for text in [
            r#"{"b":1,"a":1,"a":2}"#,
            r#"{"b":9007199254740993.0,"a":1}"#,
            r#"{"b":1e2,"a":1}"#,
            r#"{"b": 1,"a":1}"#,
            r#"{"b":"\u0061","a":1}"#,
            "{",
            "",
        ] {
            assert_eq!(canonical(text), text, "parsing it would change it");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(canonical(&deep), deep);
    }

    #[test]
    fn a_call_expires_after_its_time_and_if_its_time_is_in_the_future() {
        let (now, second) = (Timestamp::now(), SignedDuration::from_secs(1));
        let future = now + MAX_CLOCK_SKEW + second;
        let mut waiting = call("k", "c");
        for (asked, is_expired) in
            [(now + MAX_CLOCK_SKEW, false), (now - MAX_WAIT, false), (now - MAX_WAIT - second, true), (future, true)]
        {
            waiting.asked = asked;
            assert_eq!(waiting.is_expired(now), is_expired, "{asked}");
        }
        for (time, is_expired) in
            [(now, false), (now - MAX_ANSWER_AGE, false), (now - MAX_ANSWER_AGE - second, true), (future, true)]
        {
            waiting.answer = Some(PendingAnswer { allowed: true, time, reason: None, session: false });
            assert_eq!(waiting.is_expired(now), is_expired, "{time}");
        }
        waiting.asked = Timestamp::MAX;
        waiting.answer = None;
        assert_eq!(waiting.expires(), Timestamp::MAX);
    }

    #[test]
    fn grants_are_bounded_and_the_others_counted() {
        let granted: Vec<String> = (0..=MAX_GRANTS).map(|at| format!("{at}{}", "x".repeat(MAX_NAME))).collect();
        let bounded = bounded_grants(&granted);
        assert_eq!(bounded.len(), MAX_GRANTS + 1);
        assert!(bounded.iter().all(|one| one.chars().count() <= MAX_NAME));
        assert_eq!(bounded[MAX_GRANTS], "… and 1 more");
        assert_eq!(bounded_grants(&granted[..MAX_GRANTS]).len(), MAX_GRANTS);
    }

    #[test]
    fn an_approval_that_is_too_long_is_not_stored() {
        assert!(is_short(&Approval::new("t", "sha256:00", "ask t (test)")));
        assert!(!is_short(&Approval::new("t", "sha256:00", "x".repeat(MAX_APPROVAL))));
    }

    /// Creates the longest call, with characters that JSON writes with most bytes.
    pub(in crate::permission::pending) fn longest() -> PendingCall {
        let text = |length: usize| "\u{1}".repeat(length);
        let mut approval = Approval::new("t", "d", "r");
        while is_short(&approval) {
            approval.granted.push(String::new());
        }
        approval.granted.pop();
        PendingCall {
            tool: text(MAX_TEXT),
            client: text(MAX_NAME),
            owner: text(MAX_NAME),
            arguments: text(MAX_ARGUMENTS),
            left_out: usize::MAX,
            preview: Some(text(MAX_PREVIEW)),
            changes: Some(text(MAX_PREVIEW)),
            flow: Some(text(MAX_PREVIEW)),
            granted: vec![text(MAX_NAME); MAX_GRANTS + 1],
            rests_on: text(MAX_TEXT),
            reason: Some(text(MAX_TEXT)),
            source: text(MAX_TEXT),
            fixed: Some(text(MAX_TEXT)),
            properties: text(MAX_TEXT),
            key: digest(b""),
            approval: Some(approval),
            answer: Some(PendingAnswer {
                allowed: true,
                time: Timestamp::now(),
                reason: Some(text(ApprovalAnswer::MAX_REASON_LEN)),
                session: true,
            }),
            ..call("", "")
        }
    }

    #[test]
    fn nothing_in_a_sheet_imitates_a_line_of_the_program_and_what_is_missing_is_named() {
        let mut forged = call("k", "evil\n     State | allowed");
        forged.arguments = "{\"a\":\"\u{1b}[2J\u{202e}\"".into();
        forged.left_out = 7;
        forged.preview = Some("fine\n     State | denied\u{9b}".into());
        forged.granted = vec!["read:/x\nmeta".into()];
        let sheet = forged.sheet(80);
        assert!(sheet.lines().all(|line| &line[10..13] == " | "), "{sheet}");
        assert!(!sheet.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{sheet}");
        assert_eq!(sheet.lines().filter(|line| line.starts_with("     State | ")).count(), 1, "{sheet}");
        assert!(sheet.contains("  Left out | 7 more characters of the arguments"), "{sheet}");
        assert!(!sheet.contains("--always"), "{sheet}");
        forged.approval = Some(Approval::new("t", "sha256:00", "ask t"));
        assert!(forged.sheet(80).contains("    Always | `--always` applies to every `t` call"));
    }
}
