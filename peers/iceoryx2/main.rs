//! A number there and back by iceoryx2, through the memory of two processes: each sleeps until the
//! other's event comes, as a server does that takes no CPU time while nothing happens. Each answer
//! is compared with what was sent.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_setaffinity};

const USAGE: &str = "\
iceoryx2-ping-pong [--time MS] [--cpus ONE,OTHER|any]

Sends 8 bytes there and back between two processes for MS (1000) milliseconds, and prints how long
that takes as JSON.";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What ends the other side.
const END: u64 = u64::MAX;

/// One of two processes.
struct Side {
    publisher: Publisher<ipc::Service, u64, ()>,
    notifier: Notifier<ipc::Service>,
    subscriber: Subscriber<ipc::Service, u64, ()>,
    listener: Listener<ipc::Service>,
    _node: Node<ipc::Service>,
}

impl Side {
    /// The side that sends by the first of two names and receives by the second.
    fn new(sends: &str, receives: &str) -> Result<Self> {
        let builder = NodeBuilder::new().signal_handling_mode(SignalHandlingMode::Disabled);
        let node = builder.create::<ipc::Service>()?;
        let messages = |name: &str| -> Result<_> {
            let name = name.try_into()?;
            Ok(node.service_builder(&name).publish_subscribe::<u64>().open_or_create()?)
        };
        let events = |name: &str| -> Result<_> {
            let name = name.try_into()?;
            Ok(node.service_builder(&name).event().open_or_create()?)
        };
        Ok(Self {
            publisher: messages(sends)?.publisher_builder().create()?,
            notifier: events(sends)?.notifier_builder().create()?,
            subscriber: messages(receives)?.subscriber_builder().create()?,
            listener: events(receives)?.listener_builder().create()?,
            _node: node,
        })
    }

    fn send(&self, number: u64) -> Result<()> {
        self.publisher.send_copy(number)?;
        self.notifier.notify()?;
        Ok(())
    }

    fn receive(&self) -> Result<u64> {
        loop {
            self.listener.blocking_wait(|_| {})?;
            if let Some(sample) = self.subscriber.receive()? {
                return Ok(*sample);
            }
        }
    }
}

/// The names of both ways between the processes that this one begins.
fn names(first: u32) -> [String; 2] {
    ["there", "back"].map(|way| format!("iceoryx2-ping-pong/{first}/{way}"))
}

fn pin(cpu: Option<usize>) -> Result<()> {
    let Some(cpu) = cpu else { return Ok(()) };
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)
        .map_err(|error| format!("cannot run on CPU {cpu}: {error}").into())
}

/// The other side: sends back what comes.
fn be_asked(words: &[String]) -> Result<()> {
    let [first, cpu @ ..] = words else { return Err(USAGE.into()) };
    set_parent_process_death_signal(Some(Signal::KILL))?;
    pin(cpu.first().map(|cpu| cpu.parse()).transpose()?)?;
    let [there, back] = names(first.parse()?);
    let side = Side::new(&back, &there)?;
    println!("ready");
    loop {
        match side.receive()? {
            END => return Ok(()),
            number => side.send(number)?,
        }
    }
}

/// Times there and back, in nanoseconds, sorted.
fn measure(time: Duration, cpus: Option<(usize, usize)>) -> Result<Vec<u64>> {
    let first = std::process::id();
    let [there, back] = names(first);
    let side = Side::new(&there, &back)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["--echo", &first.to_string()]);
    command.args(cpus.map(|(_, cpu)| cpu.to_string()));
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    if line.trim() != "ready" {
        return Err("the other process has not begun".into());
    }
    pin(cpus.map(|(one, _)| one))?;
    let (begun, warm) = (Instant::now(), time / 10);
    let (mut samples, mut number) = (Vec::new(), 0);
    while begun.elapsed() <= time + warm || samples.is_empty() {
        number += 1;
        let start = Instant::now();
        side.send(number)?;
        let answer = side.receive()?;
        let took = start.elapsed();
        if answer != number {
            return Err("a wrong answer".into());
        }
        if begun.elapsed() > warm {
            samples.push(took.as_nanos() as u64);
        }
    }
    side.send(END)?;
    child.wait()?;
    samples.sort_unstable();
    Ok(samples)
}

fn options(words: &[String]) -> Option<(Duration, Option<(usize, usize)>)> {
    let (mut ms, mut cpus) = (1_000, None);
    for pair in words.chunks(2) {
        let [word, value] = pair else { return None };
        match &word[..] {
            "--time" => ms = value.parse().ok()?,
            "--cpus" if value == "any" => {}
            "--cpus" => {
                let (one, other) = value.split_once(',')?;
                cpus = Some((one.parse().ok()?, other.parse().ok()?));
            }
            _ => return None,
        }
    }
    Some((Duration::from_millis(ms), cpus))
}

fn main() -> Result<()> {
    set_log_level(LogLevel::Error);
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [first, rest @ ..] = &words[..]
        && first == "--echo"
    {
        return be_asked(rest);
    }
    let (time, cpus) = options(&words).ok_or(USAGE)?;
    let samples = measure(time, cpus)?;
    let at = |share: f64| samples[(share * (samples.len() - 1) as f64) as usize];
    let mean = samples.iter().sum::<u64>() as f64 / samples.len() as f64;
    println!(
        "{{\"samples\":{},\"min_ns\":{},\"median_ns\":{},\"mean_ns\":{mean:.1},\"p99_ns\":{},\
         \"max_ns\":{}}}",
        samples.len(),
        at(0.0),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    Ok(())
}
