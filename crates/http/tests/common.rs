//! One connection without a socket, and what it has come to.

use http::load::SERVICE;
use load::{Dialect, Done, Events, Finding, Op, Scenario, Speaks};
use wire::{Input, Output, ProtocolError};

/// A workload as a suite writes it.
pub(crate) fn resolve(text: &str) -> Result<Scenario, String> {
    Scenario::parse(text, &SERVICE).map_err(|error| format!("{}: {error}", error.key))
}

/// A workload of one request; `rest` is the rest of its table.
pub(crate) fn one(rest: &str) -> Scenario {
    resolve(&format!("service='http'\noperation='a'\n[[request]]\nname='a'\n{rest}"))
        .expect("right")
}

/// One connection and what it has come to.
pub(crate) struct Bench {
    pub(crate) dialect: Box<dyn Dialect>,
    pub(crate) input: Input,
    pub(crate) events: Events,
    pub(crate) out: Output,
}

impl Bench {
    pub(crate) fn of(workload: &Scenario) -> Self {
        Self::with(workload, "").expect("a connection")
    }

    /// A connection with these options of the dialect, as a suite writes them.
    pub(crate) fn with(workload: &Scenario, options: &str) -> Result<Self, ProtocolError> {
        let options = options.parse().expect("well formed");
        let speaks = Speaks { options, ..Speaks::plainly(&SERVICE.dialects[0]) };
        let dialect = workload.begin().dialect(&speaks)?;
        let (input, events, out) = (Input::new(), Events::default(), Output::new(1 << 20));
        Ok(Self { dialect, input, events, out })
    }

    /// Asks for these operations, with their places as tags, and returns the bytes to be sent.
    pub(crate) fn asks(&mut self, operations: &[usize]) -> Vec<u8> {
        for (tag, operation) in operations.iter().enumerate() {
            let op = Op { operation: *operation, what: 7 };
            self.dialect.request(0, tag as u32, op, &mut self.out);
        }
        self.out.take()
    }

    pub(crate) fn gets(&mut self, bytes: &[u8]) -> Result<(), ProtocolError> {
        self.input.append(bytes);
        self.dialect.receive(0, &mut self.input, &mut self.events, &mut self.out)
    }

    /// Asks once and gets `answer`, in one piece and byte by byte: the findings are the same.
    pub(crate) fn finds(workload: &Scenario, answer: &[u8]) -> (Done, Vec<Finding>) {
        let outcome = |size: usize| {
            let mut bench = Self::of(workload);
            bench.asks(&[0]);
            let faults = answer.chunks(size).filter_map(|piece| bench.gets(piece).err()).count();
            if bench.events.done.is_empty() && faults == 0 {
                bench.dialect.closed(0, &mut bench.events).expect("the end of the body");
            }
            assert_eq!(bench.events.done.len(), 1);
            (bench.events.done[0], bench.events.findings)
        };
        let whole = outcome(answer.len());
        assert_eq!(outcome(1), whole);
        whole
    }

    /// The tags of the answered requests, each with whether it was right.
    pub(crate) fn answered(&mut self) -> Vec<(u32, bool)> {
        self.events.done.drain(..).map(|done| (done.tag, done.wrong == 0)).collect()
    }

    /// The note and the bytes of the one wrong answer.
    pub(crate) fn found(workload: &Scenario, answer: &[u8]) -> (String, String) {
        let (done, findings) = Self::finds(workload, answer);
        assert_eq!((done.wrong, findings.len()), (1, 1));
        let text = String::from_utf8_lossy(&findings[0].received).into_owned();
        (findings[0].note.clone(), text)
    }
}

/// A right answer with this body.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// What a right answer to the first request comes to.
pub(crate) const RIGHT: Done = Done::right(0);
