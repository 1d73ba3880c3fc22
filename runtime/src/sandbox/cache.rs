//! Compiled code, loaded and cached between runs in a private folder. A file is used only if it carries a seal, made
//! with the folder's own key, over its name and every byte; any other file (damaged, foreign, or of another engine) is
//! ignored and replaced.
//!
//! The code is mapped from the file with the checked seal, and not copied, on systems that have paths for handles. A mapped file
//! must not change, and nobody changes this one: the program itself only replaces and removes files of the cache, which
//! leaves an open one as it is; no grant of a tool reaches the folder, by any path or link; the owner and the mode of the open
//! file let no other user write it; and only this machine changes the files of its file system. From any other file
//! system, such as a server's, the code is copied and the copy is checked. A process of the same user can read the key
//! in the folder of the file, so no seal would stop it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use toolcrib_component::Form;
use wasmtime::component::Component;
use wasmtime::{Engine, Module};

use crate::store::cache::{Cache, EntryKind, EntryName, OpenEntry};
use crate::store::owner_only::{self, SharedAccess, TEMPORARY_PREFIX};

const KEY_FILE: &str = "key";
/// Version that compiled: another version may compile a program in another way.
const COMPILED_BY: &str = concat!("toolcrib ", env!("CARGO_PKG_VERSION"));
const SEAL_LEN: usize = blake3::OUT_LEN;

/// Key of a folder's seals.
type Key = [u8; blake3::KEY_LEN];

/// Forms in which a program can be in the cache.
pub(super) const FORMS: [Form; 2] = [Form::Component, Form::Module];

/// Compiled code of either form.
pub(super) enum Code {
    Component(Component),
    Module(Module),
}

/// Imports that a program is linked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Imports {
    Tool,
    Interpreter,
}

/// Compiled code in a [`Cache`], with the key of its seals.
pub(super) struct CodeCache {
    cache: Cache,
    key: OnceLock<Key>,
}

impl CodeCache {
    pub(super) fn new(cache: Cache) -> Self {
        Self { cache, key: OnceLock::new() }
    }

    /// Returns the compiled program of this digest, if the cache contains one that it sealed itself for this engine: one that was
    /// linked with these imports, or that could not be linked.
    pub(super) fn get(&self, engine: &Engine, digest: &str, form: Form, imports: Imports) -> Option<Code> {
        self.get_by(engine, digest, form, imports, mapping::stable_path)
    }

    /// Returns the program like [`CodeCache::get`]. `stable_path` finds the path of a file that can be mapped.
    fn get_by(
        &self,
        engine: &Engine,
        digest: &str,
        form: Form,
        imports: Imports,
        stable_path: impl Fn(&File) -> Option<PathBuf>,
    ) -> Option<Code> {
        [Some(imports), None].into_iter().find_map(|linked| {
            let name = self.name(engine, digest, form, linked)?;
            let entry = self.cache.open(&name)?;
            let code = stable_path(entry.file()).and_then(|path| self.map(engine, &name, &entry, form, &path));
            // Without such a path, or from a file system whose files cannot be executed, the code is copied.
            let code = code.or_else(|| self.copy(engine, &name, &entry, form))?;
            entry.mark_used();
            Some(code)
        })
    }

    /// Returns `true` if there is an entry for a program of this digest that was linked with these imports. The seal is not
    /// checked: an entry that [`CodeCache::get`] then refuses is compiled again.
    pub(super) fn has_linked(&self, engine: &Engine, digest: &str, imports: Imports) -> bool {
        FORMS.into_iter().any(|form| {
            let entry = self.name(engine, digest, form, Some(imports)).and_then(|name| self.cache.open(&name));
            // An entry that is shorter than its seal is refused for certain.
            let entry = entry.filter(|entry| entry.len() > SEAL_LEN as u64);
            entry.inspect(OpenEntry::mark_used).is_some()
        })
    }

    /// Maps the code of an entry with a valid seal. It is hashed piece by piece, which touches less memory than a copy.
    fn map(&self, engine: &Engine, name: &EntryName, entry: &OpenEntry, form: Form, path: &Path) -> Option<Code> {
        let mut file = entry.rewound()?;
        let sealed = self.hash(name, file.take(entry.len().checked_sub(SEAL_LEN as u64)?))?;
        let mut seal = [0; SEAL_LEN];
        file.read_exact(&mut seal).ok()?;
        // The comparison takes constant time.
        if sealed != seal {
            return None;
        }
        load_file(engine, path, form).ok()
    }

