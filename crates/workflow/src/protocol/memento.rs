//! What of a node has changed, as clients apply it to the definition that they have.

use super::archive::Archive;
use super::attributes::{attribute, duration, states, states_of, variable};
use super::nodes::Children;
use crate::model::{
    Attribute, Displayed, Duration, Flags, Job, OwnText, Queue, ServerState, State, Variable,
    Verify,
};

/// One change of a node, or of the server at `/`.
#[derive(Clone, Debug, PartialEq)]
pub enum Memento {
    /// The server's state: that of its suites.
    RootState(State),
    /// A node's state, and how long its suite had run then.
    State(State, Duration),
    /// The names of the children, in order.
    Order(Vec<OwnText>),
    /// All children, where some were added or deleted.
    Children(Children),
    /// Whether it is suspended.
    Suspended(bool),
    /// The state of begin and requeue.
    Default(Displayed),
    /// The flags.
    Flags(Flags),
    /// A job's particulars.
    Job(Job),
    /// The number of a task's last alias.
    AliasNumber(i32),
    /// Whether the server is halted.
    Server(ServerState),
    /// All variables of the users at the server.
    Variables(Vec<Variable>),
    /// An attribute as it is now: of a trigger, time or repeat that the client has, its state only.
    Attribute(Attribute),
    /// Where a repeat stands.
    RepeatPlace(i64),
    /// Where a queue stands.
    QueuePlace(Queue),
    /// All `verify` of a node.
    Verifies(Vec<Verify>),
}

/// What of one node has changed.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Compound {
    /// The node's path.
    pub path: String,
    /// Whether the client first drops the attributes that it has.
    pub clears: bool,
    /// The changes.
    pub mementos: Vec<Memento>,
}

impl Compound {
    pub(super) fn write(&self, archive: &mut Archive<'_>) {
        archive.pointer("CompoundMemento", |archive| {
            if self.clears {
                archive.flag("clear_attributes_", true);
            }
            archive.text("absNodePath_", &self.path);
            archive.objects("vec_", &self.mementos, |archive, one| {
                archive.polymorphic(one.kind(), |archive| {
                    archive.class("value0", "Memento", |_| {});
                    one.write(archive);
                });
            });
        });
    }
}

impl Memento {
    fn kind(&self) -> &'static str {
        match self {
            Self::RootState(_) => "StateMemento",
            Self::State(..) => "NodeStateMemento",
            Self::Order(_) => "OrderMemento",
            Self::Children(children) if children.are_aliases() => "AliasChildrenMemento",
            Self::Children(_) => "ChildrenMemento",
            Self::Suspended(_) => "SuspendedMemento",
            Self::Default(_) => "NodeDefStatusDeltaMemento",
            Self::Flags(_) => "FlagMemento",
            Self::Job(_) => "SubmittableMemento",
            Self::AliasNumber(_) => "AliasNumberMemento",
            Self::Server(_) => "ServerStateMemento",
            Self::Variables(_) => "ServerVariableMemento",
            Self::RepeatPlace(_) => "NodeRepeatIndexMemento",
            Self::QueuePlace(_) => "NodeQueueIndexMemento",
            Self::Verifies(_) => "NodeVerifyMemento",
            Self::Attribute(attribute) => match attribute {
                Attribute::Late(_) => "NodeLateMemento",
                Attribute::Complete(_) => "NodeCompleteMemento",
                Attribute::Trigger(_) => "NodeTriggerMemento",
                Attribute::Repeat(_) => "NodeRepeatMemento",
                Attribute::Variable(_) => "NodeVariableMemento",
                Attribute::Limit(_) => "NodeLimitMemento",
                Attribute::InLimit(_) => "NodeInLimitMemento",
                Attribute::Label(_) => "NodeLabelMemento",
                Attribute::Meter(_) => "NodeMeterMemento",
                Attribute::Event(_) => "NodeEventMemento",
                Attribute::Time(_) => "NodeTimeMemento",
                Attribute::Today(_) => "NodeTodayMemento",
                Attribute::Date(_) => "NodeDateMemento",
                Attribute::Day(_) => "NodeDayMemento",
                Attribute::Cron(_) => "NodeCronMemento",
                Attribute::Zombie(_) => "NodeZombieMemento",
                Attribute::Queue(_) => "NodeQueueMemento",
                Attribute::Generic(_) => "NodeGenericMemento",
                Attribute::Clock(_) => "SuiteClockMemento",
                // The rest has none: `is_of`.
                _ => "SuiteCalendarMemento",
            },
        }
    }

    /// Whether clients have a memento of this attribute; `verify` has one for all of a node.
    #[must_use]
    pub const fn is_of(attribute: &Attribute) -> bool {
        !matches!(
            attribute,
            Attribute::Aviso(_)
                | Attribute::Mirror(_)
                | Attribute::AutoCancel(_)
                | Attribute::AutoArchive(_)
                | Attribute::AutoRestore(_)
                | Attribute::Verify(_)
                | Attribute::EndClock(_)
        )
    }

    fn write(&self, archive: &mut Archive<'_>) {
        match self {
            Self::RootState(state) => archive.integer("state_", *state as i64),
            Self::State(state, since) => archive.object("state_", |archive| {
                archive.integer("first", *state as i64);
                duration(archive, "second", *since);
            }),
            Self::Order(names) => archive.texts("order_", names),
            Self::Suspended(is_so) => archive.flag("suspended_", *is_so),
            Self::Default(state) => archive.integer("state_", *state as i64),
            Self::Flags(flags) => archive.class("flag_", "Flag", |archive| {
                archive.integer("flag_", flags.0.into());
            }),
            Self::Job(job) => {
                archive.text("paswd_", &job.password);
                archive.text("rid_", &job.rid);
                archive.text("abr_", &job.abort_reason);
                archive.integer("tryNo_", job.try_no.into());
            }
            Self::AliasNumber(number) => archive.integer("alias_no_", (*number).into()),
            Self::Server(state) => archive.integer("state_", *state as i64),
            Self::Variables(all) => archive.objects("serverEnv_", all, variable),
            Self::RepeatPlace(place) => archive.integer("index_or_value_", *place),
            Self::QueuePlace(queue) => {
                archive.integer("index_", queue.index.into());
                archive.text("name_", &queue.name);
                archive.integers("state_vec_", &states(&queue.states));
            }
            Self::Verifies(all) => states_of(archive, all),
            Self::Children(children) => children.write(archive),
            Self::Attribute(one) => attribute(archive, one),
        }
    }
}
