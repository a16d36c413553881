//! The expressions of a definition, read with it at a load and with a suite that is replaced, and
//! evaluated. How many are remembered while a text is read is the rung: nodes that state one of
//! these share it, and it isn't parsed again.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use super::peak::Peak;
use super::site::{Figure, GENERATED, MOMENT, Site, begin, median_ns};
use crate::definition::{Style, parse_remembering, print};
use crate::model::{Attribute, Condition, From, Memory, NodeId, Rules, Snapshot, Tree};

/// Does each as often as it says; what is read, replaced and evaluated is compared with what comes
/// of the definition as servers read it.
pub(super) fn measure(site: &Site, remembered: usize) -> io::Result<Vec<Figure>> {
    let text = site.text()?;
    let meant = site.tree()?;
    let expected = print(&meant, Style::Defs, false);
    drop(meant);
    let mut begun = site.begun()?;
    open_gates(&mut begun)?;
    let hold = holding(&begun);
    drop(begun);
    if hold == 0 {
        return Err(io::Error::other("no expression holds: nothing would be compared"));
    }
    let last = text.rfind("\nsuite ").map_or("", |at| &text[at + 1..]);
    let (mut loads, mut replaces, mut evaluations) = (Vec::new(), Vec::new(), Vec::new());
    let (mut counts, mut tree_bytes, mut peak_bytes) = ((0, 0), 0, None);
    for _ in 0..site.times {
        let peak = Peak::begin();
        let begun = Instant::now();
        let new = read(remembered, &text)?;
        loads.push(begun.elapsed());
        peak_bytes = peak_bytes.max(peak.and_then(|peak| peak.bytes()));
        tree_bytes = Memory::of(&new).total();
        counts = count(&new);
        let mut tree = Tree::default();
        let mut rules = Rules::new(&mut tree, MOMENT);
        rules.take(new, false).map_err(io::Error::other)?;
        let _ = rules.finish();
        let begun = Instant::now();
        replace(&mut tree, read(remembered, last)?)?;
        replaces.push(begun.elapsed());
        let is_same = print(&tree, Style::Defs, false) == expected;
        begin(&mut tree)?;
        open_gates(&mut tree)?;
        let begun = Instant::now();
        let now_hold = holding(&tree);
        evaluations.push(begun.elapsed());
        if now_hold != hold || !is_same {
            return Err(io::Error::other("what is read is another definition"));
        }
    }
    let peak_bytes = peak_bytes.map(|bytes| ("more_bytes", bytes));
    let figures = [
        ("load_ns", median_ns(loads)),
        ("replace_ns", median_ns(replaces)),
        ("evaluate_ns", median_ns(evaluations)),
        ("expressions", counts.0),
        ("parsed", counts.1),
        ("tree_bytes", tree_bytes as u64),
    ];
    Ok(figures.into_iter().chain(peak_bytes).collect())
}

fn read(remembered: usize, text: &str) -> io::Result<Tree> {
    let parsed = parse_remembering(remembered, text, GENERATED).map_err(io::Error::other)?;
    let mut tree = parsed.tree;
    tree.index_all();
    Ok(tree)
}

/// Puts the only suite of a definition in place of the one of its name, as `--replace` does.
fn replace(tree: &mut Tree, new: Tree) -> io::Result<()> {
    let missing = || io::Error::other("the suite isn't there");
    let suite = new.suites().next().ok_or_else(missing)?;
    let old = tree.find(&new.path(suite)).ok_or_else(missing)?;
    let place = tree.suites().position(|id| id == old);
    let mut rules = Rules::new(tree, MOMENT);
    rules.delete(old);
    rules.plug(&new, suite, NodeId::ROOT, place).map_err(io::Error::other)?;
    let _ = rules.finish();
    Ok(())
}

/// Sets the event that the first families of each suite wait for: some conditions hold then.
fn open_gates(tree: &mut Tree) -> io::Result<()> {
    let gates: Vec<NodeId> = tree
        .suites()
        .filter_map(|suite| tree.find(&format!("{}/gate", tree.path(suite))))
        .collect();
    let mut rules = Rules::new(tree, MOMENT);
    if gates.is_empty() || !gates.into_iter().all(|gate| rules.set_event(gate, "go", true)) {
        return Err(io::Error::other("a suite has no gate"));
    }
    let _ = rules.finish();
    Ok(())
}

/// The trigger and complete expressions of all nodes.
fn conditions(tree: &Snapshot) -> impl Iterator<Item = (NodeId, &Condition)> {
    tree.walk(NodeId::ROOT).flat_map(|id| {
        tree.node(id).attributes.iter().filter_map(move |attribute| match attribute {
            Attribute::Trigger(condition) | Attribute::Complete(condition) => Some((id, condition)),
            _ => None,
        })
    })
}

/// How many there are, and how many of them had to be parsed.
fn count(tree: &Snapshot) -> (u64, u64) {
    let all = conditions(tree).map(|(_, condition)| Arc::as_ptr(&condition.expression));
    let (mut count, mut parsed) = (0, HashSet::new());
    for expression in all {
        count += 1;
        parsed.insert(expression);
    }
    (count, parsed.len() as u64)
}

/// Evaluates all, and says how many hold.
fn holding(tree: &Snapshot) -> usize {
    let holds = |(node, condition): &(NodeId, &Condition)| {
        let program = condition.expression.program.as_ref();
        program.is_some_and(|program| program.holds(&From { tree, node: *node }))
    };
    conditions(tree).filter(holds).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Counts;

    #[test]
    fn of_expressions_that_are_remembered_each_is_parsed_once_and_of_others_each_time() {
        let counts = Counts::scaled(0.01).expect("a scale");
        let site = Site { counts, times: 1, file: "unused".into() };
        let of = |remembered| {
            let figures = measure(&site, remembered).expect("figures");
            let of = |name| figures.iter().find(|figure| figure.0 == name).expect("a figure").1;
            (of("expressions"), of("parsed"))
        };
        let (all, parsed) = of(0);
        assert!(all > 1_000 && parsed == all, "{all} {parsed}");
        let ((again, recent), (_, least)) = (of(1 << 12), of(1 << 17));
        assert_eq!(again, all);
        assert!(least <= recent && recent < all, "{least} {recent} {all}");
    }
}
