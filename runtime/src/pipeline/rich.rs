//! Rich tools on the way of a call: what they are asked besides, from the check of their arguments to the words for their
//! answer. Only the call itself, and the preparing before it, have the tool's grant; both come after everybody has agreed.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::call::{Payload, ToolCall};
use crate::error::{Outcome, ToolError};
use crate::observe::EventKind;
use crate::sandbox::{Answer, Asked, Carried, Failure, Invocation, Presentation, Program, Told, Usage};
use crate::schema::{self, Checked};
use crate::tool::{Body, Limits, Rich, Tool};

use super::run::{Given, Work};
use super::surroundings::{self, Standing};
use super::ticket::{Said, Ticket};
use super::{Context, Pipeline, parts, secret, unless_cancelled};

/// How long a tool may take to say what a call is about to do.
const PREVIEW: Duration = Duration::from_secs(1);
/// The most characters of that.
const MAX_PREVIEW_LEN: usize = 2000;
/// The most characters of a line for people.
const MAX_LINE_LEN: usize = 1000;

/// A call in the words of the contract, but for what it carries.
pub(super) struct Asking {
    id: String,
    name: Option<String>,
    format: Option<String>,
    metadata: String,
    context: String,
}

impl Asking {
    /// Of a call of a tool.
    pub(super) fn of(
        pipeline: &Pipeline,
        tool: &Tool,
        call: &ToolCall,
        context: &Context<'_>,
        ticket: &mut Ticket<'_>,
    ) -> Self {
        let standing = Standing {
            tool: &tool.name,
            invocation: ticket.invocation(),
            depth: context.depth,
            parent: context.parent.map(|parent| parent.invocation),
        };
        let (context, warnings) = pipeline.surroundings.of(call, &standing);
        warnings.into_iter().for_each(|warning| ticket.warn(warning));
        let (metadata, too_much) = surroundings::metadata(call);
        too_much.into_iter().for_each(|warning| ticket.warn(warning));
        let is_text = call.payload == Payload::Text;
        Self {
            id: super::clip(&call.id),
            name: Some(super::clip(&call.name)).filter(|name| !name.is_empty()),
            format: call.format.as_deref().map(super::clip).or_else(|| (!is_text).then(|| "json".to_owned())),
            metadata,
            context,
        }
    }

    /// The call with what it carries.
    pub(super) fn asked<'a>(&'a self, rich: &'a Rich, payload: Carried<'a>, prepared: Option<&'a str>) -> Asked<'a> {
        let Self { id, name, format, metadata, context } = self;
        let (name, format) = (name.as_deref(), format.as_deref());
        Asked { id, tool: &rich.tool, name, payload, format, metadata, context, prepared }
    }
}

/// EventKind a call carries to its tool: the text of the one field, where the tool takes text.
pub(super) fn carried<'a>(tool: &Tool, checked: &'a Checked) -> Carried<'a> {
    let text = tool.text.as_ref().and_then(|text| checked.value.get(&text.field)?.as_str());
    text.map_or(Carried::Object(&checked.text), Carried::Text)
}

/// A rich tool that is to be asked something.
#[derive(Clone, Copy)]
pub(super) struct Asks<'p> {
    pub(super) program: &'p Arc<Program>,
    pub(super) rich: &'p Rich,
    pub(super) asking: &'p Asking,
}

impl Pipeline {
    /// EventKind a call is about to do, in the tool's own words or else in its record's.
    pub(super) async fn preview(
        &self,
        work: &Work<'_>,
        checked: &Checked,
        context: &Context<'_>,
        ticket: &mut Ticket<'_>,
    ) -> Option<String> {
        if !ticket.is_watched() && self.approver.is_none() {
            return None;
        }
        let asks = work.asks().filter(|asks| asks.rich.says.preview);
        let own = match asks {
            None => None,
            Some(Asks { program, rich, asking }) => {
                let since = Instant::now();
                let prepared = context.memory.prepared(&self.prepared_key(work.tool, rich, program));
                let asked = asking.asked(rich, carried(work.tool, checked), prepared.as_deref());
                let limits = Limits { deadline: work.ready.limits.deadline.min(PREVIEW), ..work.ready.limits };
                let usage = Arc::new(Usage::default());
                let said = match self.slots(work.ready, &limits, context.depth).await {
                    Ok(_slots) => self.sandbox.preview_rich(program, asked, &limits, &usage).await,
                    Err(busy) => Err(busy),
                };
                ticket.waited(since);
                said.unwrap_or_else(|error| {
                    ticket.log(format!("preview: {}\n", error.message));
                    None
                })
            }
        };
        let said = own.filter(|said| !said.trim().is_empty()).or_else(|| ticket.recorded_preview());
        let said: String = secret::masked(self.secrets.as_ref(), said?).chars().take(MAX_PREVIEW_LEN).collect();
        ticket.tell(EventKind::Preview(&said));
        Some(said)
    }

