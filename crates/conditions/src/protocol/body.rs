//! What requests carry: JSON, as the changes that it means.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::cell::cell_from_json;
use crate::model::{Batch, ColumnSpec, MAX_TIME, Object, Table, Value, Versioning};

/// `POST /folders`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FolderBody {
    /// Its path.
    #[serde(deserialize_with = "super::incoming::path")]
    pub path: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Whether a time may have several objects.
    pub versioning: Versioning,
    /// Its columns.
    pub columns: Vec<ColumnSpec>,
}

/// `POST /sets`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetBody {
    /// Its path.
    #[serde(deserialize_with = "super::incoming::path")]
    pub path: String,
    /// What it is for.
    pub description: String,
}

/// `POST /columns`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnBody {
    /// The folder.
    #[serde(deserialize_with = "super::incoming::path")]
    pub folder: String,
    /// The column that is added.
    pub column: ColumnSpec,
}

/// `POST /columns/rename`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RenameBody {
    /// The folder.
    #[serde(deserialize_with = "super::incoming::path")]
    pub folder: String,
    /// The column.
    pub from: String,
    /// Its new name.
    pub to: String,
}

/// `POST /channels`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelBody {
    /// The folder.
    #[serde(deserialize_with = "super::incoming::path")]
    pub folder: String,
    /// The channel.
    pub channel: u32,
    /// Its name.
    pub name: String,
}

/// `POST /truncate`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TruncateBody {
    /// The folder.
    #[serde(deserialize_with = "super::incoming::path")]
    pub folder: String,
    /// The first time at which nothing is shown any more.
    #[serde(deserialize_with = "super::incoming::time")]
    pub until: u64,
    /// The channels, as `1-5,7`; all of them without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<String>,
}

/// `POST /tags`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TagBody {
    /// Its name.
    pub name: String,
    /// The folder or set.
    #[serde(deserialize_with = "super::incoming::path")]
    pub path: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// The revision that it shows; the last one without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<u64>,
    /// The date that it shows, in place of a revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of: Option<String>,
    /// The tags that it picks, which makes it a global tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picks: Option<Vec<String>>,
}

/// `POST /tags/pick`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PickBody {
    /// The global tag.
    pub name: String,
    /// The tags that it picks from then on, in place of those of their paths.
    #[serde(default)]
    pub picks: Vec<String>,
    /// Paths for which it picks none any more.
    #[serde(default)]
    pub unpick: Vec<String>,
}

/// `POST /tags/clone`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CloneBody {
    /// The tag.
    pub from: String,
    /// The new tag.
    pub to: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
}

/// `POST /tags/lock`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockBody {
    /// The tag.
    pub name: String,
    /// Whether it is locked from then on.
    pub locked: bool,
}

/// `POST /tags/delete`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteBody {
    /// The tag.
    pub name: String,
}

/// `POST /objects`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InsertBody {
    /// All are inserted, or none.
    pub batches: Vec<BatchBody>,
}

/// Objects of one folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchBody {
    /// The folder.
    #[serde(deserialize_with = "super::incoming::path")]
    pub folder: String,
    /// The tag of users that they are inserted with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Whether the head does not show them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_tag: bool,
    /// The objects.
    pub objects: Vec<ObjectBody>,
}

/// One object: with `values`, of one record, or with `records`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectBody {
    /// Its channel.
    pub channel: u32,
    /// Its first time.
    pub since: u64,
    /// The first time after it; it stays open without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// Its one record: a list in the order of columns, or an object by their names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Json>,
    /// Its records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub records: Option<Vec<Json>>,
}

impl BatchBody {
    /// The batch in a folder's columns.
    ///
    /// # Errors
    /// When a record is not of these columns; the error says where, and what can be written.
    pub fn batch(self, columns: &[ColumnSpec]) -> Result<Batch, String> {
        let mut payload = Table::new(columns.iter().map(|column| column.kind));
        let mut objects = Vec::with_capacity(self.objects.len());
        for (place, body) in self.objects.into_iter().enumerate() {
            let object = body.add_to(&mut payload, columns);
            objects
                .push(object.map_err(|why| format!("object {place} of {:?}: {why}", self.folder))?);
        }
        let Self { folder, tag, only_tag, .. } = self;
        Ok(Batch { folder, tag, only_tag, objects, payload })
    }
}

