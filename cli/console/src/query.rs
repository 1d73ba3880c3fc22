//! Parameters of a URL and a form, within limits.

use url::form_urlencoded;

/// Maximum number of parameters; further ones are ignored.
const MAX_PARAMETERS: usize = 32;
/// Maximum page of a list.
const MAX_PAGE: usize = 200;

/// Parameters.
#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads parameters in the form of addresses and forms.
    pub(super) fn read(bytes: &[u8]) -> Self {
        Self::read_most(bytes, MAX_PARAMETERS)
    }

    /// Reads at most `max` parameters.
    pub(super) fn read_most(bytes: &[u8], max: usize) -> Self {
        Self(form_urlencoded::parse(bytes).take(max).map(|(name, text)| (name.into(), text.into())).collect())
    }

    /// Returns all parameters, as they were sent.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Returns a parameter that is not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(of, _)| of == name)?;
        Some(found.1.trim()).filter(|text| !text.is_empty())
    }

    /// Returns the number of a list's page, from 0.
    pub(super) fn page(&self) -> usize {
        let page: usize = self.get("page").and_then(|page| page.parse().ok()).unwrap_or(1);
        page.clamp(1, MAX_PAGE) - 1
    }

    /// Returns the parameters with one of these names, as a URL query.
    pub(super) fn only(&self, names: &[&str]) -> String {
        let kept: Vec<_> =
            self.0.iter().filter(|(name, text)| names.contains(&name.as_str()) && !text.is_empty()).collect();
        let mut address = form_urlencoded::Serializer::for_suffix(String::from("?"), 1);
        if kept.is_empty() { String::new() } else { address.extend_pairs(kept).finish() }
    }

    /// Returns the parameters with these values instead of their own, as the URL query for the first page.
    pub(super) fn changed(&self, values: &[(&str, &str)]) -> String {
        let is_kept = |name: &str| name != "page" && values.iter().all(|(other, _)| *other != name);
        let others = self.0.iter().filter(|(name, text)| is_kept(name) && !text.is_empty());
        let mut changed = form_urlencoded::Serializer::for_suffix(String::from("?"), 1);
        changed.extend_pairs(others).extend_pairs(values).finish()
    }

    /// Returns the parameters of the page before or after, if lists have it; pages count from 0.
    pub(super) fn turned(&self, page: usize) -> Option<String> {
        let number = (page < MAX_PAGE).then(|| (page + 1).to_string())?;
        let others = self.0.iter().filter(|(name, text)| name != "page" && !text.is_empty());
        let mut turned = form_urlencoded::Serializer::for_suffix(String::from("?"), 1);
        Some(turned.extend_pairs(others).append_pair("page", &number).finish())
    }
}

/// Returns one parameter in the form of an address.
pub(super) fn parameter(name: &str, text: &str) -> String {
    form_urlencoded::Serializer::for_suffix(String::from("?"), 1).append_pair(name, text).finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_numbered_from_one_within_limits() {
        let page = |text: &str| Query::read(text.as_bytes()).page();
        assert_eq!([page(""), page("page=1"), page("page=3"), page("page=0"), page("page=x")], [0, 0, 2, 0, 0]);
        assert_eq!(page("page=99999999"), MAX_PAGE - 1);
        let query = Query::read(b"q=a+%26+b&page=2&state=");
        assert_eq!((query.get("q"), query.get("state")), (Some("a & b"), None));
        assert_eq!(query.turned(2).as_deref(), Some("?q=a+%26+b&page=3"));
        assert_eq!(query.turned(MAX_PAGE), None);
        assert_eq!(query.only(&["q", "state"]), "?q=a+%26+b");
        assert_eq!(query.only(&["tool"]), "");
        assert_eq!(parameter("name", "\"><&"), "?name=%22%3E%3C%26");
    }
}
