//! Module `uuid`: identifiers, random or derived from a name.

use sha1::{Digest, Sha1};
use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;
use uuid::{Builder, Uuid};

use super::error;

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    /// Creates a random identifier.
    fn v4() -> starlark::Result<String> {
        // Requested from the host each time: the content of a snapshot is the same in every call.
        let random = wasip2::random::random::get_random_bytes(16);
        let random = random.try_into().map_err(|_| error("uuid.v4", "the host gave no random bytes"))?;
        Ok(Builder::from_random_bytes(random).into_uuid().to_string())
    }

    /// Derives the identifier of a name in a namespace: `dns`, `url`, `oid`, `x500` or an identifier.
    fn v5(namespace: &str, name: &str) -> starlark::Result<String> {
        named(namespace, name).ok_or_else(|| {
            error("uuid.v5", format!("namespace must be dns, url, oid, x500 or a UUID, found `{namespace}`"))
        })
    }
}

fn named(namespace: &str, name: &str) -> Option<String> {
    let namespace = match namespace {
        "dns" => Uuid::NAMESPACE_DNS,
        "url" => Uuid::NAMESPACE_URL,
        "oid" => Uuid::NAMESPACE_OID,
        "x500" => Uuid::NAMESPACE_X500,
        other => Uuid::try_parse(other).ok()?,
    };
    let digest = Sha1::new().chain_update(namespace.as_bytes()).chain_update(name).finalize();
    let bytes = digest.first_chunk::<16>()?;
    Some(Builder::from_sha1_bytes(*bytes).into_uuid().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_the_identifier_of_the_standard() {
        let known = "cfbff0d1-9375-5685-968c-48ce8b15ae17";
        assert_eq!(named("dns", "example.com").as_deref(), Some(known));
        assert_eq!(named("6ba7b810-9dad-11d1-80b4-00c04fd430c8", "example.com").as_deref(), Some(known));
        assert_eq!(named("tld", "example.com"), None);
    }
}
