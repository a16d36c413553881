//! Which items of different sizes are worth their memory: those whose hits add most for each byte
//! of it to the hit ratios by items and by bytes.
//!
//! A hit adds to the ratio by items, whatever its size, and to that by bytes as much as its size is
//! of the mean size of requests. So the priority is frequency × (1/size + weight/mean size). Small
//! items are compared nearly by frequency ÷ size, as in GDSF (L. Cherkasova, Improving WWW Proxies
//! Performance with Greedy-Dual-Size-Frequency Caching Policy, HP Labs 1998), which favours hits by
//! items and costs few bytes; large ones nearly by frequency alone, which favours hits by bytes.
//! Which sizes are large follows from what is requested.
//!
//! In place of GDSF's heap there is a threshold: the oldest item of a ring stays when its priority
//! is above it. The threshold follows the quartile of the priorities that it is compared with,
//! weighted by bytes, so that about three bytes are moved for each byte that is evicted from the
//! main ring. New items come to the small ring and are compared when they leave it, as in S3-FIFO.
//!
//! Frequencies are counted in half octaves, in four bits, and survive eviction in the ghost table.
//! They age: all of them fall by one with every four requests for each item held. An item that was
//! not read during a lap of the main ring in which levels fell has what its level is above that of
//! a new item halved, which matters where popularity drifts. Levels below that of a new item are
//! left to what is no longer requested: it would else stay as long as it is small.

/// Which sizes a shard stores, and the threshold and the clock of its frequencies.
#[derive(Debug)]
pub(super) struct Density {
    /// Whether items are compared by their density.
    is_in_force: bool,
    /// Whether that follows from the sizes of what is stored.
    follows_sizes: bool,
    sizes: SizeMoments,
    /// Requests and their bytes since the last check, ...
    requested: Requested,
    /// ... and in recent checks, the older the less.
    recent: Requested,
    /// The weight of a hit by bytes for each byte: the inverse of a size.
    byte_weight: f64,
    /// Priorities below it are evicted, in half octaves; none until the first comparison.
    threshold: Option<f64>,
    /// Bytes compared so far: the threshold moves faster during the first lap.
    compared_bytes: usize,
    /// Requests until the next check.
    check_left: usize,
    /// Checks until all frequencies fall by one.
    checks_left: usize,
    /// How many bytes had come to the main ring each time that frequencies fell; a ring buffer.
    aged_at: [u64; AGINGS],
    agings: usize,
    random: u64,
}

/// The sum, and the sum of squares, of recent sizes.
#[derive(Debug, Default)]
struct SizeMoments {
    count: f64,
    sum: f64,
    squares: f64,
}

/// Requests of items, by their number and their bytes.
#[derive(Debug, Default)]
struct Requested {
    count: f64,
    bytes: f64,
}

/// The level of one request.
pub(super) const NEW_LEVEL: u8 = 4;

/// The highest level: 45 requests.
pub(super) const TOP_LEVEL: u8 = 15;

/// How many requests of an item it takes, on average, to raise its level by one, from that of a new
/// item on. The levels are half octaves: 1 request, 2, 3, 4, 6, 8, 11, 16, …
const REQUESTS_TO_RISE: [u32; (TOP_LEVEL - NEW_LEVEL) as usize] =
    [1, 1, 1, 2, 2, 3, 5, 7, 9, 13, 19];

/// More agings than there are levels make no difference.
const AGINGS: usize = TOP_LEVEL as usize + 1;

/// Levels of one octave of frequency.
const LEVELS_PER_OCTAVE: f64 = 2.0;

/// How much the hit ratio by bytes counts against that by items.
const BYTES_WEIGHT: f64 = 2.0;

/// With each check, earlier requests count less by this part.
const FORGOTTEN_PER_CHECK: f64 = 1.0 / 16.0;

/// For each byte evicted, this many bytes stay.
const KEPT_PER_EVICTED: f64 = 3.0;

/// By how many half octaves the threshold rises during one lap in which everything stays, ...
const RISE_PER_LAP: f64 = 16.0;

/// ... and this many times as fast at the start of the first lap.
const FIRST_LAP_FACTOR: f64 = 8.0;

/// Frequencies fall by one after this many requests for each item held.
const REQUESTS_PER_ITEM: usize = 4;

/// Requests are looked at this many times as often.
const CHECKS_PER_AGING: usize = 16;

/// Sizes are mixed when the mean of their squares is this many times the square of their mean, ...
const MIXED_FROM: f64 = 2.0;

/// ... and no longer when it is less than this, ...
const MIXED_UNTIL: f64 = 1.5;

/// ... and the mean of new items is at most this many times that of all items.
const LARGER_THAN_HELD: f64 = 2.0;

/// The sizes of this many stores are looked at before anything is concluded from them.
const MIN_STORES: f64 = 64.0;

