//! Compiled code, loaded, and kept between runs in a private folder. A file counts only if it carries the seal of this folder's own
//! key over its name and every byte; anything else (damaged, foreign, of another engine) is ignored and made again.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use toolcrib_component::Form;
use wasmtime::component::Component;
use wasmtime::{Engine, Module};

use crate::owner_only;

const KEY_FILE: &str = "key";
/// Who compiled: another version may compile programs in another way.
const MADE_BY: &str = concat!("toolcrib ", env!("CARGO_PKG_VERSION"));
const SEAL: usize = blake3::OUT_LEN;

/// Compiled code of either form.
pub(super) enum Code {
    Component(Component),
    Module(Module),
}

pub(super) struct Cache {
    folder: PathBuf,
    key: OnceLock<Option<[u8; blake3::KEY_LEN]>>,
}

impl Cache {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, key: OnceLock::new() }
    }

    /// The compiled program of this digest, if the cache holds one that it sealed itself for this very engine.
    pub(super) fn get(&self, engine: &Engine, digest: &str, form: Form) -> Option<Code> {
        let name = name(engine, digest, form);
        let file = fs::read(self.folder.join(&name)).ok()?;
        let (seal, code) = file.split_at_checked(SEAL)?;
        // The comparison takes the same time wherever the two differ.
        if self.seal(&name, code)? != blake3::Hash::from_slice(seal).ok()? {
            return None;
        }
        load(engine, code, form).ok()
    }

    /// Keeps the code of a program that was loaded from it, whole or not at all. A cache that cannot be written costs
    /// time and nothing else.
    pub(super) fn put(&self, engine: &Engine, digest: &str, form: Form, code: &[u8]) {
        let name = name(engine, digest, form);
        let Some(seal) = self.seal(&name, code) else { return };
        let _ = write_whole(&self.folder, &name, &[seal.as_bytes(), code]);
    }

    fn seal(&self, name: &str, code: &[u8]) -> Option<blake3::Hash> {
        let key = self.key.get_or_init(|| key(&self.folder).ok()).as_ref()?;
        let mut hasher = blake3::Hasher::new_keyed(key);
        hasher.update(MADE_BY.as_bytes()).update(b"\0").update(name.as_bytes()).update(b"\0").update(code);
        Some(hasher.finalize())
    }
}

/// The program of compiled code, of the form that it was compiled from. Its bytes come from three places alone, in each of which this very program made them:
/// the engine of this process, a process of this program that the embedder started to compile, and which wrote them into a
/// pipe that both of them alone hold, and a file under the seal.
#[expect(unsafe_code, reason = "machine code is loaded only where this program has made it: see above")]
pub(super) fn load(engine: &Engine, code: &[u8], form: Form) -> wasmtime::Result<Code> {
    // SAFETY: this program wrote these bytes after compiling them itself; the seal proves it of a file, and the embedder
    // vouches for his compiler as for the rest of his process. The engine checks their version, target, settings and form.
    unsafe {
        match form {
            Form::Component => Component::deserialize(engine, code).map(Code::Component),
            Form::Module => Module::deserialize(engine, code).map(Code::Module),
        }
    }
}

/// One file for each program, engine and configuration. The form stands in it, so that what an earlier version made of a
/// core module is not found.
fn name(engine: &Engine, digest: &str, form: Form) -> String {
    use std::hash::{Hash, Hasher};
    // The hash need not resist anybody, for the seal does; it only keeps engines apart, which `deserialize` checks too.
    let mut hasher = std::hash::DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    let form = match form {
        Form::Component => "",
        Form::Module => "-module",
    };
    format!("{}-{:016x}{form}.cwasm", digest.trim_start_matches("sha256:"), hasher.finish())
}

/// The folder's key, made at first use. A folder or key that others may write is not trusted.
fn key(folder: &Path) -> io::Result<[u8; blake3::KEY_LEN]> {
    owner_only::make_folder(folder)?;
    owner_only::refuse_shared(folder)?;
    let path = folder.join(KEY_FILE);
    if !path.exists() {
        let mut fresh = [0; blake3::KEY_LEN];
        getrandom::fill(&mut fresh).map_err(io::Error::other)?;
        let mut file = owner_only::unfinished(folder)?;
        file.write_all(&fresh)?;
        // Where another process was faster, its key is the folder's key.
        let _ = file.persist_noclobber(&path);
    }
    owner_only::refuse_shared(&path)?;
    let mut key = [0; blake3::KEY_LEN];
    File::open(&path)?.read_exact(&mut key)?;
    Ok(key)
}

fn write_whole(folder: &Path, name: &str, parts: &[&[u8]]) -> io::Result<()> {
    let mut file = owner_only::unfinished(folder)?;
    for part in parts {
        file.write_all(part)?;
    }
    file.persist(folder.join(name))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shortest program of each form: its header alone.
    const PROGRAMS: [(Form, [u8; 8]); 2] =
        [(Form::Component, *b"\0asm\x0d\0\x01\0"), (Form::Module, *b"\0asm\x01\0\0\0")];

    #[test]
    fn code_of_one_form_is_never_loaded_as_the_other() {
        let engine = Engine::default();
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().join("cache"));
        for (form, program) in PROGRAMS {
            assert_eq!(Form::of(&program), form);
            let other = if form == Form::Module { Form::Component } else { Form::Module };
            let code = crate::sandbox::compiler::compiled(&engine, &program).unwrap();
            assert!(load(&engine, &code, form).is_ok() && load(&engine, &code, other).is_err());
            let digest = crate::source::digest(&program);
            cache.put(&engine, &digest, form, &code);
            assert!(cache.get(&engine, &digest, form).is_some());
            assert!(cache.get(&engine, &digest, other).is_none());
            // Nor where somebody gives the file the other's name.
            let kept = |form| cache.folder.join(name(&engine, &digest, form));
            fs::rename(kept(form), kept(other)).unwrap();
            assert!(cache.get(&engine, &digest, other).is_none());
        }
    }
}
