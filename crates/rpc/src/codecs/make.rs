//! Messages of each shape, in any size, and different by their seed.

use load::scramble;

use super::sample::{Kind, Number, One, Sample};
use super::shape::Shape;

impl Shape {
    /// The message of this shape, size and seed.
    pub fn make(self, size: usize, seed: u64) -> Sample {
        let several = |count: usize| (0..count as u64).map(move |index| scramble(seed ^ index));
        let none = Sample::default();
        match self {
            Self::Small => small(seed),
            Self::Nested => Sample {
                number: signed(seed),
                text: "a message around it".to_owned(),
                inner: Some(Box::new(small(seed))),
                one: Some(One::Boxed(Number { value: signed(scramble(seed)) })),
                ..none
            },
            Self::OneOf => Sample { one: Some(one_of(seed)), ..none },
            Self::Enum if seed.is_multiple_of(2) => Sample { kind: Kind::Plain, ..none },
            Self::Enum => Sample { kind: Kind::Special, ..none },
            Self::Map => {
                let names = (0..size).map(|index| format!("entry {index}"));
                Sample { counts: names.zip(several(size).map(signed)).collect(), ..none }
            }
            Self::Doubles => Sample { reals: several(size).map(real).collect(), ..none },
            Self::Messages => Sample { samples: several(size).map(small).collect(), ..none },
            Self::Chain => {
                let link =
                    |inner, seed| Sample { number: signed(seed), inner, ..Sample::default() };
                let boxed = |inner, seed| Some(Box::new(link(inner, seed)));
                link(several(size.saturating_sub(1)).fold(None, boxed), seed)
            }
            Self::Text => {
                let letters = several(size).map(|word| char::from(b'a' + (word % 26) as u8));
                Sample { text: letters.collect(), ..none }
            }
            Self::MinusOne => Sample { number: -1, small: -1, ..none },
            Self::Zero => none,
            Self::PlusOne => Sample { number: 1, small: 1, ..none },
        }
    }
}

/// A number that varies in size, and is half of the time negative.
fn signed(seed: u64) -> i64 {
    let word = scramble(seed);
    (word as i64) >> (8 + word % 56)
}

/// A number with a fraction, which every codec gives back as it was, JSON, too.
fn real(seed: u64) -> f64 {
    (scramble(seed) >> 11) as f64 / 1024.0
}

fn one_of(seed: u64) -> One {
    match seed % 3 {
        0 => One::Integer(signed(seed)),
        1 => One::Word(format!("one of several {}", seed % 100)),
        _ => One::Boxed(Number { value: signed(seed) }),
    }
}

fn small(seed: u64) -> Sample {
    Sample {
        number: (scramble(seed) >> 34) as i64 + 1,
        text: format!("{:017}", seed % 1_000_000_000),
        real: real(seed),
        flag: true,
        small: (seed % 100) as i32 + 1,
        ..Sample::default()
    }
}

/// A message of any kind, with everything that a message may have, for tests: the same for the same
/// seed.
pub fn any(seed: u64, depth: usize) -> Sample {
    let word = |index: u64| scramble(seed ^ scramble(index));
    let has = |index: u64| word(index).is_multiple_of(2);
    let count = |index: u64| (word(index) % 4) as usize;
    let mut sample = Sample::default();
    if has(1) {
        sample.number = signed(word(2));
    }
    if has(3) {
        sample.text = (0..count(4)).map(|at| ["é", "a", "\u{1f6a2}", "\0"][at]).collect();
    }
    if has(5) {
        sample.real = real(word(6));
    }
    sample.flag = has(7);
    sample.blob = (0..count(8)).map(|at| word(at as u64) as u8).collect();
    sample.one = has(9).then(|| one_of(word(10)));
    sample.reals = (0..count(11)).map(|at| real(word(at as u64))).collect();
    let names = (0..count(12)).map(|at| format!("name {}", word(at as u64) % 1000));
    sample.counts = names.map(|name| (name, signed(word(13)))).collect();
    (sample.signed, sample.small) = (signed(word(14)), signed(word(15)) as i32);
    sample.wide = word(16) >> (word(17) % 64);
    sample.kind = [Kind::None, Kind::Plain, Kind::Special][word(18) as usize % 3];
    if depth > 0 {
        sample.inner = has(19).then(|| Box::new(any(word(20), depth - 1)));
        sample.samples = (0..count(21)).map(|at| any(word(at as u64), depth - 1)).collect();
    }
    sample
}
