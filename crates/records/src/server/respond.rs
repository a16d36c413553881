//! Writing the server's messages.

use wire::Output;

use crate::protocol::messages::{RequestHead, ResponseHead, subcommand};
use crate::protocol::{Command, Order, Sender, Sink, Status, Writer, message};

/// Writes a message to the client.
pub(super) fn respond<S: Sink>(
    out: &mut S,
    command: Command,
    body: impl FnOnce(&mut Writer<'_, S>),
) {
    message(out, Sender::Server, Order::Little, command, body);
}

/// Writes the status of an operation, and nothing more.
pub(super) fn respond_status(
    out: &mut Output,
    command: Command,
    head: RequestHead,
    status: &Status,
) {
    respond(out, command, |writer| {
        ResponseHead { request: head.request, subcommand: head.subcommand }.write(writer);
        status.write(writer);
    });
}

/// Refuses to begin an operation, or to go on with one.
pub(super) fn refuse(out: &mut Output, command: Command, head: RequestHead, why: &str) {
    let is_update = command == Command::Monitor && !head.has(subcommand::INIT);
    // A monitor's message carries a status only where it begins or ends.
    let also = if is_update { subcommand::DESTROY } else { 0 };
    let head = RequestHead { subcommand: head.subcommand | also, ..head };
    respond_status(out, command, head, &Status::error(why));
}
