//! Requirements over trials made by hand.

use super::*;
use crate::drive::{Counts, LoadResult, empty_histogram};
use crate::plan::Comparison::{Equal, Greater, GreaterOrEqual, Less};

const MS: u64 = 1_000_000;

fn requirement(name: &str, comparison: Comparison, bound: f64) -> Requirement {
    let figure = Expression::Name(name.to_owned());
    Requirement { text: name.to_owned(), figure, unit: None, comparison, bound }
}

fn judged(requirement: &Requirement, trials: &[Trial]) -> Judgement {
    judged_with(1, requirement, trials)
}

fn judged_with(closed_slots: u64, requirement: &Requirement, trials: &[Trial]) -> Judgement {
    judge_requirement(requirement, trials, &terms(closed_slots, 0))
}

fn terms(closed_slots: u64, scheduled_slots: u64) -> Terms<'static> {
    let (confidence, least_rounds) = (0.95, judge::MIN_ROUNDS);
    let is_schedule = closed_slots == 0;
    Terms {
        target: 0,
        subject: "ours",
        confidence,
        least_rounds,
        closed_slots,
        scheduled_slots,
        is_schedule,
    }
}

fn disturb(trials: &mut [Trial]) {
    trials.iter_mut().for_each(|trial| trial.validity = Validity::Disturbed);
}

fn measured(round: u32) -> Trial {
    let mut trial = Trial::begin(0, round, 0);
    trial.measured_ns = 1;
    trial.counts.operations = 10_000;
    trial
}

/// Trials in which rounds show these values.
fn showing(name: &'static str, values: &[Option<f64>]) -> Vec<Trial> {
    let of = |(round, value): (u32, &Option<f64>)| {
        let mut trial = measured(round);
        trial.set_metrics(value.map(|value| (name.into(), value)).into_iter().collect());
        trial
    };
    (1..).zip(values).map(of).collect()
}

/// Trials of 10,000 answers in 1 ms each, of which `of_rounds` took `slow_ns`.
fn with_slow_answers(slow_ns: u64, of_rounds: &[u64]) -> Vec<Trial> {
    let of = |(round, slow): (u32, &u64)| {
        let mut histogram = empty_histogram();
        histogram.record_n(MS, 10_000 - slow).unwrap();
        histogram.record_n(slow_ns, *slow).unwrap();
        let max = if *slow > 0 { slow_ns } else { MS };
        let mut trial = measured(round);
        trial.set_metrics(vec![("latency.max".into(), max as f64)]);
        trial.with_latencies(&histogram)
    };
    (1..).zip(of_rounds).map(of).collect()
}

#[test]
fn counts_of_nothing_hold_unless_they_were_not_seen() {
    let outcome = |name, comparison, bound, values: &[Option<f64>]| {
        judged(&requirement(name, comparison, bound), &showing(name, values)).outcome
    };
    let missed = |values: &[Option<f64>]| outcome("missed", Equal, 0.0, values);
    assert_eq!(missed(&[Some(0.0); 5]), Held);
    assert_eq!(missed(&[Some(0.0), Some(1.0)]), Broken);
    assert_eq!(missed(&[None; 5]), CantTell);
    let least = |values: &[Option<f64>]| outcome("least_updates", GreaterOrEqual, 1.0, values);
    assert_eq!(least(&[Some(3.0), Some(1.0)]), Held);
    assert_eq!(least(&[Some(3.0), Some(0.0)]), Broken);
    assert_eq!(least(&[Some(3.0), None]), CantTell);
}

#[test]
fn nothing_wrong_holds_only_where_something_was_measured() {
    let none_wrong = requirement("wrong", Equal, 0.0);
    let mut trials = showing("wrong", &[Some(0.0); 5]);
    assert_eq!(judged(&none_wrong, &trials).outcome, Held);
    trials.iter_mut().for_each(|trial| trial.validity = Validity::Disturbed);
    assert_eq!(judged(&none_wrong, &trials).outcome, Held, "its answers were checked");
    trials.iter_mut().for_each(|trial| trial.invalidate("it died"));
    let judgement = judged(&none_wrong, &trials);
    assert_eq!((judgement.outcome, judgement.value), (CantTell, None));
    // An answer that was wrong before measuring began is one all the same.
    trials[2].wrong_outside = 1;
    assert_eq!(judged(&none_wrong, &trials).outcome, Broken);
}

