//! The server side of a connection, without a socket: what clients say, in whatever order.

use std::sync::Arc;

use super::session::Session;
use proptest::prelude::*;
use records::model::{Record, Time, declare};
use records::protocol::messages::{
    ChannelCreated, CreateChannels, DestroyChannel, FieldType, GetField, Named, RequestHead,
    ResponseHead, subcommand,
};
use records::protocol::{
    Bits, Command, Header, Item, Order, Registry, Request, Sender, Severity, Status, Type, Value,
    control, zeros,
};
use records::server::{Limits, Service};
use wire::Output;

const RECORDS: &str = r#"
    [[record]]
    name = "number"
    type = "double"
    value = 1.5
    control = { low = 0, high = 10 }

    [[record]]
    name = "array"
    type = "long[]"
    value = [1, 2, 3]
"#;

fn service() -> Arc<Service> {
    let service = Service::new(Limits { channels: 4, operations: 8, ..Limits::default() });
    service.declare(declare(RECORDS).unwrap()).unwrap();
    service
}

/// Opens a channel, and begins an operation on it, with the number 7.
fn begun(session: &mut Session, command: Command, name: &str, text: &str) -> (u32, Type) {
    begun_as(session, command, name, 7, text)
}

fn begun_as(
    session: &mut Session,
    command: Command,
    name: &str,
    request: u32,
    text: &str,
) -> (u32, Type) {
    let channel = session.channel(name);
    let head = RequestHead { channel, request, subcommand: subcommand::INIT };
    let item = Request::parse(text).unwrap().item();
    let answers = session.say(command, |writer| {
        head.write(writer);
        writer.item(Some(&item));
    });
    let mut reader = answers[0].reader();
    assert_eq!((ResponseHead::read(&mut reader).request, answers.len()), (request, 1));
    assert_eq!(Status::read(&mut reader), Status::ok());
    (channel, reader.kind(&mut Registry::default()).unwrap())
}

fn update(answer: &super::session::Said, kind: &Type) -> (Bits, Item, Bits) {
    let mut reader = answer.reader();
    assert_eq!(answer.command, Command::Monitor);
    assert_eq!(ResponseHead::read(&mut reader).subcommand, 0);
    let mut nodes = zeros(kind);
    let changed = reader.changed(kind, &mut Registry::default(), &mut nodes);
    let overrun = Bits::read(&mut reader, kind.width());
    reader.end().unwrap();
    assert_eq!(reader.left(), 0);
    (changed, Item::of(kind.clone(), nodes).unwrap(), overrun)
}

#[test]
fn a_slow_subscriber_gets_the_newest_versions_and_is_told_what_was_lost() {
    let service = service();
    let mut session = Session::introduced(&service);
    let request = "record[queueSize=2]field(value)";
    let (channel, kind) = begun(&mut session, Command::Monitor, "number", request);
    let start = RequestHead { channel, request: 7, subcommand: 0x44 };
    let first = session.say(Command::Monitor, |writer| start.write(writer));
    assert_eq!(update(&first[0], &kind).1.get("value"), Some(&Value::Double(1.5)));
    let record = service.find("number").unwrap();
    for step in 1..=5 {
        record.update(Time::default(), |draft| draft.set(1, Value::Double(f64::from(step))));
    }
    assert_eq!(session.wakes(), 2, "for the first and, as that may wait for more, the second");
    let told = session.resume();
    let told: Vec<_> = told.iter().map(|answer| update(answer, &kind)).collect();
    let shown: Vec<_> = told
        .iter()
        .map(|(changed, item, overrun)| {
            let value = item.get("value").unwrap().to_string();
            (changed.iter().collect::<Vec<_>>(), value, overrun.contains(1))
        })
        .collect();
    assert_eq!(shown, [(vec![1], "4".to_owned(), true), (vec![1], "5".to_owned(), false)]);
    let stop = RequestHead { subcommand: subcommand::CONTROL, ..start };
    session.say(Command::Monitor, |writer| stop.write(writer));
    record.update(Time::default(), |draft| draft.set(1, Value::Double(9.0)));
    assert!(session.resume().is_empty(), "it was stopped");
    let end = Named { channel, request: 7 };
    session.say(Command::DestroyRequest, |writer| end.write(writer));
    assert_eq!(record.subscribers(), 0);
}

