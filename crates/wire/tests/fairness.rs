//! What a request waits for while many connections are sent to: a bounded number of bytes.

use crate::common::{client, read_line, serve};
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use wire::{Backend, Config, Connection, Flow, Input, Ns, Output, ProtocolError, Wake};

/// Connections that are sent to without end.
const BULK: usize = 64;

const CHUNK_BYTES: usize = 64 << 10;

/// What the connections share; they are all of one thread.
#[derive(Default)]
struct Plan {
    /// Holds the thread until all requests are there.
    held: Mutex<Option<(Sender<()>, Receiver<()>)>>,
    /// The good client's socket, through which the thread itself sends the request.
    good: Mutex<Option<TcpStream>>,
    /// Bytes answered to the others since then.
    answered_bytes: AtomicUsize,
}

/// Answers `bulk` without end, and `good` with what has been answered to others meanwhile.
struct Server(Arc<Plan>);

impl Server {
    fn fill(&self, out: &mut Output) {
        while !out.is_full() {
            out.put(&[b'x'; CHUNK_BYTES]);
            self.0.answered_bytes.fetch_add(CHUNK_BYTES, SeqCst);
        }
    }
}

impl Connection for Server {
    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        let line = input.bytes().to_vec();
        input.consume(line.len());
        match line.as_slice() {
            b"hold\n" => {
                if let Some((ready, go)) = self.0.held.lock().expect("no panic").take() {
                    ready.send(()).expect("the test waits");
                    go.recv().expect("all requests are there");
                }
            }
            b"bulk\n" => {
                // With the first turn, the good client's request arrives.
                if let Some(mut good) = self.0.good.lock().expect("no panic").take() {
                    good.write_all(b"good\n").expect("sent");
                    self.0.answered_bytes.store(0, SeqCst);
                }
                self.fill(out);
            }
            b"good\n" => out.put(format!("{}\n", self.0.answered_bytes.load(SeqCst)).as_bytes()),
            _ => {}
        }
        Ok(Flow::Continue)
    }

    fn resume(&mut self, _: Ns, why: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        if why == Wake::Drained {
            self.fill(out);
        }
        Ok(Flow::Continue)
    }
}

#[test]
fn a_request_waits_for_a_bounded_number_of_bytes_that_others_are_sent() {
    for backend in [Backend::Epoll, Backend::Auto] {
        let plan = Arc::new(Plan::default());
        let shared = Arc::clone(&plan);
        let config = Config { backend, ..Config::default() };
        let turn_bytes = config.turn_bytes;
        let (_server, address) = serve(config, move |_| Server(Arc::clone(&shared)));
        let mut bulk: Vec<_> = (0..BULK).map(|_| client(address)).collect();
        let (mut good, mut holder) = (client(address), client(address));
        let ((ready, is_ready), (go, goes)) = (channel(), channel());
        *plan.held.lock().expect("no panic") = Some((ready, goes));
        *plan.good.lock().expect("no panic") = Some(good.try_clone().expect("a copy"));
        holder.write_all(b"hold\n").expect("sent");
        is_ready.recv().expect("the thread is held");
        bulk.iter_mut().for_each(|one| one.write_all(b"bulk\n").expect("sent"));
        go.send(()).expect("the thread waits");
        let answered: usize = read_line(&mut good).trim_end().parse().expect("a number");
        // Twice four turns, and for each of the others the least share and a full output.
        let most = 8 * turn_bytes + BULK * (turn_bytes / 32 + (256 << 10) + CHUNK_BYTES);
        assert!(answered <= most, "{answered} bytes, more than {most} ({backend:?})");
    }
}
