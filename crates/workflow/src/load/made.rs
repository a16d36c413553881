//! What requests say, made once for all of them: the bytes around what differs.

use std::io::Write as _;

use bytes::Bytes;
use load::kv::Keys;
use wire::Output;

use super::generate::{Counts, generate, suite};
use super::numbers::Numbers;
use super::operations::{
    CHILD_LABEL, EVENT, GET, INIT_COMPLETE, LABEL, METER, OPERATIONS, PING, QUERY_LABEL,
    QUERY_METER, REQUEUE, SYNC_FULL,
};
use super::requests::{self, command, group, query, report};
use crate::protocol::{Alteration, Command, NodeCommand, Report, Requeue, ServerCommand, SyncKind};

/// The suite of the tasks that are asked about.
pub(super) const SUITE: &str = "load";

/// Versions as texts and numbers have ten digits, so that all requests of a kind are equally long.
pub(super) const VERSION_BYTES: usize = 10;

/// A meter's value is its version above this.
pub(super) const METER_BASE: u64 = 1_000_000_000;

/// The largest value that a meter has.
const METER_MOST: u64 = 2_000_000_000;

/// A piece of a request.
#[derive(Clone, Debug)]
enum Piece {
    /// The same in all.
    Bytes(Bytes),
    /// The task's name.
    Task,
    /// The version, in ten digits.
    Version,
}

/// A request in pieces.
type Template = Vec<Piece>;

/// What all connections of a target send.
#[derive(Debug)]
pub(super) struct Made {
    /// Of each operation its requests, one after another; none of a sync, which says numbers.
    templates: [Vec<Template>; OPERATIONS.len()],
    /// The request that prepares a target.
    pub(super) prepare: Bytes,
}

/// The place of the task's name in a template: as long as one.
const TASK_MARK: u8 = b'@';

/// The place of the version in a template; where a number belongs it is this one.
const VERSION_MARK: &str = "1987654321";
const VERSION_MARK_NUMBER: i64 = 1_987_654_321;

impl Made {
    /// The requests about tasks that are called by `keys`, beside a definition of `counts`.
    pub(super) fn new(keys: &Keys, counts: Option<&Counts>) -> Self {
        let task = String::from(char::from(TASK_MARK)).repeat(keys.bytes());
        let path = format!("/{SUITE}/tasks/{task}");
        let value = format!("{task} {VERSION_MARK}");
        let (path, paths) = (path.as_str(), vec![path.clone()]);
        let label = Command::Alter {
            paths: paths.clone(),
            alteration: Alteration::Change("label"),
            name: "l".to_owned(),
            value: value.clone(),
        };
        let own_label = Report::Label { name: "l".to_owned(), text: value };
        let meter = Report::Meter { name: "m".to_owned(), value: VERSION_MARK_NUMBER };
        let event = Report::Event { name: "e".to_owned(), is_set: true };
        let mut templates = [const { Vec::new() }; OPERATIONS.len()];
        for (operation, request) in [
            (PING, command(Command::Server(ServerCommand::Ping))),
            (LABEL, command(label)),
            (CHILD_LABEL, report(path, own_label)),
            (QUERY_LABEL, query("label", path, "l")),
            (METER, report(path, meter)),
            (QUERY_METER, query("meter", path, "m")),
            (EVENT, report(path, event)),
            (SYNC_FULL, requests::sync(SyncKind::Full, Numbers::default())),
            (GET, command(Command::Node(NodeCommand::Get, String::new()))),
        ] {
            templates[operation] = vec![split(&request, task.as_bytes())];
        }
        let state = query("state", path, "");
        let requeue = command(Command::Requeue { paths, option: Requeue::Force });
        let init = report(path, Report::Init(Vec::new()));
        let complete = report(path, Report::Complete(Vec::new()));
        for (operation, requests) in
            [(INIT_COMPLETE, vec![&init, &complete, &state]), (REQUEUE, vec![&requeue, &state])]
        {
            let template = |request: &Vec<u8>| split(request, task.as_bytes());
            templates[operation] = requests.into_iter().map(template).collect();
        }
        Self { templates, prepare: preparation(keys, counts) }
    }

    /// How many requests an operation has, one after another.
    #[inline]
    pub(super) fn requests(&self, operation: usize) -> usize {
        self.templates.get(operation).map_or(1, |requests| requests.len().max(1))
    }

    /// Appends a request of an operation, by its place among them.
    #[inline]
    pub(super) fn send(
        &self,
        (operation, place): (usize, usize),
        (keys, key): (&Keys, u64),
        version: u64,
        out: &mut Output,
    ) {
        let template = self.templates.get(operation).and_then(|requests| requests.get(place));
        for piece in template.into_iter().flatten() {
            match piece {
                Piece::Bytes(bytes) => out.put(bytes),
                Piece::Task => keys.put(key, out.tail()),
                Piece::Version => out.put(&digits(version)),
            }
        }
    }
}

/// Appends a sync since these numbers.
pub(super) fn sync(numbers: Numbers, out: &mut Output) {
    out.put(&requests::sync(SyncKind::Changes, numbers));
}