/// A session that monitors two records, by the numbers 0 and 1, and has heard what they hold.
fn watching() -> (Session, [Arc<Record>; 2]) {
    let service = Service::new(Limits::default());
    let names = ["one", "two"];
    let declared = names.map(|name| format!("[[record]]\nname = \"{name}\"\ntype = \"double\"\n"));
    service.declare(declare(&declared.concat()).unwrap()).unwrap();
    let mut session = Session::introduced(&service);
    for (request, name) in (0..).zip(names) {
        let text = "record[queueSize=2]field(value)";
        let (channel, _) = begun_as(&mut session, Command::Monitor, name, request, text);
        let start = RequestHead { channel, request, subcommand: 0x44 };
        assert_eq!(session.say(Command::Monitor, |writer| start.write(writer)).len(), 1);
    }
    (session, names.map(|name| service.find(name).unwrap()))
}

fn post(record: &Record, value: u32) {
    record.update(Time::default(), |draft| draft.set(1, Value::Double(value.into())));
}

#[test]
fn news_that_come_soon_after_a_send_wait_for_more_but_not_for_a_second_of_the_same_monitor() {
    let (mut session, [one, two]) = watching();
    post(&one, 1);
    assert_eq!(session.resume_now().len(), 0, "something was sent at this moment");
    assert_eq!(session.waits_ns(), Some(50_000));
    let wakes = session.wakes();
    post(&two, 1);
    assert_eq!(session.wakes(), wakes, "the wait ends by itself, and one is enough");
    assert_eq!(session.resume_now().len(), 0);
    assert_eq!(session.resume().len(), 2, "in one send");
    assert_eq!(session.waits_ns(), None);
    let wakes = session.wakes();
    post(&one, 2);
    post(&one, 3);
    assert_eq!(session.wakes(), wakes + 2);
    assert_eq!(session.resume_now().len(), 2, "a queue of two was full");
}

#[test]
fn what_a_full_output_leaves_has_no_time_and_is_said_once_it_has_drained() {
    let (mut session, [one, two]) = watching();
    post(&one, 1);
    post(&two, 1);
    assert_eq!(session.resume_now().len(), 0);
    session.out = Output::new(1);
    session.pass(session.waits_ns().unwrap());
    assert_eq!((session.resume_now().len(), session.waits_ns()), (1, None), "one has filled it");
    assert_eq!((session.resume_now().len(), session.waits_ns()), (1, None));
}

#[test]
fn a_pipelined_monitor_says_no_more_than_there_is_room_for() {
    let service = service();
    let mut session = Session::introduced(&service);
    let channel = session.channel("number");
    let head = RequestHead { channel, request: 7, subcommand: 0x88 };
    let item = Request::parse("record[pipeline=true,queueSize=3]").unwrap().item();
    session.say(Command::Monitor, |writer| {
        head.write(writer);
        writer.item(Some(&item));
        writer.u32(2);
    });
    let start = RequestHead { subcommand: 0x44, ..head };
    assert_eq!(session.say(Command::Monitor, |writer| start.write(writer)).len(), 1);
    let record = service.find("number").unwrap();
    let post = || record.update(Time::default(), |draft| draft.set(1, Value::Double(2.0)));
    (0..3).for_each(|_| post());
    assert_eq!(session.resume().len(), 1, "there was room for two in all");
    assert!(session.resume().is_empty());
    let more = RequestHead { subcommand: subcommand::ACKNOWLEDGE, ..head };
    let answers = session.say(Command::Monitor, |writer| {
        more.write(writer);
        writer.u32(5);
    });
    assert_eq!(answers.len(), 2);
}

#[test]
fn filters_hold_back_what_is_not_wanted() {
    let service = service();
    let mut session = Session::introduced(&service);
    let request = "field(value[array=1:2])";
    let (channel, kind) = begun(&mut session, Command::Get, "array", request);
    let get = RequestHead { channel, request: 7, subcommand: 0 };
    let answers = session.say(Command::Get, |writer| get.write(writer));
    let mut reader = answers[0].reader();
    ResponseHead::read(&mut reader);
    Status::read(&mut reader);
    let mut nodes = zeros(&kind);
    reader.changed(&kind, &mut Registry::default(), &mut nodes);
    assert_eq!(nodes[1].to_string(), "[2, 3]");
    let mut session = Session::introduced(&service);
    let request = "record[queueSize=9]field(value[deadband=abs:1])";
    let (channel, kind) = begun(&mut session, Command::Monitor, "number", request);
    let start = RequestHead { channel, request: 7, subcommand: 0x44 };
    let mut told = session.say(Command::Monitor, |writer| start.write(writer));
    let record = service.find("number").unwrap();
    for step in 4..9 {
        let value = Value::Double(f64::from(step) * 0.5);
        record.update(Time::default(), |draft| draft.set(1, value));
    }
    told.extend(session.resume());
    let told = told.iter().map(|said| update(said, &kind).1.get("value").unwrap().to_string());
    assert_eq!(told.collect::<Vec<_>>(), ["1.5", "2.5", "3.5"]);
}

