//! Tables of rows, each written down once.
//!
//! One [`rows!`] says what a table is: its meaning and that of every column in doc comments, the
//! columns as fields with their Rust types, its keys and indexes. From it come the struct, the SQL
//! that makes the table (doc comments and all, so that `.schema` in `sqlite3` explains itself), the
//! reading and writing of a row, what merging has to know, and the section of docs/ledger.md.
//!
//! ```text
//! rows! {
//!     /// One stretch of a trial. The first sentence is its heading in docs/ledger.md.
//!     slice: SliceRow {                        // `with id` where others refer to its rows
//!         /// The trial.
//!         trial_id: TrialId,                   // a typed id refers to a row of its table
//!         /// Why it isn't valid; NULL when it is.
//!         reason: Option<String>,              // only an Option may be NULL
//!         /// Its keys.
//!         keys: Map<String, Value> as Json,    // a codec, where the type leaves it open
//!     }
//!     also { .. }                              // columns that are no fields
//!     key "trial_id, ordinal"                  // the primary key
//!     unique ".." index ".."                   // as many as it takes
//!     check ".."
//! }
//! ```

use rusqlite::Row as SqlRow;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, Value, ValueRef};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A table: what SQL, merging and the document know of it.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// The lines of its doc comment.
    pub(crate) about: &'static [&'static str],
    /// Whether its rows have an `id` that others may refer to, so that a copy draws a new one.
    pub(crate) has_id: bool,
    /// The columns that are fields of its struct, in their order.
    pub(crate) fields: &'static [Column],
    /// The columns besides.
    pub(crate) also: &'static [Column],
    pub(crate) key: Option<&'static str>,
    pub(crate) unique: &'static [&'static str],
    pub(crate) index: &'static [&'static str],
    pub(crate) check: &'static [&'static str],
}

/// A column of a table.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// The lines of its doc comment.
    pub(crate) about: &'static [&'static str],
    pub(crate) stored: Stored,
}

/// How a Rust type stands in a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored {
    pub(crate) sql: &'static str,
    pub(crate) nullable: bool,
    pub(crate) check: Check,
    /// The table whose rows it refers to.
    pub(crate) refers: Option<&'static str>,
}

/// What SQLite checks of a value besides its type.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Check {
    Nothing,
    Bool,
    Json,
    /// One of these.
    Words(&'static [&'static str]),
}

/// The types that one column holds as they are.
pub(crate) trait Declared {
    const STORED: Stored;
}

/// How a column holds a `T`.
pub(crate) trait Codec<T> {
    const STORED: Stored;
    fn write(value: &T) -> rusqlite::Result<ToSqlOutput<'_>>;
    fn read(value: ValueRef<'_>) -> FromSqlResult<T>;
}

/// A row of a table. Implemented by [`rows!`].
pub(crate) trait Row: Sized {
    const TABLE: Table;
    /// The values of its fields, in the order of [`Table::fields`].
    fn values(&self) -> rusqlite::Result<Vec<ToSqlOutput<'_>>>;
    /// The row whose first field is at this place of a query's row.
    fn read(row: &SqlRow<'_>, first: usize) -> rusqlite::Result<Self>;
}

impl Stored {
    /// A value of this type of SQL that is always there.
    pub(crate) const fn of(sql: &'static str) -> Self {
        Self { sql, nullable: false, check: Check::Nothing, refers: None }
    }
}

impl<T: Declared> Declared for Option<T> {
    const STORED: Stored = Stored { nullable: true, ..T::STORED };
}

macro_rules! declared {
    ($($type:ty = $stored:expr),+ $(,)?) => {
        $(impl Declared for $type {
            const STORED: Stored = $stored;
        })+
    };
}

declared! {
    i32 = Stored::of("INTEGER"),
    i64 = Stored::of("INTEGER"),
    u32 = Stored::of("INTEGER"),
    u64 = Stored::of("INTEGER"),
    bool = Stored { check: Check::Bool, ..Stored::of("INTEGER") },
    f64 = Stored::of("REAL"),
    String = Stored::of("TEXT"),
    Vec<u8> = Stored::of("BLOB"),
}

/// As it is.
pub(crate) struct Plain;

impl<T: Declared + ToSql + FromSql> Codec<T> for Plain {
    const STORED: Stored = T::STORED;

