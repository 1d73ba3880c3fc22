//! Owners and modes of the settings files of all folders.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::{set_mode, user_file, write_system, write_user};
use crate::crib::{Crib, Ran};
use crate::screen::Page;

/// Runs `toolcrib config` with a umask that takes all access of others away.
fn config_of_a_private_umask(crib: &Crib, arguments: &str) -> Ran {
    let program = crib.toolcrib(&[]);
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(format!("umask 077; exec \"$0\" config {arguments}")).arg(program.get_program());
    shell.env_clear().current_dir(crib.path(""));
    let variables = program.get_envs().filter_map(|(name, value)| Some((name, value?)));
    Ran::from(shell.envs(variables).output().unwrap())
}

#[test]
fn a_new_file_of_the_system_can_be_read_by_every_user_and_one_of_the_user_by_nobody_else() {
    let crib = Crib::new();
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(config_of_a_private_umask(&crib, "set --system model.name x").code, Some(0));
    assert_eq!((mode(&crib.path("home/etc/config.toml")), mode(&crib.path("home/etc"))), (0o644, 0o755));
    assert_eq!(config_of_a_private_umask(&crib, "set model.name x").code, Some(0));
    assert_eq!(mode(&user_file(&crib)), 0o600);
}

#[test]
fn a_file_of_the_system_that_a_group_can_replace_or_write_is_refused() {
    let page = Page::new();
    let crib = Crib::with_guests(&["echo"]);
    write_system(&crib, "[allow]\nmodel = true\n");
    let call = || page.run(&crib, &["call", "echo", "{}"]);
    assert_eq!(call().code, Some(0));
    let (file, folder) = (crib.path("home/etc/config.toml"), crib.path("home/etc"));
    for (path, mode) in [(&file, 0o664), (&file, 0o646), (&folder, 0o775), (&folder, 0o777)] {
        let before = path.metadata().unwrap().permissions();
        set_mode(path, mode);
        call();
        fs::set_permissions(path, before).unwrap();
    }
    // The folder that a link leads to counts too.
    fs::create_dir(crib.path("home/shared")).unwrap();
    fs::rename(&file, crib.path("home/shared/config.toml")).unwrap();
    crate::crib::link("../shared/config.toml", &file);
    set_mode(&crib.path("home/shared"), 0o775);
    call();
    // Only its owner can replace a file of a sticky folder.
    set_mode(&crib.path("home/shared"), 0o1777);
    assert_eq!(call().code, Some(0));
    write_user(&crib, "[allow]\nmodel = true\n");
    set_mode(&user_file(&crib), 0o664);
    assert_eq!(call().code, Some(0), "the group of a user's own file is mostly the user's own");
    page.matches("config/group");
}
