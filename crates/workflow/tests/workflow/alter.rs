//! `--alter`: each command leaves the same definition as in ecFlow's server.

use testing::program;

use crate::edited::said;
use crate::jobs::normalised;
use crate::place::Place;
use crate::served::Served;

const SUITES: &str = "\
suite s
  edit B '1'
  edit A '2'
  clock real 300
  limit lim 3
  limit abc 3
  label z \"z\"
  label b \"y\"
  family f
    repeat integer R 1 5
    time 10:00
    time 11:00
    today 12:00
    date 1.*.*
    day monday
    cron 13:00
    inlimit /s:lim
    inlimit -n abc 2
    zombie ecf:fob::
    late -s +00:10
    task t
      trigger u == complete
      complete u:ev
      repeat enumerated E a b c
      queue Q x y
      generic G 1 2
    task u
      event ev
      event 2 aa
      event 1 zz
      meter m 0 10
      repeat date D 20240101 20240110 1
    task v
      repeat string S one two
  endfamily
endsuite
suite t
  task x
endsuite
suite nc
 task x
endsuite
suite d
  task a
    repeat integer I 1 9 2
  task b
    repeat date D 20240101 20240131 2
  task c
    repeat datelist L 20240101 20240205 20240301
  task d
    repeat day 1
  task e
    repeat integer I 5 -5 -2
  task g
    repeat string S 2 b 7 8
  task h
    edit b 1
    edit A 2
    edit a 3
    edit _c 3
    edit C2 3
    label b x
    label A x
    label a x
    label c x
    meter B 0 1
    meter a 0 1
    limit B 1
    limit a 1
    event 7 b
    event 3
    event 10
    event B
    event a
    cron -w 1,2 10:00
  family i
    task z
    task A
      edit b 1
      edit a 1
endsuite
";

