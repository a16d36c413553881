//! What two versions show differently.

use std::sync::Arc;

use super::change::{ColumnSpec, Object};
use super::error::{ANSWER, Refusal};
use super::folder::{Folder, Selection};
use super::piece::{MAX_TIME, Version};
use super::shown::Answer;
use super::state::State;
use super::table::Table;
use super::tag::View;
use super::value::Value;
use super::view::{Found, Place};

/// An interval over which a channel shows something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The channel.
    pub channel: u32,
    /// The first time.
    pub since: u64,
    /// The first time after it.
    pub until: u64,
    /// The first row and the number of rows that are shown before; `None` where nothing is.
    pub before: Option<(u32, u32)>,
    /// Those that are shown after.
    pub after: Option<(u32, u32)>,
}

/// What two versions of a folder show differently, in the order of channels and times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    /// The folder.
    pub folder: String,
    /// The columns before, and after.
    pub columns: (Vec<ColumnSpec>, Vec<ColumnSpec>),
    /// Each interval.
    pub differences: Vec<Difference>,
    /// The records that are shown before, and after.
    pub payload: (Table, Table),
}

/// An interval, with the piece that each version shows all over it.
#[derive(Clone, Copy)]
struct Stretch<'a> {
    since: u64,
    until: u64,
    before: Option<Found<'a>>,
    after: Option<Found<'a>>,
}

impl State {
    /// What two views of all folders at and below a path show differently at some time of
    /// `since..=until`; folders that are the same are left out.
    ///
    /// # Errors
    /// When a channel isn't there, or there are too many rows.
    pub fn diff(
        &self,
        path: &str,
        range: (u64, u64),
        of: &Selection,
        (before, after): (View, View),
    ) -> Result<Vec<Diff>, Refusal> {
        let (mut found, mut rows) = (Vec::new(), 0);
        for folder in self.under(path) {
            let version = |view| self.resolve(view, folder.path()).map(|found| found.version);
            let diff = folder.diff(range, of, (version(before)?, version(after)?))?;
            let (first, second) = (diff.payload.0.rows, diff.payload.1.rows);
            rows += diff.differences.len().max(first as usize).max(second as usize);
            ANSWER.check(rows)?;
            if !diff.differences.is_empty() || diff.columns.0 != diff.columns.1 {
                found.push(diff);
            }
        }
        Ok(found)
    }
}

impl Folder {
    /// What two versions show differently at some time of `since..=until`, cut to that; no version
    /// shows nothing.
    fn diff(
        &self,
        (since, until): (u64, u64),
        of: &Selection,
        (before, after): (Option<Version>, Option<Version>),
    ) -> Result<Diff, Refusal> {
        self.contents.check_known()?;
        let range = (since, until.saturating_add(1).min(MAX_TIME));
        let mut stretches: Vec<(u32, Stretch<'_>)> = Vec::new();
        for channel in self.channels_of(of)? {
            let one = self.cut_to(channel, before, range)?;
            let other = self.cut_to(channel, after, range)?;
            for chunk in stretches_of(&one, &other).chunks(CHUNK) {
                let chunk: Vec<_> = chunk.iter().map(|one| (channel, *one)).collect();
                self.add_different(&chunk, (before, after), &mut stretches)?;
                ANSWER.check(stretches.len())?;
            }
        }
        let (first, second) = self.shown_by(&stretches, (before, after))?;
        let difference = |((channel, stretch), (before, after)): (&(u32, Stretch), _)| {
            let Stretch { since, until, .. } = *stretch;
            Difference { channel: *channel, since, until, before, after }
        };
        let rows = first.rows().zip(second.rows());
        let differences = stretches.iter().zip(rows).map(difference).collect();
        Ok(Diff {
            folder: self.path().to_owned(),
            columns: (first.answer.columns, second.answer.columns),
            differences,
            payload: (first.answer.payload, second.answer.payload),
        })
    }

    /// What a version shows of a channel, cut to a range.
    fn cut_to(
        &self,
        channel: u32,
        version: Option<Version>,
        (since, until): (u64, u64),
    ) -> Result<Vec<Found<'_>>, Refusal> {
        let view = version
            .and_then(|version| Some((self.contents.view(version.user_tag)?, version.revision)));
        let (Some((view, revision)), true) = (view, since < until) else { return Ok(Vec::new()) };
        let mut found = view.range(channel, (since, until - 1), revision)?;
        for piece in &mut found {
            (piece.since, piece.until) = (piece.since.max(since), piece.until.min(until));
        }
        Ok(found)
    }