/// A gateway passes on what is asked for of a get's fields: it has to know which they are.
#[test]
fn a_get_names_each_of_its_fields_as_pvxs_does() {
    let mut session = Session::introduced(&service());
    for (request, text, fields) in [
        (7, "field()", &[1, 3, 4, 5, 7, 8, 9][..]),
        (8, "", &[1, 3, 4, 5, 7, 8, 9]),
        (9, "field(timeStamp)", &[7, 8, 9]),
    ] {
        let (channel, kind) = begun_as(&mut session, Command::Get, "array", request, text);
        let get = RequestHead { channel, request, subcommand: 0 };
        let answers = session.say(Command::Get, |writer| get.write(writer));
        let mut reader = answers[0].reader();
        ResponseHead::read(&mut reader);
        Status::read(&mut reader);
        let changed = reader.changed(&kind, &mut Registry::default(), &mut zeros(&kind));
        assert!(changed.iter().take(fields.len()).eq(fields.iter().copied()), "{changed:?}");
        let is_structure = |bit| matches!(kind.path(bit), Some((_, Type::Structure(_))));
        assert!(!changed.iter().any(is_structure), "{changed:?}");
    }
}

#[test]
fn a_large_array_is_sent_from_the_record_itself() {
    let service = service();
    let mut session = Session::introduced(&service);
    let bytes = wire::Bytes::from(vec![3; 800_000]);
    let record = service.find("array").unwrap();
    let array = Value::array(records::protocol::Scalar::Long, bytes.clone());
    record.update(Time::default(), |draft| draft.set(1, array));
    let (channel, _) = begun(&mut session, Command::Get, "array", "field(value)");
    let get = RequestHead { channel, request: 7, subcommand: 0 };
    session.put(Command::Get, |writer| get.write(writer));
    let mut pieces = [std::io::IoSlice::new(&[]); 8];
    let count = session.out.pieces(usize::MAX, &mut pieces);
    assert_eq!((count, pieces[1].as_ptr(), pieces[1].len()), (2, bytes.as_ptr(), 800_000));
}

#[test]
fn what_races_with_an_end_is_passed_over_and_what_cannot_be_is_refused() {
    let service = service();
    let mut session = Session::introduced(&service);
    let (channel, _) = begun(&mut session, Command::Get, "number", "");
    let get = RequestHead { channel, request: 7, subcommand: 0 };
    let last = RequestHead { subcommand: subcommand::DESTROY, ..get };
    assert_eq!(session.say(Command::Get, |writer| last.write(writer)).len(), 1);
    assert!(session.say(Command::Get, |writer| get.write(writer)).is_empty());
    let nowhere = RequestHead { channel: 99, ..get };
    assert!(session.say(Command::Put, |writer| nowhere.write(writer)).is_empty());
    for named in [Named { channel, request: 7 }, Named { channel: 99, request: 1 }] {
        assert!(session.say(Command::DestroyRequest, |writer| named.write(writer)).is_empty());
        assert!(session.say(Command::CancelRequest, |writer| named.write(writer)).is_empty());
    }
    let asked = GetField { channel, request: 3, path: "value.nothing".into() };
    let answers = session.say(Command::GetField, |writer| asked.write(writer));
    let told = FieldType::read(&mut answers[0].reader(), &mut Registry::default());
    assert_eq!((told.request, told.status.severity), (3, Severity::Error));
    // The whole channel, and a record under its channel.
    let closing = DestroyChannel { server_id: channel, client_id: 1 };
    assert_eq!(session.say(Command::DestroyChannel, |writer| closing.write(writer)).len(), 1);
    assert!(session.say(Command::DestroyChannel, |writer| closing.write(writer)).is_empty());
    let (channel, _) = begun(&mut session, Command::Get, "number", "");
    service.destroy("number");
    let answers = session.resume();
    assert_eq!(answers[0].command, Command::DestroyChannel);
    assert_eq!(DestroyChannel::read(&mut answers[0].reader()).server_id, channel);
    let asked = CreateChannels(vec![(5, "number".into())]);
    let answers = session.say(Command::CreateChannel, |writer| asked.write(writer));
    assert!(!ChannelCreated::read(&mut answers[0].reader()).status.is_success());
}

