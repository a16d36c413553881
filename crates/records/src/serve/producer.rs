//! The source of arrays: `arrayPerformanceMain` with its arguments as options, and the monitors
//! that it may have of its own, with a report once a second.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::client::{Client, OperationKind, Settings};
use crate::protocol::Request;
use crate::server::{Producer, Production, RecordsServer, Service, Watcher};
use anyhow::Context as _;
use wire::Address;

use crate::command::report::{Report, Tally};
use crate::command::typed::{ARRAY_CHANNEL, seconds};

/// Options of the source.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "A source of arrays")]
pub(super) struct ProducerArgs {
    /// Give a record a new array again and again
    #[arg(long, value_enum, value_name = "WHAT")]
    producer: Option<Kind>,

    /// The record's name
    #[arg(long, requires = "producer", default_value = ARRAY_CHANNEL)]
    name: String,

    /// Elements of each array, 64-bit integers
    #[arg(
        long,
        requires = "producer",
        value_name = "ELEMENTS",
        default_value_t = 10_000_000,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    size: u64,

    /// Seconds between two arrays
    #[arg(
        long,
        requires = "producer",
        value_name = "SECONDS",
        default_value = "0.0001",
        value_parser = seconds
    )]
    delay: Duration,

    /// How its own monitors reach the record: in this process, or by a connection
    #[arg(long, requires = "producer", value_enum, default_value_t = Provider::Local)]
    provider: Provider,

    /// How many monitors of its own there are, at most 1,000
    #[arg(
        long,
        requires = "producer",
        value_name = "NUMBER",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(..=1000)
    )]
    monitors: u32,

    /// How many versions may wait for each of these monitors; 0 becomes 1
    #[arg(long, requires = "producer", value_name = "VERSIONS", default_value_t = 2)]
    queue_size: u32,

    /// Seconds that each of these monitors waits after an update
    #[arg(
        long,
        requires = "producer",
        value_name = "SECONDS",
        default_value = "0",
        value_parser = seconds
    )]
    wait: Duration,

    /// Write arrays into new memory each time, or into what earlier ones have left
    #[arg(long, requires = "producer", value_enum, default_value_t = Buffers::Recycled)]
    buffers: Buffers,

    /// Write arrays into memory that clients of this host may see: `records monitor --shared`
    #[arg(long, requires = "producer", conflicts_with = "buffers")]
    shared_memory: bool,
}

/// What can be produced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// Arrays, each filled with its number
    Array,
}

/// How monitors reach a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Provider {
    /// In this process
    Local,
    /// By a connection to this server
    #[value(alias = "pva", alias = "pvAccess")]
    Remote,
}

/// Where arrays are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Buffers {
    /// Into new memory
    Fresh,
    /// Into warm memory
    Recycled,
}

impl ProducerArgs {
    /// Begins, if it is asked to.
    pub(super) fn start(&self, service: &Service) -> anyhow::Result<Option<Producer>> {
        if self.producer.is_none() {
            return Ok(None);
        }
        let production = Production {
            name: self.name.clone(),
            size: usize::try_from(self.size).context("too many elements")?,
            delay: self.delay,
            recycles: self.buffers == Buffers::Recycled,
            shares: self.shared_memory,
            queue: self.queue_size.max(1) as usize,
        };
        Ok(Some(Producer::start(service, production)?))
    }

    /// Has the monitors begin, and everything reported once a second.
    pub(super) fn report(
        &self,
        producer: Arc<Producer>,
        server: &RecordsServer,
        is_json: bool,
    ) -> anyhow::Result<()> {
        let queue = self.queue_size.max(1);
        let mut watchers = Vec::new();
        for _ in 0..self.monitors {
            match self.provider {
                Provider::Local => {
                    let watcher = Watcher::start(producer.record(), queue as usize, self.wait)?;
                    watchers.push(watcher);
                }
                Provider::Remote => {
                    let Some(Address::Internet(address)) = server.addresses().first() else {
                        anyhow::bail!("a remote monitor needs an internet address");
                    };
                    let (address, name, wait) = (*address, self.name.clone(), self.wait);
                    std::thread::spawn(move || {
                        if let Err(error) = monitor(address, &name, queue, wait, is_json) {
                            tracing::warn!("a monitor has ended: {error:#}");
                        }
                    });
                }
            }
        }
        let size = self.size;
        std::thread::spawn(move || report_forever(&producer, &watchers, size, is_json));
        Ok(())
    }
}

