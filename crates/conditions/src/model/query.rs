//! Questions: at a time, over a range, of a whole tree of folders, and why.

use serde::{Deserialize, Serialize};

use super::error::{ANSWER, ANSWER_BYTES, Refusal};
use super::folder::{Folder, Selection};
use super::piece::{Around, Revision, Version};
use super::segment::Damage;
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
                shown.objects.reserve_exact(folder.channels.len());
                show_channels(folder, &moment, &mut shown, reach, with_gaps)?;
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

/// Adds what the channels of a folder show: those of a block that are alike are found with the
/// first of them, up to one of which something came since.
fn show_channels<'a>(
    folder: &Folder,
    moment: &Moment<'a>,
    shown: &mut Shown<'a>,
    reach: &mut Reach,
    with_gaps: bool,
) -> Result<(), Damage> {
    let mut channels = folder.channels.keys().copied().peekable();
    while let Some(channel) = channels.next() {
        let Some(found) = show_channel(channel, moment, shown, reach, with_gaps)? else { continue };
        moment.pass_alike(&found, |next| {
            let is_next = channels.next_if_eq(&next).is_some();
            if is_next {
                shown.add_alike(next);
            }
            is_next
        });
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::change::{Batch, Change, ColumnSpec, Entry, Object, Versioning};
    use super::super::tag::Of;
    use super::super::{Kind, Table, Value};
    use super::*;

    const CHANNELS: u32 = 40;

    fn change(state: &mut State, change: Change) {
        let revision = state.revision() + 1;
        state.replay(Entry { revision, time_us: 0, change }).expect("a change");
    }

    /// Inserts an object of each channel, with its own value.
    fn insert(
        state: &mut State,
        channels: impl IntoIterator<Item = u32>,
        since: u64,
        value: impl Fn(u32) -> f64,
    ) {
        put(state, channels.into_iter().map(|channel| (channel, since, since + 10)), value);
    }

    fn put(
        state: &mut State,
        of: impl IntoIterator<Item = (u32, u64, u64)>,
        value: impl Fn(u32) -> f64,
    ) {
        let mut payload = Table::new([Kind::Double]);
        let mut objects = Vec::new();
        for (channel, since, until) in of {
            objects.push(Object { channel, since, until, records: 1 });
            payload.columns[0].push(&Value::Double(value(channel))).expect("a double");
            payload.rows += 1;
        }
        let (folder, tag) = ("/a".to_owned(), None);
        change(
            state,
            Change::Insert(vec![Batch { folder, tag, only_tag: false, objects, payload }]),
        );
    }

    fn seal(state: &mut State) {
        let mut seal = state.seal(1 << 20).expect("all is known");
        state.begin_seal(&seal);
        while let Some(made) = seal.next(state).expect("a segment") {
            seal.stored(made.id, Bytes::from(made.bytes)).expect("it is whole");
        }
        let rebuilt = state.rebuild(&seal);
        drop(state.end_seal(&seal, Some(rebuilt)));
    }

    /// What a slice shows, by channel.
    fn shown(state: &State, time: u64) -> Vec<(u32, f64)> {
        let view = View { revision: state.revision(), of: Of::Head };
        let answer = state.slice("/a", time, view).expect("an answer").remove(0);
        let cells = &answer.payload.columns[0];
        let value = |row| match cells.value(row) {
            Value::Double(value) => value,
            other => panic!("{other:?}"),
        };
        let channels = answer.objects.iter().enumerate();
        channels.map(|(row, object)| (object.channel, value(row))).collect()
    }

    /// A folder of even channels with these intervals.
    fn filled(sinces: impl IntoIterator<Item = u64>) -> State {
        let mut state = State::default();
        let column = ColumnSpec { name: "v".to_owned(), kind: Kind::Double };
        let (path, description) = ("/a".to_owned(), String::new());
        let (versioning, columns) = (Versioning::Multi, vec![column]);
        change(&mut state, Change::CreateFolder { path, description, versioning, columns });
        for since in sinces {
            insert(&mut state, (0..CHANNELS).map(|channel| 2 * channel), since, of(since));
        }
        state
    }

    /// The value of a channel in the interval from a time on.
    fn of(since: u64) -> impl Fn(u32) -> f64 {
        move |channel| (1_000 * since + u64::from(channel)) as f64
    }

    #[test]
    fn channels_that_are_alike_now_show_what_each_of_them_showed_before() {
        let mut state = filled([]);
        let ends = [100, 50, 100];
        put(&mut state, (0..).zip(ends).map(|(channel, end)| (channel, 0, end)), of(0));
        let before = state.revision();
        put(&mut state, (0..3).map(|channel| (channel, 10, 100)), of(10));
        seal(&mut state);
        let until = |revision| {
            let view = View { revision, of: Of::Head };
            let answer = state.slice("/a", 5, view).expect("an answer").remove(0);
            answer.objects.iter().map(|object| object.until).collect::<Vec<_>>()
        };
        assert_eq!(until(before), ends);
        assert_eq!(until(state.revision()), [10; 3]);
    }

    #[test]
    fn what_came_since_a_seal_is_shown_among_channels_that_are_alike() {
        let mut state = filled([0, 10, 20]);
        seal(&mut state);
        // Over some of what is sealed, beside it, and behind it.
        insert(&mut state, [4, 6, 40], 12, of(7));
        insert(&mut state, [5, 77], 12, of(8));
        insert(&mut state, (0..CHANNELS).map(|channel| 2 * channel), 30, of(30));
        for sealed in [false, true] {
            if sealed {
                seal(&mut state);
            }
            for time in 0..40 {
                let (start, within) = (10 * (time / 10), (12..22).contains(&time));
                let value = |channel: u32| match channel {
                    4 | 6 | 40 if within => Some(of(7)(channel)),
                    5 | 77 => within.then(|| of(8)(channel)),
                    channel if channel % 2 == 0 => Some(of(start)(channel)),
                    _ => None,
                };
                let expected: Vec<_> = (0..2 * CHANNELS)
                    .filter_map(|channel| Some((channel, value(channel)?)))
                    .collect();
                assert_eq!(shown(&state, time), expected, "at {time}, sealed: {sealed}");
            }
        }
    }
}
