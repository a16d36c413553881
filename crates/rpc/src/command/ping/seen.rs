//! Where both sides run, as a few calls of `Who` see it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use bytes::Bytes;
use prost::Message as _;

use super::caller::Caller;
use crate::protocol::status::{Code, Status};
use crate::protocol::table::Place;

const WHO: &str = "/loadline.rpc.v1.Table/Who";

/// Where a server is, and what it has done until now.
pub(in crate::command) fn who(caller: &mut Caller) -> anyhow::Result<Place> {
    let answer = caller.find(WHO).and_then(|who| caller.call(who, &Bytes::new()));
    let answer = answer.map_err(anyhow::Error::new)?;
    Place::decode(answer).context("the answer to Who")
}

/// Where both sides ran.
#[derive(Debug, Default)]
pub(in crate::command) struct Seen {
    /// The cores of this side.
    pub(in crate::command) here: BTreeSet<usize>,
    /// Those of the server, where it says them.
    pub(in crate::command) server: BTreeSet<usize>,
    /// Looks at both while this side stayed where it was.
    pub(in crate::command) looks: usize,
    /// How many of them saw both sides where, by this side's core and the server's.
    pub(in crate::command) pairs: BTreeMap<(usize, usize), usize>,
}

impl Seen {
    /// Looks this many times.
    pub(in crate::command) fn look(
        &mut self,
        caller: &mut Caller,
        times: usize,
    ) -> anyhow::Result<()> {
        for _ in 0..times {
            let before = rustix::thread::sched_getcpu();
            self.here.insert(before);
            if let Caller::Within(_) = caller {
                self.server.insert(before);
                continue;
            }
            let there = who(caller)?;
            // Other servers of these functions say no more than their process.
            if there.carrier.is_empty() {
                continue;
            }
            let there = there.core as usize;
            self.server.insert(there);
            // One that was moved meanwhile ran on two.
            if rustix::thread::sched_getcpu() == before {
                self.looks += 1;
                *self.pairs.entry((before, there)).or_default() += 1;
            }
        }
        Ok(())
    }

    /// The same where a server may lack the function.
    pub(super) fn look_if_told(&mut self, caller: &mut Caller, times: usize) -> anyhow::Result<()> {
        let is_missing = |error: &anyhow::Error| {
            let status = error.downcast_ref::<Status>();
            status.is_some_and(|status| status.code == Code::Unimplemented)
        };
        match self.look(caller, times) {
            Err(error) if is_missing(&error) => Ok(()),
            looked => looked,
        }
    }

    /// Which share of the looks saw both on one core; `None` where there were fewer than this.
    pub(in crate::command) fn share_of_one(&self, least: usize) -> Option<f64> {
        let same = self.pairs.iter().filter(|((here, there), _)| here == there);
        let same: usize = same.map(|(_, looks)| looks).sum();
        (self.looks >= least).then(|| same as f64 / self.looks.max(1) as f64)
    }

    /// This side's core and the server's, as most looks saw them that saw one core, or two.
    pub(in crate::command) fn most(&self, is_one: bool) -> Option<(usize, usize)> {
        let pairs = self.pairs.iter().filter(|((here, there), _)| (here == there) == is_one);
        pairs.max_by_key(|(_, looks)| **looks).map(|(pair, _)| *pair)
    }
}

/// Cores as they are listed.
pub(super) fn listed(cores: &BTreeSet<usize>) -> String {
    match cores.is_empty() {
        true => "not known".to_owned(),
        false => cores.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    }
}