/// The words of each command, parted by bars.
const COMMANDS: &[&str] = &[
    "add|time|+00:20|/s/f/u",
    "add|time|10:00|/s/f/u",
    "add|time|10:00|12:00|00:30|/s/f/u",
    "add|time|10:00 12:00 00:30|/s/f/u",
    "add|today|10:00|/s/f/u",
    "add|today|+10:00 11:00 00:30|/s/f/u",
    "add|date|02.*.*|/s/f/u",
    "add|date|2.*.2024|/s/f/u",
    "add|day|sunday|/s/f/u",
    "add|zombie|ecf:fail::|/s/f/u",
    "add|zombie|ecf:fob::|/s/f/u",
    "add|zombie|path:kill:init:20|/s/f/u",
    "add|late|-s 00:01 -a 14:30 -c +00:01|/s/f/u",
    "add|late|-s 00:01|/s/f/u",
    "add|limit|mars|100|/s/f/u",
    "add|inlimit|/s/f/u:mars|10|/s/f/u",
    "add|inlimit|mars|10|/s/f/u",
    "add|inlimit|nope|/s/f/u",
    "add|inlimit|/nope:nope|1|/s/f/u",
    "add|inlimit|lim|/s/f/u",
    "add|label|lab|value|/s/f/u",
    "add|variable|V|w|/s/f/u",
    "delete|time|10:00|/s/f/u",
    "delete|time|23:00|/s/f/u",
    "delete|time|10:00 12:00 00:30|/s/f/u",
    "delete|time|/s/f/u",
    "delete|today|/s/f/u",
    "delete|date|2.*.*|/s/f/u",
    "delete|date|5.*.*|/s/f/u",
    "delete|date|/s/f/u",
    "delete|day|sunday|/s/f/u",
    "delete|day|tuesday|/s/f/u",
    "delete|zombie|ecf|/s/f/u",
    "delete|zombie|path|/s/f/u",
    "delete|late|/s/f/u",
    "delete|cron|13:00|/s/f",
    "delete|cron|/s/f",
    "delete|inlimit|/s/f/u:mars|/s/f/u",
    "delete|inlimit|mars|/s/f/u",
    "delete|inlimit|lim|/s/f/u",
    "delete|inlimit|zork|/s/f/u",
    "delete|inlimit|/s/f",
    "delete|event|ev|/s/f/u",
    "delete|event|1|/s/f/u",
    "delete|event|nope|/s/f/u",
    "delete|event|/s/f/u",
    "delete|meter|m|/s/f/u",
    "delete|meter|nope|/s/f/u",
    "delete|label|nope|/s/f/u",
    "delete|limit|nope|/s/f/u",
    "delete|limit_path|lim|/nope|/s",
    "delete|generic|G|/s/f/t",
    "delete|queue|Q|/s/f/t",
    "change|trigger|v == complete|/s/f/t",
    "change|trigger|nope == complete|/s/f/t",
    "change|trigger|v == = complete|/s/f/t",
    "change|trigger|v ==|/s/f/t",
    "change|complete|v ==|/s/f/t",
    "change|trigger|v|/s/f/t",
    "change|trigger|v == done|/s/f/t",
    "change|trigger|v = complete|/s/f/t",
    "change|trigger|== complete|/s/f/t",
    "change|trigger|v == complete and|/s/f/t",
    "change|trigger|v == complete and not|/s/f/t",
    "change|complete|v == complete or (|/s/f/t",
    "change|trigger|v == complete v == complete|/s/f/t",
    "change|trigger|(v == complete|/s/f/t",
    "change|trigger|(v ==|/s/f/t",
    "change|trigger|v == complete) |/s/f/t",
    "change|trigger|u:ev ==|/s/f/t",
    "change|trigger|1 == |/s/f/t",
    "change|trigger|1 + |/s/f/t",
    "change|trigger|1 == 2 +|/s/f/t",
    "change|trigger|v == complete && u:ev ge|/s/f/t",
    "change|trigger|u:ev:x == 1|/s/f/t",
    "change|trigger|not v|/s/f/t",
    "change|trigger|v == complete # it|/s/f/t",
    "change|trigger|v ==|/s",
    "change|nope|x|/s/f/t",
    "add|trigger|v == complete|/s/f/t",
    "change|complete|v == aborted|/s/f/t",
    "change|complete|v == aborted|/s/f/v",
    "change|trigger|t == complete|/s/f/v",
    "change|trigger|/t/x == complete|/s",
    "delete|trigger|/s/f/t",
    "delete|complete|/s/f/t",
    "change|repeat|3|/s/f",
    "change|repeat|7|/s/f",
    "change|repeat|x|/s/f",
    "change|repeat|b|/s/f/t",
    "change|repeat|2|/s/f/t",
    "change|repeat|q|/s/f/t",
    "change|repeat|20240105|/s/f/u",
    "change|repeat|20240205|/s/f/u",
    "change|repeat|two|/s/f/v",
    "change|repeat|0|/s/f/v",
    "change|repeat|1|/s",
    "delete|repeat|/s/f/v",
    "change|clock_type|hybrid|/s",
    "change|clock_type|odd|/s",
    "change|clock_type|real|/t",
    "change|clock_type|real|/s/f",
    "change|clock_gain|600|/s",
    "change|clock_gain|+700|/s",
    "change|clock_gain|-800|/s",
    "change|clock_gain|x|/s",
    "change|clock_gain|60|/nc",
    "change|clock_date|12.1.2010|/s",
    "change|clock_date|12.1|/s",
    "change|clock_date|*.1.2010|/s",
    "change|clock_date|12.1.2010|/t",
    "change|clock_sync|/t",
    "change|clock_sync|/s",
    "change|limit_max|lim|7|/s",
    "change|limit_value|lim|2|/s",
    "change|limit_max|lim|x|/s",
    "change|late|-s 00:05|/s/f",
    "change|late|-c +00:05|/s/f/v",
    "change|time|10:00|15:00|/s/f",
    "change|time|10:30|15:00|/s/f",
    "change|time|15:00|10:00 12:00 01:00|/s/f",
    "change|time|15:00|26:00|/s/f",
    "change|today|12:00|+01:00|/s/f",
    "change|meter|m|5|/s/f/u",
    "change|event|ev|set|/s/f/u",
    "change|defstatus|complete|/s/f/v",
    "change|defstatus|odd|/s/f/v",
    "change|label|z|new|/s",
    "sort|variable|/s",
    "sort|limit|/s",
    "sort|label|/s",
    "sort|event|/s/f/u",
    "sort|all|recursive|/s",
    "sort|variable|recursive|/s",
    "set_flag|late|/s",
    "clear_flag|late|/s",
    "add|variable|SV|1|/",
    "delete|variable|SV|/",
    "change|variable|ECF_MICRO|&|/",
    "delete|variable|nope|/s",
    "delete|repeat|/s/f",
    "delete|limit|lim|/s",
    "add|inlimit|/s:lim|2|/s/f/u",
    "delete|inlimit|lim|/s/f",
    "delete|inlimit|abc|/s/f",
    "delete|inlimit|/s:lim|/s/f",
    "delete|inlimit|/s:lim|/s/f/u",
    "change|repeat|20240102|/s/f/u",
    "delete|limit_path|lim|/x|/s",
    "change|repeat|4|/d/a",
    "change|repeat|5|/d/a",
    "change|repeat|12|/d/a",
    "change|repeat|20240103|/d/b",
    "change|repeat|20240102|/d/b",
    "change|repeat|20240205|/d/c",
    "change|repeat|1|/d/c",
    "change|repeat|20240299|/d/b",
    "change|repeat|-1|/d/e",
    "change|repeat|3|/d/e",
    "change|repeat|+3|/d/e",
    "change|repeat|2|/d/g",
    "change|repeat|b|/d/g",
    "change|repeat|7|/d/g",
    "change|clock_sync|/nc",
    "change|clock_sync|/nc/x",
    "change|clock_gain|10|/nc/x",
    "change|clock_type|hybrid|/nc",
    "change|clock_date|1.2.2020|/nc",
    "change|clock_gain|0|/nc",
    "sort|event|/d/h",
    "sort|meter|/d/h",
    "sort|label|/d/h",
    "sort|variable|/d/h",
    "sort|limit|/d/h",
    "sort|all|recursive|/d",
    "delete|event|3|/d/h",
    "delete|cron|10:00|/d/h",
    "delete|cron|-w 1,2 10:00|/d/h",
    "change|event|7|set|/d/h",
    "change|late|-s +00:05 -a 10:00|/s/f",
    "change|late|odd|/s/f",
    "add|inlimit|lim|2|/s/f/u",
    "add|inlimit|lim|3|/s/f/u",
    "add|inlimit|lim|-1|/s/f/u",
    "add|time|10:00|/s",
    "add|today|10:00|/s",
    "add|date|1.*.*|/s",
    "add|day|monday|/s",
    "add|zombie|ecf:fob::|/s",
    "add|late|-s +00:01|/s",
    "add|inlimit|lim|1|/s",
    "add|limit|lim|5|/s",
    "add|label|z|5|/s",
    "add|variable|A|5|/s",
    "change|variable|NN|5|/s",
    "change|defstatus|suspended|/s",
    "change|variable|UV|1|/",
    "add|variable|UV|1|/",
    "change|variable|UV|2|/",
    "add|limit|mars|100|/",
    "add|label|z|5|/",
    "delete|limit|nope|/",
    "sort|event|/",
    "set_flag|late|/",
    "clear_flag|late|/",
    "change|limit_max|nope|1|/s",
    "change|limit_value|lim|1|/s|/t",
    "change|label|nope|v|/s",
    "change|event|ev|odd|/s/f/u",
    "change|event|nope|set|/s/f/u",
    "change|event|1|clear|/s/f/u",
    "change|event|1|/s/f/u",
    "change|event|zz|/s/f/u",
    "change|meter|m|50|/s/f/u",
    "change|meter|m|x|/s/f/u",
    "delete|variable|A|/s|/t",
    "delete|queue|nope|/s/f/t",
    "delete|generic|nope|/s/f/t",
    "delete|label|/s",
    "delete|meter|/s/f/u",
    "delete|queue|/s/f/t",
    "delete|generic|/s/f/t",
    "delete|trigger|foo|/s/f/t",
];

