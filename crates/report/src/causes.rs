//! What disturbed or invalidated figures, in words.

use findings::Why;
use ledger::{Cause, CauseKind, Program, Validity};

use crate::number::count;

/// The most programs that a sentence names, so that it stays short; the ledger and JSON have more.
const NAMED: usize = 3;

/// Why a trial isn't to be compared, or what of it is ignored; `None` where there is neither.
pub fn validity_note(validity: Validity, why: &[Why]) -> Option<String> {
    let words = why.iter().map(why_text).collect::<Vec<_>>().join("; ");
    let ignored = if validity == Validity::Valid { "disturbances ignored: " } else { "" };
    (!words.is_empty()).then(|| format!("{ignored}{words}"))
}

/// What disturbed, in words; empty where nothing did.
pub fn disturbed_by(causes: &[Cause]) -> String {
    causes.iter().map(cause_text).collect::<Vec<_>>().join("; ")
}

/// What helps where rounds of a suite stay disturbed.
pub const HELP_FOR_SUITES: &str = "\
What helps: end what runs beside it, or pin targets and clients away from it (cpus = [...]).
`loadline doctor` says what this host is good for; `--set rounds.disturbed=ignore` compares all
the same, and the verdict is then about the disturbance, too.";

/// That the last rounds were all disturbed, each target by these causes, and what helps.
pub fn stays_disturbed(rounds: usize, causes: &[(&str, Vec<Cause>)], help: &str) -> String {
    let line =
        |(name, causes): &(&str, Vec<Cause>)| format!("  {name}: {}\n", disturbed_by(causes));
    let causes: String = causes.iter().map(line).collect();
    format!("the last {rounds} rounds were disturbed:\n{causes}{help}")
}

/// The programs that used most: `rustc 1.1 cores, java 0.4`.
pub fn programs(programs: &[Program]) -> String {
    let first_measured = programs.iter().position(|one| one.cores.is_some());
    let named = |(at, one): (usize, &Program)| {
        let name = one.name.as_deref().unwrap_or("short-lived or unseen");
        let unit = if first_measured == Some(at) { " cores" } else { "" };
        match one.cores {
            None => format!("probably {name}"),
            Some(cores) if cores < 0.005 => format!("{name} under 0.01{unit}"),
            Some(cores) => {
                let digits = if cores < 0.095 { 2 } else { 1 };
                format!("{name} {cores:.digits$}{unit}")
            }
        }
    };
    programs.iter().take(NAMED).enumerate().map(named).collect::<Vec<_>>().join(", ")
}

pub(crate) fn why_text(why: &Why) -> String {
    match why {
        Why::Disturbed(cause) => cause_text(cause),
        Why::Invalid(reason) => reason.clone(),
    }
}

/// A cause with how much it was: `the hypervisor kept 1.3 to 1.5 % of a core`.
fn cause_text(cause: &Cause) -> String {
    let percent = || range(cause, |share| format!("{:.1}", share * 100.0), " %");
    match &cause.kind {
        CauseKind::Foreign => foreign(cause, &percent()),
        CauseKind::ForeignTicks => foreign(cause, &format!("about {}", percent())),
        CauseKind::Unassigned => match &cause.programs[..] {
            [] => format!("the target and other programs used {} of the run's cores", percent()),
            named => format!(
                "{}, perhaps the target among them ({} of the run's cores)",
                programs(named),
                percent()
            ),
        },
        CauseKind::Steal => format!("the hypervisor kept {} of a core", percent()),
        CauseKind::Pause => {
            let ms = range(cause, |ns| format!("{:.0}", ns / 1e6), " ms");
            format!("the host paused for {ms}")
        }
        CauseKind::Pauses => format!("the host paused for {} of the time", percent()),
        CauseKind::Swap => {
            format!("the host swapped {}", range(cause, |pages| count(pages as u64), " pages"))
        }
        CauseKind::Wait { target } => {
            let side = target.as_deref().unwrap_or("the generator");
            format!("a thread of {side} waited {} of the time for a core", percent())
        }
        CauseKind::Quota => format!("the CPU quota was used up in {} of its periods", percent()),
    }
}

