//! Questions: at a time, over a range, of a whole tree of folders, and why.

use serde::{Deserialize, Serialize};

use super::error::{ANSWER, ANSWER_BYTES, Refusal};
use super::folder::{Folder, Selection};
use super::piece::{Around, Revision, Version};
use super::segment::{Damage, Segment};
use super::shown::{Answer, Shown};
use super::state::State;
use super::tag::{Resolved, View};
use super::view::{Found, Moment};

/// The order of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// By channel, then by time.
    #[default]
    Channel,
    /// By time, then by channel.
    Time,
}

/// Where the answer at a time begins to be as it is: every time and revision that has the same
/// answer has the same place, but for gaps that were filled or made since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canonical {
    /// The revision.
    pub revision: Revision,
    /// The time.
    pub since: u64,
}

/// The times and revisions of which an answer is the same.
struct Reach {
    place: Canonical,
    until: u64,
}

impl Default for Reach {
    fn default() -> Self {
        Self { place: Canonical { revision: 0, since: 0 }, until: u64::MAX }
    }
}

impl Reach {
    /// The answer was another one before a revision.
    fn from(&mut self, revision: Revision) {
        self.place.revision = self.place.revision.max(revision);
    }

    fn add(&mut self, around: Around) {
        self.from(around.from);
        self.place.since = self.place.since.max(around.since);
        self.until = self.until.min(around.until);
    }

    fn place(self, view: View) -> (Canonical, u64) {
        let Canonical { revision, since } = self.place;
        (Canonical { revision: revision.min(view.revision), since }, self.until)
    }
}

/// Why something is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// The first time at which it is shown without a break.
    pub shown_since: u64,
    /// The first time after that.
    pub shown_until: u64,
    /// The revision from which on it is shown there.
    pub shown_from_revision: Revision,
    /// The object's first time, as it was inserted.
    pub since: u64,
    /// The first time after it.
    pub until: u64,
    /// The revision that inserted it.
    pub revision: Revision,
    /// When it was inserted, in microseconds since 1970.
    pub time_us: i64,
}

impl Folder {
    /// What is shown at a time: one object at most of each channel, in order of channels.
    ///
    /// # Errors
    /// When a channel isn't there, there are too many rows, or a segment is damaged.
    pub fn find(&self, time: u64, of: &Selection, version: Version) -> Result<Answer, Refusal> {
        self.contents.check_known()?;
        let channels = self.channels_of(of)?;
        let Some(view) = self.contents.view(version.user_tag) else {
            return self.selected(&[], of, version);
        };
        let moment = view.moment(time, version.revision);
        let mut found = Vec::with_capacity(channels.len());
        for channel in channels {
            found.extend(moment.at(channel)?.map(|found| (channel, found)));
        }
        let found = self.matching(found, &of.conditions, version.revision)?;
        self.selected(&found, of, version)
    }

