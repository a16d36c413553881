//! The handles by which clients follow some of the suites.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::protocol::{HandleCommand, Reply};

/// One handle.
#[derive(Clone, Debug, Default)]
struct Handle {
    user: String,
    /// Shared with those who list them.
    suites: Arc<Vec<String>>,
    takes_new: bool,
    /// Whether suites were added or removed since the client took them all.
    is_changed: bool,
}

/// All handles by their numbers.
#[derive(Debug, Default)]
pub(super) struct Handles {
    all: BTreeMap<i64, Handle>,
    /// What their names take.
    bytes: usize,
}

/// The most handles.
const MAX_HANDLES: usize = 10_000;

/// The most names of suites that a client gives a handle.
const MAX_NAMES: usize = 10_000;

/// The most that the names of all handles take.
const MAX_BYTES: usize = 64 << 20;

/// What a name takes beside its own bytes.
const NAME_BYTES: usize = 32;

/// What names take.
fn bytes_of(names: &[String]) -> usize {
    names.iter().map(|name| name.len() + NAME_BYTES).sum()
}

/// Whether a name is a word of a line.
fn is_word(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control())
}

impl Handle {
    /// What its names take.
    fn bytes(&self) -> usize {
        self.user.len() + NAME_BYTES + bytes_of(&self.suites)
    }
}

impl Handles {
    fn missing(verb: &str, handle: i64) -> Reply {
        Reply::error(format!(
            "ClientSuiteMgr::{verb}: handle({handle}) does not exist. Handle dropped? Please \
             refresh GUI/re-register suites"
        ))
    }

    /// Carries a command out for a user.
    pub(super) fn command(&mut self, user: &str, command: &HandleCommand) -> Reply {
        let suites = match command {
            HandleCommand::Register { suites, .. } | HandleCommand::Add(_, suites) => &suites[..],
            _ => &[],
        };
        // A snapshot has them in a line, with blanks between them.
        if !is_word(user) || !suites.iter().all(|suite| is_word(suite)) {
            let why = "the names of a handle's user and suites have no blanks and line ends";
            return Reply::error(why);
        }
        self.carry_out(user, command)
    }

    fn carry_out(&mut self, user: &str, command: &HandleCommand) -> Reply {
        match command {
            HandleCommand::Register { suites, takes_new } => {
                if self.all.len() >= MAX_HANDLES {
                    return Reply::error(format!("more than {MAX_HANDLES} handles"));
                }
                let free = (1..).zip(self.all.keys()).find(|(free, used)| free != *used);
                let number = free.map_or(self.all.len() as i64 + 1, |(free, _)| free);
                let handle = Handle {
                    user: user.to_owned(),
                    takes_new: *takes_new,
                    is_changed: true,
                    ..Handle::default()
                };
                match self.insert(number, handle, suites) {
                    Ok(()) => Reply::Handle(number),
                    Err(why) => Reply::Error(why),
                }
            }
            HandleCommand::Drop(number) => match self.remove(*number) {
                Some(_) => Reply::Handle(0),
                None => Self::missing("remove_client_suite", *number),
            },
            HandleCommand::DropUser(name) => {
                let name = if name.is_empty() { user } else { name };
                let of_user = self.all.iter().filter(|(_, handle)| handle.user == name);
                let numbers: Vec<i64> = of_user.map(|(number, _)| *number).collect();
                if numbers.is_empty() {
                    return Reply::error(format!(
                        "ClientSuiteMgr::remove_client_suites: user({name}) has no registered \
                         handles. User dropped? Please refresh GUI/re-register suites"
                    ));
                }
                for number in numbers {
                    self.remove(number);
                }
                Reply::OK
            }
            HandleCommand::Add(number, suites) => match self.remove(*number) {
                Some(handle) => {
                    let before = handle.clone();
                    match self.insert(*number, Handle { is_changed: true, ..handle }, suites) {
                        Ok(()) => Reply::OK,
                        Err(why) => {
                            self.put(*number, before);
                            Reply::Error(why)
                        }
                    }
                }
                None => Self::missing("add_suites", *number),
            },
            HandleCommand::Remove(number, suites) => match self.remove(*number) {
                Some(mut handle) => {
                    let gone: HashSet<&String> = suites.iter().collect();
                    Arc::make_mut(&mut handle.suites).retain(|suite| !gone.contains(suite));
                    self.put(*number, Handle { is_changed: true, ..handle });
                    Reply::OK
                }
                None => Self::missing("remove_suites", *number),
            },
            HandleCommand::AutoAdd(number, is_on) => match self.all.get_mut(number) {
                Some(handle) => {
                    handle.takes_new = *is_on;
                    Reply::OK
                }
                None => Self::missing("auto_add_new_suites", *number),
            },
            HandleCommand::Suites => self.listed()(),
        }
    }