    /// Copies the code of an entry with a valid seal.
    fn copy(&self, engine: &Engine, name: &EntryName, entry: &OpenEntry, form: Form) -> Option<Code> {
        let mut bytes = vec![0; usize::try_from(entry.len()).ok()?];
        entry.rewound()?.read_exact(&mut bytes).ok()?;
        let (code, seal) = bytes.split_last_chunk::<SEAL_LEN>()?;
        if self.hash(name, code)? != *seal {
            return None;
        }
        load(engine, code, form).ok()
    }

    /// Stores the code of a program, whole or not at all, with the imports that it was linked with, or none if it cannot be linked.
    /// A cache that cannot be written only costs time.
    pub(super) fn put(&self, engine: &Engine, digest: &str, form: Form, linked: Option<Imports>, code: &[u8]) {
        if self.create_key().is_err() {
            return;
        }
        let Some(name) = self.name(engine, digest, form, linked) else { return };
        let Some(seal) = self.hash(&name, code) else { return };
        let _ = self.cache.put(&name, &[code, seal.as_bytes()]);
    }

    /// Computes the seal of an entry's code.
    fn hash(&self, name: &EntryName, code: impl Read) -> Option<blake3::Hash> {
        let mut hasher = blake3::Hasher::new_keyed(self.key()?);
        hasher.update(COMPILED_BY.as_bytes()).update(b"\0").update(name.as_str().as_bytes()).update(b"\0");
        hasher.update_reader(code).ok()?;
        Some(hasher.finalize())
    }

    /// Returns the file name of a program for one version, engine, configuration and key, and for the imports that it was linked
    /// with; `None` without a key. It contains the form, so that code that an earlier version compiled from a core module is not
    /// found.
    fn name(&self, engine: &Engine, digest: &str, form: Form, linked: Option<Imports>) -> Option<EntryName> {
        use std::hash::{Hash, Hasher};
        // The hash does not have to be cryptographic, because the seal is: it only separates programs that were
        // compiled, linked or sealed differently. It contains a digest of the key, and so tells nothing about the key.
        let mut hasher = std::hash::DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        (COMPILED_BY, linked, blake3::keyed_hash(self.key()?, b"name").as_bytes()).hash(&mut hasher);
        let kind = match form {
            Form::Component => EntryKind::Component,
            Form::Module => EntryKind::Module,
        };
        Some(EntryName::new(digest, hasher.finish(), kind))
    }

    /// Returns the key of the folder; `None` if it has none that can be trusted.
    fn key(&self) -> Option<&Key> {
        if let (None, Ok(Some(key))) = (self.key.get(), read_key(self.cache.path())) {
            let _ = self.key.set(key);
        }
        self.key.get()
    }

    /// Generates the key of the folder at first use.
    fn create_key(&self) -> io::Result<()> {
        if self.key().is_none() {
            create_key(self.cache.path())?;
        }
        Ok(())
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

/// Maps compiled code from a file that this program made, under the conditions of [`load`].
#[expect(unsafe_code, reason = "machine code is mapped only where this program has made it, from a file that stays")]
fn load_file(engine: &Engine, path: &Path, form: Form) -> wasmtime::Result<Code> {
    // SAFETY: as in `load`, for the open file at this path, whose seal was checked. The documentation of the module explains
    // why the file stays as it is.
    unsafe {
        match form {
            Form::Component => Component::deserialize_file(engine, path).map(Code::Component),
            Form::Module => Module::deserialize_file(engine, path).map(Code::Module),
        }
    }
}

/// Paths that lead to open files.
#[cfg(target_os = "linux")]
mod mapping {
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::path::PathBuf;

    use rustix::fs::{FsWord, fstatfs};

    /// File systems on a disk or in the memory of this machine, by the number in `linux/magic.h` or in their own sources: ext4,
    /// XFS, Btrfs, tmpfs, F2FS, ZFS, bcachefs. Overlayfs is none of them: its layers can be on a server.
    const LOCAL: [FsWord; 7] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0xf2f5_2010, 0x2fc1_2fc1, 0xca45_1a4e];

    /// Returns a path to an open file, whatever is at its own path now; `None` if its file system is not known to be local.
    /// A server, or a process behind the file system, could change a file without writing to it here.
    pub(super) fn stable_path(file: &File) -> Option<PathBuf> {
        let system = fstatfs(file).ok()?.f_type;
        LOCAL.contains(&system).then(|| PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())))
    }
}

