//! Why a node does not run: what holds it, and what holds each node above it.

use std::fmt::Write as _;

use super::attribute::{Attribute, Condition, WEEKDAYS};
use super::calendar::Calendar;
use super::evaluate::From;
use super::expression::{Operand, Operands as _};
use super::node::NodeId;
use super::state::{Displayed, Flag, Kind, ServerState, State};
use super::tree::Snapshot;

/// How many holders of a full limit are named.
const HOLDERS: usize = 4;

/// What a server says of the commands of a task whose job is submitted or active, by its path, a
/// line each: that one waits for a place, still runs, or has failed; and of `/`, that commands have
/// taken all places. A tree doesn't have it.
pub type OfCommands<'a> = &'a mut dyn FnMut(&str) -> Option<String>;

impl Snapshot {
    /// What holds a node: the server first, then from its suite down to itself, a line each. Of a
    /// task that runs, or is complete, the line says that.
    #[must_use]
    pub fn why(&self, id: NodeId, of_commands: OfCommands<'_>) -> Vec<String> {
        let mut reasons = Vec::new();
        match self.server().state {
            ServerState::Running => {}
            state => reasons.push(format!("the server is {}", state.word())),
        }
        if id == NodeId::ROOT {
            reasons.extend(of_commands("/"));
        }
        // What is above a job that runs holds it no more; it may hold a token itself.
        let node = self.node(id);
        let runs = node.kind.is_job()
            && !node.is_suspended
            && matches!(node.state, State::Submitted | State::Active);
        let mut down: Vec<NodeId> = self.upwards(id).collect();
        down.reverse();
        for at in down.into_iter().filter(|at| !runs || *at == id) {
            self.why_only(at, of_commands, &mut reasons);
        }
        reasons
    }

    /// What holds a node and all below it, without what is above it; at most this many lines.
    #[must_use]
    pub fn why_below(&self, id: NodeId, of_commands: OfCommands<'_>, most: usize) -> Vec<String> {
        let mut reasons = Vec::new();
        for at in self.walk(id) {
            self.why_only(at, of_commands, &mut reasons);
            if reasons.len() >= most {
                reasons.truncate(most);
                break;
            }
        }
        reasons
    }

    fn why_only(&self, id: NodeId, of_commands: OfCommands<'_>, reasons: &mut Vec<String>) {
        let node = self.node(id);
        let who = format!("{} {}", node.kind.word(), self.path(id));
        if node.kind == Kind::Suite && !node.is_begun {
            reasons.push(format!("{who} has not begun"));
        }
        if node.flags.has(Flag::Archived) {
            reasons.push(format!("{who} is archived"));
        }
        if node.flags.has(Flag::Zombie) {
            reasons.push(format!(
                "{who} has the flag zombie: what reports for it may not be its job (--zombie_get \
                 shows what waits until a user decides). It stays until its own job reports, or it \
                 is requeued"
            ));
        }
        if node.is_suspended {
            reasons.push(format!("{who} is suspended"));
        } else if node.kind.is_job() && !matches!(node.state, State::Queued | State::Aborted) {
            reasons.push(format!("{who} is {}", node.state.word()));
            if matches!(node.state, State::Submitted | State::Active) {
                self.why_not_over(id, of_commands, reasons);
            }
            return;
        } else if node.state == State::Complete {
            reasons.push(format!("{who} is complete"));
        }
        if node.kind.is_job() && node.state == State::Aborted {
            reasons.push(self.why_aborted(id, &who));
        }
        self.why_times(id, &who, reasons);
        self.why_triggers(id, &who, reasons);
        self.why_limits(id, &who, reasons);
    }

    /// What becomes of the commands of a job that is submitted or active, also of those by which a
    /// user has asked for its end.
    fn why_not_over(&self, id: NodeId, of_commands: OfCommands<'_>, reasons: &mut Vec<String>) {
        let said = of_commands(&self.path(id)).unwrap_or_default();
        reasons.extend(said.lines().map(str::to_owned));
        let flags = &self.node(id).flags;
        let has_failed = flags.has(Flag::KillCommandFailed);
        // A server says more; one that has been started again, or another one, doesn't.
        if !said.contains("its ECF_KILL_CMD") {
            if has_failed {
                let why = "a kill of it has failed (flag killcmd_failed): the server's log has why";
                reasons.push(why.to_owned());
            } else if flags.has(Flag::Killed) {
                let why = "it, or a zombie of it, was killed (flag killed), and it has reported no \
                           end";
                reasons.push(why.to_owned());
            }
        }
        let is_asked =
            has_failed || flags.has(Flag::Killed) || flags.has(Flag::StatusCommandFailed);
        if is_asked && self.node(id).job().rid.is_empty() {
            let why = "its job has not named its process: ECF_RID is empty for its commands";
            reasons.push(why.to_owned());
        }
    }

