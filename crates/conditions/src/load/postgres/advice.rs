//! What would help PostgreSQL, by what its connections waited for and how it executes the statement
//! that most of them were in. Rules, in the order in which they count; each says what shows it.

use std::collections::BTreeMap;

use load::{Advice, Statement};

use super::plan::{Plan, Step};

/// A table that a plan reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) name: String,
    /// With its indexes.
    pub(super) bytes: f64,
    /// Whether it was analysed at any time.
    pub(super) has_statistics: bool,
    /// Its columns, each with its type.
    pub(super) columns: Vec<(String, String)>,
    /// The first column of each index.
    pub(super) leading: Vec<String>,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// The statements, that in which most connections were first, and the plans of those that were
    /// asked for.
    pub(super) statements: Vec<(Statement, Option<Plan>)>,
    /// The tables of all plans.
    pub(super) tables: Vec<Table>,
    pub(super) shared_buffers: f64,
    pub(super) work_mem: f64,
    /// The transaction that another one waits for, in words.
    pub(super) holder: Option<String>,
}

/// A filter wastes what it reads when it removes as many rows, and as many times what it keeps.
const WASTED_ROWS: f64 = 1_000.0;
const WASTED_TIMES: f64 = 10.0;

/// An estimate is wrong when it is as many times too large or too small.
const MISJUDGED_TIMES: f64 = 10.0;

/// Blocks that a statement has to read, as a share of all that it needs, from which on the shared
/// buffers are too small, if the tables don't fit.
const READ_SHARE: f64 = 0.05;

const MIB: f64 = 1_048_576.0;

/// What would help, most first; nothing where no rule holds.
pub(super) fn advise(seen: &Seen) -> Vec<Advice> {
    let mut classes: BTreeMap<&str, f64> = BTreeMap::new();
    let all = || seen.statements.iter().flat_map(|(statement, _)| &statement.waits);
    for (wait, active) in all() {
        *classes.entry(wait.split('/').next().unwrap_or(wait)).or_default() += active;
    }
    let sum: f64 = classes.values().sum();
    let most = classes.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((class, active)) = most.filter(|_| sum > 0.0) else { return Vec::new() };
    let of_class = |statement: &Statement| -> f64 {
        let waits = statement.waits.iter();
        waits.filter(|(wait, _)| wait.split('/').next() == Some(class)).map(|(_, one)| one).sum()
    };
    let mut top = 0;
    for (place, (statement, _)) in seen.statements.iter().enumerate() {
        if of_class(statement) > of_class(&seen.statements[top].0) {
            top = place;
        }
    }
    let (statement, plan) = &seen.statements[top];
    let took = format!("{class} took {:.0} % of the connections' time", 100.0 * active / sum);
    let found = match (class, plan) {
        ("Lock", _) => vec![lock(seen)],
        (_, Some(plan)) => [index, statistics, work_memory, shared_memory]
            .iter()
            .filter_map(|rule| rule(seen, plan))
            .collect(),
        _ => Vec::new(),
    };
    let found = match found.is_empty() {
        true => by_event(statement, plan.is_some()).into_iter().collect(),
        false => found,
    };
    let advice = |(code, evidence, help): Found| Advice {
        code,
        wait: class.to_owned(),
        share: active / sum,
        evidence: format!("{took}; {evidence}"),
        statement: Some(top),
        help,
    };
    found.into_iter().map(advice).collect()
}

/// A code, what shows it, and what to do.
type Found = (&'static str, String, String);

fn lock(seen: &Seen) -> Found {
    let held = "a transaction holds the lock for longer than a sample shows".to_owned();
    let evidence = seen.holder.clone().unwrap_or(held);
    let help = "end that transaction sooner, or have it take a weaker lock; lock_timeout bounds \
                how long others wait";
    ("lock", evidence, help.to_owned())
}

/// The columns of a table that a condition names.
fn named<'a>(table: &'a Table, condition: &str) -> Vec<&'a (String, String)> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words: Vec<&str> = condition.split(|letter| !is_word(letter)).collect();
    table.columns.iter().filter(|(name, _)| words.contains(&&name[..])).collect()
}

/// Steps that read far more rows than they keep, with their table.
fn wasteful<'a>(seen: &'a Seen, plan: &'a Plan) -> Option<(&'a Step, &'a Table)> {
    let wastes = |step: &&Step| {
        let kept = step.kept().unwrap_or(f64::INFINITY);
        step.removed >= WASTED_ROWS && step.removed >= WASTED_TIMES * kept
    };
    let most = plan.0.iter().filter(wastes).max_by(|a, b| a.removed.total_cmp(&b.removed))?;
    let table = seen.tables.iter().find(|table| Some(&table.name) == most.table.as_ref())?;
    Some((most, table))
}

