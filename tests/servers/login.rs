//! Logins by OAuth at a scripted provider: the answer of the browser, rotation, renewal, and tokens of another audience.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::answering::{Answer, Request, Server};
use crate::crib::Crib;

use super::{PATH, STATELESS, Script, address, crib, install};

/// State of a provider.
#[derive(Default)]
struct Provider {
    /// Number of issued tokens; the latest access token is `access-canary-N`.
    issued: u64,
    /// Seconds for which tokens hold.
    life: u64,
    challenge: String,
    /// Parameters of the requests to the token endpoint.
    requests: Vec<HashMap<String, String>>,
    /// `true` for tokens that the server does not accept.
    is_of_other_audience: bool,
    /// Only method of clients, which have a secret then.
    method: Option<&'static str>,
}

type Shared = Arc<Mutex<Provider>>;

pub(crate) fn form(text: &str) -> HashMap<String, String> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// Adds a provider to a server, whose script accepts its latest token.
fn with_provider(server: Server, script: &Script, provider: &Shared) -> Server {
    let uri = server.uri();
    let (resource, own) = (
        json!({ "resource": format!("{uri}{PATH}"), "authorization_servers": [uri],
        "scopes_supported": ["calls"] }),
        uri.clone(),
    );
    let mut metadata = json!({
        "issuer": uri,
        "authorization_endpoint": format!("{uri}/authorize"),
        "token_endpoint": format!("{uri}/token"),
        "registration_endpoint": format!("{uri}/register"),
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    });
    let method = provider.lock().unwrap().method;
    metadata["token_endpoint_auth_methods_supported"] = json!([method.unwrap_or("none")]);
    let (script, provider) = (script.clone(), provider.clone());
    let token = move |request: &Request| {
        let mut state = provider.lock().unwrap();
        let asked = form(&String::from_utf8_lossy(&request.body));
        let is_right = match asked["grant_type"].as_str() {
            "authorization_code" => {
                let proof = URL_SAFE_NO_PAD.encode(digest(&SHA256, asked["code_verifier"].as_bytes()));
                asked["code"] == "code-canary" && proof == state.challenge
            }
            _ => asked["refresh_token"] == format!("renewal-canary-{}", state.issued),
        };
        let is_right = is_right && asked["resource"] == format!("{own}{PATH}") && asked["client_id"] == "client-1";
        // The header holds `client-1:client-canary`.
        let secrets = (asked.get("client_secret").map(String::as_str), request.header("authorization"));
        let is_right = is_right
            && match method {
                None => secrets == (None, None),
                Some("client_secret_post") => secrets == (Some("client-canary"), None),
                Some(_) => secrets == (None, Some("Basic Y2xpZW50LTE6Y2xpZW50LWNhbmFyeQ==")),
            };
        state.requests.push(asked);
        if !is_right {
            return Answer::new(400).json(json!({ "error": "invalid_grant" }));
        }
        state.issued += 1;
        let number = state.issued;
        if !state.is_of_other_audience {
            script.change(|script| script.token = Some(format!("access-canary-{number}")));
        }
        Answer::new(200).json(json!({
            "access_token": format!("access-canary-{number}"),
            "refresh_token": format!("renewal-canary-{number}"),
            "token_type": "Bearer",
            "expires_in": state.life,
        }))
    };
    server
        .on("GET", "/.well-known/oauth-protected-resource/mcp", move |_| Answer::new(200).json(&resource))
        .on("GET", "/.well-known/oauth-authorization-server", move |_| Answer::new(200).json(&metadata))
        .replies("/register", move |request| {
            let asked = request.json();
            assert_eq!(
                (&asked["application_type"], &asked["token_endpoint_auth_method"]),
                (&json!("native"), &json!(method.unwrap_or("none")))
            );
            let secret = method.map(|_| "client-canary");
            Answer::new(201).json(json!({ "client_id": "client-1", "client_secret": secret }))
        })
        .replies("/token", token)
}

/// Login that waits for its answer.
pub(crate) struct Waiting {
    child: Child,
    errors: BufReader<std::process::ChildStderr>,
    /// Parameters of the address that a person opens.
    pub(crate) asked: HashMap<String, String>,
}

