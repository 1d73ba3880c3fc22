//! Hooks on the way of a call: heard in order, each once, failing closed. EventKind they change is written down and checked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::call::{Behavior, Decision, HookNote, Mutation, Reason, ToolCall};
use crate::error::{Outcome, ToolError};
use crate::hook::{Ended, Hook, Modification, Moment, Proposed, Review, Verdict};
use crate::observe::{EventKind, Hooked};
use crate::policy::Command;
use crate::sandbox::Usage;
use crate::schema::Checked;
use crate::tool::{HookPoint, Tool};

use super::listener::{Around, Payload, Scripted};
use super::ready::Ready;
use super::ticket::Ticket;
use super::{Context, Entry, Memory, Pipeline, answer};

/// Hooks by priority, then in the order in which they were added.
pub(crate) struct Hooks(Vec<Listener>);

/// A hook of the embedder's, or a script.
pub(crate) enum Listener {
    Own(Arc<dyn Hook>),
    Script(Box<Scripted>),
}

/// One of them, wherever it is kept.
#[derive(Clone, Copy)]
enum Hearing<'a> {
    Own(&'a dyn Hook),
    Script(&'a Scripted),
}

/// The longest that all scripts together may take that are asked at one moment of a call.
const MAX_TIME: Duration = Duration::from_secs(30);

/// EventKind hooks said of a call that may go on.
pub(super) struct Heard<'a> {
    /// The hook that said that no question is needed, if one did.
    pub(super) allowed: Option<&'a str>,
    /// The task of another agent that takes the call over, if one does.
    pub(super) delegated: Option<Value>,
}

impl Listener {
    fn priority(&self) -> i32 {
        match self {
            Self::Own(hook) => hook.priority(),
            Self::Script(script) => script.hook.priority,
        }
    }

    fn hearing(&self) -> Hearing<'_> {
        match self {
            Self::Own(hook) => Hearing::Own(hook.as_ref()),
            Self::Script(script) => Hearing::Script(script),
        }
    }
}

impl Hooks {
    pub(crate) fn new(mut hooks: Vec<Listener>) -> Self {
        hooks.sort_by_key(Listener::priority);
        Self(hooks)
    }

    /// All of them. Those that scripts of the run have added come first, by their priority: what they make of a call or an
    /// answer, the others judge.
    fn all<'a>(&'a self, memory: &'a Memory) -> Vec<Hearing<'a>> {
        let mut all: Vec<_> = memory.hooks.iter().collect();
        all.sort_by_key(|script| script.hook.priority);
        all.into_iter().map(Hearing::Script).chain(self.0.iter().map(Listener::hearing)).collect()
    }

    /// Asks the hooks if a script may run the program of a tool with this command. EventKind they would change, they have to refuse
    /// here.
    ///
    /// # Errors
    ///
    /// Which one does not, and why.
    pub(super) async fn admit(
        &self,
        pipeline: &Arc<Pipeline>,
        tool: &Tool,
        command: &Command,
        memory: &Arc<Memory>,
        usage: &Arc<Usage>,
    ) -> Result<(), String> {
        let arguments = &command.arguments;
        let sent = arguments.to_string();
        for hook in self.all(memory) {
            let verdict = match hook {
                Hearing::Own(own) if !own.applies(tool, Moment::Before) => continue,
                Hearing::Own(own) => {
                    let (invocation, call_id) = ("", "");
                    own.before(Proposed { invocation, call_id, tool, model_input: &sent, arguments }).await
                }
                Hearing::Script(script) if !script.applies_to_command(&tool.name, command).await => continue,
                Hearing::Script(script) => {
                    let mut around = Around { within_slot: true, ..Around::new(pipeline, memory, usage) };
                    let payload = Payload { id: "", tool: &tool.name, sent: &sent, arguments };
                    script.before(&mut around, &payload).await
                }
            };
            let name = hook.name();
            match verdict {
                Ok(Verdict::Pass | Verdict::Allow) => {}
                Ok(Verdict::Block(reason)) => return Err(format!("blocked by hook {name:?}: {reason}")),
                Ok(Verdict::Modify(_) | Verdict::Delegate(_)) => {
                    return Err(format!("blocked by hook {name:?}, which tried to change the call"));
                }
                Err(error) => return Err(format!("blocked by hook {name:?}, which failed: {error}")),
            }
        }
        Ok(())
    }

    /// The scripts that sources brought.
    pub(crate) fn of_sources(&self) -> impl Iterator<Item = &Scripted> {
        self.0.iter().filter_map(|listener| match listener {
            Listener::Own(_) => None,
            Listener::Script(script) => Some(script.as_ref()),
        })
    }

