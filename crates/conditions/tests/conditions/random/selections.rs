//! Columns and channels by their names, several ranges of channels, conditions, dates, and why a
//! channel shows what it shows.

use conditions::model::{Change, ColumnSpec, Condition, MAX_TIME, Test, Value, Version};

use super::{CHANNELS, FOLDERS, KINDS, World, time};
use crate::naive::{Put, Source, intervals};

/// Names of channels.
const NAMES: [&str; 3] = ["left", "right", "a, b"];

/// Which records are asked for.
pub(super) type Keep = Box<dyn Fn(&[Value]) -> bool>;

impl World {
    pub(super) fn add_column(&mut self) {
        let (path, _) = FOLDERS[self.below(FOLDERS.len())];
        let mut names = self.named_at(path, u64::MAX).to_vec();
        let Some(kind) = KINDS.get(names.len()).copied() else { return };
        let name = format!("c{}", self.below(names.len() + 1));
        let column = ColumnSpec { name: name.clone(), kind };
        let made = self.change(Change::AddColumn { folder: path.to_owned(), column });
        assert_eq!(made.is_ok(), !names.contains(&name));
        if let Ok(revision) = made {
            names.push(name);
            self.columns.get_mut(path).expect("a folder").push((revision, names));
        }
    }

    pub(super) fn rename_column(&mut self) {
        let (path, _) = FOLDERS[self.below(FOLDERS.len())];
        let mut names = self.named_at(path, u64::MAX).to_vec();
        let [from, to] = [(); 2].map(|()| format!("c{}", self.below(KINDS.len() + 3)));
        let (folder, place) = (path.to_owned(), names.iter().position(|name| *name == from));
        let made = self.change(Change::RenameColumn { folder, from, to: to.clone() });
        let is_free = names.iter().enumerate().all(|(at, name)| Some(at) == place || *name != to);
        assert_eq!(made.is_ok(), place.is_some() && is_free);
        if let (Ok(revision), Some(place)) = (made, place) {
            names[place] = to;
            self.columns.get_mut(path).expect("a folder").push((revision, names));
        }
    }

    pub(super) fn name_channel(&mut self) {
        let (path, _) = FOLDERS[self.below(FOLDERS.len())];
        let (channel, name) = (self.below(CHANNELS as usize) as u32, NAMES[self.below(3)]);
        let (folder, owned) = (path.to_owned(), name.to_owned());
        let made = self.change(Change::NameChannel { folder, channel, name: owned });
        let names = self.names.get_mut(path).expect("a folder");
        assert_eq!(made.is_ok(), names.get(name).is_none_or(|known| *known == channel));
        if made.is_ok() {
            names.retain(|_, known| *known != channel);
            names.insert(name.to_owned(), channel);
        }
    }

    /// The last revision by a random date.
    pub(super) fn draw_date(&mut self) -> u64 {
        let date = self.below(1_100) as i64;
        let before = self.times_us.iter().filter(|time| **time <= date).count() as u64;
        assert_eq!(self.state.revision_at(date), before);
        before
    }

    /// Some ranges of channels, or all; and names, of which a folder may lack one.
    pub(super) fn draw_channels(&mut self, path: &str) -> (Option<Vec<(u32, u32)>>, Vec<String>) {
        let mut range = || {
            let first = self.below(CHANNELS as usize + 1) as u32;
            (first, [first, first + 1, u32::MAX][self.below(3)])
        };
        let ranges: Vec<_> = (0..3).map(|_| range()).collect();
        let (some, named) = (self.below(4), self.below(4));
        let known = self.names[path].keys().cloned().collect::<Vec<_>>();
        let names = match named {
            0 => known,
            1 if self.below(4) == 0 => vec![NAMES[self.below(3)].to_owned()],
            _ => Vec::new(),
        };
        (ranges.get(..some).filter(|_| some > 0).map(<[_]>::to_vec), names)
    }

