//! Whether a call may run: what it names against its grant, then the operator's rules, the tool's own record, hooks and
//! people. Every answer is a [`Decision`].

use std::time::Instant;

use serde_json::Value;

use crate::call::{Behavior, Decision, Denial, Reason};
use crate::error::{Outcome, ToolError};
use crate::observe::EventKind;
use crate::policy::{Approval, ApprovalAnswer, ApprovalRequest, Grant, Judged, Target};
use crate::schema::Checked;
use crate::tool::{Access, Resource, Tool, Use};

use super::ready::{Ready, at_once};
use super::ticket::Ticket;
use super::{Context, Pipeline, unless_cancelled};

/// The most files or hosts that one argument names.
const MAX_NAMED: usize = 1024;

/// EventKind the pipeline knows of a call when it is judged.
pub(super) struct Case<'a> {
    pub(super) tool: &'a Tool,
    pub(super) ready: &'a Ready,
    pub(super) checked: &'a Checked,
    pub(super) digest: &'a str,
    /// EventKind it is about to do, where that was asked for.
    pub(super) preview: Option<&'a str>,
    /// The hook that said that no question is needed.
    pub(super) hook: Option<&'a str>,
}

impl Pipeline {
    /// Holds a call against the rules, beside the calls where its arguments are large.
    ///
    /// # Errors
    ///
    /// [`Outcome::Deadline`] where that takes longer than the call may.
    pub(super) async fn judge(
        &self,
        tool: &Tool,
        ready: &Ready,
        checked: &Checked,
        ticket: &mut Ticket<'_>,
    ) -> Result<Judged, ToolError> {
        if let Some(judged) = at_once(checked.text.len(), || self.rules.judge(tool, &ready.grant, &checked.value)) {
            return Ok(judged);
        }
        let (rules, tool) = (self.rules.clone(), tool.clone());
        let (grant, value) = (ready.grant.clone(), checked.value.clone());
        ready.in_time(ticket, move || rules.judge(&tool, &grant, &value)).await
    }

    /// Refuses a call that a rule denies.
    ///
    /// # Errors
    ///
    /// [`Outcome::Denied`], worded for the model.
    pub(super) async fn refuse_denied(
        &self,
        tool: &Tool,
        ready: &Ready,
        checked: &Checked,
        ticket: &mut Ticket<'_>,
    ) -> Result<Judged, ToolError> {
        match self.judge(tool, ready, checked, ticket).await? {
            Judged::Deny(rule) => {
                ticket.decide(Decision::new(Behavior::Deny, Reason::Rule, rule.to_string()));
                Err(refused("denied by an operator rule"))
            }
            judged => Ok(judged),
        }
    }

    /// Decides about a call.
    ///
    /// # Errors
    ///
    /// [`Outcome::Denied`], worded for the model.
    pub(super) async fn permit(
        &self,
        case: Case<'_>,
        context: &Context<'_>,
        ticket: &mut Ticket<'_>,
    ) -> Result<(), ToolError> {
        let Case { tool, ready, checked, hook, .. } = case;
        ticket.tell(EventKind::Judging(&checked.value));
        let judged = self.refuse_denied(tool, ready, checked, ticket).await?;
        preflight(tool, &ready.grant, &checked.value, ticket)?;
        if tool.interface.safety.requires_user_interaction.value {
            // Each call of it needs a person: no rule, no hook and no earlier answer stands for one.
            let question = Decision::new(Behavior::Ask, Reason::Record, "requires_user_interaction");
            return self.ask(&case, question, None, context, ticket).await;
        }
        let mut questions: Vec<Decision> = match judged {
            Judged::Allow(rule) => {
                ticket.decide(Decision::new(Behavior::Allow, Reason::Rule, rule.to_string()));
                return Ok(());
            }
            Judged::Ask(rules) => {
                rules.iter().map(|rule| Decision::new(Behavior::Ask, Reason::Rule, rule.to_string())).collect()
            }
            Judged::Deny(_) => Vec::new(),
        };
        if questions.is_empty() && tool.interface.permission.approval_reason.value.is_some() {
            questions.push(Decision::new(Behavior::Ask, Reason::Record, "approval_reason"));
        }
        if let Some(hook) = hook {
            ticket.decide(Decision::new(Behavior::Allow, Reason::Hook, hook));
            return Ok(());
        }
        let mut agreed = Decision::default();
        for question in questions {
            let rule = question.rests_on.clone().unwrap_or_default();
            let (digest, granted) = (case.digest.to_owned(), ready.grant.granted());
            let definition = Some(ready.definition(tool).to_owned());
            let approval = Approval { tool: tool.name.clone(), digest, definition, rule, granted };
            let reason = match (self.approved.contains(&approval), context.memory.approves(&approval)) {
                (true, _) => Reason::Always,
                (_, true) => Reason::Session,
                // A person is asked once about a call, by the first rule to which nobody agreed yet.
                _ => return self.ask(&case, question, Some(approval), context, ticket).await,
            };
            agreed = Decision::new(Behavior::Allow, reason, approval.rule);
        }
        ticket.decide(agreed);
        Ok(())
    }

