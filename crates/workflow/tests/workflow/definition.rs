//! Definitions read and printed: byte by byte as ecFlow's Python module does both.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use workflow::definition::{Style, parse, print};

use crate::random_definition::{Random, definition};

/// The interpreter for which Debian's module is.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// Whether ecFlow's module is there; the test is skipped where it isn't.
pub(crate) fn has_ecflow() -> bool {
    let import = Command::new(PYTHON).args(["-c", "import ecflow"]).output();
    let is_there = import.is_ok_and(|output| output.status.success());
    if !is_there {
        testing::skip("python3-ecflow is not installed (`cargo xtask peers` installs the peers)");
    }
    is_there
}

/// Lets ecFlow answer for all definitions of a folder.
pub(crate) fn ask(folder: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workflow/oracle.py");
    let output = Command::new(PYTHON).arg(script).arg(folder).output().expect("python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

const STYLES: [Style; 3] = [Style::Defs, Style::State, Style::Migrate];

/// The first line in which two texts differ.
fn difference(ours: &str, theirs: &str) -> String {
    let mut ours_lines = ours.lines();
    for (number, theirs) in theirs.lines().enumerate() {
        let ours = ours_lines.next().unwrap_or("(no line)");
        if ours != theirs {
            return format!("line {}:\n ours   {ours:?}\n ecFlow {theirs:?}", number + 1);
        }
    }
    format!("ours goes on: {:?}", ours_lines.next())
}

/// Compares our answer for a definition with ecFlow's; `None` where they are equal.
fn compare(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).expect("a definition");
    let with = |suffix: &str| fs::read_to_string(format!("{}.{suffix}", path.display())).ok();
    if with("abort").is_some() {
        return None;
    }
    let parsed = parse(&text, "x.def");
    if let Some(error) = with("error") {
        return parsed.is_ok().then(|| format!("we read what ecFlow refuses:\n{error}"));
    }
    let mut parsed = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return Some(format!("we refuse what ecFlow reads: {error}")),
    };
    let theirs = with("MIGRATE").expect("ecFlow's answer");
    // A server's own variables are its host's; the module makes some up.
    let known = parse(&theirs, "ecflow").expect("ecFlow's text").tree;
    parsed.tree.server_mut().variables.clone_from(&known.server().variables);
    for style in STYLES {
        let theirs = with(style.word()).expect("ecFlow's answer");
        // The module's MIGRATE text is that of a client, which has no history of its own.
        let mut ours = parsed.tree.clone();
        ours.server_mut().history.clear();
        let ours = print(&ours, style, true);
        if ours != theirs {
            return Some(format!("{}: {}", style.word(), difference(&ours, &theirs)));
        }
        let again = parse(&theirs, "again").map(|again| print(&again.tree, style, true));
        if again.as_ref() != Ok(&theirs) && style != Style::Defs {
            let again = again.unwrap_or_else(|error| error.to_string());
            return Some(format!("{} again: {}", style.word(), difference(&again, &theirs)));
        }
    }
    None
}

pub(crate) fn compare_all(folder: &Path) {
    ask(folder);
    let mut paths: Vec<_> = fs::read_dir(folder).expect("a folder").flatten().collect();
    paths.sort_by_key(std::fs::DirEntry::path);
    let is_definition = |path: &Path| path.extension().is_some_and(|end| end == "def");
    let paths: Vec<_> = paths.iter().map(std::fs::DirEntry::path).collect();
    let mut wrong = Vec::new();
    for path in paths.iter().filter(|path| is_definition(path)) {
        if let Some(reason) = compare(path) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            wrong.push(format!("{name}: {reason}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n\n"));
}

#[test]
fn random_definitions_print_as_ecflow_prints_them() {
    if !has_ecflow() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let text = definition(&mut random, seed % 2 == 1);
        fs::write(folder.path().join(format!("seed{seed:03}.def")), text).expect("written");
    }
    compare_all(folder.path());
}

