//! Bytes that are no request harm only their own connection.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::place::Place;
use crate::served::{start, start_with};
use workflow::protocol::{
    ADDED, Body, Child, Command, LogCommand, Report, Request, ServerCommand, SyncKind, User, write,
};

/// What is answered to some bytes.
pub(crate) fn answer(port: u16, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it accepts");
    stream.write_all(bytes).expect("sent");
    // The server may have closed it already.
    let _ = stream.shutdown(Shutdown::Write);
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("text");
    text
}

/// What is answered to a document.
pub(crate) fn framed(port: u16, document: &[u8]) -> String {
    answer(port, &[format!("{:8x}", document.len()).as_bytes(), document].concat())
}

#[test]
fn no_bytes_harm_others() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let ping = br#"{"x":{"cmd_":{"polymorphic_id":2147483649,"polymorphic_name":"CtsCmd",
        "ptr_wrapper":{"data":{"value0":{"value0":{"cl_host_":"h"},"user_":"me"},"api_":8}}}}}"#;
    let ping = [format!("{:8x}", ping.len()).as_bytes(), ping].concat();
    let mut half = TcpStream::connect(("127.0.0.1", place.port)).expect("it accepts");
    half.write_all(&ping[..40]).expect("sent");
    let deep = "[".repeat(1000);
    for (bytes, part) in [
        (b"ffffffff".to_vec(), "at most 1048576 are taken (--max-message)"),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "8 hexadecimal digits"),
        (b"       0".to_vec(), "no bytes"),
        (b"       2{}".to_vec(), "not understood"),
        (format!("{:8x}{deep}", deep.len()).into_bytes(), "not understood"),
        (ping.clone(), "\"api_\": 0"),
    ] {
        let said = answer(place.port, &bytes);
        assert!(said.contains(part), "{said}");
    }
    half.write_all(&ping[40..]).expect("sent");
    let mut said = String::new();
    half.read_to_string(&mut said).expect("text");
    assert!(said.contains("\"api_\": 0"), "{said}");
    server.stop(Duration::from_secs(1));
}

/// ecFlow's clients ask again when they are refused or reset, and not when a connection just ends:
/// what a job reports while the server is started anew would be lost.
#[test]
fn clients_whose_requests_are_on_their_way_are_reset_when_the_server_stops() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let connect = || TcpStream::connect(("127.0.0.1", place.port)).expect("it accepts");
    let (silent, mut half) = (connect(), connect());
    half.write_all(b"    ").expect("sent");
    // Those before it are served, too.
    assert!(answer(place.port, b"       0").contains("no bytes"));
    server.stop(Duration::from_millis(100));
    for mut client in [silent, half] {
        let ended = client.read(&mut [0]).map_err(|error| error.kind());
        assert_eq!(ended, Err(std::io::ErrorKind::ConnectionReset));
    }
}

#[test]
fn half_requests_that_take_all_connections_are_named_in_the_log_once() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    // The server has a hundred at once.
    let halves: Vec<TcpStream> = (0..100)
        .map(|_| {
            let mut half = TcpStream::connect(("127.0.0.1", place.port)).expect("it accepts");
            half.write_all(b"     100{").expect("sent");
            half
        })
        .collect();
    let lines = |what: &str| place.log().lines().filter(|line| line.contains(what)).count();
    let taken = "all connections (--max-connections 100) are taken, one by 127.0.0.1:";
    place.until("it is named", || lines(taken) == 1);
    assert!(place.log().contains("each of those is closed 60 s after it was opened"));
    drop(halves);
    let again = "there is room for others again";
    place.until("it is over", || lines(again) == 1);
    assert!(told(place.port, Command::Version).contains("5.9.2"));
    assert_eq!((lines(taken), lines(again)), (1, 1));
    server.stop(Duration::from_secs(1));
}

/// A request of the type and with the members.
fn request(kind: &str, members: &str) -> String {
    format!(
        "{{\"x\":{{\"cmd_\":{{\"polymorphic_id\":2147483649,\"polymorphic_name\":\"{kind}\",\
         \"ptr_wrapper\":{{\"data\":{{\"value0\":{{\"value0\":{{\"cl_host_\":\"h\"}},\
         \"user_\":\"me\"}},{members}}}}}}}}}}}"
    )
}

