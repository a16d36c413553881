//! Short answers, as pages have them, beside the long ones that they are the beginning of.

use conditions::model::{Intervals, MAX_TIME, Most, Numbers, Object, Order, Selection};

use super::{CHANNELS, FOLDERS, World, time};
use crate::naive::POINTS;

impl World {
    /// Looks at a folder at a time, over a range, and at its end.
    pub(super) fn glance(&mut self) {
        let (asked, path) = (self.draw(), FOLDERS[self.below(4)].0);
        let (one, other, at) = (self.below(POINTS), self.below(POINTS), self.below(POINTS));
        let (range, at) = ((time(one.min(other)), time(one.max(other))), time(at));
        let most = 1 + self.below(3);
        let Ok(view) = self.state.view(asked.tag, asked.revision, path) else { return };
        let Ok(version) = self.state.version(asked.tag, asked.revision, path) else { return };
        let folder = self.state.folder(path).expect("a folder");
        let channels: Vec<u32> = folder.channels().map(|(channel, _)| channel).collect();

        let shown = |channel: u32, range: (u64, u64)| -> Vec<(u64, u64)> {
            let numbers = Some(Numbers::of_ranges(vec![(channel, channel)]));
            let of = Selection { numbers, ..Selection::default() };
            let all = folder.browse(range, &of, Order::Time, version).expect("an answer");
            all.objects.iter().map(|object| (object.since, object.until)).collect()
        };
        let intervals = folder.intervals(&channels, range, most, version).expect("intervals");
        let expected = channels.iter().map(|channel| {
            let mut shown = shown(*channel, range);
            let has_more = shown.len() > most;
            shown.truncate(most);
            Intervals { channel: *channel, shown, has_more }
        });
        let is_there = version.user_tag.is_none() || !intervals.is_empty();
        assert!(!is_there || intervals == expected.collect::<Vec<_>>(), "{path} {range:?}");

        let newest = folder.newest(&channels, 1, version).expect("intervals");
        let ends = channels.iter().filter_map(|channel| {
            let (since, until) = *shown(*channel, (0, MAX_TIME)).last()?;
            Some((since, if until == MAX_TIME { since } else { until }))
        });
        let ends: Vec<_> = ends.collect();
        let last = ends.iter().map(|(_, end)| *end).max();
        assert_eq!(newest.range.map(|(_, last)| last), last, "{path} {version:?}");
        let since = ends.iter().map(|(since, _)| *since).max();
        assert_eq!(newest.range.map(|(since, _)| since), since, "{path} {version:?}");

        let bounds =
            Most { channels: CHANNELS as usize, objects: most, records: 2, bytes: 1 << 20 };
        let glance = self.state.glance(path, at, view, bounds).expect("a glance");
        let all = folder.find(at, &Selection::default(), version).expect("an answer");
        let Some(glance) = glance else {
            assert!(all.objects.is_empty());
            return;
        };
        let first: Vec<Object> = all.objects.iter().take(most).copied().collect();
        assert_eq!(glance.objects, first);
        assert_eq!(glance.has_more, all.objects.len() > most);
        let answer = glance.answer.expect("it is small");
        let mut rows = 0;
        let mut own = 0;
        for object in &first {
            for record in 0..object.records.min(2) as usize {
                let (one, other) = (answer.payload.row(own), all.payload.row(rows + record));
                assert_eq!(one.collect::<Vec<_>>(), other.collect::<Vec<_>>());
                own += 1;
            }
            rows += object.records as usize;
        }
        assert_eq!(answer.payload.rows as usize, own);
    }
}
