//! Files with secret keys: who may read them.

#![cfg(unix)]

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use crate::support::signer;
use tempfile::tempdir;
use toolcrib_signature::{
    Error,
    key::{Algorithm, Signer, read_key_file, write_key_file},
    limits::MAX_PART_BYTES,
};

#[test]
fn a_key_file_is_written_for_its_owner_alone_and_read_back() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("key.pem");
    let pem = signer(Algorithm::EcdsaP256).to_pem().unwrap();
    write_key_file(&path, pem.as_bytes()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    let read = read_key_file(&path).unwrap();
    assert_eq!(read.as_bytes(), pem.as_bytes());
    Signer::from_pem(read.as_bytes(), None).unwrap();
    assert!(!format!("{read:?}").contains("PRIVATE"));
}

#[test]
fn an_existing_file_is_never_replaced() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("key.pem");
    fs::write(&path, "something").unwrap();
    assert!(matches!(write_key_file(&path, b"key"), Err(Error::File { action: "write", .. })));
    assert_eq!(fs::read(&path).unwrap(), b"something");
    let link = folder.path().join("link.pem");
    symlink(folder.path().join("elsewhere"), &link).unwrap();
    assert!(write_key_file(&link, b"key").is_err(), "a link that leads nowhere is not followed");
    assert!(!folder.path().join("elsewhere").exists());
}

#[test]
fn each_permission_for_others_is_refused() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("key.pem");
    write_key_file(&path, b"key").unwrap();
    for bit in 0..6 {
        let mode = 0o600 | 1 << bit;
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let error = read_key_file(&path).unwrap_err();
        assert!(error.to_string().contains(&format!("its mode is {mode:04o}")), "{error}");
        // The handle is judged, so a private link or folder does not help.
        let link = folder.path().join(format!("link{bit}"));
        symlink(&path, &link).unwrap();
        assert!(matches!(read_key_file(&link), Err(Error::KeyFile { .. })));
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    read_key_file(&path).unwrap();
}

#[test]
fn a_file_of_another_user_is_refused() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("key.pem");
    write_key_file(&path, b"key").unwrap();
    // Only the superuser can give a file away; elsewhere the case cannot be made.
    if std::os::unix::fs::chown(&path, Some(12_345), None).is_ok() {
        let error = read_key_file(&path).unwrap_err();
        assert!(error.to_string().contains("it belongs to user 12345"), "{error}");
    }
}

#[test]
fn folders_pipes_devices_and_missing_files_are_refused_without_waiting() {
    let folder = tempdir().unwrap();
    assert!(matches!(read_key_file(folder.path()), Err(Error::KeyFile { .. })));
    assert!(matches!(read_key_file("/dev/zero".as_ref()), Err(Error::KeyFile { .. })));
    assert!(matches!(read_key_file(&folder.path().join("none")), Err(Error::File { action: "open", .. })));
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert!(matches!(read_key_file(&pipe), Err(Error::KeyFile { .. })));
}

#[test]
fn a_long_key_file_is_refused() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("key.pem");
    write_key_file(&path, &vec![b'k'; MAX_PART_BYTES]).unwrap();
    read_key_file(&path).unwrap();
    let long = vec![b'k'; MAX_PART_BYTES + 1];
    fs::write(&path, &long).unwrap();
    assert!(matches!(read_key_file(&path), Err(Error::Limit { .. })));
    assert!(matches!(write_key_file(&folder.path().join("other"), &long), Err(Error::Limit { .. })));
}
