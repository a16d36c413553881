//! t and Welch against scipy, on a thousand generated pairs of samples.
//! `scipy/make.py` wrote the table with scipy 1.16 and says how to write it again.

use judge::{Random, paired_ratio, unpaired_ratio};

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
        let welch = unpaired_ratio(&a, &b, 0.95);
        near("Welch", welch.map(|interval| interval.p_value), 1, 1e-9);
        near("Welch, low", welch.map(|interval| interval.low.ln()), 3, 1e-8);
        near("Welch, high", welch.map(|interval| interval.high.ln()), 4, 1e-8);
        let both = a.len().min(b.len());
        let paired = paired_ratio(&a[..both], &b[..both], 0.95);
        near("paired t", paired.map(|interval| interval.p_value), 2, 1e-9);
        cases += 1;
    }
    assert_eq!(cases, 1000);
}
