//! ecFlow's checkpoint file: the tree in MIGRATE text, by which a server can be moved in and out.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::num::NonZeroU64;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::fs::{Advice, fadvise};

use super::core::{Core, Render};
use super::environment::{CheckMode, Environment};
use super::known::{Content, Known};
use super::message::Counts;
use super::slot::{Answer, Slot};
use crate::protocol::Reply;

/// The last line of a checkpoint that this program has written; ecFlow skips it, and writes none.
const MARK: &[u8] = b"# loadline\n";

/// How a checkpoint of ecFlow's ends.
const LAST_LINE: &[u8] = b"# enddef\n";

/// The disk begins with what is written once it is this much, while the rest is rendered.
const PART_BYTES: u64 = 4 << 20;

/// Refuses a checkpoint that this journal doesn't know: another server or a user has put it there,
/// and the next one would take its place. Which of the two is to be served only a user knows.
///
/// # Errors
/// When it is so, or the file can't be read.
pub(super) fn refuse_other(check: &Path, known: &Known, journal: &Path) -> anyhow::Result<()> {
    let (check_name, journal) = (check.display(), journal.display());
    let mut file = match OpenOptions::new().read(true).custom_flags(base::no_wait()).open(check) {
        Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file.with_context(|| check_name.to_string())?,
    };
    let kind = file.metadata()?.file_type();
    anyhow::ensure!(
        kind.is_file(),
        "{check_name} is {}, and has to be a regular file: move it away, or name another one by \
         ECF_CHECK",
        base::kind_name(kind)
    );
    if known.has(check, &Content::of(&mut file)?) {
        return Ok(());
    }
    let last = last_bytes(&mut file)?;
    anyhow::ensure!(
        last == MARK || last.ends_with(LAST_LINE),
        "{check_name} is damaged: it ends as no checkpoint does, neither this program's nor \
         ecFlow's: to go on with what is in {journal}, move the checkpoint away"
    );
    anyhow::bail!(
        "{check_name} is not what this server has left there: another one has written it, or it \
         was put there. To take it, remove {journal} and what is in it; to go on with what is in \
         that, move the checkpoint away"
    )
}

/// Whether a checkpoint is there and by this program.
pub(super) fn is_own(check: &Path) -> bool {
    let file = OpenOptions::new().read(true).custom_flags(base::no_wait()).open(check);
    file.and_then(|mut file| last_bytes(&mut file)).is_ok_and(|last| last == MARK)
}

/// The end of a file, as long as the mark.
fn last_bytes(file: &mut File) -> io::Result<Vec<u8>> {
    let bytes = MARK.len() as u64;
    file.seek(SeekFrom::Start(file.metadata()?.len().saturating_sub(bytes)))?;
    let mut last = Vec::new();
    file.take(bytes).read_to_end(&mut last)?;
    Ok(last)
}

/// Has the journal know the checkpoint with which it begins.
///
/// # Errors
/// When a file can't be read or written.
pub(super) fn note_taken(check: &Path, known: &Known) -> anyhow::Result<()> {
    let content = File::open(check).and_then(|mut file| Content::of(&mut file));
    let noted = content.and_then(|content| known.only(check, &content));
    noted.with_context(|| format!("{}, or the note that it is taken", check.display()))
}

/// The checkpoints of other hosts and ports in ECF_HOME.
pub(super) fn others(home: &Path, check: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(home).into_iter().flatten().flatten().map(|entry| entry.path());
    // Names of archives have the nodes' paths, with colons.
    let is_check = |file: &Path| {
        let name = file.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.ends_with(".check") && !name.contains(':'))
    };
    let mut others: Vec<PathBuf> = files.filter(|file| is_check(file) && file != check).collect();
    others.sort();
    others
}

/// The checkpoint that is being written, or was last.
pub(super) struct Checkpoint {
    known: Known,
    is_running: bool,
    /// Who is answered once it is written.
    answered: Vec<Slot>,
    /// Who asks for the next one.
    asked: Vec<Slot>,
    /// Whether a group asks for it, which is answered before.
    is_due_again: bool,
    /// How long commands waited for the one that is being written.
    waited: Duration,
    /// Those that were written, what they took, and the most that commands waited for one.
    written: u64,
    took: Duration,
    most_waited: Duration,
    /// The change number of the last one that was begun.
    at: Option<u64>,
}

/// A checkpoint that is to be written.
pub(super) struct Work {
    render: Render,
    path: PathBuf,
    old: PathBuf,
    known: Known,
}

impl Checkpoint {
    /// None yet.
    pub(super) fn new(known: Known) -> Self {
        Self {
            known,
            is_running: false,
            answered: Vec::new(),
            asked: Vec::new(),
            is_due_again: false,
            waited: Duration::ZERO,
            written: 0,
            took: Duration::ZERO,
            most_waited: Duration::ZERO,
            at: None,
        }
    }

