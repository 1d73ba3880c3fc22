//! The names of a component's functions as tools: `package_interface_function`, or shorter if that is unambiguous within the
//! component. Other components change no name, so a rule that names a tool keeps its meaning.

use std::collections::HashMap;

use crate::error::{Error, Result};

use super::Function;

/// Names of one function as a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// Shortest name that is unique in the component.
    pub short: String,
    /// The name with package and interface.
    pub full: String,
}

/// Returns the names of a component's functions, in their order.
///
/// # Errors
///
/// Two functions would be the same tool.
pub fn names(functions: &[Function]) -> Result<Vec<Names>> {
    let candidates: Vec<Vec<String>> = functions.iter().map(candidates).collect();
    let mut uses: HashMap<&str, usize> = HashMap::new();
    candidates.iter().flatten().for_each(|name| *uses.entry(name).or_default() += 1);
    let mut taken: HashMap<&str, &Function> = HashMap::new();
    let mut names = Vec::with_capacity(functions.len());
    for (function, candidates) in functions.iter().zip(&candidates) {
        let Some(full) = candidates.last() else { continue };
        let short = candidates.iter().find(|name| uses.get(name.as_str()) == Some(&1)).unwrap_or(full);
        if let Some(first) = taken.insert(short, function) {
            return Err(Error::Invalid(format!(
                "`{first}` and `{function}` would both be the tool `{short}`: rename one of them"
            )));
        }
        names.push(Names { short: short.clone(), full: full.clone() });
    }
    Ok(names)
}

/// Returns the names that a function could have, the shortest first.
fn candidates(function: &Function) -> Vec<String> {
    let Some(interface) = &function.interface else { return vec![with_underscores(&function.name)] };
    let unversioned = interface.split('@').next().unwrap_or(interface);
    let (package, interface) = match unversioned.rsplit_once('/') {
        Some((package, interface)) => (package.rsplit(':').next(), interface),
        None => (None, unversioned),
    };
    let mut names = vec![with_underscores(&function.name)];
    for part in [Some(interface), package].into_iter().flatten() {
        let shorter = names.last().cloned().unwrap_or_default();
        names.push(format!("{}_{shorter}", with_underscores(part)));
    }
    names
}

fn with_underscores(name: &str) -> String {
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(functions: &[(Option<&str>, &str)]) -> Result<Vec<String>> {
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
    fn an_error_names_both_functions_of_one_name() {
        let error = named(&[(Some("a:b/c@1.0.0"), "f"), (Some("a:b/c@2.0.0"), "f")]).unwrap_err().to_string();
        assert_eq!(error, "`a:b/c@1.0.0#f` and `a:b/c@2.0.0#f` would both be the tool `b_c_f`: rename one of them");
        let error = named(&[(None, "a-b"), (Some("a"), "b"), (Some("x"), "b")]).unwrap_err().to_string();
        assert_eq!(error, "`a-b` and `a#b` would both be the tool `a_b`: rename one of them");
    }
}