/// Above this many stores, the weight of the older ones is halved.
const MAX_STORES: f64 = 8192.0;

impl Density {
    /// In force from the start, or according to sizes, or never.
    pub(super) fn new(is_in_force: bool, follows_sizes: bool, number: usize) -> Self {
        Self {
            is_in_force,
            follows_sizes,
            sizes: SizeMoments::default(),
            requested: Requested::default(),
            recent: Requested::default(),
            byte_weight: 0.0,
            threshold: None,
            compared_bytes: 0,
            check_left: 0,
            checks_left: 0,
            aged_at: [0; AGINGS],
            agings: 0,
            random: number as u64,
        }
    }

    /// Whether items are compared by their density.
    #[inline]
    pub(super) fn is_in_force(&self) -> bool {
        self.is_in_force
    }

    /// Notes the size of a new item of a shard that holds `items` of `live_bytes`, which may put
    /// the comparison in force or end it; whether it does.
    #[inline]
    pub(super) fn note_size(&mut self, bytes: usize, items: usize, live_bytes: usize) -> bool {
        if self.is_in_force {
            self.requested.add(bytes);
        }
        if !self.follows_sizes {
            return false;
        }
        let ratio = self.sizes.add(bytes);
        let was_in_force = self.is_in_force;
        self.is_in_force = match was_in_force {
            false => ratio > MIXED_FROM,
            // New items may be alike only because those of other sizes are all held.
            true => {
                ratio > MIXED_UNTIL
                    || self.sizes.mean() * items as f64 > LARGER_THAN_HELD * live_bytes as f64
            }
        };
        self.is_in_force != was_in_force
    }

    /// What hits of an item of this level and size add for each byte of it, in levels.
    fn priority(&self, level: u8, bytes: usize) -> f64 {
        let value = 1.0 / bytes.max(1) as f64 + self.byte_weight;
        f64::from(level) + LEVELS_PER_OCTAVE * value.log2()
    }

    /// The level of an item after another request.
    #[inline]
    pub(super) fn raised(&mut self, level: u8) -> u8 {
        let Some(risen) = level.checked_sub(NEW_LEVEL) else { return NEW_LEVEL };
        let Some(requests) = REQUESTS_TO_RISE.get(usize::from(risen)) else { return level };
        // Knuth's MMIX generator: its upper bits are good enough for a draw.
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let drawn = ((self.random >> 32) * u64::from(*requests)) >> 32;
        level + u8::from(drawn == 0)
    }

    /// The level at the main ring's tail of an item that came when `position` bytes had come to the
    /// ring, and that has been read since, or not.
    pub(super) fn aged(&self, level: u8, position: u64, is_read: bool) -> u8 {
        let known = self.agings.min(AGINGS);
        let since = self.aged_at[..known].iter().filter(|aged_at| **aged_at > position).count();
        let level = level.saturating_sub(since as u8);
        // Without the first condition laps that are short for a while would stay short: they would
        // take levels down faster than requests raise them.
        if since > 0 && !is_read { level - level.saturating_sub(NEW_LEVEL) / 2 } else { level }
    }

    /// Whether an item of this level and size is above the threshold.
    pub(super) fn is_worth(&self, level: u8, bytes: usize) -> bool {
        self.threshold.is_none_or(|threshold| self.priority(level, bytes) >= threshold)
    }

    /// The same, for the oldest item of a main ring of `capacity` bytes; the threshold follows.
    pub(super) fn stays(&mut self, level: u8, bytes: usize, capacity: usize) -> bool {
        let priority = self.priority(level, bytes);
        let threshold = self.threshold.get_or_insert(priority);
        let lap = bytes as f64 / capacity.max(1) as f64;
        let first = FIRST_LAP_FACTOR * (1.0 - self.compared_bytes as f64 / capacity.max(1) as f64);
        let step = lap * RISE_PER_LAP * first.max(1.0);
        let stays = priority >= *threshold;
        *threshold += if stays { step } else { -step * KEPT_PER_EVICTED };
        self.compared_bytes = self.compared_bytes.saturating_add(bytes);
        stays
    }

    /// Notes a hit of an item of this many bytes.
    #[inline]
    pub(super) fn note_hit(&mut self, bytes: usize) {
        self.requested.add(bytes);
    }

    /// Notes a request of a shard that holds `items`; whether all frequencies are to fall by one.
    #[inline]
    pub(super) fn note_request(&mut self, items: usize) -> bool {
        self.check_left = self.check_left.saturating_sub(1);
        self.check_left == 0 && self.check(items)
    }

