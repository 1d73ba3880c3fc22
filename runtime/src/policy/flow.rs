//! Rules about flows, and the labels of places that they depend on.

use std::sync::Arc;

use crate::call::Behavior;
use crate::flow::{Label, Labels, Way, Ways};
use crate::tool::{Access, Body, Builtin, Service, Tool};

use super::{Grant, Rule, Rules};

/// Labels of places and rules about flows, for all calls.
#[derive(Debug, Default)]
pub(crate) struct FlowPolicy {
    pub(crate) labels: Labels,
    rules: Vec<Arc<Rule>>,
    /// `true` if any rule withholds answers from the model.
    may_withhold: bool,
}

impl FlowPolicy {
    pub(crate) fn new(labels: Labels, rules: &Rules) -> Self {
        let rules: Vec<Arc<Rule>> = rules.about_flows().cloned().collect();
        let may_withhold = rules.iter().any(|rule| is_about_answers(rule));
        Self { labels, rules, may_withhold }
    }

    pub(crate) fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    /// Returns `true` if any rule withholds answers from the model.
    pub(crate) fn may_withhold(&self) -> bool {
        self.may_withhold
    }

    /// Returns the rule that withholds an answer with this label from the model. Nobody can be asked about an answer, so a rule
    /// that asks withholds it too.
    pub(crate) fn withholding(&self, answer: &Label) -> Option<&Arc<Rule>> {
        let matches = |rule: &Rule| rule.pattern().flow().is_some_and(|flow| flow.matches(answer));
        self.rules.iter().find(|rule| is_about_answers(rule) && matches(rule))
    }

    /// Returns the rules that deny a call with the label `all` its ways out, and then those that ask about one with the label
    /// `decisive`.
    pub(crate) fn matching<'a>(
        &'a self,
        all: &'a Label,
        decisive: &'a Label,
        ways: Ways,
    ) -> impl Iterator<Item = &'a Arc<Rule>> {
        let of = move |behavior: Behavior, label: &'a Label| {
            self.rules.iter().filter(move |rule| {
                let flow = rule.pattern().flow().filter(|flow| !flow.ways().both(ways).is_empty());
                rule.behavior() == behavior && flow.is_some_and(|flow| flow.matches(label))
            })
        };
        of(Behavior::Deny, all).chain(of(Behavior::Ask, decisive))
    }
}

fn is_about_answers(rule: &Rule) -> bool {
    rule.pattern().flow().is_some_and(|flow| flow.ways().has(Way::Model))
}

/// Returns the ways out that a tool has with its grant.
pub(crate) fn ways_out(tool: &Tool, grant: &Grant) -> Ways {
    let registers = grant.rights().check(Service::Meta, None).is_ok();
    let ways = [
        (Way::Write, grant.folders().iter().any(|folder| folder.access == Access::Write)),
        (Way::Net, !grant.network().is_empty()),
        (Way::Code, registers || matches!(tool.body, Body::Builtin(Builtin::RunCode))),
    ];
    let has = ways.into_iter().filter(|(_, has)| *has).fold(Ways::default(), |ways, (way, _)| ways.with(way));
    has.both(closable(grant))
}

/// Returns `true` if a call of a tool may leave values here that another call finds: then its answer is not the only way of what it
/// has read. A value that it puts into a cache counts at that moment, and a request as soon as it could send something.
pub(crate) fn leaves_values(tool: &Tool, grant: &Grant) -> bool {
    let keeps_state = match &tool.body {
        Body::Builtin(_) => return false,
        Body::Script(_) | Body::SkillScripts(_) => true,
        Body::Rich(rich) => rich.exports.prepare,
        _ => false,
    };
    let writes = grant.folders().iter().any(|folder| folder.access == Access::Write);
    keeps_state || writes || grant.rights().may_leave_values()
}

/// Returns the ways out that a rule can close. A stage for all calls holds back until somebody commits it, after reading.
pub(crate) fn closable(grant: &Grant) -> Ways {
    let ways = Ways::default().with(Way::Net).with(Way::Code);
    if grant.is_held_back() && !grant.is_within_call() { ways } else { ways.with(Way::Write) }
}
