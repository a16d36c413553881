//! The one suite that a question stands for, as TOML: what `try` runs and what `--save` writes.

use std::fmt::Write as _;
use std::time::Duration;

use base::units::{Rate, Span};
use http::load::Trust;
use lab::plan::Plan;
use report::one_line;

use super::side::{Side, Web};
use crate::registry::Sample;

/// What was asked.
#[derive(Debug)]
pub(super) struct Question {
    /// One or two sides; the first is what the verdict is about.
    pub(super) sides: Vec<Side>,
    /// How often requests are sent, as it was typed; without it each is sent once the last one is
    /// answered.
    pub(super) rate: Option<(String, Rate)>,
    pub(super) connections: Option<usize>,
    /// Measured time of each side.
    pub(super) time: Span,
    /// How long a run of each command took; empty until that is known.
    pub(super) command_took: Vec<Duration>,
    pub(super) size: Option<u64>,
    pub(super) keys: Option<u64>,
    /// The right status of a page.
    pub(super) status: Option<u16>,
    /// Whose certificates are accepted behind `https://`, where something was said of it.
    pub(super) trust: Option<Trust>,
    pub(super) allow_remote: bool,
    /// The command line, for the head of the suite.
    pub(super) typed: String,
}

/// Connections of a question that doesn't say how many. Commands run one at a time.
const CONNECTIONS: usize = 16;

/// Rounds carry statistics: a second each is enough, five are the least.
const ROUND: Span = Span::from_ms(1_000);
const ROUNDS: std::ops::RangeInclusive<u64> = 5..=20;

/// The shortest piece that a suite may measure; a run of a command that takes longer is one round.
const SHORTEST: Span = Span::from_ms(10);

/// What is measured in a piece where two sides take turns; a single one is measured in one piece,
/// and so are turns of which not two have room in a round.
const SLICE: Span = Span::from_ms(500);

/// An answer that takes longer is missing. That is late: how slow a slow answer is has to be seen.
const TIMEOUT: &str = "10s";

/// What a run takes beside the load: readings of the host, and the report.
const AROUND: Span = Span::from_ms(1_500);

/// Load before measuring begins, once.
const WARM_UP: Span = Span::from_ms(300);

/// A rate that was asked for is kept with this much of it answered: rounds end with some requests
/// still on their way.
const KEPT: f64 = 0.95;

/// Of a rate of which no more than this is answered in a round, further rounds say the same.
const HOPELESS: f64 = 0.25;

/// A round in which fewer requests than this are due shows no rate: one may have none.
const ENOUGH: f64 = 20.0;

/// A run of a command is not given up before this.
const LONGEST_COMMAND: &str = "1h";

impl Question {
    /// The names of the sides: as short as tells them apart.
    pub(super) fn names(&self) -> Vec<String> {
        for long in [Side::name, Side::name_with_port, Side::name_with_address] {
            let names: Vec<String> = self.sides.iter().map(long).collect();
            if !matches!(&names[..], [one, other] if one == other) {
                return names;
            }
        }
        let ends = [".a", ".b"].into_iter();
        self.sides.iter().zip(ends).map(|(side, end)| side.name() + end).collect()
    }

    /// The right status of a page.
    pub(super) fn right_status(&self) -> u16 {
        self.status.unwrap_or(200)
    }

    /// The suite.
    ///
    /// # Errors
    /// Which options don't belong to what is asked.
    pub(super) fn suite(&self) -> Result<String, String> {
        self.check_sides()?;
        let names = self.names();
        let mut text = format!("# {}\n", one_line(&self.typed));
        let _ = writeln!(text, "title = {}", quoted(&format!("Try: {}", names.join(" beside "))));
        if let Some(compromise) = self.compromise() {
            let _ = writeln!(text, "compromises = {}", quoted(&compromise));
        }
        for (side, name) in self.sides.iter().zip(&names) {
            text.push_str(&self.target(side, name));
        }
        text.push_str(&self.workload()?);
        text.push_str(&self.clients());
        text.push_str("\n[require]\nwrong = \"= 0\"\nrefused = \"= 0\"\nmissing = \"= 0\"\n");
        if let Some((_, rate)) = self.rate.as_ref().filter(|_| !self.is_batch()) {
            let _ = writeln!(text, "rate_per_s = \">= {}/s\"", rate.per_second * KEPT);
            // Each round of such a target lasts until its queue is worked off or given up.
            text.push_str("\n[abort_on]\nmissing = \"> 50%\"\n");
            let (_, measure_ns, _) = self.lengths();
            if rate.per_second * measure_ns as f64 / 1e9 >= ENOUGH {
                let _ = writeln!(text, "rate_per_s = \"< {}/s\"", rate.per_second * HOPELESS);
            }
        }
        text.push_str(&self.rounds());
        Ok(text)
    }