fn foreign(cause: &Cause, share: &str) -> String {
    match &cause.programs[..] {
        [] => format!("other programs used {share} of the run's cores"),
        named => format!("{} ({share} of the run's cores)", programs(named)),
    }
}

/// From the least to the most of a cause; one figure where both read alike.
fn range(cause: &Cause, shown: impl Fn(f64) -> String, unit: &str) -> String {
    let (least, most) = (shown(cause.least), shown(cause.most));
    if least == most { format!("{most}{unit}") } else { format!("{least} to {most}{unit}") }
}

#[cfg(test)]
mod tests {
    use CauseKind::{Foreign, ForeignTicks, Pause, Pauses, Quota, Steal, Swap, Unassigned, Wait};

    use super::*;

    fn said(kind: CauseKind, least: f64, most: f64) -> String {
        cause_text(&Cause { least, most, ..Cause::new(kind, 0.0) })
    }

    fn named(kind: CauseKind, named: &[(&str, Option<f64>)]) -> String {
        let program = |(name, cores): &(&str, Option<f64>)| Program {
            name: Some((*name).to_owned()).filter(|name| !name.is_empty()),
            cores: *cores,
        };
        let programs = named.iter().map(program).collect();
        cause_text(&Cause { programs, ..Cause::new(kind, 0.114) })
    }

    #[test]
    fn every_kind_says_how_much_it_was() {
        let cases = [
            (Foreign, 0.02, 0.14, "other programs used 2.0 to 14.0 % of the run's cores"),
            (ForeignTicks, 0.114, 0.114, "other programs used about 11.4 % of the run's cores"),
            (Steal, 0.013, 0.015, "the hypervisor kept 1.3 to 1.5 % of a core"),
            (Pause, 12.1e6, 12.4e6, "the host paused for 12 ms"),
            (Pauses, 0.03, 0.03, "the host paused for 3.0 % of the time"),
            (Swap, 17.0, 12_345.0, "the host swapped 17 to 12,345 pages"),
            (
                Wait { target: None },
                0.09,
                0.09,
                "a thread of the generator waited 9.0 % of the time for a core",
            ),
            (Quota, 0.95, 1.0, "the CPU quota was used up in 95.0 to 100.0 % of its periods"),
        ];
        for (kind, least, most, words) in cases {
            assert_eq!(said(kind, least, most), words);
        }
        let target = Some("redis; 1 waited 2 %".to_owned());
        let waited = cause_text(&Cause::new(Wait { target }, 0.07));
        assert_eq!(waited, "a thread of redis; 1 waited 2 % waited 7.0 % of the time for a core");
    }

    #[test]
    fn programs_are_named_with_their_cores_or_as_probable() {
        let used = [("rustc", Some(1.1)), ("java", Some(0.2)), ("", Some(0.07)), ("d", Some(0.01))];
        let words =
            "rustc 1.1 cores, java 0.2, short-lived or unseen 0.07 (11.4 % of the run's cores)";
        assert_eq!(named(Foreign, &used), words, "three are enough");
        let words = "probably java, cc1 under 0.01 cores, ld 0.01 (11.4 % of the run's cores)";
        let little = [("java", None), ("cc1", Some(0.004)), ("ld", Some(0.006))];
        assert_eq!(named(Foreign, &little), words);
        let words = "rustc 1.1 cores, perhaps the target among them (11.4 % of the run's cores)";
        assert_eq!(named(Unassigned, &used[..1]), words);
        let words = "probably java, probably cc1 (about 11.4 % of the run's cores)";
        assert_eq!(named(ForeignTicks, &[("java", None), ("cc1", None)]), words);
    }

    #[test]
    fn what_is_ignored_says_so_and_nothing_has_no_reason() {
        let causes = [Cause::new(Pause, 12e6), Cause::new(Swap, 17.0)];
        let note_of =
            |validity| validity_note(validity, &Why::of(validity, Some("it died"), &causes));
        let words = "the host paused for 12 ms; the host swapped 17 pages";
        assert_eq!(note_of(Validity::Disturbed).unwrap(), words);
        assert_eq!(note_of(Validity::Valid).unwrap(), format!("disturbances ignored: {words}"));
        assert_eq!(note_of(Validity::Invalid).unwrap(), "it died");
        assert_eq!(validity_note(Validity::Valid, &[]), None);
    }
}
