//! A change in progress: the tree, the moment, what has come of it so far, and whom it wakes.

use std::collections::BTreeSet;

use hashbrown::HashMap;

use super::super::attribute::Attribute;
use super::super::calendar::Calendar;
use super::super::changes::Aspect;
use super::super::node::NodeId;
use super::super::state::{ServerState, State};
use super::super::text::Text;
use super::super::time::{Duration, Instant};
use super::super::tree::{Discarded, Snapshot, Tree};
use super::awake::Awake;

/// When a command is applied, and its share of chance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// The server's time, in whole seconds.
    pub now: Instant,
    /// Chance for passwords of jobs: another number for each command, which can't be guessed.
    pub entropy: u64,
}

/// What is to be written to a file: what was below a node. Equal where it is the same node.
#[derive(Clone, Debug)]
pub struct Archived {
    /// The node's path.
    pub path: String,
    /// The tree before it was archived.
    pub before: Snapshot,
}

impl PartialEq for Archived {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for Archived {}

/// What becomes of the children that are read again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Restoring {
    /// They are as they were.
    Same,
    /// They begin, as their parent did.
    Begun,
    /// They are queued again, as their parent was.
    Queued,
}

/// What is to be done for a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Effect {
    /// Lines for the log, without kind and stamp, of kind LOG.
    Log(String),
    /// A line of kind ERR.
    LogError(String),
    /// A line of kind MSG.
    LogMessage(String),
    /// A task's or alias's job is to be made and started. When it can't be, the answer is
    /// [`Rules::job_failed`].
    Submit(Submit),
    /// What was below a node is to be written to a file.
    Archive(Archived),
    /// The archive of the node at this path is to be read: [`Rules::restore`].
    Restore(String, Restoring),
    /// A node was deleted whose own archive, or that of one below it, may be there: they go.
    DropArchives {
        /// Its path.
        path: String,
        /// ECF_HOME as it was for it.
        home: String,
    },
    /// Many nodes were deleted, which are to be dropped where nothing waits.
    Discard(Discarded),
}

/// Lines for the log come together, in blocks of about this many bytes.
const BLOCK_BYTES: usize = 16 << 10;

/// Fewer deleted nodes than this are dropped at once.
const MANY: usize = 1024;

/// A job to be started.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Submit {
    /// The task or alias.
    pub node: NodeId,
    /// Its path.
    pub path: String,
    /// Which try it is.
    pub try_no: i32,
    /// The password that its child commands will have.
    pub password: Text,
}

/// Why a command is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RuleError {
    /// No suite has this name.
    #[error("BeginCmd::doHandleRequest:  Begin failed as suite '{0}' is not loaded.")]
    NoSuite(String),
    /// The suite, which is named, has not begun: whoever asks says of which node.
    #[error("The suite {0} must be 'begun' first")]
    NotBegun(String),
    /// A suite that has begun can't begin again without force.
    #[error("{0}")]
    Refused(String),
}

/// The owner's tree, at one moment, under change.
#[derive(Debug)]
pub struct Rules<'a> {
    /// The tree.
    pub tree: &'a mut Tree,
    pub(super) moment: Moment,
    /// Whether an operator or job caused the change, not the passing of time.
    pub(super) by_command: bool,
    /// Whether lines for the log are wanted.
    pub(super) has_log: bool,
    pub(super) effects: Vec<Effect>,
    /// Nodes whose dependencies may hold now.
    pub(super) awake: Awake,
    /// Nodes that are complete by rule, and queued again by a repeat without end.
    pub(super) ruled: BTreeSet<NodeId>,
    /// What the children of nodes give them, while only states change: one of thousands of children
    /// has the others looked through once, not each time.
    pub(super) computed_states: Option<HashMap<NodeId, State>>,
    passwords: u64,
}

impl<'a> Rules<'a> {
    /// Begins to apply a command.
    pub fn new(tree: &'a mut Tree, moment: Moment) -> Self {
        Self {
            tree,
            moment,
            by_command: true,
            has_log: true,
            effects: Vec::new(),
            awake: Awake::default(),
            ruled: BTreeSet::new(),
            computed_states: None,
            passwords: 0,
        }
    }

    /// Makes no lines for the log: they have no reader.
    pub fn without_log(&mut self) {
        self.has_log = false;
    }

    /// What follows is caused by the passing of time, not by an operator or job.
    pub fn by_time(&mut self) {
        self.by_command = false;
    }

    /// Submits what has become free, and returns what is to be done.
    #[must_use]
    pub fn finish(mut self) -> Vec<Effect> {
        self.resolve_awake();
        self.effects
    }

    /// Has what is left of deleted nodes dropped.
    pub(super) fn discard(&mut self, gone: Discarded) {
        if gone.count() >= MANY {
            self.effects.push(Effect::Discard(gone));
        }
    }

