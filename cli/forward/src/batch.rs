//! Batches: consecutive records of the log, bounded in number and size, with the problems between them.

use toolcrib::audit::{LogTail, TailEvent, TailProblem};

use super::record::ForwardedRecord;

/// Bounds of a batch. A record that is larger is sent alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchLimits {
    pub(crate) records: usize,
    pub(crate) bytes: usize,
}

impl Default for BatchLimits {
    fn default() -> Self {
        Self { records: 500, bytes: 1 << 20 }
    }
}

/// Reader of batches, with at most one record in memory beside the batch.
#[derive(Debug)]
pub(crate) struct BatchReader {
    tail: LogTail,
    limits: BatchLimits,
    has_arguments: bool,
    /// Record that did not fit in the last batch.
    next: Option<ForwardedRecord>,
}

impl BatchReader {
    pub(crate) fn new(tail: LogTail, limits: BatchLimits, has_arguments: bool) -> Self {
        Self { tail, limits, has_arguments, next: None }
    }

    /// Reads the next batch, which is empty if nothing more is written yet. `report` gets each problem.
    pub(crate) fn read(
        &mut self,
        mut report: impl FnMut(TailProblem),
    ) -> Result<Vec<ForwardedRecord>, toolcrib::Error> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < self.limits.records {
            let record = match self.next.take() {
                Some(record) => record,
                None => match self.tail.next()? {
                    Some(TailEvent::Record(record)) => ForwardedRecord::new(record, self.has_arguments),
                    Some(TailEvent::Problem(problem)) => {
                        report(problem);
                        continue;
                    }
                    _ => break,
                },
            };
            bytes += record.line.len();
            if bytes > self.limits.bytes && !batch.is_empty() {
                self.next = Some(record);
                break;
            }
            batch.push(record);
        }
        Ok(batch)
    }
}

#[cfg(test)]
mod tests {
    use toolcrib::audit::tail;

    use super::*;
    use crate::sample_log;

    #[test]
    fn batches_are_bounded_in_number_and_size_and_a_large_record_is_alone() {
        let log = tempfile::tempdir().unwrap();
        sample_log::log(log.path(), 7);
        let length = std::fs::read_to_string(log.path().join("20260301.log")).unwrap().find('\n').unwrap();
        for (records, bytes, expected) in [
            (3, usize::MAX, vec![3, 3, 1]),
            (7, usize::MAX, vec![7]),
            (9, 2 * length, vec![2, 2, 2, 1]),
            (9, 2 * length - 1, vec![1; 7]),
            (9, 1, vec![1; 7]),
        ] {
            let limits = BatchLimits { records, bytes };
            let mut reader = BatchReader::new(tail(log.path(), None).unwrap(), limits, true);
            let mut read = || reader.read(|problem| panic!("{problem}")).unwrap();
            let batches: Vec<_> = std::iter::from_fn(|| Some(read()).filter(|batch| !batch.is_empty())).collect();
            assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), expected);
            let seqs: Vec<_> = batches.iter().flatten().map(|record| record.place.seq).collect();
            assert_eq!(seqs, (1..=7).collect::<Vec<_>>());
        }
    }
}
