//! Answers in JSON, with the reference's fields.

use std::fmt;

use serde::{Serialize, Serializer};

use super::page::{Browse, SortKey};
use crate::nopayload::model::{Iov, List, Moment, Nopayload, PayloadType, Status, Tag};

/// A date without a zone, which is UTC: with six digits of a second, or none.
#[derive(Clone, Copy, Debug)]
struct Date(i64);

impl Serialize for Date {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let date = jiff::Timestamp::from_microsecond(self.0).unwrap_or_default();
        let form = if self.0 % 1_000_000 == 0 { "%FT%T" } else { "%FT%T%.6f" };
        serializer.collect_str(&date.strftime(form))
    }
}

/// Both numbers as one decimal, the minor one in its 19 digits.
#[derive(Clone, Copy, Debug)]
struct Combined(Moment);

impl fmt::Display for Combined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:019}", self.0.major, self.0.minor)
    }
}

impl Serialize for Combined {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A status.
#[derive(Debug, Serialize)]
pub struct StatusView<'a> {
    id: u32,
    name: &'a str,
    created: Date,
}

impl<'a> StatusView<'a> {
    /// That of a status.
    pub fn of((id, status): (u32, &'a Status)) -> Self {
        Self { id, name: &status.name, created: Date(status.made_us) }
    }
}

/// A payload type.
#[derive(Debug, Serialize)]
pub struct TypeView<'a> {
    id: u32,
    name: &'a str,
    created: Date,
}

impl<'a> TypeView<'a> {
    /// That of a payload type.
    pub fn of((id, payload_type): (u32, &'a PayloadType)) -> Self {
        Self { id, name: &payload_type.name, created: Date(payload_type.made_us) }
    }
}

impl Browse for (u32, &PayloadType) {
    const SORT: &'static str = "name";

    fn any_text(&self, is_it: &dyn Fn(&str) -> bool) -> bool {
        is_it(&self.1.name)
    }

    fn key(&self, sort: &str) -> Option<SortKey<'_>> {
        Some(match sort {
            "id" => SortKey::Number(self.0.into()),
            "name" => SortKey::Text(&self.1.name),
            "created" => SortKey::Number(self.1.made_us),
            _ => return None,
        })
    }
}

/// A global tag as it was made (its status by name) or changed (by number).
#[derive(Debug, Serialize)]
pub struct TagView<'a, S> {
    id: u32,
    name: &'a str,
    author: Option<&'a str>,
    status: S,
    created: Date,
    updated: Date,
}

impl<'a, S> TagView<'a, S> {
    /// That of a tag.
    pub fn of((id, tag): (u32, &'a Tag), status: S) -> Self {
        let (created, updated) = (Date(tag.made_us), Date(tag.updated_us));
        Self { id, name: &tag.name, author: tag.author.as_deref(), status, created, updated }
    }
}

/// A global tag as lists have it.
#[derive(Debug, Serialize)]
pub struct TagListed<'a> {
    #[serde(flatten)]
    tag: TagView<'a, &'a str>,
    payload_lists_count: usize,
    payload_iov_count: usize,
}

impl<'a> TagListed<'a> {
    /// That of a tag.
    pub fn of(state: &'a Nopayload, row: (u32, &'a Tag)) -> Self {
        Self {
            tag: TagView::of(row, state.status_of(row.1)),
            payload_lists_count: row.1.lists.len(),
            payload_iov_count: state.iovs_of_tag(row.1),
        }
    }
}

impl Browse for TagListed<'_> {
    const SORT: &'static str = "name";

    fn any_text(&self, is_it: &dyn Fn(&str) -> bool) -> bool {
        is_it(self.tag.name) || self.tag.author.is_some_and(is_it)
    }

    fn key(&self, sort: &str) -> Option<SortKey<'_>> {
        Some(match sort {
            "id" => SortKey::Number(self.tag.id.into()),
            "name" => SortKey::Text(self.tag.name),
            "author" => SortKey::text(self.tag.author),
            "status" => SortKey::Text(self.tag.status),
            "payload_lists_count" => SortKey::Place(self.payload_lists_count as u64),
            "payload_iov_count" => SortKey::Place(self.payload_iov_count as u64),
            "created" => SortKey::Number(self.tag.created.0),
            "updated" => SortKey::Number(self.tag.updated.0),
            _ => return None,
        })
    }
}

#[derive(Debug, Serialize)]
struct StatusDetail<'a> {
    #[serde(flatten)]
    status: StatusView<'a>,
    /// No request fills it.
    description: Option<&'a str>,
}

/// More intervals than an answer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyRows(pub usize);

/// The most intervals of an answer that has all of them.
const MAX_ROWS: usize = 200_000;