#[test]
fn who_announces_much_or_reads_nothing_is_in_no_ones_way() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let connect = || TcpStream::connect(("127.0.0.1", place.port)).expect("it accepts");
    // 40 MiB are announced, of 8 that all requests may have.
    let halves: Vec<_> = (0..40)
        .map(|_| {
            let mut half = connect();
            half.write_all(b"  100000{").expect("sent");
            half
        })
        .collect();
    let ping = request("CtsCmd", "\"api_\":8");
    assert!(framed(place.port, ping.as_bytes()).contains("\"api_\": 0"));
    let load = large("s");
    drop(halves);
    let loaded = framed(place.port, request("LoadDefsCmd", &load).as_bytes());
    assert!(loaded.contains("\"api_\": 0"), "{loaded}");
    // Of some 900 kB each, nine answers are more than 8 MiB.
    let get = get();
    let mut all: Vec<_> = (0..60)
        .map(|_| {
            let mut slow = connect();
            slow.write_all(get.as_bytes()).expect("sent");
            slow
        })
        .collect();
    assert!(framed(place.port, ping.as_bytes()).contains("\"api_\": 0"));
    for slow in &mut all {
        let mut text = String::new();
        slow.read_to_string(&mut text).expect("text");
        assert!(text.contains("--send-memory") || text.ends_with('}'), "{}", text.len());
    }
    server.stop(Duration::from_secs(1));
}

#[test]
fn a_text_that_many_ask_for_is_made_and_counted_once() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let load = request("LoadDefsCmd", &large("s"));
    assert!(framed(place.port, load.as_bytes()).contains("\"api_\": 0"));
    // Of some 900 kB each, nine of a kind are more than the 8 MiB of all answers.
    for members in [
        "\"api_\":6,\"absNodePath_\":\"\"",
        "\"api_\":3,\"absNodePath_\":\"/s\"",
        "\"api_\":6,\"absNodePath_\":\"/s\"",
    ] {
        let get = request("CtsNodeCmd", members);
        let mut all: Vec<_> = (0..60)
            .map(|_| {
                let mut one = TcpStream::connect(("127.0.0.1", place.port)).expect("it accepts");
                one.write_all(format!("{:8x}{get}", get.len()).as_bytes()).expect("sent");
                one
            })
            .collect();
        for one in &mut all {
            let mut text = String::new();
            one.read_to_string(&mut text).expect("text");
            assert!(text.len() > 800_000 && text.ends_with('}'), "{members}: {}", text.len());
        }
    }
    server.stop(Duration::from_secs(1));
}

#[test]
fn a_text_that_is_kept_for_others_takes_no_ones_room() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    for suite in 0..12 {
        let load = request("LoadDefsCmd", &large(&format!("s{suite}")));
        assert!(framed(place.port, load.as_bytes()).contains("\"api_\": 0"));
    }
    // Of some 900 kB each, nine are more than the 8 MiB of all answers.
    for suite in 0..12 {
        let get = request("CtsNodeCmd", &format!("\"api_\":3,\"absNodePath_\":\"/s{suite}\""));
        let text = framed(place.port, get.as_bytes());
        assert!(text.len() > 800_000 && text.ends_with('}'), "{suite}: {}", text.len());
    }
    server.stop(Duration::from_secs(1));
}

/// The members of a request that loads a suite of some 900 kB.
fn large(suite: &str) -> String {
    let tasks: String =
        (0..900).map(|task| format!("task t{task}\\n edit V '{}'\\n", "v".repeat(900))).collect();
    format!(
        "\"force_\":true,\"defs_\":\"suite {suite}\\n{tasks}endsuite\\n\",\"defs_filename_\":\"f\""
    )
}

/// A request for all of it, with its length.
fn get() -> String {
    let get = request("CtsNodeCmd", "\"api_\":3,\"absNodePath_\":\"\"");
    format!("{:8x}{get}", get.len())
}

