//! Requests, answers and schedules, on both engines.

use std::time::Duration;

use base::units::{Rate, Span};
use lab::drive::{Counts, Figure, LoadResult};
use lab::plan::{Arrivals, Clients, Spacing};
use load::{
    Busy, Caller, Dialect, DialectRow, Done, Events, Finding, Kind, Op, Operation, Outcome, Reach,
    Service, Tag,
};
use wire::{Backend, Connection, Flow, Input, Ns, Output, Peer, ProtocolError, Wake};

use super::common::{self, Client, LONG, SHORT};

/// The toy protocol: a line with a number is answered with the same line. Before the first one the
/// server says "hello", if it greets.
struct Toy {
    waits_for_greeting: bool,
    closes: bool,
    next: u64,
    /// Requests under way, oldest first; an expired one has no tag any more.
    asked: std::collections::VecDeque<(u64, Option<Tag>)>,
}

impl Toy {
    fn boxed(waits_for_greeting: bool, closes: bool) -> Box<dyn Dialect> {
        Box::new(Self { waits_for_greeting, closes, next: 0, asked: Default::default() })
    }
}

impl Dialect for Toy {
    fn opened(&mut self, _: Ns, events: &mut Events, _: &mut Output) -> Result<(), ProtocolError> {
        events.ready = !self.waits_for_greeting;
        Ok(())
    }

    fn request(&mut self, _: Ns, tag: Tag, _: Op, out: &mut Output) {
        self.asked.push_back((self.next, Some(tag)));
        out.put(format!("{}\n", self.next).as_bytes());
        self.next += 1;
    }

    fn prepare(&mut self, now: Ns, tag: Tag, part: u64, out: &mut Output) {
        self.request(now, tag, Op { operation: 0, what: part }, out);
    }

    fn receive(
        &mut self,
        _: Ns,
        input: &mut Input,
        events: &mut Events,
        _: &mut Output,
    ) -> Result<(), ProtocolError> {
        while let Some(end) = input.bytes().iter().position(|byte| *byte == b'\n') {
            let line = input.bytes()[..end].to_vec();
            input.consume(end + 1);
            if line == b"hello" {
                self.waits_for_greeting = false;
                events.ready = true;
                continue;
            }
            let (asked, tag) =
                self.asked.pop_front().ok_or(ProtocolError::new("an answer to nothing"))?;
            let expected = asked.to_string().into_bytes();
            let Some(tag) = tag else { continue };
            let wrong = u32::from(expected != line);
            if wrong > 0 {
                events.found(|| Finding {
                    operation: "say".into(),
                    key: Vec::new(),
                    expected,
                    received: line,
                    note: "not the number that was said".into(),
                });
            }
            events.done.push(Done { wrong, ..Done::right(tag) });
            events.close |= self.closes;
        }
        Ok(())
    }

    fn expire(&mut self, tag: Tag) {
        let place = self.asked.iter_mut().find(|(_, asked)| *asked == Some(tag));
        if let Some(place) = place {
            place.1 = None;
        }
    }
}

static PLAIN: DialectRow = DialectRow::new("plain", "", Reach::Stream);
static GREETED: DialectRow = DialectRow::new("greeted", "", Reach::Stream);
static CLOSING: DialectRow = DialectRow::new("closing", "", Reach::Stream);
static CALLED: DialectRow = DialectRow::new("called", "", Reach::Calls);
static HANGING: DialectRow = DialectRow::new("hanging", "", Reach::Calls);
static LATE: DialectRow = DialectRow::new("late", "", Reach::Calls);
static BUSY: DialectRow = DialectRow::new("busy", "", Reach::Busy);

fn make(dialect: &str) -> Client {
    match dialect {
        "greeted" => Client::Dialect(Toy::boxed(true, false)),
        "closing" => Client::Dialect(Toy::boxed(false, true)),
        "called" => Client::Caller(Box::new(Counting(0))),
        "hanging" => Client::Caller(Box::new(Hanging)),
        "late" => Client::Caller(Box::new(Late)),
        "busy" => Client::Busy(Box::new(Adding::default())),
        _ => Client::Dialect(Toy::boxed(false, false)),
    }
}

