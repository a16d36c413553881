//! Which causes are worth naming, in which order, and the line before them where they explain
//! little.

/// A part of a call is worth naming from this share on: a tenth.
const LEAST_SHARE: f64 = 0.1;

/// Causes that take less than this together explain less than they leave open.
const LEAST_EXPLAINED: f64 = 0.5;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// Every call has it: it is a cause where it takes much.
    Part,
    /// Calls can do without it: it is named however little it takes.
    Fault,
}

/// What takes the time of a call.
#[derive(Debug)]
pub(super) struct Cause {
    kind: Kind,
    /// Its share of a call's median, or of the mean where it is measured by that; `None` where it
    /// isn't known, or none.
    share: Option<f64>,
    words: String,
}

impl Cause {
    pub(super) fn part(share: f64, words: String) -> Self {
        Self { kind: Kind::Part, share: Some(share), words }
    }

    pub(super) fn fault(share: Option<f64>, words: String) -> Self {
        Self { kind: Kind::Fault, share, words }
    }

    fn is_large(&self) -> bool {
        self.share.is_some_and(|share| share >= LEAST_SHARE)
    }

    /// A small one is named with what it takes.
    fn text(self) -> String {
        match self.share {
            Some(share) if share < 0.001 => format!("{} It takes < 0.1 % of a call.", self.words),
            Some(share) if share < LEAST_SHARE => {
                format!("{} It takes {:.1} % of a call.", self.words, share * 100.0)
            }
            _ => self.words,
        }
    }
}

/// What takes most of a call comes first, and last what isn't known to take any. Where none takes a
/// tenth of it, or all of them leave more open than they explain, the first line says that, with
/// where the time is.
pub(super) fn named(mut found: Vec<Cause>, where_time_is: &str) -> Vec<String> {
    found.retain(|cause| cause.kind == Kind::Fault || cause.is_large());
    let share = |cause: &Cause| cause.share.unwrap_or(-1.0);
    found.sort_by(|one, other| share(other).total_cmp(&share(one)));
    let explained: f64 = found.iter().filter_map(|cause| cause.share).sum();
    let first = if !found.iter().any(Cause::is_large) {
        Some("Nothing that takes a tenth of a call was found.".to_owned())
    } else if explained < LEAST_EXPLAINED {
        // Less than half is not shown as half.
        let percent = (explained * 100.0).min(49.0);
        Some(format!("What was found takes {percent:.0} % of a call, the smaller part of it."))
    } else {
        None
    };
    let first = first.map(|first| format!("{first} {where_time_is}"));
    first.into_iter().chain(found.into_iter().map(Cause::text)).collect()
}
