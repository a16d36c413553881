//! What of a node has changed, as clients apply it to the definition that they have.

use super::archive::Archive;
use crate::model::{
    Attribute, Calendar, Clock, Cron, Displayed, Duration, Expression, Flags, Instant, Job, Joint,
    Over, Queue, Repeat, Series, ServerState, Slot, State, Text, Variable, Verify,
};

/// One change of a node, or of the server at `/`.
#[derive(Clone, Debug, PartialEq)]
pub enum Memento {
    /// The server's state: that of its suites.
    RootState(State),
    /// A node's state, and how long its suite had run then.
    State(State, Duration),
    /// The names of the children, in order.
    Order(Vec<Text>),
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
    const fn kind(&self) -> &'static str {
        match self {
            Self::RootState(_) => "StateMemento",
            Self::State(..) => "NodeStateMemento",
            Self::Order(_) => "OrderMemento",
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
            Self::Verifies(all) => archive.objects("verifys_", all, |archive, one| {
                archive.integer("state_", one.state as i64);
                archive.integer("expected_", one.expected.into());
                archive.integer("actual_", one.actual.into());
            }),
            Self::Attribute(one) => attribute(archive, one),
        }
    }
}

fn states(all: &[State]) -> Vec<i64> {
    all.iter().map(|state| *state as i64).collect()
}

fn duration(archive: &mut Archive<'_>, name: &str, value: Duration) {
    archive.object(name, |archive| archive.text("duration", &value.to_string()));
}

fn variable(archive: &mut Archive<'_>, one: &Variable) {
    archive.text("n_", &one.name);
    archive.text("v_", &one.value);
}

/// A text that is left out where it is empty.
fn optional(archive: &mut Archive<'_>, name: &str, value: &Text) {
    if !value.is_empty() {
        archive.text(name, value);
    }
}

/// A flag that is left out where it is false.
fn if_so(archive: &mut Archive<'_>, name: &str, value: bool) {
    if value {
        archive.flag(name, true);
    }
}

fn attribute(archive: &mut Archive<'_>, one: &Attribute) {
    match one {
        Attribute::Event(event) => archive.object("event_", |archive| {
            optional(archive, "n_", &event.name);
            if let Some(number) = event.number {
                archive.integer("number_", number.into());
            }
            if_so(archive, "v_", event.value);
            if_so(archive, "iv_", event.initial);
        }),
        Attribute::Meter(meter) => archive.object("meter_", |archive| {
            archive.integer("min_", meter.min.into());
            archive.integer("max_", meter.max.into());
            archive.integer("v_", meter.value.into());
            archive.text("n_", &meter.name);
            archive.integer("cc_", meter.threshold.into());
        }),
        Attribute::Label(label) => archive.object("label_", |archive| {
            archive.text("n_", &label.name);
            optional(archive, "v_", &label.value);
            optional(archive, "new_v_", &label.new_value);
        }),
        Attribute::Variable(one) => archive.object("var_", |archive| variable(archive, one)),
        Attribute::Limit(limit) => archive.object("limit_", |archive| {
            archive.text("n_", &limit.name);
            archive.integer("lim_", limit.max.into());
            if limit.value != 0 {
                archive.integer("value_", limit.value.into());
            }
            if let Some(holders) = limit.holders.as_ref().filter(|all| !all.is_empty()) {
                let paths: Vec<&str> = holders.iter().map(|path| &**path).collect();
                archive.texts("paths_", &paths);
            }
        }),
        Attribute::InLimit(one) => archive.object("inlimit_", |archive| {
            archive.text("n_", &one.name);
            optional(archive, "path_", &one.path);
            if one.tokens != 1 {
                archive.integer("tokens_", one.tokens.into());
            }
            if_so(archive, "limit_this_node_only_", one.node_only);
            if_so(archive, "limit_submission_", one.submission);
            if_so(archive, "incremented_", one.incremented);
        }),
        Attribute::Trigger(condition) | Attribute::Complete(condition) => {
            archive.object("exp_", |archive| {
                expression(archive, &condition.expression, condition.free);
            });
        }
        Attribute::Repeat(one) => {
            archive.class("repeat_", "Repeat", |archive| repeat(archive, one))
        }
        _ => rare(archive, one),
    }
}

