//! Check of a file's first bytes: bundles hold portable WebAssembly, never native or precompiled code.
//!
//! The engine's precompiled files are ELF objects. They would run outside of every check of the compiler, so a bundle that
//! holds one is refused when it is written and when it is read.

use crate::media_type::MediaType;

/// Number of checked bytes per file.
pub(crate) const PREFIX: usize = 8;

/// Preamble of a core module: magic, version 1, layer 0.
const MODULE: &[u8; PREFIX] = b"\0asm\x01\0\0\0";
/// Preamble of a component: magic, version 13, layer 1.
const COMPONENT: &[u8; PREFIX] = b"\0asm\x0d\0\x01\0";

/// First bytes of native executables and object files, with the format's name.
const NATIVE: [(&[u8], &str); 9] = [
    (b"\x7fELF", "ELF, the format of precompiled programs"),
    (b"\xfe\xed\xfa\xce", "Mach-O"),
    (b"\xfe\xed\xfa\xcf", "Mach-O"),
    (b"\xce\xfa\xed\xfe", "Mach-O"),
    (b"\xcf\xfa\xed\xfe", "Mach-O"),
    (b"\xca\xfe\xba\xbe", "Mach-O or Java"),
    (b"MZ\x90\0", "a Windows executable"),
    (b"!<arch>", "an archive of object files"),
    (b"BC\xc0\xde", "LLVM bitcode"),
];

/// Kind of a WebAssembly program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProgramKind {
    /// Component.
    Component,
    /// Core module.
    Module,
}

/// Reason why the content of a file is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramFault {
    /// The file is declared as WebAssembly, and does not begin as a module or component does.
    #[error("it does not begin as a WebAssembly module or component")]
    NotWasm,
    /// The file is WebAssembly, and is declared as something else.
    #[error("it is WebAssembly, but its media type is `{media_type}`")]
    HiddenWasm {
        /// Declared media type.
        media_type: MediaType,
    },
    /// The file is native or precompiled code.
    #[error("it is {format}; bundles hold portable WebAssembly only")]
    Native {
        /// Name of the format.
        format: &'static str,
    },
}

/// Returns the kind of program that begins with `prefix`.
#[must_use]
pub fn program_kind(prefix: &[u8]) -> Option<ProgramKind> {
    if prefix.starts_with(MODULE) {
        Some(ProgramKind::Module)
    } else if prefix.starts_with(COMPONENT) {
        Some(ProgramKind::Component)
    } else {
        None
    }
}

/// Checks the first bytes of a file, at least [`PREFIX`] if it has as many, against its media type.
pub(crate) fn check(media_type: &MediaType, prefix: &[u8]) -> Result<(), ProgramFault> {
    if let Some((_, format)) = NATIVE.iter().find(|(magic, _)| prefix.starts_with(magic)) {
        return Err(ProgramFault::Native { format });
    }
    if *media_type == MediaType::WASM {
        return if program_kind(prefix).is_some() { Ok(()) } else { Err(ProgramFault::NotWasm) };
    }
    if prefix.starts_with(b"\0asm") {
        return Err(ProgramFault::HiddenWasm { media_type: media_type.clone() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_components_are_accepted_as_webassembly_only() {
        for (prefix, kind) in [(MODULE, ProgramKind::Module), (COMPONENT, ProgramKind::Component)] {
            assert_eq!(program_kind(prefix), Some(kind));
            assert_eq!(check(&MediaType::WASM, prefix), Ok(()));
            assert!(matches!(check(&MediaType::MARKDOWN, prefix), Err(ProgramFault::HiddenWasm { .. })));
        }
        for prefix in [&b""[..], b"\0asm", b"\0asm\x02\0\0\0", b"(module)"] {
            assert_eq!(check(&MediaType::WASM, prefix), Err(ProgramFault::NotWasm));
        }
    }

    #[test]
    fn native_and_precompiled_code_is_refused_under_every_media_type() {
        for (magic, _) in NATIVE {
            for media_type in [MediaType::WASM, MediaType::TEXT] {
                assert!(matches!(check(&media_type, magic), Err(ProgramFault::Native { .. })));
            }
        }
    }

    #[test]
    fn text_is_accepted() {
        for text in [&b""[..], b"M", b"MZ is a prefix", b"# Title", b"{}"] {
            assert_eq!(check(&MediaType::TEXT, text), Ok(()));
        }
    }
}
