//! What a client does with a channel: get, put, put-get, monitor, process, calls. Data plane, but
//! for how operations begin.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use wire::{Output, ProtocolError};

use super::calls;
use super::connection::{Channel, Target, Who};
use super::monitors::{Inbox, Monitor, News};
use super::putlog::PutEntry;
use super::service::{Service, count};
use crate::model::{Filters, Record};
use crate::protocol::messages::{Answer, Operation, Text, subcommand};
use crate::protocol::{
    Bits, Command, Item, Order, Reader, Registry, Request, SHARED_OPTION, Selection, Sender,
    Severity, Sink, Status, Type, Value, Writer, message, placed_kind,
};

/// The operations of a connection, by the client's numbers.
pub(super) type Operations = HashMap<u32, Running, RandomState>;

/// An operation that has begun.
#[derive(Debug)]
pub(super) struct Running {
    /// The server's number of its channel.
    pub(super) channel: u32,
    pub(super) what: What,
}

/// What an operation does.
#[derive(Debug)]
pub(super) enum What {
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

/// Where what is put lies while it is looked at; it keeps its memory.
#[derive(Debug, Default)]
pub(super) struct Scratch(Vec<Value>);

/// What operations need of their connection.
pub(super) struct Context<'a> {
    pub(super) service: &'a Arc<Service>,
    pub(super) known: &'a mut Registry,
    pub(super) inbox: &'a Arc<Inbox>,
    pub(super) who: Option<&'a Who>,
    pub(super) out: &'a mut Output,
}

