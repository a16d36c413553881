//! What was acknowledged is there after a crash.

use testing::program;

use crate::place::Place;
use crate::served::Served;

#[test]
fn what_was_acknowledged_survives_ten_crashes() {
    if program("ecflow_client").is_none() {
        return;
    }
    let place = Place::new();
    let file = place.write("s.def", "suite s\n  task t\n    label l \"\"\nendsuite\n");
    let mut served = Served::ours(&place);
    place.told(&[&format!("--load={}", file.display())]);
    let numbers = |text: String| -> u32 {
        let word = text.split_whitespace().find_map(|word| word.strip_prefix("state_change:"));
        word.and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    let mut last = 0;
    for round in 0..10 {
        let value = format!("round {round}");
        place.told(&["--alter=change", "label", "l", &value, "/s/t"]);
        served.kill();
        served = Served::ours(&place);
        assert_eq!(place.told(&["--query", "label", "/s/t:l"]).trim(), value);
        let number = numbers(place.told(&["--get_state"]));
        assert!(number > last, "{number} after {last}");
        last = number;
    }
    served.kill();
}