    /// That both sides can be asked the same.
    fn check_sides(&self) -> Result<(), String> {
        let is_secure = |side: &Side| matches!(side, Side::Web(web) if web.is_secure);
        if self.trust.is_some() && !self.sides.iter().any(is_secure) {
            let message = "--ca and --insecure have no meaning here: nothing is https://";
            return Err(message.to_owned());
        }
        let [one, other] = &self.sides[..] else { return Ok(()) };
        if one.service_name() != other.service_name() {
            return Err(format!(
                "one side is of {}, the other of {}: side by side both are asked the same",
                one.service_name(),
                other.service_name()
            ));
        }
        match (one, other) {
            (Side::Service(spoken, address), Side::Service(_, same))
                if address == same && self.keys(spoken.sample) > 0 =>
            {
                Err(format!(
                    "both sides are one and the same, {address}: each would read what the other \
                     writes"
                ))
            }
            (Side::Web(one), Side::Web(other)) if one.path != other.path => Err(format!(
                "side by side both are asked for the same page, not {} and {}: try one after the \
                 other",
                one.path, other.path
            )),
            _ => Ok(()),
        }
    }

    /// What is going to be measured, and for how long: at least, and at most, where every slice
    /// that may be measured again is disturbed. Of commands it is known how long one run took.
    pub(super) fn announcement(&self, plan: &Plan) -> String {
        let rounds = u64::from(plan.rounds.at_least);
        let (measure, warm_up) = (plan.rounds.measure.ns, plan.rounds.warm_up.ns);
        // A run that has begun is measured to its end, and one that was due is not left out.
        let at_a_time = self.connections.unwrap_or(1) as f64;
        let per_ns = self.rate.as_ref().map_or(0.0, |(_, rate)| rate.per_second / 1e9 / at_a_time);
        let whole = |ns: u64, each: u64| {
            let due = (ns as f64 * per_ns).ceil() as u64;
            if per_ns > 0.0 { ns.max(due * each) } else { ns.div_ceil(each).max(1) * each }
        };
        let took = self.took_ns();
        let of_each = |ns: u64| match self.is_batch() {
            true => took.iter().map(|each| whole(ns, *each)).sum(),
            false => self.sides.len() as u64 * ns,
        };
        let before_ns = if warm_up > 0 { of_each(warm_up) } else { 0 };
        let least_ns = rounds * of_each(measure) + before_ns + AROUND.ns;
        // The lab measures up to half of the slices again.
        let slices = plan.rounds.slice.map_or(1, |slice| measure.div_ceil(slice.ns));
        let most_ns = least_ns + rounds * of_each(measure) * slices.div_ceil(2) / slices;
        let takes = from_to([least_ns, most_ns].map(|ns| {
            let seconds = ns.div_ceil(1_000_000_000);
            Span::from_ms(seconds * 1000)
        }));
        let turns = match plan.rounds.slice {
            Some(slice) => format!(" in turns of {slice}"),
            None => String::new(),
        };
        let each = if self.sides.len() > 1 { " each" } else { "" };
        let names = self.names().join(" beside ");
        // The report's rounds are the time of the runs alone, which of short ones is far less.
        let starts = if self.is_batch() { ", starting the runs included" } else { "" };
        let rounds = format!("{rounds} rounds of {}{each}{turns}{starts}", plan.rounds.measure);
        // A slice lasts until its last answer, which may be one that a stall has delayed.
        let late = if self.is_batch() { "" } else { ", and longer where answers come late" };
        format!("measuring {names}: {rounds}, about {takes} in all{late}")
    }

