//! Requests in plain words, the most far-reaching first.

use std::collections::BTreeMap;

use toolcrib_base::parse::{size_in_words, time_in_words};
use toolcrib_base::render::{counted, one_line};

/// Kinds of requests, the most far-reaching first, each with its noun.
const KINDS: [(&str, &str); 15] = [
    ("programs", "interpreter"),
    ("secret", "secret"),
    ("setting", "setting"),
    ("instructions", "instruction file"),
    ("write", "writable folder"),
    ("exec", "program"),
    ("delegate", "other agent"),
    ("meta", "tool registration"),
    ("env", "environment variable"),
    ("net", "host"),
    ("call", "other tool"),
    ("read", "readable folder"),
    ("model", "model question"),
    ("cache", "store"),
    ("limit", "higher limit"),
];

/// Kinds of requests that give no access to the user's data: a call that lacks one fails with the flag that allows it.
const NAMED_BY_CALLS: [&str; 2] = ["model", "cache"];
/// Kind of the requests for higher limits.
const LIMIT: &str = "limit";

/// Returns `true` if the user would miss requests of one tool without a hint: access to something of theirs, such as files,
/// variables or hosts, or higher limits if nothing else is requested or the tool is called by itself.
pub fn is_missed(requests: &[&str], is_called: bool) -> bool {
    let is_limit = |request: &&str| kind(request).0 == LIMIT;
    let is_access = |request: &&str| !is_limit(request) && !NAMED_BY_CALLS.contains(&kind(request).0);
    requests.iter().any(is_access) || requests.iter().all(is_limit) || is_called && requests.iter().any(is_limit)
}

/// Formats requests as sentences for a person, the most far-reaching first.
pub fn phrases(requests: &[String]) -> Vec<String> {
    ranked(requests).into_iter().map(|(_, phrase)| phrase).collect()
}

/// Sorts requests, the most far-reaching first, each with its sentence.
pub fn ranked(requests: &[String]) -> Vec<(&str, String)> {
    let sentence = |request: &String| (rank(request), phrase(request));
    let mut all: Vec<_> = requests.iter().map(|request| (sentence(request), request.as_str())).collect();
    all.sort();
    all.into_iter().map(|((_, phrase), request)| (request, phrase)).collect()
}

/// Rank of the most far-reaching request: lower is more far-reaching.
pub(crate) fn foremost(requests: &[String]) -> usize {
    requests.iter().map(|request| rank(request)).min().unwrap_or(usize::MAX)
}

/// Counts requests by kind, such as "1 secret, 2 hosts".
pub fn summary<'a>(requests: impl IntoIterator<Item = &'a str>) -> String {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    requests.into_iter().for_each(|request| *counts.entry(rank(request)).or_default() += 1);
    let noun = |rank: usize| KINDS.get(rank).map_or("capability", |(_, noun)| *noun);
    counts.into_iter().map(|(rank, count)| counted(count as u64, noun(rank))).collect::<Vec<_>>().join(", ")
}

fn kind(request: &str) -> (&str, &str) {
    request.split_once(':').unwrap_or((request, ""))
}

fn rank(request: &str) -> usize {
    let (kind, _) = kind(request);
    KINDS.iter().position(|(name, _)| *name == kind).unwrap_or(KINDS.len())
}

fn phrase(request: &str) -> String {
    let (kind, value) = kind(request);
    let value = one_line(value);
    match kind {
        "secret" => match value.split_once('@') {
            Some((name, host)) => format!("send your secret `{name}` to {}", host.split('#').next().unwrap_or(host)),
            None => format!("use your secret `{value}`"),
        },
        "setting" => format!("set {value}"),
        "instructions" => format!("give the model the instructions in {value}"),
        "write" => format!("read and change files in {value}"),
        "read" => format!("read files in {value}"),
        "env" => format!("read the environment variable {value}"),
        "net" => format!("send requests to {value}"),
        "exec" => format!("run the program {value} of this project"),
        "call" => format!("call the tool {value}"),
        "programs" => format!("run the {value} programs of a model, and make each call that they can make"),
        "delegate" => "hand tasks to other agents".to_owned(),
        "meta" => "add tools and hooks to a run".to_owned(),
        "model" => "ask the model of a run".to_owned(),
        "cache" => "keep values between calls".to_owned(),
        "limit" => match value.split_once('=') {
            Some(("deadline", ms)) => {
                let time = ms.parse().map_or_else(|_| format!("{ms} ms"), time_in_words);
                format!("run for up to {time}")
            }
            Some((name @ ("memory" | "stdout" | "disk-bytes" | "received"), size)) => {
                let size = size.parse().map_or_else(|_| size.to_owned(), size_in_words);
                format!("use up to {size} ({name})")
            }
            _ => format!("a higher limit: {value}"),
        },
        _ => one_line(request),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_far_reaching_request_comes_first_in_plain_words() {
        for (ms, words) in [("120000", "2 min"), ("1500", "1500 ms"), ("45000", "45 s"), ("x", "x ms")] {
            assert_eq!(phrases(&[format!("limit:deadline={ms}")]), [format!("run for up to {words}")]);
        }
        let requests = ["read:/p/data", "limit:memory=1073741824", "net:a.example:443", "secret:gh@a.example#header:x"];
        let requests = requests.map(str::to_owned);
        assert_eq!(
            phrases(&requests),
            [
                "send your secret `gh` to a.example",
                "send requests to a.example:443",
                "read files in /p/data",
                "use up to 1 GiB (memory)",
            ]
        );
        assert_eq!(summary(requests.iter().map(String::as_str)), "1 secret, 1 host, 1 readable folder, 1 higher limit");
        assert_eq!(phrases(&["other:\u{1b}[2J".to_owned()]), ["other:\\u{1b}[2J"]);
    }
}
