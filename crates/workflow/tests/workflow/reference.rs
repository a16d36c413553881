//! Random operations beside a naive model of the rules, written from ecFlow's user manual: states
//! go upwards, limits, triggers, tries, suspend, force, requeue. It looks at the whole tree again
//! after each operation, where the server looks at what a change may have freed.

use std::collections::BTreeSet;

use workflow::definition::parse;
use workflow::model::{Attribute, Displayed, Free, Instant, Moment, Rules, State, Tree, Which};

use crate::random_definition::Random;

/// What a model may do wrong, so that it is seen whether that is noticed.
const FAULTS: [&str; 8] = [
    "runs what is below a suspended node",
    "keeps tokens of aborted tasks",
    "overlooks limits of families",
    "shows active before aborted",
    "leaves freed triggers free",
    "tries once more",
    "compares a suspended node by its state",
    "counts no tokens of a limit that is never full",
];

/// The nodes of all definitions, each behind the one above it.
const PATHS: [&str; 13] = [
    "/s", "/s/f", "/s/f/a", "/s/f/b", "/s/f/g", "/s/f/g/c", "/s/f/g/d", "/s/f/e", "/s/h", "/s/h/i",
    "/s/h/j", "/s/h/j/k", "/s/h/l",
];

/// The definition, with a mark where each has its attributes.
const SHAPE: &str = "suite s\nedit ECF_TRIES 2\nlimit l0 1\nlimit l1 2\nlimit l2 99\n\
                     @family f\n@task a\n@task b\n@family g\n@task c\n@task d\n@endfamily\n\
                     task e\n@endfamily\nfamily h\n@task i\n@family j\n@task k\n@endfamily\n\
                     task l\n";

struct Node {
    state: State,
    is_suspended: bool,
    /// Nodes, and whether each has to be in a state or must not be.
    trigger: Vec<(usize, bool, Displayed)>,
    is_free: bool,
    /// The limits whose tokens its tasks take.
    limits: BTreeSet<usize>,
    tries: u32,
}

fn below(random: &mut Random, limit: usize) -> usize {
    usize::try_from(random.below(limit as u64)).expect("below the limit")
}

struct Model {
    nodes: Vec<Node>,
    /// With the most tokens, and the tasks that have one.
    limits: [(usize, BTreeSet<usize>); 3],
    fault: &'static str,
}

impl Model {
    /// With the definition.
    fn random(random: &mut Random, fault: &'static str) -> (Self, String) {
        let limits = [1, 2, 99].map(|most| (most, BTreeSet::new()));
        let (mut model, mut text) = (Self { nodes: Vec::new(), limits, fault }, String::new());
        for (at, piece) in SHAPE.split('@').enumerate() {
            text.push_str(piece);
            let words = ["complete", "complete", "aborted", "active", "queued", "suspended"];
            let terms = if at == 0 { 0 } else { below(random, 4).saturating_sub(1) };
            let mut trigger = Vec::new();
            for term in 0..terms {
                let (of, is) = (below(random, PATHS.len()), below(random, 4) > 0);
                let word = words[below(random, words.len())];
                let begin = if term == 0 { "trigger" } else { " and" };
                let relation = if is { "==" } else { "!=" };
                text.push_str(&format!("{begin} {} {relation} {word}", PATHS[of]));
                trigger.push((of, is, Displayed::of_word(word).expect("a state")));
            }
            let limits: BTreeSet<_> = (0..3).filter(|_| below(random, 4) == 0).collect();
            text.extend(limits.iter().map(|limit| format!("\ninlimit /s:l{limit}")));
            text.push('\n');
            let (state, is_suspended, is_free, tries) = (State::Queued, false, false, 0);
            model.nodes.push(Node { state, is_suspended, trigger, is_free, limits, tries });
        }
        (model, text + "endfamily\nendsuite\n")
    }

    fn is_task(&self, at: usize) -> bool {
        self.children(at).is_empty()
    }

    fn has_fault(&self, number: usize) -> bool {
        self.fault == FAULTS[number]
    }

    fn children(&self, at: usize) -> Vec<usize> {
        let is_child = |child: &usize| self.upwards(*child).nth(1) == Some(at);
        (0..PATHS.len()).filter(is_child).collect()
    }

    fn below(&self, at: usize) -> Vec<usize> {
        (0..PATHS.len()).filter(|below| self.upwards(*below).any(|above| above == at)).collect()
    }