/// Writes a message of the server.
pub(super) fn say<S: Sink>(out: &mut S, command: Command, body: impl FnOnce(&mut Writer<'_, S>)) {
    message(out, Sender::Server, Order::Little, command, body);
}

/// Says how an operation went, and nothing more.
fn say_status(out: &mut Output, command: Command, head: Operation, status: &Status) {
    say(out, command, |writer| {
        Answer { request: head.request, subcommand: head.subcommand }.write(writer);
        status.write(writer);
    });
}

/// Refuses to begin or to do something.
pub(super) fn refuse(out: &mut Output, command: Command, head: Operation, why: &str) {
    let is_update = command == Command::Monitor && !head.has(subcommand::INIT);
    // A monitor's message carries a status only where it begins or ends.
    let also = if is_update { subcommand::DESTROY } else { 0 };
    let head = Operation { subcommand: head.subcommand | also, ..head };
    say_status(out, command, head, &Status::error(why));
}

/// Begins an operation. What follows the head in the message is the client's request.
pub(super) fn begin(
    context: &mut Context<'_>,
    command: Command,
    head: Operation,
    channel: &Channel,
    reader: &mut Reader<'_>,
) -> Result<Option<Running>, ProtocolError> {
    let item = reader.item(context.known);
    let is_monitor = command == Command::Monitor;
    let room = (is_monitor && head.has(subcommand::ACKNOWLEDGE)).then(|| reader.u32());
    reader.end()?;
    let request = Request::of(item.as_ref());
    let what = match (&channel.target, command) {
        (_, Command::Rpc) => Ok(What::Call),
        (Target::Service, _) => Err("this channel can only be called".to_owned()),
        (Target::Record(record), _) if record.is_gone() => Err("the record is no more".to_owned()),
        (Target::Record(record), command) => {
            operation(context, command, head, record, &request, room)
        }
    };
    match what {
        Ok(what) => {
            let kind = what.kinds();
            say(context.out, command, |writer| {
                Answer { request: head.request, subcommand: subcommand::INIT }.write(writer);
                Status::ok().write(writer);
                kind.into_iter().flatten().for_each(|kind| writer.kind(Some(kind)));
            });
            Ok(Some(Running { channel: channel.server_id, what }))
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
    head: Operation,
    record: &Arc<Record>,
    request: &Request,
    room: Option<u32>,
) -> Result<What, String> {
    let part = |selection: &Option<Selection>| Part::of(selection.as_ref(), record.kind());
    let record = || Arc::clone(record);
    match command {
        Command::Get => Ok(What::Get(record(), part(&request.field)?)),
        Command::Put => {
            let part = part(&request.field)?;
            Ok(What::Put(record(), part, Scratch::default()))
        }
        Command::PutGet => {
            let put = part(&request.put_field)?;
            let get = part(&request.get_field)?;
            Ok(What::PutGet(record(), [put, get], Scratch::default()))
        }
        Command::Process => Ok(What::Process(record())),
        Command::Monitor => {
            let Part { fields: wanted, filters } = part(&request.field)?;
            let queue = queue(context, head, &record(), request);
            let news = News::new(context.inbox, head.request);
            let subscription = record().subscribe(queue, Arc::clone(&news) as _);
            let window = request.is_on("pipeline").then(|| room.unwrap_or(0).into());
            let is_here = context.who.is_some_and(Who::is_here) && filters.is_empty();
            let placed = (is_here && request.is_on(SHARED_OPTION))
                .then(|| placed_kind(record().kind()))
                .flatten();
            let is_running = false;
            let monitor =
                Monitor { subscription, news, wanted, filters, placed, is_running, window };
            Ok(What::Monitor(Box::new(monitor)))
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

/// How many versions may wait for a monitor: what the client asks for, within limits that it is
/// told of when it passes them.
fn queue(context: &mut Context<'_>, head: Operation, record: &Record, request: &Request) -> usize {
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
        let told = Text { request: head.request, severity: Severity::Warning, text };
        say(context.out, Command::Message, |writer| told.write(writer));
    }
    queue
}

impl What {
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

/// Does what a client asks of an operation that has begun.
#[inline]
pub(super) fn go_on(
    context: &mut Context<'_>,
    command: Command,
    head: Operation,
    channel: &Channel,
    what: &mut What,
    reader: &mut Reader<'_>,
) -> Result<(), ProtocolError> {
    if command != what.command() {
        return Err(ProtocolError::new("an operation is asked for what it doesn't do"));
    }
    match what {
        What::Get(record, part) => say_part(context, command, head, record, part),
        What::Put(record, part, _) if head.has(subcommand::GET) => {
            say_part(context, command, head, record, part);
        }
        What::Put(record, part, scratch) => {
            let status = put(context, channel, record, part, scratch, reader, |_, _| ())?;
            say_status(context.out, command, head, &status);
        }
        What::PutGet(record, [_, get], _) if head.has(subcommand::GET) => {
            say_part(context, command, head, record, get);
        }
        What::PutGet(record, [put, _], _) if head.has(subcommand::GET_PUT) => {
            say_part(context, command, head, record, put);
        }
        What::PutGet(record, [part, get], scratch) => {
            let say = |out: &mut Output, nodes: &[Value]| {
                say_held(out, command, head, record.kind(), get, nodes);
            };
            let status = put(context, channel, record, part, scratch, reader, say)?;
            if status.is_success() {
                count(&context.service.counts.gets, 1);
            } else {
                say_status(context.out, command, head, &status);
            }
        }
        What::Process(record) => {
            let is_writable = record.is_writable() && channel.may_put;
            let status = match (record.is_gone(), is_writable) {
                (true, _) => Status::error(format!("{} is no more", record.name())),
                (_, false) => Status::error(format!("{} can only be read", record.name())),
                _ => {
                    record.process(Service::now());
                    Status::ok()
                }
            };
            say_status(context.out, command, head, &status);
        }
        What::Monitor(monitor) => control(monitor, head, reader)?,
        What::Call => {
            let item = reader.item(context.known);
            reader.end()?;
            call(context, head, channel, item.as_ref());
        }
    }
    Ok(())
}

/// Says what a record holds, of the part that is wanted.
#[inline]
fn say_part(
    context: &mut Context<'_>,
    command: Command,
    head: Operation,
    record: &Record,
    part: &mut Part,
) {
    count(&context.service.counts.gets, 1);
    record.read(|nodes| say_held(context.out, command, head, record.kind(), part, nodes));
}

#[inline]
fn say_held(
    out: &mut Output,
    command: Command,
    head: Operation,
    kind: &Type,
    part: &mut Part,
    nodes: &[Value],
) {
    let Part { fields, filters } = part;
    if filters.is_empty() {
        return say_nodes(out, command, head, kind, fields, nodes);
    }
    // One that has been begun to be used again sends all that it's asked for each time.
    let nodes = filters.apply(Service::now(), nodes, &mut fields.clone());
    say_nodes(out, command, head, kind, fields, &nodes);
}

#[inline]
fn say_nodes(
    out: &mut Output,
    command: Command,
    head: Operation,
    kind: &Type,
    wanted: &Bits,
    nodes: &[Value],
) {
    say(out, command, |writer| {
        Answer { request: head.request, subcommand: head.subcommand }.write(writer);
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
    then: impl FnOnce(&mut Output, &[Value]),
) -> Result<Status, ProtocolError> {
    scratch.0.resize(record.kind().width(), Value::Structure);
    let fields = reader.changed(record.kind(), context.known, &mut scratch.0);
    reader.end()?;
    count(&context.service.counts.puts, 1);
    let time = Service::now();
    let result = match channel.may_put {
        true => record
            .put(time, &fields, &mut scratch.0, &part.filters, |nodes| then(context.out, nodes))
            .map_err(|why| why.to_string()),
        false => Err(format!("you may not change {}", record.name())),
    };
    if let (Some(log), Some(who)) = (&context.service.put_log, context.who) {
        let refused = result.as_ref().err().map(String::as_str);
        log.note(&PutEntry { time, who, record, fields: &fields, refused });
    }
    Ok(match result {
        Ok(()) => Status::ok(),
        Err(why) => {
            // What was refused isn't kept until the next put.
            scratch.0.clear();
            Status::error(why)
        }
    })
}

/// Starts or stops a monitor, or gives it room.
fn control(
    monitor: &mut Monitor,
    head: Operation,
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
    monitor.news.list();
    Ok(())
}

fn call(context: &mut Context<'_>, head: Operation, channel: &Channel, item: Option<&Item>) {
    count(&context.service.counts.calls, 1);
    let answer = match &channel.target {
        Target::Service => calls::answer(context.service, channel, item),
        Target::Record(record) => Err(format!("{} can't be called", record.name())),
    };
    match answer {
        Ok(item) => say(context.out, Command::Rpc, |writer| {
            Answer { request: head.request, subcommand: head.subcommand }.write(writer);
            Status::ok().write(writer);
            writer.item(Some(&item));
        }),
        Err(why) => refuse(context.out, Command::Rpc, head, &why),
    }
}
