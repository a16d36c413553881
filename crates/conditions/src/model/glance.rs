//! Questions whose answers are small whatever a folder holds: what a page shows of it.

use super::change::{Numbers, Object};
use super::error::Refusal;
use super::folder::Folder;
use super::piece::{MAX_TIME, Version};
use super::segment::Damage;
use super::shown::Answer;
use super::state::State;
use super::tag::View;
use super::view::{Found, Moment};

/// How many steps back in time are made over gaps, beside two for each object; a gap takes one in
/// each block that it meets.
const GAPS: usize = 1_000;

/// The most of each thing that a look at a folder has.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    /// Channels that are asked.
    pub channels: usize,
    /// Objects.
    pub objects: usize,
    /// Records of each object.
    pub records: u32,
    /// About how many bytes of payload: of more there is none.
    pub bytes: u64,
}

/// What some channels of a folder show at a time.
#[derive(Clone, Debug)]
pub struct Glance {
    /// The objects, each with all its records counted.
    pub objects: Vec<Object>,
    /// Their first records; `None` where they are too large.
    pub answer: Option<Answer>,
    /// Whether there are channels that were not asked, or show something that is left out.
    pub has_more: bool,
}

/// What a channel shows over a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intervals {
    /// The channel.
    pub channel: u32,
    /// What is shown, in order, as it is outside of the range, too: the first ones.
    pub shown: Vec<(u64, u64)>,
    /// Whether more is shown.
    pub has_more: bool,
}

/// Where the newest of some channels is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Newest {
    /// From where on each channel shows as many objects as were asked for, or fewer, and where the
    /// last one begins that is open, or ends; `None` where there is nothing.
    pub range: Option<(u64, u64)>,
    /// What is damaged of what came later.
    pub damage: Option<Damage>,
}

impl Folder {
    /// The first channels of a selection.
    pub fn channels_among<'a>(
        &'a self,
        numbers: &'a Numbers,
    ) -> impl Iterator<Item = (u32, Option<&'a str>)> {
        numbers.among(&self.channels, 0).map(|(number, name)| (number, name.as_deref()))
    }

    /// What channels show at some time of `since..=until`, `most` of each, without payload.
    ///
    /// # Errors
    /// When a segment is damaged.
    pub fn intervals(
        &self,
        channels: &[u32],
        range: (u64, u64),
        most: usize,
        version: Version,
    ) -> Result<Vec<Intervals>, Refusal> {
        self.contents.check_known()?;
        let Some(view) = self.contents.view(version.user_tag) else { return Ok(Vec::new()) };
        let of = |channel: &u32| {
            let found = view.range_begin(*channel, range, version.revision, most + 1)?;
            let shown = found.iter().take(most).map(|piece| (piece.since, piece.until)).collect();
            Ok(Intervals { channel: *channel, shown, has_more: found.len() > most })
        };
        channels.iter().map(of).collect()
    }

    /// Where the last `objects` of each channel are. Nothing is found of a channel that has shown
    /// nothing for more than 1,000 blocks.
    ///
    /// # Errors
    /// When a change concerned what is damaged.
    pub fn newest(
        &self,
        channels: &[u32],
        objects: usize,
        version: Version,
    ) -> Result<Newest, Refusal> {
        self.contents.check_known()?;
        let mut newest = Newest::default();
        let (mut begin, mut first): (Option<u64>, Option<u64>) = (None, None);
        for channel in channels {
            let found = self.last_of(*channel, objects, version, &mut newest.damage);
            let Some((since, _)) = found.last() else { continue };
            first = Some(first.map_or(*since, |first| first.min(*since)));
            if found.len() == objects {
                begin = begin.max(Some(*since));
            }
            let end = found.first().map_or(0, |(since, until)| match *until {
                MAX_TIME => *since,
                until => until,
            });
            let last = newest.range.map_or(end, |(_, last)| last.max(end));
            newest.range = Some((0, last));
        }
        if let Some((since, last)) = &mut newest.range {
            *since = begin.or(first).unwrap_or(0).min(*last);
        }
        Ok(newest)
    }

    /// The last objects of a channel, the newest first, before what is damaged.
    fn last_of(
        &self,
        channel: u32,
        objects: usize,
        version: Version,
        damage: &mut Option<Damage>,
    ) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        let Some(view) = self.contents.view(version.user_tag) else { return found };
        let mut time = MAX_TIME - 1;
        for _ in 0..2 * objects + GAPS {
            let moment = view.moment(time, version.revision);
            let (since, until) = match around(&moment, channel) {
                Ok((around, shown)) => (around, shown),
                Err(why) => {
                    damage.get_or_insert(why);
                    let block = view.base.place(time).and_then(|at| view.base.blocks.get(at));
                    (block.map_or(0, |block| block.since), None)
                }
            };
            found.extend(until.map(|until| (since, until)));
            let Some(before) = since.checked_sub(1).filter(|_| found.len() < objects) else {
                break;
            };
            time = before;
        }
        found
    }

    /// What the first channels show at a time.
    fn glance(&self, time: u64, version: Version, most: Most) -> Result<Glance, Refusal> {
        self.contents.check_known()?;
        let mut found: Vec<(u32, Found<'_>)> = Vec::new();
        let mut has_more = false;
        if let Some(view) = self.contents.view(version.user_tag) {
            let moment = view.moment(time, version.revision);
            for channel in self.channels.keys().take(most.channels) {
                found.extend(moment.at(*channel)?.map(|found| (*channel, found)));
                if found.len() > most.objects {
                    break;
                }
            }
            has_more = found.len() > most.objects || self.channels.len() > most.channels;
            found.truncate(most.objects);
        }
        let bytes = found.iter().map(|(_, found)| self.contents.payload_bytes(found.place));
        let is_small = bytes.fold(0, u64::saturating_add) <= most.bytes;
        let object = |(channel, found): &(u32, Found<'_>)| {
            let records = self.contents.records(found.place);
            Object { channel: *channel, since: found.since, until: found.until, records }
        };
        let objects = found.iter().map(object).collect();
        let answer = || self.answer_of(&found, version.revision, most.records);
        let answer = is_small.then(answer).transpose()?;
        Ok(Glance { objects, answer, has_more })
    }
}

