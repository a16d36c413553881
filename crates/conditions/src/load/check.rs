//! Whether what was read is right, object by object: each there once, with its times and values.

use std::ops::Range;
use std::sync::Arc;

use super::made::Made;

/// The objects of an interval as they are read, in any order.
pub(super) struct Check<'a> {
    made: &'a Made,
    interval: u32,
    values: Arc<[f32]>,
    /// Which objects were read, by folder and channel.
    seen: Vec<bool>,
    wrong: Option<String>,
}

impl<'a> Check<'a> {
    pub(super) fn new(made: &'a Made, interval: u32) -> Self {
        let seen = vec![false; made.spec.objects() as usize];
        Self { made, interval, values: made.slice(interval), seen, wrong: None }
    }

    /// The values that the objects of these channels of a folder have; empty where there are none.
    fn expected(&self, folder: u32, channels: Range<u32>) -> &[f32] {
        let spec = &self.made.spec;
        let place = |channel: u32| {
            let object = u64::from(folder) * u64::from(spec.channels) + u64::from(channel);
            (object * u64::from(spec.fields)) as usize
        };
        let is_there = folder < spec.folders && channels.end <= spec.channels;
        let range = if is_there { place(channels.start)..place(channels.end) } else { 0..0 };
        &self.values[range]
    }

    /// Objects of neighbouring channels of a folder, which all have these times and, one after
    /// another, these values.
    pub(super) fn objects(
        &mut self,
        folder: u32,
        channels: Range<u32>,
        times: (u64, u64),
        values: impl IntoIterator<Item = f32>,
    ) {
        if self.wrong.is_some() {
            return;
        }
        let at = || format!("folder {folder}, channels {channels:?}");
        let expected = self.expected(folder, channels.clone());
        if expected.is_empty() {
            self.wrong = Some(format!("{}: there is no such object", at()));
            return;
        }
        let right = |channel| self.made.times(folder, channel, self.interval);
        if let Some(right) = channels.clone().map(right).find(|right| *right != times) {
            self.wrong = Some(format!("{}: valid in {times:?}, not {right:?}", at()));
            return;
        }
        let mut values = values.into_iter();
        let differs = expected.iter().find_map(|right| {
            let found = values.next();
            let is_right = found.is_some_and(|found| found.to_bits() == right.to_bits());
            (!is_right).then(|| format!("{}: {found:?}, not {right}", at()))
        });
        let more = || values.next().map(|more| format!("{}: {more} beyond its values", at()));
        self.wrong = differs.or_else(more);
        let first = (u64::from(folder) * u64::from(self.made.spec.channels)) as usize;
        for channel in channels.clone() {
            if std::mem::replace(&mut self.seen[first + channel as usize], true) {
                self.wrong.get_or_insert(format!("folder {folder}: channel {channel} twice"));
            }
        }
    }

    /// An answer that can't be read.
    pub(super) fn unreadable(&mut self, why: impl Into<String>) {
        self.wrong.get_or_insert(why.into());
    }

    /// What is wrong, if something is: what was read, or what wasn't.
    pub(super) fn wrong(self) -> Option<String> {
        let missing = || {
            let missing = self.seen.iter().filter(|seen| !**seen).count();
            let first = self.seen.iter().position(|seen| !*seen)?;
            let channels = self.made.spec.channels as usize;
            let (folder, channel) = (first / channels, first % channels);
            Some(format!(
                "{missing} objects are not there, first folder {folder}, channel {channel}"
            ))
        };
        self.wrong.or_else(missing)
    }
}

#[cfg(test)]
mod tests {
    use base::units::Share;

    use super::super::spec::{Long, Since, Spec};
    use super::*;

    fn made() -> Made {
        let since = Since::Any;
        let (folders, channels, intervals, fields) = (2, 3, 4, 5);
        let long = Long::None;
        let repeats = Share { fraction: 0.0 };
        let (bulk, browse) = (1, 1);
        let spec =
            Spec { folders, channels, intervals, fields, since, long, bulk, browse, repeats };
        Made::new(spec, 7)
    }

    /// Reads interval 1 after `change` has changed what is there.
    fn read(change: impl Fn(&mut Vec<(u32, u32, (u64, u64), Vec<f32>)>)) -> Option<String> {
        let made = made();
        let object = |folder, channel| {
            let times = made.times(folder, channel, 1);
            (folder, channel, times, made.floats(folder, channel, 1).collect())
        };
        let mut all: Vec<_> =
            (0..2).flat_map(|f| (0..3).map(move |c| (f, c))).map(|(f, c)| object(f, c)).collect();
        change(&mut all);
        let mut check = Check::new(&made, 1);
        for (folder, channel, times, values) in all {
            check.objects(folder, channel..channel + 1, times, values);
        }
        check.wrong()
    }

    #[test]
    fn every_object_has_to_be_there_once_with_its_times_and_values() {
        assert_eq!(read(|_| {}), None);
        assert_eq!(read(|all| all.reverse()), None);
        let wrong = |change: fn(&mut Vec<_>)| read(change).expect("wrong");
        assert!(wrong(|all| drop(all.pop())).contains("folder 1, channel 2"));
        assert!(wrong(|all| all.push(all[0].clone())).contains("channel 0 twice"));
        assert!(wrong(|all| all[1].2 = (0, 10)).contains("valid in"));
        assert!(wrong(|all| all[1].3[4] += 1.0).contains("not"));
        assert!(
            wrong(|all| {
                all[1].3.pop();
            })
            .contains("None, not")
        );
        assert!(wrong(|all| all[1].3.push(0.5)).contains("beyond"));
        assert!(wrong(|all| all[5].1 = 3).contains("no such object"));
        assert!(wrong(|all| all[5].0 = 2).contains("no such object"));
    }
}