    fn is_batch(&self) -> bool {
        matches!(self.sides.first(), Some(Side::Command(_)))
    }

    /// What a reader has to know of the figures.
    fn compromise(&self) -> Option<String> {
        let Side::Service(spoken, _) = self.sides.first()? else { return None };
        let keys = self.keys(spoken.sample);
        let written =
            (keys > 0).then(|| format!("{} keys k… are written into it", report::count(keys)));
        written.or_else(|| spoken.sample.compromise.map(str::to_owned))
    }

    fn target(&self, side: &Side, name: &str) -> String {
        let mut text = format!("\n[[target]]\nname = {}\n", quoted(name));
        let (address, speaks) = match side {
            Side::Command(words) => {
                let words = words.iter().map(|word| quoted(&lab::placeholders::escape(word)));
                let words: Vec<String> = words.collect();
                let _ = writeln!(text, "batch = [{}]", words.join(", "));
                return text;
            }
            Side::Web(web) => (&web.address, self.web_dialect(web)),
            Side::Service(spoken, address) => (address, quoted(spoken.dialect.name)),
        };
        let _ = writeln!(text, "address = {}\nspeaks = {speaks}", quoted(address));
        if self.allow_remote {
            text.push_str("allow_remote = true\n");
        }
        text
    }

    /// What a web server speaks, and which site of it is asked for.
    fn web_dialect(&self, web: &Web) -> String {
        let name = http::load::SERVICE.name;
        let trust = match &self.trust {
            None | Some(Trust::System) => String::new(),
            Some(Trust::Authorities(file)) => format!(", ca = {}", quoted(&file.to_string_lossy())),
            Some(Trust::Any) => ", insecure = true".to_owned(),
        };
        let tls = if web.is_secure { format!(", tls = true{trust}") } else { String::new() };
        format!("{{ {name} = {{ host = {}{tls} }} }}", quoted(web.host_field()))
    }

    /// How many keys there are.
    fn keys(&self, sample: &Sample) -> u64 {
        sample.keys.map_or(0, |usual| self.keys.unwrap_or(usual))
    }

    fn workload(&self) -> Result<String, String> {
        let Some(side) = self.sides.first() else { return Ok(String::new()) };
        let name = side.service_name();
        let mut text = format!("\n[workload]\nservice = \"{name}\"\n");
        let refuse = |option: &str, value: Option<u64>| match value {
            Some(_) => Err(format!("{option} has no meaning here: {name} has no such thing")),
            None => Ok(()),
        };
        if !matches!(side, Side::Web(_)) {
            refuse("--status", self.status.map(u64::from))?;
        }
        match side {
            Side::Command(_) => {
                refuse("--size", self.size)?;
                refuse("--keys", self.keys)?;
                text.push_str(
                    "operation = \"run\"\n\n[figures]\nwall_ns = { better = \"lower\" }\n",
                );
            }
            Side::Web(web) => {
                refuse("--size", self.size)?;
                text.push_str("operation = \"page\"\n");
                match web.path.contains("{key}") {
                    true => text.push_str(&keys(self.keys.unwrap_or(10_000))),
                    false if self.keys.is_some() => {
                        return Err("--keys needs a {key} in the URL's path".to_owned());
                    }
                    false => {}
                }
                let path = quoted(&web.path);
                let _ = write!(text, "\n[[workload.request]]\nname = \"page\"\npath = {path}\n");
                let _ = writeln!(text, "expect.status = {}", self.right_status());
            }
            Side::Service(spoken, _) => {
                let sample = spoken.sample;
                let _ = writeln!(text, "{}", sample.operations);
                match sample.keys {
                    Some(usual) => text.push_str(&keys(self.keys.unwrap_or(usual))),
                    None => refuse("--keys", self.keys)?,
                }
                match sample.size {
                    Some((before, behind, usual)) => {
                        if let Some(size) = self.size.or(usual) {
                            let _ = writeln!(text, "{before}{size}{behind}");
                        }
                    }
                    None => refuse("--size", self.size)?,
                }
            }
        }
        Ok(text)
    }

