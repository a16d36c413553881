//! One slot's client of PostgreSQL: a connection, and the statements that it has prepared.

use std::collections::HashMap;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use load::{Caller, Op, Operation, Outcome, Stopwatch, Took};
use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{Client, Config, Error, NoTls, Row, Statement};
use wire::ProtocolError;

use super::super::browse::{self, Shown};
use super::super::check::Check;
use super::super::made::{Made, Piece};
use super::super::operations::{Do, OPERATIONS, OVER_HTTP};
use super::super::options::PostgresOptions;
use super::super::written::{
    Written, loaded, not_done, read, with_connecting, with_server_time, wrong_answer,
};
use super::copy::Rows;
use super::schema::{LISTS, Schema, Shape, fill};

/// How long connecting may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// How long it may take until a replica is there.
const REPLICA_WITHIN: Duration = Duration::from_secs(30);

/// One slot, with a channel of its own.
pub(super) struct Slot {
    config: Config,
    client: Client,
    schema: &'static Schema,
    options: PostgresOptions,
    made: Arc<Made>,
    written: Written,
    prepared: HashMap<&'static str, Statement>,
    /// How long the server took by its own clock since it was last asked, in ns.
    spent_ns: Arc<AtomicU64>,
}

impl Slot {
    pub(super) fn connect(
        schema: &'static Schema,
        options: PostgresOptions,
        address: SocketAddr,
        made: Arc<Made>,
        channel: u32,
    ) -> Result<Self, ProtocolError> {
        let server = channel % u32::from(options.servers.max(1));
        let (mut config, spent_ns) = (config(nth(address, server)), Arc::new(AtomicU64::new(0)));
        if options.server_time {
            note_durations(&mut config, &spent_ns);
        }
        // A replica is there once it has a copy of the first server's data.
        let client = if server == 0 { patiently(&config) } else { at_last(&config) };
        let client = client.map_err(fault)?;
        let (written, prepared) = (Written::new(channel), HashMap::new());
        Ok(Self { config, client, schema, options, made, written, prepared, spent_ns })
    }

    /// Executes a statement of the schema, which is prepared the first time.
    fn query(
        &mut self,
        statement: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let prepared = match self.prepared.get(statement) {
            Some(prepared) => prepared.clone(),
            None => {
                let text = self.schema.text(statement, self.options, &self.made.spec);
                let prepared = self.client.prepare(&text)?;
                self.prepared.insert(statement, prepared.clone());
                prepared
            }
        };
        self.client.query(&prepared, parameters)
    }

    /// Reads an interval: all folders at once, or by a statement each.
    fn read(&mut self, op: Op, at_once: bool) -> Result<Outcome, Error> {
        let made = Arc::clone(&self.made);
        let interval = made.interval(op.what);
        let time = made.time(interval) as i64;
        self.spent_ns.store(0, Relaxed);
        let watch = Stopwatch::start();
        let mut answers = Vec::new();
        if at_once {
            answers.push(self.query(self.schema.slice, &[&time])?);
        } else {
            for folder in 0..made.spec.folders as i32 {
                answers.push(self.query(self.schema.folder, &[&folder, &time])?);
            }
        }
        // Whether it is right is looked at when it is here.
        let took = watch.stop();
        let mut check = Check::new(&made, interval);
        for row in answers.iter().flatten() {
            if let Err(error) = see(&mut check, self.schema.shape, &made, row) {
                check.unreadable(error.to_string());
            }
        }
        let outcome = self::read(op, interval, check.wrong(), took);
        Ok(with_server_time(outcome, self.server_ns()))
    }

    /// How long the server took since its time was last set to zero, where that is known.
    fn server_ns(&self) -> Option<f64> {
        self.options.server_time.then(|| self.spent_ns.load(Relaxed) as f64)
    }

