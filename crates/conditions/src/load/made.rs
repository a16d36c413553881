//! What is in the folders: every value is a function of the seed and its place.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use load::scramble;

use super::operations::Do;
use super::spec::{Behind, Long, OBJECTS_PER_PART, Since, Spec};
use crate::model::MAX_TIME;

/// The length of an interval.
const LENGTH: u64 = 10;

/// The values of slices that are kept ready to compare with, in bytes; one slice in any case.
const MAX_KEPT_BYTES: u64 = 64 << 20;

/// What is loaded is sent in parts of about this many bytes, each durable before the next.
const LOADED_BYTES: u64 = 4 << 20;

/// What one part of the preparation writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Whatever comes before objects.
    Begin,
    /// The objects of a folder in these intervals, of all its channels.
    Objects { folder: u32, intervals: Range<u32> },
    /// Whatever makes them ready to be read.
    End,
}

/// What is written before the load, and what is right when it is read.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) spec: Spec,
    seed: u64,
    /// How many jobs have begun, where that decides which interval they read.
    next: AtomicU32,
    /// How many intervals were appended.
    appended: AtomicU32,
    /// How many different look-ups were made.
    looked_up: AtomicU64,
    /// How often everything was loaded anew.
    loaded: AtomicU32,
    /// The values of the slices that were read last.
    kept: Mutex<VecDeque<(u32, Arc<[f32]>)>>,
}

impl Made {
    pub(super) fn new(spec: Spec, seed: u64) -> Self {
        let (next, appended) = (AtomicU32::new(0), AtomicU32::new(0));
        let (looked_up, loaded) = (AtomicU64::new(0), AtomicU32::new(0));
        Self { spec, seed, next, appended, looked_up, loaded, kept: Mutex::default() }
    }

    /// The same, about another target.
    pub(super) fn again(&self) -> Self {
        Self::new(self.spec, self.seed)
    }

    /// A text that is the same where the same is prepared.
    pub(super) fn about(&self) -> String {
        let Spec { folders, channels, intervals, fields, long, .. } = self.spec;
        let long = match long {
            Long::None => "",
            Long::Infinite => " infinite",
            Long::Scattered => " scattered",
        };
        format!(
            "{folders} folders {channels} channels {intervals}{long} intervals {fields} fields, \
             seed {}",
            self.seed
        )
    }

    /// How many operations a call counts as.
    pub(super) fn operations(&self, does: Do) -> u32 {
        if does == Do::InsertBulk { self.spec.bulk } else { 1 }
    }

    fn intervals_per_part(&self) -> u32 {
        (OBJECTS_PER_PART / self.spec.channels).max(1)
    }

    fn parts_per_folder(&self) -> u64 {
        u64::from(self.spec.intervals.div_ceil(self.intervals_per_part()))
    }

    /// The number of [`Piece`]s.
    pub(super) fn parts(&self) -> u64 {
        2 + u64::from(self.spec.folders) * self.parts_per_folder()
    }

    /// What a part writes.
    pub(super) fn piece(&self, part: u64) -> Piece {
        let Some(number) = part.checked_sub(1) else { return Piece::Begin };
        let per_folder = self.parts_per_folder();
        let (folder, piece) = (number / per_folder, (number % per_folder) as u32);
        if folder >= u64::from(self.spec.folders) {
            return Piece::End;
        }
        let first = piece * self.intervals_per_part();
        let last = self.spec.intervals.min(first + self.intervals_per_part());
        Piece::Objects { folder: folder as u32, intervals: first..last }
    }

    /// What a load sends, a part after another: pieces of folders, each with its intervals.
    pub(super) fn loads(&self) -> Vec<Vec<(u32, Range<u32>)>> {
        let pieces = (0..self.parts()).filter_map(|part| match self.piece(part) {
            Piece::Objects { folder, intervals } => Some((folder, intervals)),
            Piece::Begin | Piece::End => None,
        });
        let Spec { channels, intervals, fields, .. } = self.spec;
        let objects = u64::from(channels) * u64::from(intervals.min(self.intervals_per_part()));
        // Of an object its times, channel and number of records are 24 bytes.
        let at_once = LOADED_BYTES / (objects * (24 + 4 * u64::from(fields)));
        let pieces: Vec<_> = pieces.collect();
        pieces.chunks(at_once.max(1) as usize).map(<[_]>::to_vec).collect()
    }

