//! Recorded traffic: requests of clients with their times and answers, a line of JSON each.
//!
//! The first line is [`Header`]'s, each other one [`Exchange`]'s, in the order in which answers
//! came. Passwords are left out of requests ([`without_passwords`]), and the text of answers that
//! may have any is not kept ([`Answered::of`]). No I/O.

use serde::{Deserialize, Serialize};

use crate::load::Numbers;
use crate::protocol::{
    Answer, Body, Command, LogCommand, NodeCommand, PathsCommand, Request, ServerCommand,
    SyncAnswer, ZombieAction, read_answer, read_sync_answer,
};

/// The version of the lines.
pub const VERSION: u32 = 1;

/// The longest answer whose text is kept.
pub const KEPT_BYTES: usize = 64 << 10;

/// The kind of what is no answer, or never came.
const NO_ANSWER: &str = "no answer";

/// The kind of what a zombie is answered.
const BLOCKED: &str = "BlockClientZombieCmd";

/// The variable of a job's password.
const PASSWORD: &str = "ECF_PASS";

/// What a node's state has before the password of its job.
const OF_STATE: &str = " passwd:";

/// The password that jobs of any task may use, in place of their own.
const ANY_JOB: &str = "_DJP_";

/// A password that is no job's: a task that has not been submitted has an empty one.
const NO_JOB: &str = "zombie";

/// The first line.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The version: [`VERSION`].
    pub loadline_traffic: u32,
    /// The server that answered.
    pub server: String,
    /// When it was begun, in seconds since 1970.
    pub begun: u64,
}

/// A request and its answer.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When the request had come, in microseconds since the first line.
    pub at_us: u64,
    /// How long the server took to answer it.
    pub took_us: u64,
    /// The request's document, without passwords.
    pub request: String,
    /// The answer.
    #[serde(flatten)]
    pub answer: Answered,
}

/// An answer, as far as it is compared.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// What it is: a type of ecFlow's, `StcCmd 0`, or `ErrorCmd`.
    pub kind: String,
    /// Its length.
    pub bytes: u64,
    /// Its CRC-32.
    pub crc: u32,
    /// The document, of [`KEPT_BYTES`] at most, where it has no password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The change numbers that it tells a client that follows: of states, and of structure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<(i64, i64)>,
}

impl Answered {
    /// Of the answer's document to a request. Trees, changes, zombies, files and the log have the
    /// passwords of jobs that run: only the text of what can't have one is kept.
    #[must_use]
    pub fn of(document: &[u8], request: &Request) -> Self {
        let kind = match read_answer(document) {
            Ok(Answer::Standard(number)) => format!("StcCmd {number}"),
            Ok(Answer::Error(_)) => "ErrorCmd".to_owned(),
            Ok(Answer::Other(kind)) => kind.into_owned(),
            Ok(Answer::Text(_)) => "text".to_owned(),
            Ok(Answer::Definition(_)) => "definition".to_owned(),
            Err(_) => NO_ANSWER.to_owned(),
        };
        let is_kept = document.len() <= KEPT_BYTES && !may_have_passwords(&kind, request);
        let text = is_kept.then(|| String::from_utf8(document.to_vec()).ok()).flatten();
        let mut crc = crc32fast::Hasher::new();
        crc.update(document);
        let numbers = numbers(&kind, document);
        let bytes = document.len() as u64;
        Self { kind, bytes, crc: crc.finalize(), answer: text, numbers }
    }

    /// Of a request whose answer never came, though the server may have done it.
    #[must_use]
    pub fn none() -> Self {
        let kind = NO_ANSWER.to_owned();
        Self { kind, bytes: 0, crc: 0, answer: None, numbers: None }
    }

    /// Whether none came.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.bytes == 0 && self.kind == NO_ANSWER
    }

    /// How another answer to the same request compares with this one.
    #[must_use]
    pub fn against(&self, other: &Self) -> Same {
        if self.kind != other.kind {
            Same::No
        } else if (self.bytes, self.crc) == (other.bytes, other.crc) {
            Same::Bytes
        } else {
            Same::Kind
        }
    }
}

/// How two answers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Same {
    /// To the byte.
    Bytes,
    /// By their kind.
    Kind,
    /// Not at all.
    No,
}

fn numbers(kind: &str, document: &[u8]) -> Option<(i64, i64)> {
    if !matches!(kind, "definition" | "SSyncCmd") {
        return None;
    }
    match read_sync_answer(document).ok()? {
        SyncAnswer::Since { state_change_no, modify_change_no, .. } => {
            Some((state_change_no.into(), modify_change_no.into()))
        }
        SyncAnswer::Whole(text) => {
            let numbers = Numbers::of(&text);
            Some((numbers.state, numbers.modify))
        }
        SyncAnswer::Refused(_) => None,
    }
}

/// Whether an answer of this kind to a request may have the password of a job.
fn may_have_passwords(kind: &str, request: &Request) -> bool {
    match &request.body {
        Body::User(_, Command::Query { attribute, .. }) => attribute == PASSWORD,
        // A group's error stands among the answers of its other members.
        Body::User(_, Command::Group(_)) => !kind.starts_with("StcCmd"),
        _ => !kind.starts_with("StcCmd") && kind != "ErrorCmd",
    }
}

