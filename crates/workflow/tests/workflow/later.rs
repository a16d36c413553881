//! Attributes of later versions than 5.9.2: they are loaded, printed as they were, and kept.

use workflow::binary;
use workflow::definition::{Style, parse, print};
use workflow::model::Marks;
use workflow::protocol::{Alteration, Command, NodeCommand};

use crate::levels::client;
use crate::place::Place;
use crate::served::Served;

/// One of each, as later versions print it.
const LINES: [&str; 5] = [
    "repeat datetime DT 20240131T060000 20240201T060000 06:00:00",
    "repeat datetimelist DL \"20240131T060000\" \"20240229T233059\"",
    "repeat datelist L \"20240131\" \"20240301\"",
    "aviso --name a --listener '{ \"event\": \"mars\" }' --url http://aviso/ --schema /s.json",
    "mirror --name m --remote_path /r/t --remote_host there --remote_port 3141 --polling 20",
];

/// A suite with a task for each.
fn definition() -> String {
    let tasks = LINES.iter().enumerate();
    let tasks: String = tasks.map(|(at, line)| format!("  task t{at}\n    {line}\n")).collect();
    format!("suite s\n{tasks}endsuite\n")
}

/// Whether each task of a text has its line; behind it may be where a repeat is.
fn has_all(text: &str) -> bool {
    LINES.iter().enumerate().all(|(at, line)| {
        let mut lines = text.lines().map(str::trim);
        let task = format!("task t{at}");
        lines.any(|line| line == task || line.starts_with(&format!("{task} ")))
            && lines.take_while(|line| !line.starts_with("task ")).any(|one| {
                one.strip_prefix(line).is_some_and(|more| more.is_empty() || more.starts_with(" #"))
            })
    })
}

#[test]
fn attributes_of_later_versions_are_printed_as_they_were_read_and_read_again_from_any_form() {
    let tree = parse(&definition(), "later.def").expect("a definition").tree;
    assert!(has_all(&print(&tree, Style::Defs, true)), "{}", print(&tree, Style::Defs, true));
    let mut bytes = Vec::new();
    binary::write(&tree, &Marks::new(), true, &mut |piece| bytes.extend_from_slice(piece));
    let of_bytes = binary::read(&bytes).expect("a tree").tree;
    for style in [Style::Defs, Style::State, Style::Net, Style::Migrate] {
        let text = print(&tree, style, false);
        let of_text = parse(&text, "again").expect("a definition").tree;
        assert!(has_all(&text), "{text}");
        assert_eq!(print(&of_text, style, false), text);
        assert_eq!(print(&of_bytes, style, false), text);
    }
}

#[test]
fn attributes_of_later_versions_and_where_their_repeats_are_outlive_a_crash() {
    let place = Place::new();
    let served = Served::ours(&place);
    let load =
        Command::Load { force: false, definition: definition(), file: "later.def".to_owned() };
    client(place.port).command(load).expect("loaded");
    let change = |path: &str, to: &str| {
        let (paths, name) = (vec![path.to_owned()], to.to_owned());
        let alteration = Alteration::Change("repeat");
        let alter = Command::Alter { paths, alteration, name, value: String::new() };
        client(place.port).command(alter).expect("altered");
    };
    change("/s/t0", "20240131T180000");
    change("/s/t1", "20240229T233059");
    let text = || {
        let text = client(place.port).text(Command::Node(NodeCommand::Get, String::new()));
        text.expect("a definition")
    };
    let before = text();
    assert!(has_all(&before), "{before}");
    for place in [" 06:00:00 # 20240131T180000\n", " \"20240229T233059\" # 1\n"] {
        assert!(before.contains(place), "{before}");
    }
    served.kill();
    let _served = Served::ours(&place);
    let suites = |text: &str| text.find("\nsuite ").map(|at| text[at..].to_owned());
    assert_eq!(suites(&text()), suites(&before));
    let value = |path: &str, name: &str| {
        let kind = "variable".to_owned();
        let (path, attribute) = (path.to_owned(), name.to_owned());
        let query = Command::Query { kind, path, attribute, task: String::new() };
        client(place.port).text(query).expect("a value")
    };
    assert_eq!(value("/s/t0", "DT"), "20240131T180000");
    assert_eq!(value("/s/t1", "DL"), "20240229T233059");
}
