//! Ten seconds of one series in a few hundred bytes.
//!
//! An hour of sixty series at ten samples a second is two million values; as rows they would be
//! 60 MB, packed they are about 5. Times are kept to the millisecond, and values to one part in
//! sixteen thousand of the chunk's greatest; whole numbers up to that many are exact. The packing
//! is part of the public schema: docs/ledger.md describes it.

use crate::error::LedgerError;

/// The length of a chunk. Chunks begin at whole multiples of it on the run's clock.
pub const CHUNK_NS: u64 = 10_000_000_000;

/// The most values of a chunk: one a millisecond.
const VALUES_LIMIT: usize = 10_000;

/// The greatest value of a chunk, in quanta.
const QUANTA: f64 = 16_384.0;

const MILLISECOND_NS: u64 = 1_000_000;

/// One value of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SamplePoint {
    /// When, in ns since the run started. A sample of a rate covers the interval that ends
    /// here.
    pub at_ns: u64,
    /// The value, in the unit of its series.
    pub value: f64,
}

/// Packs samples in the order of their times, all of the chunk that begins at `start_ns`.
pub(crate) fn pack(start_ns: u64, samples: &[SamplePoint]) -> Vec<u8> {
    let mut data = Vec::with_capacity(16 + samples.len() * 2);
    let greatest = samples.iter().map(|sample| sample.value.abs()).fold(0.0, f64::max);
    let exponent = exponent(greatest);
    put(&mut data, zigzag(exponent.into()));
    let mut at_ms = 0;
    let mut run: Option<(u64, u64)> = None;
    for sample in samples {
        let now_ms = sample.at_ns.saturating_sub(start_ns) / MILLISECOND_NS;
        let step_ms = now_ms.saturating_sub(at_ms);
        at_ms = now_ms;
        run = match run {
            Some((step, count)) if step == step_ms => Some((step, count + 1)),
            other => {
                put_run(&mut data, other);
                Some((step_ms, 1))
            }
        };
    }
    put_run(&mut data, run);
    let (mut last, mut zeros) = (0_i64, 0_u64);
    for sample in samples {
        let quanta = (sample.value / f64::from(exponent).exp2()).round() as i64;
        let step = quanta - std::mem::replace(&mut last, quanta);
        if step == 0 {
            zeros += 1;
            continue;
        }
        put_zeros(&mut data, std::mem::take(&mut zeros));
        put(&mut data, zigzag(step));
    }
    put_zeros(&mut data, zeros);
    data
}

/// The samples of a chunk; `None` when it is damaged.
fn try_unpack(start_ns: u64, count: usize, mut data: &[u8]) -> Option<Vec<SamplePoint>> {
    if count > VALUES_LIMIT {
        return None;
    }
    let exponent = i32::try_from(unzigzag(take(&mut data)?)).ok()?;
    let quantum = f64::from(exponent).exp2();
    let mut samples = Vec::with_capacity(count);
    let mut at_ns = start_ns;
    while samples.len() < count {
        let step_ns = take(&mut data)?.checked_mul(MILLISECOND_NS)?;
        for _ in 0..take(&mut data)?.min((count - samples.len()) as u64) {
            at_ns = at_ns.checked_add(step_ns)?;
            samples.push(SamplePoint { at_ns, value: 0.0 });
        }
    }
    let (mut quanta, mut zeros) = (0_i64, 0_u64);
    for sample in &mut samples {
        if zeros > 0 {
            zeros -= 1;
        } else {
            let step = unzigzag(take(&mut data)?);
            quanta = quanta.checked_add(step)?;
            if step == 0 {
                zeros = take(&mut data)?;
            }
        }
        sample.value = quanta as f64 * quantum;
    }
    (data.is_empty() && zeros == 0).then_some(samples)
}

/// The samples of a chunk.
pub(crate) fn unpack(
    start_ns: u64,
    count: usize,
    data: &[u8],
) -> Result<Vec<SamplePoint>, LedgerError> {
    try_unpack(start_ns, count, data).ok_or(LedgerError::Chunk { start_ns })
}

