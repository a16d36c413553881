//! Messages there and back by blocking system calls, and nothing else: what a remote call over the
//! same way costs at least. Each answer is compared with what was sent.

use std::error::Error;
use std::fs::File;
use std::io::{Read, Write, pipe, stdin, stdout};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use rustix::net::sockopt::set_tcp_quickack;
use rustix::thread::{CpuSet, sched_setaffinity};

const USAGE: &str = "\
ping-pong tcp|unix|pipe|thread-pipe|thread-channel|thread-park|thread-condvar|thread-spin
  [--bytes N] [--time MS] [--cpus ONE,OTHER|any]
  [--writes W] [--answers W] [--nagle] [--quickack]

Sends N bytes (8) there and back for MS (1000) milliseconds, and prints how long that takes as JSON.
tcp, unix and pipe are between two processes, the others between two threads, of which the last
three hand over a number in memory. W is into how many writes a message or its answer is divided;
over tcp Nagle's algorithm may be left on, and each read be acknowledged at once.";

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// What is typed.
struct Options {
    way: String,
    bytes: usize,
    time: Duration,
    cpus: Option<(usize, usize)>,
    division: Division,
}

/// Into how many writes each side divides what it sends, and how its TCP is set.
#[derive(Clone, Copy)]
struct Division {
    writes: usize,
    answers: usize,
    nagle: bool,
    quickack: bool,
}

fn options() -> Option<Options> {
    let mut words = std::env::args().skip(1);
    let way = words.next()?;
    let (mut bytes, mut ms, mut cpus) = (8, 1_000, None);
    let mut division = Division { writes: 1, answers: 1, nagle: false, quickack: false };
    while let Some(word) = words.next() {
        let switch = match &word[..] {
            "--nagle" => Some(&mut division.nagle),
            "--quickack" => Some(&mut division.quickack),
            _ => None,
        };
        if let Some(switch) = switch {
            *switch = true;
            continue;
        }
        let value = words.next()?;
        match &word[..] {
            "--bytes" => bytes = value.parse().ok().filter(|bytes| *bytes > 0)?,
            "--time" => ms = value.parse().ok()?,
            "--cpus" if value == "any" => {}
            "--cpus" => {
                let (one, other) = value.split_once(',')?;
                cpus = Some((one.parse().ok()?, other.parse().ok()?));
            }
            "--writes" => division.writes = value.parse().ok().filter(|writes| *writes > 0)?,
            "--answers" => division.answers = value.parse().ok().filter(|writes| *writes > 0)?,
            _ => return None,
        }
    }
    Some(Options { way, bytes, time: Duration::from_millis(ms), cpus, division })
}

fn pin(cpu: Option<usize>) {
    if let Some(cpu) = cpu {
        let mut set = CpuSet::new();
        set.set(cpu);
        if let Err(error) = sched_setaffinity(None, &set) {
            eprintln!("cannot run on CPU {cpu}: {error}");
            std::process::exit(1);
        }
    }
}

/// Sends back what comes, until it ends.
fn echo(mut input: impl Read, mut output: impl Write, bytes: usize, writes: usize) {
    let mut message = vec![0; bytes];
    while input.read_exact(&mut message).is_ok() && write(&mut output, &message, writes).is_ok() {}
}

/// Writes a message in this many parts.
fn write(output: &mut impl Write, message: &[u8], writes: usize) -> std::io::Result<()> {
    let part = message.len().div_ceil(writes).max(1);
    message.chunks(part).try_for_each(|part| output.write_all(part))
}

/// A TCP stream that acknowledges each read at once, where that is asked for.
struct Tcp(TcpStream, bool);

impl Tcp {
    fn new(stream: TcpStream, nagle: bool, quickack: bool) -> std::io::Result<Self> {
        stream.set_nodelay(!nagle)?;
        Ok(Self(stream, quickack))
    }
}

impl Read for Tcp {
    fn read(&mut self, space: &mut [u8]) -> std::io::Result<usize> {
        let count = self.0.read(space)?;
        if self.1 {
            set_tcp_quickack(&self.0, true)?;
        }
        Ok(count)
    }
}

