//! Any bytes as what a service says of its counters: they do no harm, no more is kept than may be,
//! and what has been understood stays so, whatever comes behind it.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use http::load::Metrics;
use load::{Counters, MAX_COUNTERS};

/// memcached's `stats`, Redis' `INFO`, and a page of Prometheus text.
static READERS: LazyLock<Vec<Box<dyn Counters>>> = LazyLock::new(|| {
    let mut readers: Vec<Box<dyn Counters>> = Vec::new();
    for name in ["memcached", "redis"] {
        let dialect = cache::load::SERVICE.dialect(name).expect("a dialect of the cache");
        readers.push(Box::new(dialect.counters.expect("it has counters")));
    }
    readers.push(Box::new(Metrics::new("127.0.0.1:80", "/metrics").expect("a page")));
    readers
});

fuzz_target!(|data: &[u8]| {
    let Some((how, bytes)) = data.split_first() else { return };
    let reader = &READERS[usize::from(how & 3) % READERS.len()];
    let part = &bytes[..bytes.len() * usize::from(how >> 2) / 63];
    let whole = reader.read(bytes, false);
    match reader.read(part, false) {
        Ok(Some(known)) => assert_eq!(whole, Ok(Some(known))),
        Ok(None) => {}
        Err(_) => assert!(whole.is_err()),
    }
    for counters in [whole, reader.read(bytes, true)].into_iter().flatten().flatten() {
        assert!(counters.len() <= MAX_COUNTERS);
        assert!(counters.iter().all(|counter| counter.value.is_finite()));
    }
});