impl ObjectBody {
    /// Adds its records to a payload in these columns.
    ///
    /// # Errors
    /// When a record is not of these columns, whose rows may be there up to it then.
    pub fn add_to(self, payload: &mut Table, columns: &[ColumnSpec]) -> Result<Object, String> {
        let records = match (self.values, self.records) {
            (Some(values), None) => vec![values],
            (None, Some(records)) => records,
            (None, None) if columns.is_empty() => Vec::new(),
            _ => return Err("it needs either \"values\" or \"records\"".to_owned()),
        };
        for record in &records {
            push_record(payload, columns, record)?;
        }
        let (channel, since, until) = (self.channel, self.since, self.until);
        let (until, records) = (until.unwrap_or(MAX_TIME), records.len() as u32);
        Ok(Object { channel, since, until, records })
    }
}

/// Adds a record to rows of these columns.
fn push_record(payload: &mut Table, columns: &[ColumnSpec], record: &Json) -> Result<(), String> {
    let null = Json::Null;
    let cells: Vec<&Json> = match record {
        Json::Array(cells) if cells.len() == columns.len() => cells.iter().collect(),
        Json::Array(cells) => {
            return Err(format!("{} values for {} columns", cells.len(), columns.len()));
        }
        Json::Object(named) => {
            let is_known = |name: &str| columns.iter().any(|column| column.name == name);
            if let Some(name) = named.keys().find(|name| !is_known(name)) {
                let known: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
                return Err(format!("no column is {name:?}; there are {}", known.join(", ")));
            }
            columns.iter().map(|column| named.get(&column.name).unwrap_or(&null)).collect()
        }
        _ => return Err("a record is a list of values, or an object by columns".to_owned()),
    };
    // A record is whole or not there: the columns have as many rows as each other.
    let read = columns.iter().zip(cells).map(|(column, cell)| {
        cell_from_json(column.kind, cell).map_err(|why| format!("column {:?}: {why}", column.name))
    });
    let values: Vec<Value> = read.collect::<Result<_, _>>()?;
    for (cells, value) in payload.columns.iter_mut().zip(&values) {
        cells.push(value).map_err(|_| "a value out of its column's range".to_owned())?;
    }
    payload.rows += 1;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;
    use serde_json::json;

    fn columns() -> Vec<ColumnSpec> {
        let column = |(name, kind): (&str, _)| ColumnSpec { name: name.to_owned(), kind };
        [("a", Kind::Int16), ("b", Kind::String)].map(column).to_vec()
    }

    fn batch(object: Json) -> Result<Batch, String> {
        let body = json!({ "folder": "/f", "objects": [object] });
        let body: BatchBody = serde_json::from_value(body).expect("a body");
        body.batch(&columns())
    }

    #[test]
    fn a_record_is_a_list_or_an_object_and_what_is_left_out_has_no_value() {
        let read = batch(json!({ "channel": 1, "since": 5, "records": [[1, "x"], { "b": "y" }] }));
        let read = read.expect("a batch");
        let object = Object { channel: 1, since: 5, until: MAX_TIME, records: 2 };
        assert_eq!(read.objects, [object]);
        let rows: Vec<Vec<Value>> = (0..2).map(|row| read.payload.row(row).collect()).collect();
        let text = |text: &str| Value::Text(text.to_owned());
        assert_eq!(rows, [[Value::Integer(1), text("x")], [Value::Null, text("y")]]);
    }

    #[test]
    fn a_record_that_does_not_fit_is_named_with_its_object_and_column() {
        for (object, said) in [
            (json!({ "channel": 1, "since": 5 }), "object 0 of \"/f\": it needs either"),
            (json!({ "channel": 1, "since": 5, "values": [1] }), "1 values for 2 columns"),
            (json!({ "channel": 1, "since": 5, "values": { "c": 1 } }), "there are a, b"),
            (
                json!({ "channel": 1, "since": 5, "values": ["x", "y"] }),
                "column \"a\": \"x\" is no",
            ),
            (json!({ "channel": 1, "since": 5, "values": 7 }), "a record is a list"),
        ] {
            let why = batch(object).expect_err("refused");
            assert!(why.contains(said), "{why}");
        }
    }
}
