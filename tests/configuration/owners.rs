//! Owners and modes of the settings files of all folders.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{set_mode, user_file, write_system, write_user};
use crate::crib::Crib;

#[test]
fn a_file_of_the_system_that_a_group_can_replace_or_write_is_refused() {
    let crib = Crib::with_guests(&["echo"]);
    write_system(&crib, "[allow]\nmodel = true\n");
    let call = || crib.run(&["call", "echo", "{}"]);
    assert_eq!(call().code, Some(0));
    let (file, folder) = (crib.path("home/etc/config.toml"), crib.path("home/etc"));
    for (path, mode, reason) in [
        (&file, 0o664, "its group can write the file"),
        (&file, 0o646, "every user can write the file"),
        (&folder, 0o775, "its group can write the folder `"),
        (&folder, 0o777, "every user can write the folder `"),
    ] {
        let before = path.metadata().unwrap().permissions();
        set_mode(path, mode);
        let ran = call();
        assert!(ran.code == Some(1) && ran.stderr.contains(reason), "{ran:?}");
        fs::set_permissions(path, before).unwrap();
    }
    // The folder to which a link leads counts too.
    fs::create_dir(crib.path("home/shared")).unwrap();
    fs::rename(&file, crib.path("home/shared/config.toml")).unwrap();
    crate::crib::link("../shared/config.toml", &file);
    set_mode(&crib.path("home/shared"), 0o775);
    let ran = call();
    assert!(ran.code == Some(1) && ran.stderr.contains("its group can write the folder `"), "{ran:?}");
    // Only its owner can replace a file of a sticky folder.
    set_mode(&crib.path("home/shared"), 0o1777);
    assert_eq!(call().code, Some(0));
    write_user(&crib, "[allow]\nmodel = true\n");
    set_mode(&user_file(&crib), 0o664);
    assert_eq!(call().code, Some(0), "the group of a user's own file is mostly the user's own");
}
