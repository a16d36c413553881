//! `loadline serve records`. Control plane.

mod args;
mod options;
mod producer;
mod putlog;

use std::sync::Arc;
use std::time::Duration;

use service::metrics::{Kind, Metrics};
use service::{FEWER_THREADS, Failure, Harness, Outcome, Run, Running, is_local, listen_advice};
use wire::Address;

use crate::server::{BoundRecords, Options, RecordsServer, StartError};
use options::{options, service};
use putlog::{OpenPutLog, PutLogFile};

pub(crate) use args::RecordsArgs;

impl Run for RecordsArgs {
    fn run(self) -> Outcome {
        let mut harness = Harness::begin(crate::SERVICE.name, &self.common)?;
        let options = options(&self)?;
        self.check_exposure(&harness, &options)?;
        let put_log = self.put_log.as_deref();
        let put_log = put_log.map(|path| harness.open_to_append("--put-log", path)).transpose()?;
        let put_log = put_log.map(OpenPutLog::new);
        let service = service(&self, put_log.as_ref().map(OpenPutLog::log))?;
        let producer = self.producer.start(&service).map_err(Failure::usage)?.map(Arc::new);
        if service.names().is_empty() {
            tracing::warn!(
                "there are no records: declare some with --config, or make them by a call"
            );
        }
        let bound = BoundRecords::bind(options).map_err(explained)?;
        harness.bind_metrics(&self.http)?;
        let mut harness = harness.drop_privileges(bound.listeners())?;
        let put_log = put_log.map(OpenPutLog::start).transpose()?;
        let server = bound.start(Arc::clone(&service)).map_err(explained)?;
        harness.serve_metrics(metrics(&server, put_log.as_ref()))?;
        if let Some(producer) = &producer {
            self.producer.report(Arc::clone(producer), &server, self.common.log_json)?;
        }
        tracing::info!(records = service.names().len(), "serving");
        let search = server.search_addresses().first();
        harness.run(Running {
            protocol: "pva",
            addresses: server.addresses().to_vec(),
            other: search.map(|address| ("search", address.to_string())),
            data: None,
            stop: Box::new(move |drain: Duration| {
                // As long as it makes arrays, monitors are never sent all of them.
                if let Some(producer) = producer {
                    producer.stop();
                }
                let counters = server.stop(drain);
                if let Some(log) = put_log {
                    log.finish();
                }
                Some(counters)
            }),
        })
    }
}

impl RecordsArgs {
    /// An address that other machines can reach needs --public; one of EPICS' environment doesn't.
    fn check_exposure(&self, harness: &Harness, options: &Options) -> Result<(), Failure> {
        let addresses: Vec<_> = options.listen.iter().map(|at| Address::Internet(*at)).collect();
        if !self.listen.is_empty() {
            return harness.check_exposure("--listen", &addresses);
        }
        if let Some(address) = addresses.iter().find(|at| !is_local(at) && !self.common.public) {
            tracing::warn!(
                "EPICS_PVAS_INTF_ADDR_LIST: {address} can be reached from other machines, which \
                 may read all records, and change those that no rule of access protects"
            );
        }
        Ok(())
    }
}

/// The counters of the loop and of the records, for Prometheus.
fn metrics(
    server: &RecordsServer,
    put_log: Option<&PutLogFile>,
) -> impl Fn() -> String + Send + Sync + 'static {
    let (counters, service) = (server.counters_reader(), Arc::clone(server.service()));
    let lost = put_log.map(PutLogFile::lost);
    move || {
        let mut page = Metrics::of("records");
        page.add_loop(&counters());
        page.add(Kind::Gauge, "records", "Records served.", service.names().len() as u64);
        for (name, count) in service.counters() {
            let help = format!("{} since the start.", name.replace('_', " "));
            page.add(Kind::Counter, name, &help, count);
        }
        if let Some(lost) = &lost {
            page.add(Kind::Counter, "puts_not_logged", "Puts that --put-log has lost.", lost());
        }
        page.text()
    }
}

/// The error with what to do about it.
fn explained(error: StartError) -> anyhow::Error {
    let advice = match &error {
        StartError::Listen(error) => {
            listen_advice(error, "choose another address with --listen, or --no-search")
        }
        StartError::Threads(_) => FEWER_THREADS,
    };
    anyhow::anyhow!("{error}; {advice}")
}
