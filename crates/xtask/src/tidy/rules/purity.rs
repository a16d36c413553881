//! What is pure stays pure. A service's `protocol` and `model` open no socket and know no clock
//! but the `now` handed in, so that the server, the load, the fuzzer and the golden tests run
//! the same code; `judge` works on slices of numbers and does no I/O at all, and `findings` reads
//! nothing but the ledger.

use super::{Rule, SERVICES};
use crate::tidy::names::mentions;
use crate::tidy::tree::{File, Finding, Tree};

const NO_IO: &[&str] = &["std::fs", "std::io", "std::net", "std::process"];

const DOORS: &[&str] = &[
    "Instant::now",
    "SystemTime::now",
    "TcpListener",
    "TcpStream",
    "UdpSocket",
    "UnixDatagram",
    "UnixListener",
    "UnixStream",
    "mio",
    "rustix",
    "socket2",
    "std::fs",
    "std::process",
    "thread::sleep",
    "tokio",
];

pub(super) const RULE: Rule = Rule {
    name: "purity",
    doc: "`judge` and `findings` do no I/O; a service's `protocol` and `model` open nothing and \
          read no clock.",
    check,
};

fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.rust() {
        for (line, name) in mentions(file, banned(file)) {
            let advice = format!("hand in what `{name}` would bring: this file is pure");
            found.push(file.finding(line, advice));
        }
    }
    found
}

fn banned(file: &File) -> &'static [&'static str] {
    if ["crates/judge/src/", "crates/findings/src/"].iter().any(|at| file.path.starts_with(at)) {
        return NO_IO;
    }
    let Some((package, inside)) =
        file.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"))
    else {
        return &[];
    };
    let is_pure = |part: &str| part.starts_with("protocol") || part.starts_with("model");
    let is_door = inside.split('/').any(is_pure);
    if SERVICES.contains(&package) && is_door { DOORS } else { &[] }
}

#[cfg(test)]
mod tests {
    use super::super::lines;
    use super::*;

    #[test]
    fn judge_and_findings_do_no_io() {
        let text = "use std::{\n    fmt,\n    io,\n};\n";
        assert_eq!(lines(&RULE, &[("crates/judge/src/lib.rs", text)]), [3]);
        assert_eq!(lines(&RULE, &[("crates/findings/src/lib.rs", text)]), [3]);
        assert!(lines(&RULE, &[("crates/judge/tests/a.rs", text)]).is_empty());
        assert!(lines(&RULE, &[("crates/lab/src/lib.rs", text)]).is_empty());
    }

    #[test]
    fn doors_open_no_socket_and_read_no_clock() {
        let text = "use std::net::{IpAddr, TcpStream};\nfn f() {\n    Instant::now();\n}\n";
        for path in
            ["protocol.rs", "protocol/text.rs", "model/lru.rs", "model_tests.rs", "x/model/y.rs"]
        {
            let path = format!("crates/cache/src/{path}");
            assert_eq!(lines(&RULE, &[(&path, text)]), [1, 3], "{path}");
        }
        for path in ["crates/cache/src/server.rs", "crates/lab/src/model.rs"] {
            assert!(lines(&RULE, &[(path, text)]).is_empty(), "{path}");
        }
    }

    #[test]
    fn addresses_and_given_times_are_values() {
        let text = "use std::net::SocketAddr;\nfn f(at: std::time::Instant) {}\n";
        assert!(lines(&RULE, &[("crates/rpc/src/model.rs", text)]).is_empty());
    }
}
