//! Flow through a call: it begins with the label of the input, and its own label goes to the caller.

use std::sync::{Arc, PoisonError};

use crate::call::{Behavior, Decision, Reason, ToolCall};
use crate::error::{Outcome, ToolError};
use crate::flow::{Label, Source, Way, Ways};
use crate::pipeline::recorder::CallRecorder;
use crate::pipeline::state::{CallScope, Execution, Memory, Pipeline};
use crate::policy::{Grant, Rule, closable, leaves_values, ways_out};
use crate::tool::{Destination, Tool};

/// Question of a rule about flows.
pub(crate) struct FlowQuestion {
    pub(crate) rule: Arc<Rule>,
    /// Explanation for a person.
    pub(crate) explanation: String,
    /// Confidentiality of the data that is shown: an answer holds for no other.
    pub(crate) names: Vec<String>,
}

/// Begins the flow of a call with the labels of the conversation, of the calling program, of the caller, and of the answers in its
/// arguments.
pub(crate) fn begin_flow(
    pipeline: &Pipeline,
    (tool, grant): (&Tool, &Grant),
    (call, mut arguments): (&ToolCall, Label),
    scope: &CallScope<'_>,
    recorder: &CallRecorder<'_>,
) {
    let mut context = scope.memory.label();
    if let Some(parent) = &scope.parent {
        let flow = &parent.usage.whole().flow;
        context.join(&flow.label());
        arguments.join(&flow.own());
    }
    if let Some(label) = &call.label {
        context.join(label);
        // Even if the answer is withheld.
        scope.memory.join_label(label);
    }
    begin_flow_with(pipeline, (tool, grant), (&context, &arguments), scope.memory, recorder);
}

/// Begins the flow of a call or hook with the labels that its context and its arguments have.
pub(crate) fn begin_flow_with(
    pipeline: &Pipeline,
    (tool, grant): (&Tool, &Grant),
    given: (&Label, &Label),
    memory: &Memory,
    recorder: &CallRecorder<'_>,
) {
    let flow = &recorder.usage.flow;
    let own = ways_out(tool, grant);
    // The arguments leave this machine.
    let own = if pipeline.workers_of(tool).is_some() { own.with(Way::Net) } else { own };
    let ways = (own, closable(grant));
    flow.begin(&pipeline.flows, given, ways, memory.shared_labels(), || leaves_values(tool, grant));
    // The guest has all of them from its start.
    grant.env_keys().for_each(|name| flow.read(Source::Variable(name)));
}

/// Refuses a call whose label and ways out a rule denies, and returns the questions of the others.
///
/// # Errors
///
/// [`Outcome::Denied`].
pub(crate) fn judge_flow(
    pipeline: &Pipeline,
    execution: &Execution<'_>,
    recorder: &mut CallRecorder<'_>,
) -> Result<Vec<FlowQuestion>, ToolError> {
    let effects = recorder.usage.effects.get();
    let judged = recorder.usage.flow.judge(|label, ways| {
        let (mut questions, mut at_end) = (Vec::new(), Vec::new());
        for rule in pipeline.flows.matching(label, label, ways) {
            if rule.behavior() == Behavior::Deny {
                return Err(rule.clone());
            }
            let question = FlowQuestion::new(rule, label, ways, &execution.grant);
            // A stage takes what is written until somebody is asked.
            let concerned = rule.pattern().flow().map(|flow| flow.ways().both(ways));
            let is_held = effects.is_some() && concerned == Some(Ways::default().with(Way::Write));
            if is_held { at_end.push(question) } else { questions.push(question) }
        }
        Ok((questions, at_end))
    });
    let judged = judged.unwrap_or(Ok((Vec::new(), Vec::new()))).map(|(questions, at_end)| {
        for question in at_end {
            recorder.usage.flow.agree(&question.rule, question.names.clone());
            let Some(effects) = effects else { continue };
            let mut flows = effects.flows.lock().unwrap_or_else(PoisonError::into_inner);
            if !flows.contains(&question.explanation) {
                flows.push(question.explanation);
            }
        }
        questions
    });
    judged.map_err(|rule| {
        recorder.decide(Decision::new(Behavior::Deny, Reason::Rule, rule.to_string()));
        ToolError::new(Outcome::Denied, format!("denied by an operator rule: `{}`", rule.pattern().as_str()))
    })
}

impl FlowQuestion {
    fn new(rule: &Arc<Rule>, label: &Label, ways: Ways, grant: &Grant) -> Self {
        let hosts: Vec<String> = match ways.has(Way::Net) {
            true => grant.network().allowed().map(host_of).collect(),
            false => Vec::new(),
        };
        let flow = rule.pattern().flow();
        let names = flow.map(|flow| flow.names_in(label).map(str::to_owned).collect()).unwrap_or_default();
        let explanation = flow.map(|flow| flow.explain(label, ways, &hosts)).unwrap_or_default();
        Self { rule: rule.clone(), explanation, names }
    }

    /// Returns the scope for an approval: the rule with the names of the data.
    pub(crate) fn scope(&self) -> String {
        match self.names.is_empty() {
            true => self.rule.to_string(),
            false => format!("{}, for data that is {}", self.rule, self.names.join(", ")),
        }
    }
}

/// Returns a destination without its methods.
fn host_of(destination: &Destination) -> String {
    let text = destination.to_string();
    text.rsplit(' ').next().unwrap_or(&text).to_owned()
}

/// Adds the label of an ended call to its caller: an error depends on the same as a result.
pub(crate) fn end_flow(recorder: &CallRecorder<'_>, scope: &CallScope<'_>) {
    if let Some(parent) = &scope.parent {
        parent.usage.whole().flow.join_call(&recorder.usage.flow);
    }
}
