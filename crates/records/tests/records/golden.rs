//! Every message that pvxs was heard to say is understood, and would be said just so.

use std::collections::HashMap;

use records::protocol::messages::{
    ChannelCreated, CreateChannels, Introduction, Named, Offer, RequestHead, ResponseHead, Search,
    SearchResponse, subcommand,
};
use records::protocol::{
    Bits, Command, HEADER_BYTES, Header, Item, Order, Reader, Registry, Request, Sender, Status,
    Type, Writer, message, zeros,
};

/// What has to be remembered of a conversation to understand what follows.
#[derive(Default)]
struct Conversation {
    /// The types of operations.
    kinds: HashMap<u32, Type>,
    known: [Registry; 2],
    values: Vec<Item>,
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

impl Conversation {
    /// Understands one message and says it again.
    fn repeat(&mut self, bytes: &[u8]) -> Vec<u8> {
        let header = Header::read(bytes.first_chunk().unwrap()).unwrap();
        if header.is_control {
            return header.bytes().to_vec();
        }
        let mut reader = Reader::new(&bytes[HEADER_BYTES..], header.order);
        let mut out = Vec::new();
        let (command, sender, order) = (header.command(), header.sender, header.order);
        let into = &mut out;
        macro_rules! again {
            ($read:expr) => {{
                let payload = $read;
                message(into, sender, order, command, |writer| payload.write(writer));
            }};
        }
        let known = &mut self.known[usize::from(sender == Sender::Server)];
        match (command, sender) {
            (Command::Validation, Sender::Server) => again!(Offer::read(&mut reader)),
            (Command::Validation, _) => again!(Introduction::read(&mut reader, known)),
            (Command::Validated, _) => again!(Status::read(&mut reader)),
            (Command::Search, _) => again!(Search::read(&mut reader)),
            (Command::SearchResponse, _) => again!(SearchResponse::read(&mut reader)),
            (Command::CreateChannel, Sender::Client) => again!(CreateChannels::read(&mut reader)),
            (Command::CreateChannel, _) => again!(ChannelCreated::read(&mut reader)),
            (Command::DestroyRequest, _) => again!(Named::read(&mut reader)),
            (_, Sender::Client) => {
                let body = self.request(&mut reader, command, order);
                message(into, sender, order, command, |writer| writer.raw(&body));
            }
            (_, Sender::Server) => {
                let body = self.answer(&mut reader, command, order);
                message(into, sender, order, command, |writer| writer.raw(&body));
            }
        }
        reader.end().unwrap();
        assert_eq!(reader.left(), 0, "{command:?} from the {sender:?}");
        out
    }

    fn changed(&mut self, reader: &mut Reader<'_>, request: u32, side: usize) -> (Bits, Item) {
        let kind = self.kinds[&request].clone();
        let mut nodes = zeros(&kind);
        let changed = reader.changed(&kind, &mut self.known[side], &mut nodes);
        let item = Item::of(kind, nodes).unwrap();
        self.values.push(item.clone());
        (changed, item)
    }

    fn request(&mut self, reader: &mut Reader<'_>, command: Command, order: Order) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, order);
        let operation = RequestHead::read(reader);
        operation.write(&mut writer);
        if operation.has(subcommand::INIT) {
            let item = reader.item(&mut self.known[0]).unwrap();
            let mut request = Request::of(Some(&item));
            // pvxs says the parts in the order of their use; the order means nothing.
            if !request.options.is_empty() {
                assert_eq!(request.option::<u32>("queueSize"), Some(4));
                assert!(request.is_on("pipeline"));
                request.options.clear();
            } else {
                assert_eq!(request.item(), item);
            }
            writer.item(Some(&item));
        } else if command == Command::Rpc {
            writer.item(reader.item(&mut self.known[0]).as_ref());
        } else if command == Command::Put && !operation.has(subcommand::GET) {
            let (changed, item) = self.changed(reader, operation.request, 0);
            writer.changed(item.kind(), &changed, item.nodes());
        }
        if command == Command::Monitor && operation.has(subcommand::ACKNOWLEDGE) {
            writer.u32(reader.u32());
        }
        out
    }

    fn answer(&mut self, reader: &mut Reader<'_>, command: Command, order: Order) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, order);
        let answer = ResponseHead::read(reader);
        answer.write(&mut writer);
        let is_update = command == Command::Monitor && !answer.has(subcommand::INIT);
        if !is_update {
            Status::read(reader).write(&mut writer);
        }
        if answer.has(subcommand::INIT) && command != Command::Rpc {
            let kind = reader.kind(&mut self.known[1]).unwrap();
            writer.kind(Some(&kind));
            self.kinds.insert(answer.request, kind);
        } else if command == Command::Rpc && reader.left() > 0 {
            writer.item(reader.item(&mut self.known[1]).as_ref());
        } else if reader.left() > 0 {
            let (changed, item) = self.changed(reader, answer.request, 1);
            writer.changed(item.kind(), &changed, item.nodes());
        }
        if is_update {
            let overrun = Bits::read(reader, self.kinds[&answer.request].width());
            overrun.write(&mut writer);
        }
        out
    }
}

#[test]
fn what_pvxs_says_is_understood_and_said_again() {
    let mut conversation = Conversation::default();
    let mut count = 0;
    for line in include_str!("golden/pvxs.txt").lines() {
        let Some((_, hex)) = line.split_once(' ').filter(|(side, _)| *side != "#") else {
            continue;
        };
        let said = bytes(hex);
        assert_eq!(conversation.repeat(&said), said, "{line}");
        count += 1;
    }
    assert!(count > 40, "{count} messages");
    let every = conversation.values.iter().find(|item| item.get("ast").is_some()).unwrap();
    assert_eq!(every.text("s"), Some("hé"));
    assert_eq!(every.get("u").unwrap().to_string(), "yes");
    assert_eq!(every.get("v").unwrap().to_string(), "42");
    assert_eq!(every.get("as").unwrap().to_string(), r#"["a", "", "bc"]"#);
}
