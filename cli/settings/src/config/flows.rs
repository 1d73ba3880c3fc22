//! Labels of places, and the rule about flows that applies by default.

use anyhow::anyhow;
use toolcrib::call::Behavior;
use toolcrib::flow::{LabelPlace, Labels, Meaning};
use toolcrib::policy::{Pattern, Rule, real_path};

use super::layers::Layers;

/// Returns the labels of places, with their paths as the system stores them.
pub(super) fn labels(layers: &Layers) -> anyhow::Result<Labels> {
    let mut labels = Labels::default();
    for name in layers.applied_names("labels") {
        let word = name.split_once('.').map_or(name, |(_, word)| word);
        for (layer, setting) in layers.effective(name) {
            let meaning = Meaning::parse(word).map_err(|error| anyhow!("{}: {error}", layer.place(setting)))?;
            for text in layer.texts(setting) {
                let place = match text.parse::<LabelPlace>()? {
                    LabelPlace::Path(path) => LabelPlace::Path(real_path(&path)),
                    place => place,
                };
                labels = labels.with(place, meaning.clone());
            }
        }
    }
    Ok(labels)
}

/// Returns the rule about flows that applies without one of the user: private data, untrusted text and a way out.
pub(super) fn preset(layers: &Layers) -> anyhow::Result<Option<Rule>> {
    let setting = layers.effective("approvals.flows").into_iter().next();
    if setting.is_some_and(|(_, setting)| setting.value == "never") {
        return Ok(None);
    }
    let pattern: Pattern = "flow private + untrusted -> net".parse()?;
    Ok(Some(Rule::new(Behavior::Ask, pattern, "approvals.flows")))
}