    fn browse(&mut self, op: Op) -> Result<Outcome, Error> {
        let made = Arc::clone(&self.made);
        let (folder, intervals) = made.browsed(op.what);
        let (since, until) = made.range(&intervals);
        let parameters: [&(dyn ToSql + Sync); 3] =
            [&(folder as i32), &(since as i64), &(until as i64)];
        self.spent_ns.store(0, Relaxed);
        let watch = Stopwatch::start();
        let rows = self.query(self.schema.browse, &parameters)?;
        let took = watch.stop();
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            shown(&mut found, self.schema.shape, &made, row)?;
        }
        let outcome = browse::outcome(op, &made, folder, intervals, found, took);
        Ok(with_server_time(outcome, self.server_ns()))
    }

    /// Leaves the connection of the job before, and reads by a new one.
    fn job(&mut self, op: Op) -> Result<Outcome, Error> {
        let watch = Stopwatch::start();
        self.client = patiently(&self.config)?;
        self.prepared.clear();
        let connecting = watch.stop();
        Ok(with_connecting(self.read(op, true)?, connecting))
    }

    /// Appends an interval by one COPY.
    fn append(&mut self) -> Result<Outcome, Error> {
        let (made, interval) = (Arc::clone(&self.made), self.made.append());
        let mut rows = Rows::begin();
        for folder in 0..made.spec.folders {
            add(&mut rows, self.schema.shape, &made, folder, interval..interval + 1);
        }
        self.copy("COPY conditions FROM STDIN (FORMAT binary)", rows)?;
        Ok(Outcome::right())
    }

    fn insert(&mut self) -> Result<Outcome, Error> {
        let (numbers, channel) = (self.written.next(1), self.written.channel as i32);
        let since = numbers.start;
        let value = self.written.value(since);
        let (since, until) = (since as i64, since as i64 + 1);
        self.query(self.schema.insert, &[&channel, &since, &until, &value])?;
        Ok(self.written.acknowledged(&numbers))
    }

    fn insert_bulk(&mut self) -> Result<Outcome, Error> {
        let (count, channel) = (self.made.spec.bulk, self.written.channel);
        let mut rows = Rows::begin();
        let numbers = self.written.next(count);
        for since in numbers.clone() {
            match self.schema.shape {
                Shape::Ranges => {
                    rows.row(3);
                    rows.int4(channel);
                    rows.int8range((since, since + 1));
                }
                Shape::Times | Shape::Vectors => {
                    rows.row(4);
                    rows.int4(channel);
                    rows.int8(since);
                    rows.int8(since + 1);
                }
            }
            rows.float4(self.written.value(since));
        }
        self.copy("COPY written FROM STDIN (FORMAT binary)", rows)?;
        Ok(self.written.acknowledged(&numbers))
    }

    fn find(&mut self, op: Op) -> Result<Outcome, Error> {
        let Some(last) = self.written.last() else { return Ok(Outcome::miss()) };
        let (channel, time) = (self.written.channel as i32, last as i64);
        let found = self.query(self.schema.find, &[&channel, &time])?;
        let read = |row: &Row| Some((row.try_get(0).ok()?, row.try_get(1).ok()?));
        let found: Vec<Option<(i64, f32)>> = found.iter().map(read).collect();
        let expected = vec![Some((time, self.written.value(last)))];
        if found != expected {
            let key = format!("object {last} of channel {channel}");
            return Ok(wrong_answer(op, &key, &format!("{expected:?}"), &format!("{found:?}")));
        }
        Ok(Outcome::right())
    }

    fn copy(&mut self, statement: &str, rows: Rows) -> Result<(), Error> {
        let mut writer = self.client.copy_in(statement)?;
        // A write that fails is named by the end of the copy.
        let _ = writer.write_all(&rows.end());
        writer.finish().map(drop)
    }

    /// Waits until all replicas show what was written: the preparation limits how long that takes.
    fn wait_for_replicas(&mut self) -> Result<(), Error> {
        let behind = "SELECT $1 - count(*) FROM pg_stat_replication
                      WHERE replay_lsn >= pg_current_wal_lsn()";
        let replicas = i64::from(self.options.servers) - 1;
        while replicas > 0 && self.client.query_one(behind, &[&replicas])?.get::<_, i64>(0) > 0 {
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Everything is loaded in one transaction, which makes the tables: so nothing of it is logged
    /// where `wal_level` is minimal, and rows are frozen from the start. Returns how long this part
    /// took until it was done, without what the client needs to make it up.
    fn fill(&mut self, piece: &Piece) -> Result<Took, Error> {
        let (made, schema) = (Arc::clone(&self.made), self.schema);
        let timed = |result: Result<(), Error>, watch: Stopwatch| result.map(|()| watch.stop());
        match piece {
            Piece::Begin => {
                let tables = fill(&[LISTS, schema.tables].concat(), &made.spec);
                let watch = Stopwatch::start();
                timed(self.client.batch_execute(&format!("BEGIN; {tables}")), watch)
            }
            Piece::Objects { folder, intervals } => {
                let mut rows = Rows::begin();
                add(&mut rows, schema.shape, &made, *folder, intervals.clone());
                let watch = Stopwatch::start();
                timed(self.copy("COPY conditions FROM STDIN (FORMAT binary, FREEZE)", rows), watch)
            }
            Piece::End => {
                let indexes = if self.options.index { schema.indexes } else { "" };
                let watch = Stopwatch::start();
                let took = timed(self.client.batch_execute(&format!("{indexes} COMMIT")), watch)?;
                self.settle()?;
                Ok(took)
            }
        }
    }

    /// What is done once all is filled.
    fn settle(&mut self) -> Result<(), Error> {
        if self.options.analyze {
            self.client.batch_execute("VACUUM ANALYZE")?;
        }
        // What is kept of it begins with nothing left to be written.
        self.client.batch_execute("CHECKPOINT")?;
        self.wait_for_replicas()
    }

    /// Loads everything into tables that are made anew, and reads an interval of it.
    fn load(&mut self, op: Op) -> Result<Outcome, Error> {
        let made = Arc::clone(&self.made);
        self.prepared.clear();
        let tables = "DROP TABLE IF EXISTS conditions, written, channels, folders";
        self.client.batch_execute(tables)?;
        let mut loading = Took::default();
        for part in 0..made.parts() {
            loading.add(self.fill(&made.piece(part))?);
        }
        let read = self.read(op, true)?;
        let size = "SELECT pg_total_relation_size('conditions')";
        let bytes = self.client.query_one(size, &[])?.try_get::<_, i64>(0)?;
        Ok(loaded(read, loading, bytes as f64))
    }
}

/// The address at this distance behind this one.
fn nth(address: SocketAddr, number: u32) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) => Ipv4Addr::from_bits(ip.to_bits().wrapping_add(number)).into(),
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits().wrapping_add(number.into())).into(),
    };
    SocketAddr::new(ip, address.port())
}

