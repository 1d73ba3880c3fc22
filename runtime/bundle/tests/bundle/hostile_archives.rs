//! Tar archives that are no plain OCI image layout are refused, with the reason and the position of the entry.

use std::io::{self, Cursor, Read, Seek, SeekFrom};

use crate::support::{Entry, around_sample, sample, tar};
use toolcrib_bundle::{Archive, Digest, Error, MAX_ENTRIES, MAX_TRAILING_ZEROS, TarFault, open_bytes};

/// Returns the fault of an archive.
fn fault(bytes: &[u8]) -> TarFault {
    match Archive::open_bytes(bytes) {
        Err(Error::Tar(error)) => error.fault,
        other => panic!("expected a fault of the tar archive: {other:?}"),
    }
}

/// Returns the fault of entries before and after a valid bundle's entries.
fn fault_around(entries: &[Entry]) -> TarFault {
    let [before, after] = around_sample(entries).map(|bytes| fault(&bytes));
    assert_eq!(before, after);
    before
}

/// Returns a name with a valid digest.
fn blob_name() -> String {
    format!("blobs/sha256/{}", Digest::of(b"other").hex())
}

#[test]
fn names_that_are_not_of_a_layout_are_refused() {
    let upper = blob_name().to_uppercase();
    for name in [
        "",
        "..",
        "../oci-layout",
        "blobs/../../evil",
        "blobs/sha256/../../../evil",
        "/oci-layout",
        "/etc/passwd",
        "./oci-layout",
        ".//index.json",
        "blobs//sha256/",
        "blobs/sha256",
        "OCI-Layout",
        "index.json/",
        "index.json ",
        "readme",
        "blobs/sha512/00",
        "blobs/sha256/00",
        "blobs\\sha256\\00",
        "C:\\oci-layout",
        "\u{202e}tuoyal-ico",
        &upper,
        &blob_name()[1..],
        &format!("{}/", blob_name()),
        &format!("{}0", blob_name()),
    ] {
        assert!(matches!(fault_around(&[Entry::file(name, b"x")]), TarFault::Name { .. }), "{name}");
        assert!(matches!(fault_around(&[Entry::new(b'5', name, b"")]), TarFault::Name { .. }), "{name}");
    }
}

#[test]
fn names_in_messages_are_escaped() {
    let message = TarFault::Name { name: String::new() }.to_string();
    assert!(message.contains("oci-layout"));
    let TarFault::Name { name } = fault_around(&[Entry::file("a\n\u{1b}[31m", b"")]) else { panic!() };
    assert_eq!(name, "a\\n\\x1b[31m");
}

#[test]
fn only_regular_files_and_directories_are_accepted() {
    for (type_flag, word) in [
        (b'1', "hard link"),
        (b'2', "symbolic link"),
        (b'3', "character device"),
        (b'4', "block device"),
        (b'6', "FIFO"),
        (b'7', "contiguous"),
        (b'x', "pax"),
        (b'X', "pax"),
        (b'g', "pax"),
        (b'L', "long name"),
        (b'K', "long link name"),
        (b'S', "sparse"),
        (b'D', "directory listing"),
        (b'M', "continuation"),
        (b'V', "volume label"),
        (b'A', "unknown"),
        (b'Z', "unknown"),
        (0xff, "unknown"),
    ] {
        for name in [&blob_name(), "index.json", "blobs/"] {
            let fault = fault_around(&[Entry::new(type_flag, name, b"")]);
            assert!(matches!(fault, TarFault::EntryType { .. }), "{type_flag} {name}: {fault:?}");
            assert!(fault.to_string().contains(word), "{fault}");
        }
    }
}

#[test]
fn links_are_refused_wherever_they_lead() {
    for target in ["/etc/passwd", "../../etc/passwd", "index.json", ""] {
        for type_flag in [b'1', b'2'] {
            let link = Entry::new(type_flag, &blob_name(), b"").with(157, target);
            assert!(matches!(fault_around(&[link]), TarFault::EntryType { .. }));
        }
    }
    let file = Entry::file(&blob_name(), b"x").with(157, "/etc/passwd");
    assert!(matches!(fault_around(&[file]), TarFault::Field { field: "linkname", .. }));
}

#[test]
fn extended_headers_cannot_override_a_name_or_size() {
    let pax = Entry::new(b'x', "PaxHeaders/blob", b"18 size=100000000\n");
    let global = Entry::new(b'g', "pax_global_header", b"24 path=../../etc/passwd\n");
    let sparse = Entry::new(b'x', "PaxHeaders/blob", b"22 GNU.sparse.major=1\n30 GNU.sparse.realsize=100000\n");
    let long_name = Entry::new(b'L', "././@LongLink", b"../../../etc/passwd\0");
    for header in [pax, global, sparse, long_name] {
        let fault = fault_around(&[header, Entry::file(&blob_name(), b"x")]);
        assert!(matches!(fault, TarFault::EntryType { .. }), "{fault:?}");
    }
}

