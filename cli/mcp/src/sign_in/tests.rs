//! Tests with an issuer on this machine: hostile tokens, changed keys and files, and an issuer that is gone.

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use futures::FutureExt;
use ring::hmac;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::fault::TokenFault::{
    Algorithm, Audience, Bound, Claims, Early, Expired, Extension, Issuer as OtherIssuer, Key, Kind, Malformed,
    Signature,
};
use super::token::{MAX_SKEW, MAX_TOKEN};
use super::*;

const SERVER: &str = "https://tools.example.com/mcp";

/// Key of an issuer with its identifier.
enum Pair {
    Ed(&'static str, Ed25519KeyPair),
    P256(&'static str, EcdsaKeyPair),
}

impl Pair {
    fn ed(id: &'static str) -> Self {
        let key = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed(id, Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap())
    }

    fn p256(id: &'static str) -> Self {
        let (kind, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let key = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        Self::P256(id, EcdsaKeyPair::from_pkcs8(kind, key.as_ref(), &random).unwrap())
    }

    fn public(&self) -> Value {
        match self {
            Self::Ed(id, key) => {
                json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": encode(key.public_key().as_ref())})
            }
            Self::P256(id, key) => {
                let (x, y) = key.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "kid": id, "x": encode(x), "y": encode(y)})
            }
        }
    }

    fn head(&self) -> Value {
        match self {
            Self::Ed(id, _) => json!({"alg": "EdDSA", "typ": "at+jwt", "kid": id}),
            Self::P256(id, _) => json!({"alg": "ES256", "typ": "at+jwt", "kid": id}),
        }
    }

    fn sign(&self, message: &str) -> Vec<u8> {
        match self {
            Self::Ed(_, key) => key.sign(message.as_bytes()).as_ref().to_vec(),
            Self::P256(_, key) => key.sign(&SystemRandom::new(), message.as_bytes()).unwrap().as_ref().to_vec(),
        }
    }

    /// A token with this head and these claims, as texts.
    fn raw(&self, head: &str, claims: &str) -> String {
        let message = format!("{}.{}", encode(head.as_bytes()), encode(claims.as_bytes()));
        let signature = encode(&self.sign(&message));
        format!("{message}.{signature}")
    }

    fn token(&self, claims: &Value) -> String {
        self.raw(&self.head().to_string(), &claims.to_string())
    }
}

fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A value with another member; `null` removes it.
fn with(value: &Value, member: &str, to: Value) -> Value {
    let mut value = value.clone();
    match to {
        Value::Null => drop(value.as_object_mut().unwrap().remove(member)),
        to => value[member] = to,
    }
    value
}

/// Issuer on this machine.
struct Issuer {
    url: String,
    keys: Arc<Mutex<Value>>,
    readings: Arc<AtomicUsize>,
    is_gone: Arc<AtomicBool>,
    folder: tempfile::TempDir,
}

impl Issuer {
    async fn start(keys: &[&Pair]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let issuer = Self {
            url: url.clone(),
            keys: Arc::default(),
            readings: Arc::default(),
            is_gone: Arc::default(),
            folder: tempfile::tempdir().unwrap(),
        };
        issuer.publish(keys);
        let (keys, readings, is_gone) = (issuer.keys.clone(), issuer.readings.clone(), issuer.is_gone.clone());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 4096];
                let length = stream.read(&mut request).await.unwrap_or_default();
                if is_gone.load(SeqCst) {
                    continue;
                }
                let body = match request[..length].starts_with(b"GET /keys ") {
                    true => {
                        readings.fetch_add(1, SeqCst);
                        keys.lock().unwrap().to_string()
                    }
                    false => json!({"issuer": url, "jwks_uri": format!("{url}/keys")}).to_string(),
                };
                let length = body.len();
                let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            }
        });
        issuer
    }

    fn publish(&self, keys: &[&Pair]) {
        *self.keys.lock().unwrap() = json!({"keys": keys.iter().map(|key| key.public()).collect::<Vec<_>>()});
    }

    fn readings(&self) -> usize {
        self.readings.load(SeqCst)
    }

    fn write(&self, scopes: &str, rules: &str) -> PathBuf {
        let path = self.folder.path().join("sign-in.toml");
        let text = format!(
            "{scopes}\n[[issuers]]\nurl = \"{}\"\nlabel = \"corp\"\nname_claim = \"email\"\nrules = [{rules}]\n",
            self.url
        );
        fs::write(&path, text).unwrap();
        path
    }

    fn sign_in(&self, times: KeyTimes) -> SignIn {
        let path = self.write("", "{ claims = {} }");
        SignIn::with_times(&path, SERVER.parse().unwrap(), times).unwrap()
    }

    fn claims(&self) -> Value {
        json!({
            "iss": self.url, "sub": "7", "aud": [SERVER, "https://other.example.com"], "email": "ada@example.com",
            "iat": now(), "nbf": now(), "exp": now() + 300, "jti": "1", "client_id": "c",
        })
    }
}

