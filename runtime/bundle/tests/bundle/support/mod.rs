//! Archives for tests: a valid bundle, tar entries made by hand, and layouts of arbitrary documents.

use serde_json::{Value, json};
use toolcrib_bundle::{
    BUNDLE_ARTIFACT_TYPE, BUNDLE_CONFIG, BundleBuilder, BundledTool, Digest, MediaType, Metadata, OCI_INDEX,
    OCI_MANIFEST, REF_NAME, TITLE, open_bytes,
};

pub(crate) const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
pub(crate) const MODULE: &[u8] = b"\0asm\x01\0\0\0";

/// Files of the sample bundle.
pub(crate) fn sample_files() -> Vec<(&'static str, MediaType, Vec<u8>)> {
    vec![
        ("tools.json", MediaType::TOOLS_JSON, br#"{"tools":[]}"#.to_vec()),
        ("tools/bin/read.wasm", MediaType::WASM, [COMPONENT, &[7; 700]].concat()),
        ("tools/note.md", MediaType::MARKDOWN, b"# Note\n".to_vec()),
        ("LICENSE", MediaType::LICENSE, vec![b'l'; 512]),
        ("empty", MediaType::TEXT, Vec::new()),
    ]
}

/// Metadata of the sample bundle.
pub(crate) fn sample_metadata() -> Metadata {
    let mut metadata = Metadata::new("acme/files", "1.2.0+build");
    metadata.description = Some("Reads files.".to_owned());
    metadata.licenses = Some("MIT OR Apache-2.0".to_owned());
    metadata.source = Some("https://example.com/files".to_owned());
    metadata.annotations.insert("com.example.key".to_owned(), "value".to_owned());
    metadata
}

/// Bytes of the sample bundle.
pub(crate) fn sample() -> Vec<u8> {
    let mut builder = BundleBuilder::new(sample_metadata()).unwrap();
    for (path, media_type, bytes) in sample_files() {
        builder.add_bytes(path, media_type, bytes).unwrap();
    }
    let mut tool = BundledTool::new("read", "tools.json".parse().unwrap());
    tool.program = Some("tools/bin/read.wasm".parse().unwrap());
    builder.add_tool(tool);
    builder.add_tool(BundledTool::new("note", "tools/note.md".parse().unwrap()));
    let mut bytes = Vec::new();
    builder.write_to(&mut bytes).unwrap();
    bytes
}

/// Digest of a bundle, and its paths and file contents.
pub(crate) type Content = (Digest, Vec<(String, Vec<u8>)>);

/// Reads a whole bundle: its digest and the content of its files, or the first error's text.
pub(crate) fn read_all(bytes: &[u8]) -> Result<Content, String> {
    let read = || {
        let mut bundle = open_bytes(bytes)?;
        bundle.verify()?;
        let paths = bundle.files().iter().map(|file| file.path.to_string()).collect::<Vec<_>>();
        let mut files = Vec::new();
        for path in paths {
            let content = bundle.read_file(&path)?.into_vec(1 << 20)?;
            files.push((path, content));
        }
        toolcrib_bundle::Result::Ok((bundle.digest(), files))
    };
    read().map_err(|error: toolcrib_bundle::Error| error.to_string())
}

/// Tar entry made by hand.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) header: [u8; 512],
    pub(crate) data: Vec<u8>,
}

impl Entry {
    /// Returns an entry with an intact header.
    pub(crate) fn new(type_flag: u8, name: &str, data: &[u8]) -> Self {
        let mut header = [0; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..108].copy_from_slice(b"0000644\0");
        header[108..116].copy_from_slice(b"0000000\0");
        header[116..124].copy_from_slice(b"0000000\0");
        header[136..148].copy_from_slice(b"00000000000\0");
        header[156] = type_flag;
        header[257..265].copy_from_slice(b"ustar\x0000");
        Self { header, data: data.to_vec() }.with_size(format!("{:011o}\0", data.len()))
    }

    /// Returns a regular file.
    pub(crate) fn file(name: &str, data: &[u8]) -> Self {
        Self::new(b'0', name, data)
    }

    /// Returns a blob under the digest of its content.
    pub(crate) fn blob(data: &[u8]) -> Self {
        Self::file(&format!("blobs/sha256/{}", Digest::of(data).hex()), data)
    }

    /// Replaces the size field.
    pub(crate) fn with_size(self, field: impl AsRef<[u8]>) -> Self {
        self.with(124, field)
    }

