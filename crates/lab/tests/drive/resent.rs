//! Requests behind the last answer of a connection that its server closes.

use std::path::Path;

use lab::drive::Piece;
use lab::plan::{Arrivals, Clients, Spacing};
use load::units::Rate;
use load::{WorkloadSpec, http};
use wire::{Connection, Flow, Input, Ns, Output, ProtocolError};

use crate::common;

/// A web server that says `connection: close` with every third answer, and closes.
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
        let end = |bytes: &[u8]| bytes.windows(4).position(|four| four == b"\r\n\r\n");
        while let Some(at) = end(input.bytes()) {
            input.consume(at + 4);
            self.answered += 1;
            let closes = self.answered == 3;
            let close = if closes { "connection: close\r\n" } else { "" };
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n{close}\r\nok");
            out.put(answer.as_bytes());
            if closes {
                return Ok(Flow::Close);
            }
        }
        Ok(Flow::Continue)
    }
}

fn run(method: &str, arrivals: Arrivals) -> Piece {
    let text = format!(
        "service='http'\noperation='a'\n[[request]]\nname='a'\npath='/'\nmethod='{method}'\n\
         expect.body='ok'"
    );
    let workload = toml::from_str::<WorkloadSpec>(&text).expect("well formed");
    let workload = workload.resolve_in(&http::SERVICE, Path::new("")).expect("right");
    let clients =
        Clients { connections: 2, pipeline: 8, arrivals, threads: 1, ..common::clients() };
    let server = common::serve(|| Closing { answered: 0 });
    common::load(server, &http::SERVICE.dialects[0], &workload, clients, |session| {
        session.run(200_000_000).expect("a piece")
    })
}

#[test]
fn requests_that_may_be_repeated_are_said_again_on_the_next_connection() {
    let open = Arrivals::open(Rate { per_second: 2_000.0 }, Spacing::Constant);
    for arrivals in [Arrivals::Closed, open.clone()] {
        let piece = run("GET", arrivals.clone());
        assert_eq!((piece.trouble, piece.counts.wrong), (None, 0), "{arrivals}");
        assert_eq!(piece.counts.missing, 0, "{arrivals}");
        assert!(piece.counts.operations > 20, "{}", piece.counts.operations);
        if arrivals == open {
            assert_eq!(piece.counts.operations, 400, "every scheduled request is answered");
        }
    }
}

#[test]
fn requests_that_may_have_been_carried_out_are_missing() {
    let piece = run("POST", Arrivals::Closed);
    assert_eq!((piece.trouble, piece.counts.wrong), (None, 0));
    assert!(piece.counts.missing > 0 && piece.counts.operations > 20);
    // In an open loop the places of missing requests are free again.
    let open = Arrivals::open(Rate { per_second: 2_000.0 }, Spacing::Constant);
    let piece = run("POST", open);
    assert_eq!(piece.counts.operations + piece.counts.missing, 400);
}