    fn clients(&self) -> String {
        let usual = if self.is_batch() { 1 } else { CONNECTIONS };
        let connections = self.connections.unwrap_or(usual);
        let mut text = format!("\n[[clients]]\nconnections = {connections}\n");
        if let Some((rate, _)) = &self.rate {
            let _ = writeln!(text, "arrivals = {{ rate = {} }}", quoted(rate));
        }
        let timeout = if self.is_batch() { LONGEST_COMMAND } else { TIMEOUT };
        let _ = writeln!(text, "timeout = \"{timeout}\"");
        text
    }

    /// How long a run of each command took, in nanoseconds.
    fn took_ns(&self) -> Vec<u64> {
        self.command_took.iter().map(|took| took.as_nanos().max(1) as u64).collect()
    }

    /// How many rounds there are, how long each measures, and how long the load before lasts, in
    /// nanoseconds. A run of a command that has begun is measured to its end, so that one of a slow
    /// command is a round, and as many of them as have room in the time are measured.
    fn lengths(&self) -> (u64, u64, u64) {
        let took = self.took_ns();
        let (least, most) = (took.iter().min().copied(), took.iter().max().copied());
        let round = ROUND.ns.max(most.unwrap_or(0));
        let rounds = |round: u64| (self.time.ns / round).clamp(*ROUNDS.start(), *ROUNDS.end());
        let (measure, warm_up) =
            (self.time.ns / rounds(round), (self.time.ns / 10).min(WARM_UP.ns));
        match least.zip(most) {
            Some((least, most)) if 2 * least > measure && self.rate.is_none() => {
                // It was run once before, which has warmed up what it reads.
                let warm_up = if least > warm_up { 0 } else { warm_up };
                (rounds(most), measure.min(least / 2).max(SHORTEST.ns), warm_up)
            }
            _ => (rounds(round), measure, warm_up),
        }
    }

    fn rounds(&self) -> String {
        let (rounds, measure, warm_up) = self.lengths();
        // A slice of a slow schedule is to hold some requests.
        let some = self.rate.as_ref().map_or(0.0, |(_, rate)| 100e9 / rate.per_second.max(0.01));
        let slice = SLICE.ns.max(some as u64);
        let slice = match self.is_batch() || self.sides.len() < 2 || 2 * slice > measure {
            true => "none".to_owned(),
            false => typed(slice),
        };
        let warm_up = typed(warm_up);
        let primary = match (self.is_batch(), &self.rate) {
            (true, _) => "wall_ns",
            (false, Some(_)) => "latency.p50",
            (false, None) => "rate_per_s",
        };
        format!(
            "\n[rounds]\nmeasure = \"{}\"\nslice = \"{slice}\"\nwarm_up = \"{warm_up}\"\n\
             at_least = {rounds}\nat_most = {rounds}\nrestart = \"never\"\n\
             primary = \"{primary}\"\n",
            typed(measure)
        )
    }
}

/// The line with the keys, each long enough for the last one's number.
fn keys(count: u64) -> String {
    let bytes = (count.max(2) - 1).ilog10() as usize + 2;
    format!("keys = {{ count = {count}, bytes = {} }}\n", bytes.max(8))
}

/// Two times as one: `12 to 22 s`, `90 s to 3 min`.
fn from_to(times: [Span; 2]) -> String {
    let [least, most] = times.map(|time| time.to_string());
    if least == most {
        return most;
    }
    let unit = most.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    format!("{} to {most}", least.strip_suffix(unit).unwrap_or(&least))
}