    fn why_aborted(&self, id: NodeId, who: &str) -> String {
        let node = self.node(id);
        let reason = node.job.as_ref().map_or("", |job| job.abort_reason.as_str());
        let reason = if reason.is_empty() { "no reason was given" } else { reason };
        let tries = self.user_variable(id, "ECF_TRIES").unwrap_or("2");
        format!("{who} aborted at try {} of {tries}: {reason}", node.try_no())
    }

    fn why_times(&self, id: NodeId, who: &str, reasons: &mut Vec<String>) {
        let calendar = self.suite(id).and_then(|suite| self.calendar(suite));
        let calendar = calendar.copied().unwrap_or_default();
        let now = calendar.suite;
        for attribute in self.node(id).attributes.iter().filter(|one| waits(one, &calendar)) {
            let next = match attribute {
                Attribute::Time(series) | Attribute::Today(series) => Some(series.next),
                Attribute::Cron(cron) => Some(cron.series.next),
                _ => None,
            };
            let mut line = format!("{who} waits for a {}", attribute.word());
            // Writing to a string can't fail.
            let _ = match (attribute, next) {
                (_, Some(next)) => write!(line, ", {next} next"),
                (Attribute::Date(date), _) => write!(line, ", {}", date.text()),
                (Attribute::Day(day), _) => {
                    write!(line, ", {}", WEEKDAYS[usize::from(day.weekday) % WEEKDAYS.len()])
                }
                _ => Ok(()),
            };
            let _ = write!(line, "; it is {now} in its suite");
            reasons.push(line);
        }
    }

    fn why_triggers(&self, id: NodeId, who: &str, reasons: &mut Vec<String>) {
        let from = From { tree: self, node: id };
        for attribute in self.node(id).attributes.iter() {
            let Attribute::Trigger(condition) = attribute else { continue };
            let program = condition.expression.program.as_ref();
            if condition.free || program.is_some_and(|program| program.holds(&from)) {
                continue;
            }
            let mut line = format!("{who} waits for its trigger {}", condition.expression.text());
            match self.operands(&from, condition) {
                Some(values) => {
                    let _ = write!(line, ": {values}");
                }
                None => line.push_str(", which can't be read: it never holds"),
            }
            reasons.push(line);
        }
    }

    /// The operands of an expression with what they are now, each once.
    fn operands(&self, from: &From<'_>, condition: &Condition) -> Option<String> {
        let mut values: Vec<String> = Vec::new();
        for operand in condition.expression.program.as_ref()?.operands() {
            let is_there = from.find(operand).is_some();
            let number = from.number(operand);
            let (name, is) = match operand {
                Operand::Node(path) => {
                    let shown = usize::try_from(number).ok().and_then(|at| Displayed::ALL.get(at));
                    (path.to_string(), shown.map_or_else(String::new, |one| one.word().to_owned()))
                }
                Operand::Variable(path, name) => (format!("{path}:{name}"), number.to_string()),
                Operand::Upward(name) => (format!(":{name}"), number.to_string()),
                Operand::Flag(path, flag) => (
                    format!("{path}<flag>{}", flag.word()),
                    if number == 0 { "not set" } else { "set" }.to_owned(),
                ),
            };
            let value = if is_there || matches!(operand, Operand::Flag(..)) {
                format!("{name} is {is}")
            } else {
                format!("{name} is not there")
            };
            if !values.contains(&value) {
                values.push(value);
            }
        }
        Some(values.join(", "))
    }