#[test]
fn header_fields_that_extend_a_name_are_refused() {
    let with = |offset, bytes: &[u8]| fault_around(&[Entry::file(&blob_name(), b"x").with(offset, bytes)]);
    assert!(matches!(with(345, b"../.."), TarFault::Field { field: "prefix", .. }));
    assert!(matches!(with(482, b"\x01"), TarFault::Field { field: "prefix", .. }), "GNU sparse extension");
    assert!(matches!(with(508, b"tar\0"), TarFault::Field { field: "prefix", .. }), "star");
    assert!(matches!(with(90, b"/../evil"), TarFault::Field { field: "name", .. }), "after the end of the name");
    assert!(matches!(with(329, b"0000001\0"), TarFault::Field { field: "device", .. }));
    assert_eq!(with(257, b"\0\0\0\0\0\0\0\0"), TarFault::Format);
    assert_eq!(with(257, b"ustar\x0001"), TarFault::Format);
}

#[test]
fn directories_have_no_content_and_files_no_directory_names() {
    let directory = Entry::new(b'5', "blobs/", b"x");
    assert_eq!(fault(&tar(&[directory])), TarFault::DirectoryContent { name: "blobs/".to_owned(), size: 1 });
    assert!(matches!(fault(&tar(&[Entry::file("blobs/", b"")])), TarFault::Name { .. }));
    assert!(matches!(fault(&tar(&[Entry::new(b'5', "index.json", b"")])), TarFault::Name { .. }));
}

#[test]
fn an_entry_that_occurs_twice_is_refused() {
    let sample = sample();
    let mut offset = 0;
    while sample[offset] != 0 {
        let header: [u8; 512] = sample[offset..offset + 512].try_into().unwrap();
        let size = usize::from_str_radix(std::str::from_utf8(&header[124..135]).unwrap(), 8).unwrap();
        let data = sample[offset + 512..offset + 512 + size].to_vec();
        let [before, after] = around_sample(&[Entry { header, data }]).map(|bytes| fault(&bytes));
        assert!(matches!(before, TarFault::Duplicate { .. }), "{before:?}");
        assert_eq!(before, after);
        offset += 512 + size.next_multiple_of(512);
    }
    let forged = Entry::file(&blob_name(), b"forged");
    assert!(matches!(fault_around(&[Entry::file(&blob_name(), b"other"), forged]), TarFault::Duplicate { .. }));
}

#[test]
fn sizes_that_are_no_octal_number_are_refused() {
    let with = |field: &[u8]| fault_around(&[Entry::file(&blob_name(), b"x").with_size(field)]);
    for field in [
        &b"\0\0\0\0\0\0\0\0\0\0\0\0"[..],
        b"            ",
        b"-0000000001\0",
        b"00000000018\0",
        b"0x000000001\0",
        b"1 1         ",
    ] {
        assert!(matches!(with(field), TarFault::SizeSyntax { .. }), "{}", field.escape_ascii());
    }
    for field in [&b"\x80\0\0\0\0\0\0\0\0\0\0\x01"[..], b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"] {
        assert!(matches!(with(field), TarFault::SizeBase256 { .. }), "{}", field.escape_ascii());
    }
}

#[test]
fn sizes_over_the_bounds_are_refused_before_the_data_is_looked_for() {
    let huge = fault_around(&[Entry::file(&blob_name(), b"x").with_size("77777777777\0")]);
    assert!(matches!(huge, TarFault::TooLarge { size: 0o77777777777, .. }));
    let document = fault(&tar(&[Entry::file("index.json", b"").with_size("00004000001\0")]));
    assert!(matches!(document, TarFault::TooLarge { max: 1_048_576, .. }));
    let layout = fault(&tar(&[Entry::file("oci-layout", b"").with_size("00000010001\0")]));
    assert!(matches!(layout, TarFault::TooLarge { max: 4096, .. }));
}

#[test]
fn a_size_that_differs_from_the_data_is_refused() {
    let data = [b'd'; 1500];
    let entry = |size: u64| Entry::blob(&data).with_size(format!("{size:011o}\0"));
    // Smaller: the rest of the data is padding that is not zero, or a header without checksum.
    for size in [0, 1, 511, 512, 1024, 1499] {
        let [before, after] = around_sample(&[entry(size)]).map(|bytes| fault(&bytes));
        assert!(matches!(before, TarFault::Padding { .. } | TarFault::Checksum), "{size}: {before:?}");
        assert_eq!(before, after);
    }
    // Larger: the next header is swallowed, or the end of the archive is passed.
    for size in [1537, 1 << 20] {
        for bytes in around_sample(&[entry(size)]) {
            assert!(open_bytes(&bytes).is_err(), "{size}");
        }
    }
    let past = fault(&tar(&[entry(1 << 20)]));
    assert!(matches!(past, TarFault::PastEnd { size: 1_048_576, .. }));
}

