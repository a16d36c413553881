//! Where the processes of a target begin: what descends from them is the target's, too.

use rustix::process::Pid;

/// The first processes of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// Those of a process group: the lab has started it.
    Group(Pid),
    /// Processes that ran already, by their numbers.
    Processes(Vec<u32>),
}

impl From<Pid> for Roots {
    fn from(group: Pid) -> Self {
        Self::Group(group)
    }
}

impl Roots {
    /// Whether a process of this number and group is one of them.
    pub(super) fn has(&self, pid: u32, group: u32) -> bool {
        match self {
            Self::Group(own) => own.as_raw_nonzero().get().unsigned_abs() == group,
            Self::Processes(all) => all.contains(&pid),
        }
    }

    /// Whether they are the lab's own group. What descends from it is not the lab's: targets do.
    pub(super) fn are_the_labs(&self) -> bool {
        *self == Self::Group(rustix::process::getpgrp())
    }
}
