//! What goes wrong in one simulation, and how often. Each seed draws its own mixture, in which most
//! kinds of faults are absent: bugs that one fault would hide from another are found that way
//! (A. Groce et al., Swarm Testing, ISSTA 2012).

use super::random::Random;
use crate::Ns;
use crate::clock::{MILLISECOND_NS, SECOND_NS};

/// How often faults happen, in cases of 1,024, and how large they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    /// A read moves fewer bytes than there are.
    pub short_reads: u32,
    /// A write moves fewer bytes than there is room for.
    pub short_writes: u32,
    /// A socket that was reported ready would block, or its call is interrupted.
    pub false_readiness: u32,
    /// A client breaks the connection off, anywhere in a message.
    pub resets: u32,
    /// A client reads nothing for up to [`Faults::stall_ns`].
    pub stalls: u32,
    /// The longest time for which a client reads nothing.
    pub stall_ns: Ns,
    /// The clock jumps ahead, by up to [`Faults::jump_ns`].
    pub jumps: u32,
    /// The longest jump of the clock.
    pub jump_ns: Ns,
    /// An accepted connection has ended already, or the system has no descriptor for it.
    pub failed_accepts: u32,
    /// A request of a batch is not made.
    pub cancelled: u32,
    /// The most bytes of one direction that sockets and network hold.
    pub buffer_bytes: usize,
    /// The longest time that bytes are on their way.
    pub delay_ns: Ns,
}

impl Faults {
    /// No faults: every byte arrives at once.
    pub fn none() -> Self {
        Self {
            short_reads: 0,
            short_writes: 0,
            false_readiness: 0,
            resets: 0,
            stalls: 0,
            stall_ns: 0,
            jumps: 0,
            jump_ns: 0,
            failed_accepts: 0,
            cancelled: 0,
            buffer_bytes: 1 << 20,
            delay_ns: 0,
        }
    }

    /// The mixture of a seed.
    pub fn draw(random: &mut Random) -> Self {
        let buffer_bytes = 256 << random.below(12);
        let mut often = |most: u64| match random.below(3) {
            0 => 0,
            1 => 1 + random.below(most / 16 + 1) as u32,
            _ => 1 + random.below(most) as u32,
        };
        Self {
            short_reads: often(900),
            short_writes: often(900),
            false_readiness: often(200),
            resets: often(12),
            stalls: often(40),
            jumps: often(3),
            failed_accepts: often(300),
            cancelled: often(300),
            stall_ns: MILLISECOND_NS << random.below(14),
            jump_ns: SECOND_NS << random.below(12),
            buffer_bytes,
            // At least 1 MB/s: a simulation is to see much, not to wait.
            delay_ns: (1000 << random.below(16)).min(buffer_bytes as Ns * 1000),
        }
    }
}
