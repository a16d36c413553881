//! A process that appends to a real directory and is killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use journal::{Directory, Options};

use super::{open_with, put, snapshot};

/// The variable by which a process of this test learns its directory.
const FOLDER: &str = "JOURNAL_OF_CHILD";

#[test]
#[ignore = "a process of the next test, which ends by being killed"]
fn the_child_appends_and_prints_what_was_acknowledged() {
    let folder = std::env::var_os(FOLDER).expect("started by the next test");
    let options = Options { segment_bytes: 20_000, ..Options::default() };
    let (mut journal, ..) = open_with(Directory::new(folder), options).expect("opens");
    loop {
        let count = 1 + journal.last() % 5;
        put(&mut journal, count).expect("acknowledged");
        writeln!(std::io::stdout(), "acknowledged {}", journal.last()).expect("printed");
        if journal.last() % 40 == 0 {
            snapshot(&mut journal).expect("made");
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = "kill::the_child_appends_and_prints_what_was_acknowledged";
    let mut last = 0;
    for round in 0..10 {
        let mut process = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", child, "--ignored", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let mut acknowledged = lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("acknowledged ")?.parse::<u64>().ok());
        // The output goes on until the kill; what it holds then was acknowledged as well.
        last = acknowledged.nth(5 + 7 * round).expect("it appends");
        process.kill().expect("killed");
        process.wait().expect("gone");
        last = acknowledged.last().unwrap_or(last);
        let directory = Directory::new(folder.path());
        assert!(journal::check(&directory).expect("read").damaged.is_empty());
        let (_, report, count, _) = open_with(directory, Options::default()).expect("opens");
        assert!(count >= last, "{count} of {last} records: {report:?}");
    }
    assert!(last > 100);
}
