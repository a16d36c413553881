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
        let revision = match source {
            Source::Head(revision) | Source::User(_, revision) => *revision,
        };
        for (made, done) in &self.log {
            if *made > revision {
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