    /// What makes the list of all, on any thread.
    pub(super) fn listed(&self) -> impl FnOnce() -> Reply + Send + use<> {
        let one = |(number, handle): (&i64, &Handle)| {
            (*number, handle.user.clone(), Arc::clone(&handle.suites))
        };
        let all: Vec<_> = self.all.iter().map(one).collect();
        move || {
            let mut users: BTreeMap<String, Vec<i64>> = BTreeMap::new();
            let mut handles = Vec::with_capacity(all.len());
            for (number, user, suites) in all {
                users.entry(user).or_default().push(number);
                handles.push((number, suites.to_vec()));
            }
            Reply::Handles(users.into_iter().collect(), handles)
        }
    }

    /// Gives a handle suites, each once, and keeps it unless that is too much.
    fn insert(&mut self, number: i64, mut handle: Handle, suites: &[String]) -> Result<(), String> {
        let own = Arc::make_mut(&mut handle.suites);
        let known: HashSet<String> = own.iter().cloned().collect();
        let mut seen: HashSet<&String> = HashSet::new();
        own.extend(suites.iter().filter(|one| !known.contains(*one) && seen.insert(one)).cloned());
        let (count, bytes) = (own.len(), self.bytes + handle.bytes());
        if count > MAX_NAMES && !seen.is_empty() {
            return Err(format!("{count} suites of a handle: {MAX_NAMES} are the most"));
        }
        if bytes > MAX_BYTES {
            return Err(format!(
                "the suites of all handles are {MAX_BYTES} bytes at most, with {NAME_BYTES} more \
                 for each name: drop handles that are not in use (--ch_drop, --ch_drop_user)"
            ));
        }
        self.put(number, handle);
        Ok(())
    }

    fn put(&mut self, number: i64, handle: Handle) {
        self.bytes += handle.bytes();
        self.all.insert(number, handle);
    }

    fn remove(&mut self, number: i64) -> Option<Handle> {
        let handle = self.all.remove(&number)?;
        self.bytes -= handle.bytes();
        Some(handle)
    }

    /// Notes suites that were loaded, each once.
    /// A handle for which there is no room then is dropped: its client has to register again.
    pub(super) fn added(&mut self, suites: &[String]) {
        let mut dropped = Vec::new();
        for (number, handle) in &mut self.all {
            let known: HashSet<&String> = handle.suites.iter().collect();
            let new: Vec<&String> = suites.iter().filter(|one| !known.contains(one)).collect();
            let knows_any = new.len() < suites.len();
            if handle.takes_new && !new.is_empty() {
                let bytes: usize = new.iter().map(|one| one.len() + NAME_BYTES).sum();
                if self.bytes + bytes > MAX_BYTES {
                    dropped.push(*number);
                    continue;
                }
                self.bytes += bytes;
                let new: Vec<String> = new.into_iter().cloned().collect();
                Arc::make_mut(&mut handle.suites).extend(new);
            }
            if handle.takes_new || knows_any {
                handle.is_changed = true;
            }
        }
        for number in dropped {
            self.remove(number);
        }
    }

    /// The suites of a handle; `None` where there is no such handle.
    pub(super) fn suites(&self, number: i64) -> Option<&Arc<Vec<String>>> {
        self.all.get(&number).map(|handle| &handle.suites)
    }

