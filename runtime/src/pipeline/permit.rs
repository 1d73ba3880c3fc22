//! Whether a call may run: what it names against its grant, then the operator's rules, the tool's own record, hooks and
//! people. Every answer is a [`Decision`].

use std::time::Instant;

use serde_json::Value;

use crate::call::{Behavior, Decision, Denial, Reason};
use crate::error::{Outcome, ToolError};
use crate::observe::What;
use crate::policy::{Answer, Approval, Grant, Question};
use crate::schema::Checked;
use crate::tool::{Access, Resource, Tool, Use};

use super::ready::Ready;
use super::ticket::Ticket;
use super::{Context, Pipeline, unless_cancelled};

/// What the pipeline knows of a call when it is judged.
pub(super) struct Case<'a> {
    pub(super) tool: &'a Tool,
    pub(super) ready: &'a Ready,
    pub(super) checked: &'a Checked,
    pub(super) digest: &'a str,
    /// The hook that said that no question is needed.
    pub(super) hook: Option<&'a str>,
}

impl Pipeline {
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
        ticket.tell(What::Judging(&checked.value));
        let judged = self.rules.judge(tool, &checked.value);
        if let Some((Behavior::Deny, rule)) = judged {
            ticket.decide(Decision::new(Behavior::Deny, Reason::Rule, rule.to_string()));
            return Err(refused("refused by a rule of the operator's"));
        }
        preflight(tool, &ready.grant, &checked.value, ticket)?;
        let permission = &tool.interface.permission;
        let question = match judged {
            Some((Behavior::Allow, rule)) => {
                ticket.decide(Decision::new(Behavior::Allow, Reason::Rule, rule.to_string()));
                return Ok(());
            }
            Some((_, rule)) => Decision::new(Behavior::Ask, Reason::Rule, rule.to_string()),
            None if tool.interface.safety.requires_user_interaction.value => {
                Decision::new(Behavior::Ask, Reason::Record, "requires_user_interaction")
            }
            None if permission.approval_reason.value.is_some() => {
                Decision::new(Behavior::Ask, Reason::Record, "approval_reason")
            }
            None => {
                ticket.decide(match hook {
                    Some(hook) => Decision::new(Behavior::Allow, Reason::Hook, hook),
                    None => Decision::default(),
                });
                return Ok(());
            }
        };
        if let Some(hook) = hook {
            ticket.decide(Decision::new(Behavior::Allow, Reason::Hook, hook));
            return Ok(());
        }
        self.ask(case, question, context, ticket).await
    }

    /// Asks a person, unless one agreed before.
    async fn ask(
        &self,
        case: Case<'_>,
        question: Decision,
        context: &Context<'_>,
        ticket: &mut Ticket<'_>,
    ) -> Result<(), ToolError> {
        let Case { tool, ready, checked, digest, .. } = case;
        let rests_on = question.rests_on.clone().unwrap_or_default();
        let approval = Approval { tool: tool.name.clone(), digest: digest.to_owned(), rule: rests_on.clone() };
        let known = match (self.approved.contains(&approval), context.memory.approves(&approval)) {
            (true, _) => Some(Reason::Always),
            (_, true) => Some(Reason::Session),
            _ => None,
        };
        if let Some(reason) = known {
            ticket.decide(Decision::new(Behavior::Allow, reason, rests_on));
            return Ok(());
        }
        let answer = match &self.approver {
            None => Answer::Nobody,
            Some(approver) => {
                ticket.tell(What::Asking(&question));
                let granted = ready.grant.granted();
                let (invocation, since) = (ticket.invocation().to_owned(), Instant::now());
                let asked = approver.ask(Question {
                    invocation: &invocation,
                    tool,
                    arguments: &checked.text,
                    granted: &granted,
                    rests_on: &rests_on,
                    approval: &approval,
                });
                let answer = unless_cancelled(context.turn, asked).await;
                ticket.waited(since);
                answer?
            }
        };
        let allow = |reason| Decision::new(Behavior::Allow, reason, rests_on.clone());
        match answer {
            Answer::Once => ticket.decide(allow(Reason::Once)),
            Answer::Session | Answer::Always => {
                context.memory.approve(approval.clone());
                ticket.decide(allow(if answer == Answer::Always { Reason::Always } else { Reason::Session }));
            }
            Answer::No => {
                ticket.decide(Decision::new(Behavior::Deny, Reason::Refused, rests_on));
                return Err(refused("refused by a person who was asked"));
            }
            Answer::Nobody => {
                ticket.decide(Decision::new(Behavior::Deny, Reason::Nobody, rests_on));
                return Err(refused("refused: a person has to agree to this call, and there is nobody to ask"));
            }
        }
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
        for name in named.into_iter().filter_map(Value::as_str) {
            let access = match r#use {
                Use::Read => Access::Read,
                Use::Write => Access::Write,
                Use::Connect => {
                    let denial = Denial { capability: format!("connect:{}", super::clip(name)), flag: None };
                    return Err(outside(ticket, denial, "no network is granted"));
                }
            };
            let why = match grant.reaches(name, access) {
                Ok(()) => continue,
                Err(why) => why,
            };
            let denial = match grant.folders().is_empty() {
                true => Denial {
                    capability: format!("{}:{}", access.as_str(), super::clip(name)),
                    flag: Some(format!("--allow-{}=DIR", access.as_str())),
                },
                false => ticket.denial(access, name),
            };
            return Err(outside(ticket, denial, &format!("{} `{}`: {why}", access.as_str(), super::clip(name))));
        }
    }
    Ok(())
}

fn outside(ticket: &mut Ticket<'_>, denial: Denial, why: &str) -> ToolError {
    ticket.decide(Decision::new(Behavior::Deny, Reason::Grant, denial.capability.clone()));
    ticket.denied(denial);
    refused(why)
}

fn refused(why: &str) -> ToolError {
    ToolError::new(Outcome::Denied, why)
}
