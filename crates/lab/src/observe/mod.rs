//! Looking at the host and at process groups. A reading that is not possible is unseen, not zero.
//! Control plane.

mod fingerprint;
mod group;

pub use fingerprint::fingerprint;
pub(crate) use fingerprint::sha256;
pub use group::{Cpu, GroupMeter, thread_cpu};