/// A number below 10^10 in ten digits.
#[inline]
pub(super) fn digits(mut number: u64) -> [u8; VERSION_BYTES] {
    let mut digits = [b'0'; VERSION_BYTES];
    for digit in digits.iter_mut().rev() {
        *digit += (number % 10) as u8;
        number /= 10;
    }
    digits
}

/// Cuts a request where the task's name and the version belong.
fn split(frame: &[u8], task: &[u8]) -> Template {
    let (mut pieces, mut rest) = (Vec::new(), frame);
    let marks = [(task, Piece::Task), (VERSION_MARK.as_bytes(), Piece::Version)];
    loop {
        let places = marks.iter().filter_map(|(mark, piece)| {
            let place = rest.windows(mark.len()).position(|window| window == *mark)?;
            Some((place, mark.len(), piece))
        });
        let Some((place, length, piece)) = places.min_by_key(|(place, ..)| *place) else { break };
        pieces.push(Piece::Bytes(Bytes::copy_from_slice(&rest[..place])));
        pieces.push(piece.clone());
        rest = &rest[place + length..];
    }
    pieces.push(Piece::Bytes(Bytes::copy_from_slice(rest)));
    pieces
}

/// The first value of a task's label, and every later one: the task's name and the version.
pub(super) fn label(keys: &Keys, key: u64, version: u32, into: &mut Vec<u8>) {
    keys.put(key, into);
    into.push(b' ');
    into.extend_from_slice(&digits(version.into()));
}

/// One request that loads the tasks and what is beside them, begins these suites, and has the
/// server run: no task of theirs is free to run. Other suites that a server has are left alone.
fn preparation(keys: &Keys, counts: Option<&Counts>) -> Bytes {
    let mut definition = Vec::new();
    // Writing to memory doesn't fail.
    let _ = write_tasks(keys, &mut definition);
    if let Some(counts) = counts {
        let _ = generate(counts, &mut definition);
    }
    let definition = String::from_utf8(definition).unwrap_or_default();
    let load = Command::Load { force: false, definition, file: "load.def".to_owned() };
    let beside = (0..counts.map_or(0, |counts| counts.suites)).map(suite);
    let suites = std::iter::once(SUITE.to_owned()).chain(beside);
    let begun = suites.map(|suite| Command::Begin { suite, force: false });
    let restart = Command::Server(ServerCommand::Restart);
    group(std::iter::once(load).chain(begun).chain([restart]).collect()).into()
}

/// The suite of the tasks, which wait for an event that nothing sets.
fn write_tasks(keys: &Keys, out: &mut Vec<u8>) -> std::io::Result<()> {
    let first = load::kv::PREPARED;
    writeln!(out, "suite {SUITE}\n  task gate\n    defstatus complete\n    event go")?;
    writeln!(out, "  family tasks")?;
    for key in 0..keys.count() {
        out.extend_from_slice(b"    task ");
        keys.put(key, out);
        writeln!(out, "\n      trigger ../gate:go == set\n      edit ECF_PASS 'FREE'")?;
        out.extend_from_slice(b"      label l \"");
        label(keys, key, first, out);
        let least = METER_BASE + u64::from(first);
        writeln!(out, "\"\n      meter m {least} {METER_MOST} {METER_MOST}\n      event e")?;
    }
    writeln!(out, "  endfamily\nendsuite")
}

#[cfg(test)]
mod tests {
    use super::super::operations::SYNC;
    use super::*;
    use crate::protocol::frame::{HEAD_BYTES, length};

    #[test]
    fn a_request_has_its_task_and_version_and_its_length() {
        let keys = Keys::new(100, 8).expect("keys");
        let made = Made::new(&keys, None);
        for operation in 0..OPERATIONS.len() {
            let mut out = Output::new(1 << 20);
            let last = made.requests(operation) - 1;
            match operation {
                SYNC => sync(Numbers { state: 57, modify: 5 }, &mut out),
                _ => made.send((operation, last), (&keys, 42), METER_BASE + 7, &mut out),
            }
            let bytes = out.take();
            let (head, document) = bytes.split_first_chunk::<HEAD_BYTES>().expect("a head");
            assert_eq!(length(*head, 1 << 20), Ok(document.len() as u64));
            let line = crate::protocol::read(document).expect("a request").line();
            let said = match operation {
                LABEL => "--alter change label l k0000042 1000000007 /load/tasks/k0000042 :",
                CHILD_LABEL => "chd:label l 'k0000042 1000000007' /load/tasks/k0000042",
                METER => "chd:meter m 1000000007 /load/tasks/k0000042",
                EVENT => "chd:event e 1 /load/tasks/k0000042",
                QUERY_LABEL => "--query=label /load/tasks/k0000042:l",
                QUERY_METER => "--query=meter /load/tasks/k0000042:m",
                INIT_COMPLETE | REQUEUE => "--query=state /load/tasks/k0000042",
                SYNC => "--sync=0 57 5",
                _ => "--",
            };
            assert!(line.starts_with(said), "{line}");
        }
        let definition = {
            let mut text = Vec::new();
            write_tasks(&keys, &mut text).expect("memory");
            String::from_utf8(text).expect("text")
        };
        let parsed = crate::definition::parse(&definition, "load.def").expect("a definition");
        assert!(parsed.tree.find("/load/tasks/k0000099").is_some());
    }
}
