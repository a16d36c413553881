//! Ways to keep conditions in tables, a row each: the tables, their indexes, and the statement of
//! each operation. `{columns}` stands for the declarations of the values of an object, and
//! `{values}` for their names in the table `o`.

use super::super::options::PostgresOptions;
use super::super::spec::Spec;

/// How objects lie in rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A row an object: folder, channel, since, until, values.
    Times,
    /// A row an object: folder, channel, the range of its times, values.
    Ranges,
    /// A row for all channels of a folder in an interval: folder, since, until, and the values one
    /// after another, little-endian.
    Vectors,
}

/// A way to keep conditions in tables.
#[derive(Debug)]
pub(super) struct Schema {
    /// The dialect.
    pub(super) name: &'static str,
    /// How objects lie in rows.
    pub(super) shape: Shape,
    /// What makes the tables: `conditions`, which is read, and `written`, which slots insert into.
    pub(super) tables: &'static str,
    /// What makes the indexes, once `conditions` is filled.
    pub(super) indexes: &'static str,
    /// What all folders show at the time $1.
    pub(super) slice: &'static str,
    /// What the folder $1 shows at the time $2.
    pub(super) folder: &'static str,
    /// What the folder $1 shows in [$2, $3).
    pub(super) browse: &'static str,
    /// Inserts channel $1, since $2, until $3, value $4 into `written`.
    pub(super) insert: &'static str,
    /// Since and value of what `written` shows in channel $1 at the time $2.
    pub(super) find: &'static str,
}

/// What there is to be read, in every schema: `{folders}` folders and `{channels}` channels of
/// each, from 0 on.
pub(super) const LISTS: &str = "
    CREATE TABLE folders (folder int4 PRIMARY KEY);
    INSERT INTO folders SELECT generate_series(0, {folders} - 1);
    CREATE TABLE channels (folder int4, channel int4, PRIMARY KEY (folder, channel));
    INSERT INTO channels SELECT folder, generate_series(0, {channels} - 1) FROM folders;";

const OBJECTS: &str = "
    CREATE TABLE conditions (folder int4 NOT NULL, channel int4 NOT NULL, since int8 NOT NULL,
                             until int8 NOT NULL, {columns});
    CREATE TABLE written (channel int4, since int8, until int8 NOT NULL, value float4 NOT NULL,
                          PRIMARY KEY (channel, since));";

const BY_SINCE: &str = "ALTER TABLE conditions ADD PRIMARY KEY (folder, channel, since);";

const INSERT: &str = "INSERT INTO written VALUES ($1, $2, $3, $4)";

const FIND_LATEST: &str = "
    SELECT since, value FROM (SELECT * FROM written WHERE channel = $1 AND since <= $2
                              ORDER BY since DESC LIMIT 1) o WHERE until > $2";

