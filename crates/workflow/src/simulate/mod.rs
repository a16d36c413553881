//! Running a definition on a clock of its own: what runs when, without a server, scripts or jobs.
//! No I/O: the rules are those of the server, the jobs are assumptions.

mod engine;
mod idle;
mod jobs;
mod plan;

pub use engine::{Happened, Simulated, Simulation, What};
pub use plan::{Assumed, Assumption, Pass, Plan, horizon};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::parse;
    use crate::model::Instant;

    fn plan(assumptions: Vec<Assumption>) -> Plan {
        let start = Instant::of_text("2026-Nov-22", "10:00:00").expect("a time");
        let (pass, skips) = (Pass::AtOnce, true);
        Plan { start, minutes: 600, job_minutes: 10, pass, assumptions, skips }
    }

    fn assume(path: &str, assumed: Option<Assumed>, minutes: Option<i64>) -> Assumption {
        Assumption { path: path.to_owned(), assumed, minutes }
    }

    /// What happens: the minute, the path, and what.
    fn happens(text: &str, plan: &Plan) -> Vec<(i64, String, What)> {
        let parsed = parse(text, "x.def").expect("a definition");
        let mut all = Vec::new();
        let simulated = Simulation::run(&parsed.tree, Vec::new(), plan, |tree, happened| {
            all.push((happened.minute, tree.path(happened.node), happened.what));
        });
        assert!(!simulated.expect("simulated").is_endless);
        all
    }

    #[test]
    fn jobs_take_as_long_as_is_assumed_and_end_as_is_assumed() {
        let text = "suite s\n edit ECF_TRIES 2\n task a\n task b\n  trigger a == \
                    complete\n task c\n  \
                    trigger b == complete\n task d\n  time 12:00\nendsuite\n";
        let assumed = vec![
            assume("/s/a", None, Some(30)),
            assume("/s/b", Some(Assumed::Aborted), None),
            assume("/s/d", Some(Assumed::Active), None),
        ];
        let all = happens(text, &plan(assumed));
        let told: Vec<_> =
            all.iter().map(|(minute, path, what)| (*minute, path.as_str(), *what)).collect();
        assert_eq!(
            told,
            [
                (0, "/s/a", What::Started(1)),
                (30, "/s/a", What::Complete),
                (30, "/s/b", What::Started(1)),
                (40, "/s/b", What::Aborted),
                (40, "/s/b", What::Started(2)),
                (50, "/s/b", What::Aborted),
                (120, "/s/d", What::Started(1)),
            ]
        );
    }

    #[test]
    fn a_repeat_without_end_of_jobs_that_take_no_time_is_ended() {
        let parsed = parse("suite s\n repeat day 1\n task a\nendsuite\n", "x").expect("read");
        let plan = Plan { job_minutes: 0, ..plan(Vec::new()) };
        let simulated = Simulation::run(&parsed.tree, Vec::new(), &plan, |_, _| {});
        assert!(simulated.expect("simulated").is_endless);
    }
}