static OPERATIONS: [Operation; 2] =
    [Operation::new("say", Kind::Read, ""), Operation::new("shout", Kind::Write, "")];

static SERVICE: Service = Service {
    name: "toy",
    doc: "",
    read: |part| common::read(part, &OPERATIONS, 100, make),
    dialects: &[],
};

const SAY: &str = "operation = 'say'";

/// What the toy server does differently.
#[derive(Clone, Copy, Default)]
struct Habit {
    greets: bool,
    closes: bool,
    /// The answer to the first request comes so late.
    first_after: Option<Duration>,
    /// This answer is wrong.
    wrong_at: Option<u64>,
    /// It closes without an answer at this one.
    leaves_at: Option<u64>,
    /// Each answer takes this long, of all connections one after another.
    takes: Duration,
}

struct ToyServer {
    habit: Habit,
    answered: u64,
    late: Option<(Ns, Vec<u8>)>,
}

impl Connection for ToyServer {
    fn opened(&mut self, _: Ns, _: &Peer, out: &mut Output) -> Result<Flow, ProtocolError> {
        if self.habit.greets {
            out.put(b"hello\n");
        }
        Ok(Flow::Continue)
    }

    fn receive(
        &mut self,
        now: Ns,
        input: &mut Input,
        out: &mut Output,
    ) -> Result<Flow, ProtocolError> {
        while self.late.is_none()
            && let Some(end) = input.bytes().iter().position(|byte| *byte == b'\n')
        {
            let mut line = input.bytes()[..=end].to_vec();
            input.consume(end + 1);
            let number = self.answered;
            self.answered += 1;
            std::thread::sleep(self.habit.takes);
            if self.habit.leaves_at == Some(number) {
                return Ok(Flow::Close);
            }
            if self.habit.wrong_at == Some(number) {
                line[0] = b'x';
            }
            match self.habit.first_after {
                Some(delay) if number == 0 => {
                    self.late = Some((now + delay.as_nanos() as u64, line));
                }
                _ => out.put(&line),
            }
            if self.habit.closes {
                return Ok(Flow::Close);
            }
        }
        Ok(Flow::Continue)
    }

    fn resume(&mut self, _: Ns, why: Wake, out: &mut Output) -> Result<Flow, ProtocolError> {
        if why == Wake::Timer
            && let Some((_, line)) = self.late.take()
        {
            out.put(&line);
        }
        Ok(Flow::Continue)
    }

    fn deadline(&self) -> Option<Ns> {
        self.late.as_ref().map(|(at, _)| *at)
    }
}

/// Three connections on two threads.
fn clients(pipeline: usize, timeout: Span) -> Clients {
    Clients { pipeline, timeout, ..common::clients() }
}

fn serve(habit: Habit) -> (wire::Server, wire::Address) {
    common::serve(move || ToyServer { habit, answered: 0, late: None })
}

/// Runs one piece of `length` with `pipeline` requests under way on each connection.
fn run(
    habit: Habit,
    dialect: &'static DialectRow,
    pipeline: usize,
    timeout: Span,
    length: Duration,
) -> LoadResult {
    run_clients(habit, dialect, clients(pipeline, timeout), length)
}

fn run_clients(
    habit: Habit,
    dialect: &'static DialectRow,
    clients: Clients,
    length: Duration,
) -> LoadResult {
    let workload = common::scenario(&SERVICE, SAY);
    common::load(serve(habit), dialect, &workload, clients, |session| {
        session.run(length.as_nanos() as u64).expect("a result")
    })
}

#[test]
fn every_request_is_answered_checked_and_timed() {
    for pipeline in [1, 7] {
        let result = run(Habit::default(), &PLAIN, pipeline, LONG, SHORT);
        assert_eq!(result.trouble, None);
        assert!(result.counts.operations > 0);
        assert_eq!((result.counts.wrong, result.counts.missing), (0, 0));
        let timed: u64 = result.intervals.iter().map(|interval| interval.histogram.len()).sum();
        assert_eq!(timed, result.counts.operations);
        assert_eq!(result.counts.hits, result.counts.operations);
    }
}