    /// Adds a line about a node to the log: these words, its path, and what is behind that.
    pub(super) fn log_of(&mut self, words: [&str; 3], id: NodeId, behind: &str) {
        let is_open = |effect: &&mut Effect| match effect {
            Effect::Log(lines) => lines.len() < BLOCK_BYTES,
            _ => false,
        };
        if let Some(Effect::Log(lines)) = self.effects.last_mut().filter(is_open) {
            lines.push('\n');
        } else {
            self.effects.push(Effect::Log(String::new()));
        }
        let Some(Effect::Log(lines)) = self.effects.last_mut() else { return };
        words.into_iter().for_each(|word| lines.push_str(word));
        self.tree.push_path(id, lines);
        lines.push_str(behind);
    }

    /// A node's suite's calendar; before begin one that stands still.
    pub(super) fn calendar(&self, id: NodeId) -> Calendar {
        let suite = self.tree.suite(id);
        suite.and_then(|suite| self.tree.calendar(suite)).copied().unwrap_or_default()
    }

    /// How long a node's suite has run.
    pub(super) fn duration(&self, id: NodeId) -> Duration {
        let Some(suite) = self.tree.suite(id) else { return Duration::ZERO };
        self.tree.calendar(suite).map_or(Duration::ZERO, |calendar| calendar.duration)
    }

    /// Whoever waits for a node is looked at.
    pub(super) fn wake_waiters(&mut self, id: NodeId) {
        if self.is_running() {
            self.tree.waiting.of(id).iter().for_each(|id| self.awake.insert(*id));
        }
    }

    /// A node itself, and all below it, is looked at.
    pub(super) fn wake(&mut self, id: NodeId) {
        if self.is_running() {
            self.awake.insert(id);
        }
    }

    /// Whether jobs are submitted: else nothing is looked at until they are, and then everything.
    pub(super) fn is_running(&self) -> bool {
        self.tree.server().state == ServerState::Running
    }

    /// Something of a node has changed: it is noted, and what waits for it is looked at.
    pub(super) fn changed(&mut self, id: NodeId) {
        self.tree.changed(id);
        self.wake_waiters(id);
    }

    /// What of a node has changed is noted, and what waits for it is looked at.
    pub(super) fn changed_in(&mut self, id: NodeId, aspect: Aspect) {
        self.tree.changed_in(id, aspect);
        self.wake_waiters(id);
    }

    /// Values of some attributes of a node have changed: what waits for it is looked at.
    pub(super) fn values_changed(&mut self, id: NodeId, is_it: impl Fn(&Attribute) -> bool) {
        self.tree.values_changed(id, is_it);
        self.wake_waiters(id);
    }

    /// The values of attributes of these places have changed: what waits for them is looked at.
    pub(super) fn values_changed_at(&mut self, id: NodeId, places: &[usize]) {
        places.iter().for_each(|place| self.tree.value_changed(id, *place));
        self.wake_waiters(id);
    }

    /// Values of a node's attributes may be others than before: what waits for it is looked at.
    pub(super) fn values_changed_from(&mut self, id: NodeId, before: &[Attribute]) {
        self.tree.values_changed_from(id, before);
        self.wake_waiters(id);
    }

    /// Eight letters and digits that can't be guessed.
    pub(super) fn password(&mut self, id: NodeId) -> Text {
        const LETTERS: &[u8; 62] =
            b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
        self.passwords += 1;
        let mut bits = self.moment.entropy ^ (id.index() as u64) << 32 ^ self.passwords;
        let mut text = String::with_capacity(8);
        for _ in 0..8 {
            bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            text.push(char::from(LETTERS[((mixed ^ (mixed >> 31)) % 62) as usize]));
        }
        Text::from(text)
    }
}

/// How a state is set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct How {
    /// By an operator: an abort is not tried again.
    pub(super) is_forced: bool,
    /// Whether the log has a line.
    pub(super) is_logged: bool,
}

impl How {
    pub(super) const PLAIN: Self = Self { is_forced: false, is_logged: true };
    pub(super) const FORCED: Self = Self { is_forced: true, is_logged: true };
    pub(super) const SILENT: Self = Self { is_forced: false, is_logged: false };
}

/// Why a node is queued again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cause {
    /// By an operator.
    Full,
    /// Its repeat has stepped.
    Repeat,
    /// It waits for a later time.
    Time,
}

/// How a node is queued again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Requeue {
    pub(super) cause: Cause,
    /// Whether its own repeat begins anew; those below do.
    pub(super) resets_repeat: bool,
    /// Whether nodes below are resumed: from 0 on, counted down the levels; negative is no.
    pub(super) resumes: i32,
    /// Whether rows of times begin anew.
    pub(super) resets_slot: bool,
    /// Whether relative times begin anew.
    pub(super) resets_waited: bool,
    pub(super) is_logged: bool,
}

impl Requeue {
    /// What an operator asks for.
    pub(super) const FULL: Self = Self {
        cause: Cause::Full,
        resets_repeat: true,
        resumes: 0,
        resets_slot: true,
        resets_waited: true,
        is_logged: true,
    };
}