    /// Those that are scripts.
    pub(super) fn scripted<'a>(&'a self, memory: &'a Memory) -> Vec<&'a Scripted> {
        let script = |hearing| match hearing {
            Hearing::Own(_) => None,
            Hearing::Script(script) => Some(script),
        };
        self.all(memory).into_iter().filter_map(script).collect()
    }

    /// Hears them about a call.
    pub(super) async fn before<'a>(
        &'a self,
        pipeline: &Arc<Pipeline>,
        entry: Entry<'a>,
        call: &ToolCall,
        checked: &mut Checked,
        context: &Context<'a>,
        ticket: &mut Ticket<'_>,
    ) -> Result<Heard<'a>, ToolError> {
        let Entry { tool, ready, .. } = entry;
        let mut heard = Heard { allowed: None, delegated: None };
        let since = Instant::now();
        for hook in self.all(context.memory) {
            if !hook.is_asked(&HookPoint::ToolPre, &tool.name, &checked.value).await {
                continue;
            }
            let verdict = match hook {
                Hearing::Own(own) if !own.applies(tool, Moment::Before) => continue,
                Hearing::Own(own) => {
                    let proposed = Proposed {
                        invocation: ticket.invocation(),
                        call_id: &call.id,
                        tool,
                        model_input: &call.arguments,
                        arguments: &checked.value,
                    };
                    own.before(proposed).await
                }
                Hearing::Script(script) => {
                    let mut around = Around {
                        until: since + MAX_TIME,
                        depth: context.depth,
                        ..Around::new(pipeline, context.memory, &ticket.usage)
                    };
                    let verdict = script.before(&mut around, &payload(tool, call, &checked.value)).await;
                    let log = around.log;
                    ticket.log(log);
                    verdict
                }
            };
            let name = hook.name();
            let (said, why) = match &verdict {
                Ok(Verdict::Pass) => ("pass", None),
                Ok(Verdict::Allow) => ("allow", None),
                Ok(Verdict::Block(reason)) => ("block", Some(reason.as_str())),
                Ok(Verdict::Modify(change)) => ("modify", change.reason.as_deref()),
                Ok(Verdict::Delegate(_)) => ("delegate", None),
                Err(error) => ("failed", Some(error.as_str())),
            };
            note(ticket, hook, Moment::Before, said, why);
            match verdict {
                Ok(Verdict::Pass) => {}
                Ok(Verdict::Allow) => heard.allowed = hook.may_answer().then_some(name),
                Ok(Verdict::Modify(change)) => {
                    // EventKind was said before was said of other arguments.
                    heard = Heard { allowed: None, delegated: None };
                    modify(name, change, ready, checked, ticket).await?;
                }
                Ok(Verdict::Delegate(task)) => heard.delegated = Some(task),
                Ok(Verdict::Block(reason)) => {
                    ticket.decide(Decision::new(Behavior::Deny, Reason::Hook, name));
                    return Err(refusal(format!("tool blocked: blocked by hook {name:?}: {reason}")));
                }
                Err(error) => {
                    ticket.decide(Decision::new(Behavior::Deny, Reason::HookFailed, name));
                    return Err(refusal(format!("tool blocked: blocked by hook {name:?}, which failed: {error}")));
                }
            }
        }
        // A call has no more time for them.
        ticket.spend(since.elapsed());
        Ok(heard)
    }

    /// Hears them about an answer.
    #[expect(clippy::too_many_arguments, reason = "a call, its answer and what surrounds them")]
    pub(super) async fn after(
        &self,
        pipeline: &Arc<Pipeline>,
        tool: &Tool,
        call: &ToolCall,
        arguments: &Arc<Value>,
        mut answer: Result<String, ToolError>,
        context: &Context<'_>,
        ticket: &mut Ticket<'_>,
    ) -> Result<String, ToolError> {
        let until = Instant::now() + MAX_TIME;
        for hook in self.all(context.memory) {
            if !hook.is_asked(&HookPoint::ToolPost, &tool.name, arguments).await {
                continue;
            }
            let outcome = answer.as_ref().map_or_else(|error| error.outcome, |_| Outcome::Ok);
            let review = match hook {
                Hearing::Own(own) if !own.applies(tool, Moment::After) => continue,
                Hearing::Own(own) => {
                    let invocation = ticket.invocation();
                    let call_id = &call.id;
                    let ended = Ended { invocation, call_id, tool, arguments, outcome, answer: answer.as_deref() };
                    own.after(ended).await
                }
                Hearing::Script(script) => {
                    let payload = payload(tool, call, arguments);
                    let mut around =
                        Around { until, depth: context.depth, ..Around::new(pipeline, context.memory, &ticket.usage) };
                    let review = script.after(&mut around, &payload, outcome, answer.as_deref()).await;
                    let log = around.log;
                    ticket.log(log);
                    review
                }
            };
            let name = hook.name();
            let (said, why) = match &review {
                Ok(Review::Pass) => ("pass", None),
                Ok(Review::Block(reason)) => ("block", Some(reason.as_str())),
                Ok(Review::Replace(_)) => ("replace", None),
                Err(error) => ("failed", Some(error.as_str())),
            };
            note(ticket, hook, Moment::After, said, why);
            match (review, &mut answer) {
                (Ok(Review::Pass), _) => {}
                (Ok(Review::Replace(value)), Ok(answer)) => {
                    *answer = hook.words(&value);
                    ticket.withheld();
                }
                // A failed call stays one, whatever is said about it.
                (Ok(Review::Replace(value)), Err(error)) => error.json = Some(hook.words(&value)),
                (Ok(Review::Block(reason)), _) => {
                    ticket.withheld();
                    return Err(refusal(format!("tool result blocked: blocked by hook {name:?}: {reason}")));
                }
                (Err(error), _) => {
                    let why = format!("tool result blocked: blocked by hook {name:?}, which failed: {error}");
                    ticket.withheld();
                    return Err(refusal(why));
                }
            }
        }
        answer
    }
}

