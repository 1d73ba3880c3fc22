//! Authorizes a call: its grant first, then the operator's rules, the tool's definition, the hooks and people. Every answer
//! is recorded as a [`Decision`].

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use crate::call::{Behavior, Decision, Denial, Reason, clipped};
use crate::error::{Outcome, ToolError};
use crate::observe::EventKind;
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::stage::ask::{Question, ask_person, denial};
use crate::pipeline::stage::flow::{FlowQuestion, judge_flow};
use crate::pipeline::state::{CallScope, Execution, Pipeline, unless_cancelled};
use crate::policy::{Approval, ApprovalAnswer, Grant, Rule, RuleDecision, Target};
use crate::schema::CheckedArguments;
use crate::tool::{Access, Resource, Tool, Use};

/// Maximum number of files or hosts that one argument names.
const MAX_NAMED: usize = 1024;

/// A call that needs authorization.
pub(crate) struct AuthorizationRequest<'a> {
    pub(crate) execution: &'a Execution<'a>,
    pub(crate) checked: &'a CheckedArguments,
    /// Judgement of the operator's rules; a denied call does not reach this stage.
    pub(crate) judged: RuleDecision,
    /// Preview of the call, if one exists.
    pub(crate) preview: Option<&'a str>,
    /// Name of the hook that allowed the call without a question.
    pub(crate) allowed_by: Option<&'a str>,
}

/// Scope of an answer.
enum Covered {
    /// The call, with all rules that ask about it.
    Call,
    /// The approval in question alone, for this reason.
    Approval(Reason),
}

/// Decides about a call.
///
/// # Errors
///
/// [`Outcome::Denied`], with a message for the model.
pub(crate) async fn authorize(
    pipeline: &Pipeline,
    request: AuthorizationRequest<'_>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<(), ToolError> {
    let AuthorizationRequest { execution: Execution { tool, prepared, .. }, checked, .. } = request;
    recorder.emit(EventKind::Authorizing(&checked.value));
    // The files and hosts of a worker are its own, and it checks them.
    if pipeline.workers_of(tool).is_none() {
        check_resources(tool, &prepared.grant, &checked.value, recorder)?;
    }
    let flows = judge_flow(pipeline, request.execution, recorder)?;
    let explanations: Vec<&str> = flows.iter().map(|question| question.explanation.as_str()).collect();
    let explanation = explanations.join("; ");
    let flow = (!explanation.is_empty()).then_some(explanation.as_str());
    if tool.interface.safety.requires_user_interaction.value {
        // Each call of such a tool needs a person: no rule, hook or earlier approval replaces the answer.
        let question = Decision::new(Behavior::Ask, Reason::Record, "requires_user_interaction");
        Box::pin(await_decisions(pipeline, scope, recorder)).await?;
        Box::pin(ask(pipeline, &request, (question, flow), None, scope, recorder)).await?;
        agree(&flows, recorder);
        return Ok(());
    }
    // With the scope of an approval, and the explanation of the flow.
    let of_rule = |rule: &Arc<Rule>| Decision::new(Behavior::Ask, Reason::Rule, rule.to_string());
    let mut questions: Vec<(Decision, String, Option<&str>)> =
        flows.iter().map(|asked| (of_rule(&asked.rule), asked.scope(), flow)).collect();
    let of_rules: Vec<Decision> = match &request.judged {
        RuleDecision::Allow(rule) if flows.is_empty() => {
            recorder.decide(Decision::new(Behavior::Allow, Reason::Rule, rule.to_string()));
            return Ok(());
        }
        RuleDecision::Allow(_) => Vec::new(),
        RuleDecision::Ask(rules) => {
            let applies =
                |rule: &&Arc<Rule>| rule.applies_where(pipeline.approver.as_ref().is_some_and(|it| it.can_answer()));
            rules.iter().filter(applies).map(of_rule).collect()
        }
        RuleDecision::Deny(_) => Vec::new(),
    };
    let is_allowed = matches!(request.judged, RuleDecision::Allow(_));
    match request.allowed_by {
        Some(hook) if flows.is_empty() => {
            recorder.decide(Decision::new(Behavior::Allow, Reason::Hook, hook));
            return Ok(());
        }
        // No hook knows what was read.
        Some(_) => {}
        None if of_rules.is_empty() && !is_allowed && tool.interface.permission.approval_reason.value.is_some() => {
            let question = Decision::new(Behavior::Ask, Reason::Record, "approval_reason");
            questions.push((question, "approval_reason".to_owned(), None));
        }
        None => questions.extend(of_rules.into_iter().map(|rule| {
            let scope = rule.rests_on.clone().unwrap_or_default();
            (rule, scope, None)
        })),
    }
    let earlier = |approval: &Approval| match pipeline.approved.contains(approval) {
        true => Some(Reason::Always),
        false => scope.memory.approves(approval).then_some(Reason::Session),
    };
    let (mut decision, mut in_order) = (Decision::default(), false);
    for (question, rule, flow) in questions {
        let (digest, granted) = (request.execution.digest().to_owned(), prepared.grant.granted());
        let definition = Some(prepared.definition(tool).to_owned());
        let owner = scope.memory.owner().map(|owner| owner.to_string());
        let approval = Approval { tool: tool.name.clone(), digest, definition, rule, granted, owner };
        let mut reason = earlier(&approval);
        if reason.is_none() && !in_order {
            Box::pin(await_decisions(pipeline, scope, recorder)).await?;
            in_order = true;
            // An answer about an earlier call of the step can cover this one.
            reason = earlier(&approval);
        }
        let rests_on = question.rests_on.clone().unwrap_or_default();
        // A person is asked once about a call, for the first rule without an approval.
        let reason = match reason {
            Some(reason) => reason,
            None => match Box::pin(ask(pipeline, &request, (question, flow), Some(approval), scope, recorder)).await? {
                Covered::Approval(reason) => reason,
                Covered::Call => {
                    agree(&flows, recorder);
                    return Ok(());
                }
            },
        };
        decision = Decision::new(Behavior::Allow, reason, rests_on);
    }
    agree(&flows, recorder);
    recorder.decide(decision);
    Ok(())
}

