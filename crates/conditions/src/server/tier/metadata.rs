//! What the servers share in PostgreSQL: the head, groups of changes, and the snapshot that they
//! follow. Control plane.
//!
//! The head is one row. Whoever makes a group durable moves it from the last revision that it
//! knows, in the same statement: of two servers one finds it moved already, and writes nothing.

use std::time::{Duration, Instant};

use postgres::config::SslMode;
use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator as _;
use postgres::{Client, IsolationLevel, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;
use wire::TlsTrust;

use super::group::{BadGroup, decode};
use crate::model::{BadEntry, BadSnapshot, Entry, Loader, Misplaced, Revision, State};

/// The version of the tables, and of the segments that they name.
const VERSION: i32 = 2; // As `TABLES` inserts.

/// How long connecting may take, and how long the server may be silent in a transfer.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_secs(10);

/// How long a statement may take, so that a lock that is never released holds nothing up for ever.
const SESSION: &str = "
    SET statement_timeout = '5min';
    SET lock_timeout = '20s';
    SET idle_in_transaction_session_timeout = '60s';
    SET idle_session_timeout = '10min';
    SET default_transaction_isolation = 'read committed';
    SET client_min_messages = warning";

/// The number of the lock of whoever seals, and of whoever makes the tables: any that other
/// programs of this database don't use.
const SEAL_LOCK: i64 = 0x4c4c_434f_4e44_0001;
const TABLES_LOCK: i64 = 0x4c4c_434f_4e44_0002;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS conditions_head (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        version integer NOT NULL,
        store text NOT NULL,
        last bigint NOT NULL,
        base bigint NOT NULL,
        epoch bigint NOT NULL);
    CREATE TABLE IF NOT EXISTS conditions_groups (
        first bigint PRIMARY KEY,
        last bigint NOT NULL,
        writer text NOT NULL,
        body bytea NOT NULL);
    CREATE TABLE IF NOT EXISTS conditions_snapshot (
        base bigint,
        place integer,
        record bytea NOT NULL,
        PRIMARY KEY (base, place));
    INSERT INTO conditions_head VALUES (true, 2, gen_random_uuid()::text, 0, 0, 0)
        ON CONFLICT DO NOTHING";

/// Why the database has no answer that can be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum MetadataError {
    #[error("PostgreSQL: {0}")]
    Postgres(String),
    #[error("PostgreSQL has no room: {0}")]
    Full(String),
    #[error(
        "its tables are of version {0}, and this program knows version {VERSION}: use the loadline \
         that made them, or an empty database and bucket"
    )]
    Version(i32),
    #[error("group of revision {0}: {1}")]
    Group(Revision, BadGroup),
    #[error("group of revision {0}: {1}")]
    Entry(Revision, BadEntry),
    #[error("a group can't be applied: {0}")]
    Misplaced(#[from] Misplaced),
    #[error("the snapshot: {0}")]
    Snapshot(#[from] BadSnapshot),
}

impl From<postgres::Error> for MetadataError {
    /// An error with what the server says of it.
    fn from(error: postgres::Error) -> Self {
        let said = error.as_db_error().map(|said| said.message().to_owned());
        let cause = std::error::Error::source(&error).map(|cause| format!("{error}: {cause}"));
        let is_full = error.code() == Some(&SqlState::DISK_FULL);
        let said = said.or(cause).unwrap_or_else(|| error.to_string());
        if is_full { Self::Full(said) } else { Self::Postgres(said) }
    }
}

/// How the database is reached.
#[derive(Clone)]
pub(super) struct Metadata {
    config: postgres::Config,
    /// What encrypts connections, where they are.
    tls: Option<MakeRustlsConnect>,
}

/// What the head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The last revision.
    pub(super) last: Revision,
    /// The revision through which the snapshot stands for all changes; 0 without one.
    pub(super) base: Revision,
}

/// Whether a group was made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    /// It was, by this call or an earlier one of the same writer.
    Yes,
    /// Another group was first.
    No,
    /// What came first isn't there any more.
    Unknown,
}

/// Whether what follows a revision was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applied {
    /// All of it, of this many bytes.
    All(u64),
    /// Groups are gone: a snapshot stands for them.
    Gone,
}

