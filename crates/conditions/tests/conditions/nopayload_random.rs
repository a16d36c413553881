//! The model of NoPayloadDB's interface under random changes: what each change has to do to what
//! every tag shows at every moment, and to nothing else.

use std::collections::BTreeMap;

use conditions::nopayload::model::{
    Added, Change, FROZEN, Interval, LOCKED, Moment, Nopayload, Touches, UNLOCKED,
};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

const MOMENTS: u64 = 16;
const TAGS: [&str; 3] = ["S", "T", "U"];
const TYPES: [&str; 2] = ["a", "b"];

fn at(place: u64) -> Moment {
    Moment::of(place / 3, place % 3 * 9)
}

/// The payload that is shown of each tag, type and moment, until its end.
type Shown = BTreeMap<(String, String, u64), String>;

fn shown(state: &Nopayload) -> Shown {
    let mut all = Shown::new();
    for (_, tag) in state.tags() {
        for place in 0..MOMENTS {
            for (payload_type, iov) in state.latest(tag, at(place)) {
                assert!(iov.interval.is_valid() && iov.interval.start <= at(place));
                if iov.interval.end > at(place) {
                    let key = (tag.name.clone(), payload_type.to_owned(), place);
                    all.insert(key, iov.url.to_string());
                }
            }
        }
    }
    all
}

fn interval(random: &mut SmallRng) -> Interval {
    let start = random.random_range(0..MOMENTS);
    let end = start + random.random_range(1..9);
    Interval { start: at(start), end: if end >= MOMENTS { Moment::OPEN } else { at(end) } }
}

struct Random {
    random: SmallRng,
    payloads: u32,
}

impl Random {
    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.random.random_range(0..of.len())]
    }

    fn url(&mut self) -> String {
        self.payloads += 1;
        format!("p{}", self.payloads)
    }

    /// Any change, most of which can be made.
    fn change(&mut self, state: &Nopayload) -> Change {
        let (tag, payload_type) = (self.one(&TAGS).to_owned(), self.one(&TYPES).to_owned());
        let lists: Vec<_> = state.lists().map(|(_, list)| list.name.clone()).collect();
        let mut list = || match lists.len() {
            0 => "none".to_owned(),
            count => lists[self.random.random_range(0..count)].clone(),
        };
        let (one, other) = (list(), list());
        match self.random.random_range(0..24) {
            0 => {
                let status = self.one(&[UNLOCKED, UNLOCKED, LOCKED, FROZEN]).to_owned();
                Change::SetStatus { tag, status }
            }
            1 => Change::CreateTag { name: tag, author: None, status: UNLOCKED.to_owned() },
            2 => Change::CloneTag { from: tag, to: self.one(&TAGS).to_owned() },
            3 if self.random.random_ratio(1, 4) => Change::DeleteTag(tag),
            4 => Change::CreateList(payload_type),
            5 | 6 => Change::AttachList { list: one, tag },
            7 => Change::DeleteList(one),
            8 => Change::DeleteType(payload_type),
            9 => Change::CreateType(payload_type),
            10 => {
                let count = self.random.random_range(0..4);
                let added = (0..count).map(|place| Added {
                    url: self.url(),
                    checksum: String::new(),
                    interval: interval(&mut self.random),
                    list: if place == 0 { other.clone() } else { one.clone() },
                });
                Change::AddIovs(added.collect())
            }
            11 | 12 => {
                let all: Vec<_> = state.iovs().map(|(_, iov)| iov.interval).collect();
                let interval = match all.len() {
                    0 => interval(&mut self.random),
                    count => all[self.random.random_range(0..count)],
                };
                Change::DeleteIov { tag, payload_type, interval }
            }
            13..18 => Change::CreateIov {
                url: self.url(),
                checksum: "md5:0".to_owned(),
                interval: interval(&mut self.random),
            },
            _ => {
                let last = state.iovs().last().map_or(0, |(id, _)| id);
                let iov = last.saturating_sub(self.random.random_range(0..3));
                Change::AttachIov { list: one, iov }
            }
        }
    }
}

/// The tag and type of a list.
fn place_of(state: &Nopayload, list: &str) -> Option<(String, String)> {
    let list = state.list_named(list)?.1;
    let tag = state.tag(list.tag?)?.name.clone();
    Some((tag, state.payload_type(list.payload_type)?.name.clone()))
}

fn status(state: &Nopayload, tag: &str) -> String {
    state.tag_named(tag).map_or(String::new(), |(_, tag)| state.status_of(tag).to_owned())
}

/// What has to be shown after a change that was taken, where that is known in full.
fn expected(before: &Nopayload, change: &Change, mut shown: Shown) -> Option<Shown> {
    match change {
        Change::AttachIov { list, iov } => {
            let iov = before.iov(*iov)?;
            // One that leaves a list uncovers what lay below it.
            if iov.list.is_some() {
                return None;
            }
            let Some((tag, payload_type)) = place_of(before, list) else { return Some(shown) };
            for place in 0..MOMENTS {
                if iov.interval.start <= at(place) && at(place) < iov.interval.end {
                    let key = (tag.clone(), payload_type.clone(), place);
                    shown.insert(key, iov.url.to_string());
                }
            }
        }
        Change::CloneTag { from, to } => {
            let of_source = shown.iter().filter(|((tag, ..), _)| tag == from);
            let copies = of_source.map(|((_, payload_type, place), url)| {
                ((to.clone(), payload_type.clone(), *place), url.clone())
            });
            shown.extend(copies.collect::<Vec<_>>());
        }
        Change::DeleteTag(name) => shown.retain(|(tag, ..), _| tag != name),
        Change::AddIovs(_) | Change::AttachList { .. } | Change::DeleteIov { .. } => return None,
        _ => {}
    }
    Some(shown)
}