#[test]
fn one_answer_over_the_limit_breaks_a_requirement_on_the_greatest() {
    let limit = requirement("latency.max", Less, 300e6);
    let judgement = judged(&limit, &with_slow_answers(502 * MS, &[0, 0, 1, 0, 0, 0]));
    assert_eq!((judgement.outcome, judgement.value), (Broken, Some(502e6)));
    assert_eq!((judgement.broken_in, judgement.rounds), (1, 6));
    // A stall of 200 ms every 2 s stays within it.
    let stalls = with_slow_answers(201 * MS, &[30, 25, 30, 28, 31, 27]);
    assert_eq!(judged(&limit, &stalls).outcome, Held);
    assert_eq!(judged(&limit, &with_slow_answers(502 * MS, &[1])).outcome, Broken);
    assert_eq!(judged(&limit, &stalls[..1]).outcome, CantTell, "one round shows little");
    assert_eq!(judged(&limit, &[]).outcome, CantTell);
}

#[test]
fn a_percentile_is_that_of_all_answers_whatever_rounds_show_on_average() {
    let limit = requirement("latency.p99", Less, 100e6);
    // Most rounds have a p99 of 1 ms, and 3 % of all answers take 445 ms.
    let uneven = with_slow_answers(445 * MS, &[90, 0, 90, 0, 90, 5_000, 0, 90, 0, 90, 0, 90]);
    let judgement = judged(&limit, &uneven);
    assert_eq!(judgement.outcome, CantTell, "one round has nearly all of them");
    let near = |value: Option<f64>, ms: f64| (value.unwrap() / 1e6 / ms - 1.0).abs() < 0.001;
    assert!(near(judgement.value, 445.0), "{judgement:?}");
    assert_eq!((judgement.broken_in, judgement.rounds), (1, 12));
    assert!(judgement.reason.unwrap().contains("of the answers lie above it, and 1.0 % may"));
    let broken = judged(&limit, &with_slow_answers(445 * MS, &[250, 300, 280, 260, 310]));
    assert_eq!((broken.outcome, broken.broken_in), (Broken, 5));
    let held = judged(&limit, &with_slow_answers(445 * MS, &[30, 20, 28, 26, 31]));
    assert!(held.outcome == Held && near(held.value, 1.0), "{held:?}");
    let tail = requirement("latency.p99.9", Less, 100e6);
    let tail = judged(&tail, &with_slow_answers(445 * MS, &[30, 20, 28, 26, 31]));
    assert_eq!(tail.outcome, Broken);
}

#[test]
fn disturbed_rounds_can_show_that_it_held_and_not_that_it_was_broken() {
    let limit = requirement("latency.p99", Less, 100e6);
    let disturb = |mut trials: Vec<Trial>| {
        disturb(&mut trials);
        trials
    };
    let held = judged(&limit, &disturb(with_slow_answers(45 * MS, &[300; 5])));
    assert_eq!((held.outcome, held.disturbed), (Held, 5));
    let over = disturb(with_slow_answers(445 * MS, &[300; 5]));
    let judgement = judged(&limit, &over);
    assert_eq!(judgement.outcome, CantTell);
    assert_eq!(judgement.reason.unwrap(), "5 of 5 rounds were disturbed");
    let mut with_clean = with_slow_answers(45 * MS, &[300; 5]);
    with_clean.extend(over);
    let judgement = judged(&limit, &with_clean);
    assert_eq!((judgement.outcome, judgement.rounds), (Held, 5), "the clean ones suffice");
    let reversed = requirement("latency.p99", GreaterOrEqual, 10e6);
    let reversed = judged(&reversed, &disturb(with_slow_answers(45 * MS, &[300; 5])));
    assert_eq!(reversed.outcome, CantTell, "a disturbance may be what makes it hold");
}