async fn refused(sign_in: &SignIn, token: &str) -> Option<SignInFault> {
    sign_in.person(token, TokenScope::Calls).await.err()
}

#[tokio::test]
async fn hostile_tokens_are_refused() {
    let (ed, ec, old, stranger) = (Pair::ed("ed"), Pair::p256("ec"), Pair::ed("old"), Pair::ed("ed"));
    let issuer = Issuer::start(&[&ed, &ec]).await;
    let sign_in = issuer.sign_in(KeyTimes { pause: Duration::from_hours(1), ..KeyTimes::default() });
    let (head, claims) = (ed.head(), issuer.claims());
    for good in [
        ed.token(&claims),
        ec.token(&claims),
        ed.token(&with(&claims, "aud", json!(SERVER))),
        ed.token(&with(&claims, "exp", json!(now() - u64::from(MAX_SKEW) / 2))),
        ed.token(&with(&claims, "nbf", json!(now() + u64::from(MAX_SKEW) / 2))),
        ed.raw(&with(&head, "typ", json!("JWT")).to_string(), &claims.to_string()),
        ed.raw(r#"{"alg":"EdDSA","kid":"ed"}"#, &claims.to_string()),
        ed.raw(&with(&head, "typ", json!("application/AT+JWT")).to_string(), &claims.to_string()),
    ] {
        assert_eq!(refused(&sign_in, &good).await, None, "{good}");
    }
    let late = u64::from(MAX_SKEW) + 30;
    let claim = |member: &str, to: Value| ed.token(&with(&claims, member, to));
    let headed = |member: &str, to: Value| ed.raw(&with(&head, member, to).to_string(), &claims.to_string());
    let good = ed.token(&claims);
    let parts: Vec<&str> = good.split('.').collect();
    let unsigned = format!("{}.{}.", encode(br#"{"alg":"none","typ":"at+jwt"}"#), parts[1]);
    let secret = {
        // The public key as the secret of HMAC: what a library without fixed algorithms accepts.
        let message = format!("{}.{}", encode(br#"{"alg":"HS256","typ":"at+jwt","kid":"ed"}"#), parts[1]);
        let Pair::Ed(_, key) = &ed else { unreachable!() };
        let key = hmac::Key::new(hmac::HMAC_SHA256, key.public_key().as_ref());
        format!("{message}.{}", encode(hmac::sign(&key, message.as_bytes()).as_ref()))
    };
    let changed =
        format!("{}.{}.{}", parts[0], encode(with(&claims, "sub", json!("8")).to_string().as_bytes()), parts[2]);
    let twice = claims.to_string().replacen("\"sub\":\"7\"", "\"sub\":\"7\",\"sub\":\"8\"", 1);
    let embedded = with(&with(&head, "jwk", stranger.public()), "kid", json!("stranger"));
    let far = with(&head, "jku", json!("https://evil.example.com/keys"));
    for (name, token, fault) in [
        ("no token", "x".to_owned(), Malformed),
        ("two parts", format!("{}.{}", parts[0], parts[1]), Malformed),
        ("four parts", format!("{good}.x"), Malformed),
        ("five parts of encryption", format!("{good}.x.y"), Malformed),
        ("over the size", claim("pad", json!("x".repeat(MAX_TOKEN))), Malformed),
        ("padding", format!("{}=.{}.{}", parts[0], parts[1], parts[2]), Malformed),
        ("a claim twice", ed.raw(&head.to_string(), &twice), Malformed),
        (
            "deep claims",
            claim("x", serde_json::from_str(&format!("{}{}", "[".repeat(60), "]".repeat(60))).unwrap()),
            Malformed,
        ),
        ("claims that are no object", ed.raw(&head.to_string(), "[]"), Malformed),
        ("none", unsigned, Algorithm),
        ("NoNe", headed("alg", json!("NoNe")), Algorithm),
        ("HMAC with the public key", secret, Algorithm),
        ("another algorithm of the key", headed("alg", json!("ES256")), Key),
        ("RSA with an Ed25519 key", headed("alg", json!("RS256")), Key),
        ("a typed ID token", headed("typ", json!("id+jwt")), Kind),
        ("a typed logout token", headed("typ", json!("logout+jwt")), Kind),
        ("a type that is no text", headed("typ", json!(7)), Kind),
        ("a critical extension", headed("crit", json!(["exp"])), Extension),
        ("a detached payload", headed("b64", json!(false)), Extension),
        ("a nested token", headed("cty", json!("JWT")), Extension),
        ("compression", headed("zip", json!("DEF")), Extension),
        ("an unknown key", headed("kid", json!("unknown")), Key),
        ("no key among several", ed.raw(r#"{"alg":"EdDSA","typ":"at+jwt","kid":1}"#, &claims.to_string()), Malformed),
        ("a withdrawn key", old.token(&claims), Key),
        ("a key of its own", stranger.raw(&embedded.to_string(), &claims.to_string()), Key),
        ("keys of its own", stranger.raw(&far.to_string(), &claims.to_string()), Signature),
        ("another key with the same name", stranger.token(&claims), Signature),
        ("changed claims", changed, Signature),
        ("an empty signature", format!("{}.{}.", parts[0], parts[1]), Signature),
        ("another issuer", claim("iss", json!("https://evil.example.com")), OtherIssuer),
        ("an issuer with a slash", claim("iss", json!(format!("{}/", issuer.url))), OtherIssuer),
        ("several issuers", claim("iss", json!([issuer.url])), Claims),
        ("no issuer", claim("iss", Value::Null), Claims),
        ("a replay of another server's token", claim("aud", json!("https://other.example.com/mcp")), Audience),
        ("an audience with a slash", claim("aud", json!(format!("{SERVER}/"))), Audience),
        ("the audience of a client", claim("aud", json!(["c"])), Audience),
        ("no audience", claim("aud", Value::Null), Audience),
        ("an empty audience", claim("aud", json!([])), Audience),
        ("a malformed audience", claim("aud", json!({"0": SERVER})), Audience),
        ("a replay after the end", claim("exp", json!(now() - late)), Expired),
        ("no end", claim("exp", Value::Null), Claims),
        ("an end as text", claim("exp", json!((now() + 300).to_string())), Claims),
        ("an end beyond all time", claim("exp", json!(1e18)), Claims),
        ("a token that is not valid yet", claim("nbf", json!(now() + late)), Early),
        ("a begin as text", claim("nbf", json!("1")), Claims),
        ("issued in the future", claim("iat", json!(now() + late)), Early),
        ("issued as text", claim("iat", json!("1")), Claims),
        ("no subject", claim("sub", Value::Null), Claims),
        ("an empty subject", claim("sub", json!("")), Claims),
        ("a subject that is no text", claim("sub", json!(7)), Claims),
        ("a subject with a line break", claim("sub", json!("7\nadmin")), Claims),
        ("a token bound to a key", claim("cnf", json!({"jkt": "x"})), Bound),
    ] {
        assert_eq!(refused(&sign_in, &token).await, Some(SignInFault::Token(fault)), "{name}: {token}");
    }
    assert_eq!(issuer.readings(), 1, "invented keys cause no further reading at once");
}

#[tokio::test]
async fn tokens_of_another_purpose_for_the_same_audience_are_refused() {
    let key = Pair::ed("a");
    let issuer = Issuer::start(&[&key]).await;
    let sign_in = issuer.sign_in(KeyTimes::default());
    let base = with(&issuer.claims(), "aud", json!(SERVER));
    let id = with(&with(&base, "auth_time", json!(now())), "azp", json!(SERVER));
    let logout = json!({"http://schemas.openid.net/event/backchannel-logout": {}});
    let logout = with(&with(&base, "sid", json!("9")), "events", logout);
    let hashes =
        ["nonce", "at_hash", "c_hash", "s_hash"].map(|claim| with(&id, claim, json!("77QmUPtjPfzWtF2AnpK9RQ")));
    for kind in [r#""typ":"JWT","#, ""] {
        let head = format!(r#"{{"alg":"EdDSA",{kind}"kid":"a"}}"#);
        for claims in hashes.iter().chain([&logout]) {
            let token = key.raw(&head, &claims.to_string());
            assert_eq!(refused(&sign_in, &token).await, Some(SignInFault::Token(Kind)), "{head}: {claims}");
        }
        assert_eq!(refused(&sign_in, &key.raw(&head, &base.to_string())).await, None, "{head}");
    }
    let access = with(&base, "nonce", json!("x"));
    assert_eq!(refused(&sign_in, &key.token(&access)).await, None, "the type states an access token");
}

#[tokio::test]
async fn a_kept_key_is_used_while_the_keys_are_read_again() {
    let key = Pair::ed("a");
    let issuer = Issuer::start(&[&key]).await;
    let times = KeyTimes { fresh: Duration::ZERO, pause: Duration::ZERO, ..KeyTimes::default() };
    let keys = IssuerKeys::new(issuer.url.parse().unwrap(), times).unwrap();
    let find = |id: &'static str| {
        let keys = keys.clone();
        async move { keys.key(Some(id), jsonwebtoken::Algorithm::EdDSA).await.map(drop) }
    };
    assert_eq!(find("a").now_or_never(), None, "nothing is kept: the request waits");
    keys.refresh().await;
    let before = issuer.readings();
    // The reading begins only after all of these.
    for _ in 0..20 {
        assert_eq!(find("a").now_or_never(), Some(Ok(())), "an old key that fits is used at once");
    }
    assert_eq!(find("b").await, Err(SignInFault::Token(Key)), "a key that is not kept waits for the reading");
    assert_eq!(issuer.readings(), before + 1, "20 requests cause one reading beside them");
}

#[tokio::test]
async fn new_keys_are_found_and_withdrawn_ones_are_forgotten() {
    let (old, new) = (Pair::ed("old"), Pair::p256("new"));
    let issuer = Issuer::start(&[&old]).await;
    let times = KeyTimes { fresh: Duration::ZERO, pause: Duration::ZERO, ..KeyTimes::default() };
    let (eager, lazy) =
        (issuer.sign_in(times), issuer.sign_in(KeyTimes { pause: Duration::ZERO, ..KeyTimes::default() }));
    let claims = issuer.claims();
    for sign_in in [&eager, &lazy] {
        assert_eq!(refused(sign_in, &old.token(&claims)).await, None);
    }
    issuer.publish(&[&new]);
    let readings = issuer.readings();
    assert_eq!(refused(&lazy, &old.token(&claims)).await, None, "a fresh key is not read again");
    assert_eq!(issuer.readings(), readings);
    for sign_in in [&lazy, &eager] {
        assert_eq!(refused(sign_in, &new.token(&claims)).await, None, "an unknown key causes a reading");
        assert_eq!(refused(sign_in, &old.token(&claims)).await, Some(SignInFault::Token(Key)));
    }
}

#[tokio::test]
async fn requests_at_once_cause_one_reading() {
    let key = Pair::ed("a");
    let issuer = Issuer::start(&[&key]).await;
    let (sign_in, token) = (issuer.sign_in(KeyTimes::default()), key.token(&issuer.claims()));
    let all = join_all((0..50).map(|_| refused(&sign_in, &token))).await;
    assert!(all.iter().all(Option::is_none) && issuer.readings() == 1, "{}", issuer.readings());
}

#[tokio::test]
async fn an_issuer_that_is_gone_is_trusted_for_a_bounded_time() {
    let key = Pair::ed("a");
    let issuer = Issuer::start(&[&key]).await;
    let times = KeyTimes { fresh: Duration::ZERO, pause: Duration::ZERO, ..KeyTimes::default() };
    let sign_in = issuer.sign_in(times);
    let short = issuer.sign_in(KeyTimes { most: Duration::ZERO, ..times });
    let token = key.token(&issuer.claims());
    assert_eq!(refused(&sign_in, &token).await, None);
    issuer.is_gone.store(true, SeqCst);
    assert_eq!(refused(&sign_in, &token).await, None, "the kept keys are used");
    assert_eq!(refused(&short, &token).await, Some(SignInFault::UnknownKeys));
    let new = issuer.sign_in(times);
    assert_eq!(refused(&new, &token).await, Some(SignInFault::UnknownKeys), "it starts, and sign-in with it fails");
    issuer.is_gone.store(false, SeqCst);
    assert_eq!(refused(&new, &token).await, None);
}

#[tokio::test]
async fn documents_of_an_issuer_are_checked() {
    let key = Pair::ed("a");
    let issuer = Issuer::start(&[&key]).await;
    let times = KeyTimes { pause: Duration::ZERO, ..KeyTimes::default() };
    let keys = IssuerKeys::new(format!("{}/", issuer.url).parse().unwrap(), times).unwrap();
    let asked = keys.key(Some("a"), jsonwebtoken::Algorithm::EdDSA).await;
    assert_eq!(asked.err(), Some(SignInFault::UnknownKeys), "the document is about another issuer");
    let sign_in = issuer.sign_in(times);
    let token = key.token(&issuer.claims());
    for wrong in [json!({}), json!([]), json!("x".repeat(300_000)), json!({"keys": vec![key.public(); 65]})] {
        *issuer.keys.lock().unwrap() = wrong;
        assert_eq!(refused(&sign_in, &token).await, Some(SignInFault::UnknownKeys));
    }
    issuer.publish(&[&key]);
    assert_eq!(refused(&sign_in, &token).await, None);
}

#[tokio::test]
async fn the_first_rule_that_fits_gives_the_rights_and_a_changed_file_applies_at_once() {
    let key = Pair::ed("a");
    let issuer = Issuer::start(&[&key]).await;
    let rules = r#"{ claims = { groups = "ops" }, scopes = ["calls", "metrics"] }, { claims = { groups = "dev" }, options = ["--deny-net"] }"#;
    let path = issuer.write("[scopes]\ncalls = \"tools:call\"", rules);
    let sign_in = SignIn::open(&path, SERVER.parse().unwrap()).unwrap();
    let claims = with(&issuer.claims(), "scope", json!("openid tools:call"));
    let person = async |claims: &Value, part| sign_in.person(&key.token(claims), part).await;
    let (dev, ops) = (with(&claims, "groups", json!(["dev"])), with(&claims, "groups", json!(["dev", "ops"])));
    let ada = person(&dev, TokenScope::Calls).await.unwrap();
    assert!(ada.name.starts_with("corp/ada@example.com#"), "{}", ada.name);
    assert_eq!((&*ada.options, &*ada.scopes), (&["--deny-net".to_owned()][..], &[TokenScope::Calls][..]));
    assert!(ada.has_token && ada.expires.unwrap() > jiff::Timestamp::now());
    assert!(person(&ops, TokenScope::Calls).await.unwrap().options.is_empty(), "the first rule wins");
    assert!(person(&ops, TokenScope::Metrics).await.is_ok(), "this part needs no scope");
    let fault = async |claims: &Value, part| person(claims, part).await.unwrap_err();
    assert_eq!(fault(&dev, TokenScope::Metrics).await, SignInFault::NoRule);
    assert_eq!(fault(&claims, TokenScope::Calls).await, SignInFault::NoRule, "no group");
    let bare = with(&dev, "scope", json!("openid"));
    assert_eq!(fault(&bare, TokenScope::Calls).await, SignInFault::Scope(TokenScope::Calls));
    // A renewed token is of the same person, also under another name, and another subject is not.
    let renewed = with(&with(&dev, "jti", json!("2")), "email", json!("ada@new.example.com"));
    let renewed = person(&renewed, TokenScope::Calls).await.unwrap();
    assert_eq!(renewed.holder, ada.holder);
    let other = person(&with(&dev, "sub", json!("8")), TokenScope::Calls).await.unwrap();
    assert!(other.holder != ada.holder && other.name != ada.name, "approvals go by the name: {}", other.name);
    issuer.write("", "{ claims = { groups = ");
    assert!(person(&dev, TokenScope::Calls).await.is_ok(), "a mistake changes nothing");
    issuer.write("", "{ claims = { groups = \"ops\" } }");
    assert_eq!(fault(&dev, TokenScope::Calls).await, SignInFault::NoRule);
    assert!(person(&ops, TokenScope::Calls).await.is_ok());
    fs::remove_file(&path).unwrap();
    assert_eq!(issuer.readings(), 1, "a changed file keeps the keys");
    assert_eq!(fault(&ops, TokenScope::Calls).await, SignInFault::Token(OtherIssuer), "a missing file admits nobody");
}

#[tokio::test]
async fn the_server_describes_itself_and_challenges_with_its_document() {
    let issuer = Issuer::start(&[]).await;
    let path = issuer.write("[scopes]\ncalls = \"tools:call\"", "{ claims = {} }");
    let sign_in = SignIn::open(&path, SERVER.parse().unwrap()).unwrap();
    for (path, is) in [
        ("/.well-known/oauth-protected-resource", true),
        ("/.well-known/oauth-protected-resource/mcp", true),
        ("/.well-known/oauth-protected-resource/", false),
        ("/.well-known/oauth-authorization-server", false),
    ] {
        assert_eq!(sign_in.describes(path), is, "{path}");
    }
    let document = sign_in.document().await;
    assert_eq!((&document["resource"], &document["authorization_servers"]), (&json!(SERVER), &json!([issuer.url])));
    assert_eq!(document["scopes_supported"], json!(["tools:call"]));
    let place = "resource_metadata=\"https://tools.example.com/.well-known/oauth-protected-resource/mcp\"";
    assert_eq!(sign_in.challenge(None, TokenScope::Calls), format!("Bearer {place}, scope=\"tools:call\""));
    assert_eq!(sign_in.challenge(Some("error=\"x\""), TokenScope::Metrics), format!("Bearer error=\"x\", {place}"));
}