fn index(seen: &Seen, plan: &Plan) -> Option<Found> {
    let (step, table) = wasteful(seen, plan)?;
    let columns = named(table, step.filter.as_deref()?);
    let is_there = columns.iter().any(|(name, _)| table.leading.contains(name));
    // Where an index is there and not taken, statistics may be what is missing.
    if columns.is_empty() || (is_there && !table.has_statistics) {
        return None;
    }
    let kept = step.kept()?;
    let read = step.removed + kept;
    let way = match columns.iter().any(|(_, of_type)| of_type.ends_with("range")) {
        true => "USING gist ",
        false => "",
    };
    let names: Vec<&str> = columns.iter().map(|(name, _)| &name[..]).collect();
    Some((
        "index",
        format!("a {} of {} reads {read} rows and keeps {kept}", step.name, table.name),
        format!("CREATE INDEX ON {} {way}({})", table.name, names.join(", ")),
    ))
}

fn statistics(seen: &Seen, plan: &Plan) -> Option<Found> {
    let unknown = seen.tables.iter().filter(|table| !table.has_statistics);
    let read = plan.tables();
    let unknown: Vec<&str> = unknown
        .map(|table| &table.name[..])
        .filter(|name| read.contains(&(*name).into()))
        .collect();
    let by = |step: &&Step| step.misjudged().unwrap_or(1.0);
    let worst = plan.0.iter().max_by(|a, b| by(a).total_cmp(&by(b)))?;
    let wastes = wasteful(seen, plan).is_some();
    if unknown.is_empty() || (by(&worst) < MISJUDGED_TIMES && !wastes) {
        return None;
    }
    let (estimated, rows) = (worst.estimated, worst.rows.unwrap_or(0.0));
    let names = unknown.join(", ");
    Some((
        "statistics",
        format!(
            "{names} never analysed, and {estimated} rows of a {} estimated where {rows} come",
            worst.name
        ),
        format!("ANALYZE {names}, and leave autovacuum on"),
    ))
}

fn work_memory(seen: &Seen, plan: &Plan) -> Option<Found> {
    let first = plan.0.first().filter(|first| first.temporary > 0.0)?;
    let sorted = plan.0.iter().map(|step| step.sorted_kib).sum::<f64>() * 1_024.0;
    // On the disk rows take less than in memory: three times as much is enough.
    let needed = 3.0 * sorted.max(first.temporary * 8_192.0);
    let megabytes = (needed / MIB).ceil().max(1.0);
    let now = seen.work_mem / 1_024.0;
    Some((
        "work_memory",
        format!("it writes {} blocks of temporary files with work_mem = {now}kB", first.temporary),
        format!("work_mem = '{megabytes}MB', for each sort and hash of each connection"),
    ))
}

fn shared_memory(seen: &Seen, plan: &Plan) -> Option<Found> {
    let first = plan.0.first()?;
    let share = first.read / (first.hit + first.read).max(1.0);
    let read = plan.tables();
    let tables = seen.tables.iter().filter(|table| read.contains(&table.name));
    let bytes: f64 = tables.map(|table| table.bytes).sum();
    if share < READ_SHARE || bytes <= seen.shared_buffers {
        return None;
    }
    let [needed, now] = [bytes, seen.shared_buffers].map(|bytes| (bytes / MIB).ceil());
    Some((
        "shared_memory",
        format!(
            "{:.0} % of the blocks that it needs have to be read: tables and indexes take {needed} \
             MB, shared_buffers {now} MB",
            100.0 * share
        ),
        format!("shared_buffers = '{needed}MB', or less data that are read often"),
    ))
}