    fn upwards(&self, at: usize) -> impl Iterator<Item = usize> + use<> {
        let path = std::iter::successors(Some(PATHS[at]), |path| Some(path.rsplit_once('/')?.0));
        path.filter_map(|path| PATHS.iter().position(|one| *one == path))
    }

    fn displayed(&self, at: usize) -> Displayed {
        let is_suspended = self.nodes[at].is_suspended && !self.has_fault(6);
        let word = if is_suspended { "suspended" } else { self.nodes[at].state.word() };
        Displayed::of_word(word).expect("a state")
    }

    /// Sets a task's state; it has its tokens while it is submitted or active.
    fn set(&mut self, at: usize, state: State) {
        self.nodes[at].state = state;
        let is_kept = state == State::Aborted && self.has_fault(1);
        let runs = matches!(state, State::Submitted | State::Active);
        let mut named = self.named(at);
        if self.has_fault(7) {
            named.remove(&2);
        }
        for (number, (_, holders)) in self.limits.iter_mut().enumerate() {
            if runs && named.contains(&number) {
                holders.insert(at);
            } else if !runs && !is_kept {
                holders.remove(&at);
            }
        }
        self.go_up(at);
    }

    /// The limits of a node and of all above it.
    fn named(&self, at: usize) -> BTreeSet<usize> {
        self.upwards(at).flat_map(|at| self.nodes[at].limits.clone()).collect()
    }

    /// Each node above has the most significant state of its children.
    fn go_up(&mut self, at: usize) {
        let mut order =
            [State::Complete, State::Queued, State::Submitted, State::Active, State::Aborted];
        if self.has_fault(3) {
            order.swap(3, 4);
        }
        for above in self.upwards(at).skip(1) {
            let children = self.children(above);
            let states = children.iter().map(|child| self.nodes[*child].state);
            let most = states.max_by_key(|state| order.iter().position(|one| one == state));
            self.nodes[above].state = most.expect("a child");
        }
    }

    fn trigger_holds(&self, at: usize) -> bool {
        let node = &self.nodes[at];
        let mut terms = node.trigger.iter();
        node.is_free || terms.all(|(of, is, word)| (self.displayed(*of) == *word) == *is)
    }

    /// Submits what may run; whether anything does.
    fn resolve(&mut self, at: usize) -> bool {
        let node = &self.nodes[at];
        let is_held = node.is_suspended && !self.has_fault(0);
        if is_held || node.state == State::Complete || !self.trigger_holds(at) {
            return false;
        }
        if self.is_task(at) {
            let most = 2 + u32::from(self.has_fault(5));
            let is_due = match node.state {
                State::Queued => true,
                State::Aborted => node.tries < most,
                _ => false,
            };
            let limits = if self.has_fault(2) { node.limits.clone() } else { self.named(at) };
            let has_room = |number: &usize| self.limits[*number].1.len() < self.limits[*number].0;
            if is_due && limits.iter().all(has_room) {
                self.nodes[at].tries += 1;
                self.set(at, State::Submitted);
                return true;
            }
            return false;
        }
        self.children(at).into_iter().fold(false, |is_any, child| self.resolve(child) | is_any)
    }

    fn set_below(&mut self, top: usize, state: State) {
        let tasks = self.below(top).into_iter().filter(|at| self.is_task(*at));
        tasks.collect::<Vec<_>>().into_iter().for_each(|at| self.set(at, state));
    }

    fn requeue(&mut self, top: usize) {
        let stays_free = self.has_fault(4);
        for at in self.below(top) {
            let node = &mut self.nodes[at];
            node.is_suspended &= at == top;
            node.is_free &= stays_free;
            node.tries = 0;
        }
        self.set_below(top, State::Queued);
    }
}

