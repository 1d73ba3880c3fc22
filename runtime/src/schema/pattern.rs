//! Patterns of a schema: bounded at compile time, and matched under a clock. A pattern is a lazily built automaton that
//! consumes the text byte by byte, so that a match can be interrupted between two bytes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use jsonschema::{Keyword, ValidationError};
use regex_automata::Input;
use regex_automata::hybrid::dfa::{Cache, Config, DFA};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::syntax;
use serde_json::{Map, Value};
use toolcrib_foundation::text::{MAX_SHOWN, shown};

use super::clock::step;
use super::graph::SchemaGraph;
use super::metered::MeteredJson;

/// Maximum number of patterns per schema.
const MAX_PATTERNS: usize = 256;
/// Maximum size of one pattern in bytes.
const MAX_PATTERN_BYTES: usize = 4096;
/// Maximum size of all patterns together in bytes.
const MAX_PATTERNS_BYTES: usize = 64 << 10;
/// Maximum memory of one compiled pattern in bytes.
const MAX_COMPILED: usize = 2 << 20;
/// Maximum memory for the states of one automaton, and of one compiled pattern for names, in bytes.
pub(super) const MAX_AUTOMATON: usize = 1 << 20;
/// Maximum memory of all compiled patterns together in bytes.
const MAX_COMPILED_TOGETHER: usize = 8 << 20;
/// Maximum memory for states that are cached between two matches in bytes.
const MAX_CACHED_STATES: usize = 32 << 10;
/// Number of pattern states per step.
const STATES_PER_STEP: usize = 64;
/// Maximum number of bytes between two clock checks.
const MAX_STRIDE: usize = 1024;

/// Compiled patterns of a schema by their text.
pub(super) type Patterns = HashMap<String, Arc<Pattern>>;

/// Compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    text: String,
    automaton: DFA,
    states: usize,
    memory: usize,
    /// States of the last match, if they are small.
    cache: Mutex<Option<Cache>>,
}

/// Compiles the patterns of a schema.
///
/// # Errors
///
/// A message with the pattern and the limit that it exceeds.
pub(super) fn compile(graph: &SchemaGraph<'_>) -> Result<Patterns, String> {
    let (mut patterns, mut bytes, mut memory, mut count) = (Patterns::new(), 0, 0, 0);
    for node in graph.nodes() {
        let own = node.schema.get("pattern").and_then(Value::as_str);
        let names = node.schema.get("patternProperties").and_then(Value::as_object);
        let own = own.into_iter().map(|text| ("pattern", text));
        let names = names.into_iter().flat_map(Map::keys).map(|text| ("patternProperties", text.as_str()));
        for (keyword, text) in own.chain(names) {
            count += 1;
            if count > MAX_PATTERNS {
                return Err(format!("more than {MAX_PATTERNS} patterns"));
            }
            bytes += text.len();
            if bytes > MAX_PATTERNS_BYTES {
                return Err(format!("its patterns have more than {MAX_PATTERNS_BYTES} bytes together"));
            }
            if patterns.contains_key(text) {
                continue;
            }
            // The validator rejects an unsupported pattern.
            let Some(pattern) = Pattern::compile(text).map_err(|error| format!("`{keyword}`: {error}"))? else {
                continue;
            };
            memory += pattern.memory;
            if memory > MAX_COMPILED_TOGETHER {
                return Err(format!(
                    "its patterns take more than {MAX_COMPILED_TOGETHER} bytes when they are compiled"
                ));
            }
            patterns.insert(text.to_owned(), Arc::new(pattern));
        }
    }
    Ok(patterns)
}

