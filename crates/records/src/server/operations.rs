//! Operations on channels: get, put, put-get, monitor, process, call. Data plane, but for how they
//! begin.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use wire::{Output, ProtocolError};

use super::calls;
use super::channel::{Channel, Identity, Target};
use super::in_flight::Sending;
use super::inbox::{Inbox, Notifier};
use super::monitor::Monitor;
use super::putlog::PutEntry;
use super::respond::{refuse, respond, respond_status};
use super::service::{Service, count};
use crate::model::{Filters, Record};
use crate::protocol::messages::{RequestHead, ResponseHead, Text, subcommand};
use crate::protocol::{
    Bits, Command, Item, Reader, Registry, Request, SHARED_OPTION, Selection, Severity, Status,
    Type, Value, located_type,
};

/// The operations of a connection, by the client's numbers.
pub(super) type Operations = HashMap<u32, ActiveOperation, RandomState>;

/// An operation that has begun.
#[derive(Debug)]
pub(super) struct ActiveOperation {
    /// The server's number of its channel.
    pub(super) channel: u32,
    pub(super) what: Action,
}

/// The action of an operation, and what it is done to.
#[derive(Debug)]
pub(super) enum Action {
    Get(Arc<Record>, Part),
    Put(Arc<Record>, Part, Scratch),
    /// What is put, and what is got.
    PutGet(Arc<Record>, [Part; 2], Scratch),
    Monitor(Box<Monitor>),
    Process(Arc<Record>),
    Call,
}

/// What of a record is read or written.
#[derive(Debug)]
pub(super) struct Part {
    fields: Bits,
    filters: Filters,
}

/// Holds the values of a put while they are checked; it keeps its memory.
#[derive(Debug, Default)]
pub(super) struct Scratch(Vec<Value>);

/// The parts of a connection that its operations use.
pub(super) struct Context<'a> {
    pub(super) service: &'a Arc<Service>,
    pub(super) known: &'a mut Registry,
    pub(super) inbox: &'a Arc<Inbox>,
    pub(super) identity: Option<&'a Identity>,
    pub(super) sending: &'a mut Sending,
    pub(super) out: &'a mut Output,
}

/// Begins an operation. What follows the head in the message is the client's request.
pub(super) fn begin(
    context: &mut Context<'_>,
    command: Command,
    head: RequestHead,
    channel: &Channel,
    reader: &mut Reader<'_>,
) -> Result<Option<ActiveOperation>, ProtocolError> {
    let item = reader.item(context.known);
    let is_monitor = command == Command::Monitor;
    let room = (is_monitor && head.has(subcommand::ACKNOWLEDGE)).then(|| reader.u32());
    reader.end()?;
    let request = Request::of(item.as_ref());
    let what = match (&channel.target, command) {
        (_, Command::Rpc) => Ok(Action::Call),
        (Target::Service, _) => Err("this channel can only be called".to_owned()),
        (Target::Record(record), _) if record.is_gone() => Err("the record is no more".to_owned()),
        (Target::Record(record), command) => {
            operation(context, command, head, record, &request, room)
        }
    };
    match what {
        Ok(what) => {
            let kind = what.kinds();
            respond(context.out, command, |writer| {
                ResponseHead { request: head.request, subcommand: subcommand::INIT }.write(writer);
                Status::ok().write(writer);
                kind.into_iter().flatten().for_each(|kind| writer.kind(Some(kind)));
            });
            Ok(Some(ActiveOperation { channel: channel.server_id, what }))
        }
        Err(why) => {
            refuse(context.out, command, head, &why);
            Ok(None)
        }
    }
}

fn operation(
    context: &mut Context<'_>,
    command: Command,
    head: RequestHead,
    record: &Arc<Record>,
    request: &Request,
    room: Option<u32>,
) -> Result<Action, String> {
    let part = |selection: &Option<Selection>| Part::of(selection.as_ref(), record.kind());
    let record = || Arc::clone(record);
    match command {
        Command::Get => Ok(Action::Get(record(), part(&request.field)?)),
        Command::Put => {
            let part = part(&request.field)?;
            Ok(Action::Put(record(), part, Scratch::default()))
        }
        Command::PutGet => {
            let put = part(&request.put_field)?;
            let get = part(&request.get_field)?;
            Ok(Action::PutGet(record(), [put, get], Scratch::default()))
        }
        Command::Process => Ok(Action::Process(record())),
        Command::Monitor => {
            let Part { fields: wanted, filters } = part(&request.field)?;
            let queue = queue(context, head, &record(), request);
            let notifier = Notifier::new(context.inbox, head.request);
            let subscription = record().subscribe(queue, Arc::clone(&notifier) as _);
            let window = request.is_on("pipeline").then(|| room.unwrap_or(0).into());
            let is_local = context.identity.is_some_and(Identity::is_local) && filters.is_empty();
            let placed = (is_local && request.is_on(SHARED_OPTION))
                .then(|| located_type(record().kind()))
                .flatten();
            let is_running = false;
            let monitor =
                Monitor { subscription, notifier, wanted, filters, placed, is_running, window };
            Ok(Action::Monitor(Box::new(monitor)))
        }
        _ => Err("there is no such operation".to_owned()),
    }
}