/// Connects to a server that may not be there yet.
fn at_last(config: &Config) -> Result<Client, Error> {
    let start = Instant::now();
    loop {
        match patiently(config) {
            Err(_) if start.elapsed() < REPLICA_WITHIN => {
                std::thread::sleep(Duration::from_millis(50));
            }
            connected => return connected,
        }
    }
}

/// How the database at this address is connected to.
pub(in crate::load) fn config(address: SocketAddr) -> Config {
    let mut config = Config::new();
    config.host(&address.ip().to_string()).port(address.port());
    config.user("postgres").dbname("postgres").application_name("loadline");
    config.connect_timeout(CONNECT_WITHIN);
    config
}

/// Connects. A server accepts connections while it starts, and refuses them until it has.
pub(in crate::load) fn patiently(config: &Config) -> Result<Client, Error> {
    let start = Instant::now();
    loop {
        match config.connect(NoTls) {
            Err(error)
                if error.code() == Some(&SqlState::CANNOT_CONNECT_NOW)
                    && start.elapsed() < CONNECT_WITHIN =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            connected => return connected,
        }
    }
}

/// Adds the rows of what begins in a folder in these intervals.
fn add(rows: &mut Rows, shape: Shape, made: &Made, folder: u32, intervals: Range<u32>) {
    if shape == Shape::Vectors {
        // All channels have the same intervals here.
        for interval in intervals {
            let (since, until) = made.times(folder, 0, interval);
            rows.row(4);
            rows.int4(folder);
            rows.int8(since);
            rows.int8(until);
            let values = |channel| made.floats(folder, channel, interval);
            let values = (0..made.spec.channels).flat_map(values);
            let payload: Vec<u8> = values.flat_map(f32::to_le_bytes).collect();
            rows.bytea(&payload);
        }
        return;
    }
    for (interval, channel) in made.objects(folder, intervals) {
        let times = made.times(folder, channel, interval);
        let columns = if shape == Shape::Ranges { 3 } else { 4 };
        rows.row(columns + made.spec.fields);
        rows.int4(folder);
        rows.int4(channel);
        match shape {
            Shape::Ranges => rows.int8range(times),
            Shape::Times | Shape::Vectors => {
                rows.int8(times.0);
                rows.int8(times.1);
            }
        }
        made.floats(folder, channel, interval).for_each(|value| rows.float4(value));
    }
}

