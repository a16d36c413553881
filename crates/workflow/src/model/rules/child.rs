//! Child commands: what jobs report, and whether they may.

use super::super::attribute::{Attribute, Child, Variable, ZombieRule, ZombieType};
use super::super::changes::Aspect;
use super::super::evaluate::From;
use super::super::expression::Program;
use super::super::node::NodeId;
use super::super::state::{Flag, ServerState, State};
use super::super::text::{OwnText, Text};
use super::super::tree::Snapshot;
use super::change::{Effect, How, Rules};
use super::resolve::TRIES;

/// Who a job says that it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credentials<'a> {
    /// ECF_NAME: the path of its task or alias.
    pub path: &'a str,
    /// ECF_PASS.
    pub password: &'a str,
    /// ECF_RID: a process or queue identifier; may be empty.
    pub rid: &'a str,
    /// ECF_TRYNO.
    pub try_no: i32,
}

/// What becomes of a child command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It is applied to this node.
    Accept(NodeId),
    /// The server is halted: the client waits and asks again.
    Halted,
    /// It was applied before: the client gets OK. The text is for the log (WAR).
    Repeated(String),
    /// It comes from another job than the task's.
    Zombie {
        /// The task; none has the path where it is missing.
        node: Option<NodeId>,
        /// What kind of zombie it is.
        kind: ZombieType,
        /// What differs, for the log.
        reason: String,
    },
}

/// Why a child command is refused, in ecFlow's words.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ChildError(pub String);

fn repeated(who: &Credentials<'_>, child: Child, words: &str, behind: &str) -> Verdict {
    let (word, path) = (child.word(), who.path);
    Verdict::Repeated(format!(" {words} : chd:{word} : {path} : {behind} : action(fob)"))
}

impl Snapshot {
    /// The `zombie` attribute for a type: of the node at a path, or of the nearest above that is
    /// there.
    #[must_use]
    pub fn zombie_rule(&self, path: &str, kind: ZombieType) -> Option<ZombieRule> {
        let mut paths = std::iter::successors(Some(path), |path| Some(path.rsplit_once('/')?.0));
        let nearest = paths.find_map(|path| self.find(path))?;
        self.upwards(nearest).find_map(|id| {
            self.node(id).attributes.iter().find_map(|attribute| match attribute {
                Attribute::Zombie(rule) if rule.kind == kind => Some((**rule).clone()),
                _ => None,
            })
        })
    }

    /// Whether a job that waits for an expression, as it has said before, goes on waiting, or is
    /// through as it was: then its report changes nothing.
    #[must_use]
    pub fn is_wait_known(&self, who: &Credentials<'_>, program: &Program) -> bool {
        let Some(id) = self.find(who.path).filter(|id| self.node(*id).kind.is_job()) else {
            return false;
        };
        let (node, job) = (self.node(id), self.node(id).job());
        let is_own = job.password == who.password && (who.rid.is_empty() || job.rid == who.rid);
        let holds = program.holds(&From { tree: self, node: id });
        let is_plain = node.state == State::Active && !node.flags.has(Flag::Zombie);
        is_own && is_plain && node.flags.has(Flag::Wait) != holds
    }
}

