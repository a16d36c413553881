//! Commits, each built once in a git worktree of its own and kept under `.loadline/builds`.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, anyhow, bail};
use lab::plan::{Medium, Plan, Target, TargetKind};

use crate::exit::Failure;
use crate::out::note;

/// Makes a shell's files writable by its user and group at most: what is built is started as this
/// user, and some containers of CI have a umask of 0.
const NOT_BY_ALL: &str = "umask o-w; ";

/// How many lines of a failed build are shown.
const LAST_LINES: usize = 20;

/// A commit of the repository that the current folder is in.
#[derive(Clone, Debug)]
pub(crate) struct Commit {
    /// Its hash, whole.
    pub(crate) hash: String,
    /// The first line of its message.
    subject: String,
}

impl Commit {
    /// The commit that `revision` names.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn find(revision: &str) -> Result<Self, Failure> {
        let hash = git(&["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")])
            .with_context(|| format!("there is no commit \"{revision}\" here"))
            .map_err(Failure::usage)?;
        let subject = git(&["log", "-1", "--format=%s", &hash])?;
        Ok(Self { hash, subject })
    }
}

/// A commit that is built.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    /// Which one.
    commit: Commit,
    /// Its worktree.
    pub(crate) tree: PathBuf,
}

impl Built {
    /// Its hash, short.
    pub(crate) fn short(&self) -> &str {
        self.commit.hash.get(..10).unwrap_or(&self.commit.hash)
    }

    /// A target as this commit has it: a service is served by the commit's own program `binary`,
    /// and `{worktree}` in commands is the worktree.
    pub(crate) fn variant(&self, target: &Target, binary: &str) -> Target {
        let tree = self.tree.display().to_string();
        let fill_one = |text: &String| {
            lab::placeholders::fill(text, &|name| (name == "worktree").then(|| tree.clone()))
        };
        let fill = |words: &[String]| -> Vec<String> { words.iter().map(fill_one).collect() };
        let mut variant = target.clone();
        variant.name = self.short().to_owned();
        variant.kind = match &target.kind {
            TargetKind::Service(service, arguments) => {
                let listen = match target.medium {
                    Medium::Tcp | Medium::Udp => "--listen=127.0.0.1:{port}",
                    Medium::Tcp6 => "--listen=[::1]:{port}",
                    Medium::Unix => "--listen=unix:{socket}",
                };
                let mut command = vec![self.tree.join(binary).display().to_string()];
                command.extend(["serve", service, listen].map(str::to_owned));
                command.extend(arguments.iter().cloned());
                TargetKind::Command(command)
            }
            TargetKind::Command(command) => TargetKind::Command(fill(command)),
            TargetKind::Batch(command) => TargetKind::Batch(fill(command)),
            TargetKind::Address(address) => TargetKind::Address(address.clone()),
            TargetKind::InProcess => TargetKind::InProcess,
        };
        variant.setup = target.setup.as_deref().map(fill);
        variant.wrap = target.wrap.as_deref().map(fill);
        for value in variant.env.values_mut() {
            *value = fill_one(value);
        }
        variant.facts.push(("commit".to_owned(), self.commit.hash.clone()));
        variant.facts.push(("subject".to_owned(), self.commit.subject.clone()));
        variant
    }
}

/// Refuses a plan whose commands stand in a commit's worktree: none is built here.
///
/// # Errors
/// Which target says so, and what builds commits.
pub(crate) fn refuse_worktrees(plan: &Plan) -> Result<(), Failure> {
    let has_one = |target: &&Target| {
        let command = match &target.kind {
            TargetKind::Command(words) | TargetKind::Batch(words) => Some(words),
            TargetKind::Service(..) | TargetKind::Address(_) | TargetKind::InProcess => None,
        };
        let lists = [command, target.setup.as_ref(), target.wrap.as_ref()];
        let words = lists.into_iter().flatten().flatten().chain(target.env.values());
        words.into_iter().any(|word| word.contains("{worktree}"))
    };
    match plan.targets().iter().find(has_one) {
        None => Ok(()),
        Some(target) => Err(Failure::Usage(format!(
            "target {}: {{worktree}} is where a commit is built, and none is: loadline compare \
             SUITE --commits A..B --build COMMAND builds two",
            target.name
        ))),
    }
}