    /// Adds what is counted of checkpoints.
    pub(super) fn counted(&self, counts: Counts) -> Counts {
        let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let (checkpoints, waited_us) = (self.written, us(self.most_waited));
        Counts { checkpoints, checkpoints_us: us(self.took), waited_us, ..counts }
    }

    pub(super) fn is_running(&self) -> bool {
        self.is_running
    }

    /// Whether there is anything new to write.
    pub(super) fn is_due(&self, core: &Core) -> bool {
        core.checks.mode != CheckMode::Never && self.at != Some(core.change_no())
    }

    pub(super) fn begin(&mut self, core: &Core, environment: &Environment) -> Work {
        let begun = Instant::now();
        self.is_running = true;
        self.answered = std::mem::take(&mut self.asked);
        self.is_due_again = false;
        self.at = Some(core.change_no());
        let render = core.checkpoint();
        self.waited = begun.elapsed();
        let (path, old) = (environment.check.clone(), environment.check_old.clone());
        Work { render, path, old, known: self.known.clone() }
    }

    /// Has someone answered once what is there now is in a checkpoint.
    pub(super) fn ask(&mut self, slot: Slot) {
        self.asked.push(slot);
    }

    /// Has another one written for what is there now, for no one who waits.
    pub(super) fn ask_again(&mut self) {
        self.is_due_again = true;
    }

    /// Whether another one is asked for.
    pub(super) fn is_asked(&self) -> bool {
        self.is_due_again || !self.asked.is_empty()
    }

    /// Takes what came of one, answers those who wait for it, and returns what the log says.
    pub(super) fn done(
        &mut self,
        done: Result<f64, String>,
        alarm_s: i64,
    ) -> Result<String, String> {
        self.is_running = false;
        self.most_waited = self.most_waited.max(self.waited);
        if let Ok(seconds) = &done {
            self.written += 1;
            self.took += Duration::try_from_secs_f64(*seconds).unwrap_or_default();
        }
        for slot in std::mem::take(&mut self.answered) {
            slot.put(Answer::Reply(match &done {
                Ok(_) => Reply::OK,
                Err(why) => Reply::Error(format!("Could not save check point file. {why}")),
            }));
        }
        match done {
            Ok(seconds) if seconds >= alarm_s as f64 => Err(format!(
                "svr:check_pt in {seconds:.0} seconds, more than the {alarm_s} of its alarm; \
                 commands waited {} us",
                self.waited.as_micros()
            )),
            Ok(seconds) => Ok(format!(
                "svr:check_pt in {seconds:.0} seconds ({:.0} ms; commands waited {} us)",
                seconds * 1e3,
                self.waited.as_micros()
            )),
            Err(why) => {
                self.at = None;
                Err(format!("svr:check_pt failed: {why}"))
            }
        }
    }
}

impl Work {
    /// Renders and writes it, and returns the seconds that this took.
    pub(super) fn write(self) -> Result<f64, String> {
        let begun = Instant::now();
        let failed = |why: io::Error| format!("{}: {why}", self.path.display());
        replace(&self.path, &self.old, &self.known, self.render).map_err(failed)?;
        Ok(begun.elapsed().as_secs_f64())
    }
}

/// Replaces the checkpoint; the one before it has the name `old` then. Whatever fails, there is one
/// by the checkpoint's name, and the journal knows it.
fn replace(path: &Path, old: &Path, known: &Known, render: Render) -> io::Result<()> {
    let mut content = Content::default();
    base::replace_file(path, |file| {
        let mut parts = Parts { file, content: &mut content, written: 0, begun: 0 };
        let mut done = Ok(());
        render(&mut |piece| {
            if done.is_ok() {
                done = parts.write(piece.as_bytes());
            }
        });
        done?;
        parts.write(MARK)?;
        // The other one is kept until this one is durable.
        file.sync_all()?;
        known.also(path, &content)?;
        keep(path, old)
    })?;
    known.only(path, &content)
}

/// Gives a file, where there is one, a second name in the place of what has that.
fn keep(path: &Path, second: &Path) -> io::Result<()> {
    let mut beside = second.as_os_str().to_owned();
    beside.push(".link");
    let beside = Path::new(&beside);
    // A process that was killed may have left it; and a name of the same file takes no other's
    // place, but stays.
    let clear = || match fs::remove_file(beside) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => Err(why),
        _ => Ok(()),
    };
    clear()?;
    match fs::hard_link(path, beside) {
        Ok(()) => fs::rename(beside, second).and_then(|()| clear()),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
        // Some file systems know no second names: there it has the other one only, for a moment.
        Err(_) => fs::rename(path, second),
    }
}

/// A file that is written from its beginning to its end, and read by no one soon.
struct Parts<'a> {
    file: &'a mut File,
    content: &'a mut Content,
    written: u64,
    /// How much of it the disk has begun with.
    begun: u64,
}

