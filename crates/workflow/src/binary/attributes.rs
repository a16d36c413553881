//! Attributes and what they consist of: each type once, its fields in the order of their bytes.

use super::bytes::{Pack, Reader, Result, Writer};
use crate::model::{
    After, Attribute, Calendar, Child, Clock, Cron, Date, DateRule, DayRule, Displayed, Duration,
    Event, Generic, InLimit, Instant, Job, Joint, Label, Late, Limit, List, Meter, Over, Part,
    Queue, Range, Repeat, Series, ServerState, Slot, State, Variable, Verify, ZombieAction,
    ZombieRule, ZombieType,
};

/// Types that are their fields, one after another.
macro_rules! fields {
    ($($name:ident { $($field:ident)* })*) => {$(
        impl Pack for $name {
            fn put(&self, to: &mut Writer<'_>) {
                $(self.$field.put(to);)*
            }

            fn take(from: &mut Reader<'_>) -> Result<Self> {
                $(let $field = Pack::take(from)?;)*
                Ok(Self { $($field),* })
            }
        }
    )*};
}

fields! {
    Job { password rid abort_reason try_no alias_no }
    Part { joint text }
    Variable { name value }
    Event { name number initial value }
    Meter { name min max threshold value }
    Label { name value new_value }
    Limit { name max value holders }
    InLimit { name path tokens node_only submission incremented }
    DateRule { day month year free }
    DayRule { weekday free expired date }
    Late { submitted active complete complete_relative is_late }
    After { time relative days idle }
    ZombieRule { kind action children lifetime_s }
    Verify { state expected actual }
    Queue { name steps states index }
    Generic { name values }
    Repeat { name over }
    Range { start end delta value }
    Series { start until relative next is_valid free waited requeued_at }
    Cron { weekdays last_weekdays days last_day months series }
    Clock { hybrid date gain_s plus }
    Calendar { init suite duration init_local last increment day_changed }
    Duration { us }
    Instant { us }
    Date { julian }
    Slot { minutes }
}

/// Types that are one of a few, by their numbers.
macro_rules! numbered {
    ($($name:ty, $all:expr;)*) => {$(
        impl Pack for $name {
            fn put(&self, to: &mut Writer<'_>) {
                to.byte(*self as u8);
            }

            fn take(from: &mut Reader<'_>) -> Result<Self> {
                let number = from.byte()?;
                let one = $all.get(usize::from(number)).copied();
                one.map_or_else(|| from.bad(format!("{number} is no {}", stringify!($name))), Ok)
            }
        }
    )*};
}

numbered! {
    State, State::ALL;
    Displayed, Displayed::ALL;
    ServerState, [ServerState::Halted, ServerState::Shutdown, ServerState::Running];
    Joint, [Joint::First, Joint::And, Joint::Or];
    ZombieType, ZombieType::ALL;
    ZombieAction, ZombieAction::ALL;
    Child, Child::ALL;
}

impl<T: Pack> Pack for List<T> {
    fn put(&self, to: &mut Writer<'_>) {
        self.items.put(to);
        self.index.put(to);
    }

    fn take(from: &mut Reader<'_>) -> Result<Self> {
        Ok(Self { items: Pack::take(from)?, index: Pack::take(from)? })
    }
}

/// Types that are one of several others, each with its number.
macro_rules! variants {
    ($($name:ident { $($number:literal $variant:ident)* })*) => {$(
        impl Pack for $name {
            fn put(&self, to: &mut Writer<'_>) {
                match self {
                    $(Self::$variant(one) => {
                        to.byte($number);
                        one.put(to);
                    })*
                }
            }

            fn take(from: &mut Reader<'_>) -> Result<Self> {
                Ok(match from.byte()? {
                    $($number => Self::$variant(Pack::take(from)?),)*
                    number => {
                        return from.bad(format!("{number} is no {}", stringify!($name)));
                    }
                })
            }
        }
    )*};
}

variants! {
    Attribute {
        0 Late 1 Complete 2 Trigger 3 Repeat 4 Variable 5 Limit 6 InLimit 7 Label 8 Meter 9 Event
        10 Time 11 Today 12 Date 13 Day 14 Cron 15 Aviso 16 Mirror 17 AutoCancel 18 AutoArchive
        19 AutoRestore 20 Zombie 21 Verify 22 Queue 23 Generic 24 Clock 25 EndClock 26 Calendar
    }
}

impl Pack for Over {
    fn put(&self, to: &mut Writer<'_>) {
        to.byte(match self {
            Self::Date(_) => 0,
            Self::DateList(_) => 1,
            Self::Integer(_) => 2,
            Self::Enumerated(_) => 3,
            Self::Text(_) => 4,
            Self::Day { .. } => 5,
            Self::DateTime(_) => 6,
            Self::DateTimeList(_) => 7,
        });
        match self {
            Self::Date(range) | Self::Integer(range) | Self::DateTime(range) => range.put(to),
            Self::DateList(list) => list.put(to),
            Self::DateTimeList(list) => list.put(to),
            Self::Enumerated(list) | Self::Text(list) => list.put(to),
            Self::Day { step, ended } => (*step, *ended).put(to),
        }
    }

    fn take(from: &mut Reader<'_>) -> Result<Self> {
        Ok(match from.byte()? {
            0 => Self::Date(Pack::take(from)?),
            1 => Self::DateList(Pack::take(from)?),
            2 => Self::Integer(Pack::take(from)?),
            3 => Self::Enumerated(Pack::take(from)?),
            4 => Self::Text(Pack::take(from)?),
            5 => {
                let (step, ended) = Pack::take(from)?;
                Self::Day { step, ended }
            }
            6 => Self::DateTime(Pack::take(from)?),
            7 => Self::DateTimeList(Pack::take(from)?),
            number => return from.bad(format!("{number} is no kind of repeat")),
        })
    }
}