/// In a closed loop a request is due the moment that the last one of its slot is answered, so the
/// latencies of a slot add up to the time from the run's begin to its last answer: however calls
/// are made, no waiting is left out.
#[test]
fn latencies_of_a_closed_loop_leave_no_time_out() {
    for io in [Backend::Epoll, Backend::Auto] {
        let (connections, length_ns) = (80, 200_000_000_u64);
        let many = Clients { connections, threads: 1, io, ..clients(1, LONG) };
        let result = run_clients(Habit::default(), &PLAIN, many, SHORT);
        assert_eq!((result.trouble, result.counts.wrong, result.counts.missing), (None, 0, 0));
        let mut latency = lab::drive::empty_histogram();
        result.intervals.iter().for_each(|one| one.histogram.add_to(&mut latency));
        let sum_ns = latency.mean() * latency.len() as f64;
        assert!(result.duration_ns >= length_ns);
        // The last answer of each slot comes between the length and the end, which is that of the
        // last of all. A bucket is a thousandth wide.
        let [least_ns, most_ns] =
            [length_ns, result.duration_ns].map(|ns| connections as f64 * ns as f64);
        let is_whole = sum_ns > 0.998 * least_ns && sum_ns < 1.002 * most_ns;
        assert!(is_whole, "{sum_ns} of {least_ns} to {most_ns} with {io:?}");
    }
}

/// As many answers as there are connections come behind the end of a piece, and the first answers
/// of the connections come sooner than all others: over the mean time of the connections the rate
/// would be 720/s.
#[test]
fn the_rate_of_a_closed_loop_is_not_above_what_its_target_can_answer() {
    let habit = Habit { takes: Duration::from_millis(2), ..Habit::default() };
    let many = Clients { connections: 80, threads: 1, ..clients(1, LONG) };
    let result = run_clients(habit, &PLAIN, many, Duration::from_millis(100));
    assert_eq!((result.trouble, result.counts.missing), (None, 0));
    let rate = result.counts.operations as f64 * 1e9 / result.loop_ns as f64;
    assert!(rate < 510.0, "{rate} of 500/s, {} answers", result.counts.operations);
    assert!(result.loop_ns >= result.duration_ns);
}

#[test]
fn nothing_is_sent_before_a_greeting_and_everything_after_it() {
    let result = run(Habit { greets: true, ..Habit::default() }, &GREETED, 4, LONG, SHORT);
    assert_eq!((result.trouble, result.counts.wrong), (None, 0));
    assert!(result.counts.operations > 0);
}

#[test]
fn a_service_that_closes_after_each_reply_is_connected_to_again() {
    let result = run(Habit { closes: true, ..Habit::default() }, &CLOSING, 1, LONG, SHORT);
    assert_eq!((result.trouble, result.counts.missing), (None, 0));
    assert!(result.counts.operations > 3, "{} operations", result.counts.operations);
}

#[test]
fn a_late_answer_is_missing_and_not_taken_for_the_next_ones() {
    let late = Some(Duration::from_millis(100));
    let habit = Habit { first_after: late, ..Habit::default() };
    let result = run(habit, &PLAIN, 1, Span::from_ms(10), Duration::from_millis(300));
    assert_eq!(result.trouble, None);
    assert_eq!(result.counts.wrong, 0, "{:?}", result.wrong_answers);
    assert!(result.counts.missing >= 3, "the first of each connection is given up");
    assert!(result.counts.operations > 0, "the connections go on");
    let longest = result.intervals.iter().map(|interval| interval.histogram.max()).max();
    assert!(longest.unwrap() >= 9_990_000, "a missing answer counts with the time waited for it");
}