/// What the event that a statement waited for most says by itself. What has to be read although it
/// would fit is only cold, which a plan tells.
fn by_event(statement: &Statement, is_explained: bool) -> Option<Found> {
    let most = statement.waits.iter().max_by(|a, b| a.1.total_cmp(b.1));
    let event = &most?.0[..];
    let (code, help) = match event {
        "IO/WALSync" | "IO/WALWrite" | "LWLock/WALWrite" | "IPC/WALSync" => {
            ("commits", "insert more in each transaction, or put the log on a faster disk")
        }
        "IO/DataFileRead" | "IO/DataFilePrefetch" if !is_explained => {
            ("shared_memory", "raise shared_buffers, or read less of the tables")
        }
        _ if event.starts_with("LWLock/") || event.starts_with("BufferPin/") => {
            ("contention", "fewer connections at once (a pool of them), or a table in partitions")
        }
        _ => return None,
    };
    Some((code, format!("most of it is {event}"), help.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(waits: &[(&str, f64)], step: Step) -> Seen {
        let waits = waits.iter().map(|(wait, active)| ((*wait).to_owned(), *active)).collect();
        let text = "SELECT".to_owned();
        let statement = Statement { text, active: 4.0, waits, plan: None };
        let column = |name: &str, of: &str| (name.to_owned(), of.to_owned());
        let table = Table {
            name: "conditions".to_owned(),
            bytes: 100.0 * MIB,
            has_statistics: true,
            columns: vec![column("folder", "integer"), column("period", "int8range")],
            leading: Vec::new(),
        };
        let step = Step { table: Some(table.name.clone()), loops: 1.0, ..step };
        Seen {
            statements: vec![(statement, Some(Plan(vec![step])))],
            tables: vec![table],
            shared_buffers: 128.0 * MIB,
            work_mem: 65_536.0,
            holder: None,
        }
    }

    fn step(estimated: f64, rows: f64) -> Step {
        let name = "Seq Scan".to_owned();
        Step { name, estimated, rows: Some(rows), ..Step::default() }
    }

    fn scan(removed: f64) -> Step {
        let filter = Some("(period @> '5'::bigint)".to_owned());
        Step { removed, filter, ..step(100.0, 100.0) }
    }

    fn first(seen: &Seen) -> Option<(&'static str, String)> {
        advise(seen).into_iter().next().map(|one| (one.code, one.help))
    }

    fn code(seen: &Seen) -> Option<&'static str> {
        first(seen).map(|(code, _)| code)
    }

    #[test]
    fn a_filter_that_removes_most_wants_an_index_and_one_that_is_not_taken_statistics() {
        let mut scanned = seen(&[("running", 4.0)], scan(500_000.0));
        let create = "CREATE INDEX ON conditions USING gist (period)".to_owned();
        assert_eq!(first(&scanned), Some(("index", create)));
        let evidence = &advise(&scanned)[0].evidence;
        assert!(evidence.ends_with("a Seq Scan of conditions reads 500100 rows and keeps 100"));
        scanned.tables[0].has_statistics = false;
        assert_eq!(code(&scanned), Some("index"), "there is no index to take");
        scanned.tables[0].leading = vec!["period".to_owned()];
        assert_eq!(code(&scanned), Some("statistics"));
        assert_eq!(code(&seen(&[("running", 4.0)], scan(900.0))), None);
        // None of an index's columns but those of the filter are named.
        let table = &scanned.tables[0];
        assert!(named(table, "(folders = 3) AND (perioder @> 1)").is_empty());
    }

    #[test]
    fn estimates_count_where_there_are_no_statistics() {
        let mut misjudged = seen(&[("running", 4.0)], step(30_000.0, 1_000.0));
        assert_eq!(code(&misjudged), None);
        misjudged.tables[0].has_statistics = false;
        let help = "ANALYZE conditions, and leave autovacuum on".to_owned();
        assert_eq!(first(&misjudged), Some(("statistics", help)));
        misjudged.statements[0].1 = Some(Plan(vec![step(1_500.0, 1_000.0)]));
        assert_eq!(code(&misjudged), None);
    }

    #[test]
    fn memory_is_named_by_what_spills_or_has_to_be_read() {
        let spilt = Step { temporary: 23.0, sorted_kib: 176.0, ..step(1_000.0, 1_000.0) };
        let help = "work_mem = '1MB', for each sort and hash of each connection".to_owned();
        assert_eq!(first(&seen(&[("running", 4.0)], spilt)), Some(("work_memory", help)));
        let mut read = seen(
            &[("IO/DataFileRead", 3.0), ("running", 1.0)],
            Step { hit: 60.0, read: 40.0, ..step(1_000.0, 1_000.0) },
        );
        assert_eq!(code(&read), None, "they fit, and are only cold");
        let plan = read.statements[0].1.take();
        assert_eq!(code(&read), Some("shared_memory"), "that is what it waits for");
        read.statements[0].1 = plan;
        read.shared_buffers = 16.0 * MIB;
        let help = "shared_buffers = '100MB', or less data that are read often".to_owned();
        assert_eq!(first(&read), Some(("shared_memory", help)));
    }

    #[test]
    fn waits_count_before_plans_where_they_are_for_locks_and_by_themselves_without_one() {
        let mut locked = seen(&[("Lock/relation", 3.0), ("running", 1.0)], scan(500_000.0));
        locked.holder = Some("LOCK TABLE holds it".to_owned());
        let advice = &advise(&locked)[0];
        assert_eq!((advice.code, advice.share), ("lock", 0.75));
        assert_eq!(advice.evidence, "Lock took 75 % of the connections' time; LOCK TABLE holds it");
        for (event, expected) in [
            ("IO/WALSync", Some("commits")),
            ("LWLock/BufferMapping", Some("contention")),
            ("Client/ClientWrite", None),
        ] {
            let mut plain = seen(&[(event, 3.0)], step(1.0, 1.0));
            assert_eq!(code(&plain), expected);
            plain.statements[0].1 = None;
            assert_eq!(code(&plain), expected);
        }
        assert_eq!(code(&Seen::default()), None);
    }
}
