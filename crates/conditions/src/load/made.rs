//! What is in the folders: every value is a function of the seed and its place.

use load::scramble;
use serde::Deserialize;
use serde_json::json;

use crate::model::{Answer, ColumnSpec, Kind, Versioning};
use crate::protocol::{BatchBody, FolderBody, ObjectBody};

/// The length of an interval.
const LENGTH: u64 = 10;

/// The most objects of one part of the preparation.
const OBJECTS_PER_PART: u32 = 10_000;

/// The set of the folders that are read.
pub(super) const READ: &str = "/load/read";

/// The folder that slots insert into.
pub(super) const WRITTEN: &str = "/load/written";

/// Which intervals are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Reads {
    /// Each equally often.
    #[default]
    Any,
    /// The first one.
    First,
    /// The last one.
    Last,
}

/// `[workload]`: the defaults are those of the seed measurement, with fewer intervals.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Spec {
    pub(super) folders: u32,
    pub(super) channels: u32,
    pub(super) intervals: u32,
    pub(super) floats: u32,
    #[serde(default)]
    pub(super) reads: Reads,
}

impl Spec {
    /// Refuses what can't be made; returns the key and why.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        for (key, value, most) in [
            ("folders", self.folders, 10_000),
            ("channels", self.channels, OBJECTS_PER_PART),
            ("intervals", self.intervals, 10_000_000),
            ("floats", self.floats, 1_000),
        ] {
            if !(1..=most).contains(&value) {
                return Err((key, format!("{key} has to be 1 to {most}, not {value}")));
            }
        }
        Ok(())
    }
}

/// What is written before the load, and what is right when it is read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub(super) spec: Spec,
    pub(super) seed: u64,
}

impl Made {
    fn intervals_per_part(&self) -> u32 {
        (OBJECTS_PER_PART / self.spec.channels).max(1)
    }

    fn parts_per_folder(&self) -> u64 {
        u64::from(self.spec.intervals.div_ceil(self.intervals_per_part()))
    }

    /// One for the folder that is written, and those of each folder that is read.
    pub(super) fn parts(&self) -> u64 {
        1 + u64::from(self.spec.folders) * self.parts_per_folder()
    }

    /// The folder that a part makes, and the objects that it inserts.
    pub(super) fn part(&self, part: u64) -> (Option<FolderBody>, Option<BatchBody>) {
        let Some(part) = part.checked_sub(1) else {
            return (Some(self.folder(WRITTEN.to_owned(), 1)), None);
        };
        let per_folder = self.parts_per_folder();
        let (number, piece) = ((part / per_folder) as u32, (part % per_folder) as u32);
        let folder = self.path(number);
        let first = piece * self.intervals_per_part();
        let last = self.spec.intervals.min(first + self.intervals_per_part());
        let object = |interval: u32, channel: u32| ObjectBody {
            channel,
            since: u64::from(interval) * LENGTH,
            until: Some(u64::from(interval + 1) * LENGTH),
            values: Some(json!(self.floats(number, channel, interval).collect::<Vec<_>>())),
            records: None,
        };
        let channels = 0..self.spec.channels;
        let objects = (first..last)
            .flat_map(|interval| channels.clone().map(move |channel| object(interval, channel)));
        let objects = objects.collect();
        let made = (piece == 0).then(|| self.folder(folder.clone(), self.spec.floats));
        (made, Some(BatchBody { folder, tag: None, only_tag: false, objects }))
    }

    fn path(&self, folder: u32) -> String {
        format!("{READ}/f{folder:05}")
    }

    fn folder(&self, path: String, floats: u32) -> FolderBody {
        let column = |number| ColumnSpec { name: format!("v{number}"), kind: Kind::Float };
        let columns = (0..floats).map(column).collect();
        let description = "of the load".to_owned();
        FolderBody { path, description, versioning: Versioning::Single, columns }
    }

    /// The values of one object, each with 24 bits, which every form keeps whole.
    fn floats(&self, folder: u32, channel: u32, interval: u32) -> impl Iterator<Item = f32> {
        let place = u64::from(folder) << 32 | u64::from(channel);
        let start = scramble(self.seed ^ scramble(place ^ scramble(u64::from(interval))));
        (0..u64::from(self.spec.floats))
            .map(move |column| (scramble(start ^ column) >> 40) as f32 / (1 << 24) as f32)
    }

    /// The interval that is read where `drawn` is drawn.
    pub(super) fn interval(&self, drawn: u64) -> u32 {
        match self.spec.reads {
            Reads::Any => drawn as u32 % self.spec.intervals,
            Reads::First => 0,
            Reads::Last => self.spec.intervals - 1,
        }
    }

    /// A time in the middle of an interval.
    pub(super) fn time(&self, interval: u32) -> u64 {
        u64::from(interval) * LENGTH + LENGTH / 2
    }

    /// What is wrong with a slice of an interval, if something is.
    pub(super) fn wrong(&self, interval: u32, folders: &[Answer]) -> Option<String> {
        let Spec { folders: count, channels, floats, .. } = self.spec;
        if folders.len() != count as usize {
            return Some(format!("{} folders, not {count}", folders.len()));
        }
        let since = u64::from(interval) * LENGTH;
        for (number, answer) in (0..).zip(folders) {
            let path = &answer.folder;
            if *path != self.path(number) {
                return Some(format!("{path}, not {}", self.path(number)));
            }
            let is_whole = answer.objects.len() == channels as usize
                && answer.payload.columns.len() == floats as usize;
            if !is_whole {
                let found = (answer.objects.len(), answer.payload.columns.len());
                return Some(format!("{path}: {found:?} objects and columns"));
            }
            for (place, object) in answer.objects.iter().enumerate() {
                let own = (object.channel as usize, object.since, object.until, object.records);
                if own != (place, since, since + LENGTH, 1) {
                    return Some(format!("{path}: object {place} is {object:?}"));
                }
                let values = self.floats(number, object.channel, interval);
                for (cells, value) in answer.payload.columns.iter().zip(values) {
                    let found = &cells.bytes()[4 * place..4 * place + 4];
                    if found != value.to_le_bytes() || !cells.nulls().is_empty() {
                        return Some(format!("{path}: channel {place}: {found:?}, not {value}"));
                    }
                }
            }
        }
        None
    }
}