#[test]
fn a_wrong_answer_is_found_with_its_bytes() {
    let result = run(Habit { wrong_at: Some(5), ..Habit::default() }, &PLAIN, 3, LONG, SHORT);
    assert_eq!(result.counts.wrong, 3, "one on each connection");
    let found = &result.wrong_answers[0].finding;
    assert_eq!((&found.expected[..], &found.received[..]), (&b"5"[..], &b"x"[..]));
}

#[test]
fn a_connection_that_breaks_is_counted_and_made_again_and_its_requests_are_missing() {
    let result = run(Habit { leaves_at: Some(5), ..Habit::default() }, &PLAIN, 1, LONG, SHORT);
    assert_eq!(result.trouble, None);
    assert!(result.fault.unwrap().contains("the target closed the connection"));
    let Counts { broken, missing, operations, .. } = result.counts;
    assert!(broken > 3, "each of three connections breaks more than once: {broken}");
    assert_eq!(missing, broken, "one request was under way on each");
    assert!(operations >= 5 * (broken - 3), "five answers before each: {operations}");
}

#[test]
fn a_schedule_goes_on_when_connections_break() {
    let arrivals = Arrivals::open(Rate { per_second: 2_000.0 }, Spacing::Constant);
    let clients = Clients { arrivals, ..clients(1, LONG) };
    let habit = Habit { leaves_at: Some(5), ..Habit::default() };
    let result = run_clients(habit, &PLAIN, clients, SHORT);
    assert_eq!(result.trouble, None);
    assert!(result.counts.broken > 0);
    assert_eq!(result.counts.operations + result.counts.missing, 400);
}

#[test]
fn a_connection_that_breaks_again_and_again_without_an_answer_is_given_up() {
    // Longer than all pauses between two attempts take on a busy machine; it ends with the last.
    let habit = Habit { leaves_at: Some(0), ..Habit::default() };
    let result = run(habit, &PLAIN, 1, LONG, Duration::from_secs(20));
    assert!(result.trouble.unwrap().contains("the target closed the connection"));
    assert_eq!(result.counts.operations, 0);
    assert!(result.counts.missing >= 3);
}

/// As [`run`], with what the suite says of its clients changed.
fn run_as(change: impl FnOnce(&mut Clients), length: Duration) -> LoadResult {
    let mut clients = clients(1, LONG);
    change(&mut clients);
    run_clients(Habit::default(), &PLAIN, clients, length)
}

#[test]
fn a_schedule_is_kept_with_its_latency_service_time_and_lag() {
    let rate = Rate { per_second: 2000.0 };
    for spin in [false, true] {
        let open = |clients: &mut Clients| {
            clients.arrivals = Arrivals::open(rate, Spacing::Constant);
            clients.spin = spin;
        };
        let result = run_as(open, Duration::from_millis(500));
        assert_eq!((result.trouble, result.counts.wrong, result.counts.missing), (None, 0, 0));
        assert_eq!(result.counts.operations, 1000, "every arrival of half a second is sent");
        assert_eq!(result.pressure.offered, 1000);
        assert!(result.duration_ns >= 500_000_000, "the last answer is not its end");
        for figure in [Figure::Latency, Figure::Service, Figure::Lag] {
            let of_figure = result.intervals.iter().filter(|interval| interval.figure == figure);
            let count: u64 = of_figure.map(|interval| interval.histogram.len()).sum();
            assert_eq!(count, 1000, "{figure:?}");
        }
    }
}

#[test]
fn thinking_slots_pause_between_answer_and_request() {
    let think = |clients: &mut Clients| clients.arrivals = Arrivals::Think(Span::from_ms(100));
    let result = run_as(think, Duration::from_millis(450));
    assert_eq!(result.trouble, None);
    // Three connections with a pause of 100 ms send at most five times each; a busy machine less.
    assert!((3..=15).contains(&result.counts.operations), "{}", result.counts.operations);
}

#[test]
fn connections_are_remade_as_often_as_the_suite_says() {
    for every in [1, 3] {
        let remade = |clients: &mut Clients| clients.reconnect_every = Some(every);
        let result = run_as(remade, SHORT);
        assert_eq!((result.trouble, result.counts.wrong, result.counts.missing), (None, 0, 0));
        // The toy numbers its requests anew on every connection and checks them.
        assert!(result.counts.operations > 3 * every, "{}", result.counts.operations);
    }
}