/// Other systems have no such paths.
#[cfg(not(target_os = "linux"))]
mod mapping {
    use std::fs::File;
    use std::path::PathBuf;

    pub(super) fn stable_path(_: &File) -> Option<PathBuf> {
        None
    }
}

/// Reads the key of a folder. A folder or key that others can write is not trusted.
fn read_key(folder: &Path) -> io::Result<Option<Key>> {
    if !owner_only::folder_exists(folder)? {
        return Ok(None);
    }
    let Some(mut file) = owner_only::open(&folder.join(KEY_FILE), SharedAccess::Read)? else { return Ok(None) };
    let mut key = [0; blake3::KEY_LEN];
    file.read_exact(&mut key)?;
    Ok(Some(key))
}

/// Generates a key for a folder without one. If another process is faster, its key is the folder's key.
fn create_key(folder: &Path) -> io::Result<()> {
    owner_only::create_folder(folder)?;
    let path = folder.join(KEY_FILE);
    if !path.exists() {
        let mut fresh = [0; blake3::KEY_LEN];
        getrandom::fill(&mut fresh).map_err(io::Error::other)?;
        let mut file = owner_only::temporary(folder, TEMPORARY_PREFIX)?;
        file.write_all(&fresh)?;
        let _ = owner_only::persist_new(file, &path);
    }
    Ok(())
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
            cache.put(&engine, &digest, form, Some(Imports::Tool), &code);
            assert!(cache.get(&engine, &digest, form, Imports::Tool).is_some());
            assert!(cache.get(&engine, &digest, other, Imports::Tool).is_none());
            // Nor if the file is renamed to the other form.
            let path = |form| {
                let name = cache.name(&engine, &digest, form, Some(Imports::Tool)).unwrap();
                cache.cache.path().join(name.as_str())
            };
            std::fs::rename(path(form), path(other)).unwrap();
            assert!(cache.get(&engine, &digest, other, Imports::Tool).is_none());
        }
    }

    #[test]
    fn code_is_found_as_linked_only_with_the_imports_that_it_was_linked_with() {
        let engine = Engine::default();
        for (form, program) in PROGRAMS {
            let folder = tempfile::tempdir().unwrap();
            let cache = CodeCache::new(Cache::folder(folder.path().join("cache")));
            let code = crate::sandbox::compiler::compiled(&engine, &program).unwrap();
            let digest = crate::source::digest(&program);
            let found = |imports| {
                (cache.get(&engine, &digest, form, imports).is_some(), cache.has_linked(&engine, &digest, imports))
            };
            assert_eq!([Imports::Tool, Imports::Interpreter].map(found), [(false, false); 2]);
            cache.put(&engine, &digest, form, Some(Imports::Interpreter), &code);
            assert_eq!([Imports::Tool, Imports::Interpreter].map(found), [(false, false), (true, true)]);
            cache.put(&engine, &digest, form, None, &code);
            assert_eq!([Imports::Tool, Imports::Interpreter].map(found), [(true, false), (true, true)]);
            cache.put(&engine, &digest, form, Some(Imports::Tool), &code);
            assert_eq!([Imports::Tool, Imports::Interpreter].map(found), [(true, true); 2]);
        }
    }

    #[test]
    fn an_entry_without_a_key_or_without_code_is_not_found() {
        let (engine, folder) = (Engine::default(), tempfile::tempdir().unwrap());
        let (cache, digest, path) = filled(&engine, folder.path());
        let is_found = || CodeCache::new(cache.cache.clone()).has_linked(&engine, &digest, Imports::Tool);
        assert!(is_found());
        let whole = std::fs::read(&path).unwrap();
        for len in [0, SEAL_LEN] {
            std::fs::write(&path, &whole[..len]).unwrap();
            assert!(!is_found(), "{len}");
        }
        std::fs::write(&path, &whole).unwrap();
        assert!(is_found());
        let key = cache.cache.path().join(KEY_FILE);
        std::fs::write(&key, "short").unwrap();
        assert!(!is_found());
        std::fs::remove_file(&key).unwrap();
        assert!(!is_found());
        create_key(cache.cache.path()).unwrap();
        assert!(!is_found(), "another key");
    }

    /// A cache with one compiled program, its digest and the path of its entry.
    fn filled(engine: &Engine, folder: &Path) -> (CodeCache, String, PathBuf) {
        let cache = CodeCache::new(Cache::folder(folder.join("cache")));
        let (form, program) = PROGRAMS[0];
        let code = crate::sandbox::compiler::compiled(engine, &program).unwrap();
        let digest = crate::source::digest(&program);
        cache.put(engine, &digest, form, Some(Imports::Tool), &code);
        let path = cache.cache.path().join(cache.name(engine, &digest, form, Some(Imports::Tool)).unwrap().as_str());
        (cache, digest, path)
    }

    #[test]
    #[cfg(unix)]
    fn an_entry_that_others_can_write_is_ignored() {
        use std::os::unix::fs::PermissionsExt;

        let (engine, folder) = (Engine::default(), tempfile::tempdir().unwrap());
        let (cache, digest, path) = filled(&engine, folder.path());
        for (mode, is_used) in [(0o600, true), (0o644, true), (0o666, false), (0o620, false), (0o602, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(cache.get(&engine, &digest, Form::Component, Imports::Tool).is_some(), is_used, "{mode:o}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_entry_of_another_user_is_ignored() {
        let (engine, folder) = (Engine::default(), tempfile::tempdir().unwrap());
        let (cache, digest, path) = filled(&engine, folder.path());
        match std::os::unix::fs::chown(&path, Some(65_534), None) {
            Ok(()) => assert!(cache.get(&engine, &digest, Form::Component, Imports::Tool).is_none()),
            // Only root can give a file away; to anybody else, a file of root is one of another user.
            Err(_) => assert!(owner_only::open(Path::new("/etc/passwd"), SharedAccess::Read).is_err()),
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn code_is_mapped_from_a_local_file_system_and_copied_from_any_other() {
        let (engine, folder) = (Engine::default(), tempfile::tempdir().unwrap());
        let (cache, digest, path) = filled(&engine, folder.path());
        let is_mapped = || std::fs::read_to_string("/proc/self/maps").unwrap().contains(path.to_str().unwrap());
        let copied = cache.get_by(&engine, &digest, Form::Component, Imports::Tool, |_| None);
        assert!(copied.is_some() && !is_mapped());
        let is_local = mapping::stable_path(&File::open(&path).unwrap()).is_some();
        let found = cache.get(&engine, &digest, Form::Component, Imports::Tool);
        assert_eq!((found.is_some(), is_mapped()), (true, is_local));
        assert!(mapping::stable_path(&File::open("/dev/shm").unwrap()).is_some(), "tmpfs");
        assert!(mapping::stable_path(&File::open("/proc/self/status").unwrap()).is_none(), "procfs");
    }

    #[test]
    fn a_damaged_or_truncated_entry_is_refused_mapped_and_copied() {
        let (engine, folder) = (Engine::default(), tempfile::tempdir().unwrap());
        let (cache, digest, path) = filled(&engine, folder.path());
        let (form, whole) = (Form::Component, std::fs::read(&path).unwrap());
        let name = cache.name(&engine, &digest, form, Some(Imports::Tool)).unwrap();
        let loaded = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let entry = cache.cache.open(&name).unwrap();
            [cache.map(&engine, &name, &entry, form, &path), cache.copy(&engine, &name, &entry, form)]
                .map(|code| code.is_some())
        };
        assert_eq!(loaded(&whole), [true; 2]);
        for at in [0, whole.len() / 2, whole.len() - SEAL_LEN - 1, whole.len() - SEAL_LEN, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            assert_eq!(loaded(&damaged), [false; 2], "{at}");
        }
        for len in [0, SEAL_LEN - 1, SEAL_LEN, whole.len() - SEAL_LEN, whole.len() - 1] {
            assert_eq!(loaded(&whole[..len]), [false; 2], "{len}");
        }
    }
}