/// Checks a row that was read.
fn see(check: &mut Check<'_>, shape: Shape, made: &Made, row: &Row) -> Result<(), Error> {
    let time = |column: usize| row.try_get::<_, i64>(column).map(i64::cast_unsigned);
    let folder = row.try_get::<_, i32>(0)?.cast_unsigned();
    if shape == Shape::Vectors {
        let payload: &[u8] = row.try_get(3)?;
        let values = payload.chunks(4);
        let float = |bytes: &[u8]| bytes.try_into().map_or(f32::NAN, f32::from_le_bytes);
        check.objects(folder, 0..made.spec.channels, (time(1)?, time(2)?), values.map(float));
        return Ok(());
    }
    let channel = row.try_get::<_, i32>(1)?.cast_unsigned();
    let mut values = Vec::with_capacity(row.len());
    for column in 4..row.len() {
        values.push(row.try_get::<_, f32>(column)?);
    }
    let channels = channel..channel.saturating_add(1);
    check.objects(folder, channels, (time(2)?, time(3)?), values);
    Ok(())
}

/// Adds the objects of a row of a browse.
fn shown(found: &mut Vec<Shown>, shape: Shape, made: &Made, row: &Row) -> Result<(), Error> {
    let time = |column: usize| row.try_get::<_, i64>(column).map(i64::cast_unsigned);
    if shape == Shape::Vectors {
        let (since, until, payload) = (time(1)?, time(2)?, row.try_get::<_, &[u8]>(3)?);
        let float = |bytes: &[u8]| bytes.try_into().map_or(f32::NAN, f32::from_le_bytes);
        for (channel, bytes) in (0..).zip(payload.chunks(4 * made.spec.fields as usize)) {
            let values = bytes.chunks(4).map(float).collect();
            found.push(Shown { channel, since, until, values });
        }
        return Ok(());
    }
    let channel = row.try_get::<_, i32>(1)?.cast_unsigned();
    let values = (4..row.len()).map(|column| row.try_get(column)).collect::<Result<_, _>>()?;
    found.push(Shown { channel, since: time(2)?, until: time(3)?, values });
    Ok(())
}

/// Has the server say how long each step of a statement took, as it logs it (`log_duration`), to
/// its client only.
fn note_durations(config: &mut Config, spent_ns: &Arc<AtomicU64>) {
    config.options("-c log_duration=on -c client_min_messages=log -c log_min_messages=fatal");
    let spent_ns = Arc::clone(spent_ns);
    config.notice_callback(move |notice| {
        let ns = duration_ns(notice.message()).unwrap_or_default();
        spent_ns.fetch_add(ns, Relaxed);
    });
}

/// `duration: 0.125 ms`
fn duration_ns(message: &str) -> Option<u64> {
    let took_ms = message.strip_prefix("duration: ")?.split(' ').next()?.parse::<f64>().ok()?;
    Some((took_ms * 1e6) as u64)
}

/// An error with what the server says of it.
pub(in crate::load) fn fault(error: Error) -> ProtocolError {
    let said = error.as_db_error().map(|said| format!(": {}", said.message()));
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
    ProtocolError::new(format!("{error}{}", said.or(cause).unwrap_or_default()))
}

/// A row that meets another is wrong; with any other error the slot ends.
fn outcome(
    operation: &Operation,
    operations: u32,
    asked: Result<Outcome, Error>,
) -> Result<Outcome, ProtocolError> {
    let meets = [SqlState::UNIQUE_VIOLATION, SqlState::EXCLUSION_VIOLATION];
    match asked {
        Err(error) if error.code().is_some_and(|code| meets.contains(code)) => {
            Ok(not_done(operation, operations, false, fault(error).to_string()))
        }
        asked => asked.map_err(fault),
    }
}

impl Caller for Slot {
    fn prepare(&mut self, part: u64) -> Result<Outcome, ProtocolError> {
        let piece = self.made.piece(part);
        self.fill(&piece).map_err(fault)?;
        Ok(Outcome::right())
    }

    fn call(&mut self, op: Op) -> Result<Outcome, ProtocolError> {
        let does = Do::of(op.operation);
        let asked = match does {
            Do::Slice => self.read(op, true),
            Do::ReadFolders => self.read(op, false),
            Do::Insert => self.insert(),
            Do::InsertBulk => self.insert_bulk(),
            Do::Find => self.find(op),
            Do::Job => self.job(op),
            Do::Append => self.append(),
            Do::Browse => self.browse(op),
            Do::Load => self.load(op),
            Do::LookUp => return Err(ProtocolError::new(OVER_HTTP)),
        };
        outcome(&OPERATIONS[op.operation], self.made.operations(does), asked)
    }
}
