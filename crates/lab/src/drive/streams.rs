//! What streams have brought: updates by stream, what was left out, how fair it was.

/// The streams of one group of clients in one run or one trial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamSum {
    /// Which group of clients, as an index into the point's.
    pub group: usize,
    /// Updates of each stream, always in the same order.
    pub each: Vec<u64>,
    /// Values that the target had and that did not come, by their count.
    pub missed: u64,
    /// Those of them that the target reported as left out.
    pub merged: u64,
}

impl StreamSum {
    /// Adds what other streams of the same group have brought.
    fn join(&mut self, other: Self) {
        self.each.extend(other.each);
        self.missed += other.missed;
        self.merged += other.merged;
    }

    /// Adds what the same streams have brought in another run.
    fn add(&mut self, other: &Self) {
        self.each.resize(self.each.len().max(other.each.len()), 0);
        for (sum, updates) in self.each.iter_mut().zip(&other.each) {
            *sum += updates;
        }
        self.missed += other.missed;
        self.merged += other.merged;
    }

    /// Updates of all streams.
    pub fn updates(&self) -> u64 {
        self.each.iter().sum()
    }
}

/// Sums of the threads of one run, joined by group.
pub(crate) fn joined(threads: Vec<StreamSum>) -> Vec<StreamSum> {
    let mut groups: Vec<StreamSum> = Vec::new();
    for sum in threads {
        match groups.iter_mut().find(|group| group.group == sum.group) {
            Some(group) => group.join(sum),
            None => groups.push(sum),
        }
    }
    groups
}

/// Adds a run's sums, joined by group, to a trial's.
pub(crate) fn add(trial: &mut Vec<StreamSum>, sums: Vec<StreamSum>) {
    for sum in sums {
        match trial.iter_mut().find(|group| group.group == sum.group) {
            Some(group) => group.add(&sum),
            None => trial.push(sum),
        }
    }
}

/// How evenly updates are spread over streams: 1 when each has the same, 1/n when one of n has
/// all (Jain, Chiu and Hawe, "A quantitative measure of fairness and discrimination", 1984).
/// `None` without an update.
pub(crate) fn fairness(each: impl Iterator<Item = u64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for updates in each {
        let updates = updates as f64;
        count += 1.0;
        sum += updates;
        squares += updates * updates;
    }
    (squares > 0.0).then(|| sum * sum / (count * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_one_when_all_are_alike_and_falls_to_one_over_n() {
        let of = |each: &[u64]| fairness(each.iter().copied());
        assert_eq!(of(&[7, 7, 7]), Some(1.0));
        assert_eq!(of(&[9, 0, 0, 0]), Some(0.25));
        assert_eq!(of(&[1, 3]), Some(0.8));
        assert_eq!(of(&[0, 0]), None);
    }

    #[test]
    fn pieces_add_up_stream_by_stream_and_threads_side_by_side() {
        let sum =
            |group, each: &[u64]| StreamSum { group, each: each.to_vec(), missed: 2, merged: 1 };
        let sums = || joined(vec![sum(0, &[1, 2]), sum(1, &[9]), sum(0, &[3])]);
        let mut trial = Vec::new();
        add(&mut trial, sums());
        add(&mut trial, sums());
        assert_eq!(trial[0], StreamSum { group: 0, each: vec![2, 4, 6], missed: 8, merged: 4 });
        assert_eq!((trial[1].updates(), trial.len()), (18, 2));
    }
}
