//! Exports that go on while changes are made, what they are of is sealed, and starts come between.

use conditions::model::{Export, Numbers, Object, Refusal, Value};

use super::{CHANNELS, FOLDERS, World, time};
use crate::naive::{Expected, POINTS, Put, is_under};

/// What is shown of one folder.
type Shown = (String, Vec<Object>, Vec<Vec<Value>>);

/// An export, with what it has to have, and what it has had so far.
pub(super) struct Begun {
    export: Export,
    tag: Option<&'static str>,
    expected: Vec<Shown>,
    found: Vec<Shown>,
}

impl World {
    /// Begins an export, or goes on with it.
    pub(super) fn export_step(&mut self) {
        if self.export.is_none() && self.below(8) == 0 {
            self.begin_export();
        }
        let tag = self.export.as_ref().and_then(|begun| begun.tag);
        if let Some(tag) = tag.filter(|tag| self.tags.has(tag))
            && self.below(20) == 0
        {
            self.delete_tag(tag);
        }
        for _ in 0..self.below(2) {
            let Some(mut begun) = self.export.take() else { return };
            let answer = match begun.export.next(&self.state) {
                Ok(Some(answer)) => answer,
                Ok(None) => {
                    assert_eq!(begun.found, begun.expected);
                    return;
                }
                Err(refusal) => {
                    // The tag was deleted since.
                    let is_gone = matches!(refusal, Refusal::NoTag(_) | Refusal::NoNumber(_));
                    assert!(is_gone && begun.tag.is_some());
                    return;
                }
            };
            let rows = answer.payload.rows as usize;
            let rows: Vec<Vec<Value>> =
                (0..rows).map(|row| answer.payload.row(row).collect()).collect();
            match begun.found.last_mut().filter(|(folder, ..)| *folder == answer.folder) {
                Some((_, objects, records)) => {
                    objects.extend(answer.objects);
                    records.extend(rows);
                }
                None => begun.found.push((answer.folder, answer.objects, rows)),
            }
            self.export = Some(begun);
        }
    }

    fn begin_export(&mut self) {
        let (asked, under) = (self.draw(), ["/", "/det", "/det/multi", "/multi"][self.below(4)]);
        let (one, other, objects) = (self.below(POINTS), self.below(POINTS), 1 + self.below(5));
        let (first, last) = (one.min(other), one.max(other));
        let channel = self.below(CHANNELS as usize) as u32;
        let Ok(view) = self.state.view(asked.tag, asked.revision, under) else { return };
        let mut paths = FOLDERS.map(|(path, _)| path);
        paths.sort_unstable();
        let mut expected = Vec::new();
        for path in paths.into_iter().filter(|path| is_under(path, under)) {
            let source = match self.expected(asked, path) {
                Expected::Shown(source) => source,
                Expected::Nothing | Expected::Other => continue,
            };
            let columns = self.columns_at(path, source.revision());
            let mut shown = self.shown(path, channel..CHANNELS, &source);
            shown.retain(|put: &Put| put.since <= last && put.until > first);
            let (objects, rows) = self.objects_of(shown.iter(), columns, &|_| true);
            if !objects.is_empty() {
                expected.push((path.to_owned(), objects, rows));
            }
        }
        let numbers = Numbers::of_ranges(vec![(channel, u32::MAX)]);
        let export = Export::new(under, (time(first), time(last)), numbers, view, objects);
        self.export = Some(Begun { export, tag: asked.tag, expected, found: Vec::new() });
    }
}
