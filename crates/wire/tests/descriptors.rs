//! Out of descriptors: accepting pauses and goes on.
//! In a process of its own, as it lowers its limit.

use crate::common::{alone, client, echo, serve, until};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use wire::Config;

/// Takes descriptors until there are none left.
fn take_all() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

fn ask(client: &mut TcpStream) {
    client.write_all(b"hello\n").expect("write");
    client.read_exact(&mut [0; 6]).expect("an answer");
}

#[test]
fn out_of_descriptors_accepting_pauses_and_does_not_spin() {
    alone(
        "descriptors::out_of_descriptors_accepting_pauses_and_does_not_spin",
        run_out_of_descriptors,
    );
}

fn run_out_of_descriptors() {
    let (server, address) = serve(Config::default(), |_| echo());
    let mut first = client(address);
    ask(&mut first);
    let limits = getrlimit(Resource::Nofile);
    // Room for the client's own descriptor and none for the server's.
    let mut tight = limits;
    tight.current = limits.current.map_or(Some(256), |current| Some(current.min(256)));
    setrlimit(Resource::Nofile, tight).expect("a lower limit");
    let mut taken = take_all();
    drop(taken.pop());
    let mut second = client(address);
    until("accepting is suspended", || server.counters().listen_disabled > 0);
    ask(&mut first);
    setrlimit(Resource::Nofile, limits).expect("the old limit");
    ask(&mut second);
    // It has been tried again ten times a second at most, which is a handful of times by now
    // wherever a second isn't an hour.
    let disabled = server.counters().listen_disabled;
    assert!(disabled < 1000, "tried {disabled} times");
    until("all is as before", || server.counters().accepting);
    drop(taken);
}
