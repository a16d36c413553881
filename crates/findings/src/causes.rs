//! What disturbed trials, by cause, from the reasons that the lab wrote of each.
//!
//! A reason is a sentence for each rule that was passed, joined by `; `. Sentences that differ in
//! their numbers alone have one cause, which is shown with the range of those numbers; the numbers
//! in a target's name are none of them. Other programs are named behind a colon with the cores that
//! they used (`lab/observe/disturbance`).

use std::collections::BTreeSet;

use serde::Serialize;

/// The most programs that are named.
const NAMES: usize = 3;

/// The beginning of the sentence that names programs.
const PROGRAMS: &str = "other programs used ";

/// What follows the target's name in the sentence that begins with it.
const WAITED: &str = " waited ";

/// One cause over several rounds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// What it was and how much, from the least to the most.
    #[serde(rename = "cause")]
    pub text: String,
    /// The rounds in which it was seen.
    pub rounds: usize,
}

/// The causes in these reasons, each with its round, that of most rounds first.
pub fn causes<'a, Round: Ord + Copy>(
    reasons: impl IntoIterator<Item = (Round, &'a str)>,
) -> Vec<Cause> {
    let mut all: Vec<Merged<'a, Round>> = Vec::new();
    for (round, reason) in reasons {
        for sentence in reason.split("; ") {
            let (head, programs) = programs(sentence);
            let (name, words) = named(head);
            let mark = |word: &&'a str| if number(word).is_some() { "#" } else { *word };
            let marked: Vec<&str> = name.into_iter().chain(words.iter().map(mark)).collect();
            let found = all.iter().position(|one| one.words == marked);
            let place = found.unwrap_or(all.len());
            if found.is_none() {
                all.push(Merged::new(marked));
            }
            all[place].add(round, &words, programs);
        }
    }
    // Among equals the first seen stays first.
    all.sort_by_key(|one| std::cmp::Reverse(one.rounds.len()));
    all.iter().map(|one| Cause { text: one.text(), rounds: one.rounds.len() }).collect()
}

