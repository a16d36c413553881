//! The ring of shared memory, with another process that writes into it what it likes: honest ends
//! hand on what was written, and whatever else comes is bytes or an error.
#![no_main]

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use libfuzzer_sys::fuzz_target;
use rpc::shm::ring::{Reader, Writer};

/// Words of a line.
const LINE: usize = 8;

/// What a word may be overwritten with: what looks like a length or a position, and what doesn't.
fn word(kind: u8) -> u64 {
    match kind {
        0 => u64::MAX,
        1 => 1 << 63,
        2 => 32 << 10,
        3 => (32 << 10) + 1,
        small => u64::from(small),
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((size, steps)) = data.split_first() else { return };
    let lines = 8 + usize::from(*size) % 120;
    let ring: Vec<_> = (0..lines * LINE).map(|_| AtomicU64::new(0)).collect();
    let (taken, mut is_honest) = (AtomicU64::new(0), true);
    let (mut writer, mut reader) = (Writer::default(), Reader::default());
    let (mut sent, mut came) = (Vec::new(), 0);
    for step in steps.chunks_exact(3) {
        let [what, one, other] = *step else { return };
        let count = usize::from(one) * 8 + usize::from(other % 8);
        match what % 8 {
            0..=2 => {
                // Bytes that look like lengths.
                let bytes: Vec<u8> = (0..count).map(|at| (sent.len() + at) as u8 | 1).collect();
                match writer.write(&ring, &taken, &bytes) {
                    Ok(written) => sent.extend_from_slice(&bytes[..written]),
                    Err(error) => assert!(!is_honest, "{error}"),
                }
            }
            3..=5 => {
                let mut space = vec![0; count];
                match reader.read(&ring, &taken, &mut space) {
                    Ok((read, _)) if is_honest => {
                        assert_eq!(space[..read], sent[came..came + read]);
                        came += read;
                    }
                    Ok((read, _)) => assert!(read <= count),
                    Err(error) => assert!(!is_honest, "{error}"),
                }
            }
            6 => {
                is_honest = false;
                ring[count % ring.len()].store(word(what / 8), Relaxed);
            }
            _ => {
                is_honest = false;
                let position = word(what / 8).wrapping_add(u64::from(one)) << (other % 64);
                taken.store(position, Relaxed);
            }
        }
        let _ = writer.has_room(&ring, &taken);
        let _ = reader.has_some(&ring);
    }
    if is_honest {
        let mut space = [0; 1_000];
        while let Ok((read @ 1.., _)) = reader.read(&ring, &taken, &mut space) {
            assert_eq!(space[..read], sent[came..came + read]);
            came += read;
        }
        assert_eq!(came, sent.len(), "all that was written has come");
    }
});