#[test]
fn room_is_a_part_of_the_limit() {
    let of = |comparison, value| room(&requirement("latency.p99", comparison, 100.0), value);
    assert_eq!((of(Less, 45.0), of(Less, 150.0)), (Some(0.55), Some(-0.5)));
    assert_eq!((of(GreaterOrEqual, 150.0), of(Equal, 100.0)), (Some(0.5), None));
    assert_eq!(room(&requirement("missing", Less, 0.0), 1.0), None);
}

#[test]
fn errors_are_a_share_of_what_was_asked_for() {
    let with = |wrong: &[u64]| -> Vec<Trial> {
        let of = |(round, wrong): (u32, &u64)| {
            let mut trial = measured(round);
            (trial.counts.wrong, trial.counts.missing) = (*wrong, 10);
            trial.counts.operations = 9_990;
            trial.judge_answers(&[]);
            trial
        };
        (1..).zip(wrong).map(of).collect()
    };
    let few = requirement("errors of those asked", Less, 0.01);
    let judgement = judged(&few, &with(&[40, 50, 30, 45, 35]));
    assert_eq!(judgement.outcome, Held, "wrong answers spoil the speed, not their count");
    let mut allowed = with(&[40]).remove(0);
    allowed.validity = Validity::Valid;
    allowed.judge_answers(std::slice::from_ref(&few));
    assert_eq!(allowed.validity, Validity::Valid, "as many as a requirement allows");
    allowed.judge_answers(&[requirement("wrong", Comparison::Equal, 0.0)]);
    assert_eq!(allowed.validity, Validity::Invalid);
    assert!((judgement.value.unwrap() - 0.005).abs() < 1e-12);
    assert_eq!(judged(&few, &with(&[140, 150, 130, 145, 135])).outcome, Broken);
    assert_eq!(judged(&few, &with(&[400, 0, 0, 0, 0])).outcome, CantTell);
    assert_eq!(judged(&few, &with(&[1])).outcome, CantTell, "one round shows little");
    let wrong = judged(&requirement("wrong of those asked", Less, 0.001), &with(&[0; 5]));
    assert_eq!((wrong.outcome, wrong.value), (Held, Some(0.0)));
}

#[test]
fn refusals_are_not_wrong_and_spoil_a_trial_unless_as_many_are_allowed() {
    let refusing = |refused: u64, requirements: &[Requirement]| {
        let mut trial = measured(1);
        trial.counts.refused = refused;
        trial.judge_answers(requirements);
        trial
    };
    let few = requirement("refused of those asked", Less, 0.01);
    let spoilt = refusing(50, &[requirement("wrong", Equal, 0.0)]);
    let reason = spoilt.reason.as_deref().unwrap();
    assert!(reason.starts_with("operations were refused: "), "{reason}");
    assert_eq!(refusing(50, std::slice::from_ref(&few)).validity, Validity::Valid);
    assert_eq!(refusing(150, std::slice::from_ref(&few)).validity, Validity::Invalid);
    assert_eq!(refusing(50, &[requirement("errors", Less, 100.0)]).validity, Validity::Valid);

    let share = |refused: u64| vec![refusing(refused, &[]); 5];
    assert_eq!(judged(&few, &share(50)).outcome, Held);
    let judgement = judged(&few, &share(300));
    assert_eq!((judgement.outcome, judgement.value), (Broken, Some(0.03)));
    let mut refused = showing("wrong", &[Some(0.0); 5]);
    for trial in &mut refused {
        trial.counts.refused = 10_000;
        trial.judge_answers(&[]);
    }
    let judgement = judged(&requirement("wrong", Equal, 0.0), &refused);
    assert_eq!(judgement.outcome, CantTell, "what does nothing is never wrong");
    let none = requirement("refused", Equal, 0.0);
    let mut counted = showing("refused", &[Some(0.0), Some(7.0)]);
    counted.iter_mut().for_each(|trial| trial.counts.refused = 1);
    assert_eq!(judged(&none, &counted).outcome, Broken);
    disturb(&mut counted[1..]);
    assert_eq!(judged(&none, &counted).outcome, CantTell, "a disturbance may have done that");
}

