//! The white list: who may read, and who may change, and below which paths.
//!
//! The first line is a version; then a user a line, `*` for all; a `-` before it lets them read
//! only; paths behind it, with commas between, restrict it to what is below them.

use std::fmt::Write as _;

use crate::protocol::{Body, Command, HandleCommand, PathsCommand, Request, ServerCommand};

/// The largest file.
pub(super) const MAX_BYTES: u64 = 16 << 20;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    /// Of this user, or of all.
    user: Option<String>,
    writes: bool,
    /// Below these paths; everywhere where there is none.
    paths: Vec<String>,
}

/// A white list; without a file everybody may do everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists(Option<Vec<Rule>>);

impl Lists {
    /// Reads the text of `file`.
    ///
    /// # Errors
    /// When a line is none of a white list; the error names file, line and value.
    pub fn parse(text: &str, file: &str) -> Result<Self, String> {
        let without_comment = |line: &'_ str| -> String {
            line.split('#').next().unwrap_or_default().trim().to_owned()
        };
        let lines = text.lines().map(without_comment).zip(1..);
        let mut lines = lines.filter(|(line, _)| !line.is_empty());
        let Some((version, number)) = lines.next() else { return Ok(Self::default()) };
        if !version.split('.').all(|part| part.parse::<u32>().is_ok()) {
            return Err(format!(
                "{file}:{number}: {version:?} is no version: begin the file with 4.4.14"
            ));
        }
        let mut rules = Vec::new();
        for (line, number) in lines {
            let (user, paths) = line.split_once(char::is_whitespace).unwrap_or((&line, ""));
            let (user, writes) = match user.strip_prefix('-') {
                Some(user) => (user, false),
                None => (user, true),
            };
            let paths: Vec<_> =
                paths.split(',').map(str::trim).filter(|one| !one.is_empty()).collect();
            if let Some(path) = paths.iter().find(|path| !path.starts_with('/')) {
                return Err(format!("{file}:{number}: {path:?} is no path: it begins with /"));
            }
            if user.is_empty() {
                return Err(format!("{file}:{number}: a user, or *, belongs before the paths"));
            }
            let user = (user != "*").then(|| user.to_owned());
            rules.push(Rule {
                user,
                writes,
                paths: paths.into_iter().map(str::to_owned).collect(),
            });
        }
        Ok(Self(Some(rules)))
    }

    /// Whether a request may be carried out.
    ///
    /// # Errors
    /// In ecFlow's words, when it may not.
    pub fn check(&self, request: &Request) -> Result<(), String> {
        let (Some(rules), Body::User(user, command)) = (&self.0, &request.body) else {
            return Ok(());
        };
        if let Command::Group(all) = command {
            return all.iter().try_for_each(|request| self.check(request));
        }
        if matches!(command, Command::Message(_) | Command::Server(ServerCommand::Ping)) {
            return Ok(());
        }
        let writes = writes(command);
        let of_user = |rule: &&Rule| rule.user.as_ref().is_none_or(|one| *one == user.name);
        let may = |path: &str| {
            let rules = rules.iter().filter(of_user).filter(|rule| rule.writes || !writes);
            rules.into_iter().any(|rule| {
                rule.paths.is_empty() || rule.paths.iter().any(|top| is_below(path, top))
            })
        };
        let paths = paths(command);
        let is_granted = if paths.is_empty() { may("") } else { paths.into_iter().all(may) };
        if is_granted {
            return Ok(());
        }
        let name = &user.name;
        if writes && rules.iter().any(|rule| of_user(&rule)) {
            return Err(format!(
                "[ authentication failed ] User {name} has no *write* access. Please see your \
                 administrator."
            ));
        }
        Err(refused(name, command))
    }
}

/// Whether a path is `top`, or below it.
fn is_below(path: &str, top: &str) -> bool {
    let top = top.trim_end_matches('/');
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':']))
}

/// Whether a command changes anything.
fn writes(command: &Command) -> bool {
    match command {
        Command::Server(command) => !matches!(
            command,
            ServerCommand::Ping
                | ServerCommand::Zombies
                | ServerCommand::StatsText
                | ServerCommand::Suites
                | ServerCommand::Stats
                | ServerCommand::LoadGraph
        ),
        Command::Handle(command) => matches!(command, HandleCommand::DropUser(_)),
        Command::Paths { command, .. } => {
            !matches!(command, PathsCommand::Check | PathsCommand::History | PathsCommand::Status)
        }
        Command::Node(command, _) => matches!(command, crate::protocol::NodeCommand::Submit),
        Command::Log(command) => !matches!(
            command,
            crate::protocol::LogCommand::Get(_) | crate::protocol::LogCommand::Path
        ),
        Command::Version
        | Command::Sync { .. }
        | Command::Show
        | Command::File { .. }
        | Command::Query { .. } => false,
        _ => true,
    }
}

