//! Counters as Prometheus reads them, in its text format 0.0.4.

use std::fmt::Write as _;

/// The type of a page of metrics.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether a number may fall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only grows; its name ends in `_total`.
    Counter,
    /// It goes up and down.
    Gauge,
}

/// A page of metrics, all of whose names begin with the service's.
#[derive(Debug)]
pub struct Metrics {
    service: &'static str,
    text: String,
}

impl Metrics {
    /// An empty page.
    pub fn of(service: &'static str) -> Self {
        Self { service, text: String::new() }
    }

    /// Adds one number.
    pub fn add(&mut self, kind: Kind, name: &str, help: &str, value: u64) {
        let (word, suffix) = match kind {
            Kind::Counter => ("counter", "_total"),
            Kind::Gauge => ("gauge", ""),
        };
        let name = format!("{}_{name}{suffix}", self.service);
        // Writing to a string can't fail.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {word}\n{name} {value}\n");
    }

    /// Adds what every server loop counts.
    pub fn add_loop(&mut self, counters: &wire::Counters) {
        let wire::Counters { current_connections, total_connections, .. } = *counters;
        self.add(Kind::Gauge, "connections", "Connections open now.", current_connections);
        for (name, help, value) in [
            ("connections_opened", "Connections accepted.", total_connections),
            ("connections_refused", "Connections refused.", counters.rejected_connections),
            (
                "protocol_errors",
                "Connections closed for bytes that break the protocol or a limit.",
                counters.protocol_errors,
            ),
            (
                "slow_peers_closed",
                "Connections closed because unsent bytes took too much memory.",
                counters.slow_peers_closed,
            ),
            (
                "accept_pauses",
                "Times that accepting paused for lack of connections or descriptors.",
                counters.listen_disabled,
            ),
            ("yields", "Turns that ended with more to send.", counters.yields),
            ("read_bytes", "Bytes received.", counters.bytes_read),
            ("written_bytes", "Bytes sent.", counters.bytes_written),
            ("datagrams_received", "Datagrams received.", counters.datagrams_received),
            ("datagrams_sent", "Datagrams sent.", counters.datagrams_sent),
            ("datagrams_dropped", "Datagrams that were not sent.", counters.datagrams_dropped),
        ] {
            self.add(Kind::Counter, name, help, value);
        }
    }

    /// The page.
    pub fn text(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counters_name_says_that_it_only_grows() {
        let mut page = Metrics::of("toy");
        page.add(Kind::Counter, "lines", "Lines answered.", 7);
        page.add(Kind::Gauge, "connections", "Connections open now.", 1);
        let meant = "# HELP toy_lines_total Lines answered.\n# TYPE toy_lines_total counter\n\
                     toy_lines_total 7\n# HELP toy_connections Connections open now.\n\
                     # TYPE toy_connections gauge\ntoy_connections 1\n";
        assert_eq!(page.text(), meant);
    }
}
