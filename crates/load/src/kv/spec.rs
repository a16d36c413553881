//! What `[workload]` says of keys and values.

use base::units::{ByteCount, Share};
use serde::Deserialize;

use super::keys::Keys;
use super::sampler::{Distribution, Popularity, Sampler};
use super::values::Sizes;
use crate::part::{Part, SpecError};

/// At most this many keys in all: their versions take 16 bytes each.
const MAX_KEYS: u64 = 1 << 30;

/// `keys = { … }`
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct KeysSpec {
    /// How many.
    pub count: u64,
    /// How long each is; 8 unless said otherwise.
    pub bytes: Option<usize>,
    /// Which come how often; `uniform` unless said otherwise.
    pub distribution: Option<DistributionName>,
    /// Zipf's exponent; 1.0 unless said otherwise.
    pub skew: Option<f64>,
    /// The part of the keys that is hot; 10 % unless said otherwise.
    pub hot_keys: Option<Share>,
    /// The part of the requests that goes to them; 90 % unless said otherwise.
    pub hot_requests: Option<Share>,
    /// How many keys a loop goes through.
    pub loop_keys: Option<u64>,
    /// The part of the requests that goes to keys that come only once, and so are misses.
    pub one_hit: Option<Share>,
    /// After so many requests of a slot, popularity moves on by one key.
    pub drift_every: Option<u64>,
}

/// The name of a key distribution.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum DistributionName {
    /// Every key equally often.
    Uniform,
    /// Popular keys far more often.
    Zipf,
    /// A hot set and the rest.
    Hot,
    /// All keys, one after another.
    Scan,
    /// Some keys, one after another, again and again.
    Loop,
}

impl KeysSpec {
    /// The keys and what draws from them.
    ///
    /// # Errors
    /// Which key of the suite is wrong, and what would be right.
    pub fn resolve(
        &self,
        part: &Part<'_>,
        longest_bytes: usize,
    ) -> Result<(Keys, Sampler), SpecError> {
        let error = |key: &'static str, message: String| Err(SpecError::new(key, message));
        let key_bytes = self.bytes.unwrap_or(8);
        if key_bytes > longest_bytes {
            let message = format!("{} takes at most {longest_bytes}", part.service);
            return error("workload.keys.bytes", message);
        }
        if self.count > MAX_KEYS {
            return error("workload.keys.count", format!("at most {MAX_KEYS} keys"));
        }
        let Some(keys) = Keys::new(self.count, key_bytes) else {
            let message = format!(
                "{} keys do not fit into {key_bytes} bytes of `k` and decimal digits; \
                 use at least one key and `bytes` = {}",
                self.count,
                self.count.saturating_sub(1).max(1).ilog10() + 2
            );
            return error("workload.keys.count", message);
        };
        let popularity = Popularity {
            distribution: self.distribution()?,
            one_hit: self.one_hit.map_or(0.0, |share| share.fraction),
            drift_every: self.drift_every,
        };
        match Sampler::new(&keys, popularity) {
            Ok(sampler) => Ok((keys, sampler)),
            Err(problem) => error("workload.keys", problem.to_owned()),
        }
    }

    /// The distribution, with every number belonging to the one that is named.
    fn distribution(&self) -> Result<Distribution, SpecError> {
        use DistributionName::{Hot, Loop, Scan, Uniform, Zipf};
        let name = self.distribution.unwrap_or(Uniform);
        let belongings = [
            ("workload.keys.skew", self.skew.is_some(), Zipf, "zipf"),
            ("workload.keys.hot_keys", self.hot_keys.is_some(), Hot, "hot"),
            ("workload.keys.hot_requests", self.hot_requests.is_some(), Hot, "hot"),
            ("workload.keys.loop_keys", self.loop_keys.is_some(), Loop, "loop"),
        ];
        for (key, is_said, owner, owner_name) in belongings {
            if is_said && name != owner {
                let part = key.rsplit('.').next().unwrap_or(key);
                let message = format!("`{part}` belongs to distribution = \"{owner_name}\"");
                return Err(SpecError::new(key, message));
            }
        }
        Ok(match name {
            Uniform => Distribution::Uniform,
            Zipf => Distribution::Zipf { skew: self.skew.unwrap_or(1.0) },
            Hot => Distribution::Hot {
                keys: self.hot_keys.map_or(0.1, |share| share.fraction),
                requests: self.hot_requests.map_or(0.9, |share| share.fraction),
            },
            Scan => Distribution::Loop { keys: self.count },
            Loop => Distribution::Loop { keys: self.loop_keys.unwrap_or(self.count) },
        })
    }
}

/// `value = { … }`: exactly one of these.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ValueSpec {
    /// All alike.
    pub bytes: Option<ByteCount>,
    /// Every length between two, both included.
    pub uniform: Option<[ByteCount; 2]>,
    /// Many short ones and few long ones.
    pub log_normal: Option<LogNormalSpec>,
    /// These lengths with their weights.
    pub weighted: Option<Vec<WeightedSpec>>,
}

/// `log_normal = { … }`
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct LogNormalSpec {
    /// Half of the values are at most this long.
    pub median: ByteCount,
    /// The standard deviation of the logarithm.
    pub sigma: f64,
    /// No value is longer than this.
    pub most: ByteCount,
}

/// One of `weighted = [ … ]`
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct WeightedSpec {
    /// How long.
    pub bytes: ByteCount,
    /// How many of them, in proportion to the others.
    pub weight: u32,
}

impl ValueSpec {
    /// The sizes.
    ///
    /// # Errors
    /// Which key of the suite is wrong, and what would be right.
    pub fn resolve(&self, longest_bytes: usize) -> Result<Sizes, SpecError> {
        let error = |message: String| Err(SpecError::new("workload.value", message));
        let bytes = |count: &ByteCount| count.bytes as usize;
        let sizes = match (&self.bytes, &self.uniform, &self.log_normal, &self.weighted) {
            (Some(fixed), None, None, None) => Sizes::Fixed(bytes(fixed)),
            (None, Some([least, most]), None, None) if least <= most => {
                Sizes::Uniform(bytes(least), bytes(most))
            }
            (None, None, Some(law), None) if law.sigma.is_finite() && law.sigma >= 0.0 => {
                let median = law.median.bytes as f64;
                Sizes::LogNormal { median, sigma: law.sigma, most: bytes(&law.most) }
            }
            (None, None, None, Some(list)) if list.iter().any(|one| one.weight > 0) => {
                let mut sum = 0;
                let weighed = list.iter().filter(|one| one.weight > 0).map(|one| {
                    sum += u64::from(one.weight);
                    (sum, bytes(&one.bytes))
                });
                Sizes::Weighted(weighed.collect())
            }
            _ => {
                return error(
                    "say exactly one of bytes = 480, uniform = [100, 2000], \
                     log_normal = { median = 300, sigma = 1.0, most = 100_000 }, \
                     weighted = [{ bytes = 100, weight = 9 }, …]"
                        .to_owned(),
                );
            }
        };
        let shortest = match &sizes {
            Sizes::Fixed(bytes) | Sizes::Uniform(bytes, _) => *bytes,
            Sizes::LogNormal { .. } => 1,
            Sizes::Weighted(list) => list.iter().map(|(_, bytes)| *bytes).min().unwrap_or(0),
        };
        if shortest < 1 || sizes.longest() > longest_bytes {
            return error(format!("values are from 1 to {longest_bytes} bytes"));
        }
        Ok(sizes)
    }
}