/// Leaves the ways out open about which somebody was asked.
fn agree(flows: &[FlowQuestion], recorder: &CallRecorder<'_>) {
    flows.iter().for_each(|question| recorder.usage.flow.agree(&question.rule, question.names.clone()));
}

/// Waits until it is decided about the earlier calls of the step, if there is somebody to ask about this one.
async fn await_decisions(
    pipeline: &Pipeline,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<(), ToolError> {
    let (Some(turn), Some(_)) = (scope.turn, &pipeline.approver) else { return Ok(()) };
    let since = Instant::now();
    let decided = unless_cancelled(Some(turn), turn.await_decisions()).await;
    recorder.budget.add_wait(since);
    decided
}

/// Asks a person, with an explanation of the flow. Without an `approval` the answer holds for this call alone.
async fn ask(
    pipeline: &Pipeline,
    request: &AuthorizationRequest<'_>,
    (question, flow): (Decision, Option<&str>),
    approval: Option<Approval>,
    scope: &CallScope<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<Covered, ToolError> {
    let rests_on = question.rests_on.clone().unwrap_or_default();
    let asked =
        Question { decision: &question, preview: request.preview, flow, approval: approval.as_ref(), effects: None };
    let answer = ask_person(pipeline, (request.execution, request.checked), asked, scope, recorder).await?;
    let reason = match (answer, approval) {
        (answer @ (ApprovalAnswer::No | ApprovalAnswer::NoBecause(_)), _) => {
            recorder.decide(Decision::new(Behavior::Deny, Reason::Refused, rests_on));
            return Err(refused(&denial("the user denied this call", answer)));
        }
        (ApprovalAnswer::Earlier { is_permanent }, Some(_)) => {
            return Ok(Covered::Approval(if is_permanent { Reason::Always } else { Reason::Session }));
        }
        // Each call of such a tool needs an answer of its own.
        (ApprovalAnswer::Nobody | ApprovalAnswer::Earlier { .. }, _) => {
            recorder.decide(Decision::new(Behavior::Deny, Reason::Nobody, rests_on));
            return Err(refused("this call requires approval, but no one is available to ask"));
        }
        (answer @ (ApprovalAnswer::Session | ApprovalAnswer::Always), Some(approval)) => {
            scope.memory.approve(approval);
            if answer == ApprovalAnswer::Always { Reason::Always } else { Reason::Session }
        }
        _ => Reason::Once,
    };
    recorder.decide(Decision::new(Behavior::Allow, reason, rests_on));
    Ok(Covered::Call)
}

/// Checks the files and hosts that the arguments name against the grant, by their names alone.
fn check_resources(
    tool: &Tool,
    grant: &Grant,
    arguments: &Value,
    recorder: &mut CallRecorder<'_>,
) -> Result<(), ToolError> {
    let validation = &tool.interface.validation;
    if !validation.deny_before_io.value {
        return Ok(());
    }
    for Resource { field, r#use } in &validation.io_preflight_validation.value {
        let named = match argument(tool, arguments, field) {
            Some(Value::Array(items)) => items.iter().collect(),
            Some(value) => vec![value],
            None => continue,
        };
        if named.len() > MAX_NAMED {
            let message = format!("`{field}` names {} files or hosts, more than the {MAX_NAMED} allowed", named.len());
            return Err(ToolError::new(Outcome::BadArguments, message));
        }
        for name in named.into_iter().filter_map(Value::as_str) {
            let shown = clipped(name);
            let access = match r#use {
                Use::Read => Access::Read,
                Use::Write => Access::Write,
                Use::Connect => match check_host(grant, name, &shown) {
                    Ok(()) => continue,
                    Err((denial, why)) => return Err(denied(recorder, denial, &why)),
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
                false => recorder.path_denial(access, &shown),
            };
            return Err(denied(recorder, denial, &format!("{} `{shown}`: {why}", access.as_str())));
        }
    }
    Ok(())
}

/// Returns the value of a field: the argument, or the default in the schema, which the tool uses instead.
fn argument<'a>(tool: &'a Tool, arguments: &'a Value, field: &str) -> Option<&'a Value> {
    let default = || {
        let name = field.strip_prefix('/').filter(|name| !name.contains('/'))?;
        tool.parameters.as_ref()?.pointer(&format!("/properties/{name}/default"))
    };
    arguments.pointer(field).or_else(default)
}

/// Checks a host that a call names, by itself or in a URL, against the grant.
fn check_host(grant: &Grant, name: &str, shown: &str) -> Result<(), (Denial, String)> {
    let denial = |flag| Denial { capability: format!("connect:{shown}"), flag };
    let network = grant.network();
    match Target::of_url(name) {
        Err(_) if network.is_empty() => Err((denial(None), "no network is granted".to_owned())),
        Err(why) => Err((denial(None), format!("connect `{shown}`: {why}"))),
        Ok(target) if network.reaches(&target) => Ok(()),
        Ok(target) => {
            let flag = network.hints().names_flag(&target, "GET").then(|| format!("--allow-net={target}"));
            let why = if network.is_empty() {
                "no network is granted".to_owned()
            } else {
                format!("`{target}` is not an allowed host")
            };
            Err((denial(flag), why))
        }
    }
}

fn denied(recorder: &mut CallRecorder<'_>, denial: Denial, why: &str) -> ToolError {
    recorder.decide(Decision::new(Behavior::Deny, Reason::Grant, denial.capability.clone()));
    recorder.deny(denial);
    refused(why)
}

fn refused(why: &str) -> ToolError {
    ToolError::new(Outcome::Denied, why)
}