    /// Adds those of some stretches over which records differ.
    fn add_different<'a>(
        &'a self,
        chunk: &[(u32, Stretch<'a>)],
        versions: (Option<Version>, Option<Version>),
        into: &mut Vec<(u32, Stretch<'a>)>,
    ) -> Result<(), Refusal> {
        let (first, second) = match self.shown_by(chunk, versions) {
            Ok(sides) => sides,
            // Too much for one look.
            Err(Refusal::TooMany(..)) if chunk.len() > 1 => {
                let (one, other) = chunk.split_at(chunk.len() / 2);
                self.add_different(one, versions, into)?;
                return self.add_different(other, versions, into);
            }
            Err(refusal) => return Err(refusal),
        };
        let different = chunk.iter().zip(first.rows().zip(second.rows()));
        let different = different
            .filter(|(_, (own, other))| !is_same((&first.answer, *own), (&second.answer, *other)));
        into.extend(different.map(|(one, _)| *one));
        Ok(())
    }

    /// What both versions show over stretches.
    fn shown_by<'a>(
        &'a self,
        stretches: &[(u32, Stretch<'a>)],
        (before, after): (Option<Version>, Option<Version>),
    ) -> Result<(Side, Side), Refusal> {
        let side = |version: Option<Version>, piece: fn(Stretch<'a>) -> Option<Found<'a>>| {
            let all = stretches.iter();
            let pieces: Vec<_> =
                all.clone().filter_map(|(n, one)| Some((*n, piece(*one)?))).collect();
            let answer = self.answer(&pieces, version.map_or(0, |version| version.revision))?;
            let is_there = all.map(|(_, one)| piece(*one).is_some()).collect();
            Ok::<_, Refusal>(Side { answer, is_there })
        };
        Ok((side(before, |one| one.before)?, side(after, |one| one.after)?))
    }
}

/// Stretchs that are compared together.
const CHUNK: usize = 4_096;

/// What one version shows over stretches.
struct Side {
    answer: Answer,
    /// Whether it shows something over each.
    is_there: Vec<bool>,
}

impl Side {
    /// The first row and the number of rows of each stretch.
    fn rows(&self) -> impl Iterator<Item = Option<(u32, u32)>> {
        let (mut objects, mut row) = (self.answer.objects.iter(), 0);
        self.is_there.iter().map(move |is_there| {
            let object: Option<&Object> = is_there.then(|| objects.next()).flatten();
            object.map(|object| {
                let first = row;
                row += object.records;
                (first, object.records)
            })
        })
    }
}

/// The intervals over which both show one object or none each, and not the same.
fn stretches_of<'a>(before: &[Found<'a>], after: &[Found<'a>]) -> Vec<Stretch<'a>> {
    let ends = |piece: &Found<'_>| [piece.since, piece.until];
    let mut times: Vec<u64> = before.iter().chain(after).flat_map(ends).collect();
    times.sort_unstable();
    times.dedup();
    let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
    let mut found = Vec::new();
    for (since, until) in times.iter().zip(times.iter().skip(1)).map(|(a, b)| (*a, *b)) {
        let [one, other] = [&mut before, &mut after].map(|pieces| {
            while pieces.next_if(|piece| piece.until <= since).is_some() {}
            pieces.peek().filter(|piece| piece.since <= since).map(|piece| **piece)
        });
        if !is_one(one, other) {
            found.push(Stretch { since, until, before: one, after: other });
        }
    }
    found
}

/// Whether two pieces are known to be of the same object; if not, their records say.
fn is_one(one: Option<Found<'_>>, other: Option<Found<'_>>) -> bool {
    match (one.map(|one| one.place), other.map(|other| other.place)) {
        (None, None) => true,
        (Some(Place::Recent(one)), Some(Place::Recent(other))) => one == other,
        (Some(Place::Sealed(one, piece)), Some(Place::Sealed(other, same))) => {
            Arc::ptr_eq(one, other) && piece == same
        }
        _ => false,
    }
}

/// Whether two objects have the same records; a column that one doesn't have is one without values.
fn is_same(
    (before, own): (&Answer, Option<(u32, u32)>),
    (after, other): (&Answer, Option<(u32, u32)>),
) -> bool {
    let (Some((first, count)), Some((second, others))) = (own, other) else { return false };
    let columns = before.columns.len().max(after.columns.len());
    let cell = |answer: &Answer, row: u32, column: usize| {
        let cells = answer.payload.columns.get(column);
        cells.map_or(Value::Null, |cells| cells.value(row as usize))
    };
    count == others
        && (0..count).all(|row| {
            (0..columns).all(|column| {
                is_same_value(
                    &cell(before, first + row, column),
                    &cell(after, second + row, column),
                )
            })
        })
}

/// Whether two cells hold the same; what is no number is the same as itself.
fn is_same_value(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Float(one), Value::Float(other)) => one.to_bits() == other.to_bits(),
        (Value::Double(one), Value::Double(other)) => one.to_bits() == other.to_bits(),
        _ => one == other,
    }
}