    /// Of a channel of long intervals, the interval with which its second object begins, if there
    /// is one; `None` of any other channel.
    fn cut(&self, folder: u32, channel: u32) -> Option<Option<u32>> {
        let place = u64::from(folder) * u64::from(self.spec.channels) + u64::from(channel);
        let others = u64::from(self.spec.intervals - 1);
        match self.spec.long {
            Long::None => None,
            _ if place % 10 != 9 => None,
            Long::Scattered if others > 0 => {
                Some(Some(1 + (scramble(self.seed ^ scramble(!place)) % others) as u32))
            }
            Long::Infinite | Long::Scattered => Some(None),
        }
    }

    /// The interval with which the object begins that a channel shows in an interval.
    pub(super) fn begin(&self, folder: u32, channel: u32, interval: u32) -> u32 {
        match self.cut(folder, channel) {
            None => interval,
            Some(cut) => cut.filter(|cut| *cut <= interval).unwrap_or(0),
        }
    }

    /// The objects of a folder that begin in these intervals: each with the interval and its
    /// channel.
    pub(super) fn objects(
        &self,
        folder: u32,
        intervals: Range<u32>,
    ) -> impl Iterator<Item = (u32, u32)> + use<'_> {
        let all = intervals.flat_map(|i| (0..self.spec.channels).map(move |channel| (i, channel)));
        all.filter(move |(interval, channel)| self.begin(folder, *channel, *interval) == *interval)
    }

    /// When the object begins and ends that a channel shows in an interval.
    pub(super) fn times(&self, folder: u32, channel: u32, interval: u32) -> (u64, u64) {
        let last = self.bounds(self.spec.intervals).0;
        match self.cut(folder, channel) {
            None => self.bounds(interval),
            Some(None) => (0, MAX_TIME),
            Some(Some(cut)) if interval < cut => (0, self.bounds(cut).0),
            Some(Some(cut)) => (self.bounds(cut).0, last),
        }
    }

    /// The values of the object that begins with an interval, each with 24 bits, which every form
    /// keeps whole.
    pub(super) fn floats(
        &self,
        folder: u32,
        channel: u32,
        interval: u32,
    ) -> impl Iterator<Item = f32> + use<> {
        let place = u64::from(folder) << 32 | u64::from(channel);
        let start = scramble(self.seed ^ scramble(place ^ scramble(u64::from(interval))));
        (0..u64::from(self.spec.fields))
            .map(move |column| (scramble(start ^ column) >> 40) as f32 / (1 << 24) as f32)
    }

    /// The values of all objects of an interval, by folder and channel. Those of the last slices
    /// are kept, so that a check costs the client no more than a comparison.
    pub(super) fn slice(&self, interval: u32) -> Arc<[f32]> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, values)) = kept().iter().find(|(number, _)| *number == interval) {
            return Arc::clone(values);
        }
        let Spec { folders, channels, .. } = self.spec;
        let objects = (0..folders).flat_map(|f| (0..channels).map(move |c| (f, c)));
        let values = objects.flat_map(|(f, c)| self.floats(f, c, self.begin(f, c, interval)));
        let values: Arc<[f32]> = values.collect();
        let most = (MAX_KEPT_BYTES / (4 * self.spec.values())).max(1);
        let mut kept = kept();
        if kept.len() as u64 >= most {
            kept.pop_front();
        }
        kept.push_back((interval, Arc::clone(&values)));
        values
    }

    /// The interval that a job reads where `drawn` is drawn.
    pub(super) fn interval(&self, drawn: u64) -> u32 {
        let intervals = self.spec.intervals;
        match self.spec.since {
            Since::Any => (drawn % u64::from(intervals)) as u32,
            Since::First => 0,
            Since::Last => intervals - 1,
            Since::Next => self.next.fetch_add(1, Relaxed) % intervals,
            Since::Number(number) => number - 1,
            Since::Behind(Behind { behind, jobs }) => {
                let later = self.next.fetch_add(1, Relaxed) / jobs;
                (intervals - 1 - behind).saturating_add(later).min(intervals - 1)
            }
        }
    }

    /// An interval as jobs read it.
    #[cfg(feature = "postgres")]
    pub(super) fn typical(&self) -> u32 {
        match self.spec.since {
            Since::First => 0,
            Since::Number(number) => number - 1,
            Since::Any | Since::Next => self.spec.intervals / 2,
            Since::Last => self.spec.intervals - 1,
            Since::Behind(Behind { behind, .. }) => self.spec.intervals - 1 - behind,
        }
    }

    /// The interval that is appended next: it follows the last one.
    pub(super) fn append(&self) -> u32 {
        self.spec.intervals.saturating_add(self.appended.fetch_add(1, Relaxed))
    }

    /// The number of the next time that everything is loaded anew.
    pub(super) fn load(&self) -> u32 {
        self.loaded.fetch_add(1, Relaxed)
    }

    /// The number of the look-up that is made where `drawn` is drawn: one that was made before, or
    /// a new one.
    pub(super) fn look_up(&self, drawn: u64) -> u64 {
        let made = self.looked_up.load(Relaxed);
        // 53 bits are what a fraction has.
        let share = (drawn >> 11) as f64 / (1_u64 << 53) as f64;
        match made > 0 && share < self.spec.repeats.fraction {
            true => scramble(!drawn) % made,
            false => self.looked_up.fetch_add(1, Relaxed),
        }
    }

    /// What the look-up of a number asks for: folder, channel, interval, and a time in it.
    pub(super) fn looked_up(&self, number: u64) -> (u32, u32, u32, u64) {
        let mut drawn = scramble(self.seed ^ scramble(!number));
        let mut below = |most: u64| {
            drawn = scramble(drawn);
            drawn % most
        };
        let Spec { folders, channels, intervals, .. } = self.spec;
        let [folder, channel, interval] =
            [folders, channels, intervals].map(|most| below(most.into()) as u32);
        (folder, channel, interval, self.bounds(interval).0 + below(LENGTH))
    }

    /// When an interval begins and ends.
    fn bounds(&self, interval: u32) -> (u64, u64) {
        let since = u64::from(interval) * LENGTH;
        (since, since + LENGTH)
    }

    /// What a browse reads where `drawn` is drawn: a folder, and intervals of it.
    pub(super) fn browsed(&self, drawn: u64) -> (u32, Range<u32>) {
        let Spec { folders, intervals, browse, .. } = self.spec;
        let folder = scramble(!drawn) % u64::from(folders);
        let first = self.interval(drawn);
        (folder as u32, first..first.saturating_add(browse).min(intervals))
    }

    /// From when on and until when these intervals last.
    pub(super) fn range(&self, intervals: &Range<u32>) -> (u64, u64) {
        (self.bounds(intervals.start).0, self.bounds(intervals.end).0)
    }

    /// A time in the middle of an interval.
    pub(super) fn time(&self, interval: u32) -> u64 {
        self.bounds(interval).0 + LENGTH / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_sends_every_piece_once_and_several_folders_together() {
        let loads = |channels: u32, intervals: u32| {
            let spec = serde_json::json!({
                "folders": 100, "channels": channels, "intervals": intervals, "fields": 10
            });
            let made = Made::new(serde_json::from_value(spec).expect("a workload"), 7);
            let pieces: Vec<_> = (0..made.parts()).map(|part| made.piece(part)).collect();
            let loads = made.loads();
            let of = |(folder, intervals)| Piece::Objects { folder, intervals };
            let sent: Vec<_> = loads.concat().into_iter().map(of).collect();
            assert_eq!(sent, pieces[1..pieces.len() - 1]);
            loads.iter().map(Vec::len).collect::<Vec<_>>()
        };
        assert_eq!(loads(100, 50), [13, 13, 13, 13, 13, 13, 13, 9]);
        // Of 640 kB each.
        assert_eq!(loads(10_000, 2), [6].repeat(33).into_iter().chain([2]).collect::<Vec<_>>());
    }
}
