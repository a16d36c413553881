//! Random definitions that have every attribute, with or without states.

use std::fmt::Write as _;

/// SplitMix64: a seed gives one definition, now and later.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

const STATES: [&str; 6] = ["unknown", "complete", "queued", "aborted", "submitted", "active"];
const VALUES: [&str; 10] = [
    "'plain'",
    "'two words'",
    "\"it's\"",
    "bare",
    "'%ECF_HOME%/x'",
    "''",
    "'7'",
    "'a  b'",
    "'say \"x\"'",
    "'x#y'",
];

/// A definition that is being written.
struct Writer<'a> {
    random: &'a mut Random,
    out: String,
    has_state: bool,
}

/// A definition; with states it is the text of a checkpoint.
pub(crate) fn definition(random: &mut Random, has_state: bool) -> String {
    let mut writer = Writer { random, out: String::new(), has_state };
    writer.whole();
    writer.out
}

impl Writer<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.out, "{:1$}{text}", "", depth * 2);
    }

    /// The text behind a comment sign, of states only.
    fn state(&mut self, percent: u64, text: String) -> String {
        if self.has_state && self.random.chance(percent) {
            format!(" # {text}")
        } else {
            String::new()
        }
    }

    fn whole(&mut self) {
        if self.has_state {
            let no = self.random.below(100);
            self.line(0, "#5.9.2");
            self.line(
                0,
                &format!(
                    "defs_state MIGRATE state>:queued flag:message \
                state_change:{no} modify_change:3 server_state:HALTED cal_count:{no}"
                ),
            );
            self.line(0, "history /s0/f MSG:[10:11:12 1.1.2026]--x :user\u{8}MSG:[1]second  line");
        } else {
            self.line(0, "# a comment");
            if self.random.chance(30) {
                self.line(0, "extern /elsewhere/x:event");
            }
        }
        self.line(0, "edit TOP 'a value'");
        for suite in 0..1 + self.random.below(2) {
            self.suite(&format!("s{suite}"));
        }
    }

    fn node_state(&mut self, kind: &str) -> String {
        if !self.has_state {
            return String::new();
        }
        let mut words = Vec::new();
        if kind == "suite" && self.random.chance(60) {
            words.push("begun:1".to_owned());
        }
        if kind == "task" {
            if self.random.chance(20) {
                words.push("passwd:Ab3x".to_owned());
            }
            if self.random.chance(20) {
                words.push("rid:4711".to_owned());
            }
            if self.random.chance(15) {
                words.push("abort<:Script  failed: x:y\\n at 3>abort".to_owned());
            }
            if self.random.chance(30) {
                words.push(format!("try:{}", 1 + self.random.below(3)));
            }
        }
        if self.random.chance(70) {
            words.push(format!("state:{}", self.random.pick(&STATES[1..])));
        }
        if self.random.chance(40) {
            words.push(format!("dur:{:02}:10:{:02}", self.random.below(60), self.random.below(60)));
        }
        if self.random.chance(20) {
            words.push("flag:force_aborted,late,message,archived".to_owned());
        }
        if self.random.chance(15) {
            words.push("suspended:1".to_owned());
        }
        if self.random.chance(15) {
            words.push("rt:00:00:09".to_owned());
        }
        if words.is_empty() { String::new() } else { format!(" # {}", words.join(" ")) }
    }

    fn suite(&mut self, name: &str) {
        let state = self.node_state("suite");
        self.line(0, &format!("suite {name}{state}"));
        match self.random.below(5) {
            0 => self.line(1, "clock real 300"),
            1 => self.line(1, "clock hybrid 20.1.2024 +01:00"),
            2 => self.line(1, "clock real 20.1.2024 -300"),
            3 => self.line(1, "clock hybrid"),
            _ => {}
        }
        if self.has_state && self.random.chance(60) {
            self.line(
                1,
                "calendar initTime:2026-Nov-22 14:18:21 suiteTime:2026-Nov-22 14:18:22 \
                duration:00:00:01 initLocalTime:2026-Nov-22 14:13:21 lastTime:2026-Nov-22 14:13:22 \
                calendarIncrement:00:01:00 dayChanged:1",
            );
        }
        self.common(1, "suite");
        let children = 1 + self.random.below(3);
        for child in 0..children {
            self.family(1, &format!("f{child}"), 3);
        }
        self.line(0, "endsuite");
    }

    fn family(&mut self, depth: usize, name: &str, left: u32) {
        let state = self.node_state("family");
        self.line(depth, &format!("family {name}{state}"));
        self.common(depth + 1, "family");
        for child in 0..self.random.below(4) {
            self.task(depth + 1, &format!("t{child}"), child);
        }
        if left > 1 && self.random.chance(40) {
            self.family(depth + 1, "g", left - 1);
        }
        self.line(depth, "endfamily");
    }

    fn task(&mut self, depth: usize, name: &str, place: u64) {
        let state = self.node_state("task");
        self.line(depth, &format!("task {name}{state}"));
        // What expressions of the siblings behind it name.
        self.line(depth + 1, "event e");
        self.line(depth + 1, "event 7 seven");
        let value = self.state(30, "12".to_owned());
        self.line(depth + 1, &format!("meter m 0 100 90{value}"));
        self.line(depth + 1, "edit V 3");
        self.common(depth + 1, "task");
        if place > 0 {
            self.conditions(depth + 1, &format!("t{}", place - 1));
        }
        if self.random.chance(30) {
            self.line(depth, "endtask");
        }
    }

    fn expression(&mut self, other: &str, depth: u32) -> String {
        if depth > 0 && self.random.chance(40) {
            let (a, b) = (self.expression(other, depth - 1), self.expression(other, depth - 1));
            let joint = self.random.pick(&["and", "or", "&&", "||", "AND", "OR"]);
            return match self.random.below(4) {
                0 => format!("({a}) {joint} ({b})"),
                1 => format!("not ({a} {joint} {b})"),
                2 => format!("{a} {joint} ({b})"),
                _ => format!("({a} {joint} {b})"),
            };
        }
        let state = self.random.pick(&STATES);
        match self.random.below(9) {
            0 => format!("{other} == {state}"),
            1 => format!("./{other} != {state}"),
            2 => format!("{other}:e"),
            3 => format!("{other}:e == set"),
            4 => format!("{other}:m ge {}", self.random.below(100)),
            5 => format!("{other}:V + 1 * 2 lt {other}:m"),
            6 => format!("! {other} eq {state}"),
            7 => format!("{other}<flag>late"),
            _ => "cal::date_to_julian(20240101) > :V % 2".to_owned(),
        }
    }

    fn conditions(&mut self, depth: usize, other: &str) {
        if self.random.chance(50) {
            let expression = self.expression(other, 3);
            let free = self.state(20, "free".to_owned());
            self.line(depth, &format!("trigger {expression}{free}"));
            if self.random.chance(30) {
                let (a, b) = (self.expression(other, 1), self.expression(other, 1));
                self.line(depth, &format!("trigger -a {a}"));
                self.line(depth, &format!("trigger -o {b}"));
            }
        }
        if self.random.chance(30) {
            let expression = self.expression(other, 1);
            self.line(depth, &format!("complete {expression}"));
        }
    }

    fn time(&mut self) -> String {
        let plus = self.random.pick(&["", "+"]);
        let until = self.random.pick(&["", " 20:00 01:30"]);
        let hour = self.random.below(12);
        let state = self.random.pick(&[
            "free",
            "isValid:false",
            "free nextTimeSlot/19:00",
            "isValid:false nextTimeSlot/25:30 relativeDuration/00:03:00",
        ]);
        let state = self.state(40, state.to_owned());
        format!("{plus}{hour:02}:05{until}{state}")
    }

    fn common(&mut self, depth: usize, kind: &str) {
        let mut lines: Vec<String> = Vec::new();
        for number in 0..self.random.below(4) {
            let value = self.random.pick(&VALUES);
            lines.push(format!("edit N{number} {value}"));
        }
        self.counters(&mut lines);
        self.looping(&mut lines, kind);
        if kind != "suite" {
            self.times(&mut lines);
        }
        self.rare(&mut lines, kind);
        // The order of a file is the author's.
        for place in (1..lines.len()).rev() {
            let other = self.random.below(place as u64 + 1) as usize;
            lines.swap(place, other);
        }
        for line in lines {
            self.line(depth, &line);
        }
    }

    fn counters(&mut self, lines: &mut Vec<String>) {
        if self.random.chance(30) {
            let text = self.random.pick(&["\"\"", "\"a  text\"", "one", "'quoted'", "\"a\\nb\""]);
            let new = self.state(50, "\"new  \\n text\"".to_owned());
            lines.push(format!("label l {text}{new}"));
        }
        if self.random.chance(30) {
            let state = self.state(50, "-3".to_owned());
            lines.push(format!("meter n -5 100{state}"));
        }
        if self.random.chance(30) {
            let state = self.state(50, "set".to_owned());
            lines.push(format!("event 1{state}"));
        }
        if self.random.chance(20) {
            let state = self.state(50, "clear".to_owned());
            lines.push(format!("event named set{state}"));
        }
        if self.random.chance(30) {
            let state = self.state(50, "2 /s0/f0/t0 /s0/f0/a".to_owned());
            lines.push(format!("limit lim 5{state}"));
            lines.push("inlimit lim".to_owned());
        }
        if self.random.chance(20) {
            let state = self.state(50, "incremented:1".to_owned());
            lines.push(format!("inlimit -n /s0:lim 2{state}"));
            lines.push("inlimit -s other".to_owned());
        }
        if self.random.chance(15) {
            let state = self.state(50, "1 complete queued aborted".to_owned());
            lines.push(format!("queue q s1 's2' \"s3\"{state}"));
        }
        if self.random.chance(10) {
            lines.push("generic g word and another".to_owned());
        }
    }

    fn looping(&mut self, lines: &mut Vec<String>, kind: &str) {
        if self.random.chance(30) {
            let (text, state) = self.random.pick(&[
                ("date YMD 20240228 20240302", "20240229"),
                ("date YMD 20240310 20240301 -3", "20240304"),
                ("datelist DL 20240101 \"20240303\" '20240202'", "2"),
                ("integer I 0 10", "4"),
                ("integer I 10 0 -2", "8"),
                ("enumerated E a \"b c\" 3", "1"),
                ("string S x 'y' z", "2"),
            ]);
            let state = self.state(60, state.to_owned());
            lines.push(format!("repeat {text}{state}"));
        } else if kind != "suite" && self.random.chance(20) {
            let days = self.random.pick(&[
                "",
                "-w 0,3 ",
                "-w 1,5L ",
                "-d 1,15,L -m 2 ",
                "-d L ",
                "-w 2L ",
            ]);
            let time = self.time();
            lines.push(format!("cron {days}{time}"));
        } else if self.random.chance(5) {
            lines.push("repeat day 2".to_owned());
        }
    }

    fn times(&mut self, lines: &mut Vec<String>) {
        for keyword in ["time", "today"] {
            if self.random.chance(15) {
                let time = self.time();
                lines.push(format!("{keyword} {time}"));
            }
        }
        if self.random.chance(15) {
            let date = self.random.pick(&["1.*.*", "*.2.2026", "28.2.2026", "*.*.*"]);
            let state = self.state(50, "free".to_owned());
            lines.push(format!("date {date}{state}"));
        }
        if self.random.chance(15) {
            let state = self.random.pick(&[
                "date:2026-Nov-23",
                "free date:2026-Nov-23",
                "free expired date:2026-Nov-23",
                "date:not-a-date-time",
            ]);
            let state = self.state(80, state.to_owned());
            lines.push(format!("day tuesday{state}"));
        }
    }

    fn rare(&mut self, lines: &mut Vec<String>, kind: &str) {
        if self.random.chance(15) {
            let late = self.random.pick(&["-s +00:15", "-a 20:00 -c +02:00", "-c 23:00 -s 01:00"]);
            let state = self.state(50, "late".to_owned());
            lines.push(format!("late {late}{state}"));
        }
        if self.random.chance(15) {
            let state = self.random.pick(&["complete", "suspended", "aborted", "queued"]);
            lines.push(format!("defstatus {state}"));
        }
        if self.random.chance(15) {
            let when = self.random.pick(&["+01:00", "10", "0", "23:10"]);
            let is_archive = kind != "task" && self.random.chance(50);
            let idle = if self.random.chance(50) { " -i" } else { "" };
            lines.push(match is_archive {
                true => format!("autoarchive {when}{idle}"),
                false => format!("autocancel {when}"),
            });
        }
        if self.random.chance(5) {
            lines.push("autorestore /s0/f0".to_owned());
        }
        if self.random.chance(10) {
            let rule =
                self.random.pick(&["ecf:fob:init,complete:300", "user:fail::", "path::abort:10"]);
            lines.push(format!("zombie {rule}"));
        }
        if self.random.chance(10) {
            let state = self.state(60, "2".to_owned());
            lines.push(format!("verify complete:3{state}"));
        }
    }
}