#[test]
fn no_latency_counts_time_before_its_piece() {
    let remade = Clients { reconnect_every: Some(1), ..clients(1, LONG) };
    let workload = common::scenario(&SERVICE, SAY);
    common::load(serve(Habit::default()), &PLAIN, &workload, remade, |session| {
        for _ in 0..3 {
            let began = std::time::Instant::now();
            let result = session.run(50_000_000).expect("a result");
            let took_ns = began.elapsed().as_nanos() as u64;
            let longest = result.intervals.iter().map(|interval| interval.histogram.max()).max();
            // A bucket's end is up to a thousandth beyond what is in it.
            let most = took_ns + took_ns / 500;
            assert!(longest.expect("answers") <= most, "{longest:?} in {took_ns}");
            // The other targets of a round are measured meanwhile.
            std::thread::sleep(SHORT);
        }
    });
}

/// The second engine's toy: every third call is wrong.
struct Counting(u64);

impl Caller for Counting {
    fn prepare(&mut self, _: u64) -> Result<Outcome, ProtocolError> {
        Ok(Outcome::right())
    }

    fn call(&mut self, op: Op) -> Result<Outcome, ProtocolError> {
        self.0 += 1;
        if self.0.is_multiple_of(3) {
            return Ok(Outcome::wrong(Finding {
                operation: "say".into(),
                key: op.what.to_le_bytes().to_vec(),
                expected: b"right".to_vec(),
                received: b"wrong".to_vec(),
                note: "the third".into(),
            }));
        }
        std::thread::sleep(Duration::from_micros(100));
        Ok(Outcome { figures: vec![("size".into(), self.0 as f64)], ..Outcome::right() })
    }
}

/// It answers twice, and then never.
struct Hanging;

impl Caller for Hanging {
    fn call(&mut self, op: Op) -> Result<Outcome, ProtocolError> {
        // The slot is given up; the outcome of its thread is discarded.
        if op.what > 0 {
            std::thread::park()
        }
        Ok(Outcome::right())
    }
}

#[test]
fn a_call_that_never_returns_ends_its_slot_with_a_reason() {
    let clients = Clients { connections: 1, ..clients(1, Span::from_ms(50)) };
    let scenario = common::scenario(&SERVICE, SAY);
    common::load(serve(Habit::default()), &HANGING, &scenario, clients, |session| {
        for missing in [1, 0] {
            let result = session.run(100_000_000).expect("a result");
            let trouble = result.trouble.expect("a reason");
            assert!(trouble.contains("within its time-out of 50 ms"), "{trouble}");
            assert_eq!(result.counts.missing, missing, "it is given up once");
        }
    });
}

/// Each call is a thousand operations, and comes too late.
struct Late;

impl Caller for Late {
    fn call(&mut self, _: Op) -> Result<Outcome, ProtocolError> {
        std::thread::sleep(Duration::from_millis(2));
        Ok(Outcome { answers: 1_000, ..Outcome::default() })
    }
}

#[test]
fn all_operations_of_a_call_that_comes_too_late_are_missing() {
    let clients = Clients { connections: 1, ..clients(1, Span::from_ms(1)) };
    let scenario = common::scenario(&SERVICE, SAY);
    common::load(serve(Habit::default()), &LATE, &scenario, clients, |session| {
        let Counts { operations, missing, .. } = session.run(20_000_000).expect("a result").counts;
        assert!(missing > 0 && missing.is_multiple_of(1_000), "{missing}");
        assert_eq!(operations, 0);
    });
}

/// A call that is too short for the clock; the tenth of them comes to something else.
#[derive(Default)]
struct Adding {
    cases: Vec<u64>,
}

impl Busy for Adding {
    fn ready(&mut self, op: Op) {
        self.cases.push(op.what);
    }