/// Sentences of one cause.
struct Merged<'a, Round> {
    /// The words, with `#` for each number.
    words: Vec<&'a str>,
    /// The least and the greatest of each number, as they were written.
    ranges: Vec<[(f64, &'a str); 2]>,
    /// Programs, with their cores in all sentences together; `None` where they are only probable.
    programs: Vec<(&'a str, Option<f64>)>,
    rounds: BTreeSet<Round>,
    /// The sentences that say how much programs used.
    measured: usize,
}

impl<'a, Round: Ord> Merged<'a, Round> {
    fn new(words: Vec<&'a str>) -> Self {
        let (ranges, programs) = (Vec::new(), Vec::new());
        Self { words, ranges, programs, rounds: BTreeSet::new(), measured: 0 }
    }

    fn add(&mut self, round: Round, words: &[&'a str], programs: Vec<(&'a str, Option<f64>)>) {
        self.rounds.insert(round);
        self.measured += usize::from(programs.iter().any(|(_, cores)| cores.is_some()));
        let numbers = words.iter().filter_map(|word| Some((number(word)?, *word)));
        for (place, number) in numbers.enumerate() {
            match self.ranges.get_mut(place) {
                None => self.ranges.push([number; 2]),
                Some([least, _]) if number.0 < least.0 => *least = number,
                Some([_, most]) if number.0 > most.0 => *most = number,
                Some(_) => {}
            }
        }
        for (name, cores) in programs {
            match self.programs.iter_mut().find(|(known, _)| *known == name) {
                None => self.programs.push((name, cores)),
                Some((_, sum)) => *sum = sum.zip(cores).map(|(a, b)| a + b),
            }
        }
    }

    fn text(&self) -> String {
        let mut ranges = self.ranges.iter();
        let shown = |word: &&str| {
            let range = if *word == "#" { ranges.next() } else { None };
            match range {
                None => (*word).to_owned(),
                Some([(_, least), (_, most)]) if least == most => (*least).to_owned(),
                Some([(_, least), (_, most)]) => format!("{least} to {most}"),
            }
        };
        let head = self.words.iter().map(shown).collect::<Vec<_>>().join(" ");
        match self.programs.is_empty() {
            true => head,
            false => format!("{} ({})", self.names(), head.trim_start_matches(PROGRAMS)),
        }
    }

    /// The programs that used most, with their mean over the sentences that say how much.
    fn names(&self) -> String {
        let mut programs = self.programs.clone();
        programs.sort_by(|a, b| b.1.unwrap_or(0.0).total_cmp(&a.1.unwrap_or(0.0)));
        let mut unit = " cores";
        let named = |(name, cores): &(&str, Option<f64>)| match cores {
            None => format!("probably {name}"),
            Some(cores) => {
                let cores = cores / self.measured.max(1) as f64;
                let digits = if cores < 0.095 { 2 } else { 1 };
                format!("{name} {cores:.digits$}{}", std::mem::take(&mut unit))
            }
        };
        programs.iter().take(NAMES).map(named).collect::<Vec<_>>().join(", ")
    }
}

/// The target that a sentence begins with, and the other words.
fn named(head: &str) -> (Option<&str>, Vec<&str>) {
    match head.rfind(WAITED) {
        Some(end) => (Some(&head[..end]), head[end + 1..].split(' ').collect()),
        None => (None, head.split(' ').collect()),
    }
}

/// A sentence without the programs that it names, and these.
fn programs(sentence: &str) -> (&str, Vec<(&str, Option<f64>)>) {
    let split = sentence.split_once(": ").filter(|_| sentence.starts_with(PROGRAMS));
    let Some((head, names)) = split else { return (sentence, Vec::new()) };
    if let Some(names) = names.strip_prefix("probably ") {
        return (head, names.split(", ").map(|name| (name, None)).collect());
    }
    (head, names.split(", ").filter_map(program).collect())
}

/// `rustc 1.1 cores`, or `java 0.4`.
fn program(text: &str) -> Option<(&str, Option<f64>)> {
    let (name, cores) = text.trim_end_matches(" cores").rsplit_once(' ')?;
    Some((name, Some(number(cores)?)))
}

/// A word that is a number.
fn number(word: &str) -> Option<f64> {
    word.starts_with(|first: char| first.is_ascii_digit()).then(|| word.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(text: &str, rounds: usize) -> Cause {
        Cause { text: text.to_owned(), rounds }
    }

    #[test]
    fn rounds_of_one_cause_are_one_line_with_the_mean_of_the_programs_and_the_range_of_the_rest() {
        let reasons = [
            (1, "other programs used 14.0 % of the run's cores: rustc 1.2 cores, java 0.4"),
            (2, "other programs used 2.0 % of the run's cores: rustc 1.0 cores, java 0.2, cc1 0.2"),
            (2, "other programs used 9.5 % of the run's cores: rustc 1.1 cores"),
            (3, "the hypervisor kept 3.0 % of a core; the host paused for 12 ms"),
        ];
        let found = [
            cause("rustc 1.1 cores, java 0.2, cc1 0.07 (2.0 to 14.0 % of the run's cores)", 2),
            cause("the hypervisor kept 3.0 % of a core", 1),
            cause("the host paused for 12 ms", 1),
        ];
        assert_eq!(causes(reasons), found);
    }

    #[test]
    fn targets_that_differ_in_their_numbers_are_two() {
        let reasons = [
            (1, "redis 1 waited 9.0 % of the time for a core"),
            (2, "redis 2 waited 7.0 % of the time for a core"),
            (3, "redis 2 waited 8.0 % of the time for a core"),
        ];
        let found = [
            cause("redis 2 waited 7.0 to 8.0 % of the time for a core", 2),
            cause("redis 1 waited 9.0 % of the time for a core", 1),
        ];
        assert_eq!(causes(reasons), found);
    }

    #[test]
    fn a_sentence_without_programs_lowers_no_mean() {
        let reasons = [
            (1, "other programs used 14.0 % of the run's cores: rustc 1.2 cores"),
            (2, "other programs used 12.0 % of the run's cores"),
            (3, "other programs used 13.0 % of the run's cores: rustc 1.0 cores"),
        ];
        let found = [cause("rustc 1.1 cores (12.0 to 14.0 % of the run's cores)", 3)];
        assert_eq!(causes(reasons), found);
    }

    #[test]
    fn what_names_no_program_stays_as_it_is() {
        let reasons = [
            (1, "CPU quota: throttled in 22 of 22 periods"),
            (2, "CPU quota: throttled in 20 of 21 periods"),
            (3, "other programs used about 11.4 % of the run's cores"),
            (4, "other programs used about 12.0 % of the run's cores: probably java, cc1"),
        ];
        let found = [
            cause("CPU quota: throttled in 20 to 22 of 21 to 22 periods", 2),
            cause("probably java, probably cc1 (about 11.4 to 12.0 % of the run's cores)", 2),
        ];
        assert_eq!(causes(reasons), found);
        assert_eq!(causes([(1, "")]), [cause("", 1)]);
    }
}
