//! Which changes are refused. What passes here can be applied.

use std::collections::BTreeMap;

use super::change::{Added, Change, Touched, Touches};
use super::moment::Interval;
use super::refused::{
    FILES, IOVS, LISTS, NAME_CHARACTERS, Refused, STATUSES, TAGS, TEXT_CHARACTERS, TYPES,
    check_length, check_limit, check_text,
};
use super::state::{FROZEN, Iov, LOCKED, List, Nopayload, PayloadType, Row, Status, Tag, UNLOCKED};

/// The most bytes of a file's key.
pub const KEY_BYTES: usize = 1_024;

impl Nopayload {
    /// Whether a change can be applied now.
    ///
    /// # Errors
    /// When it is refused.
    pub fn check(&self, change: &Change) -> Result<Touches, Refused> {
        match change {
            Change::CreateStatus(name) => {
                check_new("name", name, self.status_named(name).is_some(), "global tag status")?;
                check_limit(self.statuses.len() + 1, STATUSES)?;
            }
            Change::CreateTag { .. }
            | Change::SetStatus { .. }
            | Change::CloneTag { .. }
            | Change::DeleteTag(_) => self.check_tag(change)?,
            Change::CreateType(name) => {
                check_new("name", name, self.type_named(name).is_some(), "payload type")?;
                check_limit(self.types.len() + 1, TYPES)?;
            }
            Change::DeleteType(name) => {
                let (id, _) = self.need_type(name)?;
                let used = self.lists().filter(|(_, list)| list.payload_type == id).count();
                if used > 0 {
                    return Err(Refused::TypeIsUsed(used));
                }
            }
            Change::CreateList(name) => {
                self.need_type(name)?;
                check_limit(self.lists.next() as usize, LISTS)?;
                return Ok(Touches::Only(Vec::new()));
            }
            Change::AttachList { list, tag } => self.check_attach_list(list, tag)?,
            Change::DeleteList(name) => {
                let (_, list) = self.need_list(name)?;
                if list.starts.len() > 0 {
                    return Err(Refused::ListIsUsed(list.starts.len()));
                }
                self.refuse_tag_of(list, &[FROZEN])?;
            }
            Change::CreateIov { url, checksum, interval } => {
                check_text("payload_url", url, TEXT_CHARACTERS)?;
                check_text("checksum", checksum, TEXT_CHARACTERS)?;
                check_interval(url, *interval)?;
                check_limit(self.iovs.next() as usize, IOVS)?;
                return Ok(Touches::Only(Vec::new()));
            }
            Change::AttachIov { list, iov } => return self.check_attach(list, *iov),
            Change::AddIovs(added) => return self.check_add(added),
            Change::DeleteIov { tag, payload_type, interval } => {
                let (id, list) = self.find(tag, payload_type, *interval).ok_or(Refused::NoIov)?;
                self.refuse_tag_of(list.1, &[FROZEN])?;
                return Ok(Touches::Only(vec![Touched::List(list.0), Touched::Iov(id)]));
            }
            Change::PutFile { key, sha256, size } => self.check_file(key, *sha256, *size)?,
        }
        Ok(Touches::All)
    }

    fn check_tag(&self, change: &Change) -> Result<(), Refused> {
        match change {
            Change::CreateTag { name, author, status } => {
                self.check_new_tag(name)?;
                if let Some(author) = author {
                    check_text("author", author, NAME_CHARACTERS)?;
                }
                self.need_status(status)?;
            }
            Change::SetStatus { tag, status } => {
                self.need_tag(tag)?;
                self.need_status(status)?;
            }
            Change::CloneTag { from, to } => {
                let (_, tag) = self.need_tag(from)?;
                self.check_new_tag(to)?;
                self.need_status(UNLOCKED)?;
                check_limit(self.lists.next() as usize + tag.lists.len(), LISTS)?;
                check_limit(self.iovs.next() as usize + self.iovs_of_tag(tag), IOVS)?;
            }
            Change::DeleteTag(name) => {
                let (_, tag) = self.need_tag(name)?;
                self.refuse_status(tag, &[LOCKED, FROZEN])?;
            }
            _ => {}
        }
        Ok(())
    }

    fn check_file(&self, key: &str, sha256: [u8; 32], size: u64) -> Result<(), Refused> {
        if key.is_empty() || key.len() > KEY_BYTES {
            return Err(Refused::Field("key", format!("a key has 1 to {KEY_BYTES} bytes")));
        }
        match self.file(key) {
            None => check_limit(self.files.len() + 1, FILES),
            Some(file) if (file.sha256, file.size) == (sha256, size) => Ok(()),
            Some(_) => Err(Refused::OtherFile(key.to_owned())),
        }
    }

    fn check_new_tag(&self, name: &str) -> Result<(), Refused> {
        check_new("name", name, self.tag_named(name).is_some(), "global tag")?;
        check_limit(self.tags.len() + 1, TAGS)
    }

