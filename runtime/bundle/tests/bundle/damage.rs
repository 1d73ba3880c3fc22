//! A damaged archive is either refused or read with its original content.

use crate::support::{read_all, sample};

/// Asserts the rule for one damaged archive.
fn assert_refused_or_equal(damaged: &[u8], original: &[u8], description: &str) -> bool {
    match read_all(damaged) {
        Err(_) => true,
        Ok(content) => {
            assert_eq!(Ok(content), read_all(original), "{description}");
            false
        }
    }
}

#[test]
fn an_archive_cut_at_any_block_or_byte_is_refused() {
    let sample = sample();
    for length in 0..sample.len() {
        assert!(read_all(&sample[..length]).is_err(), "cut at {length} of {}", sample.len());
    }
}

#[test]
fn no_flipped_bit_changes_what_is_read() {
    let sample = sample();
    let mut damaged = sample.clone();
    let mut accepted = 0;
    for bit in 0..sample.len() * 8 {
        damaged[bit / 8] ^= 1 << (bit % 8);
        if !assert_refused_or_equal(&damaged, &sample, &format!("bit {bit}")) {
            accepted += 1;
        }
        damaged[bit / 8] ^= 1 << (bit % 8);
    }
    // Only `index.json` has no digest: its ref name, artifact type and keys that are ignored may change.
    assert!(accepted < 8 * 358, "{accepted} flipped bits were accepted");
}

#[test]
fn no_overwritten_block_changes_what_is_read() {
    let sample = sample();
    for block in 0..sample.len() / 512 {
        for value in [0, 0xff, b'0'] {
            let mut damaged = sample.clone();
            damaged[block * 512..][..512].fill(value);
            if damaged != sample {
                assert_refused_or_equal(&damaged, &sample, &format!("block {block}"));
            }
        }
        for other in 0..sample.len() / 512 {
            let mut damaged = sample.clone();
            damaged.copy_within(other * 512..(other + 1) * 512, block * 512);
            assert_refused_or_equal(&damaged, &sample, &format!("block {other} over {block}"));
        }
    }
}

#[test]
fn a_removed_or_repeated_block_never_changes_what_is_read() {
    let sample = sample();
    for block in 0..sample.len() / 512 {
        let (before, rest) = sample.split_at(block * 512);
        let removed = [before, &rest[512..]].concat();
        // The entries of the two directories carry nothing.
        assert_refused_or_equal(&removed, &sample, &format!("block {block} removed"));
        let repeated = [before, &rest[..512], rest].concat();
        assert_refused_or_equal(&repeated, &sample, &format!("block {block} repeated"));
    }
}