fn rare(archive: &mut Archive<'_>, one: &Attribute) {
    match one {
        Attribute::Late(late) => archive.object("late_", |archive| {
            for (name, time) in [("s_", late.submitted), ("a_", late.active), ("c_", late.complete)]
            {
                if let Some(time) = time {
                    slot(archive, name, time);
                }
            }
            if_so(archive, "c_is_rel_", late.complete_relative);
            if_so(archive, "isLate_", late.is_late);
        }),
        Attribute::Time(times) | Attribute::Today(times) => archive.object("attr_", |archive| {
            archive.class("ts_", "TimeSeries", |archive| series(archive, times));
            if_so(archive, "free_", times.free);
        }),
        Attribute::Date(date) => archive.object("attr_", |archive| {
            archive.integer("day_", date.day.into());
            archive.integer("month_", date.month.into());
            archive.integer("year_", date.year.into());
            if_so(archive, "free_", date.free);
        }),
        Attribute::Day(day) => archive.object("attr_", |archive| {
            archive.integer("day_", day.weekday.into());
            if_so(archive, "free_", day.free);
            if_so(archive, "expired_", day.expired);
            if let Some(date) = day.date {
                let midnight = Instant::midnight(date).to_string();
                let date = midnight.split(' ').next().unwrap_or_default();
                archive.object("date_", |archive| archive.text("date", date));
            }
        }),
        Attribute::Cron(one) => archive.class("attr_", "CronAttr", |archive| cron(archive, one)),
        Attribute::Zombie(rule) => archive.class("attr_", "ZombieAttr", |archive| {
            let children: Vec<i64> = rule.children.iter().map(|child| *child as i64).collect();
            archive.integers("child_cmds_", &children);
            archive.integer("zombie_type_", rule.kind as i64);
            archive.integer("action_", rule.action as i64);
            archive.integer("zombie_lifetime_", rule.lifetime_s.into());
        }),
        Attribute::Queue(queue) => archive.class("queue_", "QueueAttr", |archive| {
            archive.texts("theQueue_", &queue.steps);
            archive.integers("state_vec_", &states(&queue.states));
            archive.text("name_", &queue.name);
            archive.integer("currentIndex_", queue.index.into());
        }),
        Attribute::Generic(generic) => archive.object("generic_", |archive| {
            archive.text("name_", &generic.name);
            archive.texts("values_", &generic.values);
        }),
        Attribute::Clock(one) => {
            archive.class("clockAttr_", "ClockAttr", |archive| clock(archive, one));
        }
        Attribute::Calendar(one) => {
            archive.class("cal_", "Calendar", |archive| calendar(archive, one));
        }
        _ => {}
    }
}

fn expression(archive: &mut Archive<'_>, expression: &Expression, free: bool) {
    archive.objects("vec_", &expression.parts, |archive, part| {
        archive.text("exp_", &part.text);
        match part.joint {
            Joint::First => {}
            Joint::And => archive.integer("type_", 1),
            Joint::Or => archive.integer("type_", 2),
        }
    });
    if_so(archive, "free_", free);
}

