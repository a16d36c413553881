//! The one function that changes the state.

use std::sync::Arc;

use super::change::{Added, Change};
use super::moment::Interval;
use super::starts::{Rest, Starts};
use super::state::{
    Iov, List, Nopayload, PayloadType, Revision, Status, StoredFile, Tag, UNLOCKED,
};

/// When a change is made.
#[derive(Clone, Copy)]
struct Now {
    revision: Revision,
    time_us: i64,
}

impl Nopayload {
    /// Applies a change that was checked.
    pub fn apply(&mut self, change: &Change, revision: Revision, time_us: i64) {
        let now = Now { revision, time_us };
        // What was checked is there; what isn't changes nothing.
        let _ = self.apply_checked(change, now);
    }

    fn apply_checked(&mut self, change: &Change, now: Now) -> Option<()> {
        let made_us = now.time_us;
        match change {
            Change::CreateStatus(name) => {
                self.statuses.insert(Status { name: name.clone(), made_us });
            }
            Change::CreateTag { name, author, status } => {
                let status = self.statuses.id(status)?;
                self.insert_tag(name, author.clone(), status, now);
            }
            Change::SetStatus { tag, status } => {
                let (id, status) = (self.tags.id(tag)?, self.statuses.id(status)?);
                let tag = self.tags.get_mut(id)?;
                (tag.status, tag.updated_us) = (status, now.time_us);
            }
            Change::CloneTag { from, to } => self.clone_tag(from, to, now)?,
            Change::DeleteTag(name) => {
                let tag = self.tags.remove(self.tags.id(name)?)?;
                for list in tag.lists.into_values() {
                    let Some(list) = self.lists.remove(list) else { continue };
                    list.iovs().for_each(|id| drop(self.iovs.remove(id)));
                }
            }
            Change::CreateType(name) => {
                self.types.insert(PayloadType { name: name.clone(), made_us });
            }
            Change::DeleteType(name) => drop(self.types.remove(self.types.id(name)?)),
            Change::CreateList(name) => {
                let payload_type = self.types.id(name)?;
                self.insert_list(payload_type, None, now);
            }
            Change::AttachList { list, tag } => self.attach_list(list, tag, now)?,
            Change::DeleteList(name) => {
                let list = self.lists.remove(self.lists.id(name)?)?;
                self.change_tag(list.tag, now).map(|tag| tag.lists.remove(&list.payload_type));
            }
            Change::CreateIov { url, checksum, interval } => {
                self.insert_iov(
                    url.as_str().into(),
                    checksum.as_str().into(),
                    *interval,
                    None,
                    now,
                );
            }
            Change::AttachIov { list, iov } => self.attach(list, *iov, now)?,
            Change::AddIovs(added) => added.iter().for_each(|added| self.add(added, now)),
            Change::DeleteIov { tag, payload_type, interval } => {
                let (id, (list, _)) = self.find(tag, payload_type, *interval)?;
                self.take_out(id, list, now);
                self.iovs.remove(id);
            }
            Change::PutFile { key, sha256, size } => {
                self.files.insert(key.clone(), StoredFile { sha256: *sha256, size: *size });
            }
        }
        Some(())
    }

    fn insert_tag(&mut self, name: &str, author: Option<String>, status: u32, now: Now) -> u32 {
        let name = name.to_owned();
        let (made_us, updated_us, changed) = (now.time_us, now.time_us, now.revision);
        let lists = Default::default();
        self.tags.insert(Tag { name, author, status, made_us, updated_us, changed, lists })
    }

    fn insert_list(&mut self, payload_type: u32, tag: Option<u32>, now: Now) -> u32 {
        let stem = self.types.get(payload_type).map_or("", |found| &found.name);
        let name = format!("{stem}_{}", self.lists.next());
        let (made, made_us, starts) = (now.revision, now.time_us, Starts::default());
        self.lists.insert(List { name, payload_type, tag, made, made_us, starts })
    }

    fn insert_iov(
        &mut self,
        url: Arc<str>,
        checksum: Arc<str>,
        interval: Interval,
        list: Option<u32>,
        now: Now,
    ) -> u32 {
        let (made, made_us) = (now.revision, now.time_us);
        let id = self.iovs.insert(Box::new(Iov { url, checksum, interval, list, made, made_us }));
        if let Some(list) = list.and_then(|list| self.lists.get_mut(list)) {
            list.starts.insert(interval.start, id);
        }
        id
    }