    fn write(value: &T) -> rusqlite::Result<ToSqlOutput<'_>> {
        value.to_sql()
    }

    fn read(value: ValueRef<'_>) -> FromSqlResult<T> {
        T::column_result(value)
    }
}

/// As JSON, which knows no NaN and no infinity and would hold `null` in their place: what could not
/// be read again is refused.
pub(crate) struct Json;

impl<T: Serialize + DeserializeOwned> Codec<T> for Json {
    const STORED: Stored = Stored { check: Check::Json, ..Stored::of("TEXT") };

    fn write(value: &T) -> rusqlite::Result<ToSqlOutput<'_>> {
        let text = serde_json::to_string(value);
        let readable = text.and_then(|text| serde_json::from_str::<T>(&text).map(|_| text));
        readable
            .map(ToSqlOutput::from)
            .map_err(|why| rusqlite::Error::ToSqlConversionFailure(why.into()))
    }

    fn read(value: ValueRef<'_>) -> FromSqlResult<T> {
        serde_json::from_str(value.as_str()?).map_err(|why| FromSqlError::Other(why.into()))
    }
}

/// All 64 bits, which SQLite shows as a number with a sign.
pub(crate) struct Bits;

impl Codec<u64> for Bits {
    const STORED: Stored = Stored::of("INTEGER");

    fn write(value: &u64) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(value.cast_signed().into())
    }

    fn read(value: ValueRef<'_>) -> FromSqlResult<u64> {
        i64::column_result(value).map(i64::cast_unsigned)
    }
}

/// Whether it is the generator's: `generator`, or else `server`.
pub(crate) struct Side;

const SIDES: [&str; 2] = ["server", "generator"];

impl Codec<bool> for Side {
    const STORED: Stored = Stored { check: Check::Words(&SIDES), ..Stored::of("TEXT") };

    fn write(of_generator: &bool) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(SIDES[usize::from(*of_generator)].into())
    }

    fn read(value: ValueRef<'_>) -> FromSqlResult<bool> {
        Ok(value.as_str()? == SIDES[1])
    }
}

/// A value as this column of a table holds it. SQLite knows no NaN and would store NULL in its
/// place: a column that can't be NULL refuses it.
pub(crate) fn put<'a, T, C: Codec<T>>(
    value: &'a T,
    table: &str,
    column: &str,
) -> rusqlite::Result<ToSqlOutput<'a>> {
    let written = C::write(value)?;
    let is_nan = match &written {
        ToSqlOutput::Borrowed(ValueRef::Real(number)) | ToSqlOutput::Owned(Value::Real(number)) => {
            number.is_nan()
        }
        _ => false,
    };
    if is_nan && !C::STORED.nullable {
        let why = format!("{table}.{column} has to be a number, and it is NaN");
        return Err(rusqlite::Error::ToSqlConversionFailure(why.into()));
    }
    Ok(written)
}

/// The value at a place of a query's row.
pub(crate) fn get<T, C: Codec<T>>(row: &SqlRow<'_>, at: usize) -> rusqlite::Result<T> {
    let value = row.get_ref(at)?;
    let kind = value.data_type();
    C::read(value).map_err(|error| match error {
        FromSqlError::InvalidType => rusqlite::Error::InvalidColumnType(
            at,
            row.as_ref().column_name(at).map_or_else(|_| String::new(), str::to_owned),
            kind,
        ),
        FromSqlError::OutOfRange(number) => rusqlite::Error::IntegralValueOutOfRange(at, number),
        error => rusqlite::Error::FromSqlConversionFailure(at, kind, Box::new(error)),
    })
}

