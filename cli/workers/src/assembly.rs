//! Assembly of a value that arrives in parts, within a bound that is known before the first part.

use crate::message::MAX_PART;

/// Value with missing parts.
#[derive(Debug)]
pub(crate) struct Assembly {
    whole: usize,
    parts: u32,
    bytes: Vec<u8>,
}

impl Assembly {
    /// Begins with the announced size and the first part.
    ///
    /// # Errors
    ///
    /// The value is larger than `max`, or the part is wrong.
    pub(crate) fn begin(bytes: u64, max: usize, first: &[u8]) -> Result<Self, String> {
        let whole = usize::try_from(bytes).ok().filter(|bytes| *bytes <= max);
        let whole = whole.ok_or_else(|| format!("a value has {bytes} bytes, more than the {max} allowed"))?;
        let mut begun = Self { whole, parts: 0, bytes: Vec::new() };
        begun.add(0, first)?;
        Ok(begun)
    }

    /// Adds the next part.
    ///
    /// # Errors
    ///
    /// The part is out of order, empty, or longer than the rest.
    pub(crate) fn add(&mut self, index: u32, part: &[u8]) -> Result<(), String> {
        let (next, rest) = (self.parts, self.whole - self.bytes.len());
        if index != next {
            return Err(format!("part {index} of a value arrived in place of part {next}"));
        }
        // Every part but the last is full, so that their number is bounded.
        if part.len() != rest.min(MAX_PART) {
            return Err(format!("part {index} of a value has {} bytes in place of {}", part.len(), rest.min(MAX_PART)));
        }
        self.bytes.extend_from_slice(part);
        self.parts += 1;
        Ok(())
    }

    /// Returns the value once no part is missing.
    pub(crate) fn whole(&mut self) -> Option<Vec<u8>> {
        (self.bytes.len() == self.whole).then(|| std::mem::take(&mut self.bytes))
    }
}

/// Divides a value into parts; an empty value has one empty part.
pub(crate) fn parts(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let first = value.split_at(value.len().min(MAX_PART));
    std::iter::once(first.0).chain(first.1.chunks(MAX_PART))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assembled(value: &[u8], max: usize) -> Result<Vec<u8>, String> {
        let mut all = parts(value);
        let mut assembly = Assembly::begin(value.len() as u64, max, all.next().unwrap())?;
        for (index, part) in (1..).zip(all) {
            assert_eq!(assembly.whole(), None);
            assembly.add(index, part)?;
        }
        Ok(assembly.whole().unwrap())
    }

    #[test]
    fn a_value_of_any_size_survives_its_way_up_to_the_bound() {
        for size in [0, 1, MAX_PART, MAX_PART + 1, 3 * MAX_PART] {
            let value: Vec<u8> = (0..size).map(|at| at.to_le_bytes()[0]).collect();
            assert_eq!(assembled(&value, size), Ok(value.clone()));
            if size > 0 {
                assert!(assembled(&value, size - 1).unwrap_err().contains("more than"));
            }
        }
    }

    #[test]
    fn a_part_out_of_order_or_of_another_size_is_refused() {
        let full = vec![0; MAX_PART];
        let mut assembly = Assembly::begin(MAX_PART as u64 + 2, 1 << 20, &full).unwrap();
        for (index, part) in [(0, &[0; 2][..]), (2, &[0; 2]), (1, &[0; 1]), (1, &[0; 3]), (1, &[])] {
            assert!(assembly.add(index, part).is_err(), "{index} {}", part.len());
        }
        assembly.add(1, &[0; 2]).unwrap();
        assert_eq!(assembly.whole().map(|whole| whole.len()), Some(MAX_PART + 2));
        assert!(Assembly::begin(2, 10, &[0; 3]).is_err());
        assert!(Assembly::begin(2, 10, &[0; 1]).is_err());
        assert!(Assembly::begin(u64::MAX, usize::MAX - 1, &full).is_err());
    }
}