/// Commands that are refused in words of our own, where ecFlow's don't say what is wrong.
const OWN_WORDS: &[&str] = &[
    "delete|time|23:00|/s/f/u",
    "change|clock_date|12.1|/s",
    "change|time|10:30|15:00|/s/f",
    "change|time|15:00|26:00|/s/f",
    "change|late|odd|/s/f",
];

/// What each command says, and the definition that it leaves.
fn run(place: &Place) -> Vec<(String, String)> {
    let file = place.write("suites.def", SUITES);
    place.told(&[&format!("--load={}", file.display())]);
    let alter = |command: &&str| {
        let words: Vec<&str> = std::iter::once("--alter").chain(command.split('|')).collect();
        let mut said = said(place, &words);
        if OWN_WORDS.contains(command) {
            // The words that were typed, and whether it was taken.
            said.truncate(said.find('\n').unwrap_or(said.len()));
        }
        (said, normalised(place, &place.told(&["--get_state"])))
    };
    COMMANDS.iter().map(alter).collect()
}

/// The lines that differ.
fn difference(ours: &(String, String), theirs: &(String, String)) -> Option<String> {
    let lacks = |a: &str, b: &str| -> Vec<String> {
        a.lines().filter(|line| !b.lines().any(|other| other == *line)).map(str::to_owned).collect()
    };
    (ours != theirs).then(|| {
        let (more, less) = (lacks(&ours.1, &theirs.1), lacks(&theirs.1, &ours.1));
        format!("ours: {}theirs: {}{more:?} but {less:?}", ours.0, theirs.0)
    })
}

#[test]
fn what_is_altered_is_as_it_is_with_ecflow() {
    if program("ecflow_client").is_none() || program("ecflow_server").is_none() {
        return;
    }
    let (own, other) = (Place::new(), Place::new());
    let served = Served::ours(&own);
    let ours = run(&own);
    served.kill();
    // What the journal has makes the same again.
    let served = Served::ours(&own);
    let again = normalised(&own, &own.told(&["--get_state"]));
    assert_eq!(ours.last().map(|(_, text)| text), Some(&again));
    served.kill();
    let served = Served::theirs(&other);
    let theirs = run(&other);
    served.kill();
    let all = ours.iter().zip(&theirs);
    let differ: Vec<String> = all.filter_map(|(a, b)| difference(a, b)).collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