impl Table {
    /// All its columns but `id`.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &'static Column> {
        self.fields.iter().chain(self.also)
    }

    /// Its columns that refer to a row of another table: the column, and the table.
    pub(crate) fn refers(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.columns().filter_map(|column| Some((column.name, column.stored.refers?)))
    }

    /// The fields as a query asks for them: `slice.trial_id, slice.ordinal`.
    pub(crate) fn selected(&self) -> String {
        let names = self.fields.iter().map(|column| format!("{}.{}", self.name, column.name));
        names.collect::<Vec<_>>().join(", ")
    }

    /// The SQL that makes the table and its indexes, with the meaning of each column as a comment.
    pub(crate) fn create(&self) -> String {
        let mut lines = Vec::new();
        if self.has_id {
            // Ids only count up, so that a number once written down never means another row.
            lines.push("    id INTEGER PRIMARY KEY AUTOINCREMENT".to_owned());
        }
        lines.extend(self.columns().map(Column::define));
        lines.extend(self.key.map(|columns| format!("    PRIMARY KEY ({columns})")));
        lines.extend(self.check.iter().map(|check| format!("    CHECK ({check})")));
        let name = self.name;
        let options = if self.key.is_some() { "STRICT, WITHOUT ROWID" } else { "STRICT" };
        let (about, lines) = (self.about.concat(), lines.join(",\n"));
        let mut sql = format!("CREATE TABLE {name} ( --{about}\n{lines}\n) {options};\n");
        for (n, columns) in (1..).zip(self.unique) {
            sql += &format!("CREATE UNIQUE INDEX {name}_once_{n} ON {name} ({columns});\n");
        }
        for (n, columns) in (1..).zip(self.index) {
            sql += &format!("CREATE INDEX {name}_by_{n} ON {name} ({columns});\n");
        }
        sql
    }
}

impl Column {
    fn define(&self) -> String {
        let (name, Stored { sql, nullable, check, refers }) = (self.name, self.stored);
        let mut line = format!("    --{}\n    {name} {sql}", self.about.concat());
        if !nullable {
            line += " NOT NULL";
        }
        match check {
            Check::Nothing => {}
            Check::Bool => line += &format!(" CHECK ({name} IN (0, 1))"),
            Check::Json => line += &format!(" CHECK (json_valid({name}))"),
            Check::Words(words) => {
                line += &format!(" CHECK ({name} IN ('{}'))", words.join("', '"));
            }
        }
        match refers {
            None => {}
            // Runs share these.
            Some(to @ ("suite" | "fingerprint")) => line += &format!(" REFERENCES {to} (id)"),
            Some(to) => line += &format!(" REFERENCES {to} (id) ON DELETE CASCADE"),
        }
        line
    }
}