impl Part {
    /// What is selected; all, without a selection.
    fn of(selection: Option<&Selection>, kind: &Type) -> Result<Self, String> {
        let fields = match selection {
            Some(selection) => selection.bits(kind),
            None => Selection::default().bits(kind),
        };
        let none = || "the request selects no field that the record has".to_owned();
        Ok(Self { fields: fields.ok_or_else(none)?, filters: Filters::of(selection, kind)? })
    }
}

/// Returns how many versions may wait for a monitor: what the client asks for, within limits; a
/// MESSAGE reports a queue that is cut.
fn queue(
    context: &mut Context<'_>,
    head: RequestHead,
    record: &Record,
    request: &Request,
) -> usize {
    const USUAL: usize = 4;
    let limits = &context.service.limits;
    let asked = request.option::<usize>("queueSize");
    let bytes = record.read(|nodes| {
        nodes.iter().filter_map(Value::as_array).map(|array| array.bytes().len()).sum::<usize>()
    });
    let most = limits.queue.min((limits.queue_bytes / bytes.max(1)).max(2));
    let queue = asked.unwrap_or(USUAL).max(1).min(most);
    let is_unclear = asked.is_none() && request.options.contains_key("queueSize");
    if is_unclear || asked.is_some_and(|asked| asked != queue) {
        let text = format!("the queue has {queue} places, which is what can be had").into();
        let notice = Text { request: head.request, severity: Severity::Warning, text };
        respond(context.out, Command::Message, |writer| notice.write(writer));
    }
    queue
}

impl Action {
    /// The types that the answer to a beginning names.
    fn kinds(&self) -> [Option<&Type>; 2] {
        match self {
            Self::Get(record, _) | Self::Put(record, ..) => [Some(record.kind()), None],
            Self::PutGet(record, ..) => [Some(record.kind()); 2],
            Self::Monitor(monitor) => [Some(monitor.kind()), None],
            Self::Process(_) | Self::Call => [None, None],
        }
    }

    /// The command that begins such an operation.
    fn command(&self) -> Command {
        match self {
            Self::Get(..) => Command::Get,
            Self::Put(..) => Command::Put,
            Self::PutGet(..) => Command::PutGet,
            Self::Monitor(_) => Command::Monitor,
            Self::Process(_) => Command::Process,
            Self::Call => Command::Rpc,
        }
    }
}

/// Runs an operation that has begun.
#[inline]
pub(super) fn go_on(
    context: &mut Context<'_>,
    command: Command,
    head: RequestHead,
    channel: &Channel,
    what: &mut Action,
    reader: &mut Reader<'_>,
) -> Result<(), ProtocolError> {
    if command != what.command() {
        return Err(ProtocolError::new("an operation is asked for what it doesn't do"));
    }
    match what {
        Action::Get(record, part) => respond_part(context, command, head, record, part),
        Action::Put(record, part, _) if head.has(subcommand::GET) => {
            respond_part(context, command, head, record, part);
        }
        Action::Put(record, part, scratch) => {
            let status = put(context, channel, record, part, scratch, reader, |_, _, _| ())?;
            respond_status(context.out, command, head, &status);
        }
        Action::PutGet(record, [_, get], _) if head.has(subcommand::GET) => {
            respond_part(context, command, head, record, get);
        }
        Action::PutGet(record, [put, _], _) if head.has(subcommand::GET_PUT) => {
            respond_part(context, command, head, record, put);
        }
        Action::PutGet(record, [part, get], scratch) => {
            let then = |sending: &mut Sending, out: &mut Output, nodes: &[Value]| {
                sending.add(&get.fields, nodes);
                respond_held(out, command, head, record.kind(), get, nodes);
            };
            let status = put(context, channel, record, part, scratch, reader, then)?;
            if status.is_success() {
                count(&context.service.counts.gets, 1);
            } else {
                respond_status(context.out, command, head, &status);
            }
        }
        Action::Process(record) => {
            let is_writable = record.is_writable() && channel.may_put;
            let status = match (record.is_gone(), is_writable) {
                (true, _) => Status::error(format!("{} is no more", record.name())),
                (_, false) => Status::error(format!("{} can only be read", record.name())),
                _ => {
                    record.process(context.service.time());
                    Status::ok()
                }
            };
            respond_status(context.out, command, head, &status);
        }
        Action::Monitor(monitor) => control(monitor, head, reader)?,
        Action::Call => {
            let item = reader.item(context.known);
            reader.end()?;
            call(context, head, channel, item.as_ref());
        }
    }
    Ok(())
}

