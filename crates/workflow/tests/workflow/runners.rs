//! Jobs that other programs run: Slurm on one host, and ssh to this one. They are only
//! ECF_JOB_CMD, ECF_KILL_CMD and ECF_STATUS_CMD: those of docs/workflow-runners.md.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::place::Place;
use crate::served::Served;

/// Processes that end with the test.
struct Processes(Vec<Child>);

impl Drop for Processes {
    fn drop(&mut self) {
        for child in self.0.iter_mut().rev() {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Processes {
    fn start(&mut self, command: &mut Command) {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.0.push(command.spawn().expect("a process"));
    }
}

/// The commands of a runner, of which docs/workflow-runners.md has the block of this name; `{…}` in
/// them stands for what a test has.
fn commands(name: &str, values: &[(&str, &str)]) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workflow-runners.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let block = page.split(&format!("<!-- {name} -->\n```\n")).nth(1).expect("the block");
    let mut text = block.split("```").next().expect("its end").to_owned();
    for (from, to) in values {
        assert!(text.contains(from), "{name} has no {from}");
        text = text.replace(from, to);
    }
    text
}

/// One job that comes to its end, and one that is looked at and killed.
fn runs_two_jobs(place: &Place, commands: &str, rid: &str) {
    let head = format!(
        "#!/bin/sh\nexport ECF_HOST=localhost ECF_PORT=%ECF_PORT% ECF_NAME=%ECF_NAME%\n\
         export ECF_PASS=%ECF_PASS% ECF_TRYNO=%ECF_TRYNO% ECF_RID={rid}\n\
         set -e\n\
         trap 'ecflow_client --abort=trap; exit 0' EXIT\n\
         trap 'trap - EXIT; ecflow_client --abort=killed; exit 1' TERM\n\
         ecflow_client --init=$ECF_RID\n"
    );
    place.write("home/head.h", &head);
    place.script("s/short", "echo it runs as $ECF_RID");
    place.script("s/long", "sleep 600 & wait");
    // One after the other: a runner of few cores may run one at a time.
    let suite = format!(
        "suite s\n{commands}edit ECF_TRIES '1'\ntask short\ntask long\n\
         trigger short == complete\nendsuite\n"
    );
    let file = place.write("s.def", &suite);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--restart"]);
    place.told(&["--begin=s"]);
    place.until_state("/s/short", "complete");
    place.until_state("/s/long", "active");
    let output = std::fs::read_to_string(place.home().join("s/short.1")).expect("its output");
    assert!(output.contains("it runs as "), "{output}");
    place.told(&["--status=/s/long"]);
    let stat = place.home().join("s/long.job1.stat");
    let id = place.told(&["--get_state", "/s/long"]);
    let id = id.split("rid:").nth(1).and_then(|rest| rest.split_whitespace().next());
    let id = id.expect("its number").to_owned();
    place.until("the job's state", || {
        std::fs::read_to_string(&stat).is_ok_and(|text| text.contains(&id))
    });
    place.told(&["--kill=/s/long"]);
    place.until_state("/s/long", "aborted");
}

/// Why Slurm can't be tried here.
fn slurm(folder: &Path, processes: &mut Processes) -> Result<(), String> {
    let own = |name: &str| folder.join(name).display().to_string();
    for name in ["munge", "state", "spool"] {
        std::fs::create_dir(folder.join(name)).expect("a folder");
    }
    let mode = |path: &str, mode: &str| {
        assert!(Command::new("chmod").args([mode, path]).status().expect("chmod").success());
    };
    mode(&own("munge"), "700");
    mode(&own(""), "755");
    std::fs::write(folder.join("munge/key"), [7; 1024]).expect("a key");
    mode(&own("munge/key"), "400");
    let said = |name: &str, words: &[&str]| {
        let out = Command::new(name).args(words).output().expect(name);
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    };
    let (host, user) = (said("hostname", &["-s"]), said("id", &["-un"]));
    let conf = format!(
        "ClusterName=one\nSlurmctldHost={host}(127.0.0.1)\nAuthType=auth/munge\n\
         AuthInfo=socket={sock}\nSlurmctldPort={a}\nSlurmdPort={b}\nSlurmUser={user}\n\
         SlurmdUser={user}\nStateSaveLocation={state}\nSlurmdSpoolDir={spool}\n\
         SlurmctldPidFile={state}/a.pid\nSlurmdPidFile={state}/b.pid\n\
         ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSelectType=select/cons_tres\n\
         SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0\n\
         ReturnToService=2\nMpiDefault=none\nNodeName={host} NodeAddr=127.0.0.1 CPUs={cpus}\n\
         PartitionName=all Nodes={host} Default=YES State=UP OverSubscribe=FORCE:8\n",
        sock = own("munge/sock"),
        a = testing::free_port(),
        b = testing::free_port(),
        state = own("state"),
        spool = own("spool"),
        cpus = std::thread::available_parallelism().map_or(1, usize::from),
    );
    std::fs::write(folder.join("slurm.conf"), conf).expect("written");
    let munge = ["key-file", "socket", "pid-file", "log-file", "seed-file"];
    let files = ["munge/key", "munge/sock", "munge/pid", "munge/log", "munge/seed"];
    let munge = munge.iter().zip(files).map(|(name, file)| format!("--{name}={}", own(file)));
    processes.start(Command::new("munged").args(munge).args(["--force", "--foreground"]));
    let conf = own("slurm.conf");
    for program in ["slurmctld", "slurmd"] {
        processes.start(Command::new(program).arg("-D").env("SLURM_CONF", &conf));
    }
    let mut seen = String::new();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        let out = Command::new("sinfo").env("SLURM_CONF", &conf).output().expect("sinfo");
        seen = format!(
            "{}{}",
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        );
        if seen.contains("idle") {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(format!("Slurm doesn't come up here: {}", seen.replace('\n', " ")))
}

#[test]
fn slurm_runs_jobs_and_shows_and_kills_them() {
    let programs = ["munged", "slurmctld", "slurmd", "sbatch", "ecflow_client"];
    if programs.into_iter().any(|name| testing::program(name).is_none()) {
        return;
    }
    let (folder, mut processes) = (tempfile::tempdir().expect("a folder"), Processes(Vec::new()));
    if let Err(why) = slurm(folder.path(), &mut processes) {
        testing::skip(why);
        return;
    }
    let place = Place::new();
    let conf = folder.path().join("slurm.conf").display().to_string();
    let _served = Served::by_command(&place, &[], &[("SLURM_CONF", &conf)]);
    runs_two_jobs(&place, &commands("slurm", &[]), "$SLURM_JOB_ID");
}

#[test]
fn ssh_runs_jobs_and_shows_and_kills_them() {
    let programs = ["ssh", "ssh-keygen", "sshd", "ecflow_client"];
    if programs.into_iter().any(|name| testing::program(name).is_none()) {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let own = |name: &str| folder.path().join(name).display().to_string();
    for name in ["host", "user"] {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f", &own(name)])
            .status();
        assert!(made.expect("ssh-keygen").success());
    }
    std::fs::copy(own("user.pub"), own("authorized")).expect("copied");
    let port = testing::free_port();
    let server = format!(
        "ListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\n\
         UsePAM no\nPasswordAuthentication no\nPidFile none\n",
        own("host"),
        own("authorized")
    );
    let client = format!(
        "Host here\n HostName 127.0.0.1\n Port {port}\n IdentityFile {}\n IdentitiesOnly yes\n \
         StrictHostKeyChecking accept-new\n UserKnownHostsFile {}\n BatchMode yes\n",
        own("user"),
        own("known")
    );
    std::fs::write(own("sshd.conf"), server).expect("written");
    std::fs::write(own("ssh.conf"), client).expect("written");
    let program = testing::program("sshd").expect("looked for before");
    // As its start script does; another user's sshd needs none.
    let _ = std::fs::create_dir("/run/sshd");
    let tried = Command::new(&program).args(["-t", "-f", &own("sshd.conf")]).output();
    let tried = tried.expect("sshd");
    if !tried.status.success() {
        let why = String::from_utf8_lossy(&tried.stderr).into_owned();
        testing::skip(format!("sshd doesn't start here: {}", why.trim()));
        return;
    }
    let mut processes = Processes(Vec::new());
    processes.start(Command::new(&program).args(["-D", "-f", &own("sshd.conf")]));
    let place = Place::new();
    place.until("sshd answers", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    let _served = Served::by_command(&place, &[], &[]);
    let commands = commands("ssh", &[("ssh HOST", &format!("ssh -F {} here", own("ssh.conf")))]);
    runs_two_jobs(&place, &commands, "$$");
}