impl Metadata {
    /// Reads a URL. A password comes in it, or is this one. Connections are encrypted where there
    /// are authorities (PEM), and only to a server for which one of them vouches.
    ///
    /// # Errors
    /// When it is none, which isn't repeated, or the PEM can't be used.
    pub(super) fn of(
        url: &str,
        password: Option<&str>,
        authorities: Option<&[u8]>,
    ) -> Result<Self, String> {
        let mut config: postgres::Config = url.parse().map_err(|_| {
            "it is no address of PostgreSQL: write postgres://USER@HOST:PORT/DATABASE".to_owned()
        })?;
        if let (None, Some(password)) = (config.get_password(), password) {
            config.password(password);
        }
        config.application_name("loadline conditions").connect_timeout(CONNECT_WITHIN);
        config.keepalives_idle(SILENCE).tcp_user_timeout(SILENCE);
        let tls = match authorities {
            Some(authorities) => {
                let trust = TlsTrust { authorities, identity: None };
                let trusted = trust.config().map_err(|why| format!("--metadata-ca: {why}"))?;
                config.ssl_mode(SslMode::Require);
                Some(MakeRustlsConnect::new(trusted))
            }
            None if config.get_ssl_mode() == SslMode::Require => {
                let why = "sslmode=require: --metadata-ca FILE names the authorities that vouch \
                           for PostgreSQL";
                return Err(why.to_owned());
            }
            None => None,
        };
        Ok(Self { config, tls })
    }

    fn try_connect(&self) -> Result<Client, postgres::Error> {
        match &self.tls {
            Some(tls) => self.config.connect(tls.clone()),
            None => self.config.connect(NoTls),
        }
    }

    pub(super) fn connect(&self) -> Result<Client, MetadataError> {
        let start = Instant::now();
        let mut client = loop {
            match self.try_connect() {
                // A server accepts connections while it starts, and refuses them until it has.
                Err(why)
                    if why.code() == Some(&SqlState::CANNOT_CONNECT_NOW)
                        && start.elapsed() < CONNECT_WITHIN =>
                {
                    std::thread::sleep(Duration::from_millis(20));
                }
                connected => break connected?,
            }
        };
        client.batch_execute(SESSION)?;
        Ok(client)
    }

    /// Makes the tables where they are not there; returns the name of the store that they are of,
    /// and one that no other server has.
    pub(super) fn prepare(&self) -> Result<(String, String), MetadataError> {
        let mut client = self.connect()?;
        let mut work = client.transaction()?;
        work.execute("SELECT pg_advisory_xact_lock($1)", &[&TABLES_LOCK])?;
        work.batch_execute(TABLES)?;
        let names = "SELECT version, store, gen_random_uuid()::text FROM conditions_head";
        let row = work.query_one(names, &[])?;
        work.commit()?;
        let setting = |client: &mut Client, name: &str| {
            let row = client.query_one("SELECT current_setting($1)", &[&name])?;
            Ok::<_, MetadataError>(row.try_get::<_, String>(0)? == "off")
        };
        if setting(&mut client, "fsync")? || setting(&mut client, "synchronous_commit")? {
            tracing::warn!(
                "PostgreSQL has fsync or synchronous_commit off: a loss of power may lose changes \
                 that were acknowledged"
            );
        }
        match row.try_get(0)? {
            VERSION => Ok((row.try_get(1)?, row.try_get(2)?)),
            version => Err(MetadataError::Version(version)),
        }
    }
}

/// What the head says now.
pub(super) fn head(client: &mut Client) -> Result<Head, MetadataError> {
    let row = client.query_one("SELECT last, base FROM conditions_head", &[])?;
    let revision = |column| row.try_get::<_, i64>(column).map(i64::cast_unsigned);
    Ok(Head { last: revision(0)?, base: revision(1)? })
}