    /// Runs a rich tool. The inner result is the tool's own.
    pub(super) async fn rich(
        self: &Arc<Self>,
        work: &Work<'_>,
        Asks { program, rich, asking }: Asks<'_>,
        given: Given<'_>,
        context: &Context<'_>,
        ticket: &mut Ticket<'_>,
    ) -> Result<Result<Option<String>, ToolError>, ToolError> {
        let Given { checked, credentials, limits } = given;
        let (attendant, mut receiver) = self.attendant(work.ready, program, context, ticket);
        let provided = self.provided(work, program, context);
        let granted = |limits| Invocation {
            argv: &[],
            stdin: Bytes::new(),
            grant: &work.ready.grant,
            credentials,
            limits,
            provided: provided.clone(),
        };
        let prepared = if rich.says.prepare {
            let since = Instant::now();
            // A call of no session prepares for itself.
            let cell = match context.memory.is_open() {
                true => Arc::default(),
                false => context.memory.preparing(self.prepared_key(work.tool, rich, program)),
            };
            let (surroundings, usage) = (self.surroundings.of_tool(&work.tool.name), Usage::within(&ticket.usage));
            let notes = Mutex::new(Vec::new());
            let make = cell.get_or_try_init(|| async {
                let (call, given) = (granted(&work.ready.limits), (rich.tool.as_str(), surroundings.as_str()));
                let told = self.sandbox.prepare_rich(program, given, call, attendant.clone(), &usage).await;
                notes.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&told.log);
                prepared(told)
            });
            // Somebody else may be preparing, and fail.
            let made = tokio::time::timeout(work.ready.limits.deadline, make);
            let made = showing(&mut receiver, ticket, unless_cancelled(context.turn, made)).await;
            // It has a time of its own.
            ticket.waited(since);
            let notes = ticket.text(notes.into_inner().unwrap_or_else(PoisonError::into_inner));
            ticket.log(notes);
            secret::refuse_leak(ticket)?;
            let late = |_| ToolError::new(Outcome::Deadline, "tool timed out while it was prepared");
            Some(made?.map_err(late)??.clone())
        } else {
            None
        };
        let asked = asking.asked(rich, carried(work.tool, checked), prepared.as_deref());
        let (usage, since) = (ticket.usage.clone(), Instant::now());
        let run = self.sandbox.run_rich(program, asked, granted(limits), attendant, &usage);
        let told = showing(&mut receiver, ticket, unless_cancelled(context.turn, run)).await?;
        let Told { ended, log } = told;
        let log = ticket.text(log);
        ticket.log(log);
        secret::refuse_leak(ticket)?;
        // EventKind fails right after a request failed, fails for that reason.
        let ended = ended.map_err(|error| ticket.usage.ledger().blame(error))?;
        let bytes = ticket.usage.stdout.load(Relaxed);
        ticket.tell(EventKind::Progress { bytes });
        if let Some(turn) = context.turn {
            turn.spend(usize::try_from(bytes).unwrap_or(usize::MAX))?;
        }
        let refused = !ticket.usage.refusals().is_empty();
        let presentation = match rich.says.present {
            true => {
                let left = limits.deadline.saturating_sub(since.elapsed());
                let used = ticket.usage.fuel.load(Relaxed);
                let fuel = limits.fuel.map(|fuel| fuel.saturating_sub(used));
                let limits = Limits { deadline: left, fuel, ..*limits };
                let told = self.sandbox.present_rich(program, (asked, ended.as_ref()), &limits, &usage);
                // EventKind the call did stands, whatever becomes of the words for it: then its own are told.
                unless_cancelled(context.turn, told)
                    .await?
                    .map_err(|error| {
                        ticket.log(format!("present: {}\n", error.message));
                    })
                    .ok()
            }
            false => None,
        };
        // EventKind fails after a refusal, fails for that reason.
        let said = self.said(ended, presentation, ticket)?;
        Ok(said.map_err(|error| match refused {
            true => ToolError { outcome: Outcome::Denied, ..error },
            false => error,
        }))
    }

    /// Maps what a tool said, and keeps what is for people with its ticket.
    fn said(
        &self,
        ended: Result<Answer, Failure>,
        presentation: Option<Presentation>,
        ticket: &mut Ticket<'_>,
    ) -> Result<Result<Option<String>, ToolError>, ToolError> {
        let (content, display, summary, transcript) = match presentation {
            None => (None, None, None, None),
            Some(Presentation { content, display, summary, transcript }) => {
                (content, Some(display), summary, transcript)
            }
        };
        let one_line = |text: String| text.chars().take(MAX_LINE_LEN).collect::<String>();
        let mut said = Said { summary: summary.map(one_line), transcript: transcript.map(one_line), ..Said::default() };
        let line = match ended {
            Ok(answer) => {
                said.shown = parts::display(display.unwrap_or(answer.display))?;
                let parts::Told { line, form, media } = parts::told(content.unwrap_or(answer.content))?;
                (said.form, said.media) = (form, media);
                Ok(line)
            }
            Err(failure) => {
                said.shown = parts::display(display.unwrap_or_default())?;
                let words = content.map(parts::told).transpose()?.and_then(|told| told.line);
                let words = words.map(|line| serde_json::from_str::<String>(&line).unwrap_or(line));
                Err(parts::failed(failure, words))
            }
        };
        secret::guard_parts(self.secrets.as_ref(), &mut said)?;
        ticket.said(said);
        Ok(line)
    }

    /// Under what a session keeps what a tool has prepared: the component, the tool, whose grant it was prepared with, and what the
    /// operator set for it.
    pub(super) fn prepared_key(&self, tool: &Tool, rich: &Rich, program: &Program) -> String {
        let config = self.surroundings.config(&tool.name);
        format!("{}\0{}\0{}\0{config}", program.digest, tool.name, rich.tool)
    }
}

