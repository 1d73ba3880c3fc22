//! Error codes that preview 1 programs compare: the codes of a native system.

use super::*;

/// Address of the second path.
const OTHER: i32 = 0x400;

impl Guest {
    fn link(&mut self, old: &str, new: &str) -> Result<(), Errno> {
        self.put(TEXT, old.as_bytes());
        self.put(OTHER, new.as_bytes());
        let memory = &mut GuestMemory::Unshared(&mut self.memory);
        let (old, new) = (old.len() as i32, new.len() as i32);
        errno(now(abi::path_link(&mut self.host, memory, FOLDER, 0, TEXT, old, FOLDER, OTHER, new)))
    }

    fn symlink(&mut self, target: &str, new: &str) -> Result<(), Errno> {
        self.put(TEXT, target.as_bytes());
        self.put(OTHER, new.as_bytes());
        let memory = &mut GuestMemory::Unshared(&mut self.memory);
        let (target, new) = (target.len() as i32, new.len() as i32);
        errno(now(abi::path_symlink(&mut self.host, memory, TEXT, target, FOLDER, OTHER, new)))
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_new_name_that_ends_with_a_slash_has_the_code_of_the_entry_that_is_there() {
    let mut guest = Guest::new();
    fs::write(guest.path().join("file"), "").unwrap();
    fs::create_dir(guest.path().join("folder")).unwrap();
    std::os::unix::fs::symlink("absent", guest.path().join("dangling")).unwrap();
    for (name, code) in [
        ("new/", Errno::Noent),
        ("folder/", Errno::Exist),
        ("folder/new/", Errno::Noent),
        ("file/", Errno::Notdir),
        ("dangling/", Errno::Notdir),
    ] {
        assert_eq!(guest.link("file", name), Err(code), "link {name}");
        assert_eq!(guest.symlink("absent", name), Err(code), "symlink {name}");
    }
    for name in ["folder", "file"] {
        assert_eq!(guest.link("file", name), Err(Errno::Exist), "{name}");
    }
    assert_eq!(guest.link("file/", "new"), Err(Errno::Notdir));
    assert_eq!(guest.link("folder", "new"), Err(Errno::Perm));
    assert_eq!(guest.link("file", "new"), Ok(()));
}

#[test]
fn a_socket_function_distinguishes_a_closed_number_from_another_descriptor() {
    let mut guest = Guest::with(Limits::default(), false);
    let memory = &mut GuestMemory::Unshared(&mut guest.memory);
    for (fd, code) in [(0, Errno::Notsock), (1, Errno::Notsock), (3, Errno::Badf), (-1, Errno::Badf)] {
        assert_eq!(errno(abi::sock_shutdown(&mut guest.host, memory, fd, 1)), Err(code), "{fd}");
        assert_eq!(errno(abi::sock_accept(&mut guest.host, memory, fd, 0, RESULT)), Err(code), "{fd}");
    }
}

#[test]
fn a_folder_reports_no_right_that_programs_would_have_to_reduce() {
    let mut guest = Guest::new();
    let memory = &mut GuestMemory::Unshared(&mut guest.memory);
    assert_eq!(errno(now(abi::fd_fdstat_get(&mut guest.host, memory, FOLDER, RESULT))), Ok(()));
    let (base, inherited) = (guest.long(RESULT + 8), guest.long(RESULT + 16));
    let (truncates_by_path, truncates) = (1 << 19, 1 << 22);
    assert_eq!(base & (truncates_by_path | truncates), 0, "{base:b}");
    assert_ne!(inherited & truncates, 0, "{inherited:b}");
    let memory = &mut GuestMemory::Unshared(&mut guest.memory);
    let reduced = abi::fd_fdstat_set_rights(&mut guest.host, memory, FOLDER, 0, 0);
    assert_eq!(errno(reduced), Err(Errno::Notsup));
}