#[test]
fn a_wrong_checksum_is_refused() {
    for offset in [0, 100, 124, 148, 156, 300, 511] {
        let mut entry = Entry::blob(b"x");
        entry.header[offset] ^= 1;
        assert_eq!(fault_around(&[entry]), TarFault::Checksum, "{offset}");
    }
}

#[test]
fn hidden_data_is_refused() {
    let mut padded = Entry::blob(b"x").bytes();
    padded[1023] = 1;
    assert!(matches!(fault(&[padded, sample()].concat()), TarFault::Padding { .. }));
    let sample = sample();
    for garbage in [&b"x"[..], &[0, 1], &Entry::blob(b"x").bytes()] {
        assert_eq!(fault(&[&sample, garbage].concat()), TarFault::TrailingData);
    }
}

#[test]
fn a_bounded_number_of_zeros_may_follow_the_end_marker() {
    let padded = |zeros: u64| [sample(), vec![0; zeros as usize]].concat();
    for zeros in [1, 511, 512, 10_240, MAX_TRAILING_ZEROS] {
        assert!(open_bytes(&padded(zeros)).is_ok(), "{zeros}");
    }
    assert_eq!(fault(&padded(MAX_TRAILING_ZEROS + 1)), TarFault::TrailingZeros);
}

#[test]
fn archives_without_their_documents_are_refused() {
    assert!(matches!(Archive::open_bytes(&[0; 1024]), Err(Error::Missing { name: "oci-layout" })));
    let layout = Entry::file("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#);
    assert!(matches!(Archive::open_bytes(&tar(&[layout])), Err(Error::Missing { name: "index.json" })));
    for bytes in [&b""[..], &[0; 1], &[0; 511], &[0; 512], &[0; 1023]] {
        assert_eq!(fault(bytes), TarFault::Truncated);
    }
}

#[test]
fn compressed_input_is_named() {
    for (magic, format) in [
        (&b"\x1f\x8b\x08\0"[..], "gzip"),
        (b"BZh9", "bzip2"),
        (b"\xfd7zXZ\0", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"PK\x03\x04", "zip"),
    ] {
        for length in [magic.len(), 4096] {
            let mut bytes = magic.to_vec();
            bytes.resize(length, 0x55);
            assert!(matches!(Archive::open_bytes(&bytes), Err(Error::Compressed { format: found }) if found == format));
        }
    }
}

#[test]
fn too_many_entries_are_refused() {
    let entries = (0..MAX_ENTRIES as u32 + 1).map(|n| Entry::blob(&n.to_be_bytes())).collect::<Vec<_>>();
    assert_eq!(fault(&tar(&entries)), TarFault::TooManyEntries);
    assert!(
        matches!(Archive::open_bytes(&tar(&entries[1..])), Err(Error::Missing { .. })),
        "the bound itself is allowed"
    );
}

#[test]
fn the_forms_that_other_tar_writers_use_are_read() {
    let gnu = |entry: Entry| entry.with(257, b"ustar  \0").with(329, [0; 16]);
    let old_type = |entry: Entry| entry.with(156, b"\0");
    let spaces = |entry: Entry| {
        let size = entry.data.len();
        entry.with_size(format!("{size:>11o} "))
    };
    let sample = sample();
    for form in [&gnu as &dyn Fn(Entry) -> Entry, &old_type, &spaces] {
        let [before, after] = around_sample(&[form(Entry::blob(b"another"))]);
        for bytes in [before, after] {
            assert_eq!(crate::support::read_all(&bytes), crate::support::read_all(&sample));
        }
    }
    let docker = Entry::file("manifest.json", b"[]");
    assert!(around_sample(&[docker]).iter().all(|bytes| open_bytes(bytes).is_ok()));
}

/// Archive whose size is measured before it grows.
struct Growing {
    content: Cursor<Vec<u8>>,
    measured: u64,
}

impl Read for Growing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.content.read(buffer)
    }
}

impl Seek for Growing {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        match position {
            SeekFrom::End(0) => Ok(self.measured),
            other => self.content.seek(other),
        }
    }
}

#[test]
fn an_archive_that_grows_or_shrinks_during_the_pass_is_refused() {
    let sample = sample();
    for measured in 0..sample.len() as u64 {
        let growing = Growing { content: Cursor::new(sample.clone()), measured };
        assert!(matches!(Archive::from_reader(growing), Err(Error::Tar(_))), "{measured}");
        let shrunk =
            Growing { content: Cursor::new(sample[..measured as usize].to_vec()), measured: sample.len() as u64 };
        assert!(Archive::from_reader(shrunk).is_err(), "{measured}");
    }
}
