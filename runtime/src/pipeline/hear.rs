//! Hooks on the way of a call: heard in order, each once, failing closed. What they change is written down and checked.

use std::sync::Arc;

use serde_json::Value;

use crate::call::{Behavior, Decision, HookNote, Mutation, Reason, ToolCall};
use crate::error::{Outcome, ToolError};
use crate::hook::{Ended, Hook, Modification, Moment, Proposed, Review, Verdict};
use crate::observe::{Hooked, What};
use crate::schema::Checked;
use crate::tool::Tool;

use super::ready::Ready;
use super::ticket::Ticket;

/// Hooks by priority, then in the order in which they were added.
pub(crate) struct Hooks(Vec<Arc<dyn Hook>>);

impl Hooks {
    pub(crate) fn new(mut hooks: Vec<Arc<dyn Hook>>) -> Self {
        hooks.sort_by_key(|hook| hook.priority());
        Self(hooks)
    }

    fn heard<'a>(&'a self, tool: &'a Tool, moment: Moment) -> impl Iterator<Item = &'a dyn Hook> {
        self.0.iter().map(AsRef::as_ref).filter(move |hook| hook.applies(tool, moment))
    }

    /// Hears them about a call. Returns the hook that said that no question is needed, if one did.
    pub(super) async fn before<'a>(
        &'a self,
        tool: &'a Tool,
        call: &ToolCall,
        ready: &Ready,
        checked: &mut Checked,
        ticket: &mut Ticket<'_>,
    ) -> Result<Option<&'a str>, ToolError> {
        let mut allowed = None;
        for hook in self.heard(tool, Moment::Before) {
            let proposed = Proposed {
                invocation: ticket.invocation(),
                call_id: &call.id,
                tool,
                model_input: &call.arguments,
                arguments: &checked.value,
            };
            let verdict = hook.before(proposed).await;
            let (said, why) = match &verdict {
                Ok(Verdict::Pass) => ("pass", None),
                Ok(Verdict::Allow) => ("allow", None),
                Ok(Verdict::Block(reason)) => ("block", Some(reason.as_str())),
                Ok(Verdict::Modify(change)) => ("modify", change.reason.as_deref()),
                Err(error) => ("failed", Some(error.as_str())),
            };
            note(ticket, hook, Moment::Before, said, why);
            match verdict {
                Ok(Verdict::Pass) => {}
                Ok(Verdict::Allow) => allowed = Some(hook.name()),
                Ok(Verdict::Modify(change)) => {
                    // What was said before was said of other arguments.
                    allowed = None;
                    modify(hook.name(), change, ready, checked, ticket).await?;
                }
                Ok(Verdict::Block(reason)) => {
                    ticket.decide(Decision::new(Behavior::Deny, Reason::Hook, hook.name()));
                    return Err(refusal(format!("blocked by hook {:?}: {reason}", hook.name())));
                }
                Err(error) => {
                    ticket.decide(Decision::new(Behavior::Deny, Reason::HookFailed, hook.name()));
                    return Err(refusal(format!("blocked by hook {:?}, which failed: {error}", hook.name())));
                }
            }
        }
        Ok(allowed)
    }

    /// Hears them about an answer.
    pub(super) async fn after(
        &self,
        tool: &Tool,
        call: &ToolCall,
        arguments: &Value,
        mut answer: Result<String, ToolError>,
        ticket: &mut Ticket<'_>,
    ) -> Result<String, ToolError> {
        for hook in self.heard(tool, Moment::After) {
            let ended = Ended {
                invocation: ticket.invocation(),
                call_id: &call.id,
                tool,
                arguments,
                outcome: answer.as_ref().map_or_else(|error| error.outcome, |_| Outcome::Ok),
                answer: answer.as_deref(),
            };
            let review = hook.after(ended).await;
            let (said, why) = match &review {
                Ok(Review::Pass) => ("pass", None),
                Ok(Review::Block(reason)) => ("block", Some(reason.as_str())),
                Ok(Review::Replace(_)) => ("replace", None),
                Err(error) => ("failed", Some(error.as_str())),
            };
            note(ticket, hook, Moment::After, said, why);
            match (review, &mut answer) {
                (Ok(Review::Pass), _) => {}
                (Ok(Review::Replace(value)), Ok(answer)) => *answer = value.to_string(),
                // A failed call stays one, whatever is said about it.
                (Ok(Review::Replace(value)), Err(error)) => error.json = Some(value.to_string()),
                (Ok(Review::Block(reason)), _) => {
                    return Err(refusal(format!("the answer is withheld by hook {:?}: {reason}", hook.name())));
                }
                (Err(error), _) => {
                    let message = format!("the answer is withheld by hook {:?}, which failed: {error}", hook.name());
                    return Err(refusal(message));
                }
            }
        }
        answer
    }
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
        Err(refusal(format!("blocked by hook {hook:?}, which failed: {why}")))
    };
    let text = arguments.to_string();
    let (value, named) = (arguments.clone(), mutation_source.is_some());
    let judged = ready.judged(&text, move |input| {
        input.recheck(&value, true)?;
        Ok(named || input.could_come_from_a_model(&value))
    });
    let is_named = match judged.await {
        Ok(is_named) => is_named,
        Err(error) => return deny(ticket, format!("its arguments are wrong: {}", error.message)),
    };
    if !is_named {
        return deny(ticket, "it sets a field that is for the host alone and names no source for it".to_owned());
    }
    let fields = changed(&checked.value, &arguments);
    if !fields.is_empty() {
        ticket.mutated(Mutation { by: hook.to_owned(), mutation_source, fields, reason });
        *checked = Checked { text, value: arguments };
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

fn note(ticket: &mut Ticket<'_>, hook: &dyn Hook, moment: Moment, said: &'static str, reason: Option<&str>) {
    ticket.tell(What::Hooked(Hooked { hook: hook.name(), moment, said, reason }));
    if said != "pass" {
        ticket.heard(HookNote { hook: hook.name().to_owned(), said });
    }
}

fn refusal(message: String) -> ToolError {
    ToolError::new(Outcome::Denied, message)
}
