//! What a node may have beside its state. A node holds one list of them, in the order in which they
//! are printed; common ones lie in it, rare and large ones behind a pointer.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::calendar::{Calendar, Clock};
use super::expression::Expression;
use super::repeat::Repeat;
use super::series::{Cron, Series};
use super::state::State;
use super::text::{OwnText, Text};
use super::time::{Date, Slot};

/// A variable of the user: `edit NAME 'value'`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Its name.
    pub name: Text,
    /// Its value, before substitution.
    pub value: OwnText,
}

/// An event, by a name or a number, or both.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The name; empty where it has a number only.
    pub name: Text,
    /// The number.
    pub number: Option<i32>,
    /// Its value at begin and requeue.
    pub initial: bool,
    /// Whether it is set.
    pub value: bool,
}

impl Event {
    /// Whether it is called so, by name or number.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        let by_number = || self.number.is_some() && name.parse().ok() == self.number;
        self.name == *name && !name.is_empty() || by_number()
    }
}

/// A meter between two numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Meter {
    /// Its name.
    pub name: Text,
    /// The least value, and the value at begin.
    pub min: i32,
    /// The largest value.
    pub max: i32,
    /// From where on a viewer colours it.
    pub threshold: i32,
    /// Where it stands.
    pub value: i32,
}

/// A text for operators.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Its name.
    pub name: Text,
    /// The text of the definition.
    pub value: Text,
    /// The text that a job or operator has set; empty before.
    pub new_value: Text,
}

/// A number of tokens, and who has some.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Limit {
    /// Its name.
    pub name: Text,
    /// How many tokens there are.
    pub max: i32,
    /// How many are taken.
    pub value: i32,
    /// The paths of the nodes that have taken some.
    pub holders: Option<Arc<BTreeSet<Text>>>,
}

impl Limit {
    /// Takes a path from those that hold tokens, and one token with it; whether it was there.
    pub fn delete_holder(&mut self, path: &str) -> bool {
        let Some(holders) = &mut self.holders else { return false };
        let is_there = Arc::make_mut(holders).remove(&Text::from(path));
        if is_there {
            self.value = self.value.saturating_sub(1).max(0);
        }
        is_there
    }
}

/// A node's use of a limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InLimit {
    /// The limit's name.
    pub name: Text,
    /// The node that has the limit; empty: the nearest above.
    pub path: Text,
    /// How many tokens a task takes.
    pub tokens: i32,
    /// `-n`: the node itself takes the tokens, once.
    pub node_only: bool,
    /// `-s`: held while submitted only.
    pub submission: bool,
    /// Whether the node itself holds tokens (`-n`).
    pub incremented: bool,
}

/// `trigger` or `complete`.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// The parts as they were written, and what they mean.
    pub expression: Arc<Expression>,
    /// Released by an operator for this cycle.
    pub free: bool,
}

/// `date`; 0 is any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DateRule {
    /// The day of the month.
    pub day: u8,
    /// The month.
    pub month: u8,
    /// The year.
    pub year: u16,
    /// Whether it holds.
    pub free: bool,
}

impl DateRule {
    /// As a definition has it: `1.*.2030`.
    #[must_use]
    pub fn text(&self) -> String {
        let part = |number: u16| if number == 0 { "*".to_owned() } else { number.to_string() };
        [self.day.into(), self.month.into(), self.year].map(part).join(".")
    }
}

/// `day`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DayRule {
    /// 0 is Sunday.
    pub weekday: u8,
    /// Whether it holds.
    pub free: bool,
    /// Whether it has passed.
    pub expired: bool,
    /// The date that it waits for.
    pub date: Option<Date>,
}

/// Names of the days of a week, from Sunday.
pub const WEEKDAYS: [&str; 7] =
    ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

/// `late`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Late {
    /// `-s`: how long it may be submitted.
    pub submitted: Option<Slot>,
    /// `-a`: the time of day by which it is to be active.
    pub active: Option<Slot>,
    /// `-c`: by when it is to be complete.
    pub complete: Option<Slot>,
    /// Whether that counts from when it became active.
    pub complete_relative: bool,
    /// Whether it is late.
    pub is_late: bool,
}