impl<'a> Hearing<'a> {
    fn name(self) -> &'a str {
        match self {
            Self::Own(hook) => hook.name(),
            Self::Script(script) => script.name(),
        }
    }

    /// Returns true where it is asked about this event of this tool, as far as a script says that without running.
    async fn is_asked(self, event: &HookPoint, tool: &str, arguments: &Arc<Value>) -> bool {
        match self {
            Self::Own(_) => true,
            Self::Script(script) => script.applies(event, tool, arguments).await,
        }
    }

    /// Whether it may stand for a person's answer: an embedder's own may, a script, which may be a stranger's, not.
    fn may_answer(self) -> bool {
        matches!(self, Self::Own(_))
    }

    /// An answer in its words. No script speaks for the host.
    fn words(self, value: &Value) -> String {
        match self {
            Self::Own(_) => value.to_string(),
            Self::Script(_) => answer::quoted(value.to_string()),
        }
    }

    /// The digest of its script, where it is one.
    fn digest(self) -> Option<String> {
        match self {
            Self::Own(_) => None,
            Self::Script(script) => script.digest().map(str::to_owned),
        }
    }
}

fn payload<'a>(tool: &'a Tool, call: &'a ToolCall, arguments: &'a Value) -> Payload<'a> {
    Payload { id: &call.id, tool: &tool.name, sent: &call.arguments, arguments }
}

/// Puts other arguments in the place of a call's.
async fn modify(
    hook: &str,
    change: Modification,
    ready: &Ready,
    checked: &mut Checked,
    ticket: &mut Ticket<'_>,
) -> Result<(), ToolError> {
    let Modification { arguments, mutation_source, reason } = change;
    let deny = |ticket: &mut Ticket<'_>, why: String| {
        ticket.decide(Decision::new(Behavior::Deny, Reason::HookFailed, hook));
        Err(refusal(format!("tool blocked: blocked by hook {hook:?}, which failed: {why}")))
    };
    let made = Checked { text: arguments.to_string(), value: Arc::new(arguments) };
    let is_named = match ready.check_changed(&made, ticket).await {
        Ok(is_a_models) => mutation_source.is_some() || is_a_models,
        Err(error) => return deny(ticket, format!("its arguments are wrong: {}", error.message)),
    };
    if !is_named {
        return deny(ticket, "it sets a field that is for the host alone and names no source for it".to_owned());
    }
    let fields = changed(&checked.value, &made.value);
    if !fields.is_empty() {
        ticket.mutated(Mutation { by: hook.to_owned(), mutation_source, fields, reason });
        *checked = made;
    }
    Ok(())
}

/// The names of the arguments that are new, other or gone.
fn changed(before: &Value, after: &Value) -> Vec<String> {
    let names =
        |value: &Value| value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let mut fields = names(before);
    fields.extend(names(after).into_iter().filter(|name| before.get(name).is_none()));
    fields.retain(|name| before.get(name) != after.get(name));
    fields
}

fn note(ticket: &mut Ticket<'_>, hook: Hearing<'_>, moment: Moment, said: &'static str, reason: Option<&str>) {
    let (name, digest) = (hook.name(), hook.digest());
    ticket.tell(EventKind::Hooked(Hooked { hook: name, moment, said, reason }));
    // A script has run, whatever it said.
    if said != "pass" || digest.is_some() {
        ticket.heard(HookNote { hook: name.to_owned(), said, digest });
    }
}

fn refusal(message: String) -> ToolError {
    ToolError::new(Outcome::Denied, message)
}