/// Makes a group durable that follows revision `after` and ends with `last`.
pub(super) fn write(
    client: &mut Client,
    (after, last): (Revision, Revision),
    (writer, body): (&str, &[u8]),
    is_again: bool,
) -> Result<Moved, MetadataError> {
    const WRITE: &str = "
        WITH moved AS (UPDATE conditions_head SET last = $2 WHERE last = $1 RETURNING true)
        INSERT INTO conditions_groups SELECT $1 + 1, $2, $3, $4 FROM moved";
    const WHOSE: &str = "SELECT writer FROM conditions_groups WHERE first = $1";
    let (after, last) = (after.cast_signed(), last.cast_signed());
    match client.execute(WRITE, &[&after, &last, &writer, &body]) {
        Ok(1) => return Ok(Moved::Yes),
        Ok(_) => {}
        // Levels of isolation above the one that was asked for say it in this way.
        Err(error) if error.code() == Some(&SqlState::T_R_SERIALIZATION_FAILURE) => {}
        Err(error) => return Err(error.into()),
    }
    let whose = client.query_opt(WHOSE, &[&(after + 1)])?;
    let whose = whose.map(|row| row.try_get::<_, String>(0)).transpose()?;
    Ok(match whose {
        Some(whose) if whose == writer => Moved::Yes,
        None if is_again => Moved::Unknown,
        _ => Moved::No,
    })
}

/// The changes of a group.
pub(super) fn entries(first: Revision, body: &[u8]) -> Result<Vec<Entry>, MetadataError> {
    let records = decode(body).map_err(|why| MetadataError::Group(first, why))?;
    let entries = records.into_iter().map(Entry::decode).collect::<Result<Vec<_>, _>>();
    entries.map_err(|why| MetadataError::Entry(first, why))
}

