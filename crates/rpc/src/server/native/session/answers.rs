//! What a connection of own frames sends of a call: its head, messages, and end.

use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;

use super::super::waiting::Waiting;
use super::{Session, cut};
use crate::protocol::metadata::Metadata;
use crate::protocol::native::fields;
use crate::protocol::native::frame::{DETAILS, Header, Kind, METADATA, MOST_METADATA_BYTES};
use crate::protocol::status::{Code, Status};
use base::many;

/// An answer from here on needs memory, or its call ends without it; smaller ones are always sent.
const LARGE_BYTES: usize = 4 << 10;

impl Session {
    /// Sends the metadata before the first message.
    pub(super) fn push_head(&mut self, id: u64, call: &Waiting) -> Result<(), Status> {
        let block = call.exchanged.with(|exchange| fields::block(&exchange.headers));
        let block = block.ok_or_else(metadata_too_large)?;
        self.make_room(block.len(), Some(call), "metadata")?;
        let header = Header { length: block.len() as u32, ..Header::of(Kind::Head, id) };
        self.out.push(&header, &block);
        Ok(())
    }

    /// Sends a message of a stream.
    pub(super) fn push_message(
        &mut self,
        id: u64,
        call: &Waiting,
        message: &Bytes,
    ) -> Result<(), Status> {
        let most = self.client.as_ref().map_or(0, |one| one.max_message);
        if message.len() > most as usize {
            let words =
                format!("a message of {} is over the client's {most}", many(message.len(), "byte"));
            return Err(Status::new(Code::ResourceExhausted, words));
        }
        self.make_room(message.len(), Some(call), "a message")?;
        self.shared.counters.sent.fetch_add(1, Relaxed);
        let header = Header { length: message.len() as u32, ..Header::of(Kind::Message, id) };
        self.out.push(&header, message);
        Ok(())
    }

    /// Takes memory for what is to be sent, unless it is small, beside what its call keeps, if that
    /// goes on: it isn't among those that wait.
    fn make_room(
        &mut self,
        length: usize,
        call: Option<&Waiting>,
        what: &str,
    ) -> Result<(), Status> {
        if length < LARGE_BYTES {
            return Ok(());
        }
        let kept = call.map_or(0, Waiting::kept_bytes);
        if self.taken.set(self.counted() + kept + length).is_ok() {
            return Ok(());
        }
        let words = format!(
            "{what} of {} finds no memory (the server's --max-memory)",
            many(length, "byte")
        );
        Err(Status::new(Code::ResourceExhausted, words))
    }

    /// The answer of a call, if the client and the memory take it, with its metadata.
    pub(super) fn room_for(&mut self, answer: Bytes, metadata: usize) -> Result<Bytes, Status> {
        let (length, most) = (answer.len(), self.client.as_ref().map_or(0, |one| one.max_message));
        let done = "the call was carried out, but its answer";
        if length > most as usize {
            let words = format!("{done} of {} is over the client's {most}", many(length, "byte"));
            return Err(Status::new(Code::ResourceExhausted, words));
        }
        self.make_room(length + metadata, None, done).map(|()| answer)
    }

    /// Ends a call whose function didn't wait, or that ends without it.
    pub(super) fn answer(&mut self, id: u64, result: Result<Bytes, Status>) {
        let result = result.and_then(|answer| self.room_for(answer, 0));
        self.end_call(id, result.map(Some), &Bytes::new());
    }

    pub(super) fn answer_with(
        &mut self,
        id: u64,
        result: Result<Option<Bytes>, Status>,
        trailers: &Metadata,
    ) {
        let has_some = trailers.iter().next().is_some();
        let prefix = if has_some { fields::prefix(trailers) } else { Some(Bytes::new()) };
        let result = match (result, &prefix) {
            (Ok(_), None) => Err(metadata_too_large()),
            (Ok(Some(answer)), Some(prefix)) => self.room_for(answer, prefix.len()).map(Some),
            (Ok(None), Some(prefix)) => self
                .make_room(prefix.len(), None, "metadata behind the last message")
                .map(|()| None),
            (other, _) => other,
        };
        self.end_call(id, result, &prefix.unwrap_or_default());
    }

    /// Sends the end of a call, for whose answer there is room; `prefix` is the metadata behind it.
    #[inline]
    fn end_call(&mut self, id: u64, result: Result<Option<Bytes>, Status>, prefix: &Bytes) {
        let flags = if prefix.is_empty() { 0 } else { METADATA };
        match result {
            Ok(answer) => {
                let kind = if answer.is_some() { Kind::Answer } else { Kind::End };
                self.shared.counters.sent.fetch_add(u64::from(answer.is_some()), Relaxed);
                let header = Header { flags, ..Header::of(kind, id) };
                self.push(header, prefix, &answer.unwrap_or_default());
            }
            Err(status) => {
                self.shared.counters.ended(status.code);
                let header = Header { flags, ..Header::of(Kind::Failure, id) };
                self.push_failure(header, prefix, &status);
            }
        }
    }

    /// Sends why a call has failed. Metadata and details without room are left out, and details of
    /// over 64 KiB.
    fn push_failure(&mut self, header: Header, prefix: &Bytes, status: &Status) {
        let text = cut(&status.message);
        let header = Header { method: status.code as u32, ..header };
        let details = match status.details.len() {
            0..=MOST_METADATA_BYTES => &status.details[..],
            _ => &[],
        };
        if self.make_room(prefix.len() + details.len(), None, "the end").is_err() {
            return self.push(Header { flags: 0, ..header }, &[], &text);
        }
        if details.is_empty() {
            return self.push(header, prefix, &text);
        }
        let length = (details.len() as u32).to_le_bytes();
        let first = [&prefix[..], &length, details].concat();
        self.push(Header { flags: header.flags | DETAILS, ..header }, &first, &text);
    }

    pub(super) fn push(&mut self, header: Header, first: &[u8], rest: &Bytes) {
        // A message is checked against a limit of 32 bits, a text is cut.
        let length = (first.len() + rest.len()) as u32;
        self.out.push_parts(&Header { length, ..header }, first, rest);
    }
}

fn metadata_too_large() -> Status {
    let words = "the call was carried out, but the metadata of its answer are over 64 KiB";
    Status::new(Code::ResourceExhausted, words)
}
