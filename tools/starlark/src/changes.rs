//! Encoding of the differences of two equally long pieces of memory: runs of changed bytes, each after its address and its
//! length, as two numbers of 32 bits.

/// Number of bytes that are compared at once.
const UNIT: usize = 8;

/// Number of equal units that end a run: fewer cost less than the head of another run.
const GAP: usize = 4;

/// Bytes of the head of a run.
const HEAD: usize = 8;

/// Writes the differences of `new` from `old` into `out`, with addresses that count from `start`, and returns the number of
/// written bytes; `None` if there are more than `out` can hold. Bytes after the last whole unit are not compared.
pub(crate) fn write(old: &[u8], new: &[u8], start: usize, out: &mut [u8]) -> Option<usize> {
    let (old, _) = old.as_chunks::<UNIT>();
    let (new, _) = new.as_chunks::<UNIT>();
    let (mut used, mut at) = (0, 0);
    while let Some(next) = differing(old, new, at) {
        let end = end_of_run(old, new, next);
        let bytes = new.get(next..end)?.as_flattened();
        let address = u32::try_from(start + next * UNIT).ok()?;
        let run = out.get_mut(used..used + HEAD + bytes.len())?;
        let (head, body) = run.split_at_mut(HEAD);
        head[..4].copy_from_slice(&address.to_le_bytes());
        head[4..].copy_from_slice(&u32::try_from(bytes.len()).ok()?.to_le_bytes());
        body.copy_from_slice(bytes);
        (used, at) = (used + HEAD + bytes.len(), end);
    }
    Some(used)
}

/// Returns the index of the first unit that differs, from `at` on.
fn differing(old: &[[u8; UNIT]], new: &[[u8; UNIT]], at: usize) -> Option<usize> {
    let differs = old.get(at..)?.iter().zip(new.get(at..)?).position(|(old, new)| old != new)?;
    Some(at + differs)
}

/// Returns the index behind the run of changed units that begins at `first`.
fn end_of_run(old: &[[u8; UNIT]], new: &[[u8; UNIT]], first: usize) -> usize {
    let mut end = first + 1;
    while let Some(next) = differing(old, new, end)
        && next < end + GAP
    {
        end = next + 1;
    }
    end
}

/// Returns the runs with their addresses, up to the first that is not whole.
pub(crate) fn read(mut changes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    std::iter::from_fn(move || {
        let (address, rest) = changes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (bytes, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        changes = rest;
        Some((u32::from_le_bytes(*address) as usize, bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(old: &[u8], new: &[u8]) -> Vec<u8> {
        let mut out = vec![0; 1000];
        let used = write(old, new, 0, &mut out).expect("there is room");
        out.truncate(used);
        out
    }

    #[test]
    fn changes_that_are_applied_give_the_new_bytes() {
        let old: Vec<u8> = (0..=255).collect();
        for changed in [&[][..], &[0], &[255], &[3, 4, 100], &[0, 63, 64, 65, 128, 191, 192]] {
            let mut new = old.clone();
            for &index in changed {
                new[index] ^= 0x55;
            }
            let mut applied = old.clone();
            for (address, bytes) in read(&written(&old, &new)) {
                applied[address..address + bytes.len()].copy_from_slice(bytes);
            }
            assert_eq!(applied, new, "{changed:?}");
        }
    }

    #[test]
    fn near_changes_are_one_run_and_far_ones_are_two() {
        let (old, mut new) = ([0; 256], [0; 256]);
        (new[0], new[31]) = (1, 1);
        assert_eq!(written(&old, &new).len(), HEAD + 32);
        new[72] = 1;
        assert_eq!(written(&old, &new).len(), 2 * HEAD + 32 + UNIT);
    }

    #[test]
    fn changes_that_do_not_fit_are_refused() {
        assert_eq!(write(&[0; 64], &[1; 64], 0, &mut [0; 71]), None);
        assert_eq!(write(&[0; 64], &[1; 64], 0, &mut [0; 72]), Some(72));
    }

    #[test]
    fn a_broken_run_ends_the_changes() {
        let whole = written(&[0; 8], &[1; 8]);
        assert_eq!(read(&whole).count(), 1);
        for cut in 0..whole.len() {
            assert_eq!(read(&whole[..cut]).count(), 0);
        }
    }
}