/// A part of all that is stored.
pub(super) enum Stored<'a> {
    /// The next record of the snapshot.
    Record(&'a [u8]),
    /// The next group, by revisions, and through which one the snapshot is.
    Group { first: Revision, last: Revision, base: Revision, body: &'a [u8] },
}

/// The name of a store, and what its head says.
pub(super) struct Shared {
    pub(super) store: String,
    pub(super) head: Head,
}

/// Hands on all that is stored, as it is at one moment.
pub(super) fn read_all(
    client: &mut Client,
    each: &mut dyn FnMut(Stored<'_>),
) -> Result<Shared, MetadataError> {
    const HEAD: &str = "SELECT version, store, last, base FROM conditions_head";
    const GROUPS: &str = "SELECT first, last, body FROM conditions_groups ORDER BY first";
    let work = client.build_transaction();
    let mut work = work.isolation_level(IsolationLevel::RepeatableRead).read_only(true).start()?;
    let row = work.query_one(HEAD, &[])?;
    if row.try_get::<_, i32>(0)? != VERSION {
        return Err(MetadataError::Version(row.try_get(0)?));
    }
    let (store, base): (String, i64) = (row.try_get(1)?, row.try_get(3)?);
    let last = row.try_get::<_, i64>(2)?.cast_unsigned();
    let mut records = work.query_raw(RECORDS, [base])?;
    while let Some(row) = records.next()? {
        each(Stored::Record(row.try_get(0)?));
    }
    drop(records);
    let base = base.cast_unsigned();
    let mut groups = work.query_raw(GROUPS, [] as [i64; 0])?;
    while let Some(row) = groups.next()? {
        let (first, last) = (row.try_get::<_, i64>(0)?, row.try_get::<_, i64>(1)?);
        let (first, last) = (first.cast_unsigned(), last.cast_unsigned());
        each(Stored::Group { first, last, base, body: row.try_get(2)? });
    }
    drop(groups);
    work.commit()?;
    Ok(Shared { store, head: Head { last, base } })
}

/// The records of the snapshot of a revision.
const RECORDS: &str = "SELECT record FROM conditions_snapshot WHERE base = $1 ORDER BY place";

/// Has every group after a revision applied, in their order.
pub(super) fn apply(
    client: &mut Client,
    mut known: Revision,
    last: Revision,
    each: &mut dyn FnMut(Vec<Entry>) -> Result<(), Misplaced>,
) -> Result<Applied, MetadataError> {
    const GROUPS: &str =
        "SELECT first, last, body FROM conditions_groups WHERE first > $1 ORDER BY first";
    let mut bytes = 0;
    if known < last {
        let mut rows = client.query_raw(GROUPS, [known.cast_signed()])?;
        while let Some(row) = rows.next()? {
            let first = row.try_get::<_, i64>(0)?.cast_unsigned();
            if first != known + 1 {
                return Ok(Applied::Gone);
            }
            let body: &[u8] = row.try_get(2)?;
            each(entries(first, body)?)?;
            bytes += body.len() as u64;
            known = row.try_get::<_, i64>(1)?.cast_unsigned();
        }
    }
    Ok(if known < last { Applied::Gone } else { Applied::All(bytes) })
}

/// The same, into a state that none shares yet.
pub(super) fn catch_up(client: &mut Client, state: &mut State) -> Result<Applied, MetadataError> {
    let (known, last) = (state.revision(), head(client)?.last);
    apply(client, known, last, &mut |entries| {
        entries.into_iter().try_for_each(|entry| state.replay(entry))
    })
}

/// The snapshot, and through which revision it is; none in a new store.
pub(super) fn snapshot(client: &mut Client) -> Result<(Revision, Option<Loader>), MetadataError> {
    let work = client.build_transaction();
    let mut work = work.isolation_level(IsolationLevel::RepeatableRead).read_only(true).start()?;
    let base: i64 = work.query_one("SELECT base FROM conditions_head", &[])?.try_get(0)?;
    if base == 0 {
        return Ok((0, None));
    }
    let mut loader = Loader::default();
    {
        let mut rows = work.query_raw(RECORDS, [base])?;
        while let Some(row) = rows.next()? {
            loader.apply(row.try_get(0)?)?;
        }
    }
    work.commit()?;
    Ok((base.cast_unsigned(), Some(loader)))
}

/// Takes the lock of whoever seals, for as long as the connection is open, and begins an epoch,
/// whose number it returns; `None` where another server has it, or another snapshot than `base`
/// counts.
pub(super) fn begin_epoch(
    client: &mut Client,
    base: Revision,
) -> Result<Option<i64>, MetadataError> {
    const EPOCH: &str =
        "UPDATE conditions_head SET epoch = epoch + 1 WHERE base = $1 RETURNING epoch";
    if !is_locked(client)? {
        return Ok(None);
    }
    let row = client.query_opt(EPOCH, &[&base.cast_signed()])?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

fn is_locked(client: &mut Client) -> Result<bool, MetadataError> {
    Ok(client.query_one("SELECT pg_try_advisory_lock($1)", &[&SEAL_LOCK])?.try_get(0)?)
}

/// Adds a record to a snapshot, in a transaction that the first one begins.
pub(super) fn add(
    client: &mut Client,
    base: Revision,
    place: i32,
    record: &[u8],
) -> Result<(), MetadataError> {
    if place == 0 {
        client.batch_execute("BEGIN")?;
    }
    let insert = "INSERT INTO conditions_snapshot VALUES ($1, $2, $3)";
    client.execute(insert, &[&base.cast_signed(), &place, &record])?;
    Ok(())
}

/// Has the snapshot count that was added, in place of the one before, unless another epoch has
/// begun. The groups that the one before stands for are removed; a server that follows needs the
/// rest.
pub(super) fn publish(
    client: &mut Client,
    (before, base): (Revision, Revision),
    epoch: i64,
) -> Result<bool, MetadataError> {
    const PUBLISH: &str = "UPDATE conditions_head SET base = $1 WHERE base = $2 AND epoch = $3";
    let (before, base) = (before.cast_signed(), base.cast_signed());
    if client.execute(PUBLISH, &[&base, &before, &epoch])? != 1 {
        client.batch_execute("ROLLBACK")?;
        return Ok(false);
    }
    client.execute("DELETE FROM conditions_snapshot WHERE base <> $1", &[&base])?;
    client.execute("DELETE FROM conditions_groups WHERE last <= $1", &[&before])?;
    client.batch_execute("COMMIT")?;
    Ok(true)
}

/// Whether a snapshot counts whose publishing was not answered: once the lock can be had, the
/// connection that published it has ended, and so has its transaction.
pub(super) fn was_published(
    client: &mut Client,
    base: Revision,
    epoch: i64,
) -> Result<bool, MetadataError> {
    const PUBLISHED: &str = "SELECT count(*) FROM conditions_head WHERE base = $1 AND epoch = $2";
    if !is_locked(client)? {
        return Ok(false);
    }
    let row = client.query_one(PUBLISHED, &[&base.cast_signed(), &epoch])?;
    Ok(row.try_get::<_, i64>(0)? == 1)
}
