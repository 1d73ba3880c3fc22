//! Credential files and helpers: what is found, what is kept, and what is refused.

use serde_json::{Value, json};
use toolcrib_registry::limits::{MAX_CREDENTIAL_FILE_BYTES, MAX_HELPER_TIME};
use toolcrib_registry::{Credential, CredentialError, CredentialStore, Reference, Secret};

use crate::auth::Stored;

async fn find(stored: &Stored, reference: &str) -> Result<Option<Credential>, CredentialError> {
    let reference: Reference = reference.parse().unwrap();
    stored.store().find(reference.repository()).await
}

fn password(username: &str, password: &str) -> Credential {
    Credential::password(username, Secret::new(password)).unwrap()
}

#[tokio::test]
async fn the_most_specific_entry_is_found() {
    let stored = Stored::new(
        &json!({ "auths": {
            "a.example": { "auth": "aG9zdDpw" },
            "a.example/team": { "auth": "dGVhbTpw" },
            "a.example/team/tool": { "auth": "dG9vbDpwOnE=" },
            "https://b.example/v1/": { "username": "u", "password": "p" },
            "https://index.docker.io/v1/": { "auth": "ZG9ja2VyOnAAAA==" },
            "c.example": {},
            "d.example": { "registrytoken": "t" },
        }})
        .to_string(),
    );
    for (reference, expected) in [
        ("a.example/x", Some(password("host", "p"))),
        ("a.example/teams", Some(password("host", "p"))),
        ("a.example/team/x/y", Some(password("team", "p"))),
        ("a.example/team/tool", Some(password("tool", "p:q"))),
        ("b.example/x", Some(password("u", "p"))),
        ("docker.io/x", Some(password("docker", "p"))),
        ("c.example/x", None),
        ("d.example/x", Some(Credential::RegistryToken(Secret::new("t")))),
        ("e.example/x", None),
        ("a.example:5000/x", None),
        ("xa.example/x", None),
    ] {
        assert_eq!(find(&stored, reference).await.unwrap(), expected, "{reference}");
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_an_error_and_shows_nothing() {
    let missing = CredentialStore::new(vec!["/nonexistent/config.json".into()], None, Default::default());
    let reference: Reference = "a.example/x".parse().unwrap();
    assert_eq!(missing.find(reference.repository()).await.unwrap(), None);
    for text in [
        "canary",
        "[]",
        r#"{"auths":{"a.example":{"auth":"canary"}}}"#,
        r#"{"auths":{"a.example":{"auth":"Y2FuYXJ5"}}}"#,
        r#"{"auths":{"a.example":{"auth":"YToKYg=="}}}"#,
        r#"{"auths":"canary"}"#,
    ] {
        let error = find(&Stored::new(text), "a.example/x").await.unwrap_err();
        assert!(!format!("{error} {error:?}").contains("anary"), "{error:?}");
    }
    let huge = Stored::new(&" ".repeat(MAX_CREDENTIAL_FILE_BYTES as usize + 1));
    let refused = find(&huge, "a.example/x").await;
    assert!(matches!(refused, Err(CredentialError::TooLarge { .. })), "{refused:?}");
    let folder = tempfile::tempdir().unwrap();
    let store = CredentialStore::new(vec![folder.path().to_owned()], None, Default::default());
    let refused = store.find(reference.repository()).await;
    assert!(matches!(refused, Err(CredentialError::NotAFile { .. } | CredentialError::File { .. })), "{refused:?}");
    let refused = store.save(reference.repository().registry(), &password("a", "b")).await;
    assert!(matches!(refused, Err(CredentialError::NoStore)), "{refused:?}");
}

#[test]
fn the_time_of_a_helper_has_an_upper_bound() {
    let mut store = CredentialStore::default();
    store.set_helper_time(MAX_HELPER_TIME * 2);
    assert!(format!("{store:?}").contains(&format!("{MAX_HELPER_TIME:?}")), "{store:?}");
}

#[tokio::test]
async fn variables_name_the_files_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let variables = |names: &[&str]| -> Vec<_> {
        names.iter().map(|name| ((*name).into(), folder.path().join(name).into_os_string())).collect()
    };
    let write = |path: &str, user: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = json!({ "auths": { "a.example": { "username": user, "password": "p" } } });
        std::fs::write(path, text.to_string()).unwrap();
    };
    write("HOME/.docker/config.json", "home");
    write("DOCKER_CONFIG/config.json", "docker");
    write("XDG_RUNTIME_DIR/containers/auth.json", "runtime");
    write("REGISTRY_AUTH_FILE", "file");
    let reference: Reference = "a.example/x".parse().unwrap();
    for (names, expected) in [
        (&["HOME"][..], "home"),
        (&["HOME", "DOCKER_CONFIG"], "docker"),
        (&["HOME", "DOCKER_CONFIG", "XDG_RUNTIME_DIR"], "runtime"),
        (&["HOME", "DOCKER_CONFIG", "XDG_RUNTIME_DIR", "REGISTRY_AUTH_FILE"], "file"),
    ] {
        let store = CredentialStore::from_variables(variables(names));
        assert_eq!(store.find(reference.repository()).await.unwrap(), Some(password(expected, "p")));
    }
    let relative = CredentialStore::from_variables([("HOME".into(), "relative".into())]);
    assert_eq!(relative.find(reference.repository()).await.unwrap(), None);
}

