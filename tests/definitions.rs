//! Definitions of the shipped tools, which every request to a model carries: each states its claims, in few tokens.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::crib::Crib;

/// Words that state each claim, by tool and claim. Left out is what a model infers from a name and its bounds: that `depth` counts
/// levels, `max_results` lines, `max_characters` characters and `words` words, and what `stop_on_failure` does. So is `tz` of
/// `get_time`, which the tool still accepts, and what an answer or an error states when it matters: how a cut answer goes on, which
/// files were skipped, the names of fields, and limits that no call of a model reaches.
const CLAIMS: &str = include_str!("cases/definitions.json");
/// Maximum tokens of all definitions, at four bytes a token.
const MAX_TOKENS: usize = 2_650;

/// Returns the definitions by name, as a request has them.
fn definitions() -> BTreeMap<String, String> {
    let ran = Crib::new().run(&["schema", "--tools", "builtin"]);
    let definitions: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let named =
        |definition: Value| (definition["function"]["name"].as_str().unwrap().to_owned(), definition.to_string());
    definitions.into_iter().map(named).collect()
}

#[test]
fn each_definition_states_its_claims_in_few_tokens() {
    let claims: BTreeMap<String, BTreeMap<String, String>> = serde_json::from_str(CLAIMS).unwrap();
    let definitions = definitions();
    let names = |names: Vec<&String>| names.into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(names(claims.keys().collect()), names(definitions.keys().collect()), "each tool has claims");
    for (tool, claims) in &claims {
        let definition = definitions[tool].replace("\\n", " ");
        let missing: Vec<_> = claims.iter().filter(|(_, words)| !definition.contains(words.as_str())).collect();
        assert!(!claims.is_empty() && missing.is_empty(), "{tool}: {missing:?} in {definition}");
    }
    let tokens = definitions.values().map(String::len).sum::<usize>() / 4;
    assert!(tokens <= MAX_TOKENS, "{tokens} tokens: say it in fewer words, or raise the bound for a new claim");
}