    fn why_limits(&self, id: NodeId, who: &str, reasons: &mut Vec<String>) {
        for attribute in self.node(id).attributes.iter() {
            let Attribute::InLimit(inlimit) = attribute else { continue };
            let Some(limit) = self.limit_of(id, inlimit) else { continue };
            let is_holder = inlimit.node_only && inlimit.incremented;
            if is_holder || limit.value.saturating_add(inlimit.tokens) <= limit.max {
                continue;
            }
            let mut line = format!(
                "{who} waits for {} of the limit {}, {} of {} taken",
                inlimit.tokens, limit.name, limit.value, limit.max
            );
            let holders = limit.holders.as_deref();
            for (place, path) in holders.into_iter().flatten().take(HOLDERS).enumerate() {
                let _ = write!(line, "{}{path}", if place == 0 { " by " } else { ", " });
            }
            let more = holders.map_or(0, |holders| holders.len().saturating_sub(HOLDERS));
            if more > 0 {
                let _ = write!(line, " and {more} more");
            }
            reasons.push(line);
        }
    }
}

/// Whether an attribute of time holds its node now.
fn waits(attribute: &Attribute, calendar: &Calendar) -> bool {
    match attribute {
        Attribute::Time(series) => !(series.free || series.is_now(calendar)),
        Attribute::Today(series) => !(series.free || series.is_now_or_passed(calendar)),
        Attribute::Cron(cron) => !(cron.series.free || cron.is_now(calendar)),
        Attribute::Date(date) => !date.holds(calendar),
        Attribute::Day(day) => !day.holds(calendar),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::attribute::Child;
    use super::super::rules::{Credentials, Moment, Rules, Verdict};
    use super::super::time::Instant;
    use crate::definition::parse;

    const TEXT: &str = "extern /x\nsuite s\n limit l 0\n family f\n meter m 0 9\n task a\n \
                        time 23:59\n task b\n \
                        trigger a == complete and ../f:m eq 3 or /x == complete\n \
                        inlimit /s:l\n endfamily\nendsuite\n";

    fn none(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn each_thing_that_holds_a_node_is_named_with_what_it_is_now() {
        let mut tree = parse(TEXT, "x.def").expect("a definition").tree;
        let id = tree.find("/s/f/b").expect("a task");
        assert_eq!(tree.why(id, &mut none)[0], "suite /s has not begun");
        let mut rules = Rules::new(&mut tree, Moment { now: Instant::seconds(0), entropy: 1 });
        rules.begin("s", false).expect("begun");
        let family = rules.tree.find("/s/f").expect("a family");
        rules.suspend(family);
        drop(rules.finish());
        let reasons = tree.why(id, &mut none);
        assert_eq!(
            reasons,
            [
                "family /s/f is suspended",
                "task /s/f/b waits for its trigger a == complete and ../f:m eq 3 or \
                 /x == complete: a is queued, ../f:m is 0, /x is not there",
                "task /s/f/b waits for 1 of the limit l, 0 of 0 taken",
            ]
        );
        let task = tree.find("/s/f/a").expect("a task");
        let mut rules = Rules::new(&mut tree, Moment { now: Instant::seconds(0), entropy: 1 });
        let job = Credentials { path: "/s/f/a", password: "other", rid: "7", try_no: 1 };
        assert!(matches!(rules.check_child(&job, Child::Complete), Verdict::Zombie { .. }));
        drop(rules.finish());
        let zombie = "what reports for it may not be its job";
        assert!(tree.why(task, &mut none)[1].contains(zombie));
        let waits = "waits for a time, 23:59 next; it is 1970-Jan-01";
        assert!(tree.why(task, &mut none)[2].contains(waits));
        let text = "suite s\n task a\n date 1.1.2030\n task b\n date *.2.*\n task c\n day monday\n";
        let mut dates = parse(text, "x.def").expect("a definition").tree;
        let mut rules = Rules::new(&mut dates, Moment { now: Instant::seconds(0), entropy: 1 });
        rules.begin("s", false).expect("begun");
        drop(rules.finish());
        for (path, what) in [
            ("/s/a", "waits for a date, 1.1.2030; it is"),
            ("/s/b", "waits for a date, *.2.*; it is"),
            ("/s/c", "waits for a day, monday; it is"),
        ] {
            let all = dates.why(dates.find(path).expect("a task"), &mut none);
            assert!(all.iter().any(|one| one.contains(what)), "{all:?}");
        }
        assert_eq!(tree.why_below(tree.find("/s").expect("a suite"), &mut none, 2).len(), 2);
    }
}