impl TooManyRows {
    /// Refuses an answer with more intervals than the limit.
    ///
    /// # Errors
    /// When they are more than 200,000.
    pub fn check(rows: usize) -> Result<(), Self> {
        if rows > MAX_ROWS { Err(Self(rows)) } else { Ok(()) }
    }
}

impl fmt::Display for TooManyRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} payload IOVs are more than {MAX_ROWS}, the limit of an answer", self.0)?;
        f.write_str(": ask for pages of payload-iovs, with ?page=1")
    }
}

/// A global tag with all that its lists have.
#[derive(Debug, Serialize)]
pub struct TagDetail<'a> {
    id: u32,
    name: &'a str,
    author: Option<&'a str>,
    status: Option<StatusDetail<'a>>,
    payload_lists: Vec<ListDetail<'a>>,
    created: Date,
    updated: Date,
}

impl<'a> TagDetail<'a> {
    /// That of a tag.
    pub fn of(state: &'a Nopayload, (id, tag): (u32, &'a Tag)) -> Self {
        let lists = tag.lists.values().filter_map(|id| Some((*id, state.list(*id)?)));
        let status = state.status(tag.status).map(|status| StatusDetail {
            status: StatusView::of((tag.status, status)),
            description: None,
        });
        Self {
            id,
            name: &tag.name,
            author: tag.author.as_deref(),
            status,
            payload_lists: lists.map(|list| ListDetail::of(state, list)).collect(),
            created: Date(tag.made_us),
            updated: Date(tag.updated_us),
        }
    }
}

/// A payload list: its tag and type by name or by number.
#[derive(Debug, Serialize)]
pub struct ListView<'a, N> {
    id: u32,
    name: &'a str,
    global_tag: Option<N>,
    payload_type: N,
    created: Date,
}

impl<'a> ListView<'a, &'a str> {
    /// That of a list, with names.
    pub fn named(state: &'a Nopayload, (id, list): (u32, &'a List)) -> Self {
        let tag = list.tag.and_then(|tag| state.tag(tag));
        let payload_type = state.payload_type(list.payload_type);
        Self {
            id,
            name: &list.name,
            global_tag: tag.map(|tag| tag.name.as_str()),
            payload_type: payload_type.map_or("", |payload_type| &payload_type.name),
            created: Date(list.made_us),
        }
    }
}

impl<'a> ListView<'a, u32> {
    /// That of a list, with numbers.
    pub fn numbered((id, list): (u32, &'a List)) -> Self {
        let (global_tag, payload_type) = (list.tag, list.payload_type);
        Self { id, name: &list.name, global_tag, payload_type, created: Date(list.made_us) }
    }
}

/// A payload list with how many intervals it has.
#[derive(Debug, Serialize)]
pub struct ListListed<'a> {
    #[serde(flatten)]
    list: ListView<'a, &'a str>,
    iov_count: usize,
}

impl<'a> ListListed<'a> {
    /// That of a list.
    pub fn of(state: &'a Nopayload, row: (u32, &'a List)) -> Self {
        Self { list: ListView::named(state, row), iov_count: row.1.iovs().len() }
    }
}

impl Browse for ListListed<'_> {
    const SORT: &'static str = "name";

    fn any_text(&self, is_it: &dyn Fn(&str) -> bool) -> bool {
        let tag = self.list.global_tag.is_some_and(is_it);
        tag || is_it(self.list.name) || is_it(self.list.payload_type)
    }

    fn key(&self, sort: &str) -> Option<SortKey<'_>> {
        Some(match sort {
            "id" => SortKey::Number(self.list.id.into()),
            "name" => SortKey::Text(self.list.name),
            "global_tag" => SortKey::text(self.list.global_tag),
            "payload_type" => SortKey::Text(self.list.payload_type),
            "iov_count" => SortKey::Place(self.iov_count as u64),
            "created" => SortKey::Number(self.list.created.0),
            _ => return None,
        })
    }
}

/// A payload list with all its intervals.
#[derive(Debug, Serialize)]
pub struct ListDetail<'a> {
    #[serde(flatten)]
    list: ListView<'a, &'a str>,
    payload_iov: Vec<IovView<'a>>,
}

impl<'a> ListDetail<'a> {
    /// That of a list.
    pub fn of(state: &'a Nopayload, row: (u32, &'a List)) -> Self {
        let iovs = row.1.iovs().filter_map(|id| Some((id, state.iov(id)?)));
        let payload_iov = iovs.map(|iov| IovView::of(state, iov)).collect();
        Self { list: ListView::named(state, row), payload_iov }
    }
}

