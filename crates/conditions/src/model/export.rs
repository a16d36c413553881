//! All that a view shows over a range, a part at a time: of a revision that is fixed, so that
//! changes between two parts are in neither. Where a part ended is known by its folder, channel and
//! time, which sealing does not change.

use std::ops::Bound;

use super::change::Numbers;
use super::contents::{ReadAhead, Runs};
use super::error::Refusal;
use super::folder::Folder;
use super::piece::Version;
use super::shown::Answer;
use super::state::{Node, State};
use super::tag::{View, is_under};
use super::view::Found;

/// About how many bytes of payload a part has, where one object has not more.
const PART_BYTES: u64 = 8 << 20;

/// An export that has come some way.
#[derive(Debug)]
pub struct Export {
    path: String,
    range: (u64, u64),
    numbers: Numbers,
    view: View,
    /// The most objects of a part.
    objects: usize,
    /// The folder that is being exported, and where its next part begins; `None` before the first.
    at: Option<(String, Place)>,
    ahead: ReadAhead,
}

/// What is next of a folder: a channel, of what is shown from a time on.
#[derive(Clone, Copy, Debug)]
enum Place {
    Next(u32, u64),
    End,
}

impl Export {
    /// That of the folders at and below a path, of what is shown at some time of
    /// `since..=until`, in parts of this many objects at most.
    pub fn new(
        path: &str,
        range: (u64, u64),
        numbers: Numbers,
        view: View,
        objects: usize,
    ) -> Self {
        let (path, objects) = (path.to_owned(), objects.max(1));
        Self { path, range, numbers, view, objects, at: None, ahead: |_| () }
    }

    /// Has what a part reads from segments asked for from the disk before, by this.
    #[must_use]
    pub fn reading_ahead(self, ahead: ReadAhead) -> Self {
        Self { ahead, ..self }
    }

    /// The next objects, of one folder, by channel and time; `None` after the last.
    ///
    /// # Errors
    /// When a tag was deleted since it was begun, an object has too many records, or a segment is
    /// damaged. Where its payload is elsewhere, the same objects are next.
    pub fn next(&mut self, state: &State) -> Result<Option<Answer>, Refusal> {
        state.check_view(self.view, &self.path)?;
        loop {
            if let Some((path, place @ Place::Next(..))) = &self.at {
                let (part, place) = self.part(state, path, *place)?;
                let path = path.clone();
                self.at = Some((path, place));
                if part.is_some() {
                    return Ok(part);
                }
            }
            let Some(next) = self.folder_after(state) else { return Ok(None) };
            self.at = Some((next, Place::Next(0, 0)));
        }
    }

    /// The folder that follows the one that is being exported.
    fn folder_after(&self, state: &State) -> Option<String> {
        let Some((at, _)) = &self.at else {
            return state.under(&self.path).next().map(|folder| folder.path().to_owned());
        };
        let below = (Bound::Excluded(at.as_str()), Bound::Unbounded);
        let below = state.nodes.range::<str, _>(below);
        let below = below.take_while(|(path, _)| is_under(path, &self.path));
        let mut folders = below.filter(|(_, node)| matches!(node, Node::Folder(_)));
        folders.next().map(|(path, _)| path.clone())
    }

    /// The next part of a folder, if there is any, and where it ends.
    fn part(
        &self,
        state: &State,
        path: &str,
        place: Place,
    ) -> Result<(Option<Answer>, Place), Refusal> {
        let Some(version) = state.resolve(self.view, path)?.version else {
            return Ok((None, Place::End));
        };
        let folder = state.folder(path)?;
        let (mut pieces, mut end) = self.pieces(folder, version, place)?;
        let mut runs = Runs::default();
        pieces.iter().for_each(|(_, found)| runs.add(folder.contents.rows(found), u32::MAX));
        runs.ahead(self.ahead);
        loop {
            match folder.answer(&pieces, version.revision) {
                Ok(_) if pieces.is_empty() => return Ok((None, end)),
                Ok(answer) => return Ok((Some(answer), end)),
                // Too much for one part.
                Err(Refusal::TooMany(..)) if pieces.len() > 1 => {
                    let half = pieces.len() / 2;
                    end = Place::Next(pieces[half].0, pieces[half].1.since);
                    pieces.truncate(half);
                }
                Err(refusal) => return Err(refusal),
            }
        }
    }

    /// The next pieces of a folder, and where what follows them begins.
    fn pieces<'a>(
        &self,
        folder: &'a Folder,
        version: Version,
        place: Place,
    ) -> Result<(Vec<(u32, Found<'a>)>, Place), Refusal> {
        folder.contents.check_known()?;
        let view = folder.contents.view(version.user_tag);
        let (Some(view), Place::Next(first, since)) = (view, place) else {
            return Ok((Vec::new(), Place::End));
        };
        let (mut pieces, mut bytes): (Vec<(u32, Found<'a>)>, _) = (Vec::new(), 0);
        for (number, _) in self.numbers.among(&folder.channels, first) {
            // Pieces don't overlap: what begins before has ended there.
            let from = if number == first { since } else { 0 };
            let range = (self.range.0.max(from), self.range.1);
            let most = self.objects + 1 - pieces.len();
            for piece in view.range_begin(number, range, version.revision, most)? {
                if pieces.len() == self.objects || bytes > PART_BYTES {
                    return Ok((pieces, Place::Next(number, piece.since)));
                }
                bytes += folder.contents.payload_bytes(piece.place);
                pieces.push((number, piece));
            }
        }
        Ok((pieces, Place::End))
    }
}
