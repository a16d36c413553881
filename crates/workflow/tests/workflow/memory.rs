//! What a server keeps in memory of what it has no more.

use testing::program;
use workflow::load::{Counts, generate};

use crate::place::Place;
use crate::served::Served;

/// What buffers and heaps may keep. The tree takes more than twice as much.
const ROOM_BYTES: u64 = 8 << 20;

#[test]
fn a_tree_that_was_deleted_takes_no_memory() {
    if program("ecflow_client").is_none() {
        return;
    }
    let place = Place::new();
    let mut text = Vec::new();
    generate(&Counts::scaled(0.1).expect("a scale"), &mut text).expect("a definition");
    let file = place.write("large.def", &String::from_utf8(text).expect("a text"));
    let served = Served::by_command(&place, &[], &[]);
    let before = served.memory_bytes();
    place.told(&[&format!("--load={}", file.display())]);
    let loaded = served.memory_bytes();
    assert!(loaded > before + ROOM_BYTES, "{before} bytes, and {loaded} with a tree");
    // Its text is rendered, its checkpoint written, and its history has a line for each suite.
    place.told(&["--get_state"]);
    place.told(&["--check_pt"]);
    for suite in 0..18 {
        place.told(&["--suspend", &format!("/s{suite:02}")]);
    }
    place.told(&["--delete=_all_", "force", "yes"]);
    // What is left of the nodes is dropped behind the answer.
    place.until("its memory is given back", || served.memory_bytes() < before + ROOM_BYTES);
}
