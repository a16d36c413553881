//! The handles by which clients follow some of the suites.

use std::collections::BTreeMap;

use crate::protocol::{HandleCommand, Reply};

/// One handle.
#[derive(Clone, Debug, Default)]
struct Handle {
    user: String,
    suites: Vec<String>,
    takes_new: bool,
    /// Whether suites were added or removed since the client took them all.
    is_changed: bool,
}

/// All handles by their numbers.
#[derive(Debug, Default)]
pub(super) struct Handles(BTreeMap<i64, Handle>);

/// The most handles.
const MAX_HANDLES: usize = 10_000;

/// Whether a name is a word of a line.
fn is_word(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control())
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
                if self.0.len() >= MAX_HANDLES {
                    return Reply::error(format!("more than {MAX_HANDLES} handles"));
                }
                let free = (1..).zip(self.0.keys()).find(|(free, used)| free != *used);
                let number = free.map_or(self.0.len() as i64 + 1, |(free, _)| free);
                let handle = Handle {
                    user: user.to_owned(),
                    suites: suites.clone(),
                    takes_new: *takes_new,
                    is_changed: true,
                };
                self.0.insert(number, handle);
                Reply::Handle(number)
            }
            HandleCommand::Drop(number) => match self.0.remove(number) {
                Some(_) => Reply::Handle(0),
                None => Self::missing("remove_client_suite", *number),
            },
            HandleCommand::DropUser(name) => {
                let name = if name.is_empty() { user } else { name };
                let before = self.0.len();
                self.0.retain(|_, handle| handle.user != name);
                if self.0.len() == before {
                    return Reply::error(format!(
                        "ClientSuiteMgr::remove_client_suites: cannot find handle for user {name}"
                    ));
                }
                Reply::OK
            }
            HandleCommand::Add(number, suites) => match self.0.get_mut(number) {
                Some(handle) => {
                    for suite in suites {
                        if !handle.suites.contains(suite) {
                            handle.suites.push(suite.clone());
                        }
                    }
                    handle.is_changed = true;
                    Reply::OK
                }
                None => Self::missing("add_suites", *number),
            },
            HandleCommand::Remove(number, suites) => match self.0.get_mut(number) {
                Some(handle) => {
                    handle.suites.retain(|suite| !suites.contains(suite));
                    handle.is_changed = true;
                    Reply::OK
                }
                None => Self::missing("remove_suites", *number),
            },
            HandleCommand::AutoAdd(number, is_on) => match self.0.get_mut(number) {
                Some(handle) => {
                    handle.takes_new = *is_on;
                    Reply::OK
                }
                None => Self::missing("auto_add_new_suites", *number),
            },
            HandleCommand::Suites => {
                let mut users: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
                for (number, handle) in &self.0 {
                    users.entry(&handle.user).or_default().push(*number);
                }
                let users = users.into_iter().map(|(user, all)| (user.to_owned(), all)).collect();
                let suites = |(number, handle): (&i64, &Handle)| (*number, handle.suites.clone());
                Reply::Handles(users, self.0.iter().map(suites).collect())
            }
        }
    }

    /// Notes a suite that was loaded.
    pub(super) fn added(&mut self, suite: &str) {
        for handle in self.0.values_mut() {
            let is_new = !handle.suites.iter().any(|one| one == suite);
            if handle.takes_new && is_new {
                handle.suites.push(suite.to_owned());
            }
            if handle.takes_new || !is_new {
                handle.is_changed = true;
            }
        }
    }

    /// The suites of a handle; `None` where there is no such handle.
    pub(super) fn suites(&self, number: i64) -> Option<&[String]> {
        self.0.get(&number).map(|handle| handle.suites.as_slice())
    }

    /// Whether its suites have changed since its client took them all.
    pub(super) fn is_changed(&self, number: i64) -> bool {
        self.0.get(&number).is_some_and(|handle| handle.is_changed)
    }

    /// Notes that its client has taken all.
    pub(super) fn taken(&mut self, number: i64) {
        if let Some(handle) = self.0.get_mut(&number) {
            handle.is_changed = false;
        }
    }

    /// What a snapshot keeps of them.
    pub(super) fn stored(&self) -> Vec<(String, String)> {
        let one = |(number, handle): (&i64, &Handle)| {
            let suites = handle.suites.join(" ");
            (format!("handle:{number}"), format!("{} {} {suites}", handle.user, handle.takes_new))
        };
        self.0.iter().map(one).collect()
    }

    /// Takes what a snapshot has kept.
    pub(super) fn restore(&mut self, head: &BTreeMap<String, String>) {
        for (name, value) in head {
            let number = name.strip_prefix("handle:").and_then(|number| number.parse().ok());
            let mut words = value.split(' ');
            let (Some(number), Some(user)) = (number, words.next()) else { continue };
            let takes_new = words.next() == Some("true");
            let suites = words.filter(|one| !one.is_empty()).map(str::to_owned).collect();
            let handle = Handle { user: user.to_owned(), suites, takes_new, is_changed: true };
            self.0.insert(number, handle);
        }
    }
}