    /// What is shown at some time of `since..=until`.
    ///
    /// # Errors
    /// As [`Folder::find`].
    pub fn browse(
        &self,
        (since, until): (u64, u64),
        of: &Selection,
        order: Order,
        version: Version,
    ) -> Result<Answer, Refusal> {
        let mut found: Vec<(u32, Found<'_>)> = Vec::new();
        self.each(of, (since, until), version, &mut |pieces| {
            ANSWER.check(found.len() + pieces.len())?;
            found.extend(pieces);
            Ok(())
        })?;
        if order == Order::Time {
            found.sort_by_key(|(channel, piece)| (piece.since, *channel));
        }
        self.selected(&found, of, version)
    }

    /// How many objects are shown at some time of `since..=until`.
    ///
    /// # Errors
    /// When a channel isn't there, or a segment is damaged.
    pub fn count(
        &self,
        (since, until): (u64, u64),
        of: &Selection,
        version: Version,
    ) -> Result<u64, Refusal> {
        let mut count = 0;
        self.each(of, (since, until), version, &mut |pieces| {
            count += pieces.len() as u64;
            Ok(())
        })?;
        Ok(count)
    }

    /// Hands on what each of the selected channels shows at some time of a range.
    fn each<'a>(
        &'a self,
        of: &Selection,
        range: (u64, u64),
        version: Version,
        each: &mut dyn FnMut(Vec<(u32, Found<'a>)>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.contents.check_known()?;
        let channels = self.channels_of(of)?;
        let Some(view) = self.contents.view(version.user_tag) else { return Ok(()) };
        for channel in channels {
            let pieces = view.range(channel, range, version.revision)?;
            let pieces = pieces.into_iter().map(|piece| (channel, piece)).collect();
            each(self.matching(pieces, &of.conditions, version.revision)?)?;
        }
        Ok(())
    }

    /// The pieces with those of their records that are asked for.
    fn selected(
        &self,
        found: &[(u32, Found<'_>)],
        of: &Selection,
        version: Version,
    ) -> Result<Answer, Refusal> {
        let mut answer = self.answer(found, version.revision)?;
        answer.keep(&of.conditions);
        Ok(answer)
    }
}

impl State {
    /// Which object is shown at a time, and since which change.
    ///
    /// # Errors
    /// When there is no such folder, or a segment is damaged.
    pub fn explain(
        &self,
        folder: &str,
        channel: u32,
        time: u64,
        version: Version,
    ) -> Result<Option<Explained>, Refusal> {
        let folder = self.folder(folder)?;
        folder.contents.check_known()?;
        let view = folder.contents.view(version.user_tag);
        let found = view.map(|view| view.moment(time, version.revision).at(channel));
        Ok(found.transpose()?.flatten().map(|found| {
            let inserted = folder.contents.inserted(found.place);
            Explained {
                shown_since: found.since,
                shown_until: found.until,
                shown_from_revision: found.from,
                since: inserted.since,
                until: inserted.until,
                revision: inserted.revision,
                time_us: self.time_us(inserted.revision).unwrap_or_default(),
            }
        }))
    }

    /// Where the answer for all folders at or below a path begins to be what it is at a time.
    ///
    /// # Errors
    /// When a tag that was picked at the view's revision has been deleted since, or a segment is
    /// damaged.
    pub fn canonical(&self, path: &str, time: u64, view: View) -> Result<Canonical, Refusal> {
        Ok(self.canonical_until(path, time, view)?.0)
    }

    /// That, and a time up to which all times lead there at the view's revision.
    pub(super) fn canonical_until(
        &self,
        path: &str,
        time: u64,
        view: View,
    ) -> Result<(Canonical, u64), Refusal> {
        let mut reach = Reach::default();
        for folder in self.under(path) {
            let Some(version) = self.reached(folder, view, &mut reach)? else { continue };
            let Some(shown) = folder.contents.view(version.user_tag) else { continue };
            let moment = shown.moment(time, version.revision);
            for channel in folder.channels.keys() {
                reach.add(moment.around(*channel)?);
            }
        }
        Ok(reach.place(view))
    }

    /// What is shown at a time in all folders at or below a path, in order of their paths; folders
    /// for which a global tag picks nothing are left out.
    ///
    /// # Errors
    /// When there are too many rows, or as [`State::canonical`].
    pub fn shown(&self, path: &str, time: u64, view: View) -> Result<Vec<Shown<'_>>, Refusal> {
        self.show(path, time, view, &mut Reach::default(), false)
    }

    /// That, where it begins to be so, and a time up to which it is: both are found in one pass.
    pub(super) fn shown_until(
        &self,
        path: &str,
        time: u64,
        view: View,
    ) -> Result<(Vec<Shown<'_>>, Canonical, u64), Refusal> {
        let mut reach = Reach::default();
        let shown = self.show(path, time, view, &mut reach, true)?;
        let (place, until) = reach.place(view);
        Ok((shown, place, until))
    }

    fn show(
        &self,
        path: &str,
        time: u64,
        view: View,
        reach: &mut Reach,
        with_gaps: bool,
    ) -> Result<Vec<Shown<'_>>, Refusal> {
        let (mut slice, mut rows) = (Vec::new(), 0);
        for folder in self.under(path) {
            let Some(version) = self.reached(folder, view, reach)? else { continue };
            let mut shown = folder.show(version.revision);
            if let Some(view) = folder.contents.view(version.user_tag) {
                let moment = view.moment(time, version.revision);
                let count = folder.channels.len();
                shown.objects.reserve_exact(count);
                match moment.whole(count)? {
                    Some(block) => show_block(block, &moment, &mut shown, reach, with_gaps)?,
                    None => folder.channels.keys().try_for_each(|channel| {
                        show_channel(*channel, &moment, &mut shown, reach, with_gaps).map(drop)
                    })?,
                }
            }
            rows = shown.check(rows)?;
            slice.push(shown);
        }
        Ok(slice)
    }

    /// What a view is of a folder; `None` where that shows nothing.
    fn reached(
        &self,
        folder: &Folder,
        view: View,
        reach: &mut Reach,
    ) -> Result<Option<Version>, Refusal> {
        let Resolved { version, from } = self.resolve(view, folder.path())?;
        reach.from(from);
        let Some(version) = version else { return Ok(None) };
        let Some((from, _)) = folder.schema(version.revision) else { return Ok(None) };
        reach.from(*from);
        folder.contents.check_known()?;
        Ok(Some(version))
    }

    /// What [`State::shown`] shows, copied.
    ///
    /// # Errors
    /// When there is too much of it, or as [`State::canonical`].
    pub fn slice(&self, path: &str, time: u64, view: View) -> Result<Vec<Answer>, Refusal> {
        answers(self.shown(path, time, view)?)
    }
}

/// Adds what the channels of a block show.
fn show_block<'a>(
    block: &Segment,
    moment: &Moment<'a>,
    shown: &mut Shown<'a>,
    reach: &mut Reach,
    with_gaps: bool,
) -> Result<(), Damage> {
    let mut place = 0;
    while place < block.channels() {
        let found = show_channel(block.number(place), moment, shown, reach, with_gaps)?;
        let alike = found.map_or(0, |found| moment.pass_alike(&found));
        shown.add_alike((0..alike).map(|next| block.number(place + 1 + next)));
        place += 1 + alike;
    }
    Ok(())
}

/// Adds what a channel shows, which is returned.
fn show_channel<'a>(
    channel: u32,
    moment: &Moment<'a>,
    shown: &mut Shown<'a>,
    reach: &mut Reach,
    with_gaps: bool,
) -> Result<Option<Found<'a>>, Damage> {
    let found = moment.at(channel)?;
    match found {
        Some(found) => {
            let Found { since, until, from, .. } = found;
            reach.add(Around { since, until, from });
            shown.add(channel, &found, u32::MAX);
        }
        None if with_gaps => reach.add(moment.around(channel)?),
        None => {}
    }
    Ok(found)
}

/// What folders show, copied.
///
/// # Errors
/// When there is too much of it, or a segment is damaged.
pub fn answers(shown: Vec<Shown<'_>>) -> Result<Vec<Answer>, Refusal> {
    let mut bytes = 0;
    let answer = |shown: Shown<'_>| {
        let answer = shown.answer()?;
        bytes += answer.payload.bytes();
        ANSWER_BYTES.check(bytes)?;
        Ok(answer)
    };
    shown.into_iter().map(answer).collect()
}