/// EventKind a tool has prepared.
fn prepared(told: Told<String>) -> Result<Arc<str>, ToolError> {
    let unprepared = |why: &str| format!("the tool could not be prepared: {why}");
    match told.ended {
        Err(error) => Err(ToolError::new(error.outcome, unprepared(&error.message))),
        Ok(Err(failure)) => {
            let error = parts::failed(failure, None);
            Err(ToolError::new(error.outcome, unprepared(&error.message)))
        }
        Ok(Ok(prepared)) => match schema::parse(&prepared) {
            Ok(_) => Ok(prepared.into()),
            Err(error) => {
                Err(ToolError::new(Outcome::BadResult, unprepared(&format!("it did not return JSON: {error}"))))
            }
        },
    }
}

/// The end of `work`, with the parts that are shown meanwhile told in their order. EventKind comes after the end is told to
/// nobody.
pub(super) async fn showing<T>(
    receiver: &mut mpsc::Receiver<crate::call::Part>,
    ticket: &mut Ticket<'_>,
    work: impl Future<Output = Result<T, ToolError>>,
) -> Result<T, ToolError> {
    let mut work = std::pin::pin!(work);
    let end = loop {
        tokio::select! {
            biased;
            Some(part) = receiver.recv() => ticket.part(part),
            end = &mut work => break end,
        }
    };
    while let Ok(part) = receiver.try_recv() {
        ticket.part(part);
    }
    end
}

impl<'p> Work<'p> {
    /// The rich tool that does the work, where one does.
    pub(super) fn asks(&self) -> Option<Asks<'_>> {
        match (&self.code, &self.tool.body) {
            (super::run::Code::Rich(program, asking), Body::Rich(rich)) => Some(Asks { program, rich, asking }),
            _ => None,
        }
    }
}
