//! Damaged definitions: whatever is in a file, it is refused with a line, or it can be printed and
//! run.

use workflow::definition::{Style, parse, parse_node, print};
use workflow::model::{Duration, Effect, Instant, Moment, Rules, Tree};

use crate::random_definition::{Random, definition};

/// Takes pieces out of a text, doubles them, and puts words of the grammar into it.
fn damage(text: &str, random: &mut Random) -> String {
    const WORDS: [&str; 16] = [
        "#",
        "\\",
        "'",
        "\"",
        "-1",
        "99999999999",
        "task x",
        "endfamily",
        "\n",
        ":",
        "/",
        "é",
        "(",
        "-a",
        "state:",
        "suite s0",
    ];
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..1 + random.below(6) {
        let at = random.below(lines.len() as u64) as usize;
        match random.below(4) {
            0 => _ = lines.remove(at),
            1 => lines.insert(at, lines[random.below(lines.len() as u64) as usize].clone()),
            _ => {
                let line = &mut lines[at];
                let mut place = random.below(line.len() as u64 + 1) as usize;
                while !line.is_char_boundary(place) {
                    place -= 1;
                }
                line.insert_str(place, random.pick(&WORDS));
            }
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.join("\n")
}

/// Begins all suites and lets minutes and jobs pass.
fn run(parsed: &Tree) {
    let mut tree = Tree::default();
    for minute in 0..5 {
        let moment = Moment { now: Instant::seconds(1_795_341_600 + 60 * minute), entropy: 1 };
        let mut rules = Rules::new(&mut tree, moment);
        if minute == 0 {
            if rules.load(parsed, true).is_err() || rules.begin_all(true).is_err() {
                return;
            }
        } else {
            rules.tick(Some(Duration::minutes(600)));
        }
        for effect in rules.finish().into_iter().take(50) {
            let Effect::Submit(submit) = effect else { continue };
            if !tree.has(submit.node) {
                continue;
            }
            let mut rules = Rules::new(&mut tree, moment);
            rules.init(submit.node, "1", &[]);
            match submit.node.index() % 3 {
                0 => rules.abort(submit.node, "x"),
                _ => rules.complete(submit.node, &[]),
            }
            let _ = rules.finish();
        }
    }
    let _ = print(&tree, Style::State, true);
}

#[test]
fn damaged_definitions_are_refused_with_a_line_or_run() {
    let (mut read, mut refused) = (0, 0);
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let text = definition(&mut random, seed % 2 == 0);
        let text = if seed < 20 { text } else { damage(&text, &mut random) };
        let _ = parse_node(&text, "node");
        match parse(&text, "x.def") {
            Ok(parsed) => {
                read += 1;
                for style in [Style::Defs, Style::State, Style::Net, Style::Migrate] {
                    let _ = print(&parsed.tree, style, true);
                }
                run(&parsed.tree);
            }
            Err(error) => {
                refused += 1;
                assert!(error.line > 0 && error.line <= text.lines().count(), "{error}");
            }
        }
    }
    assert!(read > 50 && refused > 50, "{read} read, {refused} refused");
}