impl Rules<'_> {
    /// Whether a child command is the task's own, in ecFlow's order of checks
    /// (`Base/src/cts/TaskCmds.cpp`).
    pub fn check_child(&mut self, who: &Credentials<'_>, child: Child) -> Verdict {
        if self.tree.server().state == ServerState::Halted {
            return Verdict::Halted;
        }
        let found = self.tree.find(who.path).filter(|id| self.tree.node(*id).kind.is_job());
        let Some(id) = found else {
            let (node, kind) = (None, ZombieType::Path);
            return Verdict::Zombie { node, kind, reason: String::new() };
        };
        if who.password == "_DJP_" {
            return Verdict::Accept(id);
        }
        if self.tree.own_variable(id, "ECF_PASS").is_some_and(|value| *value == "FREE") {
            self.set_flag(id, Flag::Zombie, false);
            return Verdict::Accept(id);
        }
        let node = self.tree.node(id);
        let (state, job) = (node.state, node.job());
        let mut other_password = job.password != who.password;
        let mut other_rid = !job.rid.is_empty() && !who.rid.is_empty() && job.rid != who.rid;
        let repeated = |words: &str, behind: &str| repeated(who, child, words, behind);
        let mut already = "";
        match state {
            State::Submitted if child != Child::Init => {
                let text = "When a node is submitted, expected next child command to be INIT but";
                let line = format!("{} {text} received {}", who.path, child.word());
                self.effects.push(Effect::LogError(line));
            }
            State::Active if child == Child::Init => {
                if !other_password && !other_rid {
                    let words = "[ overloaded || --init*2 ](pid and passwd match)";
                    return repeated(words, "already active");
                }
                already = "already active";
            }
            State::Complete => {
                if child == Child::Complete {
                    self.set_flag(id, Flag::Zombie, false);
                    let words = "[ overloaded || zombie || --complete*2 ]";
                    return repeated(words, "already complete");
                }
                already = "already complete";
                (other_password, other_rid) = (false, false);
            }
            State::Aborted => {
                if child == Child::Abort && !other_password && !other_rid {
                    let words = "[ overloaded || --abort*2 ] (pid and passwd match)";
                    return repeated(words, "already aborted");
                }
                already = "already aborted";
                (other_password, other_rid) = (false, false);
            }
            _ => {}
        }
        if !other_password && !other_rid && already.is_empty() {
            return Verdict::Accept(id);
        }
        let mut reason = String::new();
        if !already.is_empty() {
            reason = format!(" : {already}");
        }
        for (differs, what, own, other) in [
            (other_password, "passwd", &job.password, who.password),
            (other_rid, "pid", &job.rid, who.rid),
        ] {
            if differs {
                reason.push_str(&format!(" : {what} != [ task:{own} child:{other} ]"));
            }
        }
        self.zombie(id, (other_password, other_rid), reason)
    }

    fn zombie(&mut self, id: NodeId, differs: (bool, bool), reason: String) -> Verdict {
        let kind = match differs {
            (true, true) => ZombieType::EcfPidPassword,
            (true, false) => ZombieType::EcfPassword,
            (false, true) => ZombieType::EcfPid,
            (false, false) => ZombieType::Ecf,
        };
        self.set_flag(id, Flag::Zombie, true);
        Verdict::Zombie { node: Some(id), kind, reason }
    }

    /// Makes the job that says who it is the task's own.
    pub fn adopt(&mut self, id: NodeId, who: &Credentials<'_>) {
        let job = self.tree.node_mut(id).job_mut();
        (job.password, job.rid) = (Text::from(who.password), Text::from(who.rid));
        self.tree.changed_in(id, Aspect::Job);
        self.set_flag(id, Flag::Zombie, false);
    }

    /// `--init`: the job runs, and is known by this identifier from now on. Variables are added.
    pub fn init(&mut self, id: NodeId, rid: &str, variables: &[(String, String)]) {
        self.tree.node_mut(id).job_mut().rid = Text::from(rid);
        self.tree.changed_in(id, Aspect::Job);
        self.set_state(id, State::Active, How::PLAIN);
        for (name, value) in variables {
            self.set_variable(id, name, value);
        }
    }

    /// `--complete`. Variables are deleted.
    pub fn complete(&mut self, id: NodeId, variables: &[String]) {
        self.set_state(id, State::Complete, How::PLAIN);
        self.set_flag(id, Flag::Zombie, false);
        if self.tree.node(id).job.is_some() {
            let job = self.tree.node_mut(id).job_mut();
            (job.password, job.rid) = (Text::default(), Text::default());
            job.abort_reason = Text::default();
        }
        self.tree.changed_in(id, Aspect::Job);
        for name in variables {
            self.delete_variable(id, name);
        }
    }

    /// `--abort`, or a job that could not be started.
    pub fn abort(&mut self, id: NodeId, reason: &str) {
        let reason = if reason.is_empty() { "Trap raised in job file" } else { reason };
        // ecFlow drops the first line's end and turns the first ';' into a blank.
        let reason = reason.replacen('\n', "", 1).replacen(';', " ", 1);
        self.tree.node_mut(id).job_mut().abort_reason = Text::from(reason);
        self.tree.changed_in(id, Aspect::Job);
        self.set_state(id, State::Aborted, How::PLAIN);
        self.wake(id);
    }

    /// `--event`: whether there is one of this name.
    pub fn set_event(&mut self, id: NodeId, name: &str, value: bool) -> bool {
        let mut is_there = false;
        for attribute in self.tree.node_mut(id).attributes_mut() {
            if let Attribute::Event(event) = attribute
                && event.is_called(name)
            {
                event.value = value;
                is_there = true;
                break;
            }
        }
        if is_there {
            let is_it =
                |one: &Attribute| matches!(one, Attribute::Event(event) if event.is_called(name));
            self.values_changed(id, is_it);
        }
        is_there
    }

    /// `--meter`: whether there is one of this name, and the value is within its range.
    pub fn set_meter(&mut self, id: NodeId, name: &str, value: i32) -> bool {
        let mut is_set = false;
        for attribute in self.tree.node_mut(id).attributes_mut() {
            if let Attribute::Meter(meter) = attribute
                && meter.name == *name
                && (meter.min..=meter.max).contains(&value)
            {
                meter.value = value;
                is_set = true;
            }
        }
        if is_set {
            let is_it =
                |one: &Attribute| matches!(one, Attribute::Meter(meter) if meter.name == *name);
            self.values_changed(id, is_it);
        }
        is_set
    }

    /// `--label`: whether there is one of this name.
    pub fn set_label(&mut self, id: NodeId, name: &str, text: &str) -> bool {
        let mut is_there = false;
        for attribute in self.tree.node_mut(id).attributes_mut() {
            if let Attribute::Label(label) = attribute
                && label.name == *name
            {
                label.new_value = Text::from(text);
                is_there = true;
            }
        }
        if is_there {
            // Nothing compares labels, so nothing is woken.
            let is_it =
                |one: &Attribute| matches!(one, Attribute::Label(label) if label.name == *name);
            self.tree.values_changed(id, is_it);
        }
        is_there
    }

    /// `--wait`: whether the expression holds; otherwise the client asks again.
    pub fn wait(&mut self, id: NodeId, program: &Program) -> bool {
        let holds = program.holds(&From { tree: self.tree, node: id });
        self.set_flag(id, Flag::Wait, !holds);
        holds
    }

    /// Adds a user's variable to a node, or gives it another value.
    pub fn set_variable(&mut self, id: NodeId, name: &str, value: &str) {
        let value = OwnText::from(value);
        let is_it = |attribute: &Attribute| match attribute {
            Attribute::Variable(variable) => variable.name == *name,
            _ => false,
        };
        if self.tree.node(id).attributes.iter().any(is_it) {
            for attribute in self.tree.node_mut(id).attributes_mut() {
                if let Attribute::Variable(variable) = attribute
                    && variable.name == *name
                {
                    variable.value = value.clone();
                }
            }
            self.values_changed(id, is_it);
        } else {
            let name = self.tree.share(name);
            self.tree.add_attribute(id, Attribute::Variable(Variable { name, value }));
            self.tree.attributes_changed(id);
            self.wake_waiters(id);
        }
        if name == TRIES {
            self.wake(id);
        }
    }

    /// Deletes a user's variable of a node; an empty name deletes all. Whether there was one.
    pub fn delete_variable(&mut self, id: NodeId, name: &str) -> bool {
        let is_it = |attribute: &Attribute| match attribute {
            Attribute::Variable(variable) => name.is_empty() || variable.name == *name,
            _ => false,
        };
        let is_there = self.tree.remove_attributes(id, is_it);
        if is_there {
            self.wake_waiters(id);
        }
        is_there
    }
}
