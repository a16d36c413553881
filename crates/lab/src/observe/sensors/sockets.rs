//! What goes wrong between sockets: connections refused for want of room, segments sent again,
//! datagrams thrown away.

use super::super::sensor::{Line, Probe, Reader, Scope, Sensor};
use super::super::source::{Scratch, Source, lines, number, words};

/// The row.
pub(in super::super) static SENSOR: Sensor = Sensor {
    name: "sockets",
    doc: "TCP segments sent again, connections lost to a full listen queue, time-outs, \
          acknowledgements held back until their timer ran out; datagrams lost to a full receive \
          or send buffer; on the whole host",
    source: "/proc/net/snmp, /proc/net/netstat",
    unseen: "never, save in a sandbox; another network namespace's sockets always",
    every: 5,
    series: &[
        Line::rate("tcp_retransmits"),
        Line::rate("udp_receive_errors"),
        Line::rate("udp_send_errors"),
        Line::rate("listen_overflows"),
        Line::rate("listen_drops"),
        Line::rate("tcp_timeouts"),
        Line::rate("tcp_delayed_acks"),
    ],
    of: Reader::Host(open),
};

const SNMP: &[(&str, &str)] =
    &[("Tcp:", "RetransSegs"), ("Udp:", "RcvbufErrors"), ("Udp:", "SndbufErrors")];
const NETSTAT: &[(&str, &str)] = &[
    ("TcpExt:", "ListenOverflows"),
    ("TcpExt:", "ListenDrops"),
    ("TcpExt:", "TCPTimeouts"),
    ("TcpExt:", "DelayedACKs"),
];

fn open(_: &Scope) -> Box<dyn Probe> {
    let mut scratch = Scratch::new();
    let mut table = |path, wanted| {
        let source = Source::open(path);
        let places = source.read(&mut scratch).map(|text| places(text, wanted));
        (source, places.unwrap_or_default())
    };
    Box::new(Sockets([table("/proc/net/snmp", SNMP), table("/proc/net/netstat", NETSTAT)]))
}

/// Where a figure stands: its line's first word, and its word in that line.
type Place = (&'static str, Option<usize>);

struct Sockets([(Source, Vec<Place>); 2]);

impl Probe for Sockets {
    fn read(&mut self, scratch: &mut Scratch, readings: &mut [Option<u64>]) {
        let mut readings = readings.iter_mut();
        for (source, places) in &self.0 {
            let text = source.read(scratch).unwrap_or_default();
            for (place, reading) in places.iter().zip(&mut readings) {
                *reading = figure(text, *place);
            }
        }
    }
}

/// Kernels differ in which columns they have: they are looked up by name, once.
fn places(text: &[u8], wanted: &'static [(&'static str, &'static str)]) -> Vec<Place> {
    let place = |(head, name): &(&'static str, &str)| {
        let header = lines(text).find(|line| line.starts_with(head.as_bytes()));
        (*head, header.and_then(|line| words(line).position(|word| word == name.as_bytes())))
    };
    wanted.iter().map(place).collect()
}

/// The second line with a head holds its figures.
fn figure(text: &[u8], (head, column): Place) -> Option<u64> {
    let figures = lines(text).filter(|line| line.starts_with(head.as_bytes())).nth(1)?;
    words(figures).nth(column?).and_then(number)
}

#[test]
fn columns_are_found_by_their_names() {
    let text = b"Ip: Forwarding DefaultTTL\nIp: 2 64\n\
        Tcp: RtoAlgorithm MaxConn OutSegs RetransSegs InErrs\nTcp: 1 -1 58722495 10124 0\n\
        Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 13 0 0 13 4\n\
        UdpLite: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdpLite: 9 9 9 9 9\n";
    let places = places(text, SNMP);
    let figures: Vec<_> = places.into_iter().map(|place| figure(text, place)).collect();
    assert_eq!(figures, [Some(10_124), Some(4), None]);
}
