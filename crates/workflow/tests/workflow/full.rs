//! A full disk: changes fail, and nothing is half done; all else goes on.

use std::io::Write as _;

use testing::program;

use crate::place::Place;
use crate::served::Served;

#[test]
fn on_a_full_disk_changes_fail_with_the_reason_and_work_again_once_there_is_room() {
    if program("ecflow_client").is_none() || program("unshare").is_none() {
        return;
    }
    let place = Place::new();
    let own = place.home().join(".loadline");
    let Some(served) = Served::on_small_disk(&place, &own) else { return };
    let file = place.write("s.def", "suite s\n  task t\n    label l \"\"\nendsuite\n");
    place.told(&[&format!("--load={}", file.display())]);
    let fill = served.seen(&own.join("fill"));
    let mut filling = std::fs::File::create(&fill).expect("a file");
    while filling.write_all(&[0; 4096]).is_ok() {}
    let change = |value: &str| {
        let output = place.client(&["--alter=change", "label", "l", value, "/s/t"]);
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    };
    let label = || place.told(&["--query", "label", "/s/t:l"]).trim().to_owned();
    // The journal has some room ahead.
    let mut kept = String::new();
    let why = loop {
        let value = format!("{}{}", kept.len(), "x".repeat(20_000));
        match change(&value) {
            Ok(()) => kept = value,
            Err(why) => break why,
        }
    };
    assert!(why.contains("nothing is changed") && why.contains("No space left"), "{why}");
    assert_eq!(label(), kept);
    place.told(&["--ping"]);
    let before = place.told(&["--get_state"]);
    let why = change(&"y".repeat(20_000)).expect_err("the disk is full");
    assert!(why.contains("nothing is changed"), "{why}");
    assert_eq!(place.told(&["--get_state"]), before);
    std::fs::remove_file(&fill).expect("removed");
    drop(filling);
    change("room").expect("there is room");
    assert_eq!(label(), "room");
    served.kill();
}

#[test]
fn a_checkpoint_or_archive_for_which_there_is_no_room_leaves_the_room_that_there_is() {
    if program("ecflow_client").is_none() || program("unshare").is_none() {
        return;
    }
    let place = Place::new();
    let Some(served) = Served::on_small_disk(&place, &place.home()) else { return };
    let value = "v".repeat(10_000);
    let tasks: String = (0..40).map(|at| format!("task t{at}\nedit V '{value}'\n")).collect();
    let text = format!("suite s\nlabel l \"\"\nfamily f\n{tasks}endfamily\nendsuite\n");
    let file = place.write("s.def", &text);
    place.told(&[&format!("--load={}", file.display())]);
    let home = served.seen(&place.home());
    let mut filling = std::fs::File::create(home.join("fill")).expect("a file");
    while filling.write_all(&[0; 4096]).is_ok() {}
    let length = filling.metadata().expect("a file").len();
    filling.set_len(length - 250_000).expect("some room");
    for words in [&["--check_pt"][..], &["--archive=/s/f"]] {
        let output = place.client(words);
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && why.contains("No space left"), "{words:?}: {why}");
        let names = std::fs::read_dir(&home).expect("home").map(|one| one.expect("a file"));
        let mut names = names.map(|one| one.file_name().to_string_lossy().into_owned());
        assert!(names.all(|name| !name.ends_with(".new")), "{words:?}");
    }
    place.told(&["--alter=change", "label", "l", &"y".repeat(60_000), "/s"]);
    assert_eq!(place.told(&["--query", "state", "/s/f/t39"]).trim(), "unknown");
    served.kill();
}
