//! States, flags and kinds of nodes, with ecFlow's words and numbers.

use std::fmt;

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// The server itself, path `/`: the parent of the suites.
    Root,
    /// A suite, with a clock of its own.
    Suite,
    /// A family of families and tasks.
    Family,
    /// A task, which has jobs.
    Task,
    /// A variant of a task's job that an operator runs by itself.
    Alias,
}

impl Kind {
    /// The keyword in a definition.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Root => "server",
            Self::Suite => "suite",
            Self::Family => "family",
            Self::Task => "task",
            Self::Alias => "alias",
        }
    }

    /// The word in ecFlow's errors.
    #[must_use]
    pub const fn shout(self) -> &'static str {
        match self {
            Self::Root => "SERVER",
            Self::Suite => "SUITE",
            Self::Family => "FAMILY",
            Self::Task => "TASK",
            Self::Alias => "ALIAS",
        }
    }

    /// Whether it can be submitted: a task or an alias.
    #[must_use]
    pub const fn is_job(self) -> bool {
        matches!(self, Self::Task | Self::Alias)
    }
}

/// The state of a node. Suspended is apart: see [`Displayed`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[repr(u8)]
pub enum State {
    /// Not begun.
    #[default]
    Unknown = 0,
    /// Done.
    Complete = 1,
    /// Waiting for its dependencies.
    Queued = 2,
    /// Its job failed, or was ended.
    Aborted = 3,
    /// Its job has been handed to ECF_JOB_CMD and has not said `init`.
    Submitted = 4,
    /// Its job runs.
    Active = 5,
}

impl State {
    /// All, by number.
    pub const ALL: [Self; 6] =
        [Self::Unknown, Self::Complete, Self::Queued, Self::Aborted, Self::Submitted, Self::Active];

    /// ecFlow's word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Complete => "complete",
            Self::Queued => "queued",
            Self::Aborted => "aborted",
            Self::Submitted => "submitted",
            Self::Active => "active",
        }
    }

    /// The state of this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// How much it counts among the children of a node: the most significant is the node's.
    #[must_use]
    pub const fn significance(self) -> u8 {
        match self {
            Self::Unknown => 0,
            Self::Complete => 1,
            Self::Queued => 2,
            Self::Submitted => 3,
            Self::Active => 4,
            Self::Aborted => 5,
        }
    }
}

/// A state, or suspended: what a node shows, a `defstatus`, and an operand of expressions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Displayed {
    /// See [`State::Unknown`].
    Unknown = 0,
    /// See [`State::Complete`].
    Complete = 1,
    /// See [`State::Queued`].
    Queued = 2,
    /// See [`State::Aborted`].
    Aborted = 3,
    /// See [`State::Submitted`].
    Submitted = 4,
    /// See [`State::Active`].
    Active = 5,
    /// Held by an operator.
    Suspended = 6,
}

impl Displayed {
    /// All, by number.
    pub const ALL: [Self; 7] = [
        Self::Unknown,
        Self::Complete,
        Self::Queued,
        Self::Aborted,
        Self::Submitted,
        Self::Active,
        Self::Suspended,
    ];

    /// ecFlow's word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Suspended => "suspended",
            other => other.state().word(),
        }
    }

    /// What is shown of this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// The state; of suspended: queued.
    #[must_use]
    pub const fn state(self) -> State {
        match self {
            Self::Unknown => State::Unknown,
            Self::Complete => State::Complete,
            Self::Queued | Self::Suspended => State::Queued,
            Self::Aborted => State::Aborted,
            Self::Submitted => State::Submitted,
            Self::Active => State::Active,
        }
    }
}

impl From<State> for Displayed {
    fn from(state: State) -> Self {
        Self::ALL[state as usize]
    }
}

/// The server's own state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum ServerState {
    /// No jobs, no child commands.
    Halted = 0,
    /// No jobs; child commands pass.
    Shutdown = 1,
    /// Jobs are submitted.
    #[default]
    Running = 2,
}

impl ServerState {
    /// ecFlow's word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Halted => "HALTED",
            Self::Shutdown => "SHUTDOWN",
            Self::Running => "RUNNING",
        }
    }

    /// The state of this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::Halted, Self::Shutdown, Self::Running].into_iter().find(|state| state.word() == word)
    }
}

