//! The names of a component's functions as tools: `package_interface_function`, and shorter where that is not ambiguous
//! within the component. What other components there are changes no name: a rule that names a tool goes on to mean it.

use std::collections::HashMap;

use crate::tool::typed::Function;

/// The names of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::source) struct Names {
    /// The shortest that no other function of the component could have.
    pub(in crate::source) short: String,
    /// The whole one.
    pub(in crate::source) full: String,
}

/// The names of the functions of a component, in their order.
///
/// # Errors
///
/// A text that names two functions that would be the same tool.
pub(in crate::source) fn names(functions: &[Function]) -> Result<Vec<Names>, String> {
    let candidates: Vec<Vec<String>> = functions.iter().map(candidates).collect();
    let mut uses: HashMap<&str, usize> = HashMap::new();
    candidates.iter().flatten().for_each(|name| *uses.entry(name).or_default() += 1);
    let mut taken: HashMap<&str, &Function> = HashMap::new();
    let mut names = Vec::with_capacity(functions.len());
    for (function, candidates) in functions.iter().zip(&candidates) {
        let Some(full) = candidates.last() else { continue };
        let short = candidates.iter().find(|name| uses.get(name.as_str()) == Some(&1)).unwrap_or(full);
        if let Some(first) = taken.insert(short, function) {
            return Err(format!("`{first}` and `{function}` would both be the tool `{short}`: rename one of them"));
        }
        names.push(Names { short: short.clone(), full: full.clone() });
    }
    Ok(names)
}

/// The names that a function could have, the shortest first.
fn candidates(function: &Function) -> Vec<String> {
    let Some(interface) = &function.interface else { return vec![plain(&function.name)] };
    let unversioned = interface.split('@').next().unwrap_or(interface);
    let (package, interface) = match unversioned.rsplit_once('/') {
        Some((package, interface)) => (package.rsplit(':').next(), interface),
        None => (None, unversioned),
    };
    let mut names = vec![plain(&function.name)];
    for part in [Some(interface), package].into_iter().flatten() {
        let shorter = names.last().cloned().unwrap_or_default();
        names.push(format!("{}_{shorter}", plain(part)));
    }
    names
}

fn plain(name: &str) -> String {
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(functions: &[(Option<&str>, &str)]) -> Result<Vec<String>, String> {
        let function = |(interface, name): &(Option<&str>, &str)| Function {
            interface: interface.map(str::to_owned),
            name: (*name).to_owned(),
            docs: None,
            params: Vec::new(),
            result: None,
        };
        let functions: Vec<_> = functions.iter().map(function).collect();
        names(&functions).map(|names| names.into_iter().map(|name| name.short).collect())
    }

    #[test]
    fn a_name_is_as_long_as_it_has_to_be() {
        let (a, b, c) = (Some("ns:pack/one@0.1.0"), Some("ns:other-pack/one"), Some("plain"));
        assert_eq!(named(&[(a, "get-time"), (None, "run")]).unwrap(), ["get_time", "run"]);
        assert_eq!(named(&[(a, "run"), (c, "run"), (None, "run")]).unwrap(), ["one_run", "plain_run", "run"]);
        assert_eq!(named(&[(a, "run"), (b, "run")]).unwrap(), ["pack_one_run", "other_pack_one_run"]);
        let function =
            Function { interface: a.map(str::to_owned), name: "f".into(), docs: None, params: vec![], result: None };
        assert_eq!(names(&[function]).unwrap()[0].full, "pack_one_f");
    }

    #[test]
    fn two_functions_of_one_name_are_both_told() {
        let error = named(&[(Some("a:b/c@1.0.0"), "f"), (Some("a:b/c@2.0.0"), "f")]).unwrap_err();
        assert_eq!(error, "`a:b/c@1.0.0#f` and `a:b/c@2.0.0#f` would both be the tool `b_c_f`: rename one of them");
        let error = named(&[(None, "a-b"), (Some("a"), "b"), (Some("x"), "b")]).unwrap_err();
        assert_eq!(error, "`a-b` and `a#b` would both be the tool `a_b`: rename one of them");
    }
}