/// Takes the passwords out of a request, those of a group's requests, too.
pub fn without_passwords(request: &mut Request) {
    change_passwords(request, &|_| String::new(), "");
}

/// Gives a request passwords again: users what `of` says for their names, jobs the one that those
/// of any task may use, unless they were answered to be zombies, which a right one would make the
/// task's job.
pub fn with_passwords(request: &mut Request, of: &impl Fn(&str) -> String, before: &Answered) {
    let is_zombie = before.kind == BLOCKED;
    change_passwords(request, of, if is_zombie { NO_JOB } else { ANY_JOB });
}

fn change_passwords(request: &mut Request, of: &impl Fn(&str) -> String, job: &str) {
    match &mut request.body {
        Body::Child(child, _) => job.clone_into(&mut child.password),
        Body::User(user, command) => {
            user.password = of(&user.name);
            match command {
                Command::Group(all) => {
                    all.iter_mut().for_each(|one| change_passwords(one, of, job));
                }
                // With any password where it is empty.
                Command::Zombie { password, .. } => password.clear(),
                // A definition may be one with states.
                Command::Load { definition: text, .. }
                | Command::Replace { definition: text, .. }
                | Command::Move { node: text, .. } => *text = without_those_of_states(text),
                _ => {}
            }
        }
    }
}

/// A definition, without the passwords in its states.
fn without_those_of_states(text: &str) -> String {
    let mut parts = text.split(OF_STATE);
    let mut left = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        left.push_str(&part[part.find(char::is_whitespace).unwrap_or(part.len())..]);
    }
    left
}

/// Takes out of a request what acts beyond the tree of the server that is asked again, within a
/// group, too: what ends it, signals jobs, which are another server's, sends nodes away, or writes
/// files where the recorded suites and users said. Returns how many commands that were, and what is
/// left of the request.
#[must_use]
pub fn within_the_tree(mut request: Request) -> (u64, Option<Request>) {
    if let Body::User(_, Command::Group(all)) = &mut request.body {
        let before = all.len();
        all.retain(|one| !acts_beyond(one));
        let (count, is_left) = ((before - all.len()) as u64, before == 0 || !all.is_empty());
        return (count, is_left.then_some(request));
    }
    if acts_beyond(&request) { (1, None) } else { (0, Some(request)) }
}

fn acts_beyond(request: &Request) -> bool {
    let Body::User(_, command) = &request.body else { return false };
    match command {
        Command::Server(ServerCommand::Terminate)
        | Command::Paths { command: PathsCommand::Kill | PathsCommand::Status, .. }
        | Command::Zombie { action: ZombieAction::Kill, .. }
        | Command::Plug { .. }
        | Command::Node(NodeCommand::CheckJobs, _)
        | Command::Log(LogCommand::New(_)) => true,
        Command::Group(all) => all.iter().any(acts_beyond),
        _ => false,
    }
}

