//! A password file: who may ask at all.
//!
//! The first line is a version, 4.5.0 or a later one; then `USER HOST PORT PASSWORD` a line. `#`
//! begins a comment. A file may be that of several servers: lines of other hosts and ports count
//! for users who have none of this one, as ecFlow has it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::protocol::hash_password;

/// The passwords of users, hashed as requests carry them.
#[derive(Default, PartialEq, Eq)]
pub struct Passwords(HashMap<String, String>);

/// Hashes are as good as passwords: they are not printed.
impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Passwords of {} users", self.0.len())
    }
}

/// What is wrong in a line.
fn wrong(at: (&str, usize), what: &str) -> String {
    format!("{}:{}: {what}", at.0, at.1)
}

impl Passwords {
    /// Reads the file of a server at a host and port.
    ///
    /// # Errors
    /// When a line is none of a password file, a user has two passwords for one server, or no line
    /// is of this server; the error names file, line and value, but no password.
    pub fn parse(text: &str, file: &str, server: (&str, u16)) -> Result<Self, String> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let mut lines = lines.zip(1..).filter(|(line, _)| !line.is_empty());
        let (version, number) = lines.next().unwrap_or(("", 1));
        if !is_version(version) {
            let what = format!("{version:?} is no version: begin the file with 4.5.0");
            return Err(wrong((file, number), &what));
        }
        let mut seen = HashMap::new();
        let (mut here, mut elsewhere) = (HashMap::new(), HashMap::new());
        for (line, number) in lines {
            let at = (file, number);
            let words: Vec<_> = line.split_whitespace().collect();
            let [user, host, port, password, ..] = words[..] else {
                let given = words.first().copied().unwrap_or_default();
                let what =
                    format!("user {given:?}: expected <user> <host> <port> <passwd> # comment");
                return Err(wrong(at, &what));
            };
            let Ok(port) = port.parse::<u16>() else {
                return Err(wrong(at, &format!("{port:?} is no port: it is a number to 65535")));
            };
            if let Some(before) = seen.insert((user, host, port), number) {
                let what = format!(
                    "user {user:?} of {host} {port} is in line {before} already: remove one"
                );
                return Err(wrong(at, &what));
            }
            let Some(hash) = hash_password(user, password) else {
                let what = format!(
                    "user {user:?} can't have a password: a name begins with two letters, digits \
                     or dots, and is ASCII without : ; * ! \\"
                );
                return Err(wrong(at, &what));
            };
            let users = if (host, port) == server { &mut here } else { &mut elsewhere };
            if let Entry::Vacant(free) = users.entry(user.to_owned()) {
                free.insert(hash);
            }
        }
        if here.is_empty() {
            let (host, port) = server;
            return Err(format!(
                "{file}: no line has this server's host and port: add <user> {host} {port} <passwd>"
            ));
        }
        elsewhere.extend(here);
        Ok(Self(elsewhere))
    }

    /// Whether this is the hash of the user's password.
    #[must_use]
    pub fn is_right(&self, user: &str, hash: &str) -> bool {
        let Some(meant) = self.0.get(user) else { return false };
        // As long for a hash that begins right as for another.
        let differ = meant.bytes().zip(hash.bytes()).fold(0, |all, (one, other)| all | one ^ other);
        meant.len() == hash.len() && differ == 0
    }
}

/// Whether this is 4.5.0 or a later version.
fn is_version(word: &str) -> bool {
    let word = word.split_whitespace().next().unwrap_or_default();
    let parts: Vec<Option<u32>> = word.split('.').map(|part| part.parse().ok()).collect();
    match parts[..] {
        [Some(first), Some(second), Some(third)] => (first, second, third) >= (4, 5, 0),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::Passwords;
    use crate::protocol::hash_password;

    #[test]
    fn a_user_has_the_password_of_this_server() {
        let text = "# users\n4.5.0 # version\nfred other 1 old\nfred here 3141 secret # him\n\n\
                    bill other 7 word\n";
        let parsed = Passwords::parse(text, "f", ("here", 3141)).expect("a file");
        let is_right = |user: &str, password: &str| {
            parsed.is_right(user, &hash_password(user, password).expect("a hash"))
        };
        assert!(is_right("fred", "secret") && is_right("bill", "word"));
        assert!(!is_right("fred", "old") && !is_right("anna", "secret"));
        assert!(!parsed.is_right("fred", "") && !parsed.is_right("anna", ""));
        assert!(!format!("{parsed:?}").contains("fr"));
    }

    #[test]
    fn what_is_wrong_in_a_file_is_named_with_its_line() {
        for (text, part) in [
            ("", "f:1: \"\" is no version"),
            ("fred here 1 x", "f:1: \"fred here 1 x\" is no version"),
            ("4.4.0\nfred here 1 x", "f:1: \"4.4.0\""),
            ("4.5.0\nfred here 1", "f:2: user \"fred\": expected <user>"),
            ("4.5.0\n\nfred here y x", "f:3: \"y\" is no port"),
            ("4.5.0\nfred here 1 x\nfred here 1 y", "f:3: user \"fred\" of here 1 is in line 2"),
            ("4.5.0\na here 1 x", "f:2: user \"a\" can't have a password"),
            ("4.5.0\nfred there 1 x", "f: no line has this server's host and port"),
        ] {
            let why = Passwords::parse(text, "f", ("here", 1)).expect_err(text);
            assert!(why.contains(part) && !why.contains("secret"), "{why}");
        }
    }
}
