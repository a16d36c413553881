//! `cargo xtask memcheck`: the servers of records and of the cache under valgrind's memcheck, while
//! channels, operations, keys and connections are made again and again, and the client's get, put
//! and monitor: nothing may be lost or touched that isn't there, and the servers' memory and
//! descriptors have to stay as they were.
//!
//! valgrind 3.19 doesn't know the vDSO as rustix reads it: the program is built with rustix calling
//! the C library, in a folder of its own.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs, process};

use anyhow::{Context, Result, bail};

use crate::process::{find, repository, run as run_command};

/// How much churn.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask memcheck                  some minutes, most of them to build
  cargo xtask memcheck --times 10000    an afternoon's churn")]
pub(crate) struct Args {
    /// How often channels and operations are remade in each of the four rounds
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(10..))]
    times: u32,
}

/// What the server holds.
const RECORDS: &str = "\
[[record]]\nname = \"number\"\ntype = \"long\"\n\n[[record]]\nname = \"wave\"\ntype = \"long[]\"\n";

/// How often the same is done.
const ROUNDS: u32 = 4;

/// After the first round, which warms it up, it may grow by so much: valgrind's own tables do.
const MAX_GROWTH_BYTES: u64 = 4 << 20;

/// A connection that has just ended may still be open.
const MAX_OPEN: usize = 3;

/// valgrind's exit code when it has found something.
const FOUND: i32 = 99;

pub(crate) fn run(args: &Args) -> Result<()> {
    if find("valgrind").is_none() {
        bail!("valgrind is missing; this line brings it:\n  apt-get install -y valgrind");
    }
    let program = build()?;
    let folder = env::temp_dir().join(format!("loadline-memcheck-{}", process::id()));
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let done = check(args, &program, &folder);
    // It is the system's folder for what may go.
    let _ = fs::remove_dir_all(&folder);
    done
}

/// The program as valgrind understands it.
fn build() -> Result<PathBuf> {
    let target = repository().join("target/memcheck");
    let mut build = Command::new("cargo");
    build.args(["build", "--locked", "-p", "loadline", "--bin", "loadline", "--target-dir"]);
    build.arg(&target).current_dir(repository());
    // Line numbers suffice to locate a finding.
    build.env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only");
    run_command(build.env("RUSTFLAGS", "--cfg rustix_use_libc"))?;
    Ok(target.join("debug/loadline"))
}

fn check(args: &Args, program: &Path, folder: &Path) -> Result<()> {
    check_records(args, program, folder)?;
    check_cache(args, program)
}

/// The server of records, while each of its clients remakes what it uses; then the clients.
fn check_records(args: &Args, program: &Path, folder: &Path) -> Result<()> {
    let config = folder.join("records.toml");
    fs::write(&config, RECORDS)?;
    let serve = ["serve", "records", "--listen", "127.0.0.1:0", "--no-search", "--log", "warn"];
    let config = config.to_str().context("the folder's name is no text")?;
    let server = Server::start(program, &[&serve[..], &["--config", config]].concat())?;
    let times = args.times.to_string();
    let channels = ["--recreate-channel-every", "1", "--delay", "0", "--count", &times];
    let gets = ["--recreate-get-every", "1", "--delay", "0", "--count", &times];
    let puts = ["--size", "1000", "--recreate-put-every", "1", "--delay", "0", "--count", &times];
    server.rounds(|| {
        server.client(program, &["get", "number"], &channels)?;
        server.client(program, &["get", "wave"], &gets)?;
        server.client(program, &["put", "wave"], &puts)?;
        for _ in 0..args.times.div_ceil(20) {
            server.client(program, &["monitor", "number"], &["--count", "1"])?;
        }
        Ok(())
    })?;
    let few = ["--delay", "0", "--count", "50"];
    let remade = ["--recreate-channel-every", "7"];
    server.checked_client(program, &["get", "wave"], &[&few[..], &remade].concat())?;
    let size = ["--size", "1000"];
    server.checked_client(program, &["put", "wave"], &[&few[..], &remade, &size].concat())?;
    server.watch(program, &["monitor", "wave"], &["--count", "20"], &puts)?;
    server.end()?;
    println!(
        "records: {} channels, {} gets, {} puts and {} connections remade, and get, put and \
         monitor of the client: nothing lost, nothing invalid touched, memory and descriptors flat",
        ROUNDS * args.times,
        ROUNDS * args.times,
        ROUNDS * args.times,
        ROUNDS * (args.times.div_ceil(20) + 3),
    );
    Ok(())
}