#[test]
fn refusals_while_warming_up_or_in_slices_measured_again_are_neither_none_nor_counted() {
    let with = |refused_outside: u64, requirements: &[Requirement]| {
        let mut trials = showing("refused", &[Some(0.0); 5]);
        trials[1].refused_outside = refused_outside;
        trials[1].judge_answers(requirements);
        trials
    };
    let none = requirement("refused", Equal, 0.0);
    let spoilt = with(5, std::slice::from_ref(&none));
    let said = "5 operations were refused before the measured time or in slices that were \
                measured again";
    let (reason, judgement) = (spoilt[1].reason.as_deref().unwrap(), judged(&none, &spoilt));
    assert!(spoilt[1].validity == Validity::Invalid && reason.starts_with(said), "{reason}");
    assert_eq!((judgement.outcome, judgement.value), (CantTell, Some(0.0)));
    assert_eq!(judgement.reason.as_deref(), Some(said));
    assert_eq!(judged(&none, &with(0, &[])).outcome, Held);
    let few = requirement("refused", Less, 6.0);
    let allowed = with(5, std::slice::from_ref(&few));
    assert_eq!((allowed[1].validity, judged(&few, &allowed).outcome), (Validity::Valid, Held));
    assert_eq!(with(6, std::slice::from_ref(&few))[1].validity, Validity::Invalid);
}

#[test]
fn a_target_that_refuses_what_prepares_it_has_failed() {
    let mut trial = Trial::begin(0, 1, 0);
    let counts = Counts { operations: 10, refused: 3, ..Counts::default() };
    trial.prepared(LoadResult { counts, ..LoadResult::default() }, 1);
    assert!(trial.has_failed());
    let reason = trial.reason.unwrap();
    assert!(reason.starts_with("3 writes refused while preparing"), "{reason}");
}

#[test]
fn a_figure_that_is_nothing_in_some_round_needs_rounds_that_agree() {
    let rate = requirement("rate_per_s", Greater, 100.0);
    let of = |values: &[Option<f64>]| judged(&rate, &showing("rate_per_s", values));
    assert_eq!(of(&[Some(0.0); 5]).outcome, Broken);
    assert_eq!(
        of(&[Some(0.0), Some(200.0), Some(200.0), Some(200.0), Some(200.0)]).outcome,
        CantTell
    );
    let unseen = of(&[None; 5]);
    assert_eq!(unseen.reason.unwrap(), "rate_per_s was not reported by ours");
}

#[test]
fn a_figure_divided_by_a_factor_of_its_bound_is_judged_round_by_round() {
    let name = |name: &str| Box::new(Expression::Name(name.to_owned()));
    let figure = Expression::Pair('/', name("latency.mean"), name("concurrency.mean"));
    let text = "latency.mean <= 5s * concurrency.mean".to_owned();
    let (unit, comparison) = (Some(judge::Unit::Nanoseconds), Comparison::LessOrEqual);
    let limit = Requirement { text, figure, unit, comparison, bound: 5e9 };
    let with = |seconds: [f64; 5]| {
        let of = |(round, seconds): (u32, f64)| {
            let (mut trial, under_way) = (measured(round), 10.0 + f64::from(round));
            let metrics = [("latency.mean", seconds * 1e9), ("concurrency.mean", under_way)];
            trial.set_metrics(metrics.map(|(name, value)| (name.into(), value)).to_vec());
            trial
        };
        judged(&limit, &(1..).zip(seconds).map(of).collect::<Vec<_>>())
    };
    let held = with([44.0, 48.0, 52.0, 56.0, 60.0]);
    assert_eq!(held.outcome, Held, "4 s for each that is under way");
    assert!((held.value.unwrap() / 4e9 - 1.0).abs() < 1e-9);
    assert_eq!(with([66.0, 72.0, 78.0, 84.0, 90.0]).outcome, Broken, "6 s");
}