/// Bytes of an element.
const ELEMENT_BYTES: u64 = 8;

/// Reports once a second, for as long as the process lives.
fn report_forever(producer: &Producer, watchers: &[Watcher], size: u64, is_json: bool) {
    const SECOND: Duration = Duration::from_secs(1);
    let (mut at, mut before) = (Instant::now(), 0);
    loop {
        std::thread::sleep(SECOND);
        let (seconds, now) = (at.elapsed().as_secs_f64(), producer.iterations());
        at = Instant::now();
        let count = now - std::mem::replace(&mut before, now);
        let elements = count.saturating_mul(size);
        let bytes = elements.saturating_mul(ELEMENT_BYTES);
        let value = now.saturating_sub(1).to_string();
        let produced = Report {
            what: "iterations",
            seconds,
            count,
            elements,
            bytes,
            ends: Some((value.clone(), value)),
            ..Report::default()
        };
        log("produced", &produced, is_json);
        for watcher in watchers {
            let seen = watcher.take();
            let ends = seen.ends.map(|(first, last)| (first.to_string(), last.to_string()));
            let monitored = Report {
                what: "updates",
                seconds,
                count: seen.updates,
                elements: seen.elements,
                bytes: seen.elements.saturating_mul(ELEMENT_BYTES),
                ends,
                changed: seen.changed,
                overrun: seen.overrun,
                lost: seen.lost,
                unlike: Some(seen.torn),
                shared: 0,
            };
            log("monitored", &monitored, is_json);
        }
    }
}

/// Logs a report in which something has happened: a line for people, or raw numbers under the keys
/// of the client's JSON.
fn log(what: &str, report: &Report, is_json: bool) {
    let Report { seconds, count, elements, bytes, lost, unlike, .. } = *report;
    if count == 0 {
        return;
    }
    if !is_json {
        tracing::info!("{what} {}", report.text());
        return;
    }
    let rate = |count: u64| count as f64 / seconds;
    let (per_s, elements_per_s, bytes_per_s) = (rate(count), rate(elements), rate(bytes));
    let (first, last) = report.ends.as_ref().map(|(first, last)| (first, last)).unzip();
    if report.what == "iterations" {
        tracing::info!(
            seconds,
            iterations = count,
            iterations_per_s = per_s,
            elements,
            elements_per_s,
            bytes,
            bytes_per_s,
            first,
            last,
            "{what}"
        );
        return;
    }
    tracing::info!(
        seconds,
        updates = count,
        updates_per_s = per_s,
        elements,
        elements_per_s,
        bytes,
        bytes_per_s,
        first,
        last,
        changed = ?report.changed.iter().collect::<Vec<_>>(),
        server_overrun = ?report.overrun.iter().collect::<Vec<_>>(),
        client_overrun = lost,
        unlike,
        "{what}"
    );
}

/// Monitors by a connection, and reports.
fn monitor(
    address: std::net::SocketAddr,
    name: &str,
    queue: u32,
    wait: Duration,
    is_json: bool,
) -> anyhow::Result<()> {
    let mut client = Client::connect(address, Settings::default())?;
    let channel = client.channel(name)?;
    let mut request = Request::default();
    request.options.insert("queueSize".to_owned(), queue.to_string());
    let mut monitor = client.begin(&channel, OperationKind::Monitor { window: None }, &request)?;
    client.run(&monitor, true)?;
    let mut tally = Tally::new("updates");
    loop {
        if let Some(update) = client.next(&mut monitor, Duration::from_secs(1))? {
            tally.add(update.item.get("value").and_then(|value| value.as_array()));
            tally.add_fields(&update.changed, &update.overrun);
            std::thread::sleep(wait);
        }
        if let Some(report) = tally.due() {
            log("monitored", &report, is_json);
        }
    }
}