/// The program that a target starts, when it starts one.
pub(crate) fn program(target: &Target) -> Option<&Path> {
    match &target.kind {
        TargetKind::Command(command) | TargetKind::Batch(command) => command.first().map(Path::new),
        TargetKind::Service(..) | TargetKind::Address(_) | TargetKind::InProcess => None,
    }
}

/// The two commits of `A..B` or `A,B`.
pub(crate) fn two_of(text: &str) -> Result<(&str, &str), Failure> {
    let parts = text.split_once("..").or_else(|| text.split_once(','));
    match parts.map(|(a, b)| (a.trim(), b.trim_start_matches('.').trim())) {
        Some((a, b)) if !a.is_empty() && !b.is_empty() => Ok((a, b)),
        _ => Err(Failure::Usage(format!("--commits \"{text}\" is neither A..B nor A,B"))),
    }
}

/// Builds a commit with a shell command in a worktree of its own under `folder`, unless that was
/// done before.
///
/// # Errors
/// When the build fails, with its last lines.
pub(crate) fn build(folder: &Path, commit: &Commit, command: &str) -> Result<Built, Failure> {
    // Another command makes another program of the same commit.
    let mark = command.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let short = commit.hash.get(..12).unwrap_or(&commit.hash);
    let place = folder.join(format!("{short}-{mark:016x}"));
    ledger::make_directory(&place)?;
    let place = place.canonicalize().with_context(|| place.display().to_string())?;
    let (tree, done) = (place.join("tree"), place.join("built"));
    let built = Built { commit: commit.clone(), tree };
    if done.exists() {
        return Ok(built);
    }
    if !built.tree.join(".git").exists() {
        git(&["worktree", "prune"])?;
        let tree = built.tree.display().to_string();
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{NOT_BY_ALL}exec git \"$@\""), "sh"]);
        let add = ["worktree", "add", "--quiet", "--force", "--detach", &tree, &commit.hash];
        answer(shell.args(add), &add)?;
    }
    note(format!("building {short} ({}) …", commit.subject));
    let log = place.join("build.log");
    let out = File::create(&log).with_context(|| log.display().to_string())?;
    let copy = out.try_clone().context("the build's log")?;
    let exe = std::env::current_exe().context("this program can't find itself")?;
    let shell = ["sh", "-c", &format!("{NOT_BY_ALL}{command}")].map(str::to_owned);
    let status = lab::deploy::run_supervised(&exe, &shell, |command| {
        command.current_dir(&built.tree).stdout(copy).stderr(out)
    });
    let status = status.context("sh can't be started")?;
    if !status.success() {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n  ");
        let at = log.display();
        return Err(anyhow!("the build of {short} failed ({status}); {at}:\n  {last}").into());
    }
    File::create(&done).with_context(|| done.display().to_string())?;
    Ok(built)
}

/// What git prints, or what it complains of.
fn git(arguments: &[&str]) -> anyhow::Result<String> {
    answer(Command::new("git").args(arguments), arguments)
}

/// What git prints that this command starts with these arguments.
fn answer(command: &mut Command, arguments: &[&str]) -> anyhow::Result<String> {
    let output = command.output().context("git can't be started")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        // `--quiet` says nothing.
        match said.trim() {
            "" => bail!("git {} found none", arguments[0]),
            said => bail!("git {}: {said}", arguments[0]),
        }
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_commits_are_named_in_two_ways() {
        assert_eq!(two_of("main..HEAD").ok(), Some(("main", "HEAD")));
        assert_eq!(two_of("main...HEAD").ok(), Some(("main", "HEAD")));
        assert_eq!(two_of("v1.0, v1.1").ok(), Some(("v1.0", "v1.1")));
        assert!(two_of("HEAD").is_err() && two_of("..HEAD").is_err());
    }
}