/// A time as a suite writes it, to the millisecond.
fn typed(ns: u64) -> String {
    format!("{}ms", ns / 1_000_000)
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::spoken;

    fn question(sides: Vec<Side>) -> Question {
        Question {
            sides,
            rate: None,
            connections: None,
            time: Span::from_ms(10_000),
            command_took: Vec::new(),
            size: None,
            keys: None,
            status: None,
            trust: None,
            allow_remote: false,
            typed: "loadline try".to_owned(),
        }
    }

    fn web(authority: &str, address: &str, path: &str) -> Side {
        let [authority, address, path] = [authority, address, path].map(str::to_owned);
        Side::Web(Web { authority, address, path, is_secure: false })
    }

    fn plan(question: &Question) -> Plan {
        let text = question.suite().unwrap();
        let path = std::path::Path::new("try.toml");
        Plan::parse(path, text.clone(), &[], crate::registry::registry())
            .unwrap_or_else(|error| panic!("{error:?}\n{text}"))
    }

    #[test]
    fn a_question_in_every_dialect_is_a_suite_that_plans() {
        for spoken in spoken() {
            let sides = ["127.0.0.1:1", "127.0.0.1:2"];
            let sides = sides.map(|address| Side::Service(spoken, address.to_owned())).to_vec();
            let planned = plan(&question(sides));
            assert_eq!(planned.targets().len(), 2, "{:?}", spoken.dialect);
            assert_eq!(planned.targets()[1].name, format!("{} 2", spoken.dialect.name));
            assert_eq!((planned.rounds.at_least, planned.rounds.at_most), (10, 10));
            assert_eq!(planned.rounds.slice, Some(SLICE), "they take turns");
        }
    }

    #[test]
    fn one_server_is_compared_by_two_protocols_unless_both_write_keys() {
        let side = |name: &str| {
            let spoken = spoken().find(|spoken| spoken.dialect.name == name).expect(name);
            Side::Service(spoken, "127.0.0.1:1".to_owned())
        };
        assert!(question(vec![side("grpc"), side("frames")]).suite().is_ok());
        let said = question(vec![side("memcached"), side("redis")]).suite().unwrap_err();
        assert!(said.contains("one and the same"), "{said}");
    }

    #[test]
    fn a_command_and_a_page_with_keys_are_suites_that_plan() {
        let command = |word: &str| Side::Command(vec!["sh".into(), "-c".into(), word.into()]);
        let planned = plan(&question(vec![command("exit \"0\""), command("exit \"0\"")]));
        let names: Vec<&str> = planned.targets().iter().map(|target| &target.name[..]).collect();
        assert_eq!(names, ["exit \"0\".a", "exit \"0\".b"]);
        let typed = "seq 9 | awk '{print}' {{a}}";
        let planned = plan(&question(vec![command(typed)]));
        let lab::plan::TargetKind::Batch(words) = &planned.targets()[0].kind else { panic!() };
        assert_eq!(lab::placeholders::complete(&words[2], &|_| None), typed, "as it was typed");
        let mut asked = question(vec![web("my.test:80", "127.0.0.1:80", "/items/{key}?a='b'")]);
        asked.keys = Some(20_000_000);
        asked.rate = Some(("1k/s".to_owned(), Rate { per_second: 1e3 }));
        asked.time = Span::from_ms(120_000);
        let planned = plan(&asked);
        assert_eq!(planned.rounds.at_least, 20);
        assert_eq!(planned.rounds.measure, Span::from_ms(6_000));
        assert_eq!(planned.rounds.slice, None, "what outlasts a slice is seen in one piece only");
        assert!(asked.suite().unwrap().contains("{ http = { host = \"my.test\" } }"));
        assert!(asked.suite().unwrap().contains("rate_per_s = \">= 950/s\""));
        let hopeless: Vec<_> = planned.points[0].abort_on.iter().map(|one| &*one.text).collect();
        assert_eq!(hopeless, ["missing > 50%", "rate_per_s < 250/s"], "each round waits 10 s");
        asked.rate = Some(("1/s".to_owned(), Rate { per_second: 1.0 }));
        assert!(!asked.suite().unwrap().contains("rate_per_s = \"<"), "a round has few or none");
        asked.rate = Some(("1k/s".to_owned(), Rate { per_second: 1e3 }));
        assert!(asked.suite().unwrap().contains("bytes = 9"));
    }

    #[test]
    fn a_page_over_tls_is_asked_of_the_host_that_was_typed() {
        let secure = |authority: &str| match web(authority, "127.0.0.1:443", "/x") {
            Side::Web(web) => Side::Web(Web { is_secure: true, ..web }),
            other => other,
        };
        let mut asked = question(vec![secure("my.test:443")]);
        let suite = |asked: &Question| {
            plan(asked);
            asked.suite().unwrap()
        };
        assert!(suite(&asked).contains("{ http = { host = \"my.test\", tls = true } }"));
        asked.trust = Some(Trust::Any);
        assert!(suite(&asked).contains("tls = true, insecure = true } }"));
        asked.trust = Some(Trust::Authorities("/a/ca.pem".into()));
        asked.sides = vec![secure("[::1]:443")];
        // A plan would read the file.
        let text = asked.suite().unwrap();
        assert!(text.contains("{ host = \"[::1]\", tls = true, ca = \"/a/ca.pem\" } }"));
        asked.sides = vec![web("my.test:80", "127.0.0.1:80", "/x")];
        assert!(asked.suite().unwrap_err().contains("nothing is https://"));
    }

    #[test]
    fn it_is_said_how_long_it_takes() {
        assert_eq!(from_to([3_000, 3_000].map(Span::from_ms)), "3 s");
        assert_eq!(from_to([3_000, 5_000].map(Span::from_ms)), "3 to 5 s");
        let asked = question(vec![web("a:1", "127.0.0.1:1", "/x")]);
        let said = asked.announcement(&plan(&asked));
        assert_eq!(
            said,
            "measuring a:1: 10 rounds of 1 s, about 12 to 22 s in all, and \
                          longer where answers come late"
        );
        let command = |word: &str| Side::Command(vec!["sleep".into(), word.into()]);
        let took = [3, 4].map(Duration::from_secs);
        let asked = question(vec![command("3"), command("4")]);
        let asked = Question { command_took: took.to_vec(), ..asked };
        let said = asked.announcement(&plan(&asked));
        let rounds = "5 rounds of 1.5 s each, starting the runs included, about 37 to 72 s in all";
        assert!(said.ends_with(rounds), "{said}");
        let rate = Some(("2/s".to_owned(), Rate { per_second: 2.0 }));
        let command_took = took[..1].to_vec();
        let asked = Question { rate, command_took, ..question(vec![command("3")]) };
        let said = asked.announcement(&plan(&asked));
        assert!(
            said.ends_with("about 65 s to 2.08 min in all"),
            "two are due in each second: {said}"
        );
    }

    #[test]
    fn a_slow_command_is_run_as_often_as_the_time_has_room_for_and_five_times_at_least() {
        let runs = |took_ms: &[u64], time_ms: u64| {
            let command = Side::Command(vec!["sleep".into()]);
            let command_took = took_ms.iter().copied().map(Duration::from_millis).collect();
            let time = Span::from_ms(time_ms);
            let asked = Question { time, command_took, ..question(vec![command; took_ms.len()]) };
            let rounds = plan(&asked).rounds;
            let each = took_ms.iter().map(|took| rounds.measure.ns.div_ceil(took * 1_000_000));
            (rounds.at_least, each.collect::<Vec<_>>())
        };
        assert_eq!(runs(&[30_000], 10_000), (5, vec![1]), "the least");
        assert_eq!(runs(&[1_500], 10_000), (6, vec![1]), "9 s");
        assert_eq!(runs(&[600], 10_000), (16, vec![1]), "9.6 s");
        assert_eq!(runs(&[100], 10_000), (10, vec![10]));
        assert_eq!(runs(&[400, 3_000], 10_000), (5, vec![5, 1]));
        assert_eq!(runs(&[16], 100), (6, vec![1]), "no piece is too short for a suite");
    }

    #[test]
    fn what_has_no_meaning_is_refused() {
        let page = web("a:1", "127.0.0.1:1", "/x");
        let other = web("b:1", "127.0.0.1:1", "/y");
        let said = question(vec![page.clone(), other]).suite().unwrap_err();
        assert!(said.contains("not /x and /y"), "{said}");
        let command = Side::Command(vec!["true".to_owned()]);
        let said = question(vec![page.clone(), command.clone()]).suite().unwrap_err();
        assert!(said.contains("one side is of http, the other of batch"), "{said}");
        for (side, option) in [(page.clone(), "--size"), (command, "--size")] {
            let asked = Question { size: Some(1), ..question(vec![side]) };
            assert!(asked.suite().unwrap_err().contains(option));
        }
        let asked = Question { keys: Some(1), ..question(vec![page]) };
        assert!(asked.suite().unwrap_err().contains("{key}"));
    }
}