/// The word by which requests are counted: `--load`, `chd:init`.
#[must_use]
pub fn word(request: &Request) -> String {
    let line = request.line();
    line.split([' ', '=']).next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::frame::HEAD_BYTES;
    use crate::protocol::{Child, Reply, Report, User};

    fn user(password: &str, command: Command) -> Request {
        let user = User { name: "me".to_owned(), password: password.to_owned(), is_custom: false };
        Request { host: "h".to_owned(), body: Body::User(user, command) }
    }

    fn ping() -> Request {
        user("", Command::Server(ServerCommand::Ping))
    }

    fn answer(reply: &Reply) -> Vec<u8> {
        let mut framed = Vec::new();
        reply.write(&mut framed);
        framed.split_off(HEAD_BYTES)
    }

    #[test]
    fn of_answers_that_may_have_a_job_s_password_the_text_is_not_kept() {
        let query = |attribute: &str| {
            let (kind, path, task) = Default::default();
            user("", Command::Query { kind, path, attribute: attribute.to_owned(), task })
        };
        let group = user("", Command::Group(vec![ping()]));
        let text = || Reply::Text("x".to_owned());
        let several = || Reply::Group(vec![Reply::error("why"), text()]);
        for (reply, request, is_kept) in [
            (Reply::OK, ping(), true),
            (Reply::error("why"), ping(), true),
            (text(), query("V"), true),
            (text(), query("ECF_PASS"), false),
            (text(), user("", Command::Log(LogCommand::Get(9))), false),
            (Reply::Zombies(Vec::new()), ping(), false),
            (Reply::Node("task t # passwd:x".to_owned().into()), ping(), false),
            (Reply::OK, group.clone(), true),
            (several(), group, false),
        ] {
            let answered = Answered::of(&answer(&reply), &request);
            assert_eq!(answered.answer.is_some(), is_kept, "{answered:?} {request:?}");
        }
    }

    #[test]
    fn passwords_are_left_out_of_requests_and_of_those_in_groups() {
        let zombie = Command::Zombie {
            action: ZombieAction::Fob,
            process_id: "1".to_owned(),
            password: "secret".to_owned(),
            paths: vec!["/s/t".to_owned()],
        };
        let child = Child { password: "secret".to_owned(), ..Child::default() };
        let report = Request {
            host: "h".to_owned(),
            body: Body::Child(child, Report::Abort(String::new())),
        };
        let group = vec![user("secret", zombie), report];
        let mut request = user("secret", Command::Group(group));
        without_passwords(&mut request);
        assert!(!format!("{request:?}").contains("secret"), "{request:?}");
        let blocked = Answered { kind: BLOCKED.to_owned(), ..Answered::none() };
        let mut zombie = request.clone();
        with_passwords(&mut zombie, &|name| format!("of {name}"), &blocked);
        assert!(!format!("{zombie:?}").contains(ANY_JOB), "{zombie:?}");
        with_passwords(&mut request, &|name| format!("of {name}"), &Answered::none());
        let shown = format!("{request:?}");
        assert_eq!(shown.matches("of me").count(), 2, "{shown}");
        assert_eq!(shown.matches(ANY_JOB).count(), 1, "{shown}");
        let definition =
            "suite s\n task t # passwd:secret rid:1\n task u # passwd:secret".to_owned();
        let mut request =
            user("", Command::Load { force: false, definition, file: "f".to_owned() });
        without_passwords(&mut request);
        let meant = "suite s\n task t # rid:1\n task u #";
        assert!(
            matches!(&request.body, Body::User(_, Command::Load { definition, .. })
            if definition == meant),
            "{request:?}"
        );
    }

    #[test]
    fn what_acts_beyond_the_tree_is_taken_out_of_groups_too() {
        let kill = |command| {
            let paths = vec!["/s".to_owned()];
            user("", Command::Paths { command, paths, force: false })
        };
        let zombie = |action| {
            let (process_id, password, paths) = Default::default();
            user("", Command::Zombie { action, process_id, password, paths })
        };
        let server = |command| user("", Command::Server(command));
        let (source, destination) = ("/s".to_owned(), "other:3141".to_owned());
        let beyond = [
            server(ServerCommand::Terminate),
            kill(PathsCommand::Kill),
            kill(PathsCommand::Status),
            zombie(ZombieAction::Kill),
            user("", Command::Plug { source, destination }),
            user("", Command::Node(NodeCommand::CheckJobs, String::new())),
            user("", Command::Log(LogCommand::New("/live.log".to_owned()))),
        ];
        let within = [
            server(ServerCommand::Ping),
            kill(PathsCommand::Suspend),
            zombie(ZombieAction::Fob),
            user("", Command::Log(LogCommand::Path)),
        ];
        for one in &beyond {
            assert_eq!(within_the_tree(one.clone()), (1, None), "{one:?}");
        }
        for one in &within {
            assert_eq!(within_the_tree(one.clone()), (0, Some(one.clone())));
        }
        let group = |all: &[Request]| user("", Command::Group(all.to_vec()));
        let all = [&beyond[..3], &within, &beyond[3..]].concat();
        assert_eq!(within_the_tree(group(&all)), (7, Some(group(&within))));
        assert_eq!(within_the_tree(group(&beyond)), (7, None));
        assert_eq!(within_the_tree(group(&[])), (0, Some(group(&[]))));
    }

    #[test]
    fn answers_are_compared_by_bytes_and_by_kind() {
        let standard = |number: u8| {
            let data = format!("{{\"api_\": {number}}}");
            let pointer = "\"polymorphic_id\": 1, \"polymorphic_name\": \"StcCmd\"";
            let cmd = format!("{{{pointer}, \"ptr_wrapper\": {{\"id\": 1, \"data\": {data}}}}}");
            Answered::of(format!("{{\"x\": {{\"stc_cmd_\": {cmd}}}}}").as_bytes(), &ping())
        };
        let (done, blocked) = (standard(0), standard(1));
        assert_eq!(done.kind, "StcCmd 0");
        assert_eq!(done.against(&standard(0)), Same::Bytes);
        assert_eq!(done.against(&blocked), Same::No);
        let other = Answered { crc: 7, ..done.clone() };
        assert_eq!(done.against(&other), Same::Kind);
        let long = Answered::of(&vec![0xff; KEPT_BYTES + 1], &ping());
        assert_eq!((long.kind.as_str(), long.answer), ("no answer", None));
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let answer = Answered { numbers: Some((3, 4)), ..Answered::of(b"\"\\u0001\" \n", &ping()) };
        let exchange =
            Exchange { at_us: 1, took_us: 2, request: "{\n\"a\": 1}".to_owned(), answer };
        let line = serde_json::to_string(&exchange).expect("JSON");
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(serde_json::from_str::<Exchange>(&line).expect("read"), exchange);
        assert_eq!(word(&ping()), "--ping");
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_an_answer_s_digest_fail(bytes: Vec<u8>) {
            let answered = Answered::of(&bytes, &ping());
            proptest::prop_assert_eq!(answered.against(&answered.clone()), Same::Bytes);
        }
    }
}
