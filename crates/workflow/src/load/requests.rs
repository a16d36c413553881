//! Requests as bytes, in the words of one user and of jobs that any task takes.

use super::numbers::Numbers;
use crate::protocol::frame::{HEAD_BYTES, frame};
use crate::protocol::{Body, Child, Command, Report, Request, SyncKind, User, write};

/// The bytes of a user's command.
pub(super) fn command(command: Command) -> Vec<u8> {
    let user = User { name: "loadline".to_owned(), ..User::default() };
    framed(Body::User(user, command))
}

/// The bytes of several commands as one request.
pub(super) fn group(commands: Vec<Command>) -> Vec<u8> {
    let user = User { name: "loadline".to_owned(), ..User::default() };
    let request = |command| {
        let body = Body::User(user.clone(), command);
        Request { host: "loadline".to_owned(), body }
    };
    command(Command::Group(commands.into_iter().map(request).collect()))
}

/// The bytes of a job's report, with the password that any task takes.
pub(super) fn report(path: &str, report: Report) -> Vec<u8> {
    let child = Child {
        path: path.to_owned(),
        password: "_DJP_".to_owned(),
        process_id: "1".to_owned(),
        try_no: 1,
    };
    framed(Body::Child(child, report))
}

/// The bytes of a sync of a client that has these numbers.
pub(super) fn sync(kind: SyncKind, numbers: Numbers) -> Vec<u8> {
    let Numbers { state: state_change_no, modify: modify_change_no } = numbers;
    command(Command::Sync { kind, handle: 0, state_change_no, modify_change_no })
}

/// The bytes of a question for a node's attribute.
pub(super) fn query(kind: &str, path: &str, attribute: &str) -> Vec<u8> {
    let [kind, path, attribute] = [kind, path, attribute].map(str::to_owned);
    command(Command::Query { kind, path, attribute, task: String::new() })
}

fn framed(body: Body) -> Vec<u8> {
    let document = write(&Request { host: "loadline".to_owned(), body });
    let mut out = Vec::with_capacity(document.len() + HEAD_BYTES);
    frame(&mut out, |out| out.extend_from_slice(&document));
    out
}