/// One flag of a node; its number is its bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Flag {
    /// An operator has aborted it.
    ForceAborted = 0,
    /// Its job came from an edited script.
    UserEdit = 1,
    /// Its job said so.
    TaskAborted = 2,
    /// Its edited script could not be made a job.
    EditFailed = 3,
    /// ECF_JOB_CMD failed.
    JobCommandFailed = 4,
    /// Its script was not found.
    NoScript = 5,
    /// An operator has ended its job.
    Killed = 6,
    /// It is late.
    Late = 7,
    /// Its edit history has lines.
    Message = 8,
    /// It is complete by its complete expression.
    ByRule = 9,
    /// A queue of jobs was full.
    QueueLimit = 10,
    /// Its job waits for an expression.
    Wait = 11,
    /// It is locked.
    Locked = 12,
    /// It has a zombie.
    Zombie = 13,
    /// It is not queued again for its one time.
    NoRequeue = 14,
    /// What is below it is in a file.
    Archived = 15,
    /// It was archived, and is back.
    Restored = 16,
    /// Making its job took long.
    Threshold = 17,
    /// The server was asked to end.
    Sigterm = 18,
    /// None.
    NotSet = 19,
    /// The log could not be written.
    LogError = 20,
    /// A checkpoint could not be written.
    CheckpointError = 21,
    /// ECF_KILL_CMD failed.
    KillCommandFailed = 22,
    /// ECF_STATUS_CMD failed.
    StatusCommandFailed = 23,
    /// ECF_STATUS_CMD has run.
    Status = 24,
}

/// Flags with their words, in the order in which ecFlow prints them.
const FLAGS: [(Flag, &str); 24] = [
    (Flag::ForceAborted, "force_aborted"),
    (Flag::UserEdit, "user_edit"),
    (Flag::TaskAborted, "task_aborted"),
    (Flag::EditFailed, "edit_failed"),
    (Flag::JobCommandFailed, "ecfcmd_failed"),
    (Flag::KillCommandFailed, "killcmd_failed"),
    (Flag::StatusCommandFailed, "statuscmd_failed"),
    (Flag::NoScript, "no_script"),
    (Flag::Killed, "killed"),
    (Flag::Status, "status"),
    (Flag::Late, "late"),
    (Flag::Message, "message"),
    (Flag::ByRule, "by_rule"),
    (Flag::QueueLimit, "queue_limit"),
    (Flag::Wait, "task_waiting"),
    (Flag::Locked, "locked"),
    (Flag::Zombie, "zombie"),
    (Flag::NoRequeue, "no_reque"),
    (Flag::Archived, "archived"),
    (Flag::Restored, "restored"),
    (Flag::Threshold, "threshold"),
    (Flag::Sigterm, "sigterm"),
    (Flag::LogError, "log_error"),
    (Flag::CheckpointError, "checkpt_error"),
];

impl Flag {
    /// ecFlow's word.
    #[must_use]
    pub fn word(self) -> &'static str {
        FLAGS.iter().find(|(flag, _)| *flag == self).map_or("not_set", |(_, word)| word)
    }

    /// The flag of this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        FLAGS.iter().find(|(_, known)| *known == word).map(|(flag, _)| *flag)
    }
}

/// The flags of a node, as ecFlow's bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u32);

impl Flags {
    /// Whether this one is set.
    #[must_use]
    pub const fn has(self, flag: Flag) -> bool {
        self.0 >> (flag as u8) & 1 == 1
    }

    /// These and this one.
    #[must_use]
    pub const fn with(self, flag: Flag) -> Self {
        Self(self.0 | 1 << (flag as u8))
    }

    /// These but this one.
    #[must_use]
    pub const fn without(self, flag: Flag) -> Self {
        Self(self.0 & !(1 << (flag as u8)))
    }

    /// Whether none is set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The flags of words with commas between them; `Err` has the word that is none.
    ///
    /// # Errors
    /// The first unknown word.
    pub fn of_words(words: &str) -> Result<Self, &str> {
        let mut flags = Self::default();
        for word in words.split(',').filter(|word| !word.is_empty()) {
            flags = flags.with(Flag::of_word(word).ok_or(word)?);
        }
        Ok(flags)
    }
}

impl fmt::Display for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut comma = "";
        for (_, word) in FLAGS.iter().filter(|(flag, _)| self.has(*flag)) {
            write!(f, "{comma}{word}")?;
            comma = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_print_as_words_and_are_read_again() {
        let flags = Flags::default().with(Flag::Late).with(Flag::ForceAborted).with(Flag::Message);
        assert_eq!(flags.to_string(), "force_aborted,late,message");
        assert_eq!(Flags::of_words("force_aborted,late,message"), Ok(flags));
        assert_eq!(Flags::of_words("late,x"), Err("x"));
        assert!(!flags.without(Flag::Late).has(Flag::Late));
    }
}