/// Since when a channel shows what it shows, and until when, if that is something.
fn around(moment: &Moment<'_>, channel: u32) -> Result<(u64, Option<u64>), Damage> {
    Ok(match moment.at(channel)? {
        Some(found) => (found.since, Some(found.until)),
        None => (moment.gap_begin(channel)?, None),
    })
}

impl State {
    /// What the first channels of a folder show at a time; `None` where a global tag picks nothing
    /// for it, or it was not made yet.
    ///
    /// # Errors
    /// When there is no such folder, a tag has been deleted since, or a segment is damaged.
    pub fn glance(
        &self,
        folder: &str,
        time: u64,
        view: View,
        most: Most,
    ) -> Result<Option<Glance>, Refusal> {
        let folder = self.folder(folder)?;
        let Some(version) = self.resolve(view, folder.path())?.version else { return Ok(None) };
        match folder.schema(version.revision) {
            Some(_) => folder.glance(time, version, most).map(Some),
            None => Ok(None),
        }
    }

    /// Since when all folders at and below a path show what they show at a time, and a time until
    /// which they do; `None` where they have more than `most` channels.
    ///
    /// # Errors
    /// When a tag has been deleted since, or a segment is damaged.
    pub fn around(
        &self,
        path: &str,
        time: u64,
        view: View,
        most: usize,
    ) -> Result<Option<(u64, u64)>, Refusal> {
        let channels = self.under(path).map(|folder| folder.channels.len() + 1).sum::<usize>();
        if channels > most {
            return Ok(None);
        }
        let (mut since, mut until) = (0, MAX_TIME);
        for folder in self.under(path) {
            let Some(version) = self.resolve(view, folder.path())?.version else { continue };
            let shown = folder.contents.view(version.user_tag);
            let Some(shown) = shown.filter(|_| folder.schema(version.revision).is_some()) else {
                continue;
            };
            folder.contents.check_known()?;
            let moment = shown.moment(time, version.revision);
            for channel in folder.channels.keys() {
                let (begin, end) = moment.times(*channel)?;
                (since, until) = (since.max(begin), until.min(end));
            }
        }
        Ok(Some((since, until)))
    }
}
