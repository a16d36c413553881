//! What a call has besides its way: a function that is found, messages that are encoded and
//! decoded, memory that is allocated, and an answer that is handed to another thread. Each is
//! measured by itself, by this side, for `loadline rpc why` and `loadline run --cost`.

use std::hint::black_box;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use bytes::{Buf as _, Bytes};
use prost::Message as _;

use crate::model;
use crate::protocol::table::Sample;
use crate::server::native::Methods;

/// How often each is done.
const ROUNDS: usize = 2_000;

/// As many of them are timed at once as a tenth: the median of these has no turn of others, which
/// take as long as all of it.
const BATCHES: usize = 10;

/// The most bytes that are encoded or decoded: a large message is done less often.
const MOST_BYTES: usize = 64 << 20;

/// How often an answer is handed over.
const HANDED: usize = 1_000;

/// What is decoded from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum From {
    /// The bytes of an answer, each time
    #[default]
    Fresh,
    /// A buffer that each decoding goes on with, to see what a careless benchmark measures
    Consumed,
}

/// What one message takes, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    /// Into memory that is there: nothing is allocated.
    pub(crate) encode_ns: f64,
    /// With all that the message takes, until it is dropped.
    pub(crate) decode_ns: f64,
    /// How many elements decoding has returned at the least, and how many it had to.
    pub(crate) elements: (usize, usize),
}

fn elements(sample: &Sample) -> usize {
    sample.blob.len() + sample.samples.len() + sample.reals.len()
}

impl Parts {
    /// Measures both with an answer, and compares each result.
    pub(crate) fn measure(answer: &Bytes, from: From) -> anyhow::Result<Self> {
        let right = Sample::decode(answer.clone())?;
        let rounds = (MOST_BYTES / answer.len().max(1)).clamp(1, ROUNDS);
        let mut written = Vec::with_capacity(answer.len());
        let encode_ns = each_ns(rounds, || {
            written.clear();
            // A vector takes all that is written.
            let _ = black_box(&right).encode(black_box(&mut written));
        });
        let mut buffer = answer.clone();
        let mut least = usize::MAX;
        // As encoding, many at once: reading the clock takes longer than a small message. So the
        // end of each decoded message is in it, whose memory is freed, and a look at its elements.
        let decode_ns = each_ns(rounds, || {
            if from == From::Fresh {
                buffer = answer.clone();
            }
            // One that fails has no element.
            let decoded = Sample::decode(black_box(&mut buffer)).unwrap_or_default();
            // What was decoded is looked at, or nothing would show that it is empty.
            least = least.min(elements(black_box(&decoded)));
            debug_assert!(!buffer.has_remaining());
        });
        Ok(Self { encode_ns, decode_ns, elements: (least, elements(&right)) })
    }
}

/// The time of one, as often as `rounds`.
fn each_ns(rounds: usize, mut once: impl FnMut()) -> f64 {
    let count = rounds.div_ceil(BATCHES);
    let mut batches = [0.0; BATCHES];
    for batch in &mut batches {
        let begun = Instant::now();
        (0..count).for_each(|_| once());
        *batch = begun.elapsed().as_nanos() as f64 / count as f64;
    }
    batches.sort_by(f64::total_cmp);
    batches[BATCHES / 2]
}

/// How a server finds the function that a call names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookUp {
    /// By its name, which is hashed, as a request of gRPC has it.
    ByName,
    /// By its number, as a frame has it.
    ByNumber,
}

/// How long finding one of the functions of this program takes, in nanoseconds.
pub(crate) fn look_up_ns(how: LookUp) -> f64 {
    let functions = model::all();
    let methods = Methods::of(&functions);
    let mut numbers = (0..functions.len() as u32).cycle();
    let names: Vec<_> = functions.keys().cloned().collect();
    let mut names = names.iter().cycle();
    match how {
        LookUp::ByName => each_ns(ROUNDS, || {
            black_box(names.next().and_then(|name| functions.get(black_box(&name[..]))));
        }),
        LookUp::ByNumber => each_ns(ROUNDS, || {
            black_box(numbers.next().map(|number| methods.get(black_box(number))));
        }),
    }
}

/// How long an answer takes from the thread that has read it to one that waits for it by a
/// condition variable, in nanoseconds: half of the median there and back.
pub(crate) fn future_ns() -> f64 {
    let turn = Arc::new((Mutex::new(0), Condvar::new()));
    let theirs = Arc::clone(&turn);
    let far = thread::spawn(move || (0..HANDED).for_each(|round| take(&theirs, 2 * round + 1)));
    let mut samples = Vec::with_capacity(HANDED);
    take(&turn, 0);
    for round in 1..HANDED {
        let begun = Instant::now();
        take(&turn, 2 * round);
        samples.push(begun.elapsed().as_nanos() as f64);
    }
    // It does nothing that panics.
    let _ = far.join();
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2] / 2.0
}

/// Waits for this turn, and gives the next one to the other thread.
fn take((turn, changed): &(Mutex<usize>, Condvar), mine: usize) {
    let turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
    let turn = changed.wait_while(turn, |turn| *turn != mine);
    *turn.unwrap_or_else(PoisonError::into_inner) += 1;
    changed.notify_one();
}

/// Allocates as often, to see what that costs.
pub(crate) fn allocate(count: u32) {
    for _ in 0..count {
        black_box(Box::new(black_box([0_u8; 64])));
    }
}

/// How long an allocation takes here, and its end, in nanoseconds.
pub(crate) fn allocation_ns() -> f64 {
    each_ns(ROUNDS, || allocate(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_that_is_used_up_decodes_to_an_empty_message() {
        let answer =
            Bytes::from(Sample { blob: vec![7; 8].into(), ..Sample::default() }.encode_to_vec());
        let fresh = Parts::measure(&answer, From::Fresh).expect("it decodes");
        assert_eq!(fresh.elements, (8, 8));
        assert!(fresh.encode_ns > 0.0 && fresh.decode_ns > 0.0);
        let consumed = Parts::measure(&answer, From::Consumed).expect("nothing is a message");
        assert_eq!(consumed.elements, (0, 8));
        assert!(allocation_ns() > 0.0 && future_ns() > 0.0);
        assert!(look_up_ns(LookUp::ByName) > 0.0 && look_up_ns(LookUp::ByNumber) > 0.0);
    }
}