    fn check(&mut self, items: usize) -> bool {
        self.check_left = (items * REQUESTS_PER_ITEM / CHECKS_PER_AGING).max(1);
        self.recent.forget(FORGOTTEN_PER_CHECK);
        self.recent.count += self.requested.count;
        self.recent.bytes += self.requested.bytes;
        self.requested = Requested::default();
        self.byte_weight = BYTES_WEIGHT * self.recent.count / self.recent.bytes.max(1.0);
        self.checks_left = self.checks_left.checked_sub(1).unwrap_or(CHECKS_PER_AGING - 1);
        self.checks_left == 0
    }

    /// All frequencies fall by one: those of items when their turn in the ring comes, of which
    /// `position` bytes have come so far.
    pub(super) fn age(&mut self, position: u64) {
        self.aged_at[self.agings % AGINGS] = position;
        self.agings += 1;
        self.threshold = self.threshold.map(|threshold| threshold - 1.0);
    }

    /// Clears the threshold: everything has been removed.
    pub(super) fn clear(&mut self) {
        self.threshold = None;
        self.compared_bytes = 0;
    }
}

impl Requested {
    #[inline]
    fn add(&mut self, bytes: usize) {
        self.count += 1.0;
        self.bytes += bytes as f64;
    }

    fn forget(&mut self, part: f64) {
        self.count *= 1.0 - part;
        self.bytes *= 1.0 - part;
    }
}

impl SizeMoments {
    fn mean(&self) -> f64 {
        self.sum / self.count.max(1.0)
    }

    /// Adds a size. Returns the mean of the squares by the square of the mean; 1 while too few are
    /// known.
    fn add(&mut self, bytes: usize) -> f64 {
        let bytes = bytes as f64;
        self.count += 1.0;
        self.sum += bytes;
        self.squares += bytes * bytes;
        if self.count > MAX_STORES {
            self.count /= 2.0;
            self.sum /= 2.0;
            self.squares /= 2.0;
        }
        if self.count < MIN_STORES {
            return 1.0;
        }
        self.squares * self.count / (self.sum * self.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn density_is_in_force_while_sizes_are_mixed() {
        let mut density = Density::new(false, true, 0);
        let mut changes = |sizes: &mut dyn Iterator<Item = usize>| {
            let changes = sizes.filter(|size| density.note_size(*size, 1, 100)).count();
            (changes, density.is_in_force())
        };
        assert_eq!(changes(&mut (0..10_000).map(|number| 100 + number % 200)), (0, false));
        let mixed = |number: u32| 100 * 10_usize.pow(number % 4);
        assert_eq!(changes(&mut (0..10_000).map(mixed)), (1, true));
        assert_eq!(changes(&mut std::iter::repeat_n(10_000, 100_000)), (0, true));
        assert_eq!(changes(&mut std::iter::repeat_n(100, 100_000)), (1, false));
    }

    #[test]
    fn a_level_is_the_half_octave_of_the_requests() {
        let mut density = Density::new(true, false, 7);
        for (requests, level) in [(1, 1), (2, 2), (5, 4), (10, 6), (40, 10)] {
            let mut sum = 0;
            for _ in 0..1000 {
                let raised = (0..requests).fold(NEW_LEVEL, |level, _| density.raised(level));
                sum += u32::from(raised - NEW_LEVEL);
            }
            let mean = f64::from(sum) / 1000.0;
            assert!((mean - f64::from(level)).abs() < 0.8, "{requests} requests: level {mean}");
        }
        assert_eq!(density.raised(TOP_LEVEL), TOP_LEVEL);
        assert_eq!(density.raised(0), NEW_LEVEL);
    }

    #[test]
    fn the_threshold_finds_the_quartile_and_small_items_are_worth_more() {
        let mut density = Density::new(true, false, 0);
        (0..100).for_each(|_| density.note_hit(10_000));
        density.note_request(0);
        let mut stayed = 0;
        for number in 0..100_000_u32 {
            let level = (number.wrapping_mul(0x9e37_79b9) >> 28) as u8;
            let stays = density.stays(level, 1000, 1 << 20);
            stayed += u32::from(stays && number >= 10_000);
        }
        assert!((60_000..75_000).contains(&stayed), "{stayed} of 90,000");
        assert!(density.is_worth(15, 1000) && !density.is_worth(0, 1000));
        assert!(density.is_worth(0, 4) && !density.is_worth(0, 1 << 20));
    }

    #[test]
    fn frequencies_fall_by_one_with_each_aging_since_an_item_came() {
        let mut density = Density::new(true, false, 0);
        [100, 200, 300].into_iter().for_each(|position| density.age(position));
        assert_eq!(
            [50, 100, 250, 300].map(|position| density.aged(10, position, true)),
            [7, 8, 9, 10]
        );
        assert_eq!([50, 300].map(|position| density.aged(10, position, false)), [6, 10]);
        (0..40).for_each(|_| density.age(1000));
        assert_eq!(density.aged(TOP_LEVEL, 500, true), 0);
    }
}