    /// Whether its suites have changed since its client took them all.
    pub(super) fn is_changed(&self, number: i64) -> bool {
        self.all.get(&number).is_some_and(|handle| handle.is_changed)
    }

    /// Notes that its client has taken all.
    pub(super) fn taken(&mut self, number: i64) {
        if let Some(handle) = self.all.get_mut(&number) {
            handle.is_changed = false;
        }
    }

    /// What a snapshot keeps of them.
    pub(super) fn stored(&self) -> Vec<(String, String)> {
        let one = |(number, handle): (&i64, &Handle)| {
            let suites = handle.suites.join(" ");
            (format!("handle:{number}"), format!("{} {} {suites}", handle.user, handle.takes_new))
        };
        self.all.iter().map(one).collect()
    }

    /// Takes what a snapshot has kept.
    pub(super) fn restore(&mut self, head: &BTreeMap<String, String>) {
        for (name, value) in head {
            let number = name.strip_prefix("handle:").and_then(|number| number.parse().ok());
            let mut words = value.split(' ');
            let (Some(number), Some(user)) = (number, words.next()) else { continue };
            let takes_new = words.next() == Some("true");
            let suites: Vec<String> =
                words.filter(|one| !one.is_empty()).map(str::to_owned).collect();
            let (user, suites) = (user.to_owned(), Arc::new(suites));
            self.put(number, Handle { user, suites, takes_new, is_changed: true });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(from: usize, count: usize, bytes: usize) -> Vec<String> {
        (from..from + count).map(|place| format!("{place:0bytes$}")).collect()
    }

    fn count(handles: &Handles) -> (usize, usize) {
        let names = handles.all.values().map(|handle| handle.suites.len());
        let bytes = handles.all.values().map(Handle::bytes);
        assert_eq!(handles.bytes, bytes.sum::<usize>());
        (handles.all.len(), names.sum())
    }

    #[test]
    fn the_names_of_a_handle_and_of_all_are_bounded_and_each_is_there_once() {
        let mut handles = Handles::default();
        let tell = |handles: &mut Handles, command| handles.command("me", &command);
        let register = |suites| HandleCommand::Register { suites, takes_new: true };
        let refused = |reply: Reply, part: &str| match reply {
            Reply::Error(why) => assert!(why.contains(part), "{why}"),
            other => panic!("{other:?}"),
        };
        let twice = [names(0, MAX_NAMES, 6), names(0, 9, 6)].concat();
        assert_eq!(tell(&mut handles, register(twice)), Reply::Handle(1));
        assert_eq!(count(&handles), (1, MAX_NAMES));
        refused(tell(&mut handles, register(names(0, MAX_NAMES + 1, 6))), "10000 are the most");
        refused(tell(&mut handles, HandleCommand::Add(1, names(7, MAX_NAMES, 6))), "are the most");
        assert_eq!(tell(&mut handles, HandleCommand::Add(1, names(7, 9, 6))), Reply::OK);
        assert_eq!(count(&handles), (1, MAX_NAMES));
        assert_eq!(tell(&mut handles, HandleCommand::Remove(1, names(5, 90_000, 6))), Reply::OK);
        assert_eq!(count(&handles), (1, 5));
        let large = || register(names(0, 9_000, 2_000));
        for number in 2..5 {
            assert_eq!(tell(&mut handles, large()), Reply::Handle(number));
        }
        refused(tell(&mut handles, large()), "--ch_drop");
        assert_eq!(count(&handles), (4, 27_005));
        // A suite that is loaded finds no room in the last one any more.
        let left = MAX_BYTES - handles.bytes - NAME_BYTES;
        handles.added(&["x".repeat(left)]);
        assert_eq!(count(&handles), (1, 6));
        assert_eq!(tell(&mut handles, HandleCommand::DropUser(String::new())), Reply::OK);
        assert_eq!((count(&handles), handles.bytes), ((0, 0), 0));
    }
}