/// `autocancel` and `autoarchive`: some time after completion, or at a time of day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct After {
    /// The time; of days their minutes.
    pub time: Slot,
    /// Since completion, not of day.
    pub relative: bool,
    /// Written in days.
    pub days: bool,
    /// `-i`: also when queued or aborted (autoarchive).
    pub idle: bool,
}

/// What kind of zombie a child command is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ZombieType {
    /// Made by an operator.
    User = 0,
    /// Two jobs of one task.
    Ecf = 1,
    /// The process id differs.
    EcfPid = 2,
    /// The password differs.
    EcfPassword = 3,
    /// Both differ.
    EcfPidPassword = 4,
    /// There is no such task.
    Path = 5,
    /// None.
    NotSet = 6,
}

impl ZombieType {
    /// ecFlow's words, by number.
    pub const WORDS: [&str; 7] =
        ["user", "ecf", "ecf_pid", "ecf_passwd", "ecf_pid_passwd", "path", "not_set"];
    /// All, by number.
    pub const ALL: [Self; 7] = [
        Self::User,
        Self::Ecf,
        Self::EcfPid,
        Self::EcfPassword,
        Self::EcfPidPassword,
        Self::Path,
        Self::NotSet,
    ];

    /// ecFlow's word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }

    /// The type of this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().take(6).find(|kind| kind.word() == word)
    }

    /// How long one is remembered, in seconds, without an attribute.
    #[must_use]
    pub const fn lifetime_s(self) -> i32 {
        match self {
            Self::User => 300,
            Self::Path => 900,
            _ => 3600,
        }
    }
}

/// What is done with a zombie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ZombieAction {
    /// Answered as if all were well.
    Fob = 0,
    /// Answered with an error.
    Fail = 1,
    /// Its process becomes the task's.
    Adopt = 2,
    /// Forgotten.
    Remove = 3,
    /// Made to wait.
    Block = 4,
    /// Ended by ECF_KILL_CMD.
    Kill = 5,
}

impl ZombieAction {
    /// All, by number.
    pub const ALL: [Self; 6] =
        [Self::Fob, Self::Fail, Self::Adopt, Self::Remove, Self::Block, Self::Kill];

    /// ecFlow's word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        ["fob", "fail", "adopt", "remove", "block", "kill"][self as usize]
    }

    /// The action of this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.word() == word)
    }
}

/// A child command, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Child {
    /// The job runs.
    Init = 0,
    /// It sets or clears an event.
    Event = 1,
    /// It moves a meter.
    Meter = 2,
    /// It sets a label.
    Label = 3,
    /// It waits for an expression.
    Wait = 4,
    /// It takes or ends a step of a queue.
    Queue = 5,
    /// It failed.
    Abort = 6,
    /// It is done.
    Complete = 7,
}

impl Child {
    /// All, by number.
    pub const ALL: [Self; 8] = [
        Self::Init,
        Self::Event,
        Self::Meter,
        Self::Label,
        Self::Wait,
        Self::Queue,
        Self::Abort,
        Self::Complete,
    ];

    /// ecFlow's word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        ["init", "event", "meter", "label", "wait", "queue", "abort", "complete"][self as usize]
    }

    /// The command of this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|child| child.word() == word)
    }
}

/// `zombie`: what is done with zombies of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZombieRule {
    /// Of this type.
    pub kind: ZombieType,
    /// What is done.
    pub action: ZombieAction,
    /// Of these commands; empty: all.
    pub children: Vec<Child>,
    /// How long they are remembered, in seconds.
    pub lifetime_s: i32,
}

/// `verify`: how often a state is expected (tests of definitions).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verify {
    /// The state.
    pub state: State,
    /// How often it is to be reached.
    pub expected: i32,
    /// How often it was.
    pub actual: i32,
}

/// `queue`: steps that jobs take one after another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Queue {
    /// Its name.
    pub name: Text,
    /// The steps.
    pub steps: Vec<Text>,
    /// The state of each.
    pub states: Vec<State>,
    /// The next step to take.
    pub index: i32,
}

/// `generic`: words that viewers understand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Generic {
    /// Its name.
    pub name: Text,
    /// Its words.
    pub values: Vec<Text>,
}

