//! A model of folders that shares nothing with the service's: a list of what was done, which each
//! question goes through from the start, painting what is shown point by point.
//!
//! Times are 0 to [`POINTS`] - 1; the last point stands for all that follows, so an open interval
//! is one that covers it.

use std::collections::BTreeMap;

/// How many points there are.
pub(crate) const POINTS: usize = 17;

/// Objects are known by their number over all folders.
pub(crate) type Shown = Vec<Option<usize>>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Put {
    pub(crate) object: usize,
    pub(crate) channel: u32,
    pub(crate) since: usize,
    /// [`POINTS`] for an open one.
    pub(crate) until: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum Done {
    Put { put: Put, tag: Option<String>, only_tag: bool },
    Truncate { until: usize, channels: Vec<u32> },
    Copy { from: Source, tag: String },
    Forget { tag: String },
}

/// What a question is asked of: the head at a revision, or a tag of users at one.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Head(u64),
    User(String, u64),
}

impl Source {
    pub(crate) fn revision(&self) -> u64 {
        match self {
            Self::Head(revision) | Self::User(_, revision) => *revision,
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct NaiveFolder {
    pub(crate) is_single: bool,
    pub(crate) log: Vec<(u64, Done)>,
}

impl NaiveFolder {
    /// Which object is shown at each point.
    pub(crate) fn shown(&self, channel: u32, source: &Source) -> Shown {
        let mut head: Shown = vec![None; POINTS];
        let mut tags: BTreeMap<&str, Shown> = BTreeMap::new();
        for (made, done) in &self.log {
            if *made > source.revision() {
                break;
            }
            match done {
                Done::Put { put, tag, only_tag } if put.channel == channel => {
                    if !only_tag {
                        if self.is_single && head[put.since].is_some() {
                            head[put.since..].fill(None);
                        }
                        head[put.since..put.until].fill(Some(put.object));
                    }
                    if let Some(tag) = tag {
                        let shown = tags.entry(tag).or_insert_with(|| vec![None; POINTS]);
                        shown[put.since..put.until].fill(Some(put.object));
                    }
                }
                Done::Truncate { until, channels } if channels.contains(&channel) => {
                    head[(*until).min(POINTS)..].fill(None);
                }
                Done::Copy { from, tag } => {
                    let shown = match from {
                        Source::Head(_) => self.shown(channel, from),
                        Source::User(name, _) => {
                            tags.get(name.as_str()).cloned().unwrap_or_else(|| vec![None; POINTS])
                        }
                    };
                    tags.insert(tag, shown);
                }
                Done::Forget { tag } => drop(tags.remove(tag.as_str())),
                Done::Put { .. } | Done::Truncate { .. } => {}
            }
        }
        match source {
            Source::Head(_) => head,
            Source::User(name, _) => {
                tags.remove(name.as_str()).unwrap_or_else(|| vec![None; POINTS])
            }
        }
    }

    /// Whether a folder of one version takes the object: where it meets nothing, or only the open
    /// end of one that begins before it.
    pub(crate) fn takes(&self, put: Put) -> bool {
        let shown = self.shown(put.channel, &Source::Head(u64::MAX));
        let mut met: Vec<usize> = shown[put.since..put.until].iter().flatten().copied().collect();
        met.dedup();
        match met[..] {
            [] => true,
            [one] => {
                let begins = shown.iter().position(|object| *object == Some(one));
                shown[POINTS - 1] == Some(one) && begins < Some(put.since)
            }
            _ => false,
        }
    }
}

/// What is shown, as objects with their intervals.
pub(crate) fn intervals(shown: &Shown) -> Vec<Put> {
    let mut found: Vec<Put> = Vec::new();
    for (point, object) in shown.iter().enumerate() {
        let Some(object) = *object else { continue };
        match found.last_mut() {
            Some(last) if last.object == object && last.until == point => last.until = point + 1,
            _ => found.push(Put { object, channel: 0, since: point, until: point + 1 }),
        }
    }
    found
}

/// The names of tags by path, each with the revision that made it.
type Picked = BTreeMap<&'static str, (&'static str, u64)>;

#[derive(Clone, Debug)]
pub(crate) enum NaiveShows {
    Head(u64),
    User,
    /// What a global tag picks from a revision on.
    Picks(Vec<(u64, Picked)>),
}

#[derive(Clone, Debug)]
pub(crate) struct NaiveTag {
    pub(crate) made: u64,
    pub(crate) path: &'static str,
    pub(crate) shows: NaiveShows,
    pub(crate) is_locked: bool,
}

/// What a tag shows of a folder.
#[derive(Clone, Debug)]
pub(crate) enum Expected {
    Shown(Source),
    /// A global tag picks nothing for it.
    Nothing,
    /// The tag is of another folder.
    Other,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct NaiveTags(pub(crate) BTreeMap<&'static str, NaiveTag>);

pub(crate) fn is_under(path: &str, above: &str) -> bool {
    above == "/" || path == above || path.starts_with(&format!("{above}/"))
}

impl NaiveTags {
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// What a tag picks now.
    pub(crate) fn picks(&self, name: &str) -> Option<Picked> {
        match &self.0.get(name)?.shows {
            NaiveShows::Picks(history) => history.last().map(|(_, picked)| picked.clone()),
            _ => None,
        }
    }

    pub(crate) fn pickers(&self, name: &str) -> Vec<&'static str> {
        let picks = |by: &&str| {
            let picked = self.picks(by).unwrap_or_default();
            picked.values().any(|(picked, _)| *picked == name)
        };
        self.0.keys().copied().filter(picks).collect()
    }

    /// Whether a global tag picks it at any revision.
    pub(crate) fn was_ever_picked(&self, name: &str) -> bool {
        let made = self.0[name].made;
        self.0.values().any(|by| match &by.shows {
            NaiveShows::Picks(history) => {
                let mut picked = history.iter().flat_map(|(_, picked)| picked.values());
                picked.any(|picked| *picked == (name, made))
            }
            _ => false,
        })
    }

    pub(crate) fn is_locked(&self, name: &str) -> bool {
        self.0[name].is_locked || self.pickers(name).iter().any(|by| self.is_locked(by))
    }

    /// Whether a global tag of `path` can pick these together.
    pub(crate) fn can_pick(&self, path: &str, names: &[&str]) -> bool {
        let mut paths: Vec<_> = names.iter().filter_map(|name| self.0.get(name)).collect();
        let is_below = |tag: &&NaiveTag| tag.path != path && is_under(tag.path, path);
        let all_fit = paths.len() == names.len() && paths.iter().all(is_below);
        paths.sort_by_key(|tag| tag.path);
        paths.dedup_by_key(|tag| tag.path);
        all_fit && paths.len() == names.len()
    }

    pub(crate) fn shown(&self, name: &str, folder: &str, revision: u64) -> Expected {
        let tag = &self.0[name];
        if !is_under(folder, tag.path) {
            return Expected::Other;
        }
        let history = match &tag.shows {
            NaiveShows::Head(at) => return Expected::Shown(Source::Head(revision.min(*at))),
            NaiveShows::User => {
                // An earlier tag of this name is another one.
                let name = if revision < tag.made { "none" } else { name };
                return Expected::Shown(Source::User(name.to_owned(), revision));
            }
            NaiveShows::Picks(history) => history,
        };
        let picked = history.iter().rfind(|(from, _)| *from <= revision);
        let nearest = |(_, picked): &(u64, Picked)| {
            let above = picked.iter().filter(|(path, _)| is_under(folder, path));
            above.max_by_key(|(path, _)| path.len()).map(|(_, tag)| *tag)
        };
        match picked.and_then(nearest) {
            None => Expected::Nothing,
            Some((name, made)) => {
                assert_eq!(self.0[name].made, made, "what was picked is not deleted");
                self.shown(name, folder, revision)
            }
        }
    }
}
