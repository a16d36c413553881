//! Tags of a state: what questions that name one are asked of, and how tags change.

use std::collections::{BTreeMap, BTreeSet};

use super::change::{Change, Versioning};
use super::contents::Touch;
use super::error::Refusal;
use super::piece::{Revision, Version};
use super::state::{Node, State};
use super::tag::{Of, Picks, Resolved, Shows, Tag, View, is_under};

impl State {
    /// The tags by name.
    pub fn tags(&self) -> impl Iterator<Item = (&str, &Tag)> {
        self.tags.by_name.iter().map(|(name, tag)| (name.as_str(), tag))
    }

    /// The tag of this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn tag(&self, name: &str) -> Result<&Tag, Refusal> {
        self.tags.get(name).ok_or_else(|| Refusal::NoTag(name.to_owned()))
    }

    /// The path and name of each tag that a global tag picks now; nothing of another tag.
    pub fn picks(&self, tag: &Tag) -> Vec<(String, String)> {
        let Shows::Picks(picks) = &tag.shows else { return Vec::new() };
        let named = picks.now().filter_map(|(path, id)| Some((path, self.tags.name(id, path)?)));
        named.map(|(path, name)| (path.to_owned(), name.to_owned())).collect()
    }

    /// Refuses a tag that is locked, or that a global tag picks for which this is so.
    ///
    /// # Errors
    /// Then.
    pub fn check_unlocked(&self, name: &str) -> Result<(), Refusal> {
        let (mut seen, mut rest) = (BTreeSet::from([name]), vec![(name, self.tag(name)?)]);
        while let Some((by, tag)) = rest.pop() {
            if tag.is_locked {
                return Err(match by == name {
                    true => Refusal::Locked(name.to_owned()),
                    false => Refusal::LockedBy(name.to_owned(), by.to_owned()),
                });
            }
            for by in &tag.picked_by {
                if seen.insert(by) {
                    rest.push((by, self.tag(by)?));
                }
            }
        }
        Ok(())
    }

    /// Refuses a tag that a global tag has ever picked: questions of that revision need it.
    ///
    /// # Errors
    /// Then.
    pub(super) fn check_never_picked(&self, name: &str) -> Result<(), Refusal> {
        let tag = self.tag(name)?;
        for (by, other) in &self.tags.by_name {
            let Shows::Picks(picks) = &other.shows else { continue };
            if let Some(until) = picks.until(&tag.path, tag.id) {
                return Err(Refusal::WasPicked(name.to_owned(), by.clone(), until));
            }
        }
        Ok(())
    }

    /// What a tag shows of what is at and below `path`, or the head where there is none; at a
    /// revision, or now.
    ///
    /// # Errors
    /// When there is no such tag or revision, or the tag is of another path.
    pub fn view(
        &self,
        tag: Option<&str>,
        revision: Option<Revision>,
        path: &str,
    ) -> Result<View, Refusal> {
        let revision = revision.unwrap_or(self.revision());
        self.check_revision(revision)?;
        let Some(name) = tag.filter(|name| *name != super::HEAD) else {
            return Ok(View { revision, of: Of::Head });
        };
        let tag = self.tag(name)?;
        if !is_under(path, &tag.path) {
            let path = tag.path.clone();
            return Err(Refusal::OtherTag(name.to_owned(), path, "which this is not below"));
        }
        Ok(match tag.shows {
            Shows::Head(at) => View { revision: at.min(revision), of: Of::Head },
            Shows::User => View { revision, of: Of::User(tag.id) },
            Shows::Picks(_) => View { revision, of: Of::Global(tag.id) },
        })
    }

    /// Refuses a view of what is at and below `path` whose revision or tag isn't there.
    ///
    /// # Errors
    /// Then.
    pub fn check_view(&self, view: View, path: &str) -> Result<(), Refusal> {
        self.check_revision(view.revision)?;
        match view.of {
            Of::Head => Ok(()),
            Of::User(id) => {
                let name =
                    self.tags.name(id, path.trim_end_matches('/')).ok_or_else(|| no_number(id))?;
                let is_user = self.tag(name)?.shows == Shows::User;
                is_user.then_some(()).ok_or_else(|| no_number(id))
            }
            Of::Global(id) => {
                let (name, tag) = self.global(id)?;
                if is_under(path, &tag.path) {
                    return Ok(());
                }
                let (name, of) = (name.to_owned(), tag.path.clone());
                Err(Refusal::OtherTag(name, of, "which this is not below"))
            }
        }
    }

    /// What a tag shows of one folder, as [`State::view`] has it.
    ///
    /// # Errors
    /// As that, and when a global tag picks nothing for the folder.
    pub fn version(
        &self,
        tag: Option<&str>,
        revision: Option<Revision>,
        folder: &str,
    ) -> Result<Version, Refusal> {
        let view = self.view(tag, revision, folder)?;
        let none = || Refusal::NoPick(tag.unwrap_or_default().to_owned(), folder.to_owned());
        self.resolve(view, folder)?.version.ok_or_else(none)
    }

    /// The version of a folder that a view shows; `None` where that is nothing, or refused.
    pub fn shown_version(&self, view: View, folder: &super::Folder) -> Option<Version> {
        self.resolve(view, folder.path()).ok()?.version
    }

    /// What a view is of a folder.
    ///
    /// # Errors
    /// When a tag that was picked at its revision has been deleted since.
    pub(super) fn resolve(&self, view: View, folder: &str) -> Result<Resolved, Refusal> {
        let View { revision, of } = view;
        let resolved = |version, from| Ok(Resolved { version: Some(version), from });
        let mut tag = match of {
            Of::Head => return resolved(Version { revision, user_tag: None }, 0),
            // A tag that is made later shows nothing, so it is not part of an answer before.
            Of::User(id) => return resolved(Version { revision, user_tag: Some(id) }, id),
            Of::Global(id) => self.global(id)?.1,
        };
        let mut from = 0;
        loop {
            let picks = match &tag.shows {
                Shows::Head(at) => {
                    let revision = revision.min(*at);
                    return resolved(Version { revision, user_tag: None }, from);
                }
                Shows::User => {
                    return resolved(Version { revision, user_tag: Some(tag.id) }, from);
                }
                Shows::Picks(picks) => picks,
            };
            let (picked, since) = picks.at(folder, revision);
            from = from.max(since);
            let Some((path, id)) = picked else { return Ok(Resolved { version: None, from }) };
            tag = self.tag(self.tags.name(id, path).ok_or_else(|| no_number(id))?)?;
        }
    }

    /// The tags through which a global tag shows something of a folder, each picked by the one
    /// before it; none where another view is asked, or nothing is picked.
    ///
    /// # Errors
    /// When a tag that was picked at the view's revision has been deleted since.
    pub fn picked(&self, view: View, folder: &str) -> Result<Vec<&str>, Refusal> {
        let mut picked = Vec::new();
        let Of::Global(id) = view.of else { return Ok(picked) };
        let mut tag = self.global(id)?.1;
        while let Shows::Picks(picks) = &tag.shows {
            let Some((path, id)) = picks.at(folder, view.revision).0 else { break };
            let name = self.tags.name(id, path).ok_or_else(|| no_number(id))?;
            tag = self.tag(name)?;
            picked.push(name);
        }
        Ok(picked)
    }

    /// The global tag of this number: a change makes one at most, and no other tag.
    fn global(&self, id: Revision) -> Result<(&str, &Tag), Refusal> {
        let mut named = self.tags.names.range((id, String::new())..);
        let found = named.next().filter(|((number, _), _)| *number == id);
        let (_, name) = found.ok_or_else(|| no_number(id))?;
        let tag = self.tag(name)?;
        match tag.shows {
            Shows::Picks(_) => Ok((name, tag)),
            _ => Err(no_number(id)),
        }
    }

    fn check_revision(&self, revision: Revision) -> Result<(), Refusal> {
        let last = self.revision();
        match revision > last {
            true => Err(Refusal::NoRevision(revision, last)),
            false => Ok(()),
        }
    }

    pub(super) fn apply_to_tags(&mut self, change: &Change, made: Revision) {
        match change {
            Change::Tag { name, path, description, revision } => {
                let shows = Shows::Head(revision.unwrap_or(made - 1));
                self.tags.insert(name, Tag::new(made, path, description, shows));
            }
            Change::GlobalTag { name, path, description, tags } => {
                let shows = Shows::Picks(Picks::default());
                self.tags.insert(name, Tag::new(made, path, description, shows));
                self.pick(name, tags, &[], made);
            }
            Change::Pick { name, tags, unpick } => self.pick(name, tags, unpick, made),
            Change::Clone { from, to, description } => self.clone_tag(from, to, description, made),
            Change::DeleteTag(name) => {
                let Some(tag) = self.tags.remove(name) else { return };
                if let Some(place) = self.multi(&tag.path) {
                    self.touch(place, Touch::Forget(tag.id), made);
                }
                if let Shows::Picks(picks) = &tag.shows {
                    let picked = picks.now();
                    picked.for_each(|(path, id)| self.tags.set_picked(id, path, name, false));
                }
            }
            Change::LockTag(name, is_locked) => {
                if let Some(tag) = self.tags.get_mut(name) {
                    tag.is_locked = *is_locked;
                }
            }
            _ => {}
        }
    }

    /// Has a global tag pick tags, and no longer those of some paths.
    fn pick(&mut self, name: &str, tags: &[String], unpick: &[String], revision: Revision) {
        let new = tags.iter().filter_map(|tag| self.tags.get(tag));
        let new = new.map(|tag| (tag.path.clone(), Some(tag.id)));
        let set: Vec<_> = unpick.iter().map(|path| (path.clone(), None)).chain(new).collect();
        for (path, picked) in set {
            let Some(tag) = self.tags.get_mut(name) else { return };
            let Shows::Picks(picks) = &mut tag.shows else { return };
            let before = picks.of(&path);
            picks.set(&path, picked, revision);
            if let Some(before) = before {
                self.tags.set_picked(before, &path, name, false);
            }
            if let Some(id) = picked {
                self.tags.set_picked(id, &path, name, true);
            }
        }
    }

    fn clone_tag(&mut self, from: &str, to: &str, description: &str, made: Revision) {
        let Some(source) = self.tags.get(from) else { return };
        let mut tag = Tag::new(made, &source.path, description, source.shows.clone());
        let id = source.id;
        if let Some(place) = self.multi(&tag.path) {
            let version = match tag.shows {
                Shows::Head(revision) => Version { revision, user_tag: None },
                _ => Version { revision: made - 1, user_tag: Some(id) },
            };
            self.touch(place, Touch::Copy(version, made), made);
            tag.shows = Shows::User;
        }
        let mut picked = Vec::new();
        if let Shows::Picks(picks) = &tag.shows {
            picked.extend(picks.now().map(|(path, id)| (path.to_owned(), id)));
            let mut copy = Picks::default();
            picked.iter().for_each(|(path, id)| copy.set(path, Some(*id), made));
            tag.shows = Shows::Picks(copy);
        }
        self.tags.insert(to, tag);
        picked.iter().for_each(|(path, id)| self.tags.set_picked(*id, path, to, true));
    }

    /// The place of a folder of several versions.
    fn multi(&self, path: &str) -> Option<usize> {
        let place = self.place(path).ok()?;
        (self.folders[place].versioning() == Versioning::Multi).then_some(place)
    }

    /// Refuses tags that a global tag of `path` can't pick.
    pub(super) fn check_picks(&self, path: &str, tags: &[String]) -> Result<(), Refusal> {
        if let Some(Node::Folder(_)) = self.nodes.get(path) {
            return Err(Refusal::NoSet(path.to_owned()));
        }
        let mut paths: BTreeMap<&str, &str> = BTreeMap::new();
        for name in tags {
            let tag = self.tag(name)?;
            if tag.path == path || !is_under(&tag.path, path) {
                let why = "and a global tag picks those of folders and sets below its own";
                return Err(Refusal::OtherTag(name.clone(), tag.path.clone(), why));
            }
            if let Some(other) = paths.insert(&tag.path, name) {
                let why = "of which another is picked already";
                let path = tag.path.clone();
                return Err(Refusal::OtherTag(other.to_owned(), path, why));
            }
        }
        Ok(())
    }

    /// Refuses what a global tag can't pick, or no longer pick.
    pub(super) fn check_pick(
        &self,
        name: &str,
        tags: &[String],
        unpick: &[String],
    ) -> Result<(), Refusal> {
        self.check_unlocked(name)?;
        let tag = self.tag(name)?;
        let Shows::Picks(picks) = &tag.shows else {
            return Err(Refusal::NotGlobal(name.to_owned()));
        };
        if let Some(path) = unpick.iter().find(|path| picks.of(path).is_none()) {
            return Err(Refusal::NoPick(name.to_owned(), path.clone()));
        }
        self.check_picks(&tag.path, tags)
    }
}

fn no_number(id: Revision) -> Refusal {
    Refusal::NoNumber(id)
}