    /// The tag whose answers this change makes others.
    fn change_tag(&mut self, tag: Option<u32>, now: Now) -> Option<&mut Tag> {
        let tag = self.tags.get_mut(tag?)?;
        tag.changed = now.revision;
        Some(tag)
    }

    fn change_tag_of(&mut self, list: u32, now: Now) {
        let tag = self.lists.get(list).and_then(|list| list.tag);
        self.change_tag(tag, now);
    }

    fn clone_tag(&mut self, from: &str, to: &str, now: Now) -> Option<()> {
        let unlocked = self.statuses.id(UNLOCKED)?;
        let source = self.tags.named(from)?.1.clone();
        let copy = self.insert_tag(to, source.author, unlocked, now);
        for (payload_type, list) in source.lists {
            let mut ids: Vec<u32> = self.lists.get(list)?.iovs().collect();
            // The copies are numbered in the order of what they are copies of.
            ids.sort_unstable();
            let new = self.insert_list(payload_type, Some(copy), now);
            self.tags.get_mut(copy)?.lists.insert(payload_type, new);
            for id in ids {
                let Some(Iov { url, checksum, interval, .. }) = self.iov(id).cloned() else {
                    continue;
                };
                self.insert_iov(url, checksum, interval, Some(new), now);
            }
        }
        Some(())
    }

    fn attach_list(&mut self, list: &str, tag: &str, now: Now) -> Option<()> {
        let (list_id, tag_id) = (self.lists.id(list)?, self.tags.id(tag)?);
        let list = self.lists.get_mut(list_id)?;
        let (payload_type, before) = (list.payload_type, list.tag.replace(tag_id));
        if let Some(tag) = self.change_tag(before, now) {
            tag.lists.remove(&payload_type);
        }
        let tag = self.change_tag(Some(tag_id), now)?;
        tag.updated_us = now.time_us;
        let replaced = tag.lists.insert(payload_type, list_id).filter(|other| *other != list_id);
        self.lists.get_mut(replaced?)?.tag = None;
        Some(())
    }

    fn add(&mut self, added: &Added, now: Now) {
        let Some(list) = self.lists.id(&added.list) else { return };
        let (url, checksum) = (added.url.as_str().into(), added.checksum.as_str().into());
        self.insert_iov(url, checksum, added.interval, Some(list), now);
        self.change_tag_of(list, now);
    }

    /// Takes an interval out of its list; it is kept.
    fn take_out(&mut self, id: u32, list: u32, now: Now) {
        let Some(iov) = self.iovs.get_mut(id) else { return };
        iov.list = None;
        let start = iov.interval.start;
        if let Some(list) = self.lists.get_mut(list) {
            list.starts.remove(start, id);
        }
        self.change_tag_of(list, now);
    }

    fn attach(&mut self, list: &str, id: u32, now: Now) -> Option<()> {
        let list_id = self.lists.id(list)?;
        if let Some(other) = self.iov(id)?.list {
            self.take_out(id, other, now);
        }
        let new = self.iov(id)?.interval;
        let list = self.lists.get(list_id)?;
        let is_locked = list.tag.and_then(|tag| self.tag(tag));
        let is_locked = is_locked.is_some_and(|tag| self.status_of(tag) == super::state::LOCKED);
        if !is_locked {
            self.make_room(list_id, new, now)?;
        }
        self.lists.get_mut(list_id)?.starts.insert(new.start, id);
        self.iovs.get_mut(id)?.list = Some(list_id);
        self.change_tag_of(list_id, now);
        Some(())
    }

    fn make_room(&mut self, list: u32, new: Interval, now: Now) -> Option<()> {
        let cut = self.lists.get(list)?.starts.cut(new, |id| self.interval(id).end);
        for id in self.lists.get_mut(list)?.starts.clear(&cut) {
            self.iovs.get_mut(id)?.list = None;
        }
        match cut.rest {
            Some(Rest::Moved(id)) => {
                let iov = self.iovs.get_mut(id)?;
                (iov.interval.start, iov.list) = (new.end, Some(list));
                self.lists.get_mut(list)?.starts.insert(new.end, id);
            }
            Some(Rest::Copied(id)) => {
                let Iov { url, checksum, interval, .. } = self.iov(id)?.clone();
                let rest = Interval { start: new.end, end: interval.end };
                self.insert_iov(url, checksum, rest, Some(list), now);
            }
            None => {}
        }
        if let Some(id) = cut.trimmed {
            self.iovs.get_mut(id)?.interval.end = new.start;
        }
        Some(())
    }
}