/// Tags whose answers a change may make others.
fn may_change(before: &Nopayload, change: &Change, tag: &str) -> bool {
    let is_of = |list: &str| place_of(before, list).is_some_and(|(of, _)| of == tag);
    match change {
        Change::AddIovs(added) => added.iter().any(|added| is_of(&added.list)),
        Change::AttachList { list, tag: to } => to == tag || is_of(list),
        Change::DeleteIov { tag: of, .. } => of == tag,
        Change::AttachIov { list, iov } => {
            let left = before.iov(*iov).and_then(|iov| before.list(iov.list?));
            is_of(list) || left.is_some_and(|left| is_of(&left.name))
        }
        Change::CloneTag { to: name, .. } | Change::DeleteTag(name) => name == tag,
        _ => false,
    }
}

fn of_tag(shown: &Shown, tag: &str) -> Shown {
    let of = shown.iter().filter(|((name, ..), _)| name == tag);
    of.map(|(key, url)| (key.clone(), url.clone())).collect()
}

/// Counts, names and lists are those of what is there.
fn check_whole(state: &Nopayload) {
    for (id, list) in state.lists() {
        let iovs: Vec<_> = list.iovs().map(|id| state.iov(id).expect("there")).collect();
        assert!(iovs.iter().all(|iov| iov.list == Some(id)));
        assert!(iovs.is_sorted_by_key(|iov| iov.interval.start));
        let tag = list.tag.map(|tag| state.tag(tag).expect("there"));
        assert!(tag.is_none_or(|tag| tag.lists.get(&list.payload_type) == Some(&id)));
    }
    let attached = state.iovs().filter(|(_, iov)| iov.list.is_some()).count();
    assert_eq!(attached, state.lists().map(|(_, list)| list.iovs().len()).sum::<usize>());
    for (id, tag) in state.tags() {
        let lists = tag.lists.values().map(|list| state.list(*list).expect("there"));
        assert!(lists.into_iter().all(|list| list.tag == Some(id)));
    }
}

fn run(seed: u64) -> usize {
    let mut random = Random { random: SmallRng::seed_from_u64(seed), payloads: 0 };
    let (mut state, mut journal) = (Nopayload::default(), Vec::new());
    let first = [UNLOCKED, LOCKED, FROZEN].map(|name| Change::CreateStatus(name.to_owned()));
    let types = TYPES.map(|name| Change::CreateType(name.to_owned()));
    for change in first.into_iter().chain(types) {
        state.check(&change).expect("taken");
        state.apply(&change, journal.len() as u64 + 1, 0);
        journal.push(change);
    }
    for step in 0..150 {
        let change = random.change(&state);
        let said = format!("seed {seed}, step {step}: {change:?}");
        let Ok(touches) = state.check(&change) else { continue };
        let (before, was) = (state.clone(), shown(&state));
        journal.push(change.clone());
        state.apply(&change, journal.len() as u64, journal.len() as i64);
        let is = shown(&state);
        check_whole(&state);
        if let Some(expected) = expected(&before, &change, was.clone()) {
            assert_eq!(is, expected, "{said}");
        }
        for tag in TAGS {
            let (was, is) = (of_tag(&was, tag), of_tag(&is, tag));
            let may_change = may_change(&before, &change, tag);
            assert!(may_change || was == is, "{said}: {tag}");
            let changed = |state: &Nopayload| state.tag_named(tag).map(|(_, tag)| tag.changed);
            assert!(was == is || changed(&before) != changed(&state), "{said}: {tag}");
            let closed = status(&before, tag);
            assert!(closed != FROZEN || was == is, "{said}: {tag} is frozen");
            // A change that touches lists only lets others be made beside it.
            assert!(
                matches!(touches, Touches::All)
                    || state.tag_named(tag).is_some() == before.tag_named(tag).is_some()
            );
        }
    }
    let mut again = Nopayload::default();
    for (place, change) in journal.iter().enumerate() {
        again.check(change).expect("taken again");
        let revision = place as u64 + 1;
        again.apply(change, revision, if place < 5 { 0 } else { revision as i64 });
    }
    assert_eq!(again, state, "seed {seed}");
    let bytes = postcard::to_extend(&state, Vec::new()).expect("bytes");
    assert_eq!(postcard::from_bytes::<Nopayload>(&bytes).expect("a state"), state);
    journal.len()
}

#[test]
fn every_change_does_what_it_has_to_and_nothing_else() {
    let seed = std::env::var("CONDITIONS_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = seed.map_or(0..150, |seed: u64| seed..seed + 1);
    let made: usize = seeds.clone().map(run).sum();
    let runs = seeds.end - seeds.start;
    assert!(made as u64 > 40 * runs, "{made} changes were taken in {runs} runs");
}
