//! Attributes as mementos and nodes have them, member by member.

use super::archive::Archive;
use crate::model::{
    Attribute, Calendar, Clock, Cron, Duration, Expression, Instant, Joint, Over, Repeat, Series,
    Slot, State, Text, Variable, Verify,
};

pub(super) fn states(all: &[State]) -> Vec<i64> {
    all.iter().map(|state| *state as i64).collect()
}

pub(super) fn duration(archive: &mut Archive<'_>, name: &str, value: Duration) {
    archive.object(name, |archive| archive.text("duration", &value.to_string()));
}

pub(super) fn variable(archive: &mut Archive<'_>, one: &Variable) {
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

/// How a memento calls an attribute, and its type where that has a version.
const fn called(one: &Attribute) -> (&'static str, Option<&'static str>) {
    match one {
        Attribute::Event(_) => ("event_", None),
        Attribute::Meter(_) => ("meter_", None),
        Attribute::Label(_) => ("label_", None),
        Attribute::Variable(_) => ("var_", None),
        Attribute::Limit(_) => ("limit_", None),
        Attribute::InLimit(_) => ("inlimit_", None),
        Attribute::Trigger(_) | Attribute::Complete(_) => ("exp_", None),
        Attribute::Repeat(_) => ("repeat_", Some("Repeat")),
        Attribute::Late(_) => ("late_", None),
        Attribute::Cron(_) => ("attr_", Some("CronAttr")),
        Attribute::Zombie(_) => ("attr_", Some("ZombieAttr")),
        Attribute::Queue(_) => ("queue_", Some("QueueAttr")),
        Attribute::Generic(_) => ("generic_", None),
        Attribute::Clock(_) => ("clockAttr_", Some("ClockAttr")),
        Attribute::Calendar(_) => ("cal_", Some("Calendar")),
        Attribute::AutoCancel(_) => ("auto_cancel_", Some("AutoCancelAttr")),
        Attribute::AutoArchive(_) => ("auto_archive_", Some("AutoArchiveAttr")),
        Attribute::AutoRestore(_) => ("auto_restore_", Some("AutoRestoreAttr")),
        _ => ("attr_", None),
    }
}

pub(super) fn attribute(archive: &mut Archive<'_>, one: &Attribute) {
    let (name, _) = called(one);
    archive.object(name, |archive| versioned(archive, one));
}

/// The members of an attribute, behind the version of its type.
pub(super) fn versioned(archive: &mut Archive<'_>, one: &Attribute) {
    if let (_, Some(class)) = called(one) {
        archive.version(class);
    }
    members(archive, one);
}

/// All `verify` of a node.
pub(super) fn states_of(archive: &mut Archive<'_>, all: &[Verify]) {
    archive.objects("verifys_", all, |archive, one| {
        archive.integer("state_", one.state as i64);
        archive.integer("expected_", one.expected.into());
        archive.integer("actual_", one.actual.into());
    });
}

fn members(archive: &mut Archive<'_>, one: &Attribute) {
    match one {
        Attribute::Event(event) => {
            optional(archive, "n_", &event.name);
            if let Some(number) = event.number {
                archive.integer("number_", number.into());
            }
            if_so(archive, "v_", event.value);
            if_so(archive, "iv_", event.initial);
        }
        Attribute::Meter(meter) => {
            archive.integer("min_", meter.min.into());
            archive.integer("max_", meter.max.into());
            archive.integer("v_", meter.value.into());
            archive.text("n_", &meter.name);
            archive.integer("cc_", meter.threshold.into());
        }
        Attribute::Label(label) => {
            archive.text("n_", &label.name);
            optional(archive, "v_", &label.value);
            optional(archive, "new_v_", &label.new_value);
        }
        Attribute::Variable(one) => variable(archive, one),
        Attribute::Limit(limit) => {
            archive.text("n_", &limit.name);
            archive.integer("lim_", limit.max.into());
            if limit.value != 0 {
                archive.integer("value_", limit.value.into());
            }
            if let Some(holders) = limit.holders.as_ref().filter(|all| !all.is_empty()) {
                let paths: Vec<&str> = holders.iter().map(|path| &**path).collect();
                archive.texts("paths_", &paths);
            }
        }
        Attribute::InLimit(one) => {
            archive.text("n_", &one.name);
            optional(archive, "path_", &one.path);
            if one.tokens != 1 {
                archive.integer("tokens_", one.tokens.into());
            }
            if_so(archive, "limit_this_node_only_", one.node_only);
            if_so(archive, "limit_submission_", one.submission);
            if_so(archive, "incremented_", one.incremented);
        }
        Attribute::Trigger(condition) | Attribute::Complete(condition) => {
            expression(archive, &condition.expression, condition.free);
        }
        Attribute::Repeat(one) => repeat(archive, one),
        _ => rare(archive, one),
    }
}

fn rare(archive: &mut Archive<'_>, one: &Attribute) {
    match one {
        Attribute::Late(late) => {
            for (name, time) in [("s_", late.submitted), ("a_", late.active), ("c_", late.complete)]
            {
                if let Some(time) = time {
                    slot(archive, name, time);
                }
            }
            if_so(archive, "c_is_rel_", late.complete_relative);
            if_so(archive, "isLate_", late.is_late);
        }
        Attribute::Time(times) | Attribute::Today(times) => {
            archive.class("ts_", "TimeSeries", |archive| series(archive, times));
            if_so(archive, "free_", times.free);
        }
        Attribute::Date(date) => {
            archive.integer("day_", date.day.into());
            archive.integer("month_", date.month.into());
            archive.integer("year_", date.year.into());
            if_so(archive, "free_", date.free);
        }
        Attribute::Day(day) => {
            archive.integer("day_", day.weekday.into());
            if_so(archive, "free_", day.free);
            if_so(archive, "expired_", day.expired);
            if let Some(date) = day.date {
                let midnight = Instant::midnight(date).to_string();
                let date = midnight.split(' ').next().unwrap_or_default();
                archive.object("date_", |archive| archive.text("date", date));
            }
        }
        Attribute::Cron(one) => cron(archive, one),
        Attribute::Zombie(rule) => {
            let children: Vec<i64> = rule.children.iter().map(|child| *child as i64).collect();
            archive.integers("child_cmds_", &children);
            archive.integer("zombie_type_", rule.kind as i64);
            archive.integer("action_", rule.action as i64);
            archive.integer("zombie_lifetime_", rule.lifetime_s.into());
        }
        Attribute::Queue(queue) => {
            archive.texts("theQueue_", &queue.steps);
            archive.integers("state_vec_", &states(&queue.states));
            archive.text("name_", &queue.name);
            archive.integer("currentIndex_", queue.index.into());
        }
        Attribute::Generic(generic) => {
            archive.text("name_", &generic.name);
            archive.texts("values_", &generic.values);
        }
        Attribute::Clock(one) => clock(archive, one),
        Attribute::Calendar(one) => calendar(archive, one),
        Attribute::AutoCancel(after) | Attribute::AutoArchive(after) => {
            slot(archive, "time_", after.time);
            if !after.relative {
                archive.flag("relative_", false);
            }
            if_so(archive, "days_", after.days);
            if_so(archive, "idle_", after.idle);
        }
        Attribute::AutoRestore(paths) => archive.texts("nodes_to_restore_", paths),
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