/// The paths that a command names.
fn paths(command: &Command) -> Vec<&str> {
    match command {
        Command::Node(_, path)
        | Command::Order { path, .. }
        | Command::Replace { path, .. }
        | Command::File { path, .. }
        | Command::EditScript { path, .. }
        | Command::Query { path, .. } => {
            if path.is_empty() {
                Vec::new()
            } else {
                vec![path]
            }
        }
        Command::Delete { paths, .. }
        | Command::Paths { paths, .. }
        | Command::Zombie { paths, .. }
        | Command::Requeue { paths, .. }
        | Command::Run { paths, .. }
        | Command::Force { paths, .. }
        | Command::FreeDependencies { paths, .. }
        | Command::Alter { paths, .. } => paths.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

/// ecFlow's words to a user who may do nothing: with the path or paths, where it looks at them.
pub(super) fn refused(name: &str, command: &Command) -> String {
    let mut words = format!("[ authentication failed ] User '{name}' is not allowed any access.");
    match command {
        Command::Query { .. } | Command::Zombie { .. } => {}
        Command::Node(_, path)
        | Command::Order { path, .. }
        | Command::Replace { path, .. }
        | Command::File { path, .. }
        | Command::EditScript { path, .. } => {
            let _ = write!(words, " path({path})");
        }
        _ => {
            let paths = paths(command);
            if !paths.is_empty() {
                words.push_str(" paths(");
                paths.iter().for_each(|path| _ = write!(words, "{path},"));
                words.push(')');
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Lists;
    use crate::protocol::{Body, Command, NodeCommand, Request, ServerCommand, User};

    fn may(list: &str, user: &str, command: Command) -> bool {
        let lists = Lists::parse(list, "lists").expect("a list");
        let user = User { name: user.to_owned(), ..User::default() };
        lists.check(&Request { host: String::new(), body: Body::User(user, command) }).is_ok()
    }

    #[test]
    fn a_list_lets_in_who_is_listed_and_where() {
        let get = |path: &str| Command::Node(NodeCommand::Get, path.to_owned());
        let restart = || Command::Server(ServerCommand::Restart);
        let delete = |path: &str| Command::Delete { paths: vec![path.to_owned()], force: false };
        for (list, user, command, meant) in [
            ("4.4.14\nroot /z\n-*", "root", get(""), true),
            ("4.4.14\nroot /z\n-*", "root", restart(), false),
            ("4.4.14\nroot /z\n-*", "root", delete("/z/a"), true),
            ("4.4.14\nroot /z\n-*", "root", delete("/zz"), false),
            ("4.4.14\nother\nroot /z", "root", get(""), false),
            ("4.4.14\nother\nroot /z", "other", restart(), true),
            ("4.4.14\n-root # reads", "root", get("/a"), true),
            ("4.4.14\n-root", "root", restart(), false),
            ("4.4.14\nother", "root", get(""), false),
            ("4.4.14\nother", "root", Command::Server(ServerCommand::Ping), true),
            ("4.4.14\n*", "any", restart(), true),
            ("", "any", restart(), true),
        ] {
            assert_eq!(may(list, user, command), meant, "{list:?} {user}");
        }
        for wrong in ["root", "4.4.14\nroot z", "4.4.14\n- /z"] {
            Lists::parse(wrong, "lists").expect_err(wrong);
        }
    }

    /// A text of lines such as a white list has, and of others.
    fn text() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            Just("4.4.14".to_owned()),
            "-?(\\*|a|root)( {1,2}/[az/]{0,3}(, ?/?[az]{0,2}){0,2})?( ?#.{0,3})?",
            "[-*#/, \\t.0-9a-zé]{0,8}",
            any::<String>(),
        ];
        prop::collection::vec(line, 0..6).prop_map(|lines| lines.join("\n"))
    }

    proptest! {
        #[test]
        fn any_text_is_refused_with_its_line_or_lets_no_one_change_what_they_may_not_read(
            text in text(),
            user in "([a*]|root)?",
            path in "(/[az]{0,2}){0,3}",
        ) {
            match Lists::parse(&text, "lists") {
                Err(why) => {
                    let line = why.strip_prefix("lists:").and_then(|why| why.split(':').next());
                    let line = line.and_then(|line| line.parse::<usize>().ok());
                    prop_assert!(line.is_some_and(|line| line <= text.lines().count()), "{why}");
                }
                Ok(_) => {
                    let paths = vec![path.clone()];
                    let reads = may(&text, &user, Command::Node(NodeCommand::Get, path));
                    let changes = may(&text, &user, Command::Delete { paths, force: false });
                    prop_assert!(reads || !changes);
                }
            }
        }
    }
}