    /// The channels that these select; `None` where a name is none of the folder's.
    pub(super) fn selected(
        &self,
        path: &str,
        ranges: &Option<Vec<(u32, u32)>>,
        names: &[String],
    ) -> Option<Vec<u32>> {
        let named = names.iter().map(|name| self.names[path].get(name).copied());
        let named = named.collect::<Option<Vec<u32>>>()?;
        let is_selected = |channel: &u32| match ranges {
            None => named.is_empty() || named.contains(channel),
            Some(ranges) => {
                let within = |(first, last): &(u32, u32)| (*first..=*last).contains(channel);
                named.contains(channel) || ranges.iter().any(within)
            }
        };
        Some((0..CHANNELS).filter(is_selected).collect())
    }

    /// Conditions on records of `columns` columns, and the same as a function, which no record at
    /// all meets only where there are none.
    pub(super) fn draw_conditions(&mut self, columns: usize) -> (Vec<Condition>, Keep) {
        let limit = self.below(10 * self.objects.len() + 1) as i128;
        let (test, column, value) = match self.below(6) {
            0 => (Test::AtLeast, 0, Value::Integer(limit)),
            1 => (Test::Less, 0, Value::Integer(limit)),
            2 => (Test::NotEqual, 1, Value::Text(format!("é{}.0", limit / 10))),
            3 if columns >= 3 => (Test::IsNull, 2, Value::Null),
            4 if columns >= 3 => (Test::AtMost, 2, Value::Double((limit / 10) as f64)),
            _ => return (Vec::new(), Box::new(|_| true)),
        };
        let condition = Condition { column, test, value: value.clone() };
        let keep = move |record: &[Value]| match (test, record.get(column), &value) {
            (_, None, _) => false,
            (Test::AtLeast, Some(Value::Integer(found)), Value::Integer(limit)) => found >= limit,
            (Test::Less, Some(Value::Integer(found)), Value::Integer(limit)) => found < limit,
            (Test::AtMost, Some(Value::Double(found)), Value::Double(limit)) => found <= limit,
            (Test::NotEqual, Some(found), other) => found != other,
            (Test::IsNull, Some(found), _) => *found == Value::Null,
            _ => false,
        };
        (vec![condition], Box::new(keep))
    }

    /// Why each channel shows what it shows.
    pub(super) fn explain(&self, path: &str, point: usize, version: Version, source: &Source) {
        for channel in 0..CHANNELS {
            let shown_at = |source: &Source| {
                let shown = intervals(&self.naive[path].shown(channel, source));
                shown.into_iter().find(|put| put.since <= point && point < put.until)
            };
            let found = self.state.explain(path, channel, time(point), version);
            let found = found.expect("an answer");
            let (Some(found), Some(shown)) = (found, shown_at(source)) else {
                assert!(found.is_none() && shown_at(source).is_none(), "{path} {source:?}");
                continue;
            };
            let super::Inserted { put, revision, .. } = self.objects[shown.object];
            let of = |put: Put| (time(put.since), time(put.until).min(MAX_TIME));
            assert_eq!((found.shown_since, found.shown_until), of(shown), "{path} {source:?}");
            assert_eq!((found.since, found.until), of(put), "{path} {source:?}");
            assert_eq!(found.revision, revision, "{path} {source:?}");
            assert_eq!(found.time_us, self.times_us[revision as usize - 1]);
            // It has been shown like that since then, and no longer.
            let from = found.shown_from_revision;
            let at = |revision| match source {
                Source::Head(_) => Source::Head(revision),
                Source::User(name, _) => Source::User(name.clone(), revision),
            };
            let is_same = |revision| {
                let there = shown_at(&at(revision));
                there.is_some_and(|put| (put.object, of(put)) == (shown.object, of(shown)))
            };
            assert!(from <= source.revision() && is_same(from), "{path} {source:?}: {found:?}");
            assert!(!is_same(from - 1), "{path} {source:?}: {found:?}");
        }
    }
}