/// Lines whose printing is odd, or whose reading is.
const QUIRKS: &[&str] = &[
    "edit A \"it's\"",
    "edit A 'say \"x\"'",
    "edit A '\"both\"'",
    "edit A 'a   b\tc'  # comment",
    "edit A 'a # b'",
    "edit A 'x#y'; edit B 'z'",
    "edit A 'x;y'",
    "edit A '1' ; edit B 2; edit A 3",
    "repeat enumerated E a \"b c\"",
    "repeat string S \"a b\" 'c'",
    "repeat integer I 1 3 # comment",
    "repeat date D 20240101 20240110 1",
    "repeat datelist L 20240101 '20240103'",
    "repeat day 1",
    "event 2",
    "event 2 set",
    "event 3 three set",
    "event set",
    "event set set",
    "event 12ab",
    "label a \"x\\ny\" # comment",
    "label a \"a;b\"",
    "label a ''",
    "label a b c d",
    "meter m 0 10 # x",
    "meter m -10 10 5",
    "limit l 3 # 2 /x",
    "inlimit -n /a/b:l 3",
    "inlimit -s l # x",
    "late -c +02:00 -s +00:15 -a 20:00 # x",
    "autocancel +01:00",
    "autocancel 3",
    "autocancel 01:00",
    "zombie ecf:fob:init,complete:300",
    "zombie user:::10",
    "zombie path:block::",
    "verify complete:2",
    "queue Q 's1' \"s2\" s3 # x",
    "generic G a b # c",
    "time +00:05 10:05 00:30",
    "time 10:00 # x",
    "today 10:00 20:00 01:00",
    "date 1.*.*",
    "date 01.02.2026",
    "day monday # x",
    "cron -w 0, 1 ,2 10:00",
    "cron -w 5L -d L,1 -m 1,2 10:00 20:00 00:10",
    "cron 10:00 # x",
    "defstatus suspended",
    "trigger 1 == 1\ntrigger -a 2 == 2\ntrigger -o 3 == 3",
    "trigger 1 == 1 and \\\n  2 == 2 \\\n or 3 == 3 # x",
    "complete   1   ==  1 # comment",
    "trigger 1 == 1 # free",
];

/// Lines that are refused.
const REFUSED: &[&str] = &[
    "edit",
    "edit A",
    "edit A # x",
    "edit .A x",
    "nonsense",
    "meter m 10 0",
    "meter m 0 10 11",
    "meter m a b",
    "meter m 0 10\nmeter m 0 1",
    "event e\nevent e",
    "label a",
    "label a b\nlabel a c",
    "limit l",
    "limit l x",
    "limit l 1\nlimit l 2",
    "inlimit -n -s l",
    "inlimit l\ninlimit l",
    "late -s",
    "late -x 10:00",
    "late -s 10:00 -s 11:00",
    "time 1:00",
    "time 24:00",
    "time 10:00 9:00 01:00",
    "time 10:00 11:00 02:00",
    "time 10:00 11:00",
    "today x",
    "date 32.1.2026",
    "date 30.2.2026",
    "date 1.2",
    "day Monday",
    "cron -w 7 10:00",
    "cron -w 1",
    "cron -w 1,1L 10:00",
    "repeat integer I 1",
    "repeat date D 20240230 20240301",
    "repeat date D 20240301 20240201",
    "repeat date D 20240301 20240302 0",
    "repeat month 1",
    "repeat integer I 1 2\nrepeat integer J 1 2",
    "repeat integer I 1 2\ncron 10:00 20:00 01:00",
    "cron 10:00\nrepeat integer I 1 2",
    "autocancel x",
    "autocancel 1\nautocancel 2",
    "zombie x:fob",
    "zombie ecf",
    "zombie ecf:fob\nzombie ecf:fail",
    "verify x:1",
    "queue Q",
    "defstatus x",
    "defstatus queued\ndefstatus queued",
    "trigger",
    "trigger a ==",
    "trigger -a 1 == 1",
    "trigger 1 == 1\ntrigger 2 == 2",
    "trigger nowhere == complete",
    "trigger :NOTHING == 1",
    "clock real",
    "autoarchive 1",
    "endfamily2",
    "suite again",
];

#[test]
fn quirks_and_refusals_are_those_of_ecflow() {
    if !has_ecflow() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    for (name, lines) in [("quirk", QUIRKS), ("refused", REFUSED)] {
        for (number, line) in lines.iter().enumerate() {
            let text = format!("suite s\nfamily f\ntask t\n{line}\nendfamily\nendsuite\n");
            fs::write(folder.path().join(format!("{name}{number:02}.def")), text).expect("written");
        }
    }
    // Behind the first `;` of a last line without its end nothing is read.
    let unended = "suite s\nendsuite\nsuite t; clock real +01:00; endclock +01:00; endsuite";
    fs::write(folder.path().join("unended.def"), unended).expect("written");
    compare_all(folder.path());
    for number in 0..REFUSED.len() {
        let path = folder.path().join(format!("refused{number:02}.def"));
        let text = fs::read_to_string(path).expect("a definition");
        assert!(parse(&text, "x").is_err(), "{text}");
    }
}