#[test]
fn what_breaks_the_protocol_ends_the_connection_with_a_word_why() {
    type Breaks = fn(&mut Session, u32) -> String;
    let cases: [(&str, Breaks); 6] = [
        ("ends in the middle", |session, _| session.fails(Command::CreateChannel, &[1])),
        ("through another channel", |session, _| {
            let other = session.channel("array");
            let mixed = RequestHead { channel: other, request: 7, subcommand: 0 };
            session.fails_with(Command::Get, |writer| mixed.write(writer))
        }),
        ("what it doesn't do", |session, channel| {
            let get = RequestHead { channel, request: 7, subcommand: 0 };
            session.fails_with(Command::Put, |writer| get.write(writer))
        }),
        ("used for another", |session, channel| {
            let init = RequestHead { channel, request: 7, subcommand: subcommand::INIT };
            session.fails_with(Command::Get, |writer| init.write(writer))
        }),
        ("longer than is allowed", |session, _| {
            let long = CreateChannels(vec![(9, "x".repeat(501).into())]);
            session.fails_with(Command::CreateChannel, |writer| long.write(writer))
        }),
        ("larger than the", |session, _| {
            let size = u32::MAX - 1;
            let huge = Header::whole(Sender::Client, Order::Little, Command::Put, size);
            session.fails_raw(&huge.bytes())
        }),
    ];
    for (said, breaks) in cases {
        let mut session = Session::introduced(&service());
        let (channel, _) = begun(&mut session, Command::Get, "number", "");
        let fault = breaks(&mut session, channel);
        assert!(fault.contains(said), "{fault}");
    }
    let early = CreateChannels(vec![(1, "number".into())]);
    let fault =
        Session::new(&service()).fails_with(Command::CreateChannel, |writer| early.write(writer));
    assert!(fault.contains("before the introduction"), "{fault}");
    let large = Header::whole(Sender::Client, Order::Little, Command::Validation, 20_000).bytes();
    let fault = Session::new(&service()).fails_raw(&large);
    assert!(fault.contains("larger than the 16384"), "{fault}");
}

#[test]
fn limits_of_a_connection_are_told_to_that_client() {
    let service = service();
    let mut session = Session::introduced(&service);
    let channels: Vec<_> = (0..4).map(|_| session.channel("number")).collect();
    let fifth = CreateChannels(vec![(9, "number".into())]);
    let answers = session.say(Command::CreateChannel, |writer| fifth.write(writer));
    let told = ChannelCreated::read(&mut answers[0].reader());
    assert_eq!(&*told.status.text, "a connection has at most 4 channels");
    let mut statuses = Vec::new();
    for request in 0..9 {
        let head = RequestHead { channel: channels[0], request, subcommand: subcommand::INIT };
        let answers = session.say(Command::Get, |writer| {
            head.write(writer);
            writer.item(None);
        });
        let mut reader = answers[0].reader();
        ResponseHead::read(&mut reader);
        statuses.push(Status::read(&mut reader));
    }
    assert!(statuses[..8].iter().all(Status::is_success));
    assert_eq!(&*statuses[8].text, "too many operations on one connection");
}

#[test]
fn echoes_come_back_and_unknown_messages_are_passed_over() {
    let mut session = Session::introduced(&service());
    let answers = session.say(Command::Echo, |writer| writer.raw(b"are you there"));
    assert_eq!(answers[0].reader().rest(), b"are you there");
    let ping = Header::control(Sender::Client, Order::Big, control::ECHO_REQUEST, 42);
    let answers = session.raw(&ping.bytes()).unwrap();
    assert_eq!(answers.controls, [(control::ECHO_RESPONSE, 42)]);
    assert!(session.say(Command::Other(0x77), |writer| writer.raw(b"?")).is_empty());
}

proptest! {
    #[test]
    fn no_messages_make_it_panic(
        said in prop::collection::vec(
            (0_u8..0x18, prop::collection::vec(any::<u8>(), 0..40), any::<bool>()), 1..20),
    ) {
        let service = service();
        let mut session = Session::introduced(&service);
        begun(&mut session, Command::Put, "number", "");
        for (code, mut body, is_mine) in said {
            // Half of them name the channel and the operation that there are.
            if is_mine && body.len() >= 9 {
                body[..8].copy_from_slice(&[1, 0, 0, 0, 7, 0, 0, 0]);
            }
            let size = body.len() as u32;
            let header = Header::whole(Sender::Client, Order::Little, code.into(), size);
            if session.raw(&[&header.bytes()[..], &body].concat()).is_err() { break }
            session.resume();
        }
    }
}
