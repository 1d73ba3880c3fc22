//! Sign-in over HTTP at a scripted identity provider: the description of the server, people with their rights, refused tokens, mistakes
//! of the file, and declared tokens.

use std::fs;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use serde_json::{Value, json};

use super::http::{Server, token};
use crate::answering::{Answer, Request, Server as Provider};
use crate::crib::Crib;
use crate::servers::login::{Waiting, form};
use crate::servers::{crib as client_crib, install};

/// Address of the server for its clients, behind a balancer.
const PUBLIC: &str = "https://tools.example.com/mcp";

/// Identity provider whose only key is `k`.
struct Issuer {
    provider: Provider,
    key: Arc<Ed25519KeyPair>,
}

impl Issuer {
    fn start() -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let key = Arc::new(Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).unwrap());
        let provider = Provider::start();
        let uri = provider.uri();
        let metadata = json!({
            "issuer": uri, "jwks_uri": format!("{uri}/keys"), "authorization_endpoint": format!("{uri}/authorize"),
            "token_endpoint": format!("{uri}/token"), "registration_endpoint": format!("{uri}/register"),
            "code_challenge_methods_supported": ["S256"],
        });
        let x = URL_SAFE_NO_PAD.encode(key.public_key().as_ref());
        let keys = json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k", "use": "sig", "x": x}]});
        let provider = provider
            .on("GET", "/.well-known/openid-configuration", move |_| Answer::new(200).json(&metadata))
            .on("GET", "/keys", move |_| Answer::new(200).json(&keys));
        Self { provider, key }
    }

    /// Registers every client, and exchanges every code for a token of somebody for the resource that the client names.
    fn with_login(mut self) -> Self {
        let (key, uri) = (self.key.clone(), self.provider.uri());
        let exchange = move |request: &Request| {
            let asked = form(&String::from_utf8_lossy(&request.body));
            let claims = json!({"sub": "1", "groups": "ops", "scope": "tools:call", "aud": asked["resource"]});
            let token = signed(&key, &uri, &claims);
            Answer::new(200).json(json!({"access_token": token, "token_type": "Bearer", "expires_in": 300}))
        };
        let register = |_: &Request| Answer::new(201).json(json!({"client_id": "c"}));
        self.provider = self.provider.replies("/register", register).replies("/token", exchange);
        self
    }

    /// Issues a token with these claims besides those of every token, and returns its header.
    fn token(&self, claims: &Value) -> String {
        format!("authorization: Bearer {}\r\n", signed(&self.key, &self.provider.uri(), claims))
    }

    /// Writes the file of the sign-in, and the settings that name it.
    fn configure(&self, crib: &Crib, rules: &str) {
        let issuer =
            format!("[[issuers]]\nurl = \"{}\"\nlabel = \"corp\"\nname_claim = \"email\"\n", self.provider.uri());
        let scopes = "[scopes]\ncalls = \"tools:call\"\n";
        fs::write(crib.path("people.toml"), format!("{scopes}{issuer}{rules}")).unwrap();
        let settings =
            format!("[server]\nsign_in = \"people.toml\"\npublic_url = \"{PUBLIC}\"\nmetrics_by_token = true\n");
        fs::write(crib.path("server.toml"), settings).unwrap();
    }
}

fn signed(key: &Ed25519KeyPair, issuer: &str, claims: &Value) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut all = json!({"iss": issuer, "aud": PUBLIC, "iat": now, "exp": now + 300});
    all.as_object_mut().unwrap().extend(claims.as_object().unwrap().clone());
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(&json!({"alg": "EdDSA", "typ": "at+jwt", "kid": "k"})), part(&all));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(message.as_bytes()));
    format!("{message}.{signature}")
}