/// The quantum, as a power of two: the least by which the greatest value still fits.
fn exponent(greatest: f64) -> i32 {
    if greatest == 0.0 { 0 } else { (greatest / QUANTA).log2().ceil().clamp(-900.0, 1000.0) as i32 }
}

fn put_run(data: &mut Vec<u8>, run: Option<(u64, u64)>) {
    if let Some((step_ms, count)) = run {
        put(data, step_ms);
        put(data, count);
    }
}

/// A step of zero is followed by the number of further ones.
fn put_zeros(data: &mut Vec<u8>, zeros: u64) {
    if zeros > 0 {
        put(data, 0);
        put(data, zeros - 1);
    }
}

/// Seven bits a byte, least first; the eighth says that more follow.
fn put(data: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        data.push(value as u8 | 0x80);
        value >>= 7;
    }
    data.push(value as u8);
}

fn take(data: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = data.split_first()?;
        *data = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Small numbers of either sign become small numbers: 0, −1, 1, −2 are 0, 1, 2, 3.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 3 * CHUNK_NS;

    fn samples(values: &[f64]) -> Vec<SamplePoint> {
        let at = |index: usize| START + (index as u64 + 1) * 100 * MILLISECOND_NS;
        values
            .iter()
            .enumerate()
            .map(|(i, value)| SamplePoint { at_ns: at(i), value: *value })
            .collect()
    }

    #[test]
    fn a_chunk_is_packed_as_documented() {
        // The quantum is 2^-13. 100 ms three times, then 350 ms once. The values are 8192 twice
        // (a step, then a zero and no more zeros), 12288 and −4096.
        let mut samples = samples(&[1.0, 1.0, 1.5, -0.5]);
        samples[3].at_ns += 250 * MILLISECOND_NS;
        let expected = [
            &[25][..],
            &[100, 3, 0xde, 0x02, 1],
            &[0x80, 0x80, 0x01, 0, 0, 0x80, 0x40, 0xff, 0xff, 0x01],
        ];
        let data = pack(START, &samples);
        assert_eq!(data, expected.concat());
        assert_eq!(unpack(START, 4, &data).unwrap(), samples);
    }

    #[test]
    fn what_comes_back_is_close_and_whole_numbers_are_exact() {
        let wave: Vec<f64> = (0..100).map(|i| 1e9 + 4e8 * f64::from(i).sin()).collect();
        let counts: Vec<f64> = (0..100).map(|i| f64::from(i * i % 97 * 160)).collect();
        for values in [vec![0.0; 100], wave, counts.clone(), vec![1e-12, -3e-13], vec![1e300]] {
            let before = samples(&values);
            let after = unpack(START, before.len(), &pack(START, &before)).unwrap();
            let greatest = values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
            for (before, after) in before.iter().zip(&after) {
                assert_eq!(before.at_ns, after.at_ns);
                assert!((before.value - after.value).abs() <= greatest / QUANTA);
            }
        }
        let exact = samples(&counts);
        assert_eq!(unpack(START, 100, &pack(START, &exact)).unwrap(), exact);
    }

    #[test]
    fn a_damaged_chunk_is_an_error_and_not_a_panic() {
        let data = pack(START, &samples(&[1.0, 2.0, 2.0, 2.0, 7.5]));
        for cut in 0..data.len() {
            assert!(unpack(START, 5, &data[..cut]).is_err(), "cut at {cut}");
        }
        assert!(unpack(START, 4, &data).is_err());
        assert!(unpack(START, VALUES_LIMIT + 1, &data).is_err());
        for byte in 0..data.len() {
            let mut damaged = data.clone();
            damaged[byte] ^= 0xff;
            let _ = unpack(START, 5, &damaged);
        }
        let _ = unpack(u64::MAX, 5, &data);
    }
}