/// An operation, on both.
fn operate(random: &mut Random, model: &mut Model, tree: &mut Tree) -> String {
    let (at, number) = (below(random, PATHS.len()), below(random, 12));
    let (is_task, state) = (model.is_task(at), model.nodes[at].state);
    let runs = matches!(state, State::Submitted | State::Active);
    let id = tree.find(PATHS[at]).expect("a node");
    let mut rules = rules(tree);
    let name = match number {
        0..=2 => {
            model.nodes[at].is_suspended = number == 0;
            if number == 0 {
                rules.suspend(id)
            } else {
                rules.resume(id)
            }
            if number == 0 { "suspend" } else { "resume" }
        }
        3 => {
            model.requeue(at);
            rules.requeue(id, Which::All).expect("begun");
            "requeue"
        }
        4 => {
            let all = [State::Complete, State::Queued, State::Aborted];
            let state = all[below(random, if is_task { 3 } else { 2 })];
            model.set_below(at, state);
            rules.force(id, state, !is_task);
            "force"
        }
        5 => {
            model.nodes[at].is_free = true;
            rules.free(id, Free { trigger: true, ..Free::default() });
            "free"
        }
        6 if is_task && !runs => {
            model.nodes[at].tries += 1;
            model.set(at, State::Submitted);
            rules.run(id, false).expect("begun");
            "run"
        }
        _ if is_task && runs => {
            let ended = if number > 9 { State::Aborted } else { State::Complete };
            let next = if state == State::Active { ended } else { State::Active };
            model.set(at, next);
            match next {
                State::Active => rules.init(id, "1", &[]),
                State::Complete => rules.complete(id, &[]),
                _ => rules.abort(id, "failed"),
            }
            next.word()
        }
        _ => "nothing",
    };
    drop(rules.finish());
    while model.resolve(0) {}
    format!("{name} {}", PATHS[at])
}

fn rules(tree: &mut Tree) -> Rules<'_> {
    Rules::new(tree, Moment { now: Instant::seconds(1_795_341_600), entropy: 1 })
}

/// What the two differ in after random operations, if in anything.
fn difference(seed: u64, fault: &'static str) -> Option<String> {
    let random = &mut Random::new(seed);
    let (mut model, text) = Model::random(random, fault);
    let mut loaded = parse(&text, "random.def").expect("a definition").tree;
    loaded.index_all();
    let mut tree = Tree::default();
    let mut begin = rules(&mut tree);
    begin.take(loaded, false).expect("loaded");
    begin.begin_all(false).expect("begun");
    drop(begin.finish());
    while model.resolve(0) {}
    let mut done = vec!["begin".to_owned()];
    let differs = |model: &Model, tree: &Tree, done: &[String]| {
        let what = of_nodes(model, tree).or_else(|| of_limits(model, tree))?;
        Some(format!("seed {seed}: {what}\n{text}{done:?}"))
    };
    for _ in 0..80 {
        if let Some(difference) = differs(&model, &tree, &done) {
            return Some(difference);
        }
        done.push(operate(random, &mut model, &mut tree));
    }
    differs(&model, &tree, &done)
}

/// The first node that is not as the model has it.
fn of_nodes(model: &Model, tree: &Tree) -> Option<String> {
    PATHS.iter().zip(&model.nodes).find_map(|(path, node)| {
        let id = tree.find(path).expect("a node");
        let is = (tree.node(id).state, tree.node(id).is_suspended);
        let meant = (node.state, node.is_suspended);
        (is != meant).then(|| format!("{path} is {is:?}, and the model has {meant:?}"))
    })
}

/// The first limit whose tokens others have than in the model.
fn of_limits(model: &Model, tree: &Tree) -> Option<String> {
    let suite = tree.find("/s").expect("a suite");
    let limits = tree.node(suite).attributes.iter().filter_map(|one| match one {
        Attribute::Limit(limit) => Some(limit),
        _ => None,
    });
    let limits: Vec<_> = limits.collect();
    assert_eq!(limits.len(), model.limits.len());
    limits.into_iter().zip(&model.limits).find_map(|(limit, (_, holders))| {
        let paths = limit.holders.as_deref().into_iter().flatten();
        let is: BTreeSet<&str> = paths.map(|path| &**path).collect();
        let meant: BTreeSet<&str> = holders.iter().map(|at| PATHS[*at]).collect();
        let count = usize::try_from(limit.value).expect("tokens");
        (is != meant || count != meant.len()).then(|| {
            format!("{} tokens of {} are {is:?}'s, and the model has {meant:?}", count, limit.name)
        })
    })
}

#[test]
fn random_operations_lead_where_a_naive_model_of_the_rules_has_them() {
    for seed in 0..300 {
        let difference = difference(seed, "");
        assert!(difference.is_none(), "{}", difference.unwrap_or_default());
    }
}

#[test]
fn a_model_with_a_fault_differs_from_the_rules() {
    for fault in FAULTS {
        assert!((0..300).any(|seed| difference(seed, fault).is_some()), "{fault}");
    }
}