#[test]
fn none_over_the_limit_shows_a_percentile_unless_one_stall_could_have_held_too_many() {
    let limit = requirement("latency.p99", Less, 100e6);
    let healthy = with_slow_answers(445 * MS, &[0; 5]);
    assert_eq!(judged_with(64, &limit, &healthy).outcome, Held, "50,000 answers over 64 slots");
    let few = judged_with(1_024, &limit, &healthy);
    assert_eq!(few.outcome, CantTell);
    let reason = few.reason.unwrap();
    assert!(reason.contains("the 1024 outstanding at once"), "{reason}");
    assert!(reason.contains("leaves room for 7.3 %, and 1.0 % may: measure longer"), "{reason}");
    // With a schedule of 1,000/s no more than 100 become due within the limit of 100 ms.
    let mut scheduled = healthy.clone();
    scheduled.iter_mut().for_each(|trial| trial.measured_ns = 10_000 * MS);
    assert_eq!(judge_requirement(&limit, &scheduled, &terms(0, 1_024)).outcome, Held);
    let tail = requirement("latency.p99.99", Less, 100e6);
    assert_eq!(judged_with(64, &tail, &healthy).outcome, CantTell);
}

#[test]
fn equality_is_broken_by_an_interval_without_it_and_shown_by_none() {
    let is_fifty = requirement("hit_ratio", Equal, 0.5);
    let of = |values: [f64; 5]| judged(&is_fifty, &showing("hit_ratio", &values.map(Some)));
    let near = of([0.49, 0.51, 0.50, 0.48, 0.52]);
    assert_eq!(near.outcome, CantTell, "the interval holds 0.5, and much else");
    assert_eq!(near.reason.unwrap(), "the limit lies within the interval over rounds");
    assert_eq!(of([0.39, 0.41, 0.40, 0.38, 0.42]).outcome, Broken);
    assert_eq!(of([0.5; 5]).outcome, Held, "every round has it exactly");
    assert_eq!(of([0.0, 1.0, 0.0, 1.0, 0.6]).outcome, CantTell, "no interval, either side");
    assert_eq!(of([0.0, 0.1, 0.0, 0.1, 0.2]).outcome, Broken);
    let share = requirement("missing of those asked", Equal, 0.001);
    let missing = |missing: u64| {
        let mut trials: Vec<Trial> = (1..6).map(measured).collect();
        trials.iter_mut().for_each(|trial| trial.counts.missing = missing);
        judged(&share, &trials).outcome
    };
    assert_eq!((missing(10), missing(100)), (CantTell, Broken));
    let percentile = |ms: f64| {
        let is_one = requirement("latency.p99", Equal, ms * 1e6);
        judged(&is_one, &with_slow_answers(445 * MS, &[30; 5])).outcome
    };
    assert_eq!((percentile(100.0), percentile(0.5)), (Broken, Broken));
}

#[test]
fn a_round_without_the_figure_leaves_it_untold_unless_another_breaks_it() {
    let said = |judgement: Judgement| (judgement.outcome, judgement.reason.unwrap_or_default());
    let unseen = || (CantTell, "it was unseen in 1 of 6 rounds".to_owned());
    // A round without an answer doesn't make the percentile of all a mean over rounds.
    let limit = requirement("latency.p99", Less, 100e6);
    let mut trials = with_slow_answers(445 * MS, &[0; 5]);
    trials.push(measured(6));
    assert_eq!(said(judged(&limit, &trials)), unseen());
    let mut values = [Some(5.0); 6];
    values[2] = None;
    for name in ["missed", "latency.max", "server.rss_bytes"] {
        let judgement = judged(&requirement(name, Less, 100.0), &showing(name, &values));
        assert_eq!(said(judgement), unseen(), "{name}");
    }
    values[0] = Some(500.0);
    for name in ["missed", "latency.max"] {
        let judgement = judged(&requirement(name, Less, 100.0), &showing(name, &values));
        assert_eq!(judgement.outcome, Broken, "{name}");
    }
}