/// The cache's server, while keys are stored, read and deleted, each over a new connection.
fn check_cache(args: &Args, program: &Path) -> Result<()> {
    let server = Server::start(program, &["serve", "cache", "--listen", "127.0.0.1:0"])?;
    let commands: [&[&str]; 4] =
        [&["set", "a", "1"], &["incr", "a", "2"], &["get", "a"], &["delete", "a"]];
    let times = args.times.div_ceil(20);
    server.rounds(|| {
        for words in (0..times).flat_map(|_| commands) {
            let mut command = Command::new(program);
            command.arg("cache").args(["--server", &server.address]).args(words);
            run_command(command.stdout(Stdio::null()))?;
        }
        Ok(())
    })?;
    server.end()?;
    println!(
        "cache: {} commands, each over its own connection: nothing lost, nothing invalid touched, \
         memory and descriptors flat",
        ROUNDS * times * 4,
    );
    Ok(())
}

/// valgrind, with the options that all programs have.
fn valgrind() -> Command {
    // What was freed is kept from reuse: less than the usual 20 MB, so that it is full soon.
    let mut command = Command::new("valgrind");
    command
        .args(["--quiet", "--leak-check=full", "--errors-for-leak-kinds=definite,indirect"])
        .args(["--show-leak-kinds=definite,indirect", "--freelist-vol=1000000"])
        .args([format!("--error-exitcode={FOUND}"), "--fair-sched=yes".to_owned()]);
    command
}

/// What the server has of the system.
#[derive(Clone, Copy, Debug)]
struct Held {
    bytes: u64,
    descriptors: usize,
}

/// The server under valgrind. It ends with this.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(program: &Path, words: &[&str]) -> Result<Self> {
        let mut command = valgrind();
        command.arg(program).args(words);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = child.context("`valgrind` does not start")?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let mut server = Self { child, address: String::new() };
        let ready: serde_json::Value =
            serde_json::from_str(&line).context("the server says no ready line")?;
        server.address = ready["address"].as_str().context("it says no address")?.to_owned();
        Ok(server)
    }

    /// Does the same several times: the server holds after the last what it held after the first.
    fn rounds(&self, mut round: impl FnMut() -> Result<()>) -> Result<()> {
        let mut before = None;
        for number in 1..=ROUNDS {
            round()?;
            let held = self.held()?;
            eprintln!("round {number}: {} KiB, {} descriptors", held.bytes >> 10, held.descriptors);
            let before: Held = *before.get_or_insert(held);
            let has_grown = held.bytes > before.bytes + MAX_GROWTH_BYTES;
            if has_grown || held.descriptors > before.descriptors + MAX_OPEN {
                bail!(
                    "the server grows: {before:?} after the first round, {held:?} after round \
                     {number}"
                );
            }
        }
        Ok(())
    }

    /// A command of the client.
    fn words<'a>(&'a self, words: &[&'a str], options: &[&'a str]) -> Vec<&'a str> {
        let at = ["--server", &self.address, "--timeout", "60"];
        [&["records"], words, &at, options].concat()
    }

    /// Runs a command of the client under valgrind until it ends.
    fn checked_client(&self, program: &Path, words: &[&str], options: &[&str]) -> Result<()> {
        let mut command = valgrind();
        command.arg(program).args(self.words(words, options)).stdout(Stdio::null());
        run_command(&mut command)
    }

    /// The same, while another client puts.
    fn watch(&self, program: &Path, words: &[&str], options: &[&str], puts: &[&str]) -> Result<()> {
        let mut command = valgrind();
        command.arg(program).args(self.words(words, options)).stdout(Stdio::null());
        let mut watching = command.spawn().context("`valgrind` does not start")?;
        let status = loop {
            self.client(program, &["put", "wave"], puts)?;
            if let Some(status) = watching.try_wait()? {
                break status;
            }
        };
        if !status.success() {
            bail!("the monitor has ended with {status}: valgrind's errors stand above");
        }
        Ok(())
    }

    /// Runs a command of the client until it ends.
    fn client(&self, program: &Path, words: &[&str], options: &[&str]) -> Result<()> {
        let mut command = Command::new(program);
        run_command(command.args(self.words(words, options)).stdout(Stdio::null()))
    }

    /// What it has now, valgrind's own included.
    fn held(&self) -> Result<Held> {
        let folder = PathBuf::from(format!("/proc/{}", self.child.id()));
        let status = fs::read_to_string(folder.join("status")).context("the server has ended")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        let bytes = kib.context("no resident memory is shown")? * 1024;
        Ok(Held { bytes, descriptors: fs::read_dir(folder.join("fd"))?.count() })
    }

    /// Has it end in order, which is when valgrind looks for what was lost.
    fn end(mut self) -> Result<()> {
        run_command(Command::new("kill").arg(self.child.id().to_string()))?;
        let status = self.child.wait()?;
        match status.code() {
            Some(0) => Ok(()),
            Some(FOUND) => bail!("valgrind has found errors: they stand above"),
            _ => bail!("the server has ended badly ({status})"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
