//! Rules of flags about secrets, and the secrets that a tool is granted under them.

use crate::call::Denial;
use crate::error::Error;
use crate::tool::{Placement, SecretHost, SecretHostError, SecretRequest, Tool, is_secret_name};

/// Secret of a flag, written `NAME@HOST#PLACE`. A denial may omit the place, or the host and the place.
#[derive(Debug, Clone)]
pub(super) struct SecretRule {
    name: String,
    host: Option<SecretHost>,
    place: Option<Placement>,
}

impl SecretRule {
    /// Parses the value of a flag. `*` in a denial means every secret.
    ///
    /// # Errors
    ///
    /// [`Error::Permission`] if it is malformed, or an allowance without a host or a place.
    pub(super) fn read(text: &str, flag: &str) -> Result<Self, Error> {
        let refuse = |reason: String| Error::Permission { permission: format!("{flag}={text}"), reason };
        let (name, target) = text.split_once('@').map_or((text, None), |(name, target)| (name, Some(target)));
        let is_allowance = flag.starts_with("--allow");
        let is_all = name == "*" && !is_allowance;
        if !is_all && !is_secret_name(name) {
            let form = if is_allowance { "NAME@HOST#PLACE" } else { "NAME, NAME@HOST or NAME@HOST#PLACE" };
            let reason = format!("not the name of a secret (must match [a-z0-9][a-z0-9_-]*); write {form}");
            return Err(refuse(reason));
        }
        let (host, place) = match target.map(|target| target.split_once('#').unwrap_or((target, ""))) {
            None => (None, None),
            Some((host, "")) if !text.ends_with('#') => (Some(host), None),
            Some((host, place)) => (Some(host), Some(place)),
        };
        let host = host.map(str::parse).transpose().map_err(|error: SecretHostError| refuse(error.to_string()))?;
        let place = place.map(Placement::parse).transpose().map_err(|error| refuse(error.to_string()))?;
        if is_allowance && place.is_none() {
            let (missing, start) = match host.is_none() {
                true => ("host and no place", format!("{name}@api.example.com")),
                false => ("place", text.to_owned()),
            };
            let form = format!("write NAME@HOST#PLACE, such as `{start}#header:authorization`");
            return Err(refuse(format!("names no {missing}, so it would allow nothing; {form}")));
        }
        Ok(Self { name: name.to_owned(), host, place })
    }

    /// Returns `true` if a denial covers the request; a missing host or place covers all.
    fn denies(&self, request: &SecretRequest) -> bool {
        let named = self.name == "*" || self.name == request.name;
        named
            && self.host.as_ref().is_none_or(|host| *host == request.host)
            && self.place.as_ref().is_none_or(|place| place.shares_place(&request.placement))
    }

    /// Returns `true` if a flag allows the request of an untrusted tool. The flag must name the host, which learns the
    /// value, and the place, because the host may publish other parts of a request, such as the text of a post.
    fn allows(&self, request: &SecretRequest) -> bool {
        self.name == request.name
            && self.host.as_ref().is_some_and(|host| *host == request.host)
            && self.place.as_ref().is_some_and(|place| place.shares_place(&request.placement))
    }
}

/// Rules of the flags that allow and deny secrets.
#[derive(Debug, Clone, Default)]
pub(super) struct SecretRules {
    pub(super) allow: Vec<SecretRule>,
    pub(super) deny: Vec<SecretRule>,
}

/// Grants the secrets that a tool requests, and records denied ones. If `by_naming` is `true`, the source of the tool
/// is the operator's own and its requests are allowed.
pub(super) fn granted(
    tool: &Tool,
    by_naming: bool,
    rules: &SecretRules,
    denied: &mut Vec<Denial>,
) -> Vec<SecretRequest> {
    let mut granted = Vec::new();
    for request in &tool.requested.secrets {
        let capability = request.capability();
        if rules.deny.iter().any(|rule| rule.denies(request)) {
            denied.push(Denial { capability, flag: None });
        } else if by_naming || rules.allow.iter().any(|rule| rule.allows(request)) {
            granted.push(request.clone());
        } else {
            denied.push(Denial { capability, flag: Some(format!("--allow-secret={}", request.flag_value())) });
        }
    }
    granted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_names_the_host_and_the_place_and_a_denial_need_not() {
        let placement = Placement::parse("header:x-key").unwrap();
        let host = "api.example.com".parse().unwrap();
        let asked = SecretRequest { name: "github".to_owned(), host, placement };
        for (rule, allows, denies) in [
            ("github@api.example.com#header:X-Key", true, true),
            ("github@api.example.com#query:x-key", false, false),
            ("other@api.example.com#header:x-key", false, false),
            ("github@b.example#header:x-key", false, false),
        ] {
            let rule_of = |flag| SecretRule::read(rule, flag).unwrap();
            assert_eq!(rule_of("--allow-secret").allows(&asked), allows, "{rule}");
            assert_eq!(rule_of("--deny-secret").denies(&asked), denies, "{rule}");
        }
        for rule in ["github@api.example.com", "github", "*"] {
            assert!(SecretRule::read(rule, "--deny-secret").unwrap().denies(&asked), "{rule}");
            let allowance = SecretRule::read(rule, "--allow-secret").unwrap_err().to_string();
            assert!(allowance.contains("NAME@HOST#PLACE"), "{rule}: {allowance}");
        }
        assert!(SecretRule::read("*", "--allow-secret").is_err());
    }
}
