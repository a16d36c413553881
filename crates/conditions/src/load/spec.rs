//! `[workload]`: how much there is, and which interval jobs read.

use base::units::Share;
use serde::Deserialize;

/// The most objects of one part of the preparation.
pub(super) const OBJECTS_PER_PART: u32 = 10_000;

/// The most values of one slice: 256 MiB of them.
const MAX_SLICE_VALUES: u64 = 64 << 20;

/// The most objects of one browse.
const MAX_BROWSED: u32 = 1_000_000;

/// Which interval jobs read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub(super) enum Since {
    /// Each equally often.
    #[default]
    Any,
    /// The first one.
    First,
    /// The last one.
    Last,
    /// Each job the one after the job before it, whichever slot that was.
    Next,
    /// The one of this number, from 1 on.
    Number(u32),
    /// As many jobs read one interval as are named, then as many the next.
    Behind(Behind),
}

/// `since = { behind = 576, jobs = 60 }`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Behind {
    /// How many intervals before the last one that is prepared the first job reads.
    pub(super) behind: u32,
    /// Jobs that read the same interval.
    pub(super) jobs: u32,
}

/// Which objects are valid for longer than an interval: those of every tenth channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Long {
    /// None.
    #[default]
    None,
    /// One from the beginning on, without an end.
    Infinite,
    /// Two, one up to the beginning of some interval and one from there to the end, at another
    /// interval in each channel.
    Scattered,
}

/// [`Since`] as it is written.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(i64),
    Word(String),
    Behind(Behind),
    Other(serde::de::IgnoredAny),
}

impl TryFrom<Written> for Since {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match &written {
            Written::Number(number) => {
                let number = u32::try_from(*number).ok().filter(|number| *number > 0);
                number.map(Self::Number)
            }
            Written::Word(word) => match &word[..] {
                "any" => Some(Self::Any),
                "first" => Some(Self::First),
                "last" => Some(Self::Last),
                "next" => Some(Self::Next),
                _ => None,
            },
            Written::Behind(behind) => (behind.jobs > 0).then_some(Self::Behind(*behind)),
            Written::Other(_) => None,
        }
        .ok_or_else(|| {
            "since is \"first\", \"last\", \"next\", \"any\", the number of an interval, from 1 \
             on, or { behind = 576, jobs = 60 }"
                .to_owned()
        })
    }
}

/// `[workload]`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Spec {
    pub(super) folders: u32,
    pub(super) channels: u32,
    pub(super) intervals: u32,
    /// Floats of each object.
    pub(super) fields: u32,
    #[serde(default)]
    pub(super) since: Since,
    #[serde(default)]
    pub(super) long: Long,
    /// Objects of one insertion in bulk.
    #[serde(default = "thousand")]
    pub(super) bulk: u32,
    /// Intervals of one browse.
    #[serde(default = "ten")]
    pub(super) browse: u32,
    /// The share of look-ups that ask for what was asked before.
    #[serde(default = "nine_of_ten")]
    pub(super) repeats: Share,
}

fn nine_of_ten() -> Share {
    Share { fraction: 0.9 }
}

fn ten() -> u32 {
    10
}

fn thousand() -> u32 {
    1_000
}

impl Spec {
    /// Refuses what can't be made; returns the key and why.
    pub(super) fn check(&self) -> Result<(), (&'static str, String)> {
        for (key, value, most) in [
            ("folders", self.folders, 10_000),
            ("channels", self.channels, OBJECTS_PER_PART),
            ("intervals", self.intervals, 10_000_000),
            ("fields", self.fields, 1_000),
            ("bulk", self.bulk, OBJECTS_PER_PART),
        ] {
            if !(1..=most).contains(&value) {
                return Err((key, format!("{key} has to be 1 to {most}, not {value}")));
            }
        }
        // What is prepared may be less than what `browse` is where it isn't stated.
        let browsed = self.channels.saturating_mul(self.browse);
        if self.browse == 0 || browsed > MAX_BROWSED {
            let why = format!("browse × channels has to be 1 to {MAX_BROWSED}, not {browsed}");
            return Err(("browse", why));
        }
        let values = self.values();
        if values > MAX_SLICE_VALUES {
            let why = format!(
                "a slice of folders × channels × fields = {values} values: at most \
                 {MAX_SLICE_VALUES}"
            );
            return Err(("folders", why));
        }
        match self.since {
            Since::Number(number) if number > self.intervals => {
                Err(("since", format!("there are {} intervals, not {number}", self.intervals)))
            }
            Since::Behind(Behind { behind, .. }) if behind >= self.intervals => {
                let why =
                    format!("of {} intervals none is {behind} before the last", self.intervals);
                Err(("since", why))
            }
            _ => Ok(()),
        }
    }

    /// Objects of one slice.
    pub(super) fn objects(&self) -> u64 {
        u64::from(self.folders) * u64::from(self.channels)
    }

    /// Values of one slice.
    pub(super) fn values(&self) -> u64 {
        self.objects() * u64::from(self.fields)
    }
}
