//! Arbitrary input never panics, and never takes more memory than the bounds of the documents.

use std::alloc::{GlobalAlloc, Layout as Memory, System};
use std::cell::Cell;

use crate::support::{Entry, Layout, manifest, read_all, sample, tar};
use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_bundle::{BUNDLE_CONFIG, MAX_DOCUMENT_SIZE, OCI_MANIFEST, open_bytes};

/// System allocator that counts the bytes of the current thread.
struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// Adds to the live bytes of the thread.
fn count(bytes: isize) {
    // A thread that ends frees memory after its counters are gone.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.get())));
    });
}

#[expect(unsafe_code, reason = "an allocator can only be wrapped by an unsafe implementation")]
// SAFETY: every call is forwarded to the system allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Memory) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Memory) {
        count(-(layout.size() as isize));
        // SAFETY: the caller keeps the contract of `dealloc`, and `alloc` forwards to the system allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Reads an archive as far as possible, and returns the peak of the memory that this took, in bytes.
fn peak(bytes: &[u8]) -> u64 {
    let before = LIVE.get();
    PEAK.set(before);
    if let Ok(mut bundle) = open_bytes(bytes) {
        let _ = bundle.verify();
    }
    (PEAK.get() - before) as u64
}

/// Memory for any input of a few kilobytes: the documents in it, parsed, and fixed buffers.
const SMALL: u64 = 256 << 10;

/// Names and types of entries, good and bad.
fn entry() -> impl Strategy<Value = Vec<u8>> {
    let name = prop_oneof![
        Just("index.json".to_owned()),
        Just("oci-layout".to_owned()),
        Just("manifest.json".to_owned()),
        Just("blobs/".to_owned()),
        "blobs/sha256/[0-9a-f]{64}",
        "[ -~]{0,100}",
    ];
    let data = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..600),
        Just(br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()),
        Just(br#"{"schemaVersion":2,"manifests":[]}"#.to_vec()),
    ];
    let type_flag = prop_oneof![8 => Just(b'0'), 2 => Just(b'5'), 1 => any::<u8>()];
    let size = prop_oneof![8 => Just(None), 1 => any::<[u8; 12]>().prop_map(Some)];
    (name, data, type_flag, size).prop_map(|(name, data, type_flag, size)| {
        let entry = Entry::new(type_flag, &name, &data);
        match size {
            Some(size) => entry.with_size(size).bytes(),
            None => entry.bytes(),
        }
    })
}

/// Any JSON, with the keys of OCI documents.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!(2)),
        Just(json!(OCI_MANIFEST)),
        ".{0,20}".prop_map(Value::from),
    ];
    let key = prop_oneof![
        prop::sample::select(vec![
            "schemaVersion",
            "mediaType",
            "manifests",
            "layers",
            "config",
            "digest",
            "size",
            "annotations",
            "artifactType",
            "subject",
            "version",
            "metadata",
            "tools",
            "files",
            "path",
            "name",
        ])
        .prop_map(str::to_owned),
        ".{0,5}",
    ];
    leaf.prop_recursive(6, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map(key.clone(), inner, 0..8)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_are_refused_within_memory(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
        prop_assert!(open_bytes(&bytes).is_err());
        prop_assert!(peak(&bytes) < SMALL);
    }

    #[test]
    fn arbitrary_entries_are_read_or_refused_within_memory(entries in prop::collection::vec(entry(), 0..8), end in 0_usize..3) {
        let mut bytes = entries.concat();
        bytes.resize(bytes.len() + end * 512, 0);
        prop_assert!(peak(&bytes) < SMALL);
    }

    #[test]
    fn arbitrary_documents_are_read_or_refused_within_memory(document in document(), place in 0_usize..3) {
        let mut layout = Layout::default();
        let bytes = match place {
            0 => layout.tar_with_index(document.to_string().as_bytes()),
            1 => {
                layout.manifest(&document, None);
                layout.tar()
            }
            _ => {
                let config = layout.document(BUNDLE_CONFIG, &document);
                layout.manifest(&manifest(&config, &[], "acme/tools"), None);
                layout.tar()
            }
        };
        prop_assert!(peak(&bytes) < SMALL);
    }

    #[test]
    fn a_valid_bundle_with_arbitrary_changes_is_refused_or_equal(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let sample = sample();
        let mut bytes = sample.clone();
        for (index, value) in changes {
            let index = index.index(bytes.len());
            bytes[index] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(sample.len()));
        }
        if let Ok(content) = read_all(&bytes) {
            prop_assert_eq!(Ok(content), read_all(&sample));
        }
        prop_assert!(peak(&bytes) < SMALL);
    }
}

#[test]
fn a_huge_size_takes_no_memory() {
    for size in ["77777777777\0", "03777777777\0", "00000003777\0"] {
        let bytes = tar(&[Entry::file("index.json", b"{}").with_size(size)]);
        assert!(peak(&bytes) < 16 << 10, "{size}");
    }
}

#[test]
fn the_largest_manifest_of_the_smallest_values_takes_bounded_memory() {
    let mut layout = Layout::default();
    let text = format!(r#"{{"schemaVersion":2,"x":[{}0]}}"#, "[],".repeat(MAX_DOCUMENT_SIZE as usize / 3 - 20));
    assert!(text.len() as u64 <= MAX_DOCUMENT_SIZE);
    let descriptor = layout.blob(OCI_MANIFEST, text.as_bytes());
    layout.manifests.push(descriptor);
    assert!(peak(&layout.tar()) < 3 * MAX_DOCUMENT_SIZE);
}

#[test]
fn an_object_with_the_most_keys_takes_bounded_memory() {
    let mut layout = Layout::default();
    let members = (0..190_000).map(|n| format!(r#""{n}":0"#)).collect::<Vec<_>>().join(",");
    let descriptor = layout.blob(OCI_MANIFEST, format!(r#"{{"annotations":{{{members}}}}}"#).as_bytes());
    layout.manifests.push(descriptor);
    let peak = peak(&layout.tar());
    assert!(peak < 64 << 20, "{peak}");
}

#[test]
fn a_large_file_is_verified_without_holding_it() {
    let mut layout = Layout::default();
    let layer = layout.layer("large", "application/octet-stream", &vec![1; 32 << 20]);
    layout.bundle("acme/large", &[layer]);
    let bytes = layout.tar();
    open_bytes(&bytes).unwrap().verify().unwrap();
    assert!(peak(&bytes) < SMALL);
}