    /// Asks a person. Without an approval they can agree to this call alone.
    async fn ask(
        &self,
        case: &Case<'_>,
        question: Decision,
        approval: Option<Approval>,
        context: &Context<'_>,
        ticket: &mut Ticket<'_>,
    ) -> Result<(), ToolError> {
        let Case { tool, ready, checked, .. } = *case;
        let rests_on = question.rests_on.clone().unwrap_or_default();
        let answer = match &self.approver {
            None => ApprovalAnswer::Nobody,
            Some(approver) => {
                ticket.tell(EventKind::Asking(&question));
                let granted = ready.grant.granted();
                let (invocation, since) = (ticket.invocation().to_owned(), Instant::now());
                let asked = approver.ask(ApprovalRequest {
                    invocation: &invocation,
                    tool,
                    arguments: &checked.text,
                    preview: case.preview,
                    granted: &granted,
                    rests_on: &rests_on,
                    approval: approval.as_ref(),
                });
                let answer = unless_cancelled(context.turn, asked).await;
                ticket.waited(since);
                answer?
            }
        };
        let reason = match (answer, approval) {
            (ApprovalAnswer::No, _) => {
                ticket.decide(Decision::new(Behavior::Deny, Reason::Refused, rests_on));
                return Err(refused("the user denied this call"));
            }
            (ApprovalAnswer::Nobody, _) => {
                ticket.decide(Decision::new(Behavior::Deny, Reason::Nobody, rests_on));
                return Err(refused("this call requires approval, but no terminal is available to ask"));
            }
            (ApprovalAnswer::Session | ApprovalAnswer::Always, Some(approval)) => {
                context.memory.approve(approval);
                if answer == ApprovalAnswer::Always { Reason::Always } else { Reason::Session }
            }
            _ => Reason::Once,
        };
        ticket.decide(Decision::new(Behavior::Allow, reason, rests_on));
        Ok(())
    }
}

/// Holds the files and hosts that a call names against its grant, by their names alone.
fn preflight(tool: &Tool, grant: &Grant, arguments: &Value, ticket: &mut Ticket<'_>) -> Result<(), ToolError> {
    let validation = &tool.interface.validation;
    if !validation.deny_before_io.value {
        return Ok(());
    }
    for Resource { field, r#use } in &validation.io_preflight_validation.value {
        let named = match arguments.pointer(field) {
            Some(Value::Array(items)) => items.iter().collect(),
            Some(value) => vec![value],
            None => continue,
        };
        if named.len() > MAX_NAMED {
            let message = format!("`{field}` names {} files or hosts, more than the {MAX_NAMED} allowed", named.len());
            return Err(ToolError::new(Outcome::BadArguments, message));
        }
        for name in named.into_iter().filter_map(Value::as_str) {
            let shown = super::clip(name);
            let access = match r#use {
                Use::Read => Access::Read,
                Use::Write => Access::Write,
                Use::Connect => match reach(grant, name, &shown) {
                    Ok(()) => continue,
                    Err((denial, why)) => return Err(outside(ticket, denial, &why)),
                },
            };
            let why = match grant.reaches(name, access) {
                Ok(()) => continue,
                Err(why) => why,
            };
            let denial = match grant.folders().is_empty() {
                true => Denial {
                    capability: format!("{}:{shown}", access.as_str()),
                    flag: Some(format!("--allow-{}=DIR", access.as_str())),
                },
                false => ticket.denial(access, &shown),
            };
            return Err(outside(ticket, denial, &format!("{} `{shown}`: {why}", access.as_str())));
        }
    }
    Ok(())
}

/// Whether a host that a call names, by itself or by a URL, lies in what is granted.
fn reach(grant: &Grant, name: &str, shown: &str) -> Result<(), (Denial, String)> {
    let named = |flag| Denial { capability: format!("connect:{shown}"), flag };
    let network = grant.network();
    match Target::of_url(name) {
        Err(_) if network.is_empty() => Err((named(None), "no network is granted".to_owned())),
        Err(why) => Err((named(None), format!("connect `{shown}`: {why}"))),
        Ok(target) if network.reaches(&target) => Ok(()),
        Ok(target) => {
            let flag = network.prospect().hints(&target, "GET").then(|| format!("--allow-net={target}"));
            let why = if network.is_empty() {
                "no network is granted".to_owned()
            } else {
                format!("connect `{shown}`: permission denied by the grant")
            };
            Err((named(flag), why))
        }
    }
}

fn outside(ticket: &mut Ticket<'_>, denial: Denial, why: &str) -> ToolError {
    ticket.decide(Decision::new(Behavior::Deny, Reason::Grant, denial.capability.clone()));
    ticket.denied(denial);
    refused(why)
}

fn refused(why: &str) -> ToolError {
    ToolError::new(Outcome::Denied, why)
}