#[tokio::test]
async fn storing_keeps_other_content_and_the_file_private() {
    let stored = Stored::new(r#"{"z":{"b":1,"a":[true,null]},"auths":{"b.example":{"auth":"eDp5"}},"c":"d"}"#);
    let registry = "a.example:5000".parse().unwrap();
    stored.store().save(&registry, &password("u", "p")).await.unwrap();
    let value: Value = serde_json::from_slice(&std::fs::read(stored.path()).unwrap()).unwrap();
    let expected = json!({
        "z": { "b": 1, "a": [true, null] },
        "auths": { "b.example": { "auth": "eDp5" }, "a.example:5000": { "auth": "dTpw" } },
        "c": "d",
    });
    assert_eq!(value, expected);
    assert_eq!(find(&stored, "a.example:5000/x").await.unwrap(), Some(password("u", "p")));
    assert_eq!(std::fs::read_dir(stored.folder.path()).unwrap().count(), 1, "no temporary file is left");
    assert!(stored.store().erase(&registry).await.unwrap());
    assert_eq!(find(&stored, "a.example:5000/x").await.unwrap(), None);
    let broken = Stored::new("[]");
    assert!(broken.store().save(&registry, &password("u", "p")).await.is_err());
    assert_eq!(std::fs::read(broken.path()).unwrap(), b"[]", "a file that is not understood is not replaced");
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, Instant};

    use tokio::sync::{Mutex, MutexGuard};
    use toolcrib_registry::StoredIn;
    use toolcrib_registry::limits::MAX_ANSWER_BYTES;

    use super::*;

    /// A program cannot be started while another thread still has it open for writing, in a copy of this process.
    static ALONE: Mutex<()> = Mutex::const_new(());

    async fn with_helper(config: &str, script: &str) -> (Stored, MutexGuard<'static, ()>) {
        let guard = ALONE.lock().await;
        let stored = Stored::new(config);
        let program = stored.folder.path().join("docker-credential-test");
        std::fs::write(&program, format!("#!/bin/sh\ncd \"${{0%/*}}\"\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        (stored, guard)
    }

    const STORE: &str = r#"{"credsStore":"test"}"#;

    fn failed(result: &Result<Option<Credential>, CredentialError>) -> bool {
        matches!(result, Err(CredentialError::Helper { .. }))
    }

    #[tokio::test]
    async fn a_new_file_and_its_folder_are_for_the_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/.docker/config.json");
        let store = CredentialStore::new(vec![path.clone()], Some(path.clone()), Default::default());
        let registry = "a.example".parse().unwrap();
        let credential = Credential::identity_token(Secret::new("t")).unwrap();
        assert_eq!(store.save(&registry, &credential).await.unwrap(), StoredIn::File(path.clone()));
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let reference: Reference = "a.example/x".parse().unwrap();
        assert_eq!(store.find(reference.repository()).await.unwrap(), Some(credential));
    }

    #[tokio::test]
    async fn a_file_that_is_a_link_stays_a_link_and_a_pipe_does_not_block() {
        let stored = Stored::new("{}");
        let link = stored.folder.path().join("link.json");
        std::os::unix::fs::symlink(stored.path(), &link).unwrap();
        let store = CredentialStore::new(vec![link.clone()], Some(link.clone()), Default::default());
        store.save(&"a.example".parse().unwrap(), &password("u", "p")).await.unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert!(std::fs::read_to_string(stored.path()).unwrap().contains("a.example"));

        let pipe = stored.folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let store = CredentialStore::new(vec![pipe], None, Default::default());
        let reference: Reference = "a.example/x".parse().unwrap();
        let refused = store.find(reference.repository()).await;
        assert!(matches!(refused, Err(CredentialError::NotAFile { .. })), "{refused:?}");
    }

    #[tokio::test]
    async fn a_helper_is_asked_with_the_name_of_the_registry() {
        let script = r#"read server; echo "{\"ServerURL\":\"$server\",\"Username\":\"$1\",\"Secret\":\"$server\"}""#;
        let (stored, _alone) =
            with_helper(r#"{"credHelpers":{"a.example":"test"},"auths":{"b.example":{"auth":"eDp5"}}}"#, script).await;
        assert_eq!(find(&stored, "a.example/x").await.unwrap(), Some(password("get", "a.example")));
        assert_eq!(find(&stored, "b.example/x").await.unwrap(), Some(password("x", "y")));
    }

    #[tokio::test]
    async fn a_refresh_token_of_a_helper_is_recognised() {
        let (stored, _alone) = with_helper(STORE, r#"echo '{"Username":"<token>","Secret":"t"}'"#).await;
        assert_eq!(find(&stored, "a.example/x").await.unwrap(), Some(Credential::IdentityToken(Secret::new("t"))));
    }

    #[tokio::test]
    async fn a_helper_without_the_credential_leaves_the_file_to_decide() {
        let script = "echo 'credentials not found in native keychain'; exit 1";
        let (stored, _alone) =
            with_helper(r#"{"credsStore":"test","auths":{"a.example":{"auth":"eDp5"}}}"#, script).await;
        assert_eq!(find(&stored, "a.example/x").await.unwrap(), Some(password("x", "y")));
        assert_eq!(find(&stored, "b.example/x").await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_helper_that_misbehaves_is_stopped() {
        for script in
            ["echo canary; exit 1", "echo canary", "cat /dev/zero", "yes canary", r#"echo '{"Username":"u"}'"#]
        {
            let (stored, _alone) = with_helper(STORE, script).await;
            let result = find(&stored, "a.example/x").await;
            assert!(failed(&result), "{script}: {result:?}");
            assert!(!format!("{result:?}").contains("canary"));
        }
        let (stored, _alone) = with_helper(STORE, "exec sleep 100").await;
        let mut store = stored.store();
        store.set_helper_time(Duration::from_millis(200));
        let reference: Reference = "a.example/x".parse().unwrap();
        let start = Instant::now();
        assert!(failed(&store.find(reference.repository()).await));
        assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[tokio::test]
    async fn the_output_of_a_helper_has_an_exact_bound() {
        let script = format!("head -c {} /dev/zero", MAX_ANSWER_BYTES + 1);
        let (stored, _alone) = with_helper(STORE, &script).await;
        let error = find(&stored, "a.example/x").await.unwrap_err();
        assert!(error.to_string().ends_with("its output is too large"), "{error}");
    }

    #[tokio::test]
    async fn a_helper_name_is_no_path_and_no_helper_runs_from_elsewhere() {
        for name in ["../test", "test/../x", "-x y", "a.b", "a\\u0000", "ä", &"x".repeat(65)] {
            let stored = Stored::new(&format!(r#"{{"credsStore":"{name}"}}"#));
            let refused = find(&stored, "a.example/x").await;
            assert!(matches!(refused, Err(CredentialError::HelperName { .. })), "{name}: {refused:?}");
        }
        let refused = find(&Stored::new(r#"{"credsStore":"absent"}"#), "a.example/x").await;
        assert!(matches!(refused, Err(CredentialError::HelperNotFound { .. })), "{refused:?}");
        let (stored, _alone) = with_helper(STORE, "echo '{}'").await;
        let environment = toolcrib_registry::HelperEnvironment::new(":.:relative".into(), Vec::new());
        let store = CredentialStore::new(vec![stored.path()], None, environment);
        let reference: Reference = "a.example/x".parse().unwrap();
        let refused = store.find(reference.repository()).await;
        assert!(matches!(refused, Err(CredentialError::HelperNotFound { .. })), "{refused:?}");
    }

    #[tokio::test]
    async fn a_helper_stores_and_erases() {
        let (stored, _alone) = with_helper(STORE, r#"/bin/cat > "seen-$1""#).await;
        let registry = "a.example".parse().unwrap();
        let stored_in = stored.store().save(&registry, &password("u", "p\"q")).await.unwrap();
        assert_eq!(stored_in, StoredIn::Helper("test".to_owned()));
        let seen: Value =
            serde_json::from_slice(&std::fs::read(stored.folder.path().join("seen-store")).unwrap()).unwrap();
        assert_eq!(seen, json!({ "ServerURL": "a.example", "Username": "u", "Secret": "p\"q" }));
        let file: Value = serde_json::from_slice(&std::fs::read(stored.path()).unwrap()).unwrap();
        assert_eq!(file, json!({ "credsStore": "test", "auths": { "a.example": {} } }));
        assert!(stored.store().erase(&registry).await.unwrap());
        assert_eq!(std::fs::read(stored.folder.path().join("seen-erase")).unwrap(), b"a.example");
    }

    #[tokio::test]
    async fn a_helper_receives_only_the_variables_of_the_caller() {
        let (stored, _alone) = with_helper(STORE, r#"echo "{\"Username\":\"u$HOME\",\"Secret\":\"s$MINE\"}""#).await;
        let folder = stored.folder.path().into();
        let environment = toolcrib_registry::HelperEnvironment::new(folder, vec![("MINE".into(), "canary".into())]);
        assert!(!format!("{environment:?}").contains("canary"));
        let store = CredentialStore::new(vec![stored.path()], None, environment);
        let reference: Reference = "a.example/x".parse().unwrap();
        assert_eq!(store.find(reference.repository()).await.unwrap(), Some(password("u", "scanary")));
    }
}
