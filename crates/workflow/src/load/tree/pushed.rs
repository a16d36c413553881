//! The step `pushed`: a task is changed, until another client has the change. One of this program's
//! own protocol is sent it; one of ecFlow's asks as soon as the change is answered, which is as
//! soon as anyone who asks can have it.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::super::numbers::Numbers;
use super::super::requests::{command, sync};
use super::exchange::SILENT_FOR;
use super::known::State;
use super::made::Made;
use super::site::{Result, Site, wrong};
use crate::binary;
use crate::client::receive;
use crate::model::{ALL_LEVELS, Attribute, Portion, Tree};
use crate::protocol::header::FOLLOW_MS;
use crate::protocol::{
    Alteration, Command, Encoding, Header, SyncAnswer, SyncKind, read_sync_answer,
};

/// How many changes a step makes.
const CHANGES: u32 = 20;

/// What lies between two: a server sends nothing sooner after the last answer.
const PAUSE: Duration = Duration::from_millis(2 * *FOLLOW_MS.start() as u64);

/// The longest answer: what one change brings, or a whole tree of some millions of nodes.
const MAX_ANSWER_BYTES: u64 = 1 << 30;

/// The variable that is changed.
const NAME: &str = "LOADLINE";

/// Makes the changes one by one. Returns how long all of them took, each from when its request was
/// sent until the other client had it.
pub(super) fn changes(
    made: &Made,
    (site, state): (&mut Site, &mut State),
    figures: &mut Vec<(&'static str, f64)>,
) -> Result<Duration> {
    let Some(task) = made.tasks.last() else { return wrong("there is no task to change") };
    let mut other = Other::new(site, state.numbers)?;
    let (mut all, mut bytes, mut cpu_ns) = (Vec::new(), 0, 0);
    for number in 0..CHANGES {
        std::thread::sleep(PAUSE);
        let value = number.to_string();
        let change = command(Command::Alter {
            paths: vec![task.clone()],
            alteration: Alteration::Add("variable"),
            name: NAME.to_owned(),
            value: value.clone(),
        });
        let before = site.process.cpu_ns();
        let begun = Instant::now();
        site.tell(&change)?;
        state.has_changed = true;
        bytes += other.has(site, task, &value)?;
        all.push(begun.elapsed());
        cpu_ns += site.process.cpu_ns().saturating_sub(before);
    }
    all.sort_unstable();
    let count = f64::from(CHANGES);
    figures.push(("each_ns", all[all.len() / 2].as_nanos() as f64));
    figures.push(("each_cpu_ns", cpu_ns as f64 / count));
    figures.push(("answer_bytes", bytes as f64 / count));
    Ok(all.iter().sum())
}

/// The client that follows.
enum Other {
    /// It is sent what changes.
    Sent(TcpStream),
    /// It asks, from these numbers on.
    Asks(Numbers),
}

impl Other {
    fn new(site: &Site, numbers: Numbers) -> Result<Self> {
        Ok(match site.is_own {
            true => Self::Sent(follow(site.at, numbers)?),
            false => Self::Asks(numbers),
        })
    }

    /// Waits until it has a task's change; returns the bytes that it took for it.
    fn has(&mut self, site: &mut Site, task: &str, value: &str) -> Result<usize> {
        let mut bytes = 0;
        loop {
            let has_it = match self {
                Self::Sent(stream) => {
                    site.answer.clear();
                    let encoding = receive(&mut *stream, MAX_ANSWER_BYTES, &mut site.answer)?;
                    if encoding != Some(Encoding::Binary) {
                        return wrong("what was sent is not binary");
                    }
                    if site.answer.is_empty() {
                        continue;
                    }
                    let read = binary::read(&site.answer).map_err(|why| why.to_string())?;
                    has_value(&read.tree, task, value)
                }
                Self::Asks(numbers) => {
                    site.ask(&sync(SyncKind::Changes, *numbers))?;
                    let synced = read_sync_answer(&site.answer).map_err(|why| why.to_string())?;
                    let (before, now) = (*numbers, Numbers::of_sync(&synced)?);
                    *numbers = now;
                    if !now.follow(before) {
                        return wrong(format!("numbers {now:?} after {before:?} and a change"));
                    }
                    match &synced {
                        SyncAnswer::Since { nodes, .. } => nodes.iter().any(|node| {
                            let mut all = node.changes.iter();
                            node.path == task
                                && all.any(|one| one.text("n_") == NAME && one.text("v_") == value)
                        }),
                        _ => true,
                    }
                }
            };
            bytes += site.answer.len();
            if has_it {
                return Ok(bytes);
            }
        }
    }
}

/// A connection over which what changes is sent.
fn follow(at: SocketAddr, numbers: Numbers) -> Result<TcpStream> {
    let known = numbers.pair();
    let portions = vec![Portion { path: "/".to_owned(), levels: ALL_LEVELS, known }];
    let (encoding, follow) = (Encoding::Binary, Some(*FOLLOW_MS.start()));
    let mut request = Vec::new();
    Header { encoding, follow, wants_states: false, portions }.write(&mut request);
    request.extend(sync(SyncKind::Changes, Numbers::default()));
    let mut stream = TcpStream::connect(at)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENT_FOR))?;
    stream.write_all(&request)?;
    Ok(stream)
}

fn has_value(tree: &Tree, task: &str, value: &str) -> bool {
    let Some(id) = tree.find(task) else { return false };
    tree.node(id).attributes.iter().any(|one| match one {
        Attribute::Variable(variable) => variable.name == *NAME && variable.value == *value,
        _ => false,
    })
}