    /// Replaces bytes of the header, and corrects the checksum.
    pub(crate) fn with(mut self, offset: usize, bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        self.header[offset..offset + bytes.len()].copy_from_slice(bytes);
        self.header[148..156].fill(b' ');
        let sum = self.header.iter().map(|byte| u32::from(*byte)).sum::<u32>();
        self.header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self
    }

    /// Returns header, data and padding.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.header.to_vec();
        bytes.extend(&self.data);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        bytes
    }
}

/// Returns an archive of entries with its end marker.
pub(crate) fn tar(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = entries.iter().flat_map(Entry::bytes).collect::<Vec<_>>();
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

/// Returns the sample bundle with entries before its first and after its last one.
pub(crate) fn around_sample(entries: &[Entry]) -> [Vec<u8>; 2] {
    let sample = sample();
    let extra = entries.iter().flat_map(Entry::bytes).collect::<Vec<_>>();
    let (body, end) = sample.split_at(sample.len() - 1024);
    [[&extra, &sample[..]].concat(), [body, &extra, end].concat()]
}

/// Layout of arbitrary blobs and documents.
#[derive(Default)]
pub(crate) struct Layout {
    pub(crate) blobs: Vec<Vec<u8>>,
    pub(crate) manifests: Vec<Value>,
}

impl Layout {
    /// Adds a blob and returns its descriptor.
    pub(crate) fn blob(&mut self, media_type: &str, bytes: &[u8]) -> Value {
        let descriptor = json!({"mediaType": media_type, "digest": Digest::of(bytes).to_string(), "size": bytes.len()});
        if !self.blobs.iter().any(|blob| blob == bytes) {
            self.blobs.push(bytes.to_vec());
        }
        descriptor
    }

    /// Adds a layer under a path and returns its descriptor.
    pub(crate) fn layer(&mut self, path: &str, media_type: &str, bytes: &[u8]) -> Value {
        let mut layer = self.blob(media_type, bytes);
        layer["annotations"] = json!({ TITLE: path });
        layer
    }

    /// Adds a document as a blob and returns its descriptor.
    pub(crate) fn document(&mut self, media_type: &str, document: &Value) -> Value {
        self.blob(media_type, document.to_string().as_bytes())
    }

    /// Adds a manifest to the index.
    pub(crate) fn manifest(&mut self, manifest: &Value, ref_name: Option<&str>) -> Value {
        let mut descriptor = self.document(OCI_MANIFEST, manifest);
        if let Some(name) = ref_name {
            descriptor["annotations"] = json!({ REF_NAME: name });
        }
        self.manifests.push(descriptor.clone());
        descriptor
    }

    /// Adds a bundle with these layers, whose config is consistent with them, and returns the descriptor of its manifest.
    pub(crate) fn bundle(&mut self, name: &str, layers: &[Value]) -> Value {
        let config = config(name, layers);
        self.bundle_with_config(&config, layers)
    }

    /// Adds a bundle with a config and returns the descriptor of its manifest.
    pub(crate) fn bundle_with_config(&mut self, config: &Value, layers: &[Value]) -> Value {
        let descriptor = self.document(BUNDLE_CONFIG, config);
        let manifest = manifest(&descriptor, layers, config["metadata"]["name"].as_str().unwrap());
        self.manifest(&manifest, None)
    }

    /// Returns the tar file with this `index.json`.
    pub(crate) fn tar_with_index(&self, index: &[u8]) -> Vec<u8> {
        let mut entries = self.blobs.iter().map(|blob| Entry::blob(blob)).collect::<Vec<_>>();
        entries.push(Entry::file("index.json", index));
        entries.push(Entry::file("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#));
        tar(&entries)
    }

    /// Returns the tar file.
    pub(crate) fn tar(&self) -> Vec<u8> {
        let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": self.manifests});
        self.tar_with_index(index.to_string().as_bytes())
    }
}

/// Returns the config of a bundle with these layers and no tools.
pub(crate) fn config(name: &str, layers: &[Value]) -> Value {
    let files = layers
        .iter()
        .map(|layer| {
            let path = &layer["annotations"][TITLE];
            json!({"path": path, "mediaType": layer["mediaType"], "digest": layer["digest"], "size": layer["size"]})
        })
        .collect::<Vec<_>>();
    json!({"version": 1, "metadata": {"name": name, "version": "1.0.0"}, "tools": [], "files": files})
}

/// Returns the manifest of a bundle.
pub(crate) fn manifest(config: &Value, layers: &[Value], name: &str) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": OCI_MANIFEST,
        "artifactType": BUNDLE_ARTIFACT_TYPE,
        "config": config,
        "layers": layers,
        "annotations": { TITLE: name, "org.opencontainers.image.version": "1.0.0" },
    })
}