impl Pattern {
    /// Compiles a pattern; `None` if it cannot be matched in linear time.
    fn compile(text: &str) -> Result<Option<Self>, String> {
        if text.len() > MAX_PATTERN_BYTES {
            let length = text.len();
            return Err(format!("`{}` has {length} bytes, more than the {MAX_PATTERN_BYTES} allowed", shown(text)));
        }
        let Ok(translated) = jsonschema_regex::to_rust_regex(text) else { return Ok(None) };
        let config = thompson::Config::new().which_captures(WhichCaptures::None).nfa_size_limit(Some(MAX_COMPILED));
        let mut compiler = thompson::Compiler::new();
        compiler.configure(config).syntax(syntax::Config::new().utf8(false));
        let nfa: NFA = match compiler.build(&with_ascii_word_boundaries(&translated)) {
            Ok(nfa) => nfa,
            Err(error) if error.size_limit().is_some() => {
                return Err(format!("`{}` takes more than {MAX_COMPILED} bytes when it is compiled", shown(text)));
            }
            Err(_) => return Ok(None),
        };
        let (states, memory) = (nfa.states().len(), nfa.memory_usage());
        let config = Config::new().cache_capacity(MAX_AUTOMATON).skip_cache_capacity_check(true);
        let automaton = DFA::builder().configure(config).build_from_nfa(nfa).ok();
        let text = text.to_owned();
        Ok(automaton.map(|automaton| Self { text, automaton, states, memory, cache: Mutex::default() }))
    }

    /// Returns `true` if the pattern matches a part of the text. The result is meaningless after the time is over.
    fn is_match(&self, text: &str) -> bool {
        let cached = self.cache.try_lock().ok().and_then(|mut cached| cached.take());
        let mut cache = cached.unwrap_or_else(|| {
            step(self.states / STATES_PER_STEP);
            self.automaton.create_cache()
        });
        let is_match = self.run(&mut cache, text);
        if cache.memory_usage() <= MAX_CACHED_STATES
            && let Ok(mut cached) = self.cache.try_lock()
        {
            *cached = Some(cache);
        }
        is_match
    }

    fn run(&self, cache: &mut Cache, text: &str) -> bool {
        let Ok(mut state) = self.automaton.start_state_forward(cache, &Input::new(text)) else { return false };
        let stride = (MAX_STRIDE * STATES_PER_STEP / self.states.max(1)).clamp(1, MAX_STRIDE);
        for part in text.as_bytes().chunks(stride) {
            if !step(1 + part.len() * self.states / STATES_PER_STEP) {
                return false;
            }
            for &byte in part {
                match self.automaton.next_state(cache, state, byte) {
                    Ok(next) => state = next,
                    Err(_) => return false,
                }
                if state.is_tagged() {
                    if state.is_match() {
                        return true;
                    }
                    if state.is_dead() || state.is_quit() {
                        return false;
                    }
                }
            }
        }
        self.automaton.next_eoi_state(cache, state).is_ok_and(|state| state.is_match())
    }
}

/// Rewrites `\b` and `\B` to the standard's word boundaries: only ASCII letters, digits and underscores are word
/// characters.
fn with_ascii_word_boundaries(pattern: &str) -> String {
    let (mut written, mut rest, mut depth) = (String::with_capacity(pattern.len()), pattern.chars(), 0_u32);
    while let Some(c) = rest.next() {
        match c {
            '\\' => match rest.next() {
                Some(word @ ('b' | 'B')) if depth == 0 => written.push_str(&format!(r"(?-u:\{word})")),
                Some(escaped) => written.extend(['\\', escaped]),
                None => written.push('\\'),
            },
            c => {
                match c {
                    '[' => depth += 1,
                    ']' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                written.push(c);
            }
        }
    }
    written
}

/// Keyword `pattern`.
struct PatternKeyword(Arc<Pattern>);

impl<'i> Keyword<'i, MeteredJson> for PatternKeyword {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            return Ok(());
        }
        let value = instance.as_str().filter(|text| text.len() <= MAX_SHOWN).map(|_| instance.to_string());
        let value = value.as_deref().unwrap_or("value");
        Err(ValidationError::custom(format!("{value} does not match {:?}", self.0.text)))
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        instance.as_str().is_none_or(|text| self.0.is_match(text))
    }
}