/// An attribute of a node. [`Attribute::rank`] is its place among others.
#[derive(Clone, PartialEq, Debug)]
pub enum Attribute {
    /// `late`.
    Late(Box<Late>),
    /// `complete`.
    Complete(Condition),
    /// `trigger`.
    Trigger(Condition),
    /// `repeat`.
    Repeat(Box<Repeat>),
    /// `edit`.
    Variable(Variable),
    /// `limit`.
    Limit(Limit),
    /// `inlimit`.
    InLimit(InLimit),
    /// `label`.
    Label(Label),
    /// `meter`.
    Meter(Meter),
    /// `event`.
    Event(Event),
    /// `time`.
    Time(Box<Series>),
    /// `today`.
    Today(Box<Series>),
    /// `date`.
    Date(DateRule),
    /// `day`.
    Day(DayRule),
    /// `cron`.
    Cron(Box<Cron>),
    /// An attribute of later versions, kept as it was written.
    Aviso(Text),
    /// An attribute of later versions, kept as it was written.
    Mirror(Text),
    /// `autocancel`.
    AutoCancel(After),
    /// `autoarchive`.
    AutoArchive(After),
    /// `autorestore`: the paths.
    AutoRestore(Arc<Vec<Text>>),
    /// `zombie`.
    Zombie(Box<ZombieRule>),
    /// `verify`.
    Verify(Verify),
    /// `queue`.
    Queue(Box<Queue>),
    /// `generic`.
    Generic(Box<Generic>),
    /// `clock` of a suite.
    Clock(Box<Clock>),
    /// `endclock` of a suite.
    EndClock(Box<Clock>),
    /// `calendar` of a suite that has begun.
    Calendar(Box<Calendar>),
}

impl Attribute {
    /// Its place in the list: the order in which ecFlow prints.
    #[must_use]
    pub const fn rank(&self) -> u8 {
        match self {
            Self::Late(_) => 0,
            Self::Complete(_) => 1,
            Self::Trigger(_) => 2,
            Self::Repeat(_) => 3,
            Self::Variable(_) => 4,
            Self::Limit(_) => 5,
            Self::InLimit(_) => 6,
            Self::Label(_) => 7,
            Self::Meter(_) => 8,
            Self::Event(_) => 9,
            Self::Time(_) => 10,
            Self::Today(_) => 11,
            Self::Date(_) => 12,
            Self::Day(_) => 13,
            Self::Cron(_) => 14,
            Self::Aviso(_) => 15,
            Self::Mirror(_) => 16,
            Self::AutoCancel(_) => 17,
            Self::AutoArchive(_) => 18,
            Self::AutoRestore(_) => 19,
            Self::Zombie(_) => 20,
            Self::Verify(_) => 21,
            Self::Queue(_) => 22,
            Self::Generic(_) => 23,
            Self::Clock(_) => 24,
            Self::EndClock(_) => 25,
            Self::Calendar(_) => 26,
        }
    }

    /// The name by which it is found; of those that have none, and of events and inlimits, `None`.
    #[must_use]
    pub const fn name(&self) -> Option<&Text> {
        Some(match self {
            Self::Variable(item) => &item.name,
            Self::Limit(item) => &item.name,
            Self::Label(item) => &item.name,
            Self::Meter(item) => &item.name,
            Self::Queue(item) => &item.name,
            Self::Generic(item) => &item.name,
            _ => return None,
        })
    }

    /// The keywords, by rank.
    pub const WORDS: [&'static str; 27] = [
        "late",
        "complete",
        "trigger",
        "repeat",
        "edit",
        "limit",
        "inlimit",
        "label",
        "meter",
        "event",
        "time",
        "today",
        "date",
        "day",
        "cron",
        "aviso",
        "mirror",
        "autocancel",
        "autoarchive",
        "autorestore",
        "zombie",
        "verify",
        "queue",
        "generic",
        "clock",
        "endclock",
        "calendar",
    ];

    /// Its keyword.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        Self::WORDS[self.rank() as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_attributes_lie_in_the_list() {
        assert!(size_of::<Attribute>() <= 32, "{}", size_of::<Attribute>());
    }
}
