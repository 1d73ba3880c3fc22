//! Forwarding of the log to a bucket, and the comparison of the bucket's objects with the log.

use std::fs;

use serde_json::{Value, json};

use crate::answering::{Answer, Request, Server};
use crate::crib::{Crib, Ran};

/// Secret key of the requests, which no message shows.
const SECRET: &str = "hunter2hunter2";

fn run(crib: &Crib, args: &[&str]) -> Ran {
    let mut command = crib.toolcrib(&[&["audit"], args].concat());
    Ran::of(command.env("AWS_ACCESS_KEY_ID", "ada").env("AWS_SECRET_ACCESS_KEY", SECRET).env("AWS_REGION", "eu-west-1"))
}

/// Path of the only object that three records make.
fn object(last: &str) -> String {
    let last: Value = serde_json::from_str(last).unwrap();
    format!("host1/{:012}-{:012}-{}.ndjson", 1, 3, &last["chain"].as_str().unwrap()[..16])
}

fn listing(key: &str, size: usize) -> String {
    format!(
        "<ListBucketResult><Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
         <ETag>&quot;a&quot;</ETag><Size>{size}</Size></Contents></ListBucketResult>"
    )
}

fn is_signed(request: &Request) -> bool {
    let stated = request.header("authorization").unwrap_or_default();
    stated.starts_with("AWS4-HMAC-SHA256 Credential=ada/") && stated.contains("/eu-west-1/s3/aws4_request")
}

#[test]
fn a_bucket_gets_an_object_for_each_batch_and_proves_the_log() {
    let crib = Crib::with_guests(&["echo"]);
    (0..3).for_each(|n| drop(crib.run(&["call", "echo", &format!("{{\"n\":{n}}}")])));
    let text: String = crib.logs().iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let key = object(text.lines().last().unwrap());
    let (path, stored) = (format!("/logs/{key}"), text.clone());
    let server = Server::start()
        .on("PUT", &path, |_| Answer::new(200).header("etag", "\"a\""))
        .on("GET", "/logs", {
            let key = key.clone();
            // A marker of a folder, as some programs make it.
            let listing = listing("host1/", 0).replace("</ListBucketResult>", "")
                + &listing(&key, 1).replace("<ListBucketResult>", "");
            move |_| Answer::new(200).raw(listing.clone(), "application/xml")
        })
        .on("GET", &path, move |_| {
            let answer = Answer::new(200).raw(stored.clone(), "text/plain").header("etag", "\"a\"");
            answer.header("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        });
    let target = format!("s3://logs/host1?endpoint={}", server.uri());
    // The server of the address is meant, also beside another one in the environment.
    let mut command = crib.toolcrib(&["audit", "forward", &target, "--json"]);
    command.env("AWS_ACCESS_KEY_ID", "ada").env("AWS_SECRET_ACCESS_KEY", SECRET).env("AWS_REGION", "eu-west-1");
    let others = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
    let ran = Ran::of(command.envs(others.map(|name| (name, server_without_role()))));
    let summary: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    assert_eq!((ran.code, &summary["sent"], &summary["target"]), (Some(0), &json!(3), &json!(target)), "{ran:?}");
    let [put] = &server.received()[..] else { panic!("one request: {:?}", server.received()) };
    assert!(is_signed(put) && put.body == text.as_bytes(), "{put:?}");
    assert_eq!(run(&crib, &["forward", &target]).code, Some(0));
    assert_eq!(server.received().len(), 1, "nothing is new");

    let ran = run(&crib, &["verify", "--against", &target]);
    assert!(ran.code == Some(0) && ran.stdout.contains("copy: 3 records, seq 1 to 3, 0 differences"), "{ran:?}");
    assert!(ran.stderr.contains("1 object in s3://logs/host1?endpoint="), "the marker: {ran:?}");
    assert!(server.received()[1..].iter().all(is_signed));
    assert_eq!(server.received()[1].query, "list-type=2&prefix=host1%2F");
    let log = crib.logs().remove(0);
    fs::write(&log, text.lines().skip(1).collect::<Vec<_>>().join("\n") + "\n").unwrap();
    crib.run(&["call", "echo", "{\"n\":4}"]);
    let ran = run(&crib, &["verify", "--against", &target]);
    assert!(ran.stdout.contains("1 no longer in the log and proven by the copy's chain"), "{ran:?}");
    assert!(ran.stdout.contains("1 of the log not forwarded yet"), "the cursor of this target counts: {ran:?}");
}

/// Address at which no machine's role is found.
fn server_without_role() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn a_bucket_that_refuses_or_sends_too_much_is_an_error_without_credentials() {
    let crib = Crib::with_guests(&["echo"]);
    crib.run(&["call", "echo", "{}"]);
    let server = Server::start();
    let target = format!("s3://logs?endpoint={}", server.uri());
    let key = "000000000001-000000000001-0000000000000000.ndjson";
    let ran = run(&crib, &["forward", &target]);
    assert!(ran.code == Some(1) && ran.stderr.contains("the bucket does not exist"), "{ran:?}");
    let _server = server.on("GET", "/logs", move |_| Answer::new(200).raw(listing(key, 1), "application/xml")).on(
        "GET",
        &format!("/logs/{key}"),
        |_| {
            let answer = Answer::new(200).raw(vec![b' '; (64 << 20) + 1], "text/plain").header("etag", "\"a\"");
            answer.header("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        },
    );
    let ran = run(&crib, &["verify", "--against", &target]);
    assert!(ran.code == Some(1) && ran.stderr.contains("cannot read the copy `s3://logs?endpoint="), "{ran:?}");
    assert!(ran.stderr.contains("length limit exceeded") && !ran.stderr.contains(SECRET), "{ran:?}");
    let mut command = crib.toolcrib(&["audit", "forward", "s3://logs"]);
    let ran = Ran::of(command.env("AWS_ENDPOINT_URL", "ftp://x"));
    assert!(ran.code == Some(1) && ran.stderr.contains("AWS_ENDPOINT_URL `ftp://x"), "{ran:?}");
    let mut command = crib.toolcrib(&["audit", "verify", "--against", &target.replace("logs", "other")]);
    let ran = Ran::of(command.env("AWS_METADATA_ENDPOINT", server_without_role()));
    assert!(ran.code == Some(1) && ran.stderr.contains("no credentials are set in AWS_ACCESS_KEY_ID"), "{ran:?}");
    for wrong in ["s3://", "s3://logs?region=x", "s3://logs/../x"] {
        let ran = run(&crib, &["forward", wrong]);
        assert!(ran.code == Some(2) && ran.stderr.contains("expected `s3://BUCKET`"), "{ran:?}");
    }
}
