//! How fast one thread of this host copies memory: the ceiling of whatever moves bytes.

use wire::clock::now;

/// How much is copied at a time. Less than some caches hold, more than a suite's hot data often is.
pub const COPY_BYTES: usize = 64 << 20;

/// How many bytes a second one thread copies, by the best of some copies of [`COPY_BYTES`].
pub fn copied_bytes_per_s() -> f64 {
    let source = vec![1_u8; COPY_BYTES];
    let mut copy = vec![0_u8; COPY_BYTES];
    let times_ns = (0..8).map(|_| {
        let start = now();
        copy.copy_from_slice(std::hint::black_box(&source));
        std::hint::black_box(&copy);
        now() - start
    });
    COPY_BYTES as f64 * 1e9 / times_ns.min().unwrap_or(1).max(1) as f64
}