impl Waiting {
    pub(crate) fn begin(crib: &Crib, address: &str) -> Self {
        let mut command = crib.toolcrib(&["login", address]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut all = String::new();
        let asked = loop {
            let mut line = String::new();
            assert!(errors.read_line(&mut line).unwrap() > 0, "an address: {all}");
            all += &line;
            if let Some((_, query)) = line.trim().split_once("/authorize?") {
                break form(query);
            }
        };
        Self { child, errors, asked }
    }

    /// Sends an answer of a browser, and returns the status.
    pub(crate) fn answer(&self, query: &str) -> String {
        let address = self.asked["redirect_uri"].strip_prefix("http://").unwrap();
        let (host, path) = address.split_once('/').unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /{path}?{query} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    /// Waits for the end, and returns the exit code and the messages.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let mut text = String::new();
        self.errors.read_to_string(&mut text).unwrap();
        (self.child.wait().unwrap().code(), text)
    }
}

fn started() -> (Crib, Script, Shared, Server) {
    started_with(None)
}

fn started_with(method: Option<&'static str>) -> (Crib, Script, Shared, Server) {
    let (script, provider) = (Script::new(STATELESS), Shared::default());
    provider.lock().unwrap().method = method;
    script.change(|state| state.token = Some("none yet".to_owned()));
    provider.lock().unwrap().life = 3600;
    let server = script.on(Server::start());
    let server = with_provider(server, &script, &provider);
    (crib(), script, provider, server)
}

/// Logs in, with the answer of a browser.
fn log_in(crib: &Crib, server: &Server, provider: &Shared) -> (Option<i32>, String) {
    let waiting = Waiting::begin(crib, &address(server));
    provider.lock().unwrap().challenge = waiting.asked["code_challenge"].clone();
    let (state, issuer) = (&waiting.asked["state"], server.uri());
    assert_eq!((&*waiting.asked["resource"], &*waiting.asked["scope"]), (&*address(server), "calls"));
    assert_eq!(waiting.answer("code=code-canary&state=wrong"), "400", "another state does not end the wait");
    assert_eq!(waiting.answer(&format!("code=code-canary&state={state}&iss={issuer}")), "200");
    waiting.end()
}

#[test]
fn a_login_is_used_renewed_by_rotation_and_after_a_refusal_and_ended() {
    let (crib, script, provider, server) = started();
    let (code, messages) = log_in(&crib, &server, &provider);
    assert_eq!(code, Some(0), "{messages}");
    let address = address(&server);
    install(&crib, &address, &[]);
    let call = || crib.call("echo", &json!({"text": "a"}), &[]);
    let outcome = |called: &Value| called["receipt"]["outcome"].as_str().unwrap_or_default().to_owned();
    assert_eq!(outcome(&call()), "ok");
    assert_eq!(provider.lock().unwrap().issued, 1);
    // The server has revoked the token, and the next one ends at once.
    script.change(|state| state.token = Some("revoked".to_owned()));
    provider.lock().unwrap().life = 5;
    assert_eq!(outcome(&call()), "ok", "the call is made once more with a fresh token");
    assert_eq!(provider.lock().unwrap().issued, 2);
    provider.lock().unwrap().life = 3600;
    assert_eq!(outcome(&call()), "ok", "a token that ends is renewed before the call");
    assert_eq!(provider.lock().unwrap().issued, 3);
    let kinds: Vec<String> = provider.lock().unwrap().requests.iter().map(|one| one["grant_type"].clone()).collect();
    assert_eq!(kinds, ["authorization_code", "refresh_token", "refresh_token"]);
    // The provider has ended the grant.
    provider.lock().unwrap().issued = 40;
    script.change(|state| state.token = Some("revoked".to_owned()));
    let ended = call();
    assert_eq!(outcome(&ended), "denied", "{ended}");
    let doctor = crib.run(&["doctor", "--json"]);
    assert!(doctor.stdout.contains("toolcrib login http://127.0.0.1"), "{doctor:?}");
    let log: String = crib.logs().iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let logins = fs::read_to_string(crib.path("home/.local/state/toolcrib/logins.json")).unwrap();
    for text in [&messages, &log, &logins, &ended.to_string(), &doctor.stdout] {
        assert!(!text.contains("canary"), "{text}");
    }
    let secrets = crib.run(&["secret", "list"]);
    assert!(secrets.stdout.contains("-renewal"), "{secrets:?}");
    assert_eq!(crib.run(&["logout", &address]).code, Some(0));
    assert!(!crib.run(&["secret", "list"]).stdout.contains("mcp-"));
}

#[test]
fn the_secret_of_a_client_is_sent_where_the_provider_takes_it() {
    for method in ["client_secret_basic", "client_secret_post"] {
        let (crib, _script, provider, server) = started_with(Some(method));
        provider.lock().unwrap().life = 5;
        let (code, messages) = log_in(&crib, &server, &provider);
        assert_eq!(code, Some(0), "{method}: {messages}");
        install(&crib, &address(&server), &[]);
        assert_eq!(crib.outcome("echo", &json!({"text": "a"}), &[]), "ok", "{method}");
        assert!(provider.lock().unwrap().issued > 1, "{method}: the token ended at once");
    }
}

#[test]
fn a_login_with_a_wrong_answer_or_token_stores_nothing() {
    let (crib, _script, provider, server) = started();
    let nothing = || {
        assert!(!crib.path("home/.local/state/toolcrib/logins.json").exists());
        assert!(!crib.run(&["secret", "list"]).stdout.contains("mcp-"));
    };
    let waiting = Waiting::begin(&crib, &address(&server));
    let state = waiting.asked["state"].clone();
    assert_eq!(waiting.answer(&format!("code=code-canary&state={state}&iss=https://evil.example")), "200");
    let (code, messages) = waiting.end();
    assert!(code == Some(1) && messages.contains("another authorization server"), "{messages}");
    nothing();
    let waiting = Waiting::begin(&crib, &address(&server));
    let (state, issuer) = (waiting.asked["state"].clone(), server.uri());
    assert_eq!(waiting.answer(&format!("error=access_denied&state={state}&iss={issuer}")), "200");
    let (code, messages) = waiting.end();
    assert!(code == Some(1) && messages.contains("access_denied"), "{messages}");
    nothing();
    provider.lock().unwrap().is_of_other_audience = true;
    let (code, messages) = log_in(&crib, &server, &provider);
    assert!(code == Some(1) && messages.contains("refuses the token"), "{messages}");
    nothing();
}

#[test]
fn a_server_that_leads_to_other_hosts_or_without_proof_keys_is_refused() {
    let challenge = |metadata: &str| {
        Answer::new(401).header("www-authenticate", &format!("Bearer resource_metadata=\"{metadata}\""))
    };
    let first = Server::start();
    let (elsewhere, inside) = (challenge("https://evil.example/m"), challenge("https://10.0.0.1/m"));
    let other = json!({ "resource": "https://a.example/", "authorization_servers": ["https://a.example"] });
    let uri = first.uri();
    let weak =
        json!({ "issuer": uri, "authorization_endpoint": format!("{uri}/a"), "token_endpoint": format!("{uri}/t") });
    let mismatch = json!({ "issuer": "https://a.example", "code_challenge_methods_supported": ["S256"] });
    let mut documents = vec![weak, mismatch].into_iter();
    let server = first
        .replies("/elsewhere", move |_| elsewhere.clone())
        .replies("/inside", move |_| inside.clone())
        .replies("/other", |_| Answer::new(401))
        .replies("/plain", |_| Answer::new(401))
        .on("GET", "/.well-known/oauth-protected-resource/other", move |_| Answer::new(200).json(&other))
        .on("GET", "/.well-known/oauth-authorization-server", move |_| {
            Answer::new(200).json(documents.next().unwrap())
        });
    let crib = crib();
    for (path, words) in [
        ("/elsewhere", "metadata on another host"),
        ("/inside", "special address"),
        ("/other", "are for `https://a.example/`"),
        ("/plain", "PKCE"),
        ("/plain", "of the issuer `https://a.example`"),
    ] {
        let ran = crib.run(&["login", &format!("{}{path}", server.uri())]);
        assert!(ran.code == Some(1) && ran.stderr.contains(words), "{path}: {ran:?}");
    }
}