#[test]
fn an_answer_of_which_nothing_is_taken_is_given_up() {
    let place = Place::new();
    let server = start_with(&place.home(), place.port, Duration::from_millis(300));
    // More than the system's buffers take of a connection.
    for suite in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
        let loaded = framed(place.port, request("LoadDefsCmd", &large(suite)).as_bytes());
        assert!(loaded.contains("\"api_\": 0"), "{loaded}");
    }
    let mut slow = TcpStream::connect(("127.0.0.1", place.port)).expect("it accepts");
    slow.write_all(get().as_bytes()).expect("sent");
    let counters = server.counters();
    place.until("it is given up", || {
        let now = counters();
        now.total_connections == 10 && now.current_connections == 0
    });
    let mut text = Vec::new();
    let taken = slow.read_to_end(&mut text);
    assert!(taken.is_err() || !text.ends_with(b"}"), "{} bytes came", text.len());
    assert!(!text.is_empty());
    server.stop(Duration::from_secs(1));
}

#[test]
fn names_and_numbers_that_no_client_sends_leave_the_server_able_to_start() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let asked = |kind: &str, members: &str| framed(place.port, request(kind, members).as_bytes());
    let load =
        "\"force_\":true,\"defs_\":\"suite s\\n task t\\nendsuite\\n\",\"defs_filename_\":\"f\"";
    assert!(asked("LoadDefsCmd", load).contains("\"api_\": 0"));
    let variable = ADDED.iter().position(|word| *word == "variable").expect("variable");
    let label = ADDED.iter().position(|word| *word == "label").expect("label");
    for (path, what) in [("/s", variable), ("/", variable), ("/s/t", label)] {
        for name in ["a-b", "", "a b", "x\\ny"] {
            let alter = format!(
                "\"paths_\":[\"{path}\"],\"name_\":\"{name}\",\"value_\":\"v\",\
                 \"add_attr_type_\":{what},\"del_attr_type_\":{none},\"change_attr_type_\":{none},\
                 \"flag_type_\":19,\"flag_\":false",
                none = 99
            );
            let answer = asked("AlterCmd", &alter);
            assert!(answer.contains("is no name"), "{path} {name:?}: {answer}");
        }
    }
    let handle = "\"api_\":0,\"client_handle_\":0,\"drop_user_\":\"\",\
                  \"auto_add_new_suites_\":true,\"suites_\":[\"s\\n\\nx\"]";
    assert!(asked("ClientHandleCmd", handle).contains("no blanks"));
    let often = format!(
        "\"mode_\":1,\"check_pt_interval_\":{},\"check_pt_save_time_alarm_\":{}",
        i64::MAX,
        i64::MAX
    );
    assert!(asked("CheckPtCmd", &often).contains("\"api_\": 0"));
    assert!(asked("CtsCmd", "\"api_\":8").contains("\"api_\": 0"), "it goes on");
    server.stop(Duration::from_secs(5));
    let journal = place.home().join(".loadline/journal");
    std::fs::remove_dir_all(journal).expect("removed");
    // The checkpoint that it wrote at its end is read.
    start(&place.home(), place.port).stop(Duration::from_secs(5));
}

/// What a user is answered.
fn told(port: u16, command: Command) -> String {
    framed(port, &write(&of_user(command)))
}

fn of_user(command: Command) -> Request {
    let user = User { name: "me".to_owned(), ..User::default() };
    Request { host: "h".to_owned(), body: Body::User(user, command) }
}

/// Jobs of tasks that are not there.
fn zombies(port: u16, places: std::ops::Range<usize>) {
    let job = |place: usize| {
        let child = Child {
            path: format!("/none/t{place}"),
            password: "p".repeat(900),
            process_id: "1".repeat(900),
            try_no: 1,
        };
        let report = Report::Event { name: "e".to_owned(), is_set: true };
        Request { host: "h".to_owned(), body: Body::Child(child, report) }
    };
    let all: Vec<usize> = places.collect();
    for some in all.chunks(250) {
        let group = Command::Group(some.iter().copied().map(job).collect());
        let answer = told(port, group);
        assert!(answer.contains("\"api_\": 0"), "{answer}");
    }
}