#[test]
fn a_disturbed_round_breaks_only_what_no_disturbance_can_break() {
    // One of six rounds is over the limit.
    let of = |name: &'static str, comparison, over: f64, is_disturbed: bool| {
        let mut values = [Some(5.0); 6];
        values[3] = Some(over);
        let mut trials = showing(name, &values);
        if is_disturbed {
            disturb(&mut trials[3..4]);
        }
        let judgement = judged(&requirement(name, comparison, 40.0), &trials);
        assert_eq!(judgement.broken_in, 1, "{name}");
        (judgement.outcome, judgement.reason.unwrap_or_default())
    };
    let only_disturbed = || (CantTell, "only disturbed rounds break it".to_owned());
    for name in ["latency.max", "service.evictions"] {
        assert_eq!(of(name, Less, 500.0, false).0, Broken, "{name}");
        assert_eq!(of(name, Less, 500.0, true), only_disturbed(), "{name}");
    }
    for (name, outcome) in [("wrong", Broken), ("missing", CantTell), ("missed", CantTell)] {
        assert_eq!(of(name, Less, 500.0, true).0, outcome, "{name}");
    }
    let mut updates = showing("least_updates", &[Some(3.0), Some(0.0)]);
    disturb(&mut updates[1..]);
    let least = requirement("least_updates", GreaterOrEqual, 1.0);
    assert_eq!(judged(&least, &updates).outcome, CantTell);
}

#[test]
fn disturbed_rounds_alone_show_no_figure_that_a_slower_target_improves() {
    let of = |name: &'static str, comparison, value: f64, bound: f64| {
        let mut trials = showing(name, &[Some(value); 5]);
        disturb(&mut trials);
        judged(&requirement(name, comparison, bound), &trials).outcome
    };
    assert_eq!(of("rate_per_s", Greater, 500.0, 100.0), Held, "slowed down, and fast enough");
    assert_eq!(of("rate_per_s", Greater, 50.0, 100.0), CantTell);
    assert_eq!(of("rate_per_s", Less, 500.0, 100.0), Broken, "slowed down, and still too fast");
    assert_eq!(of("missing", Equal, 0.0, 0.0), Held);
    for name in ["server.rss_bytes", "server.cpu_ns_per_op", "misses", "missed"] {
        assert_eq!(of(name, Less, 50.0, 1_000.0), CantTell, "{name}");
    }
    assert_eq!(of("hit_ratio", Greater, 0.9, 0.5), CantTell);
    assert_eq!(of("service.evictions", Equal, 0.0, 0.0), CantTell);
}

#[test]
fn answers_that_were_not_checked_are_not_right_ones() {
    let with_unchecked = |unchecked: [u64; 5]| -> Vec<Trial> {
        let mut trials = showing("wrong", &[Some(0.0); 5]);
        for (trial, unchecked) in trials.iter_mut().zip(unchecked) {
            trial.counts.unchecked = unchecked;
        }
        trials
    };
    for (name, bound) in [("wrong", 0.0), ("errors", 0.0)] {
        let none = requirement(name, Equal, bound);
        let judgement = judged(&none, &with_unchecked([10_000; 5]));
        assert_eq!((judgement.outcome, judgement.value), (CantTell, None), "{name}");
        assert_eq!(judgement.reason.unwrap(), "no answer was checked", "{name}");
        let judgement = judged(&none, &with_unchecked([0, 0, 10_000, 0, 0]));
        assert_eq!(judgement.reason.unwrap(), "it was unseen in 1 of 5 rounds", "{name}");
        assert_eq!(judged(&none, &with_unchecked([9_000; 5])).outcome, Held, "{name}");
    }
    let share = requirement("wrong of those asked", Less, 0.001);
    let judgement = judged(&share, &with_unchecked([10_000; 5]));
    assert_eq!(judgement.outcome, CantTell);
    assert_eq!(judgement.reason.unwrap(), "no answer was checked");
    // Of 500 answers that were checked two were wrong: it isn't two of 50,000.
    let mut trials = with_unchecked([9_900; 5]);
    trials[0].counts.wrong = 2;
    let judgement = judged(&share, &trials);
    assert_eq!((judgement.outcome, judgement.value), (CantTell, Some(0.004)));
    let mut one_wrong = with_unchecked([10_000; 5]);
    one_wrong[0].wrong_outside = 1;
    assert_eq!(judged(&requirement("wrong", Equal, 0.0), &one_wrong).outcome, Broken);
}