/// Every schema.
pub(super) const SCHEMAS: &[Schema] = &[
    // An index of ranges finds what contains a time, wherever the time lies.
    Schema {
        name: "postgres-gist",
        shape: Shape::Ranges,
        tables: "
            CREATE EXTENSION IF NOT EXISTS btree_gist;
            CREATE TABLE conditions (folder int4 NOT NULL, channel int4 NOT NULL,
                                     period int8range NOT NULL, {columns});
            CREATE TABLE written (channel int4, period int8range NOT NULL, value float4 NOT NULL);
            CREATE INDEX ON written USING gist (channel, period);",
        indexes: "CREATE INDEX ON conditions USING gist (folder, period);",
        slice: "
            SELECT o.folder, o.channel, lower(o.period), upper(o.period), {values}
            FROM folders f JOIN conditions o ON o.folder = f.folder AND o.period @> $1::int8",
        folder: "
            SELECT o.folder, o.channel, lower(o.period), upper(o.period), {values}
            FROM conditions o WHERE o.folder = $1 AND o.period @> $2::int8",
        browse: "
            SELECT o.folder, o.channel, lower(o.period), upper(o.period), {values}
            FROM conditions o WHERE o.folder = $1 AND o.period && int8range($2, $3)",
        insert: "INSERT INTO written VALUES ($1, int8range($2, $3), $4)",
        find: "
            SELECT lower(period), value FROM written WHERE channel = $1 AND period @> $2::int8",
    },
    // The latest row before the time is found from the end of each channel's index: COOL's remedy.
    Schema {
        name: "postgres-lateral",
        shape: Shape::Times,
        tables: OBJECTS,
        indexes: BY_SINCE,
        slice: "
            SELECT o.* FROM channels c CROSS JOIN LATERAL (
                SELECT o.folder, o.channel, o.since, o.until, {values} FROM conditions o
                WHERE o.folder = c.folder AND o.channel = c.channel AND o.since <= $1
                ORDER BY o.since DESC LIMIT 1) o
            WHERE o.until > $1",
        folder: "
            SELECT o.* FROM channels c CROSS JOIN LATERAL (
                SELECT o.folder, o.channel, o.since, o.until, {values} FROM conditions o
                WHERE o.folder = c.folder AND o.channel = c.channel AND o.since <= $2
                ORDER BY o.since DESC LIMIT 1) o
            WHERE c.folder = $1 AND o.until > $2",
        browse: "
            SELECT o.* FROM channels c CROSS JOIN LATERAL (
                SELECT o.folder, o.channel, o.since, o.until, {values} FROM conditions o
                WHERE o.folder = c.folder AND o.channel = c.channel AND o.since < $3
                    AND o.since >= coalesce((
                        SELECT max(b.since) FROM conditions b WHERE b.folder = c.folder
                            AND b.channel = c.channel AND b.since <= $2), $2)) o
            WHERE c.folder = $1 AND o.until > $2",
        insert: INSERT,
        find: FIND_LATEST,
    },
    // A row for all channels: what is read together lies together.
    Schema {
        name: "postgres-vector",
        shape: Shape::Vectors,
        tables: "
            CREATE TABLE conditions (folder int4 NOT NULL, since int8 NOT NULL,
                                     until int8 NOT NULL, payload bytea NOT NULL);
            ALTER TABLE conditions ALTER payload SET STORAGE EXTERNAL;
            CREATE TABLE written (channel int4, since int8, until int8 NOT NULL,
                                  value float4 NOT NULL, PRIMARY KEY (channel, since));",
        indexes: "ALTER TABLE conditions ADD PRIMARY KEY (folder, since);",
        slice: "
            SELECT o.* FROM folders f CROSS JOIN LATERAL (
                SELECT folder, since, until, payload FROM conditions o
                WHERE o.folder = f.folder AND o.since <= $1 ORDER BY o.since DESC LIMIT 1) o
            WHERE o.until > $1",
        folder: "
            SELECT * FROM (SELECT folder, since, until, payload FROM conditions
                           WHERE folder = $1 AND since <= $2 ORDER BY since DESC LIMIT 1) o
            WHERE until > $2",
        browse: "
            SELECT folder, since, until, payload FROM conditions
            WHERE folder = $1 AND since < $3 AND until > $2 AND since >= coalesce((
                SELECT max(since) FROM conditions WHERE folder = $1 AND since <= $2), $2)",
        insert: INSERT,
        find: FIND_LATEST,
    },
    // What one writes first. Every row before the time is looked at: the cost grows with time.
    Schema {
        name: "postgres-naive",
        shape: Shape::Times,
        tables: OBJECTS,
        indexes: BY_SINCE,
        slice: "
            SELECT o.folder, o.channel, o.since, o.until, {values}
            FROM conditions o WHERE o.since <= $1 AND o.until > $1",
        folder: "
            SELECT o.folder, o.channel, o.since, o.until, {values}
            FROM conditions o WHERE o.folder = $1 AND o.since <= $2 AND o.until > $2",
        browse: "
            SELECT o.folder, o.channel, o.since, o.until, {values}
            FROM conditions o WHERE o.folder = $1 AND o.since < $3 AND o.until > $2",
        insert: INSERT,
        find: "
            SELECT since, value FROM written WHERE channel = $1 AND since <= $2 AND until > $2",
    },
];

impl Schema {
    /// A statement of it, as it is asked with these options.
    pub(super) fn text(&self, statement: &str, options: PostgresOptions, spec: &Spec) -> String {
        let text = fill(statement, spec);
        let is_ordered = options.order && [self.slice, self.folder].contains(&statement);
        if is_ordered { text + " ORDER BY 1, 2" } else { text }
    }
}

/// A statement with what its placeholders stand for.
pub(super) fn fill(statement: &str, spec: &Spec) -> String {
    let all = |one: fn(u32) -> String| (0..spec.fields).map(one).collect::<Vec<_>>().join(", ");
    statement
        .replace("{columns}", &all(|n| format!("v{n} float4 NOT NULL")))
        .replace("{values}", &all(|n| format!("o.v{n}")))
        .replace("{folders}", &spec.folders.to_string())
        .replace("{channels}", &spec.channels.to_string())
}