/// Defines tables; the head of this file has its form.
macro_rules! rows {
    (@codec) => { $crate::table::Plain };
    (@codec $codec:ident) => { $crate::table::$codec };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $column:ident) => { stringify!($column) };
    (@key) => { None };
    (@key $key:literal) => { Some($key) };
    (@has_id) => { false };
    (@has_id $id:ident) => { true };
    ($(
        $(#[doc = $about:literal])+
        $table:ident: $row:ident $(with $id:ident)? {$(
            $(#[doc = $meaning:literal])+
            $field:ident $(in $column:ident)?: $kind:ty $(as $codec:ident)?
        ),+ $(,)?}
        $(also {$(
            $(#[doc = $also_meaning:literal])+
            $also:ident: $also_kind:ty
        ),+ $(,)?})?
        $(key $key:literal)?
        $(unique $unique:literal)*
        $(index $index:literal)*
        $(check $check:literal)*
    )+) => {
        /// Every table of this file, each after those that it refers to.
        pub(crate) const TABLES: &[$crate::table::Table] =
            &[$(<$row as $crate::table::Row>::TABLE),+];
        $(
            $(#[doc = $about])+
            #[derive(Debug, Clone, PartialEq, Default)]
            #[allow(unreachable_pub, reason = "most rows are exported")]
            pub struct $row {$(
                $(#[doc = $meaning])+
                pub $field: $kind,
            )+}

            impl $crate::table::Row for $row {
                const TABLE: $crate::table::Table = $crate::table::Table {
                    name: stringify!($table),
                    about: &[$($about),+],
                    has_id: rows!(@has_id $($id)?),
                    fields: &[$($crate::table::Column {
                        name: rows!(@name $field $($column)?),
                        about: &[$($meaning),+],
                        stored: <rows!(@codec $($codec)?) as $crate::table::Codec<$kind>>::STORED,
                    }),+],
                    also: &[$($($crate::table::Column {
                        name: stringify!($also),
                        about: &[$($also_meaning),+],
                        stored: <$also_kind as $crate::table::Declared>::STORED,
                    }),+)?],
                    key: rows!(@key $($key)?),
                    unique: &[$($unique),*],
                    index: &[$($index),*],
                    check: &[$($check),*],
                };

                fn values(&self) -> rusqlite::Result<Vec<rusqlite::types::ToSqlOutput<'_>>> {
                    Ok(vec![$(
                        $crate::table::put::<$kind, rows!(@codec $($codec)?)>(
                            &self.$field,
                            stringify!($table),
                            rows!(@name $field $($column)?),
                        )?
                    ),+])
                }

                fn read(row: &rusqlite::Row<'_>, first: usize) -> rusqlite::Result<Self> {
                    let mut places = first..;
                    let mut next = || places.next().unwrap_or(usize::MAX);
                    Ok(Self {$(
                        $field: $crate::table::get::<$kind, rows!(@codec $($codec)?)>(row, next())?,
                    )+})
                }
            }
        )+
    };
}
pub(crate) use rows;

#[cfg(test)]
mod tests {
    use super::*;

    rows! {
        /// One thing. It is for this test.
        thing: ThingRow with id {
            /// What it is called,
            /// in one word.
            name in word: String,
            /// Its keys; NULL without any.
            seed: Option<u64>,
            /// Its mark.
            mark: u64 as Bits,
            /// Whether it counts.
            counts: bool,
        }
        unique "word"
        index "seed, mark"
        check "seed > 0"

        /// One measurement.
        measurement: MeasurementRow {
            /// It is always there.
            length in metres: f64,
            /// It may be unseen.
            width: Option<f64>,
        }
    }

    #[test]
    fn what_is_no_number_is_refused_by_name_or_unseen() {
        let refused = MeasurementRow { length: f64::NAN, width: None }.values().unwrap_err();
        assert_eq!(refused.to_string(), "measurement.metres has to be a number, and it is NaN");
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch(&MeasurementRow::TABLE.create()).unwrap();
        let row = MeasurementRow { length: f64::INFINITY, width: Some(f64::NAN) };
        let insert = "INSERT INTO measurement (metres, width) VALUES (?1, ?2)";
        connection.execute(insert, rusqlite::params_from_iter(row.values().unwrap())).unwrap();
        let sql = format!("SELECT {} FROM measurement", MeasurementRow::TABLE.selected());
        let read = connection.query_row(&sql, [], |row| MeasurementRow::read(row, 0)).unwrap();
        assert_eq!(read, MeasurementRow { length: f64::INFINITY, width: None });
    }

    #[test]
    fn one_definition_makes_the_table_and_reads_what_it_wrote() {
        let sql = "CREATE TABLE thing ( -- One thing. It is for this test.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- What it is called, in one word.
    word TEXT NOT NULL,
    -- Its keys; NULL without any.
    seed INTEGER,
    -- Its mark.
    mark INTEGER NOT NULL,
    -- Whether it counts.
    counts INTEGER NOT NULL CHECK (counts IN (0, 1)),
    CHECK (seed > 0)
) STRICT;
CREATE UNIQUE INDEX thing_once_1 ON thing (word);
CREATE INDEX thing_by_1 ON thing (seed, mark);
";
        assert_eq!(TABLES[0].create(), sql);
        let connection = rusqlite::Connection::open_in_memory().unwrap();
        connection.execute_batch(sql).unwrap();
        let row = ThingRow { name: "a".into(), seed: None, mark: u64::MAX, counts: true };
        let insert = "INSERT INTO thing (word, seed, mark, counts) VALUES (?1, ?2, ?3, ?4)";
        connection.execute(insert, rusqlite::params_from_iter(row.values().unwrap())).unwrap();
        let sql = format!("SELECT {} FROM thing", ThingRow::TABLE.selected());
        let read = connection.query_row(&sql, [], |row| ThingRow::read(row, 0));
        assert_eq!(read, Ok(row));
        let damaged =
            connection.query_row("SELECT 'a', -1, 0, 1", [], |row| ThingRow::read(row, 0));
        assert_eq!(damaged, Err(rusqlite::Error::IntegralValueOutOfRange(1, -1)));
    }
}
