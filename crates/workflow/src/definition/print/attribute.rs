//! Attributes, a line each.

use std::fmt::Write as _;

use super::Printer;
use crate::definition::line::{ESCAPED, escaped};
use crate::model::{
    After, Attribute, Calendar, Clock, Condition, Cron, DateRule, DayRule, Duration, Event,
    InLimit, Joint, Label, Late, Limit, Meter, Over, Queue, Repeat, Series, Variable, WEEKDAYS,
    ZombieRule, instant_text,
};

impl Printer<'_> {
    pub(super) fn line(&mut self, attribute: &Attribute) {
        match attribute {
            Attribute::Late(late) => self.late(late),
            Attribute::Repeat(repeat) => self.repeat(repeat),
            Attribute::Variable(variable) => self.variable(variable),
            Attribute::Limit(limit) => self.limit(limit),
            Attribute::InLimit(limit) => self.in_limit(limit),
            Attribute::Label(label) => self.label(label),
            Attribute::Meter(meter) => self.meter(meter),
            Attribute::Event(event) => self.event(event),
            Attribute::Time(series) => self.time("time ", series),
            Attribute::Today(series) => self.time("today ", series),
            Attribute::Date(date) => self.date(date),
            Attribute::Day(day) => self.day(day),
            Attribute::Cron(cron) => self.cron(cron),
            Attribute::Aviso(line) | Attribute::Mirror(line) => self.text(line),
            Attribute::AutoCancel(after) => self.after("autocancel ", after),
            Attribute::AutoArchive(after) => self.after("autoarchive ", after),
            Attribute::AutoRestore(paths) => {
                self.text("autorestore");
                self.words(paths.iter());
            }
            Attribute::Zombie(rule) => self.zombie(rule),
            Attribute::Verify(verify) => {
                let _ = write!(self.out, "verify {}:{}", verify.state.word(), verify.expected);
                if self.style.has_state() {
                    let _ = write!(self.out, " # {}", verify.actual);
                }
            }
            Attribute::Queue(queue) => self.queue(queue),
            Attribute::Generic(generic) => {
                self.text("generic ");
                self.text(&generic.name);
                self.words(generic.values.iter());
            }
            Attribute::Clock(clock) => {
                self.text(if clock.hybrid { "clock hybrid " } else { "clock real " });
                self.clock(clock);
            }
            Attribute::EndClock(clock) => {
                self.text("endclock ");
                self.clock(clock);
            }
            Attribute::Calendar(calendar) => self.calendar(calendar),
            Attribute::Trigger(_) | Attribute::Complete(_) => {}
        }
    }

    /// The parts of an expression, a line each.
    pub(super) fn condition(&mut self, word: &str, condition: &Condition, depth: usize) {
        for part in &condition.expression.parts {
            if self.is_over() {
                return;
            }
            self.indent(depth);
            self.text(word);
            self.text(match part.joint {
                Joint::First => " ",
                Joint::And => " -a ",
                Joint::Or => " -o ",
            });
            self.text(&part.text);
            if self.style.has_state() && condition.free && part.joint == Joint::First {
                self.text(" # free");
            }
            self.text("\n");
        }
    }

    pub(super) fn variable(&mut self, variable: &Variable) {
        self.text("edit ");
        self.text(&variable.name);
        self.text(" '");
        if self.is_kept && variable.value.contains('\n') {
            self.text(&escaped(&variable.value));
            self.text("' ");
            return self.text(ESCAPED);
        }
        self.escaped(&variable.value);
        self.text("'");
    }

    /// The items of a list, which may be long, each between two texts.
    fn each<T: AsRef<str>>(
        &mut self,
        items: impl Iterator<Item = T>,
        (before, behind): (&str, &str),
    ) {
        for item in items {
            if self.is_over() {
                return;
            }
            self.text(before);
            self.text(item.as_ref());
            self.text(behind);
        }
    }

    fn words<T: AsRef<str>>(&mut self, items: impl Iterator<Item = T>) {
        self.each(items, (" ", ""));
    }

    fn quoted<T: AsRef<str>>(&mut self, items: impl Iterator<Item = T>) {
        self.each(items, (" \"", "\""));
    }

    fn late(&mut self, late: &Late) {
        self.text("late");
        if let Some(slot) = late.submitted {
            let _ = write!(self.out, " -s +{slot}");
        }
        if let Some(slot) = late.active {
            let _ = write!(self.out, " -a {slot}");
        }
        if let Some(slot) = late.complete {
            let plus = if late.complete_relative { "+" } else { "" };
            let _ = write!(self.out, " -c {plus}{slot}");
        }
        if self.style.has_state() && late.is_late {
            self.text(" # late");
        }
    }

    fn repeat(&mut self, repeat: &Repeat) {
        let kind = match &repeat.over {
            Over::Date(_) => "date",
            Over::DateList(_) => "datelist",
            Over::Integer(_) => "integer",
            Over::Enumerated(_) => "enumerated",
            Over::Text(_) => "string",
            Over::DateTime(_) => "datetime",
            Over::DateTimeList(_) => "datetimelist",
            Over::Day { step, .. } => {
                let _ = write!(self.out, "repeat day {step}");
                return;
            }
        };
        let _ = write!(self.out, "repeat {kind} ");
        self.text(&repeat.name);
        match &repeat.over {
            Over::Date(range) => {
                let _ = write!(self.out, " {} {} {}", range.start, range.end, range.delta);
            }
            Over::Integer(range) => {
                let _ = write!(self.out, " {} {}", range.start, range.end);
                if range.delta != 1 {
                    let _ = write!(self.out, " {}", range.delta);
                }
            }
            Over::DateTime(range) => {
                let (start, end) = (instant_text(range.start), instant_text(range.end));
                let _ = write!(self.out, " {start} {end} {}", Duration::seconds(range.delta));
            }
            Over::DateList(list) => self.quoted(list.items.iter().map(ToString::to_string)),
            Over::DateTimeList(list) => self.quoted(list.items.iter().map(|at| instant_text(*at))),
            Over::Enumerated(list) | Over::Text(list) => self.quoted(list.items.iter()),
            Over::Day { .. } => {}
        }
        if self.style.has_state() {
            self.repeat_place(&repeat.over);
        }
    }

    fn repeat_place(&mut self, over: &Over) {
        let at = over.place();
        match over {
            Over::Date(range) | Over::Integer(range) if at != range.start => {
                let _ = write!(self.out, " # {at}");
            }
            Over::DateTime(range) if at != range.start => {
                let _ = write!(self.out, " # {}", instant_text(at));
            }
            Over::DateList(_) | Over::DateTimeList(_) | Over::Enumerated(_) | Over::Text(_)
                if at != 0 =>
            {
                let _ = write!(self.out, " # {at}");
            }
            _ => {}
        }
    }

    fn limit(&mut self, limit: &Limit) {
        self.text("limit ");
        self.text(&limit.name);
        self.text(" ");
        self.number(limit.max.into());
        if self.style.has_state() && limit.value != 0 {
            self.text(" # ");
            self.number(limit.value.into());
            self.words(limit.holders.iter().flat_map(|holders| holders.iter()));
        }
    }

    fn in_limit(&mut self, limit: &InLimit) {
        self.text("inlimit ");
        self.text(if limit.node_only { "-n " } else { "" });
        self.text(if limit.submission { "-s " } else { "" });
        if !limit.path.is_empty() {
            self.text(&limit.path);
            self.text(":");
        }
        self.text(&limit.name);
        if limit.tokens != 1 {
            self.text(" ");
            self.number(limit.tokens.into());
        }
        if self.style.has_state() && limit.incremented {
            self.text(" # incremented:1");
        }
    }

    fn label(&mut self, label: &Label) {
        self.text("label ");
        self.text(&label.name);
        self.text(" \"");
        self.escaped(&label.value);
        self.text("\"");
        if self.style.has_state() && !label.new_value.is_empty() {
            self.text(" # \"");
            self.escaped(&label.new_value);
            self.text("\"");
        }
    }

    fn meter(&mut self, meter: &Meter) {
        self.text("meter ");
        self.text(&meter.name);
        for number in [meter.min, meter.max, meter.threshold] {
            self.text(" ");
            self.number(number.into());
        }
        if self.style.has_state() && meter.value != meter.min {
            self.text(" # ");
            self.number(meter.value.into());
        }
    }

    fn event(&mut self, event: &Event) {
        self.text("event ");
        if let Some(number) = event.number {
            self.number(number.into());
            self.text(" ");
        }
        self.text(&event.name);
        self.text(if event.initial { " set" } else { "" });
        if self.style.has_state() && event.value != event.initial {
            self.text(if event.value { " # set" } else { " # clear" });
        }
    }

    fn time(&mut self, word: &str, series: &Series) {
        self.text(word);
        self.series(series);
    }

    fn series(&mut self, series: &Series) {
        let plus = if series.relative { "+" } else { "" };
        let _ = write!(self.out, "{plus}{}", series.start);
        if let Some((finish, step)) = series.until {
            let _ = write!(self.out, " {finish} {step}");
        }
        if !self.style.has_state() {
            return;
        }
        let has_moved = series.next != series.start;
        let has_waited = series.waited.whole_seconds() != 0;
        if series.free || !series.is_valid || has_moved || has_waited {
            self.text(" #");
            self.text(if series.free { " free" } else { "" });
            self.text(if series.is_valid { "" } else { " isValid:false" });
            if has_moved {
                let _ = write!(self.out, " nextTimeSlot/{}", series.next);
            }
            if has_waited {
                let _ = write!(self.out, " relativeDuration/{}", series.waited);
            }
        }
    }

    fn date(&mut self, date: &DateRule) {
        self.text("date ");
        for (number, behind) in [(date.day.into(), "."), (date.month.into(), "."), (date.year, "")]
        {
            if number == 0 {
                self.text("*");
            } else {
                self.number(number.into());
            }
            self.text(behind);
        }
        self.text(if self.style.has_state() && date.free { " # free" } else { "" });
    }

    fn day(&mut self, day: &DayRule) {
        self.text("day ");
        self.text(WEEKDAYS[usize::from(day.weekday) % 7]);
        if self.style.has_state() {
            self.text(" #");
            self.text(if day.free { " free" } else { "" });
            self.text(if day.expired { " expired" } else { "" });
            let _ = match day.date {
                Some(date) => write!(self.out, " date:{date}"),
                None => write!(self.out, " date:not-a-date-time"),
            };
        }
    }

    fn cron(&mut self, cron: &Cron) {
        self.text("cron ");
        let Cron { weekdays, last_weekdays, days, last_day, months, series } = cron;
        let last_weekdays = last_weekdays.iter().map(|day| format!("{day}L"));
        let last_day = last_day.then(|| "L".to_owned());
        self.option("-w ", weekdays.iter().map(ToString::to_string).chain(last_weekdays));
        self.option("-d ", days.iter().map(ToString::to_string).chain(last_day));
        self.option("-m ", months.iter().map(ToString::to_string));
        self.series(series);
    }

    /// An option with its list, where that has any items.
    fn option(&mut self, option: &str, mut items: impl Iterator<Item = String>) {
        if let Some(first) = items.next() {
            self.text(option);
            self.text(&first);
            self.each(items, (",", ""));
            self.text(" ");
        }
    }

    fn after(&mut self, word: &str, after: &After) {
        self.text(word);
        if after.days {
            self.number(i64::from(after.time.minutes) / 60 / 24);
        } else {
            let plus = if after.relative { "+" } else { "" };
            let _ = write!(self.out, "{plus}{}", after.time);
        }
        self.text(if after.idle { " -i" } else { "" });
    }

    fn zombie(&mut self, rule: &ZombieRule) {
        let _ = write!(self.out, "zombie {}:{}:", rule.kind.word(), rule.action.word());
        let mut children = rule.children.iter().map(|child| child.word());
        self.text(children.next().unwrap_or_default());
        self.each(children, (",", ""));
        let _ = write!(self.out, ":{}", rule.lifetime_s);
    }

    fn queue(&mut self, queue: &Queue) {
        self.text("queue ");
        self.text(&queue.name);
        self.words(queue.steps.iter());
        if self.style.has_state() {
            let _ = write!(self.out, " # {}", queue.index);
            self.words(queue.states.iter().map(|state| state.word()));
        }
    }

    fn clock(&mut self, clock: &Clock) {
        if let Some((day, month, year)) = clock.date {
            let _ = write!(self.out, "{day}.{month}.{year} ");
        }
        if clock.gain_s != 0 {
            self.text(if clock.plus { "+" } else { "" });
            self.number(clock.gain_s);
        }
    }

    fn calendar(&mut self, calendar: &Calendar) {
        let _ = write!(
            self.out,
            "calendar initTime:{} suiteTime:{} duration:{} initLocalTime:{} lastTime:{}",
            calendar.init, calendar.suite, calendar.duration, calendar.init_local, calendar.last
        );
        if calendar.increment.whole_seconds() != 0 {
            let _ = write!(self.out, " calendarIncrement:{}", calendar.increment);
        }
        self.text(if calendar.day_changed { " dayChanged:1" } else { "" });
    }
}
