//! Search among the tools that are not listed, by exact name or by words of names and descriptions. Nothing is loaded by it: the
//! list stays as it is.

use rmcp::model::Tool as ListedTool;
use serde_json::{Value, json};

/// Maximum length of a query in characters.
pub(super) const MAX_QUERY_LEN: usize = 1000;
/// Maximum number of tools that a search returns.
pub(super) const MAX_FOUND: usize = 20;
/// Maximum number of words per query.
const MAX_WORDS: usize = 32;
/// Maximum bytes of all definitions in an answer.
const MAX_DEFINITION_BYTES: usize = 64 << 10;
/// Default number of tools that a search returns.
const DEFAULT_FOUND: usize = 5;

/// Finds tools, the best first.
pub(super) fn find(tools: &[ListedTool], query: &str, most: Option<u64>) -> Value {
    let most = most.map_or(DEFAULT_FOUND, |most| usize::try_from(most).unwrap_or(MAX_FOUND)).clamp(1, MAX_FOUND);
    let query: String = query.chars().take(MAX_QUERY_LEN).collect::<String>().to_lowercase();
    let words: Vec<&str> = query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let words = &words[..words.len().min(MAX_WORDS)];
    let mut found: Vec<(usize, &ListedTool)> =
        tools.iter().map(|tool| (score(tool, &query, words), tool)).filter(|(score, _)| *score > 0).collect();
    // The sort is stable: equal tools stay in the order of their names.
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let (total, mut bytes, mut listed) = (found.len(), 0, Vec::new());
    for (_, tool) in found.into_iter().take(most) {
        let tool = json!({ "name": tool.name, "description": tool.description, "inputSchema": tool.input_schema });
        bytes += tool.to_string().len();
        if bytes > MAX_DEFINITION_BYTES && !listed.is_empty() {
            break;
        }
        listed.push(tool);
    }
    json!({ "tools": listed, "found": total })
}

/// Scores a tool: an exact name counts most, then name words, then description words.
fn score(tool: &ListedTool, query: &str, words: &[&str]) -> usize {
    let name = tool.name.to_lowercase();
    if name == query {
        return usize::MAX;
    }
    let description = tool.description.as_deref().unwrap_or_default().to_lowercase();
    let of_word = |word: &&str| 4 * usize::from(name.contains(*word)) + usize::from(description.contains(*word));
    words.iter().map(of_word).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &'static str, description: &'static str) -> ListedTool {
        ListedTool::new(name, description, serde_json::Map::new())
    }

    fn names(found: &Value) -> Vec<&str> {
        found["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect()
    }

    #[test]
    fn an_exact_name_comes_first_and_names_count_more_than_descriptions() {
        let tools = [tool("rain", "weather"), tool("rain_now", "x"), tool("sun", "no rain at all"), tool("other", "y")];
        assert_eq!(names(&find(&tools, "rain", None)), ["rain", "rain_now", "sun"]);
        assert_eq!(names(&find(&tools, "nothing", None)), [""; 0]);
    }

    #[test]
    fn a_search_is_bounded() {
        let tools: Vec<ListedTool> = (0..100).map(|_| tool("rain", "x")).collect();
        assert_eq!(names(&find(&tools, "rain", Some(u64::MAX))).len(), MAX_FOUND);
        let long = "rain ".repeat(MAX_QUERY_LEN);
        assert_eq!(find(&tools, &long, Some(0))["found"], 100);
        let wide: Vec<ListedTool> = (0..5)
            .map(|_| ListedTool::new("rain", "d".repeat(MAX_DEFINITION_BYTES / 2), serde_json::Map::new()))
            .collect();
        assert_eq!(names(&find(&wide, "rain", Some(5))).len(), 1);
    }
}
