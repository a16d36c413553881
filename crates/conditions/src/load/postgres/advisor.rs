//! What PostgreSQL's connections do while they are loaded: which statements they are in and what
//! they wait for, sampled as `pg_stat_activity` has it, and how the statements are executed, asked
//! once a trial is measured. Control plane.

use std::collections::BTreeMap;

use load::{Advisor, Conclusion, MAX_STATEMENTS, Statement};
use postgres::types::{FromSql, ToSql, Type};
use postgres::{Client, Config, Error};
use wire::ProtocolError;

use super::advice::{Seen, Table, advise};
use super::plan::Plan;
use super::slot::{fault, patiently};

/// Statements whose plan is asked for: those in which most connections were.
const EXPLAINED: usize = 3;

/// As many different statements of a trial are counted; the rest is left out.
const MAX_COUNTED: usize = 1_000;

/// What a statement that is explained may take, and how long it may wait for a lock.
const LIMITS: &str = "SET statement_timeout = '2s'; SET lock_timeout = '500ms'";

/// Connections in a statement, but for those that look at it.
const SAMPLE: &str = "
    SELECT coalesce(wait_event_type || '/' || wait_event, 'running'), query, count(*)::float8
    FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND state = 'active' AND pid <> pg_backend_pid()
        AND query NOT LIKE '%pg_stat_activity%'
    GROUP BY 1, 2";

/// The transaction that most others wait for: its statement, and the lock that it has of what they
/// want, where that is a table's.
const HOLDER: &str = "
    SELECT holder.query, holder.state, min(held.mode), min(held.relation::regclass::text)
    FROM pg_locks waits, unnest(pg_blocking_pids(waits.pid)) blocking
    JOIN pg_stat_activity holder ON holder.pid = blocking
    LEFT JOIN pg_locks held ON held.pid = blocking AND held.granted
    WHERE NOT waits.granted AND (held.relation IS NULL OR held.relation = waits.relation)
    GROUP BY holder.pid, holder.query, holder.state ORDER BY count(*) DESC LIMIT 1";

const SETTINGS: &str = "
    SELECT pg_size_bytes(current_setting('shared_buffers'))::float8,
        pg_size_bytes(current_setting('work_mem'))::float8";

