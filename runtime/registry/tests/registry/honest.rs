//! Registry in memory that keeps to the specification, with switches for the features that registries lack.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcrib_registry::{Digest, OCI_INDEX};

use crate::server::{Reply, Request, Server};

/// Features of the registry.
#[derive(Clone, Copy)]
pub(crate) struct Features {
    pub(crate) referrers: bool,
    pub(crate) monolithic: bool,
    pub(crate) chunked: bool,
    pub(crate) ranges: bool,
    /// Entries on one page of tags or referrers.
    pub(crate) page: usize,
}

impl Default for Features {
    fn default() -> Self {
        Self { referrers: true, monolithic: true, chunked: true, ranges: true, page: 2 }
    }
}

/// Content of the registry.
#[derive(Default)]
pub(crate) struct Content {
    pub(crate) blobs: HashMap<String, Vec<u8>>,
    /// Media type and bytes by tag and by digest.
    pub(crate) manifests: BTreeMap<String, (String, Vec<u8>)>,
    uploads: HashMap<usize, Vec<u8>>,
    next: usize,
}

pub(crate) type SharedContent = Arc<Mutex<Content>>;

pub(crate) async fn start(features: Features) -> (Server, SharedContent) {
    let content = SharedContent::default();
    let shared = Arc::clone(&content);
    let server = Server::start(move |request| shared.lock().unwrap().answer(features, request)).await;
    (server, content)
}

impl Content {
    pub(crate) fn put_blob(&mut self, bytes: &[u8]) {
        self.blobs.insert(Digest::of(bytes).to_string(), bytes.to_vec());
    }

    pub(crate) fn put_manifest(&mut self, tag: &str, media_type: &str, bytes: &[u8]) {
        for name in [tag.to_owned(), Digest::of(bytes).to_string()] {
            self.manifests.insert(name, (media_type.to_owned(), bytes.to_vec()));
        }
    }

    pub(crate) fn answer(&mut self, features: Features, request: &Request) -> Reply {
        let rest = request.path.strip_prefix("/v2/team/tool/").unwrap_or_default();
        let (kind, name) = rest.split_once('/').unwrap_or((rest, ""));
        match (request.method.as_str(), kind) {
            ("GET" | "HEAD", "blobs") => self.blob(features, request, name),
            ("GET" | "HEAD", "manifests") => match self.manifests.get(name) {
                Some((media_type, bytes)) => Reply::new(200)
                    .header("Content-Type", media_type)
                    .header("Docker-Content-Digest", Digest::of(bytes))
                    .bytes(bytes.clone()),
                None => Reply::new(404),
            },
            ("PUT", "manifests") => self.take_manifest(features, request, name),
            ("POST" | "PATCH" | "PUT", "blobs") => self.upload(features, request, name),
            ("GET", "tags") => {
                let tags: Vec<&String> = self.manifests.keys().filter(|name| !name.contains(':')).collect();
                page(features, request, &tags, |tags| json!({ "name": "team/tool", "tags": tags }))
            }
            ("GET", "referrers") if features.referrers => {
                let entries = self.entries(name);
                let index =
                    |entries: &[Value]| json!({ "schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries });
                page(features, request, &entries, index).header("Content-Type", OCI_INDEX)
            }
            ("GET", "") if request.path == "/v2/" => Reply::new(200),
            _ => Reply::new(404),
        }
    }

    fn blob(&self, features: Features, request: &Request, name: &str) -> Reply {
        let Some(bytes) = self.blobs.get(name) else { return Reply::new(404) };
        let range = request.header("range").filter(|_| features.ranges).and_then(|range| range.strip_prefix("bytes="));
        match range.and_then(|range| range.strip_suffix('-')).map(|start| start.parse::<usize>().unwrap()) {
            Some(start) => Reply::new(206)
                .header("Content-Range", format!("bytes {start}-{}/{}", bytes.len() - 1, bytes.len()))
                .bytes(&bytes[start..]),
            None => Reply::new(200).bytes(bytes.clone()),
        }
    }

    fn take_manifest(&mut self, features: Features, request: &Request, name: &str) -> Reply {
        self.put_manifest(name, request.header("content-type").unwrap(), &request.body);
        let reply = Reply::new(201).header("Docker-Content-Digest", Digest::of(&request.body));
        let value: Value = serde_json::from_slice(&request.body).unwrap();
        match value["subject"]["digest"].as_str().filter(|_| features.referrers) {
            Some(subject) => reply.header("OCI-Subject", subject),
            None => reply,
        }
    }

    fn upload(&mut self, features: Features, request: &Request, name: &str) -> Reply {
        if request.method == "POST" {
            self.next += 1;
            self.uploads.insert(self.next, Vec::new());
            return Reply::new(202).header("Location", format!("/v2/team/tool/blobs/uploads/{}?state=x", self.next));
        }
        let id: usize = name.strip_prefix("uploads/").unwrap().parse().unwrap();
        assert_eq!(request.parameter("state").as_deref(), Some("x"), "the query of the location is kept");
        let upload = self.uploads.get_mut(&id).unwrap();
        if request.method == "PATCH" {
            let range = format!("{}-{}", upload.len(), upload.len() + request.body.len() - 1);
            if !features.chunked || request.header("content-range") != Some(&range) {
                return Reply::new(416);
            }
            upload.extend_from_slice(&request.body);
            let last = upload.len() - 1;
            let location = format!("/v2/team/tool/blobs/uploads/{id}?state=x");
            return Reply::new(202).header("Location", location).header("Range", format!("0-{last}"));
        }
        if !features.monolithic && !request.body.is_empty() {
            return Reply::new(413);
        }
        let mut bytes = self.uploads.remove(&id).unwrap();
        bytes.extend_from_slice(&request.body);
        if request.parameter("digest") != Some(Digest::of(&bytes).to_string()) {
            return Reply::new(400).bytes(r#"{"errors":[{"code":"DIGEST_INVALID"}]}"#);
        }
        self.put_blob(&bytes);
        Reply::new(201)
    }

    fn entries(&self, subject: &str) -> Vec<Value> {
        let by_digest = self.manifests.iter().filter(|(name, _)| name.contains(':'));
        by_digest
            .filter_map(|(digest, (media_type, bytes))| {
                let value: Value = serde_json::from_slice(bytes).unwrap();
                let entry = json!({ "mediaType": media_type, "digest": digest, "size": bytes.len(), "artifactType": value["artifactType"] });
                (value["subject"]["digest"] == subject).then_some(entry)
            })
            .collect()
    }
}

fn page<T>(features: Features, request: &Request, items: &[T], body: impl Fn(&[T]) -> Value) -> Reply {
    let start: usize = request.parameter("start").map_or(0, |start| start.parse().unwrap());
    let end = (start + features.page).min(items.len());
    let reply = Reply::new(200).bytes(body(&items[start..end]).to_string());
    if end == items.len() {
        return reply;
    }
    reply.header("Link", format!("<{}?start={end}>; rel=\"next\"", request.path))
}