fn repeat(archive: &mut Archive<'_>, repeat: &Repeat) {
    let kind = match &repeat.over {
        Over::Date(_) => "RepeatDate",
        Over::DateList(_) => "RepeatDateList",
        Over::Integer(_) => "RepeatInteger",
        Over::Enumerated(_) => "RepeatEnumerated",
        Over::Text(_) => "RepeatString",
        Over::Day { .. } => "RepeatDay",
        Over::DateTime(_) => "RepeatDateTime",
        Over::DateTimeList(_) => "RepeatDateTimeList",
    };
    archive.unique("type_", kind, |archive| {
        archive.object("value0", |archive| archive.text("name_", &repeat.name));
        match &repeat.over {
            Over::Date(range) | Over::Integer(range) | Over::DateTime(range) => {
                archive.integer("start_", range.start);
                archive.integer("end_", range.end);
                archive.integer("delta_", range.delta);
                archive.integer("value_", range.value);
            }
            Over::DateList(list) => {
                let items: Vec<i64> = list.items.iter().map(|item| (*item).into()).collect();
                archive.integers("list_", &items);
                archive.integer("currentIndex_", list.index);
            }
            Over::DateTimeList(list) => {
                archive.integers("list_", &list.items);
                archive.integer("currentIndex_", list.index);
            }
            Over::Enumerated(list) => {
                archive.texts("theEnums_", &list.items);
                archive.integer("currentIndex_", list.index);
            }
            Over::Text(list) => {
                archive.texts("theStrings_", &list.items);
                archive.integer("currentIndex_", list.index);
            }
            Over::Day { step, .. } => archive.integer("step_", (*step).into()),
        }
    });
}

fn slot(archive: &mut Archive<'_>, name: &str, slot: Slot) {
    archive.object(name, |archive| {
        archive.integer("h_", (slot.minutes / 60).into());
        archive.integer("m_", (slot.minutes % 60).into());
    });
}

fn series(archive: &mut Archive<'_>, series: &Series) {
    slot(archive, "start_", series.start);
    if let Some((finish, step)) = series.until {
        slot(archive, "finish_", finish);
        slot(archive, "incr_", step);
    }
    if series.next != series.start {
        slot(archive, "nextTimeSlot_", series.next);
    }
    if series.waited != Duration::ZERO {
        duration(archive, "relativeDuration_", series.waited);
    }
    if_so(archive, "relativeToSuiteStart_", series.relative);
    if !series.is_valid {
        archive.flag("isValid_", false);
    }
}

fn cron(archive: &mut Archive<'_>, cron: &Cron) {
    archive.class("timeSeries_", "TimeSeries", |archive| series(archive, &cron.series));
    for (name, list) in [
        ("weekDays_", &cron.weekdays),
        ("last_week_days_of_month_", &cron.last_weekdays),
        ("daysOfMonth_", &cron.days),
        ("months_", &cron.months),
    ] {
        let list: Vec<i64> = list.iter().map(|item| (*item).into()).collect();
        if !list.is_empty() {
            archive.integers(name, &list);
        }
    }
    if_so(archive, "free_", cron.series.free);
    if_so(archive, "last_day_of_month_", cron.last_day);
}

fn clock(archive: &mut Archive<'_>, clock: &Clock) {
    archive.flag("hybrid_", clock.hybrid);
    if_so(archive, "positiveGain_", clock.plus);
    if clock.gain_s != 0 {
        archive.integer("gain_", clock.gain_s);
    }
    if let Some((day, month, year)) = clock.date {
        archive.integer("day_", day.into());
        archive.integer("month_", month.into());
        archive.integer("year_", year.into());
    }
}

fn calendar(archive: &mut Archive<'_>, calendar: &Calendar) {
    let mut time = |name: &str, value: Instant, is_left_out: bool| {
        if !is_left_out {
            archive.object(name, |archive| archive.text("ptime", &value.to_string()));
        }
    };
    let init = calendar.init;
    time("initTime_", init, false);
    time("suiteTime_", calendar.suite, calendar.suite == init);
    time("initLocalTime_", calendar.init_local, calendar.init_local == init);
    time("lastTime_", calendar.last, calendar.last == init);
    if_so(archive, "dayChanged_", calendar.day_changed);
    if calendar.duration != Duration::ZERO {
        duration(archive, "duration_", calendar.duration);
    }
    if calendar.increment != Duration::minutes(1) {
        duration(archive, "increment_", calendar.increment);
    }
}
