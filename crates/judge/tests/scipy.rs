//! Ranks, t, Welch and the bootstrap against scipy, on a thousand generated pairs of samples.
//! `scipy/make.py` wrote the table with scipy 1.16 and says how to write it again.

use judge::{
    Random, mann_whitney_exact, mann_whitney_normal, median_ratio_interval, paired_ratio,
    unpaired_ratio,
};

const TABLE: &str = include_str!("scipy/table.tsv");

fn sample(random: &mut Random, shift: f64, ties: bool) -> Vec<f64> {
    let count = 3 + random.below(18);
    let value = |value: f64| if ties { (value * 20.0 + 0.5).floor() } else { value };
    (0..count).map(|_| value((0.1 * random.normal() + shift).exp())).collect()
}

/// The two samples of a case, drawn as the script draws them.
fn samples(case: u64) -> (Vec<f64>, Vec<f64>) {
    let mut random = Random::new(case);
    let ties = case % 4 == 3;
    let shift = 0.05 * random.below(4) as f64;
    let a = sample(&mut random, shift, ties);
    (a, sample(&mut random, 0.0, ties))
}

#[test]
fn a_thousand_pairs_of_samples_are_judged_as_scipy_judges_them() {
    let mut cases = 0;
    for line in TABLE.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let number = |column: usize| cells[column].parse::<f64>().ok();
        let case = cells[0].parse().expect("a case's number");
        let (a, b) = samples(case);
        let near = |what: &str, ours: Option<f64>, column: usize, within: f64| {
            let Some(theirs) = number(column) else { return };
            let ours = ours.unwrap_or(f64::NAN);
            assert!((ours - theirs).abs() <= within, "case {case}, {what}: {ours} or {theirs}");
        };
        near("exact U", mann_whitney_exact(&a, &b), 1, 1e-10);
        assert_eq!(mann_whitney_exact(&a, &b).is_none(), case % 4 == 3, "ties in case {case}");
        near("normal U", mann_whitney_normal(&a, &b), 2, 1e-10);
        let welch = unpaired_ratio(&a, &b, 0.95);
        near("Welch", welch.map(|interval| interval.p_value), 3, 1e-9);
        near("Welch, low", welch.map(|interval| interval.low.ln()), 5, 1e-8);
        near("Welch, high", welch.map(|interval| interval.high.ln()), 6, 1e-8);
        let both = a.len().min(b.len());
        let paired = paired_ratio(&a[..both], &b[..both], 0.95);
        near("paired t", paired.map(|interval| interval.p_value), 4, 1e-9);
        cases += 1;
    }
    assert_eq!(cases, 1000);
}

/// Two programs draw differently, so the ends agree as far as that many draws determine them.
#[test]
fn the_bootstrap_of_a_ratio_of_medians_has_scipys_ends() {
    let (mut cases, mut off) = (0, 0.0_f64);
    for line in TABLE.lines().skip(1) {
        let cells: Vec<&str> = line.split('\t').collect();
        let (Ok(low), Ok(high)) = (cells[7].parse::<f64>(), cells[8].parse::<f64>()) else {
            continue;
        };
        let (a, b) = samples(cells[0].parse().expect("a case's number"));
        let ours = median_ratio_interval(&a, &b, 0.95).expect("an interval");
        let width = high - low;
        off += ((ours.0 - low).abs() + (ours.1 - high).abs()) / width;
        cases += 1;
    }
    let mean = off / f64::from(2 * cases);
    assert!(cases == 50 && mean < 0.03, "{cases} cases, off by {mean} of the width");
}
