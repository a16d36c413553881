//! Requests behind the last answer of a connection that its server closes.

use std::collections::VecDeque;

use base::units::Rate;
use lab::drive::LoadResult;
use lab::plan::{Arrivals, Clients, Spacing};
use load::{Dialect, DialectRow, Done, Events, Kind, Op, Operation, Reach, Service, Tag};
use wire::{Connection, Flow, Input, Ns, Output, ProtocolError};

use super::common::{self, Client};

/// A request is `?`, its answer `.`, and `!` with the last one of a connection.
struct Toy {
    may_repeat: bool,
    in_flight: VecDeque<Tag>,
}

impl Dialect for Toy {
    fn request(&mut self, _: Ns, tag: Tag, _: Op, out: &mut Output) {
        self.in_flight.push_back(tag);
        out.put(b"?");
    }

    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        events: &mut Events,
        _: &mut Output,
    ) -> Result<(), ProtocolError> {
        while let Some(byte) = input.bytes().first().copied() {
            input.consume(1);
            let tag = self.in_flight.pop_front().ok_or(ProtocolError::new("to nothing"))?;
            events.done.push(Done::right(tag));
            if byte == b'!' {
                events.close = true;
                break;
            }
        }
        Ok(())
    }

    fn may_repeat(&self, _: Tag) -> bool {
        self.may_repeat
    }

    fn repeat(&mut self, out: &mut Output) {
        self.in_flight.iter().for_each(|_| out.put(b"?"));
    }

    fn expire(&mut self, tag: Tag) {
        self.in_flight.retain(|one| *one != tag);
    }
}

static HARMLESS: DialectRow = DialectRow::new("harmless", "", Reach::Stream);
static HARMFUL: DialectRow = DialectRow::new("harmful", "", Reach::Stream);

static OPERATIONS: [Operation; 1] = [Operation::new("ask", Kind::Read, "")];

static SERVICE: Service = Service {
    name: "toy",
    doc: "",
    read: |part| {
        common::read(part, &OPERATIONS, 0, |dialect| {
            let may_repeat = dialect == "harmless";
            Client::Dialect(Box::new(Toy { may_repeat, in_flight: VecDeque::new() }))
        })
    },
    dialects: &[],
};

/// A server that closes with every third answer.
struct Closing {
    answered: u32,
}

impl Connection for Closing {
    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        while !input.is_empty() {
            input.consume(1);
            self.answered += 1;
            if self.answered == 3 {
                out.put(b"!");
                return Ok(Flow::Close);
            }
            out.put(b".");
        }
        Ok(Flow::Continue)
    }
}

fn run(dialect: &'static DialectRow, arrivals: Arrivals) -> LoadResult {
    let scenario = common::scenario(&SERVICE, "operation = 'ask'");
    let clients =
        Clients { connections: 2, pipeline: 8, arrivals, threads: 1, ..common::clients() };
    let server = common::serve(|| Closing { answered: 0 });
    common::load(server, dialect, &scenario, clients, |session| {
        session.run(200_000_000).expect("a result")
    })
}

#[test]
fn requests_that_may_be_repeated_are_sent_again_on_the_next_connection() {
    let open = Arrivals::open(Rate { per_second: 2_000.0 }, Spacing::Constant);
    for arrivals in [Arrivals::Closed, open.clone()] {
        let result = run(&HARMLESS, arrivals.clone());
        assert_eq!((result.trouble, result.counts.wrong), (None, 0), "{arrivals}");
        assert_eq!(result.counts.missing, 0, "{arrivals}");
        assert!(result.counts.operations > 20, "{}", result.counts.operations);
        if arrivals == open {
            assert_eq!(result.counts.operations, 400, "every scheduled request is answered");
        }
    }
}

#[test]
fn requests_that_may_have_been_carried_out_are_missing() {
    let result = run(&HARMFUL, Arrivals::Closed);
    assert_eq!((result.trouble, result.counts.wrong), (None, 0));
    assert!(result.counts.missing > 0 && result.counts.operations > 20);
    // In an open loop the places of missing requests are free again.
    let open = Arrivals::open(Rate { per_second: 2_000.0 }, Spacing::Constant);
    let result = run(&HARMFUL, open);
    assert_eq!(result.counts.operations + result.counts.missing, 400);
}
