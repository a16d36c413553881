//! Values that have come, held against what is known to be true.

use load::kv::Mismatch;
use load::{Events, Finding, Update};
use wire::{Output, ProtocolError};

use super::super::layout::Found;
use super::super::made::{Sent, Stage, What};
use super::super::operations::{GET, MONITOR, OPERATIONS, PUT, RPC};
use super::{PvAccess, QUEUE_SIZE};
use crate::client::shared::SpotCheck;
use crate::protocol::messages::{RequestHead, subcommand};
use crate::protocol::{ArrayLocation, Command, Scalar, Value};

impl PvAccess {
    #[cold]
    pub(super) fn found(
        &self,
        what: What,
        key: u64,
        note: String,
        received: String,
        events: &mut Events,
    ) {
        let index = match what {
            What::Get => GET,
            What::Put => PUT,
            What::Monitor => MONITOR,
            What::Rpc => RPC,
        };
        events.found(|| Finding {
            operation: OPERATIONS[index].name.clone(),
            key: self.name(key).as_bytes().to_vec(),
            expected: match self.oracle.is_targets(key) {
                false => b"a version between those sent and answered".to_vec(),
                true => b"a value that goes on from the last one".to_vec(),
            },
            received: received.into_bytes(),
            note,
        });
    }

    /// What is wrong with a value that a get has brought.
    #[inline]
    pub(super) fn wrong_value(&mut self, request: u32, found: &Found) -> Option<String> {
        let operation = &self.operations[request as usize];
        let Some(number) = found.number else {
            return Some("the answer holds no value".to_owned());
        };
        if found.count != self.oracle.size.unwrap_or(1) {
            return Some(format!("{} elements instead of what was written", found.count));
        }
        if !found.alike {
            return Some("the elements of one value differ".to_owned());
        }
        if self.oracle.is_targets(operation.key) {
            let last = self.channels[operation.channel as usize].last.replace(number);
            return last.filter(|last| number < *last).map(|_| Mismatch::Stale.to_string());
        }
        let Sent::Read(floor) = operation.sent else { return None };
        let checked = self.oracle.check_number(operation.key, floor, number);
        checked.err().map(|mismatch| mismatch.to_string())
    }

    /// A value has come, whole and counted.
    #[inline]
    pub(super) fn brought(
        &mut self,
        request: u32,
        changed: u64,
        overrun: u64,
        found: &Found,
        events: &mut Events,
        out: &mut Output,
    ) {
        let Some(operation) = self.operations.get_mut(request as usize) else { return };
        if operation.stage == Stage::Gone {
            return;
        }
        if found.number.is_some() && operation.tag.is_some() {
            events.elements += found.count;
            // What was looked at in shared memory hasn't come by the socket.
            let is_here = found.place.is_none();
            events.payload_bytes += if is_here { found.count * 8 } else { 0 };
        }
        if operation.what == What::Monitor {
            self.updated(request, changed, overrun, found, events);
            return self.acknowledge(request, out);
        }
        let wrong = self.wrong_value(request, found);
        let wrong = wrong.map(|note| (note, format!("{:?}", found.number)));
        self.finish(request, wrong, events);
    }

    /// Looks at an array in shared memory: at both ends, and once at each page. Where another has
    /// been written there meanwhile, there is no value: it counts as missed with the next one.
    pub(super) fn look(
        &mut self,
        place: &ArrayLocation,
        found: &mut Found,
    ) -> Result<(), ProtocolError> {
        let seen = self.segments.spot_check(place, Scalar::Long);
        let seen = seen.map_err(|error| {
            ProtocolError::new(format!("the memory that the server shares can't be seen: {error}"))
        })?;
        if let Some(SpotCheck { elements, ends: Some((first, last)), unlike, .. }) = seen
            && let Value::Long(number) = first
        {
            (found.number, found.count) = (Some(number), elements);
            found.alike = first == last && unlike == 0;
        }
        Ok(())
    }

    pub(super) fn updated(
        &mut self,
        request: u32,
        changed: u64,
        overrun: u64,
        found: &Found,
        events: &mut Events,
    ) {
        let size = self.oracle.size.unwrap_or(1);
        let operation = &mut self.operations[request as usize];
        let (key, Some(stream)) = (operation.key, operation.tag) else { return };
        let value_bits = operation.layout.as_ref().map_or(0, |layout| layout.value_bits);
        if changed & value_bits == 0 {
            // Something else of the record has changed.
            return;
        }
        let Some(number) = found.number else { return };
        let last = operation.last.replace(number);
        let step = last.map_or(1, |last| number.wrapping_sub(last));
        let missed = u64::try_from(step - 1).unwrap_or(0);
        let says_so = overrun & value_bits != 0;
        let is_owned = self.oracle.is_targets(key) || number >> 32 == key.cast_signed();
        let note = match () {
            () if found.count != size => Some("another number of elements than expected"),
            () if !found.alike => Some("the elements of one value differ"),
            () if !is_owned => Some("the value belongs to another record"),
            () if step <= 0 => Some("the value does not advance"),
            () if says_so && last.is_some() && missed == 0 => {
                Some("a value is said to be left out, and none is missing")
            }
            () => None,
        };
        if let Some(note) = note {
            let received = format!("{number} after {last:?}");
            self.found(What::Monitor, key, note.to_owned(), received, events);
        }
        events.updates.push(Update {
            stream,
            missed,
            merged: if says_so { missed } else { 0 },
            wrong: note.is_some(),
            made_unix_ns: found.made_unix_ns(),
        });
    }

    /// Opens the window of a monitor again, by half of it at a time.
    pub(super) fn acknowledge(&mut self, request: u32, out: &mut Output) {
        let operation = &mut self.operations[request as usize];
        operation.unacknowledged += 1;
        if !self.updates.pipeline || operation.unacknowledged < QUEUE_SIZE / 2 {
            return;
        }
        let count = std::mem::take(&mut operation.unacknowledged);
        let number = operation.channel;
        let channel = self.server_number(number);
        let asking = RequestHead { channel, request, subcommand: subcommand::ACKNOWLEDGE };
        self.say(Command::Monitor, out, |writer| {
            asking.write(writer);
            writer.u32(count);
        });
    }
}
