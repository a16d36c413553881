//! Keys, values and versions: a library for services that keep values by key.
//!
//! | file | what it holds |
//! |---|---|
//! | `keys`, `values` | how they are written: a function of number, seed and version |
//! | `sampler`, `draws` | which keys come how often, and what a slot draws of them |
//! | `versions` | which versions may be current while several clients write |
//! | `oracle` | all of this about one target |
//! | `spec` | `keys = { … }` and `value = { … }` of a suite |
//! | `store` | the part of a suite that belongs to such a service |
//! | `workload` | its whole workload, but for the clients |

mod draws;
mod keys;
mod oracle;
mod sampler;
mod spec;
mod store;
mod values;
mod versions;
mod workload;

pub use draws::Draws;
pub use keys::Keys;
pub use oracle::Oracle;
pub use sampler::{Distribution, Popularity, Sampler};
pub use spec::{DistributionName, KeysSpec, LogNormalSpec, ValueSpec, WeightedSpec};
pub use store::{Role, Rules, Store};
pub use values::{Sizes, Values};
pub use versions::{Floor, Mismatch, PREPARED, Versions, Write};
pub use workload::MakeClient;