impl Write for Tcp {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Times there and back, in nanoseconds, sorted.
fn ask(
    time: Duration,
    bytes: usize,
    mut once: impl FnMut(&mut [u8]) -> Result<()>,
) -> Result<Vec<u64>> {
    let mut message = vec![0; bytes];
    let (begun, warm) = (Instant::now(), time / 10);
    let (mut samples, mut number) = (Vec::new(), 0_u64);
    loop {
        number += 1;
        let sent = number.to_le_bytes();
        let length = bytes.min(8);
        message[..length].copy_from_slice(&sent[..length]);
        let start = Instant::now();
        once(&mut message)?;
        let took = start.elapsed();
        if message[..length] != sent[..length] {
            return Err("a wrong answer".into());
        }
        if begun.elapsed() > warm {
            samples.push(took.as_nanos() as u64);
        }
        if begun.elapsed() > time + warm {
            samples.sort_unstable();
            return Ok(samples);
        }
    }
}

/// This program as the other side: it runs there and is asked over its standard input and output.
fn child(options: &Options) -> Result<Child> {
    let Options { way, bytes, cpus, division, .. } = options;
    let mut command = Command::new(std::env::current_exe()?);
    let (writes, nagle) = (division.answers, u8::from(division.nagle));
    command.args(["--echo", way, &bytes.to_string(), &writes.to_string(), &nagle.to_string()]);
    command.args(cpus.map(|(_, cpu)| cpu.to_string()));
    Ok(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?)
}

/// The other side of `child`.
fn be_asked(words: &[String]) -> Result<()> {
    let [way, bytes, writes, nagle, cpu @ ..] = words else { return Err(USAGE.into()) };
    let (bytes, writes) = (bytes.parse()?, writes.parse()?);
    pin(cpu.first().and_then(|cpu| cpu.parse().ok()));
    match &way[..] {
        "tcp" => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            println!("{}", listener.local_addr()?);
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(nagle == "0")?;
            echo(&stream, &stream, bytes, writes);
        }
        "unix" => {
            let path = std::env::temp_dir().join(format!("ping-pong-{}", std::process::id()));
            let listener = UnixListener::bind(&path)?;
            println!("{}", path.display());
            let (stream, _) = listener.accept()?;
            std::fs::remove_file(&path)?;
            echo(&stream, &stream, bytes, writes);
        }
        _ => {
            // Without the library's buffers.
            let input = File::from(stdin().as_fd().try_clone_to_owned()?);
            let output = File::from(stdout().as_fd().try_clone_to_owned()?);
            echo(input, output, bytes, writes);
        }
    }
    Ok(())
}

/// There and back over a stream.
fn over(mut stream: impl Read + Write, options: &Options) -> Result<Vec<u64>> {
    ask(options.time, options.bytes, |message| {
        write(&mut stream, message, options.division.writes)?;
        Ok(stream.read_exact(message)?)
    })
}

