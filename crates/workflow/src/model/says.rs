//! What of an attribute lists of nodes show.

use super::attribute::Attribute;

/// The longest text of a label that is shown, in characters.
const LABEL: usize = 120;

impl Attribute {
    /// The value that a job or repeat has set, as lists of nodes show it; `None` where there is
    /// none.
    #[must_use]
    pub fn says(&self) -> Option<String> {
        Some(match self {
            Self::Label(label) => {
                let text = if label.new_value.is_empty() { &label.value } else { &label.new_value };
                let text: String = text.chars().take(LABEL).collect();
                format!("{}: {text}", label.name)
            }
            Self::Meter(meter) => format!("{} {} of {}", meter.name, meter.value, meter.max),
            Self::Event(event) if event.value => match event.number {
                Some(number) if event.name.is_empty() => format!("event {number} set"),
                _ => format!("{} set", event.name),
            },
            Self::Limit(limit) if limit.value > 0 => {
                format!("limit {} {} of {}", limit.name, limit.value, limit.max)
            }
            Self::Repeat(repeat) => format!("{} = {}", repeat.name, repeat.over.text()),
            _ => return None,
        })
    }
}
