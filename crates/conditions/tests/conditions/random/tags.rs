//! Random changes of tags, and what the naive model makes of them.

use conditions::model::Change;
use rand::RngExt as _;

use super::{TAGS, World};
use crate::naive::{Done, NaiveShows, NaiveTag, Source};

impl World {
    pub(super) fn any_tag(&mut self) -> &'static str {
        TAGS[self.below(TAGS.len())]
    }

    fn know(&mut self, name: &'static str, path: &'static str, shows: NaiveShows) {
        let made = self.state.revision();
        self.tags.0.insert(name, NaiveTag { made, path, shows, is_locked: false });
    }

    pub(super) fn tag(&mut self) {
        let name = self.any_tag();
        let path = ["/", "/det", "/det/multi", "/det/single"][self.below(4)];
        let last = self.state.revision();
        let revision = (self.below(2) == 0).then(|| self.random.random_range(0..=last));
        let (owned, description) = (name.to_owned(), "a tag".to_owned());
        let change = Change::Tag { name: owned, path: path.to_owned(), description, revision };
        let made = self.change(change);
        assert_eq!(made.is_err(), self.tags.has(name));
        if made.is_ok() {
            self.know(name, path, NaiveShows::Head(revision.unwrap_or(last)));
        }
    }

    /// A path of a global tag, and what it may pick.
    fn some_tags(&mut self) -> Vec<&'static str> {
        (0..self.below(3)).map(|_| self.any_tag()).collect()
    }

    pub(super) fn global_tag(&mut self) {
        let name = self.any_tag();
        let path = ["/", "/det", "/det/multi"][self.below(3)];
        let mut tags = self.some_tags();
        tags.retain(|tag| self.below(4) == 0 || self.tags.can_pick(path, &[*tag]));
        let change = Change::GlobalTag {
            name: name.to_owned(),
            path: path.to_owned(),
            description: String::new(),
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        };
        let made = self.change(change);
        let is_set = path != "/det/multi";
        let fits = !self.tags.has(name) && is_set && self.tags.can_pick(path, &tags);
        assert_eq!(made.is_ok(), fits, "{name} {path} {tags:?}: {made:?}");
        if let Ok(revision) = made {
            let picked = tags.iter().map(|tag| (self.tags.0[tag].path, self.known(tag)));
            let picked = picked.collect();
            self.know(name, path, NaiveShows::Picks(vec![(revision, picked)]));
        }
    }

    fn known(&self, name: &'static str) -> (&'static str, u64) {
        (name, self.tags.0[name].made)
    }

    pub(super) fn pick(&mut self) {
        let globals: Vec<_> =
            TAGS.iter().copied().filter(|name| self.tags.picks(name).is_some()).collect();
        let name = match globals.len() {
            0 => self.any_tag(),
            _ => globals[self.below(globals.len())],
        };
        let path = self.tags.0.get(name).map_or("/", |tag| tag.path);
        let mut tags = self.some_tags();
        tags.retain(|tag| self.below(4) == 0 || self.tags.can_pick(path, &[*tag]));
        let mut unpick = vec!["/det", "/multi", "/det/single"];
        let picked = self.tags.picks(name);
        let is_picked = |path: &&str| picked.as_ref().is_some_and(|now| now.contains_key(path));
        unpick.retain(|path| self.below(4) == 0 && (self.below(4) == 0 || is_picked(path)));
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let (owned, new, gone) = (name.to_owned(), words(&tags), words(&unpick));
        let made = self.change(Change::Pick { name: owned, tags: new, unpick: gone });
        let fits = picked.is_some()
            && !self.tags.is_locked(name)
            && unpick.iter().all(is_picked)
            && self.tags.can_pick(path, &tags);
        assert_eq!(made.is_ok(), fits, "{name} {tags:?} {unpick:?}: {made:?}");
        let (Ok(revision), Some(mut picked)) = (made, picked) else { return };
        picked.retain(|path, _| !unpick.contains(path));
        for tag in tags {
            picked.insert(self.tags.0[tag].path, self.known(tag));
        }
        let NaiveShows::Picks(history) = &mut self.tags.0.get_mut(name).expect("a tag").shows
        else {
            panic!("it picks tags");
        };
        history.push((revision, picked));
    }

    pub(super) fn clone_tag(&mut self) {
        let [from, to] = [self.any_tag(), self.any_tag()];
        let (source, last) = (self.tags.0.get(from).cloned(), self.state.revision());
        let change =
            Change::Clone { from: from.to_owned(), to: to.to_owned(), description: String::new() };
        let made = self.change(change);
        let fits = source.is_some() && !self.tags.has(to);
        assert_eq!(made.is_ok(), fits, "{made:?}");
        let (Ok(revision), Some(source)) = (made, source) else { return };
        let copied = self.naive.get_mut(source.path).filter(|folder| !folder.is_single);
        let shows = match (copied, source.shows) {
            (_, NaiveShows::Picks(history)) => {
                let now = history.last().expect("made with picks").1.clone();
                NaiveShows::Picks(vec![(revision, now)])
            }
            (None, shows) => shows,
            (Some(folder), shows) => {
                let from = match shows {
                    NaiveShows::Head(at) => Source::Head(at),
                    _ => Source::User(from.to_owned(), last),
                };
                folder.log.push((revision, Done::Copy { from, tag: to.to_owned() }));
                NaiveShows::User
            }
        };
        self.know(to, source.path, shows);
    }

    pub(super) fn delete_tag(&mut self, name: &'static str) {
        let made = self.change(Change::DeleteTag(name.to_owned()));
        let is_free = |name| !self.tags.is_locked(name) && !self.tags.was_ever_picked(name);
        assert_eq!(made.is_ok(), self.tags.has(name) && is_free(name), "{made:?}");
        let Ok(revision) = made else { return };
        for folder in self.naive.values_mut() {
            folder.log.push((revision, Done::Forget { tag: name.to_owned() }));
        }
        self.tags.0.remove(name);
    }

    pub(super) fn lock(&mut self) {
        let (name, lock) = (self.any_tag(), self.below(3) == 0);
        let made = self.change(Change::LockTag(name.to_owned(), lock));
        assert_eq!(made.is_ok(), self.tags.has(name));
        if let Some(tag) = self.tags.0.get_mut(name) {
            tag.is_locked = lock;
        }
    }
}