impl Parts<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.content.add(bytes);
        self.written += bytes.len() as u64;
        if self.written - self.begun >= PART_BYTES {
            let part = NonZeroU64::new(self.written - self.begun);
            // It begins to write what isn't on the disk yet. Where it doesn't, that is done at the
            // end, as all other errors are found there.
            let _ = fadvise(&self.file, self.begun, part, Advice::DontNeed);
            self.begun = self.written;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_checkpoint_whose_last_step_fails_leaves_the_one_before_by_its_name() {
        let home = tempfile::tempdir().expect("a folder");
        let [path, old, new] = ["c", "c.b", "c.new"].map(|name| home.path().join(name));
        let data = tempfile::tempdir().expect("a folder");
        let known = Known::of(data.path(), home.path());
        let of = |text: &'static str| -> Render { Box::new(move |take| take(text)) };
        let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        for (text, before) in [("1\n", ""), ("2\n", "1\n# loadline\n")] {
            replace(&path, &old, &known, of(text)).expect("written");
            assert_eq!((read(&path), &*read(&old)), (format!("{text}# loadline\n"), before));
        }
        let fails: Render = Box::new(move |_| fs::remove_file(&new).expect("it is being written"));
        replace(&path, &old, &known, fails).expect_err("it has no name that could be replaced");
        assert_eq!(read(&path), "2\n# loadline\n");
        refuse_other(&path, &known, data.path()).expect("it is known");
        replace(&path, &old, &known, of("3\n")).expect("written");
        assert_eq!([read(&path), read(&old)], ["3\n# loadline\n", "2\n# loadline\n"]);
        // Both may have been given one name.
        keep(&path, &path).expect("it has that name");
        assert_eq!(read(&path), "3\n# loadline\n");
        assert_eq!(fs::read_dir(home.path()).expect("a folder").count(), 2);
    }

    #[test]
    fn a_checkpoint_that_is_not_known_is_damaged_or_another_server_s_by_how_it_ends() {
        let home = tempfile::tempdir().expect("a folder");
        let known = Known::of(home.path(), home.path());
        let check = home.path().join("h.1.ecf.check");
        let journal = tempfile::tempdir().expect("a folder");
        for (end, said) in [
            ("# enddef\n# loadline\n", "is not what this server has left"),
            ("# enddef\n# loadlinf\n", "is damaged"),
            ("# enddef\n# load", "is damaged"),
            ("# enddef\n", "is not what this server has left"),
        ] {
            fs::write(&check, format!("#5.9.2\nsuite s\nendsuite\n{end}")).expect("written");
            let why = refuse_other(&check, &known, journal.path()).expect_err("refused");
            assert!(why.to_string().contains(said), "{end:?}: {why}");
        }
        note_taken(&check, &known).expect("noted");
        refuse_other(&check, &known, journal.path()).expect("it is the one that was taken");
        fs::write(&check, "#5.9.2\nsuite t\nendsuite\n# enddef\n").expect("written");
        refuse_other(&check, &known, journal.path()).expect_err("as long, and another");
        let other = home.path().join("h.2.ecf.check");
        fs::write(&other, "").expect("written");
        assert_eq!(others(home.path(), &check), [other]);
    }

    #[test]
    fn a_pipe_or_device_in_place_of_the_checkpoint_is_refused_and_not_waited_for() {
        let home = tempfile::tempdir().expect("a folder");
        let [pipe, zero] = ["pipe", "zero"].map(|name| home.path().join(name));
        let mode = rustix::fs::Mode::RUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).expect("a pipe");
        std::os::unix::fs::symlink("/dev/zero", &zero).expect("a link");
        for (check, what) in [(pipe, "a pipe (FIFO)"), (zero, "a device")] {
            let known = Known::of(home.path(), home.path());
            let said = refuse_other(&check, &known, home.path()).expect_err("refused").to_string();
            assert!(said.contains(what), "{said}");
        }
    }

    #[test]
    fn what_a_group_asks_for_while_a_checkpoint_is_written_is_in_another() {
        let home = tempfile::tempdir().expect("a folder");
        let environment = Environment::new(home.path(), 3141, 1, |_| None).expect("a home");
        let environment = Arc::new(environment);
        let core = Core::new(Arc::clone(&environment));
        let mut checkpoints = Checkpoint::new(Known::of(home.path(), home.path()));
        checkpoints.ask_again();
        let first = checkpoints.begin(&core, &environment);
        assert!(!checkpoints.is_asked(), "it has what was there");
        checkpoints.ask_again();
        let done = checkpoints.done(first.write(), 60);
        assert!(done.is_ok() && checkpoints.is_asked(), "{done:?}");
        checkpoints.begin(&core, &environment);
        assert!(!checkpoints.is_asked());
    }
}
