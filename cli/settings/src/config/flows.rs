//! Labels of places, and the rule about flows that applies by default.

use std::path::PathBuf;

use anyhow::anyhow;
use toolcrib::call::Behavior;
use toolcrib::flow::{LabelPlace, Labels, Meaning};
use toolcrib::policy::{Pattern, Rule, real_path};

use super::layers::Layers;

/// Returns the labels of places, with their paths as the system stores them, and the keys with paths that do not exist.
pub(super) fn labels(layers: &Layers) -> anyhow::Result<(Labels, Vec<(String, PathBuf)>)> {
    let (mut labels, mut missing) = (Labels::default(), Vec::new());
    for name in layers.applied_names("labels") {
        let word = name.split_once('.').map_or(name, |(_, word)| word);
        for (layer, setting) in layers.effective(name) {
            let meaning = Meaning::parse(word).map_err(|error| anyhow!("{}: {error}", layer.place(setting)))?;
            for text in layer.texts(setting) {
                let place = match text.parse::<LabelPlace>()? {
                    LabelPlace::Path(path) => {
                        missing.extend((!path.exists()).then(|| (name.to_owned(), path.clone())));
                        LabelPlace::Path(real_path(&path))
                    }
                    place => place,
                };
                labels = labels.with(place, meaning.clone());
            }
        }
    }
    Ok((labels, missing))
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