    fn call(&mut self, index: usize) -> usize {
        std::hint::black_box(self.cases[index].wrapping_mul(3));
        8
    }

    fn check(&mut self, index: usize) -> Result<(), Box<Finding>> {
        if index != 9 {
            return Ok(());
        }
        Err(Box::new(Finding {
            operation: "say".into(),
            key: Vec::new(),
            expected: b"right".to_vec(),
            received: b"wrong".to_vec(),
            note: "the tenth".into(),
        }))
    }
}

#[test]
fn calls_of_nanoseconds_are_timed_many_at_a_time_and_each_is_checked() {
    let result = run_clients(Habit::default(), &BUSY, clients(1, LONG), SHORT);
    assert_eq!(result.trouble, None);
    // Three slots, before and after.
    assert_eq!((result.counts.wrong, result.wrong_answers.len()), (6, 6));
    assert!(result.counts.operations > 10_000, "{:?}", result.counts);
    let timed: u64 = result.intervals.iter().map(|one| one.histogram.len()).sum();
    assert_eq!(timed + result.counts.wrong, result.counts.operations);
    assert!(result.figures.iter().any(|(name, rate)| name == "bytes_per_s" && *rate > 0.0));
}

#[test]
fn each_operation_of_a_schedule_is_booked_as_itself() {
    let open = Arrivals::open(Rate { per_second: 300.0 }, Spacing::Constant);
    let clients = Clients { arrivals: open, ..clients(1, LONG) };
    let scenario = common::scenario(&SERVICE, "mix = { say = 1, shout = 1 }");
    common::load(serve(Habit::default()), &CALLED, &scenario, clients, |session| {
        let result = session.run(300_000_000).expect("a result");
        for figure in [Figure::Latency, Figure::Service, Figure::Lag] {
            let count = |operation| -> u64 {
                let of = result.intervals.iter().filter(|one| one.figure == figure);
                of.filter(|one| one.operation == operation).map(|one| one.histogram.len()).sum()
            };
            assert_eq!(count(0) + count(1), result.counts.operations, "{figure:?}");
            assert!(count(0) > 0 && count(1) > 0, "{figure:?}");
        }
    });
}

#[test]
fn what_is_only_a_library_is_called_with_the_same_schedule_checks_and_histograms() {
    let open = Arrivals::open(Rate { per_second: 300.0 }, Spacing::Constant);
    for arrivals in [Arrivals::Closed, open] {
        let scheduled = arrivals != Arrivals::Closed;
        let clients = Clients { arrivals, ..clients(1, LONG) };
        let result = run_clients(Habit::default(), &CALLED, clients, Duration::from_millis(300));
        assert_eq!(result.trouble, None);
        assert!(!result.wrong_answers.is_empty());
        assert!(result.counts.operations >= 3 && result.counts.wrong > 0);
        assert_eq!(result.figures.len() as u64, result.counts.operations - result.counts.wrong);
        // A third of a second at 300 calls a second, unless the machine stalls past the time-out.
        assert!(!scheduled || result.counts.operations == 90, "{}", result.counts.operations);
    }
}

#[test]
fn both_engines_do_steps_once_in_order_and_keep_every_time() {
    let steps = common::scenario(&SERVICE, "steps = ['say * 4']");
    for (dialect, habit) in [
        (&PLAIN, Habit::default()),
        (&CLOSING, Habit { closes: true, ..Habit::default() }),
        (&CALLED, Habit::default()),
    ] {
        let clients = Clients { arrivals: Arrivals::Steps, ..clients(1, LONG) };
        common::load(serve(habit), dialect, &steps, clients, |session| {
            for _ in 0..2 {
                // The length is for other kinds of load.
                let result = session.run(1).expect("a result");
                let done = (result.trouble, result.counts.operations);
                assert_eq!(done, (None, 12), "{}", dialect.name);
                let said = result.figures.iter().filter(|(name, ns)| name == "say_ns" && *ns > 0.0);
                assert_eq!(said.count(), 12, "{}", dialect.name);
            }
        });
    }
}
