//! Compiled code, loaded and cached between runs in a private folder. A file is used only if it carries a seal, made
//! with the folder's own key, over its name and every byte; any other file (damaged, foreign, or of another engine) is
//! ignored and replaced.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::OnceLock;

use toolcrib_component::Form;
use wasmtime::component::Component;
use wasmtime::{Engine, Module};

use crate::store::cache::{Cache, EntryKind, EntryName};
use crate::store::owner_only::{self, SharedAccess, TEMPORARY_PREFIX};

const KEY_FILE: &str = "key";
/// Version that compiled: another version may compile a program in another way.
const COMPILED_BY: &str = concat!("toolcrib ", env!("CARGO_PKG_VERSION"));
const SEAL_LEN: usize = blake3::OUT_LEN;

/// Compiled code of either form.
pub(super) enum Code {
    Component(Component),
    Module(Module),
}

/// Compiled code in a [`Cache`], with the key of its seals.
pub(super) struct CodeCache {
    cache: Cache,
    key: OnceLock<Option<[u8; blake3::KEY_LEN]>>,
}

impl CodeCache {
    pub(super) fn new(cache: Cache) -> Self {
        Self { cache, key: OnceLock::new() }
    }

    /// Returns the compiled program of this digest, if the cache contains one that it sealed itself for this engine.
    pub(super) fn get(&self, engine: &Engine, digest: &str, form: Form) -> Option<Code> {
        let name = name(engine, digest, form);
        let entry = self.cache.read(&name)?;
        let (seal, code) = entry.bytes.split_at_checked(SEAL_LEN)?;
        // The comparison takes constant time.
        if self.seal(&name, code)? != blake3::Hash::from_slice(seal).ok()? {
            return None;
        }
        let code = load(engine, code, form).ok()?;
        entry.mark_used();
        Some(code)
    }

    /// Stores the code of a program, whole or not at all. A cache that cannot be written only costs time.
    pub(super) fn put(&self, engine: &Engine, digest: &str, form: Form, code: &[u8]) {
        let name = name(engine, digest, form);
        let Some(seal) = self.seal(&name, code) else { return };
        let _ = self.cache.put(&name, &[seal.as_bytes(), code]);
    }

    fn seal(&self, name: &EntryName, code: &[u8]) -> Option<blake3::Hash> {
        let key = self.key.get_or_init(|| key(self.cache.path()).ok()).as_ref()?;
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(COMPILED_BY.as_bytes()).update(b"\0").update(name.as_str().as_bytes()).update(b"\0").update(code);
        Some(hasher.finalize())
    }
}

/// Loads compiled code in the form that it was compiled from. The bytes have one of three sources, and this program
/// made them in each: the engine of this process; a process of this program that the embedder started to compile,
/// through a pipe that only the two share; a sealed file.
#[expect(unsafe_code, reason = "machine code is loaded only where this program has made it: see above")]
pub(super) fn load(engine: &Engine, code: &[u8], form: Form) -> wasmtime::Result<Code> {
    // SAFETY: this program wrote these bytes after compiling them itself. The seal proves it for a file, and the
    // embedder is trusted for its compiler as for the rest of its process. The engine checks their version, target,
    // settings and form.
    unsafe {
        match form {
            Form::Component => Component::deserialize(engine, code).map(Code::Component),
            Form::Module => Module::deserialize(engine, code).map(Code::Module),
        }
    }
}

/// Returns the file name of a program for one engine and configuration. It contains the form, so that code that an
/// earlier version compiled from a core module is not found.
fn name(engine: &Engine, digest: &str, form: Form) -> EntryName {
    use std::hash::{Hash, Hasher};
    // The hash does not have to be cryptographic, because the seal is: it only separates engines, which `deserialize`
    // checks too.
    let mut hasher = std::hash::DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    let kind = match form {
        Form::Component => EntryKind::Component,
        Form::Module => EntryKind::Module,
    };
    EntryName::new(digest, hasher.finish(), kind)
}

/// Returns the folder's key, generated at first use. A folder or key that others can write is not trusted.
fn key(folder: &Path) -> io::Result<[u8; blake3::KEY_LEN]> {
    owner_only::create_folder(folder)?;
    let path = folder.join(KEY_FILE);
    if !path.exists() {
        let mut fresh = [0; blake3::KEY_LEN];
        getrandom::fill(&mut fresh).map_err(io::Error::other)?;
        let mut file = owner_only::temporary(folder, TEMPORARY_PREFIX)?;
        file.write_all(&fresh)?;
        // If another process was faster, its key is the folder's key.
        let _ = owner_only::persist_new(file, &path);
    }
    let mut file = owner_only::open(&path, SharedAccess::Read)?.ok_or(io::ErrorKind::NotFound)?;
    let mut key = [0; blake3::KEY_LEN];
    file.read_exact(&mut key)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shortest program of each form: its header alone.
    const PROGRAMS: [(Form, [u8; 8]); 2] =
        [(Form::Component, *b"\0asm\x0d\0\x01\0"), (Form::Module, *b"\0asm\x01\0\0\0")];

    #[test]
    fn code_of_one_form_is_never_loaded_as_the_other() {
        let engine = Engine::default();
        let folder = tempfile::tempdir().unwrap();
        let cache = CodeCache::new(Cache::folder(folder.path().join("cache")));
        for (form, program) in PROGRAMS {
            assert_eq!(Form::of(&program), form);
            let other = if form == Form::Module { Form::Component } else { Form::Module };
            let code = crate::sandbox::compiler::compiled(&engine, &program).unwrap();
            assert!(load(&engine, &code, form).is_ok() && load(&engine, &code, other).is_err());
            let digest = crate::source::digest(&program);
            cache.put(&engine, &digest, form, &code);
            assert!(cache.get(&engine, &digest, form).is_some());
            assert!(cache.get(&engine, &digest, other).is_none());
            // Nor if the file is renamed to the other form.
            let path = |form| cache.cache.path().join(name(&engine, &digest, form).as_str());
            std::fs::rename(path(form), path(other)).unwrap();
            assert!(cache.get(&engine, &digest, other).is_none());
        }
    }
}