/// Facts of the tables of these names.
const TABLES: &str = "
    SELECT c.relname::text, pg_total_relation_size(c.oid)::float8,
        EXISTS (SELECT FROM pg_statistic s WHERE s.starelid = c.oid),
        (SELECT array_agg(attname::text) FROM pg_attribute
            WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
        (SELECT array_agg(format_type(atttypid, NULL)) FROM pg_attribute
            WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
        ARRAY(SELECT a.attname::text FROM pg_index i JOIN pg_attribute a
            ON a.attrelid = c.oid AND a.attnum = i.indkey[0] WHERE i.indrelid = c.oid)
    FROM pg_class c WHERE c.relkind = 'r' AND c.relname::text = ANY($1)";

/// A statement that slots ask, with parameters as one of them has.
pub(in crate::load) struct Asked {
    pub(in crate::load) text: String,
    pub(in crate::load) parameters: Vec<Box<dyn ToSql + Sync + Send>>,
    /// Whether it only reads: then it is executed to be explained.
    pub(in crate::load) is_read: bool,
}

/// Looks at one server.
pub(in crate::load) struct Observer {
    client: Client,
    asked: Vec<Asked>,
    samples: u32,
    /// How often connections were seen in each statement, by what they waited for.
    counts: BTreeMap<String, BTreeMap<String, f64>>,
    holder: Option<String>,
}

/// The text of a value of any type.
struct Text(String);

impl<'a> FromSql<'a> for Text {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(std::str::from_utf8(raw)?.to_owned()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl Observer {
    /// Connects. `asked` are the statements whose plans it can ask for.
    pub(in crate::load) fn connect(mut config: Config, asked: Vec<Asked>) -> Result<Self, Error> {
        config.application_name("loadline-advisor");
        let mut client = patiently(&config)?;
        client.batch_execute(LIMITS)?;
        Ok(Self { client, asked, samples: 0, counts: BTreeMap::new(), holder: None })
    }

    fn look(&mut self) -> Result<(), Error> {
        let rows = self.client.query(SAMPLE, &[])?;
        self.samples += 1;
        let mut is_locked = false;
        for row in rows {
            let (wait, query): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            is_locked |= wait.starts_with("Lock/");
            if self.counts.len() < MAX_COUNTED || self.counts.contains_key(&query) {
                let waits = self.counts.entry(query).or_default();
                *waits.entry(wait).or_default() += row.try_get::<_, f64>(2)?;
            }
        }
        if is_locked && self.holder.is_none() {
            self.holder = self.holder()?;
        }
        Ok(())
    }

    fn holder(&mut self) -> Result<Option<String>, Error> {
        let Some(row) = self.client.query_opt(HOLDER, &[])? else { return Ok(None) };
        let (query, state): (Option<String>, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
        let (mode, table): (Option<String>, Option<String>) = (row.try_get(2)?, row.try_get(3)?);
        let words: Vec<&str> = query.iter().flat_map(|query| query.split_whitespace()).collect();
        let words: String = words.join(" ").chars().take(200).collect();
        let state = state.unwrap_or_default();
        let lock = mode.zip(table).map(|(mode, table)| format!(" with {mode} on {table}"));
        Ok(Some(format!("a transaction ({state}){} holds it: {words}", lock.unwrap_or_default())))
    }

    /// How the statement of the slots is executed that begins so.
    fn explain(&mut self, seen: &str) -> Result<Option<Plan>, Error> {
        let Some(asked) = known(&self.asked, seen) else { return Ok(None) };
        let parameters: Vec<&(dyn ToSql + Sync)> =
            asked.parameters.iter().map(|one| &**one as &(dyn ToSql + Sync)).collect();
        let ways: &[&str] = match asked.is_read {
            true => &["ANALYZE, BUFFERS, FORMAT JSON", "FORMAT JSON"],
            false => &["FORMAT JSON"],
        };
        for way in ways {
            // What takes too long, or waits for a lock, is planned only.
            let text = format!("EXPLAIN ({way}) {}", asked.text);
            if let Ok(row) = self.client.query_one(&text, &parameters) {
                let Text(answer) = row.try_get(0)?;
                return Ok(Plan::read(&answer));
            }
        }
        Ok(None)
    }

    fn tables(&mut self, names: &[String]) -> Result<Vec<Table>, Error> {
        let rows = self.client.query(TABLES, &[&names])?;
        let table = |row: &postgres::Row| -> Result<Table, Error> {
            let (columns, types): (Vec<String>, Vec<String>) = (row.try_get(3)?, row.try_get(4)?);
            Ok(Table {
                name: row.try_get(0)?,
                bytes: row.try_get(1)?,
                has_statistics: row.try_get(2)?,
                columns: columns.into_iter().zip(types).collect(),
                leading: row.try_get(5)?,
            })
        };
        rows.iter().map(table).collect()
    }

    fn sum_up(&mut self) -> Result<Conclusion, Error> {
        let row = self.client.query_one("SHOW server_version", &[])?;
        let version: String = row.try_get(0)?;
        let number = version.split(' ').next().unwrap_or(&version);
        let version = Some(format!("PostgreSQL {number}"));
        let samples = f64::from(std::mem::take(&mut self.samples).max(1));
        let mut all: Vec<Statement> = std::mem::take(&mut self.counts)
            .into_iter()
            .map(|(text, waits)| {
                let waits: BTreeMap<String, f64> =
                    waits.into_iter().map(|(wait, count)| (wait, count / samples)).collect();
                Statement { text, active: waits.values().sum(), waits, plan: None }
            })
            .collect();
        all.sort_by(|a, b| b.active.total_cmp(&a.active));
        all.truncate(MAX_STATEMENTS);
        let mut statements = Vec::new();
        for (place, mut statement) in all.into_iter().enumerate() {
            let seen = statement.text.clone();
            let plan = if place < EXPLAINED { self.explain(&seen)? } else { None };
            // A beginning is as good as the whole, which is known.
            if let Some(asked) = known(&self.asked, &seen) {
                statement.text.clone_from(&asked.text);
            }
            statement.plan = plan.as_ref().map(Plan::text);
            statements.push((statement, plan));
        }
        let plans = statements.iter().filter_map(|(_, plan)| plan.as_ref());
        let tables = self.tables(&plans.flat_map(Plan::tables).collect::<Vec<_>>())?;
        let row = self.client.query_one(SETTINGS, &[])?;
        let (shared_buffers, work_mem) = (row.try_get(0)?, row.try_get(1)?);
        let holder = self.holder.take();
        let seen = Seen { statements, tables, shared_buffers, work_mem, holder };
        let advice = advise(&seen);
        let statements = seen.statements.into_iter().map(|(statement, _)| statement).collect();
        Ok(Conclusion { version, statements, advice })
    }
}

/// The statement of the slots that this one is, of which only the beginning may be known.
fn known<'a>(asked: &'a [Asked], seen: &str) -> Option<&'a Asked> {
    asked.iter().find(|one| !seen.is_empty() && one.text.starts_with(seen))
}

impl Advisor for Observer {
    fn sample(&mut self) -> Result<(), ProtocolError> {
        self.look().map_err(fault)
    }

    fn conclude(&mut self) -> Result<Conclusion, ProtocolError> {
        self.sum_up().map_err(fault)
    }
}