/// An interval.
#[derive(Debug, Serialize)]
pub struct IovView<'a> {
    id: u32,
    payload_url: &'a str,
    checksum: &'a str,
    major_iov: u64,
    minor_iov: u64,
    comb_iov: Combined,
    major_iov_end: u64,
    minor_iov_end: u64,
    payload_list: Option<&'a str>,
    inserted: Date,
}

impl<'a> IovView<'a> {
    /// That of an interval.
    pub fn of(state: &'a Nopayload, (id, iov): (u32, &'a Iov)) -> Self {
        let (start, end) = (iov.interval.start, iov.interval.end);
        Self {
            id,
            payload_url: &iov.url,
            checksum: &iov.checksum,
            major_iov: start.major,
            minor_iov: start.minor,
            comb_iov: Combined(start),
            major_iov_end: end.major,
            minor_iov_end: end.minor,
            payload_list: iov.list.and_then(|list| state.list(list)).map(|list| &*list.name),
            inserted: Date(iov.made_us),
        }
    }
}

/// An interval with the names of its list, tag and type.
#[derive(Debug, Serialize)]
pub struct IovListed<'a> {
    id: u32,
    payload_url: &'a str,
    checksum: &'a str,
    major_iov: u64,
    minor_iov: u64,
    major_iov_end: u64,
    minor_iov_end: u64,
    payload_list: Option<&'a str>,
    global_tag: Option<&'a str>,
    payload_type: Option<&'a str>,
    inserted: Date,
}

impl<'a> IovListed<'a> {
    /// That of an interval.
    pub fn of(row: IovRow<'a>) -> Self {
        let (start, end) = (row.iov.interval.start, row.iov.interval.end);
        Self {
            id: row.id,
            payload_url: &row.iov.url,
            checksum: &row.iov.checksum,
            major_iov: start.major,
            minor_iov: start.minor,
            major_iov_end: end.major,
            minor_iov_end: end.minor,
            payload_list: row.list().map(|list| &*list.name),
            global_tag: row.tag_name(),
            payload_type: row.type_name(),
            inserted: Date(row.iov.made_us),
        }
    }
}

/// An interval to be sorted among millions.
#[derive(Clone, Copy, Debug)]
pub struct IovRow<'a> {
    /// What its names are found in.
    pub state: &'a Nopayload,
    /// Its number.
    pub id: u32,
    /// The interval.
    pub iov: &'a Iov,
}

impl<'a> IovRow<'a> {
    fn list(&self) -> Option<&'a List> {
        self.state.list(self.iov.list?)
    }

    fn tag_name(&self) -> Option<&'a str> {
        Some(&self.state.tag(self.list()?.tag?)?.name)
    }

    fn type_name(&self) -> Option<&'a str> {
        Some(&self.state.payload_type(self.list()?.payload_type)?.name)
    }
}

impl Browse for IovRow<'_> {
    const SORT: &'static str = "id";

    fn any_text(&self, is_it: &dyn Fn(&str) -> bool) -> bool {
        is_it(&self.iov.url) || self.list().is_some_and(|list| is_it(&list.name))
    }

    fn key(&self, sort: &str) -> Option<SortKey<'_>> {
        let Iov { url, checksum, interval, made_us, .. } = self.iov;
        Some(match sort {
            "id" => SortKey::Number(self.id.into()),
            "payload_url" => SortKey::Text(url),
            "checksum" => SortKey::Text(checksum),
            "major_iov" => SortKey::Place(interval.start.major),
            "minor_iov" => SortKey::Place(interval.start.minor),
            "major_iov_end" => SortKey::Place(interval.end.major),
            "minor_iov_end" => SortKey::Place(interval.end.minor),
            "payload_list" => SortKey::text(self.list().map(|list| &*list.name)),
            "global_tag" => SortKey::text(self.tag_name()),
            "payload_type" => SortKey::text(self.type_name()),
            "inserted" => SortKey::Number(*made_us),
            _ => return None,
        })
    }
}

/// A file that was stored.
#[derive(Clone, Debug, Serialize)]
pub struct FileView<'a> {
    /// Its key.
    pub key: &'a str,
    /// `sha256:` and its digits.
    pub checksum: String,
    /// How many bytes it has.
    pub size: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_moments_are_written_as_the_reference_writes_them() {
        let date = |us| serde_json::to_string(&Date(us)).expect("JSON");
        assert_eq!(date(1_785_000_000_000_000), "\"2026-07-25T17:20:00\"");
        assert_eq!(date(1_785_000_000_714_000), "\"2026-07-25T17:20:00.714000\"");
        assert_eq!(Combined(Moment::of(0, 1000)).to_string(), "0.0000000000000001000");
        let open = "9223372036854775807.9223372036854775807";
        assert_eq!(Combined(Moment::OPEN).to_string(), open);
    }
}
