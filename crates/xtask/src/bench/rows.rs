//! The index of measured figures: a row each, with its suite, its document, and the crates that its
//! figures depend on.

/// One row: what is run, and the document whose block `bench:NAME` shows it.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// The program's arguments.
    pub(super) run: &'static str,
    pub(super) shown: Shown,
    /// The crates that are measured; the figures are stale when one of them has changed since.
    pub(super) crates: &'static [&'static str],
}

/// The form in which a document shows a run.
#[derive(Clone, Copy)]
pub(super) enum Shown {
    /// As the program prints it.
    Printed,
    /// The first point and the conclusion of what the program prints.
    Excerpt,
    /// As a table with a line per target and point, for suites of many points.
    Table,
    /// As the program prints it, without commit and host: it is no figure, and a test compares it.
    Bare,
}

/// The row whose figures and picture are in the README.
pub(super) const PICTURED: &str = "tour";

/// The row that the page of codecs shows.
const CAPABILITIES: &str = "rpc-capabilities";

impl Row {
    pub(super) fn marker(&self) -> String {
        format!("bench:{}", self.name)
    }

    /// The document's path from the repository's root.
    pub(super) fn document(&self) -> String {
        match self.name {
            PICTURED => "README.md".to_owned(),
            CAPABILITIES => "docs/rpc-codecs.md".to_owned(),
            name => format!("docs/benchmarks/{name}.md"),
        }
    }
}

/// What a figure of a service is of: the service, the load seam, and the loop at both ends. The lab
/// decides what is measured, which the suite says, and not what it costs.
const CACHE: &[&str] = &["cache", "load", "wire"];
const RECORDS: &[&str] = &["load", "records", "wire"];
const CONDITIONS: &[&str] = &["conditions", "journal", "load", "wire"];
const RPC: &[&str] = &["load", "rpc", "wire"];
const WORKFLOW: &[&str] = &["journal", "load", "wire", "workflow"];
/// The lab itself is measured.
const LAB: &[&str] = &["lab", "load", "wire"];

const fn printed(name: &'static str, run: &'static str) -> Row {
    Row { name, run, shown: Shown::Printed, crates: CACHE }
}

const fn cache(name: &'static str, run: &'static str) -> Row {
    Row { name, run, shown: Shown::Table, crates: CACHE }
}

const fn records(name: &'static str, run: &'static str) -> Row {
    Row { name, run, shown: Shown::Table, crates: RECORDS }
}

const fn conditions(name: &'static str, run: &'static str) -> Row {
    Row { name, run, shown: Shown::Table, crates: CONDITIONS }
}

const fn workflow(name: &'static str, run: &'static str) -> Row {
    Row { name, run, shown: Shown::Table, crates: WORKFLOW }
}

const fn rpc(name: &'static str, run: &'static str) -> Row {
    Row { name, run, shown: Shown::Table, crates: RPC }
}

/// The figures are the programs' own, which tables don't show.
const fn programs(name: &'static str, run: &'static str) -> Row {
    Row { shown: Shown::Printed, ..rpc(name, run) }
}

/// Steps have figures of their own, which tables don't show.
const fn steps(name: &'static str, run: &'static str) -> Row {
    Row { shown: Shown::Printed, ..workflow(name, run) }
}

