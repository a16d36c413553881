//! Output whose reader has gone away, and input that makes no sense.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use crate::common::{Place, await_end, code, small_reads, stderr, stdout};

/// Two rounds of a cache that answers wrongly, so that the exit code is 3.
fn broken() -> String {
    let ours = "serve = \"cache\"\noptions = { test-corrupt-every = 10 }";
    let rounds = "measure = \"60ms\"\nslice = \"30ms\"\nat_least = 2\nat_most = 2\n\
                  [require]\nwrong = \"= 0\"";
    small_reads(&[("ours", ours)], rounds)
}

#[test]
fn a_run_that_nobody_reads_goes_on_to_its_end_and_its_exit_code() {
    let place = Place::with(&broken());
    std::fs::create_dir_all(place.path().join(".loadline")).expect("a folder");
    let mut command = place.command(&["run", "suite.toml", "--wait"]);
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a run");
    drop((run.stdout.take(), run.stderr.take()));
    assert_eq!(await_end(&mut run).code(), Some(3), "the requirement is broken all the same");
    let list = place.loadline(&["ledger", "list"]);
    assert!(stdout(&list).contains("finished"), "{}{}", stdout(&list), stderr(&list));
    assert!(place.path().join(".loadline/runs/1/report.html").is_file());
}

#[test]
fn a_disk_that_takes_no_more_is_an_error_and_a_reader_who_has_enough_is_none() {
    let place = Place::with(&broken());
    let full = || OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
    let plan = &["plan", "suite.toml"][..];
    for arguments in [plan, &["plan", "suite.toml", "--json"], &["--help"], &["plan", "--help"]] {
        let output = place.command(arguments).stdout(full()).output().expect("loadline runs");
        assert_eq!(code(&output), 1);
        assert!(stderr(&output).contains("No space left"), "{}", stderr(&output));
        let mut command = place.command(arguments);
        let mut read = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("runs");
        drop(read.stdout.take());
        assert_eq!(await_end(&mut read).code(), Some(0));
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_that_names_the_file_and_the_limit() {
    let place = Place::with(&broken());
    let exe = env!("CARGO_BIN_EXE_loadline");
    let script = format!("ulimit -f 64; {exe} run suite.toml --wait --ledger here.sqlite");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).current_dir(place.path());
    shell.env("LOADLINE_LOCK", place.path().join("loadline.lock"));
    let output = shell.output().expect("sh runs");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(said.contains("here.sqlite") && said.contains("bytes (ulimit -f)"), "{said}");
}

#[test]
fn a_file_without_end_or_text_is_refused_by_name_and_line() {
    let place = Place::with(&broken());
    let latin = place.path().join("latin.toml");
    std::fs::write(latin, b"title = 'a'\n# caf\xe9\n").expect("written");
    for (arguments, expected, said) in [
        (&["run", "/dev/zero"][..], 2, "/dev/zero: it is longer than 4 MiB"),
        (&["plan", "latin.toml"], 2, "latin.toml:2: this line is no UTF-8 text"),
        (&["plan", "."], 2, ".: it is a directory"),
        (&["compare", "--samples", "/dev/zero", "suite.toml"], 2, "longer than 64 MiB"),
        (&["serve", "records", "--config", "latin.toml"], 2, "latin.toml:2: this line"),
        (&["serve", "cache", "--tls-cert", "/dev/zero"], 2, "/dev/zero: it is a device"),
    ] {
        let output = place.loadline(arguments);
        let text = stderr(&output);
        assert_eq!(code(&output), expected, "{arguments:?}: {text}");
        assert!(text.contains(said) && !text.contains("panicked"), "{arguments:?}: {text}");
    }
}

#[test]
fn a_suite_whose_name_is_no_text_runs() {
    let place = Place::with(&broken());
    let name = OsStr::from_bytes(b"caf\xe9.toml");
    std::fs::rename(place.path().join("suite.toml"), place.path().join(name)).expect("renamed");
    std::fs::create_dir_all(place.path().join(".loadline")).expect("a folder");
    let output = place.command(&["run", "--wait"]).arg(name).output().expect("loadline runs");
    assert_eq!(code(&output), 3, "{}", stderr(&output));
}

/// No line is wider than 100 columns.
fn assert_narrow(text: &str) {
    let wide: Vec<&str> = text.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(!text.is_empty() && wide.is_empty(), "{wide:#?}");
}

#[test]
fn the_doctor_and_the_list_of_runs_are_100_columns_wide_at_most() {
    let long = "Small reads of a service whose name, title and purpose take many words to say";
    let place = Place::with(&broken().replace("Small reads", long));
    place.loadline(&["run", "suite.toml", "--wait"]);
    let list = stdout(&place.loadline(&["ledger", "list"]));
    assert!(list.contains("many words") && list.lines().count() > 2, "{list}");
    assert_narrow(&list);
    assert_narrow(&stdout(&place.loadline(&["doctor", "--wait"])));
}

#[test]
fn runs_with_other_temporary_folders_see_each_other() {
    let place = Place::with(&broken());
    let lock = std::fs::File::create(place.path().join("loadline.lock")).expect("a lock");
    lock.lock().expect("it is free");
    let mut command = place.command(&["run", "suite.toml"]);
    let output = command.env("TMPDIR", tempfile::tempdir().expect("a folder").path()).output();
    let output = output.expect("loadline runs");
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("this host is measuring already"), "{}", stderr(&output));
}

#[test]
fn a_lock_that_is_a_link_is_refused_and_what_it_points_at_stays_as_it_is() {
    let place = Place::with(&broken());
    let (lock, other) = (place.path().join("loadline.lock"), place.path().join("other"));
    std::fs::write(&other, "kept").expect("a file");
    std::os::unix::fs::symlink(&other, &lock).expect("a link");
    let output = place.command(&["run", "suite.toml"]).output().expect("loadline runs");
    assert_eq!(code(&output), 1);
    assert!(stderr(&output).contains("loadline.lock"), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&other).expect("it is there"), "kept");
}

#[test]
fn a_title_cannot_write_escape_sequences_to_the_terminal() {
    let text = broken().replace("Small reads", "\\u001b[2JSmall");
    let place = Place::with(&text);
    for arguments in [&["plan", "suite.toml"][..], &["run", "suite.toml", "--wait"]] {
        let output = place.loadline(arguments);
        let all = [output.stdout, output.stderr].concat();
        assert!(!all.contains(&0x1b), "{}", String::from_utf8_lossy(&all));
    }
    for arguments in [&["ledger", "list"][..], &["ledger", "prune", "--keep", "0", "--dry-run"]] {
        let output = place.loadline(arguments);
        assert!(stdout(&output).contains("\\u{1b}[2JSmall"), "{}", stdout(&output));
    }
}