    fn need_status(&self, name: &str) -> Result<Row<'_, Status>, Refused> {
        self.status_named(name).ok_or_else(|| Refused::Missing("GlobalTagStatus", name.to_owned()))
    }

    fn need_tag(&self, name: &str) -> Result<Row<'_, Tag>, Refused> {
        self.tag_named(name).ok_or_else(|| Refused::Missing("GlobalTag", name.to_owned()))
    }

    fn need_type(&self, name: &str) -> Result<Row<'_, PayloadType>, Refused> {
        self.type_named(name).ok_or_else(|| Refused::Missing("PayloadType", name.to_owned()))
    }

    fn need_list(&self, name: &str) -> Result<Row<'_, List>, Refused> {
        self.list_named(name).ok_or_else(|| Refused::Missing("PayloadList", name.to_owned()))
    }

    fn refuse_status(&self, tag: &Tag, refused: &[&str]) -> Result<(), Refused> {
        let status = self.status_of(tag);
        match refused.contains(&status) {
            true => Err(Refused::Closed(status.to_owned())),
            false => Ok(()),
        }
    }

    fn tag_of(&self, list: &List) -> Option<&Tag> {
        self.tag(list.tag?)
    }

    fn refuse_tag_of(&self, list: &List, refused: &[&str]) -> Result<(), Refused> {
        self.tag_of(list).map_or(Ok(()), |tag| self.refuse_status(tag, refused))
    }

    fn is_locked(&self, list: &List) -> bool {
        self.tag_of(list).is_some_and(|tag| self.status_of(tag) == LOCKED)
    }

    fn check_attach_list(&self, list: &str, tag: &str) -> Result<(), Refused> {
        let ((_, list), (tag_id, tag)) = (self.need_list(list)?, self.need_tag(tag)?);
        self.refuse_status(tag, &[FROZEN])?;
        if self.status_of(tag) == LOCKED && tag.lists.contains_key(&list.payload_type) {
            let payload_type = self.payload_type(list.payload_type);
            let name = payload_type.map_or(String::new(), |found| found.name.clone());
            return Err(Refused::HasType(name));
        }
        // The tag that it leaves would show something else.
        match list.tag == Some(tag_id) {
            true => Ok(()),
            false => self.refuse_tag_of(list, &[LOCKED, FROZEN]),
        }
    }

    fn check_attach(&self, name: &str, id: u32) -> Result<Touches, Refused> {
        let (list_id, list) = self.need_list(name)?;
        let missing = || Refused::Missing("PayloadIOV", id.to_string());
        let iov = self.iov(id).ok_or_else(missing)?;
        self.refuse_tag_of(list, &[FROZEN])?;
        check_limit(self.iovs.next() as usize, IOVS)?;
        let mut touched = vec![Touched::List(list_id), Touched::Iov(id)];
        if let Some(other) = iov.list.filter(|other| *other != list_id) {
            touched.push(Touched::List(other));
            self.list(other)
                .map_or(Ok(()), |other| self.refuse_tag_of(other, &[LOCKED, FROZEN]))?;
        }
        if self.is_locked(list) {
            self.refuse_met(list, iov.interval)?;
        }
        Ok(Touches::Only(touched))
    }

    fn refuse_met(&self, list: &List, new: Interval) -> Result<(), Refused> {
        let Some(met) = list.starts.met(new, |id| self.interval(id)) else { return Ok(()) };
        let url = self.iov(met).map_or(String::new(), |iov| iov.url.to_string());
        Err(Refused::Met { new, url, met: self.interval(met) })
    }

    /// Where an interval is valid.
    pub(super) fn interval(&self, id: u32) -> Interval {
        let found = self.iov(id).map(|iov| iov.interval);
        found.unwrap_or(super::change::open_from(super::moment::Moment::OPEN))
    }

    fn check_add(&self, all: &[Added]) -> Result<Touches, Refused> {
        check_limit(self.iovs.next() as usize + all.len(), IOVS)?;
        let mut lists: BTreeMap<u32, (&List, Vec<&Added>)> = BTreeMap::new();
        for added in all {
            let (id, list) = self.need_list(&added.list)?;
            check_text("payload_url", &added.url, TEXT_CHARACTERS)?;
            check_length("checksum", &added.checksum, TEXT_CHARACTERS)?;
            check_interval(&added.url, added.interval)?;
            lists.entry(id).or_insert((list, Vec::new())).1.push(added);
        }
        for (list, added) in lists.values_mut() {
            self.refuse_tag_of(list, &[FROZEN])?;
            if !self.is_locked(list) {
                continue;
            }
            added.iter().try_for_each(|added| self.refuse_met(list, added.interval))?;
            // Neither may they meet each other.
            added.sort_by_key(|added| added.interval.start);
            for pair in added.windows(2) {
                let (before, new) = (pair[0].interval, pair[1].interval);
                let follows = before.is_open() && new.is_open() && before.start < new.start;
                if !follows && before.end > new.start {
                    return Err(Refused::Met { new, url: pair[0].url.clone(), met: before });
                }
            }
        }
        Ok(Touches::Only(lists.keys().map(|id| Touched::List(*id)).collect()))
    }

    /// The interval of a tag and a type that is valid exactly there, the last of several, with its
    /// list.
    pub fn find(
        &self,
        tag: &str,
        payload_type: &str,
        interval: Interval,
    ) -> Option<(u32, Row<'_, List>)> {
        let (type_id, _) = self.type_named(payload_type)?;
        let list_id = *self.tag_named(tag)?.1.lists.get(&type_id)?;
        let list = self.list(list_id)?;
        let is_it = |iov: &Iov| iov.interval == interval;
        let same = list.starts.at(interval.start).filter(|id| self.iov(*id).is_some_and(is_it));
        Some((same.last()?, (list_id, list)))
    }
}

fn check_interval(url: &str, new: Interval) -> Result<(), Refused> {
    match new.is_valid() {
        true => Ok(()),
        false => Err(Refused::BadInterval { url: url.to_owned(), new }),
    }
}

/// Refuses a name that is taken, or can't be one.
fn check_new(field: &'static str, name: &str, is_there: bool, what: &str) -> Result<(), Refused> {
    check_text(field, name, NAME_CHARACTERS)?;
    match is_there {
        true => Err(Refused::Field(field, format!("{what} with this name already exists."))),
        false => Ok(()),
    }
}