fn measure(options: &Options) -> Result<Vec<u64>> {
    let Options { way, bytes, time, cpus, division } = options;
    let (bytes, time, other) = (*bytes, *time, cpus.map(|(_, other)| other));
    pin(cpus.map(|(one, _)| one));
    let line = |child: &mut Child| -> Result<String> {
        let mut line = String::new();
        let out = child.stdout.as_mut().ok_or("no output")?;
        let mut byte = [0];
        while out.read_exact(&mut byte).is_ok() && byte != *b"\n" {
            line.push(char::from(byte[0]));
        }
        Ok(line)
    };
    match &way[..] {
        "tcp" | "unix" => {
            let mut child = child(options)?;
            let address = line(&mut child)?;
            let samples = if way == "tcp" {
                let stream = TcpStream::connect(address)?;
                over(Tcp::new(stream, division.nagle, division.quickack)?, options)
            } else {
                over(UnixStream::connect(address)?, options)
            };
            child.wait()?;
            samples
        }
        "pipe" => {
            let mut child = child(options)?;
            let mut input = child.stdin.take().ok_or("no input")?;
            let mut output = child.stdout.take().ok_or("no output")?;
            let samples = ask(time, bytes, |message| {
                write(&mut input, message, division.writes)?;
                Ok(output.read_exact(message)?)
            });
            drop(input);
            child.wait()?;
            samples
        }
        "thread-pipe" => {
            let (mut near_in, far_out) = pipe()?;
            let (far_in, mut near_out) = pipe()?;
            let far = thread::spawn(move || {
                pin(other);
                echo(far_in, far_out, bytes, 1);
            });
            let samples = ask(time, bytes, |message| {
                near_out.write_all(message)?;
                Ok(near_in.read_exact(message)?)
            });
            drop(near_out);
            far.join().map_err(|_| "the other thread has ended")?;
            samples
        }
        "thread-channel" => {
            let (near_out, far_in) = sync_channel::<Vec<u8>>(1);
            let (far_out, near_in) = sync_channel::<Vec<u8>>(1);
            let far = thread::spawn(move || {
                pin(other);
                while let Ok(message) = far_in.recv() {
                    if far_out.send(message).is_err() {
                        return;
                    }
                }
            });
            let samples = ask(time, bytes, |message| {
                near_out.send(message.to_vec())?;
                message.copy_from_slice(&near_in.recv()?);
                Ok(())
            });
            drop(near_out);
            far.join().map_err(|_| "the other thread has ended")?;
            samples
        }
        "thread-park" | "thread-condvar" | "thread-spin" => in_memory(way, time, other),
        _ => Err(USAGE.into()),
    }
}

/// A number that two threads hand over, and how each waits for the other.
struct Shared {
    turn: AtomicU64,
    lock: Mutex<()>,
    changed: Condvar,
}

impl Shared {
    /// Waits until the number is another one, and returns that.
    fn wait(&self, way: &str, before: u64) -> u64 {
        let now = || Some(self.turn.load(SeqCst)).filter(|turn| *turn != before);
        if way == "thread-condvar" {
            let mut guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                match now() {
                    Some(turn) => return turn,
                    None => {
                        guard = self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
                    }
                }
            }
        }
        loop {
            match now() {
                Some(turn) => return turn,
                None if way == "thread-park" => thread::park(),
                None => std::hint::spin_loop(),
            }
        }
    }

    /// Makes it this one.
    fn set(&self, way: &str, number: u64, other: &Thread) {
        if way == "thread-condvar" {
            let _guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            self.turn.store(number, SeqCst);
            self.changed.notify_one();
        } else {
            self.turn.store(number, SeqCst);
            if way == "thread-park" {
                other.unpark();
            }
        }
    }
}

/// The number that ends the other thread.
const END: u64 = u64::MAX;

/// A number there and back through memory.
fn in_memory(way: &str, time: Duration, other: Option<usize>) -> Result<Vec<u64>> {
    let shared =
        Arc::new(Shared { turn: AtomicU64::new(0), lock: Mutex::new(()), changed: Condvar::new() });
    let (far_shared, far_way, near) = (Arc::clone(&shared), way.to_owned(), thread::current());
    let far = thread::spawn(move || {
        pin(other);
        let mut last = 0;
        loop {
            let turn = far_shared.wait(&far_way, last);
            if turn == END {
                return;
            }
            last = turn + 1;
            far_shared.set(&far_way, last, &near);
        }
    });
    let mut number = 0;
    let samples = ask(time, 8, |_| {
        number += 1;
        shared.set(way, number, far.thread());
        number = shared.wait(way, number);
        Ok(())
    });
    shared.set(way, END, far.thread());
    far.join().map_err(|_| "the other thread has ended")?;
    samples
}

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [first, rest @ ..] = &words[..]
        && first == "--echo"
    {
        return be_asked(rest);
    }
    let options = options().ok_or(USAGE)?;
    let samples = measure(&options)?;
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