const RULES: &str = "
[[issuers.rules]]
claims = { groups = \"ops\" }
scopes = [\"calls\", \"metrics\"]
[[issuers.rules]]
claims = { groups = \"dev\" }
options = [\"--deny-tool=echo\"]
";

#[test]
fn people_sign_in_with_the_rights_of_their_claims() {
    let crib = Crib::with_guests(&["echo"]);
    let issuer = Issuer::start();
    issuer.configure(&crib, RULES);
    let server = Server::start(&crib, &["--config=server.toml"]);
    let challenge = |headers: &str| {
        let answer = server.list(headers);
        let line = answer.head.lines().find_map(|line| line.strip_prefix("www-authenticate: ")).unwrap_or_default();
        (answer.status, line.to_owned())
    };
    let place = "resource_metadata=\"https://tools.example.com/.well-known/oauth-protected-resource/mcp\"";
    assert_eq!(challenge(""), (401, format!("Bearer {place}, scope=\"tools:call\"")));
    assert!(server.list("").body.contains("sign in"));
    let figures = server.get("/metrics", "").head;
    assert!(figures.lines().any(|line| line == format!("www-authenticate: Bearer {place}")), "no scope: {figures}");
    let description = server.get("/.well-known/oauth-protected-resource/mcp", "").message();
    assert_eq!(description["resource"], PUBLIC);
    assert_eq!(description["authorization_servers"], json!([issuer.provider.uri()]));

    let person = |sub: &str, group: &str| json!({"sub": sub, "groups": [group], "email": format!("{group}@example.com"), "scope": "openid tools:call"});
    let (ops, dev) = (issuer.token(&person("1", "ops")), issuer.token(&person("2", "dev")));
    let call = |headers: &str| server.request("tools/call", json!({"name": "echo", "arguments": {"x": 1}}), headers);
    let ok = call(&ops);
    assert!(ok.status == 200 && ok.message()["result"]["isError"] == false, "{ok:?}");
    assert_eq!(call(&dev).message()["result"]["isError"], true, "its rule denies the tool");
    assert_eq!((server.get("/metrics", &ops).status, server.get("/metrics", &dev).status), (200, 403));
    let figures = server.get("/metrics", &ops).body;
    let is_of_ops = |line: &str| line.contains("token=\"corp/ops@example.com#") && line.ends_with("} 1");
    assert!(figures.lines().any(is_of_ops), "{figures}");
    let callers: Vec<_> = crib.records().iter().map(|record| record["caller"].to_string()).collect();
    assert!(callers.iter().any(|caller| caller.starts_with("\"corp/ops@example.com#")), "{callers:?}");

    // A conversation belongs to the person, with whatever token.
    let (session, _) = server.conversation(&ops).unwrap();
    let again = issuer.token(&with(&person("1", "ops"), "jti", json!("next")));
    let other = issuer.token(&with(&person("3", "ops"), "email", json!("ops@example.com")));
    let ping = |headers: &str| server.post(&json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}), headers).status;
    assert_eq!((ping(&format!("{session}{again}")), ping(&format!("{session}{other}"))), (200, 404));

    let expect = |claims: Value, status, part: &str| {
        let (found, text) = challenge(&issuer.token(&claims));
        assert!(found == status && text.contains(part), "{claims}: {found} {text}");
    };
    expect(with(&person("1", "ops"), "aud", json!("https://other.example.com")), 401, "error=\"invalid_token\"");
    expect(with(&person("1", "ops"), "exp", json!(1)), 401, "error_description=\"the token has expired\"");
    expect(
        with(&person("1", "ops"), "scope", json!("openid")),
        403,
        "error=\"insufficient_scope\", resource_metadata=",
    );
    expect(person("9", "guests"), 403, "");
    // Tokens of the server's own are accepted besides, and a changed file applies at once.
    let ada = token(&crib, "ada", &[]);
    assert_eq!(server.list(&ada).status, 200);
    issuer.configure(&crib, "[[issuers.rules]]\nclaims = { groups = \"dev\" }\n");
    assert_eq!((call(&ops).status, call(&dev).message()["result"]["isError"].clone()), (403, json!(false)));
    fs::remove_file(crib.path("people.toml")).unwrap();
    assert_eq!((call(&dev).status, server.list(&ada).status), (401, 200), "a missing file admits nobody");
}

fn with(claims: &Value, member: &str, to: Value) -> Value {
    let mut claims = claims.clone();
    claims[member] = to;
    claims
}

#[test]
fn the_client_of_this_program_signs_in_and_calls_a_tool() {
    let (crib, client) = (Crib::with_guests(&["echo"]), client_crib());
    let issuer = Issuer::start().with_login();
    issuer.configure(&crib, RULES);
    let server = Server::start(&crib, &["--sign-in=people.toml"]);
    let address = format!("http://{}/mcp", server.address);
    let waiting = Waiting::begin(&client, &address);
    assert_eq!((&*waiting.asked["resource"], &*waiting.asked["scope"]), (&*address, "tools:call"));
    assert_eq!(waiting.answer(&format!("code=x&state={}", waiting.asked["state"])), "200");
    let (code, messages) = waiting.end();
    assert_eq!(code, Some(0), "{messages}");
    install(&client, &address, &["--prefix=r_"]);
    let called = client.call("r_echo", &json!({"x": 1}), &[]);
    assert_eq!(called["receipt"]["outcome"], "ok", "{called}");
    let callers: Vec<_> = crib.records().iter().map(|record| record["caller"].to_string()).collect();
    assert!(callers.iter().any(|caller| caller.starts_with("\"corp/1: ")), "{callers:?}");
}

#[test]
fn mistakes_of_the_sign_in_stop_the_start_and_an_issuer_that_is_gone_does_not() {
    let crib = Crib::with_guests(&["echo"]);
    let fails = |flags: &[&str], reason: &str| {
        let ran = crib.run(&[&["mcp", "--http=127.0.0.1:0"], flags].concat());
        assert!(ran.code.is_some_and(|code| code > 0) && ran.stderr.contains(reason), "{flags:?}: {ran:?}");
    };
    fails(&["--sign-in=missing.toml"], "cannot read `missing.toml`");
    fs::write(crib.path("people.toml"), "[[issuers]]\nurl = \"http://login.example.com\"\n").unwrap();
    fails(&["--sign-in=people.toml"], "people.toml:2:7: `issuers[0].url`: expected an address");
    fails(&["--sign-in=people.toml", "--no-token"], "--no-token");
    fails(
        &["--sign-in=people.toml", "--public-url=http://tools.example.com/mcp"],
        "`http://` is for a loopback address",
    );
    let away = ["--http=0.0.0.0:0", "--host=tools.example.com", "--sign-in=people.toml"];
    let ran = crib.run(&[&["mcp"], &away[..]].concat());
    assert!(ran.stderr.contains("server.public_url"), "{ran:?}");
    fs::write(crib.path("toolcrib.toml"), "[server]\nsign_in = \"people.toml\"\n").unwrap();
    fails(&[], "a project cannot set this");
    fs::remove_file(crib.path("toolcrib.toml")).unwrap();

    let issuer = Issuer::start();
    issuer.configure(&crib, RULES);
    let held = issuer.token(&json!({"sub": "1", "groups": "ops", "scope": "tools:call"}));
    let checked = || {
        let ran = crib.run(&["doctor", "--config=server.toml", "--json"]);
        let findings: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:?}"));
        findings.into_iter().find(|finding| finding["check"] == "sign-in").unwrap_or_default()
    };
    let found = checked();
    assert!(found["status"] == "ok" && found["detail"].as_str().unwrap().ends_with(", 1 key"), "{found}");
    drop(issuer);
    let found = checked();
    assert!(found["status"] == "fail" && found["cure"].is_string(), "{found}");
    fs::rename(crib.path("people.toml"), crib.path("moved.toml")).unwrap();
    assert_eq!(checked()["status"], "fail");
    fs::rename(crib.path("moved.toml"), crib.path("people.toml")).unwrap();
    let server = Server::start(&crib, &["--config=server.toml"]);
    let answer = server.list(&held);
    assert!(answer.status == 503 && answer.body.contains("keys of the issuer cannot be read"), "{answer:?}");
}

#[test]
fn declared_tokens_are_accepted_with_their_rights() {
    let crib = Crib::with_guests(&["echo"]);
    let declare = |args: &[&str]| {
        let ran = crib.run(&[&["mcp", "token", "new"], args].concat());
        let (token, entry) = ran.stdout.split_once("\n\n").unwrap_or_else(|| panic!("{ran:?}"));
        (format!("authorization: Bearer {token}\r\n"), entry.to_owned())
    };
    let (ada, first) = declare(&["ada", "--declare", "--", "--deny-tool=echo"]);
    let (figures, second) = declare(&["figures", "--declare", "--scope=metrics", "--for=90d"]);
    assert_eq!(crib.run(&["mcp", "token", "list", "--json"]).stdout.trim(), "[]", "none is stored");
    fs::write(crib.path("tokens.toml"), format!("{first}\n{second}\n")).unwrap();
    let server = Server::start(&crib, &["--tokens=tokens.toml"]);
    let called = server.request("tools/call", json!({"name": "echo", "arguments": {}}), &ada);
    assert_eq!(called.message()["result"]["isError"], true, "its options deny the tool: {called:?}");
    assert_eq!((server.list(&ada).status, server.get("/metrics", &figures).status), (200, 200));
    assert_eq!((server.get("/metrics", &ada).status, server.list(&figures).status), (403, 403));
    fs::write(crib.path("tokens.toml"), &second).unwrap();
    assert_eq!((server.list(&ada).status, server.get("/metrics", &figures).status), (401, 200));
    fs::remove_file(crib.path("tokens.toml")).unwrap();
    assert_eq!(server.get("/metrics", &figures).status, 401, "a missing file declares nothing");
}
