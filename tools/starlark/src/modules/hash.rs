//! Module `hash`: digests of texts, in hexadecimal. `md5` and `sha1` serve compatibility with existing digests, not
//! security.

use sha2::Digest;
use starlark::environment::GlobalsBuilder;
use starlark::starlark_module;

#[starlark_module]
pub(super) fn functions(builder: &mut GlobalsBuilder) {
    fn sha256(text: &str) -> starlark::Result<String> {
        Ok(hex::<sha2::Sha256>(text))
    }

    fn sha1(text: &str) -> starlark::Result<String> {
        Ok(hex::<sha1::Sha1>(text))
    }

    fn md5(text: &str) -> starlark::Result<String> {
        Ok(hex::<md5::Md5>(text))
    }
}

fn hex<D: Digest>(text: &str) -> String {
    D::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_their_standards() {
        assert_eq!(hex::<md5::Md5>("abc"), "900150983cd24fb0d6963f7d28e17f72");
        assert_eq!(hex::<sha1::Sha1>("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(hex::<sha2::Sha256>("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
