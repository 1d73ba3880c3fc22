//! Rights of clients in files: options and scopes, checked when a file is read.

use toolcrib_settings::config::Field;
use toolcrib_sources::options::ClientOptions;

use super::access::TokenScope;

/// Maximum number of texts in an array.
const MAX_TEXTS: usize = 256;

/// Reads permissions and rules of a client.
pub(super) fn options(field: Field<'_>) -> anyhow::Result<Vec<String>> {
    let place = field.place();
    let options = texts(field, "an option as text", |text| Ok(text.to_owned()))?;
    ClientOptions::parse(&options).map_err(|error| place.error(&error.to_string()))?;
    Ok(options)
}

/// Reads parts of the server.
pub(super) fn scopes(field: Field<'_>) -> anyhow::Result<Vec<TokenScope>> {
    let part = |text: &str| [TokenScope::Calls, TokenScope::Metrics].into_iter().find(|part| part.as_str() == text);
    texts(field, "`calls` or `metrics`", |text| part(text).ok_or_else(String::new))
}

fn texts<T>(
    field: Field<'_>,
    wanted: &str,
    parse: impl Fn(&str) -> Result<T, String> + Copy,
) -> anyhow::Result<Vec<T>> {
    let place = field.place();
    let items = field.items()?;
    if items.len() > MAX_TEXTS {
        return Err(place.error(&format!("more than {MAX_TEXTS} values")));
    }
    items.iter().map(|item| item.read(wanted, parse)).collect()
}