/// All figures of documents.
pub(super) const ROWS: &[Row] = &[
    Row { shown: Shown::Excerpt, ..printed(PICTURED, "run suites/tour.toml") },
    Row { crates: LAB, ..printed("generator", "run suites/generator.toml") },
    printed("memcaslap", "run suites/memcaslap.toml"),
    printed("open-loop", "run suites/open-loop.toml"),
    Row { crates: LAB, ..printed("doctor", "doctor") },
    cache("cache-peers", "run suites/cache-peers.toml"),
    cache("cache-udp", "run suites/cache-udp.toml"),
    cache("cache-latency", "run suites/cache-latency.toml"),
    cache("cache-large", "run suites/cache-large.toml"),
    cache("cache-threads", "run suites/cache-threads.toml"),
    cache("cache-evict", "run suites/cache-evict.toml"),
    cache("cache-web", "run suites/cache-web.toml"),
    cache("cache-multiclient", "run suites/cache-multiclient.toml"),
    printed("cache-ladder", "ladder suites/cache-ladder.toml"),
    records("records-array", "run suites/records-array.toml"),
    records("records-array-monitor", "run suites/records-array-monitor.toml"),
    records("records-array-client", "run suites/records-array-client.toml"),
    records("records-array-shared", "run suites/records-array-shared.toml"),
    records("records-ends", "run suites/records-ends.toml"),
    records("records-producer", "run suites/records-producer.toml"),
    records("records-programs", "run suites/records-programs.toml"),
    records("records-scalar", "run suites/records-scalar.toml"),
    records("records-scalar-monitor", "run suites/records-scalar-monitor.toml"),
    records("records-saturated", "run suites/records-saturated.toml"),
    records("records-churn", "run suites/records-churn.toml"),
    records("records-connect", "run suites/records-connect.toml"),
    records("records-slow-client", "run suites/records-slow-client.toml"),
    conditions("conditions-reconstruction", "run suites/conditions-reconstruction.toml"),
    workflow("workflow-children", "run suites/workflow-children.toml"),
    workflow("workflow-children-unsynced", "run suites/workflow-children-unsynced.toml"),
    workflow("workflow-changes", "run suites/workflow-changes.toml"),
    workflow("workflow-soak", "run suites/workflow-soak.toml"),
    steps("workflow-large", "run suites/workflow-large.toml"),
    steps("workflow-restart", "run suites/workflow-restart.toml"),
    steps("workflow-commands", "run suites/workflow-commands.toml"),
    steps("workflow-pushed", "run suites/workflow-pushed.toml"),
    steps("workflow-job-files", "run suites/workflow-job-files.toml"),
    steps("workflow-jobs", "run suites/workflow-jobs.toml"),
    steps("workflow-checkpoint", "run suites/workflow-checkpoint.toml"),
    steps("workflow-disk-slow", "run suites/workflow-disk-slow.toml"),
    steps("workflow-disk-full", "run suites/workflow-disk-full.toml"),
    steps("workflow-triggers", "run suites/workflow-triggers.toml"),
    steps("workflow-release", "run suites/workflow-release.toml"),
    steps("workflow-parser", "run suites/workflow-parser.toml"),
    steps("workflow-simulate", "run suites/workflow-simulate.toml"),
    steps("workflow-encodings", "run suites/workflow-encodings.toml"),
    steps("workflow-levels", "run suites/workflow-levels.toml"),
    steps("workflow-ladder-log", "ladder suites/workflow-ladder-log.toml --profiles 0 --cost"),
    steps("workflow-ladder-print", "ladder suites/workflow-ladder-print.toml --profiles 0 --cost"),
    steps(
        "workflow-ladder-checkpoint",
        "ladder suites/workflow-ladder-checkpoint.toml --profiles 0 --cost",
    ),
    steps(
        "workflow-ladder-snapshot",
        "ladder suites/workflow-ladder-snapshot.toml --profiles 0 --cost",
    ),
    steps(
        "workflow-ladder-strings",
        "ladder suites/workflow-ladder-strings.toml --profiles 0 --cost",
    ),
    steps(
        "workflow-ladder-triggers",
        "ladder suites/workflow-ladder-triggers.toml --profiles 0 --cost",
    ),
    steps("workflow-builds", "ladder suites/workflow-builds.toml --profiles 0"),
    rpc("rpc-calls", "run suites/rpc-calls.toml"),
    Row { shown: Shown::Printed, ..rpc("rpc-single", "run suites/rpc-single.toml") },
    Row { shown: Shown::Printed, ..rpc("rpc-generator", "run suites/rpc-generator.toml") },
    Row { shown: Shown::Printed, ..rpc("rpc-calls-go", "run suites/rpc-calls-go.toml") },
    rpc("rpc-open", "run suites/rpc-open.toml"),
    rpc("rpc-streams", "run suites/rpc-streams.toml"),
    rpc("rpc-streams-large", "run suites/rpc-streams-large.toml"),
    rpc("rpc-streams-many", "run suites/rpc-streams-many.toml"),
    rpc("rpc-streams-slow", "run suites/rpc-streams-slow.toml"),
    rpc("rpc-calls-slow", "run suites/rpc-calls-slow.toml"),
    rpc("rpc-idle", "run suites/rpc-idle.toml"),
    programs("rpc-carriers", "run suites/rpc-carriers.toml"),
    programs("rpc-mpi", "run suites/rpc-mpi.toml"),
    programs("rpc-writes", "run suites/rpc-writes.toml"),
    programs("rpc-ladder", "run suites/rpc-ladder.toml"),
    programs("rpc-futures", "run suites/rpc-futures.toml"),
    programs("rpc-sizes", "run suites/rpc-sizes.toml"),
    Row { shown: Shown::Bare, ..rpc(CAPABILITIES, "rpc codecs") },
    rpc("rpc-codecs", "run suites/rpc-codecs.toml"),
    rpc("rpc-codecs-small", "run suites/rpc-codecs-small.toml"),
    rpc("rpc-codecs-arrays", "run suites/rpc-codecs-arrays.toml"),
    rpc("rpc-codecs-chain", "run suites/rpc-codecs-chain.toml"),
    programs("rpc-codecs-python", "run suites/rpc-codecs-python.toml"),
    rpc("rpc-grpc-regression", "run suites/rpc-grpc-regression.toml"),
    programs("rpc-protobuf-regression", "run suites/rpc-protobuf-regression.toml"),
    conditions("conditions-next", "run suites/conditions-next.toml"),
    conditions("conditions-insert", "run suites/conditions-insert.toml"),
    conditions("conditions-nopayloaddb", "run suites/conditions-nopayloaddb.toml"),
    Row { crates: CONDITIONS, ..printed("conditions-cache", "run suites/conditions-cache.toml") },
    Row { crates: CONDITIONS, ..printed("conditions-load", "run suites/conditions-load.toml") },
    conditions("conditions-again", "run suites/conditions-again.toml"),
    conditions("conditions-atlas", "run suites/conditions-atlas.toml"),
    conditions("conditions-lhcb", "run suites/conditions-lhcb.toml"),
    conditions("conditions-year", "run suites/conditions-year.toml"),
    conditions("conditions-long", "run suites/conditions-long.toml"),
    conditions("conditions-payload", "run suites/conditions-payload.toml"),
    conditions("conditions-memory", "run suites/conditions-memory.toml"),
    conditions("conditions-append", "run suites/conditions-append.toml"),
    conditions("conditions-browse", "run suites/conditions-browse.toml"),
    conditions("conditions-programs", "run suites/conditions-programs.toml"),
    conditions("conditions-replica", "run suites/conditions-replica.toml"),
    conditions("conditions-atlas-full", "run suites/conditions-atlas-full.toml"),
    conditions("conditions-idle", "run suites/conditions-idle.toml"),
    conditions(
        "conditions-reconstruction-small",
        "run suites/conditions-reconstruction-small.toml",
    ),
];

#[cfg(test)]
mod tests {
    use super::super::document::replace;
    use super::*;
    use crate::process::repository;

    #[test]
    fn every_row_has_its_suite_its_crates_and_its_markers() {
        for row in ROWS {
            let mut files = row.run.split(' ').filter(|argument| argument.ends_with(".toml"));
            assert!(files.all(|file| repository().join(file).is_file()), "{}", row.name);
            let folder = |name: &&str| repository().join("crates").join(name).is_dir();
            assert!(row.crates.iter().all(folder), "{}", row.name);
            let text = std::fs::read_to_string(repository().join(row.document())).unwrap();
            assert!(replace(&text, &row.marker(), "").is_some(), "{}", row.name);
        }
    }
}