/// Creates the check of a schema's `pattern`.
///
/// # Errors
///
/// [`ValidationError`] if the pattern cannot be matched in linear time.
pub(super) fn keyword<'a>(
    patterns: &Patterns,
    written: &'a Value,
) -> Result<Box<dyn for<'i> Keyword<'i, MeteredJson>>, ValidationError<'a>> {
    let text = written.as_str().unwrap_or_default();
    match patterns.get(text) {
        Some(pattern) => Ok(Box::new(PatternKeyword(pattern.clone()))),
        None => Err(ValidationError::custom(format!(
            "`{}` is not a pattern that can be matched in linear time",
            shown(text)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::compile(text).unwrap().unwrap()
    }

    fn compiled(schema: &Value) -> Result<Patterns, String> {
        compile(&SchemaGraph::of(schema))
    }

    #[test]
    fn a_pattern_is_read_as_the_standard_has_it() {
        for (text, fits, unfit) in [
            ("^a+$", vec!["a", "aaa"], vec!["", "ab", "ba"]),
            ("b", vec!["abc", "é\nb"], vec!["", "ac"]),
            (r"^\d{2}$", vec!["12"], vec!["1", "１２"]),
            (r"\bfoo\b", vec!["a foo b", "éfooé"], vec!["foobar", "_foo"]),
            (r"a\Bb", vec!["ab"], vec!["a b"]),
            (r"^\p{L}+$", vec!["é", "ж"], vec!["1", ""]),
            ("", vec!["", "a"], vec![]),
            (r"^.$", vec!["é", "😀"], vec!["\n", "ab"]),
        ] {
            let pattern = pattern(text);
            fits.into_iter().for_each(|fit| assert!(pattern.is_match(fit), "{text} {fit:?}"));
            unfit.into_iter().for_each(|unfit| assert!(!pattern.is_match(unfit), "{text} {unfit:?}"));
        }
        for unknown in ["(?=a)", "(", r"^[\b]$", r"(a)\1"] {
            assert!(Pattern::compile(unknown).unwrap().is_none(), "{unknown}");
        }
    }

    #[test]
    fn each_bound_of_patterns_is_exceeded() {
        let many = |count: usize, text: &str| json!({"anyOf": vec![json!({ "pattern": text }); count]});
        assert_eq!(compiled(&many(256, "a")).unwrap().len(), 1);
        assert_eq!(compiled(&many(257, "a")).unwrap_err(), "more than 256 patterns");
        assert!(compiled(&many(17, &"a".repeat(4096))).unwrap_err().contains("more than 65536 bytes together"));
        assert!(compiled(&many(1, &"a".repeat(4097))).unwrap_err().contains("has 4097 bytes, more than the 4096"));
        let names = json!({"patternProperties": {"a".repeat(4097): {}}});
        assert!(compiled(&names).unwrap_err().starts_with("`patternProperties`: `aaaa"));
        assert!(
            compiled(&many(1, r"\p{L}{1000}")).unwrap_err().contains("more than 2097152 bytes when it is compiled")
        );
        let each: Vec<_> = (0..40).map(|n| json!({ "pattern": format!(r"\p{{L}}{{{}}}", 20 + n) })).collect();
        let error = compiled(&json!({ "anyOf": each })).unwrap_err();
        assert_eq!(error, "its patterns take more than 8388608 bytes when they are compiled");
    }

    #[test]
    fn what_a_match_leaves_behind_is_small() {
        let pattern = pattern("[ab]*a[ab]{12}c");
        let text: String =
            (0..200_000_u32).map(|n| if n.wrapping_mul(2_654_435_761) >> 31 == 0 { 'a' } else { 'b' }).collect();
        assert!(!pattern.is_match(&text));
        let cached = pattern.cache.lock().unwrap().as_ref().map_or(0, Cache::memory_usage);
        assert!(cached <= MAX_CACHED_STATES, "{cached}");
    }
}
