//! The rules that a record's own fields set for its value: limits, choices, alarms, the time.

use std::sync::Arc;

use super::draft::Draft;
use super::error::PutError;
use super::{Time, written};
use crate::protocol::{Bits, Number, Scalar, Type, Value};

/// Where the fields are that limit and describe the value.
#[derive(Debug)]
pub(super) struct Rules {
    is_writable: bool,
    most_bytes: usize,
    value: Option<usize>,
    /// The scalar that the value is, where it is one.
    index: Option<usize>,
    choices: Option<usize>,
    control: Option<[usize; 2]>,
    alarm: Option<usize>,
    value_alarm: Option<usize>,
    time: Option<usize>,
    /// How many bits each bit stands for.
    widths: Vec<u32>,
}

/// A severity and status of `alarm_t`, and its message.
type Alarm = (i32, i32, &'static str);

/// The status of an alarm that its record raised.
const RECORD_STATUS: i32 = 3;

impl Rules {
    pub(super) fn new(kind: &Type, is_writable: bool, most_bytes: usize) -> Self {
        let bit = |path: &str| kind.field(path).map(|found| found.0);
        let is_structure = |path: &str, id: &str| {
            let (bit, found) = kind.field(path)?;
            (found.structure()?.id() == id).then_some(bit)
        };
        let is_scalar = matches!(kind.field("value"), Some((_, Type::Scalar(_))));
        let control = || Some([bit("control.limitLow")?, bit("control.limitHigh")?]);
        let width = |bit| kind.path(bit).map_or(1, |(_, kind)| kind.width() as u32);
        let choice = is_structure("value", "enum_t");
        Self {
            is_writable,
            most_bytes,
            value: bit("value").filter(|_| is_scalar),
            index: bit("value.index").filter(|_| choice.is_some()),
            choices: bit("value.choices").filter(|_| choice.is_some()),
            control: control().filter(|_| is_scalar),
            alarm: is_structure("alarm", "alarm_t"),
            value_alarm: bit("valueAlarm.active").filter(|_| is_scalar),
            time: is_structure("timeStamp", "time_t"),
            widths: (0..kind.width()).map(width).collect(),
        }
    }

    pub(super) fn is_writable(&self) -> bool {
        self.is_writable
    }

    /// How many bytes of arrays a client may put.
    pub(super) fn most_bytes(&self) -> usize {
        self.most_bytes
    }

    /// How many bits `bit` stands for.
    pub(super) fn width(&self, bit: usize) -> usize {
        self.widths[bit] as usize
    }

    /// Whether a client may make this change.
    pub(super) fn check(
        &self,
        record: &Arc<str>,
        fields: &Bits,
        nodes: &[Value],
        now: &[Value],
    ) -> Result<(), PutError> {
        let record = || Arc::clone(record);
        if !self.is_writable {
            return Err(PutError::ReadOnly(record()));
        }
        // A field is set by its own bit or by that of a structure around it.
        let is_set =
            |bit: usize| (0..=bit).any(|at| fields.contains(at) && bit < at + self.width(at));
        let field = |bit: usize| if is_set(bit) { &nodes[bit] } else { &now[bit] };
        if let (Some(value), Some(limits)) = (self.value, self.control)
            && is_set(value)
        {
            let [low, high] = limits.map(|bit| field(bit).number());
            if let (Some(number), Some(low), Some(high)) = (field(value).number(), low, high)
                && low.real() < high.real()
                && !(low.real()..=high.real()).contains(&number.real())
            {
                let [value, low, high] = [number, low, high].map(written);
                return Err(PutError::OutOfLimits { record: record(), value, low, high });
            }
        }
        if let (Some(index), Some(choices)) = (self.index, self.choices)
            && let (Value::Int(index), Value::Strings(choices)) = (field(index), field(choices))
            && !usize::try_from(*index).is_ok_and(|at| at < choices.len())
        {
            let (index, count) = (*index, choices.len());
            return Err(PutError::NoChoice { record: record(), index, count });
        }
        let arrays = nodes.iter().filter_map(Value::as_array);
        let bytes = arrays.map(|array| array.bytes().len()).sum();
        if bytes > self.most_bytes {
            return Err(PutError::TooLong { record: record(), bytes, most: self.most_bytes });
        }
        Ok(())
    }

    /// Sets the fields of a new record that follow from the others.
    pub(super) fn begin(&self, now: Time, nodes: &mut [Value]) {
        let mut changed: Bits = self.value.into_iter().collect();
        self.settle(now, &mut Draft::new(nodes, &mut changed));
    }

    /// After the fields of a change are set, sets those that follow from them: alarm and time.
    #[inline]
    pub(super) fn settle(&self, now: Time, draft: &mut Draft<'_>) {
        if let (Some(value), Some(first), Some(alarm)) = (self.value, self.value_alarm, self.alarm)
            && draft.has(value)
            && !draft.has(alarm + 1)
        {
            self.settle_alarm(value, first, alarm, draft);
        }
        if let Some(time) = self.time
            && !draft.has(time + 1)
        {
            draft.set(time + 1, Value::Long(now.seconds));
            draft.set(time + 2, Value::Int(now.nanoseconds));
        }
    }

    fn settle_alarm(&self, value: usize, first: usize, alarm: usize, draft: &mut Draft<'_>) {
        let Some((severity, status, message)) = alarm_of(value, first, alarm, draft.nodes()) else {
            return;
        };
        let fields = [Value::Int(severity), Value::Int(status)];
        for (at, new) in fields.into_iter().enumerate() {
            if draft.nodes()[alarm + 1 + at] != new {
                draft.set(alarm + 1 + at, new);
            }
        }
        if draft.nodes()[alarm + 3].as_text() != Some(message) {
            draft.set(alarm + 3, Value::text(message));
        }
    }
}

/// The alarm that a value raises; nothing where its limits aren't active. `first` is the place of
/// `valueAlarm.active`: four limits follow it, from low to high, and their severities.
fn alarm_of(value: usize, first: usize, alarm: usize, nodes: &[Value]) -> Option<Alarm> {
    if nodes[first] != Value::Boolean(true) {
        return None;
    }
    let number = nodes[value].number().map(Number::real)?;
    let limit = |at: usize| nodes.get(first + at)?.number().map(Number::real);
    let severity = |at: usize| match nodes.get(first + at) {
        Some(Value::Int(severity)) => *severity,
        _ => 0,
    };
    let hysteresis = limit(9).unwrap_or_default();
    let was = nodes[alarm + 3].as_text().unwrap_or_default();
    // Once raised, an alarm stays until the value is inside of its limit by the hysteresis.
    let slack = |message: &str| if was == message { hysteresis } else { 0.0 };
    let cases = [
        (number >= limit(4)? - slack("HIHI"), 8, "HIHI"),
        (number <= limit(1)? + slack("LOLO"), 5, "LOLO"),
        (number >= limit(3)? - slack("HIGH"), 7, "HIGH"),
        (number <= limit(2)? + slack("LOW"), 6, "LOW"),
    ];
    let raised = cases.into_iter().find(|(is, at, _)| *is && severity(*at) > 0);
    Some(raised.map_or((0, 0, ""), |(_, at, message)| (severity(at), RECORD_STATUS, message)))
}

/// Whether a type has numbers that can be between limits.
pub(super) fn has_limits(scalar: Scalar) -> bool {
    !matches!(scalar, Scalar::String | Scalar::Boolean)
}
