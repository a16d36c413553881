//! Crashes at random moments while clients change labels: what was acknowledged is there after
//! each, and nothing that was never sent; change numbers go on upwards.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use load::scramble;
use workflow::protocol::frame::frame;
use workflow::protocol::{
    Alteration, Answer, Body, Command, Request, SyncKind, User, read_answer, write,
};

use crate::served::Served;

/// Clients, and the tasks that each of them changes in turn.
const CLIENTS: usize = 4;
const TASKS: usize = 5;

/// A server is killed at the latest after this time, in milliseconds.
const KILLED_WITHIN_MS: u64 = 150;

/// What one task's label may be: at least what was acknowledged, at most what was sent.
#[derive(Debug, Default)]
struct Label {
    sent: AtomicU64,
    acknowledged: AtomicU64,
}

fn serve(home: &Path) -> Served {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_loadline"));
    command.args(["serve", "workflow", "--listen", "127.0.0.1:0", "--data"]).arg(home);
    command.stdin(Stdio::null());
    Served::spawn(command)
}

/// One request; nothing where the server has gone.
fn ask(address: &str, command: Command) -> Option<Vec<u8>> {
    let user = User { name: "soak".to_owned(), ..User::default() };
    let request = Request { host: "soak".to_owned(), body: Body::User(user, command) };
    let mut bytes = Vec::new();
    frame(&mut bytes, |out| out.extend(write(&request)));
    let mut stream = TcpStream::connect(address).ok()?;
    stream.write_all(&bytes).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let length = usize::from_str_radix(std::str::from_utf8(answer.get(..8)?).ok()?.trim(), 16);
    (length.ok()? == answer.len() - 8).then(|| answer.split_off(8))
}

/// A request that is answered without contents.
fn tell(address: &str, command: Command) {
    let answer = ask(address, command).expect("an answer");
    let answer = read_answer(&answer).expect("an answer");
    assert!(matches!(answer, Answer::Standard(0)), "{answer:?}");
}

/// Changes one client's tasks in turn until the server is gone.
fn change(address: &str, client: usize, labels: &[Label], is_over: &AtomicBool) -> u64 {
    let mut changes = 0;
    for (task, label) in labels.iter().enumerate().cycle() {
        if is_over.load(SeqCst) {
            break;
        }
        let value = label.sent.fetch_add(1, SeqCst) + 1;
        let change = Command::Alter {
            paths: vec![format!("/s/c{client}/t{task}")],
            alteration: Alteration::Change("label"),
            name: "l".to_owned(),
            value: value.to_string(),
        };
        let Some(answer) = ask(address, change) else { break };
        let answer = read_answer(&answer).expect("an answer");
        assert!(matches!(answer, Answer::Standard(0)), "{answer:?}");
        label.acknowledged.store(value, SeqCst);
        changes += 1;
    }
    changes
}

/// The value of a label.
fn value(address: &str, client: usize, task: usize) -> u64 {
    let query = Command::Query {
        kind: "label".to_owned(),
        path: format!("/s/c{client}/t{task}"),
        attribute: "l".to_owned(),
        task: String::new(),
    };
    let answer = ask(address, query).expect("an answer");
    match read_answer(&answer).expect("an answer") {
        Answer::Text(text) => text.parse().expect("a value"),
        other => panic!("{other:?}"),
    }
}

/// The number of the last change of state.
fn number(address: &str) -> u64 {
    let (kind, state_change_no, modify_change_no) = (SyncKind::Full, 0, 0);
    let sync = Command::Sync { kind, handle: 0, state_change_no, modify_change_no };
    let answer = ask(address, sync).expect("an answer");
    let Answer::Definition(text) = read_answer(&answer).expect("an answer") else {
        panic!("no definition")
    };
    let number = |word: &str| word.strip_prefix("state_change:")?.parse().ok();
    text.split_whitespace().find_map(number).expect("a number")
}

fn definition() -> String {
    let mut text = String::from("suite s\n");
    for client in 0..CLIENTS {
        text += &format!("family c{client}\n");
        for task in 0..TASKS {
            text += &format!("task t{task}\nlabel l \"0\"\n");
        }
        text += "endfamily\n";
    }
    text + "endsuite\n"
}

/// Kills a server so often, each time at a moment that follows from the seed.
pub(crate) fn run(crashes: u64, seed: u64) {
    println!("seed {seed}");
    let begun = Instant::now();
    let home = tempfile::tempdir().expect("a folder");
    let labels: Vec<Vec<Label>> =
        (0..CLIENTS).map(|_| (0..TASKS).map(|_| Label::default()).collect()).collect();
    let (mut changes, mut last) = (0, 0);
    for crash in 0..=crashes {
        let mut served = serve(home.path());
        let address = served.address().to_owned();
        if crash == 0 {
            let (definition, file) = (definition(), "s.def".to_owned());
            tell(&address, Command::Load { force: false, definition, file });
        }
        for (client, labels) in labels.iter().enumerate() {
            for (task, label) in labels.iter().enumerate() {
                let (found, at) = (value(&address, client, task), format!("/s/c{client}/t{task}"));
                let may_be = label.acknowledged.load(SeqCst)..=label.sent.load(SeqCst);
                assert!(may_be.contains(&found), "crash {crash}: {at} is {found}, not {may_be:?}");
                label.acknowledged.store(found, SeqCst);
            }
        }
        let now = number(&address);
        assert!(now >= last, "crash {crash}: change number {now} after {last}");
        last = now;
        if crash == crashes {
            break;
        }
        let wait = Duration::from_millis(scramble(seed ^ scramble(crash)) % KILLED_WITHIN_MS);
        let is_over = AtomicBool::new(false);
        changes += std::thread::scope(|scope| {
            let mut running = Vec::new();
            for (client, labels) in labels.iter().enumerate() {
                let (address, is_over) = (address.as_str(), &is_over);
                running.push(scope.spawn(move || change(address, client, labels, is_over)));
            }
            std::thread::sleep(wait);
            // On a busy host none may have been acknowledged by now.
            let is_idle = |label: &Label| label.acknowledged.load(SeqCst) == 0;
            while crash + 1 == crashes && labels.iter().flatten().all(is_idle) {
                std::thread::yield_now();
            }
            served.child.kill().expect("killed");
            served.child.wait().expect("an end");
            is_over.store(true, SeqCst);
            running.into_iter().map(|one| one.join().expect("right answers")).sum::<u64>()
        });
    }
    assert!(changes > 0, "no change was acknowledged");
    let seconds = begun.elapsed().as_secs();
    super::note(&format!(
        "workflow: {crashes} kills (SIGKILL) from seed {seed} in {seconds} s, {CLIENTS} clients: \
         {changes} changes acknowledged, 0 lost, 0 invented"
    ));
}
