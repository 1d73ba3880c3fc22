//! Figures of the server's process beside its calls: compilations, the cache, sandboxes, the queue and the audit log.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use toolcrib::ProcessFigures;

/// Reader of the figures at each request for them.
#[derive(Debug)]
pub(super) struct ProcessMetrics;

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let figures = ProcessFigures::read();
        let (compilations, lookups) = ("Compilations of programs.", "Looks for compiled programs in the cache.");
        let failed = [("outcome", "ok", figures.compiled), ("outcome", "failed", figures.compile_failures)];
        let found = [("result", "hit", figures.cache_hits), ("result", "miss", figures.cache_misses)];
        for (name, help, series) in
            [("toolcrib_compilations", compilations, failed), ("toolcrib_cache_lookups", lookups, found)]
        {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (label, value, count) in series {
                ConstCounter::new(count).encode(family.encode_family(&[(label, value)])?)?;
            }
        }
        let seconds = ConstCounter::new(figures.compile_time.as_secs_f64());
        let help = "Time of all compilations.";
        seconds.encode(encoder.encode_descriptor("toolcrib_compile_seconds", help, None, MetricType::Counter)?)?;
        for (name, help, count) in [
            ("toolcrib_log_records", "Records that were written to the audit log.", figures.records),
            ("toolcrib_log_lost", "Records that could not be written to the audit log.", figures.lost_records),
        ] {
            ConstCounter::new(count).encode(encoder.encode_descriptor(name, help, None, MetricType::Counter)?)?;
        }
        for (name, help, count) in [
            ("toolcrib_sandboxes", "Sandboxes, each with the instances of a program.", figures.sandboxes),
            ("toolcrib_calls_waiting", "Calls that wait for their turn.", figures.waiting_calls),
            ("toolcrib_log_waiting", "Records that wait to be written to the audit log.", figures.waiting_records),
        ] {
            let gauge = ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
        Ok(())
    }
}