/// Writes the selected part of a record.
#[inline]
fn respond_part(
    context: &mut Context<'_>,
    command: Command,
    head: RequestHead,
    record: &Record,
    part: &mut Part,
) {
    count(&context.service.counts.gets, 1);
    record.read(|nodes| {
        context.sending.add(&part.fields, nodes);
        respond_held(context.out, command, head, record.kind(), part, nodes);
    });
}

#[inline]
fn respond_held(
    out: &mut Output,
    command: Command,
    head: RequestHead,
    kind: &Type,
    part: &mut Part,
    nodes: &[Value],
) {
    let Part { fields, filters } = part;
    if filters.is_empty() {
        return respond_nodes(out, command, head, kind, fields, nodes);
    }
    // A get sends all selected fields each time, whatever a filter makes of their changes.
    let nodes = filters.apply(Service::now(), nodes, &mut fields.clone());
    respond_nodes(out, command, head, kind, fields, &nodes);
}

#[inline]
fn respond_nodes(
    out: &mut Output,
    command: Command,
    head: RequestHead,
    kind: &Type,
    wanted: &Bits,
    nodes: &[Value],
) {
    respond(out, command, |writer| {
        ResponseHead { request: head.request, subcommand: head.subcommand }.write(writer);
        Status::ok().write(writer);
        writer.changed(kind, wanted, nodes);
    });
}

/// Puts what the client sends. `then` sees what the record holds before anybody else may change it.
fn put(
    context: &mut Context<'_>,
    channel: &Channel,
    record: &Record,
    part: &Part,
    scratch: &mut Scratch,
    reader: &mut Reader<'_>,
    then: impl FnOnce(&mut Sending, &mut Output, &[Value]),
) -> Result<Status, ProtocolError> {
    scratch.0.resize(record.kind().width(), Value::Structure);
    let fields = reader.changed(record.kind(), context.known, &mut scratch.0);
    reader.end()?;
    count(&context.service.counts.puts, 1);
    let time = context.service.time();
    let result = match channel.may_put {
        true => record
            .put(time, &fields, &mut scratch.0, &part.filters, |nodes| {
                then(context.sending, context.out, nodes);
            })
            .map_err(|why| why.to_string()),
        false => Err(format!("you may not change {}", record.name())),
    };
    if let (Some(log), Some(identity)) = (&context.service.put_log, context.identity) {
        let refused = result.as_ref().err().map(String::as_str);
        log.note(&PutEntry { time, identity, record, fields: &fields, refused });
    }
    Ok(match result {
        Ok(()) => Status::ok(),
        Err(why) => {
            // A refused value isn't kept until the next put.
            scratch.0.clear();
            Status::error(why)
        }
    })
}

/// Starts or stops a monitor, or adds to its window.
fn control(
    monitor: &mut Monitor,
    head: RequestHead,
    reader: &mut Reader<'_>,
) -> Result<(), ProtocolError> {
    if head.has(subcommand::ACKNOWLEDGE) {
        let more = u64::from(reader.u32());
        reader.end()?;
        if let Some(window) = &mut monitor.window {
            *window = window.saturating_add(more);
        }
    }
    if head.has(subcommand::CONTROL) {
        monitor.is_running = head.has(subcommand::START);
    }
    monitor.notifier.list();
    Ok(())
}

fn call(context: &mut Context<'_>, head: RequestHead, channel: &Channel, item: Option<&Item>) {
    count(&context.service.counts.calls, 1);
    let answer = match &channel.target {
        Target::Service => calls::answer(context.service, channel, item),
        Target::Record(record) => Err(format!("{} can't be called", record.name())),
    };
    match answer {
        Ok(item) => respond(context.out, Command::Rpc, |writer| {
            ResponseHead { request: head.request, subcommand: head.subcommand }.write(writer);
            Status::ok().write(writer);
            writer.item(Some(&item));
        }),
        Err(why) => refuse(context.out, Command::Rpc, head, &why),
    }
}
