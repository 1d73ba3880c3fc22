//! Tools that are not sent to the model because nothing that they request is granted, and the hint about them.

use toolcrib::policy::Grant;
use toolcrib::{Availability, Runtime, Tool};
use toolcrib_base::render::{counted, listed, one_line};

/// Returns a hint about the tools that are not sent, with the flags that would change that; `None` if all are sent.
pub fn unsent_hint(runtime: &Runtime) -> Option<String> {
    let unsent: Vec<_> = unsent(runtime).collect();
    let mut flags: Vec<&str> = Vec::new();
    for flag in unsent.iter().flat_map(|(_, grant)| grant.denied()).filter_map(|denial| denial.flag.as_deref()) {
        if !flags.contains(&flag) {
            flags.push(flag);
        }
    }
    let names: Vec<_> = unsent.iter().map(|(tool, _)| format!("`{}`", one_line(&tool.name))).collect();
    if runtime.has_workers() && !names.is_empty() {
        let (count, named) = (counted(names.len(), "tool"), listed(&names));
        return Some(format!(
            "{count} hidden from the model: they may change something, and workers only read ({named})"
        ));
    }
    hint(&names, &flags)
}

/// Returns the number of tools that are not sent to a model.
pub fn unsent_count(runtime: &Runtime) -> usize {
    unsent(runtime).count()
}

fn unsent(runtime: &Runtime) -> impl Iterator<Item = (&Tool, &Grant)> {
    let is_open = |tool: &&Tool| matches!(runtime.availability(&tool.name), Some(Availability::Loaded));
    let grants = runtime.tools().filter(is_open).filter_map(|tool| Some((tool, runtime.grant(&tool.name)?)));
    grants.filter(|(tool, _)| runtime.is_useless(&tool.name))
}

fn hint(names: &[String], flags: &[&str]) -> Option<String> {
    let flags: Vec<String> = flags.iter().map(|flag| one_line(flag)).collect();
    let flags = if flags.is_empty() { String::new() } else { format!("; use {}", listed(&flags)) };
    let named = listed(names);
    let count = counted(names.len(), "tool");
    (!names.is_empty()).then(|| format!("{count} hidden from the model: missing permissions ({named}){flags}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_names_a_few_tools_and_flags() {
        let names: Vec<String> = (0..10).map(|number| format!("`t{number}`")).collect();
        assert_eq!(hint(&[], &[]), None);
        assert_eq!(
            hint(&names[..1], &["--allow-read=DIR"]).as_deref(),
            Some("1 tool hidden from the model: missing permissions (`t0`); use --allow-read=DIR")
        );
        let many = hint(&names, &["--a", "--b", "--c", "--d", "--e"]).expect("a hint");
        assert!(many.starts_with("10 tools hidden") && many.contains("`t7` and 2 more"), "{many}");
        assert!(many.ends_with("; use --a, --b, --c, --d, --e"), "{many}");
    }
}
