//! `loadline workflow check` beside ecFlow's parser: what one refuses, the other does, too.

use std::fs;

use tempfile::TempDir;
use workflow::definition::examine;

use crate::definition::{ask, has_ecflow};
use crate::random_definition::{Random, definition};

/// Words that are put in place of others.
const WORDS: &[&str] = &[
    "",
    "x",
    "0",
    "-1",
    "7",
    "10:00",
    "24:00",
    "+00:10",
    "#",
    "complete",
    "set",
    "==",
    "and",
    "(",
    "/s0/f0",
    "nowhere",
    "-a",
    "-w",
    "1.1.2026",
    "monday",
    "99999999999",
    "'",
    "a:b",
    ".",
    "%",
];

/// A definition in which a word or line is another than it was.
fn spoilt(random: &mut Random) -> String {
    let text = definition(random, false);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..1 + random.below(2) {
        let at = random.below(lines.len() as u64) as usize;
        match random.below(6) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            2 => {
                let other = random.below(lines.len() as u64) as usize;
                lines.swap(at, other);
            }
            _ => {
                let mut words: Vec<&str> = lines[at].split(' ').collect();
                let place = random.below(words.len() as u64) as usize;
                words[place] = random.pick(WORDS);
                lines[at] = words.join(" ");
            }
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn spoilt_definitions_are_refused_where_ecflow_refuses_them() {
    if !has_ecflow() {
        return;
    }
    let folder = TempDir::new().expect("a folder");
    let seeds = 0..400;
    for seed in seeds.clone() {
        let text = spoilt(&mut Random::new(seed));
        fs::write(folder.path().join(format!("{seed}.def")), text).expect("written");
    }
    ask(folder.path());
    let (mut wrong, mut refused) = (Vec::new(), 0);
    for seed in seeds {
        let path = folder.path().join(format!("{seed}.def"));
        let with = |suffix: &str| fs::read_to_string(format!("{}.{suffix}", path.display())).ok();
        if with("abort").is_some() {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a definition");
        let ours = examine(&text, "x.def").faults;
        match (ours.first(), with("error")) {
            (None, None) => {}
            (Some(fault), Some(_)) => {
                refused += 1;
                assert!(fault.line > 0 && !fault.message.is_empty(), "seed {seed}: {fault}");
            }
            (Some(fault), None) => wrong.push(format!("seed {seed}: ecFlow reads it: {fault}")),
            // One quote alone as a value takes all of its memory.
            (None, Some(error)) if error.contains("bad_alloc") => {}
            (None, Some(error)) => wrong.push(format!("seed {seed}: ecFlow refuses it: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(refused > 40, "only {refused} were refused");
}
