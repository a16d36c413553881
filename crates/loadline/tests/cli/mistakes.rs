//! What was typed wrongly ends with 2, whatever the command; what the world refuses, with 1.

use crate::common::{Place, code, small_reads, stderr};

/// Each command line with what it says; all in a folder with a suite, without a ledger.
const TYPED: &[(&str, &str)] = &[
    ("run nosuch.toml", "nosuch.toml: there is no such file"),
    ("plan suite.toml --ledger suite.toml", "name another file with --ledger"),
    ("run suite.toml --wait --ledger suite.toml", "name another file with --ledger"),
    ("report --ledger nosuch.sqlite", "no ledger at nosuch.sqlite"),
    ("report last", "measure something first"),
    ("report --html - --json", "--html - and --json both go to standard output"),
    ("compare", "loadline compare suites/tour.toml --a loadline --b memcached"),
    ("try", "loadline try memcached 127.0.0.1:11211"),
    ("serve cache --memory 10", "write 10MiB"),
    ("serve cache --memory 0", "write 1MiB"),
    ("rerun last --ledger .", ". is no file"),
    ("compare --runs 1 2 --ledger suite.toml", "file is not a database"),
    ("compare suite.toml --a ours --b theirs", "the suite has ours"),
    ("compare suite.toml --commits nosuch..HEAD --build true", "there is no commit \"HEAD\" here"),
    ("compare suite.toml --a ours --b ours --measure 0s", "at least 10 ms"),
    ("compare suite.toml --a ours --b ours --markdown", "--markdown is of --runs"),
    ("compare --samples a b --markdown", "--markdown is of --runs"),
    ("capacity suite.toml --measure 1ms", "at least 10 ms"),
    ("capacity suite.toml --from 5/s --most 1/s", "--from 5.00/s is above --most 1.00/s"),
    ("history --metric nosuch", "there is no metric \"nosuch\""),
    ("history --ledger nosuch.sqlite", "no ledger at nosuch.sqlite"),
    ("ladder --ledger suite.toml --keep a --because b", "name another file with --ledger"),
    ("ledger list --ledger nosuch.sqlite", "no ledger at nosuch.sqlite"),
    ("ledger merge nosuch.sqlite", "no ledger at nosuch.sqlite"),
    ("ledger prune --keep 1 --ledger nosuch.sqlite", "no ledger at nosuch.sqlite"),
    ("ui --listen 127.0.0.1:0 --ledger nosuch.sqlite", "no ledger at nosuch.sqlite"),
    ("serve cache -o nosuch=1", "-o nosuch: this service has no such option"),
    ("serve cache -o ext_path=/a", "-o ext_path: there is no storage"),
    ("serve cache -o idle_timeout=x", "-o idle_timeout=NUMBER"),
    ("serve cache -o ssl_key=a", "add -Z"),
    ("serve cache -d", "leave it to a service manager"),
    ("serve cache -p 0", "-p 0 needs -U or -s"),
    ("serve cache --max-item 0", "--max-item has to be at least"),
    ("serve cache -l 127.0.0.1:0 --memory 1KiB", "change --memory"),
    ("serve cache -m 999999999999999999", "-m is too many megabytes"),
    ("serve cache -l 127.0.0.1:0 --threads 2 --store single", "--store global-lock"),
    ("serve cache --auth-file nosuch", "nosuch: No such file"),
    ("serve cache --auth-file suite.toml", "line 1 is not NAME:PASSWORD"),
    ("serve cache --tls-cert suite.toml", "no certificate can be read"),
    ("serve records --config nosuch", "nosuch: No such file"),
    ("serve records --config suite.toml", "suite.toml declares no records"),
    ("serve records --listen nosuch:x", "--listen \"nosuch:x\" is no address"),
    ("serve records --listen 127.0.0.1:0 --max-message 1", "--max-message has to be"),
    ("serve null --listen unix:s --plant nagle", "Nagle is in TCP"),
    ("cache get k --auth-file nosuch", "nosuch: No such file"),
    ("cache get k --tls-ca nosuch", "nosuch: No such file"),
    ("records put name", "write either the value to put, or --size"),
    ("records get one two --repeat", "only one channel"),
];

/// What is typed well, and can't be done.
const REFUSED: &[(&str, &str)] = &[
    ("serve cache -l unix:/dev/null/socket", "cannot listen on unix:/dev/null/socket"),
    ("cache get k --server unix:/nosuch/socket", "loadline serve cache"),
    ("records get name --server 127.0.0.1:1", "loadline serve records"),
];

#[test]
fn a_mistake_of_whoever_typed_ends_with_2_and_what_the_world_refuses_with_1() {
    let place = Place::with(&small_reads(&[("ours", "serve = \"cache\"")], ""));
    for (lines, expected) in [(TYPED, 2), (REFUSED, 1)] {
        for (line, said) in lines {
            let output = place.loadline(&line.split(' ').collect::<Vec<_>>());
            let text = stderr(&output);
            assert_eq!(code(&output), expected, "{line}: {text}");
            assert!(text.contains(said) && !text.contains("panicked"), "{line}: {text}");
        }
    }
}

#[test]
fn a_pipe_that_may_never_be_written_to_is_refused_at_once() {
    let suite = "title = 'A'\n[[target]]\nname = 'a'\naddress = '127.0.0.1:1'\nspeaks = 'http'\n\
         [workload]\nservice = 'http'\noperation = 'a'\n\
         [[workload.request]]\nname = 'a'\nmethod = 'PUT'\npath = '/'\nbody_file = 'pipe'\n\
         [[clients]]\nconnections = 1\n";
    let place = Place::with(suite);
    let made = std::process::Command::new("mkfifo").arg(place.path().join("pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    place.refuses(&["plan", "pipe"], 2, "pipe: it is a pipe (FIFO)");
    place.refuses(&["plan", "suite.toml"], 2, "pipe: it is a pipe (FIFO)");
}

#[test]
fn a_file_of_authorities_that_is_missing_is_found_by_the_plan() {
    let suite = "title = 'A'\n[[target]]\nname = 'a'\naddress = '127.0.0.1:1'\n\
         speaks = { http = { tls = true, ca = 'no/such.pem' } }\n\
         [workload]\nservice = 'http'\noperation = 'a'\n\
         [[workload.request]]\nname = 'a'\npath = '/'\n[[clients]]\nconnections = 1\n";
    let place = Place::with(suite);
    place.refuses(&["plan", "suite.toml"], 2, "no/such.pem");
    place.refuses(&["run", "suite.toml"], 2, "suite.toml:5");
    assert!(!place.ledger().exists());
}

#[test]
fn a_worktree_without_commits_is_refused_before_anything_starts() {
    let target = "command = [\"{worktree}/server\", \"{port}\"]\nspeaks = \"memcached\"";
    let place = Place::with(&small_reads(&[("ours", target)], ""));
    let said = "{worktree} is where a commit is built, and none is";
    place.refuses(&["run", "suite.toml"], 2, said);
    place.refuses(&["capacity", "suite.toml"], 2, said);
    place.refuses(&["compare", "suite.toml", "--a", "ours", "--b", "ours"], 2, said);
}
