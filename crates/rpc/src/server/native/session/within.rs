//! Calls of a client in the same process, without frames: as values, by the same table, limits and
//! counters.

use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;

use super::Session;
use crate::model::function::Run;
use crate::protocol::native::Begin;
use crate::protocol::native::frame::{Header, Kind};
use crate::protocol::status::Status;

impl Session {
    /// Makes a call, where its function doesn't wait and no frame is under way.
    pub(in crate::server) fn call_at_once(
        &mut self,
        method: u32,
        request: &Bytes,
        how: &Begin<'_>,
    ) -> Option<Result<Bytes, Status>> {
        let is_quiet = self.waiting.is_empty() && self.out.is_empty() && !self.is_over;
        if !is_quiet || self.client.is_none() || self.decoder.kept_bytes() > 0 {
            return None;
        }
        let metadata = how.metadata.cloned().unwrap_or_default();
        let header = Header { method, ..Header::of(Kind::Call, 0) };
        let found = match self.admit(&header, &metadata, request.len()) {
            Ok((_, function)) => match &function.run {
                Run::AtOnce(run) => Ok(run),
                Run::InSteps(_) => return None,
            },
            Err(status) => Err(status),
        };
        self.shared.counters.calls.fetch_add(1, Relaxed);
        let (result, count) = match found {
            Ok(run) => (run(&self.info(metadata, how.timeout), request.clone()), 1),
            Err(status) => (Err(status), 0),
        };
        let result = result.and_then(|answer| self.room_for(answer, 0));
        let counters = &self.shared.counters;
        counters.received.fetch_add(count, Relaxed);
        match &result {
            Ok(_) => drop(counters.sent.fetch_add(1, Relaxed)),
            Err(status) => counters.ended(status.code),
        }
        // What was reserved for a large answer is the caller's now.
        self.count_memory();
        Some(result)
    }
}