/// Whether an answer is as long as its head says.
fn is_whole(answer: &str) -> bool {
    let (head, document) = answer.split_at(8);
    u64::from_str_radix(head.trim_start(), 16).ok() == Some(document.len() as u64)
}

#[test]
fn long_answers_that_are_no_trees_come_whole_or_are_refused_and_hold_up_no_one() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let done = told(place.port, Command::Server(ServerCommand::Restart));
    assert!(done.contains("\"api_\": 0"), "{done}");
    let loaded = framed(place.port, request("LoadDefsCmd", &long_label()).as_bytes());
    assert!(loaded.contains("\"api_\": 0"), "{loaded}");
    zombies(place.port, 0..1_500);
    let query = |kind: &str, attribute: &str| Command::Query {
        kind: kind.to_owned(),
        path: "/s".to_owned(),
        attribute: attribute.to_owned(),
        task: String::new(),
    };
    for (command, least) in [
        (Command::Server(ServerCommand::Zombies), 3 << 20),
        (Command::Log(LogCommand::Get(1_000)), 1 << 20),
        (query("label", "l"), 400_000),
        (query("variable", "V"), 400_000),
    ] {
        let whole = told(place.port, command.clone());
        let shown: String = whole.chars().take(400).collect();
        assert!(is_whole(&whole) && whole.len() > least, "{command:?}: {shown}");
        let document = write(&of_user(command.clone()));
        let mut all: Vec<_> = (0..60)
            .map(|_| {
                let mut slow = TcpStream::connect(("127.0.0.1", place.port)).expect("it accepts");
                let head = format!("{:8x}", document.len());
                slow.write_all(&[head.as_bytes(), &document].concat()).expect("sent");
                slow
            })
            .collect();
        assert!(told(place.port, query("state", "")).contains("unknown"), "others go on");
        for slow in &mut all {
            let mut text = String::new();
            slow.read_to_string(&mut text).expect("text");
            assert!(is_whole(&text), "{}", text.len());
            assert!(text.contains("--send-memory") || text.len() > least, "{}", text.len());
        }
        drop(all);
        assert!(told(place.port, command.clone()).len() > least, "the memory is free again");
        // Ten of the longest are more than 8 MiB: no more of them is made than there is room for.
        if least > 3_000_000 {
            let group = Command::Group(vec![of_user(command); 10]);
            assert!(told(place.port, group).contains("--send-memory"));
        }
    }
    zombies(place.port, 1_500..5_000);
    let refused = told(place.port, Command::Server(ServerCommand::Zombies));
    assert!(refused.contains("--send-memory"), "{}", refused.len());
    server.stop(Duration::from_secs(5));
}

#[test]
fn a_group_has_no_more_syncs_than_a_few() {
    let place = Place::new();
    let server = start(&place.home(), place.port);
    let sync =
        |kind| of_user(Command::Sync { kind, handle: 0, state_change_no: 0, modify_change_no: 0 });
    let group = |syncs: usize| {
        let kinds = [SyncKind::Changes, SyncKind::News].into_iter().cycle();
        let mut all: Vec<Request> = kinds.take(syncs).map(sync).collect();
        all.push(of_user(Command::Server(ServerCommand::Restart)));
        told(place.port, Command::Group(all))
    };
    let answer = group(16);
    assert!(answer.contains("SNewsCmd") && !answer.contains("at most"), "{answer}");
    let answer = group(1_000);
    assert!(answer.contains("SNewsCmd"), "{}", answer.chars().take(2_000).collect::<String>());
    assert_eq!(answer.matches("a group has at most 16").count(), 1_000 - 16);
    server.stop(Duration::from_secs(5));
}

/// The members of a request that loads a suite with a label and a variable of 450 kB.
fn long_label() -> String {
    let long = "v".repeat(450_000);
    let text = format!("suite s\\n edit V '{long}'\\n label l '{long}'\\nendsuite\\n");
    format!("\"force_\":true,\"defs_\":\"{text}\",\"defs_filename_\":\"f\"")
}
