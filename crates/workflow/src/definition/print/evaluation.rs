//! The evaluation of a trigger, as a tree of comments: what [`Style::State`](super::Style) shows.

use std::fmt::Write as _;

use super::Printer;
use crate::model::{
    Condition, Displayed, Found, From, Function, Named, NodeId, Operand, Step, Value,
};

impl Printer<'_> {
    /// The tree of an expression with the values of its parts.
    pub(super) fn evaluation(&mut self, id: NodeId, condition: &Condition, depth: usize) {
        if condition.free {
            self.indent(depth);
            self.text("# (free)\n");
        }
        let Some(program) = &condition.expression.program else { return };
        let from = From { tree: self.tree, node: id };
        let mut values: Vec<(&Step, Value<'_>)> = Vec::with_capacity(program.steps.len());
        program.run(&from, |step, value| values.push((step, value)));
        self.indent(depth + 1);
        self.text("# Trigger Evaluation Tree\n");
        // The steps are in the order of evaluation, operands first: read from the end, each is
        // followed by its operands, the right one first.
        let starts = starts(&values);
        let Some(last) = values.len().checked_sub(1) else { return };
        let is_root = |step: &Step| matches!(step, Step::Binary(_) | Step::Not);
        let base = depth + 2;
        let mut open = vec![(last, base + usize::from(!is_root(values[last].0)))];
        while let Some((at, depth)) = open.pop() {
            let (step, value) = values[at];
            self.indent(depth);
            self.evaluated(&from, step, value);
            if is_root(step) {
                let right = at - 1;
                open.push((right, depth + 1));
                let left = starts[right].checked_sub(1).filter(|_| matches!(step, Step::Binary(_)));
                open.extend(left.map(|left| (left, depth + 1)));
            }
        }
    }

    fn evaluated(&mut self, from: &From<'_>, step: &Step, value: Value<'_>) {
        let _ = match step {
            Step::Binary(operation) if operation.is_number() => {
                writeln!(self.out, "# {} value({})", operation.word(), value.number)
            }
            Step::Binary(operation) => {
                writeln!(self.out, "# {} ({})", operation.word(), value.holds)
            }
            Step::Not => writeln!(self.out, "# NOT ({})", value.holds),
            Step::Integer(number) => writeln!(self.out, "# INTEGER {number}"),
            Step::State(state) => {
                writeln!(self.out, "# NODE_STATE {}({})", state.word(), *state as i32)
            }
            Step::Event(set) => writeln!(self.out, "# EVENT_STATE {}", i32::from(*set)),
            Step::Function(Function::DateToJulian) => {
                writeln!(self.out, "# DATE_TO_JULIAN {}", value.number)
            }
            Step::Function(Function::JulianToDate) => {
                writeln!(self.out, "# JULIAN_TO_DATE {}", value.number)
            }
            Step::Operand(operand) => self.operand(from, operand),
        };
    }

    fn operand(&mut self, from: &From<'_>, operand: &Operand) -> std::fmt::Result {
        let tree = self.tree;
        // The server is no node: its flags are shown as those of a node that isn't there.
        let at = from.find(operand).filter(|id| *id != NodeId::ROOT);
        match (operand, at) {
            (Operand::Node(path), Some(id)) => {
                let state = tree.node(id).displayed();
                writeln!(self.out, "# NODE {path} {}({})", state.word(), state as i32)
            }
            (Operand::Node(path), None) => {
                let state = Displayed::Unknown.word();
                writeln!(
                    self.out,
                    "# NODE node(?not-found?) {path} {state}(0) # check suite filter"
                )
            }
            (Operand::Flag(path, flag), Some(id)) => {
                let is_set = i32::from(tree.node(id).flags.has(*flag));
                writeln!(self.out, "# FLAG_NODE {path} {}({is_set})", flag.word())
            }
            (Operand::Flag(path, flag), None) => {
                let flag = flag.word();
                let behind = "# check suite filter";
                writeln!(self.out, "# FLAG_NODE node(?not-found?) {path} {flag}(0) {behind}")
            }
            (Operand::Variable(path, name), Some(id)) => {
                write!(self.out, "# {path}:{name} node({}) ", tree.node(id).name)?;
                self.named(id, name);
                writeln!(self.out)
            }
            (Operand::Variable(path, name), None) => {
                let behind = "value(0) # check suite filter";
                writeln!(self.out, "# {path}:{name} node(?not-found?) {path} {behind}")
            }
            (Operand::Upward(name), Some(id)) => {
                write!(self.out, "# :{name} node({}) ", tree.node(id).name)?;
                self.named(id, name);
                writeln!(self.out)
            }
            (Operand::Upward(name), None) => {
                writeln!(self.out, "# :{name} node(?not-found?) value(0) # check suite filter")
            }
        }
    }

    fn named(&mut self, id: NodeId, name: &str) {
        let Some(Named { found, number }) = self.tree.named(id, name) else { return };
        let _ = match found {
            Found::Event => write!(self.out, "EVENT value({number})"),
            Found::Meter => write!(self.out, "METER value({number})"),
            Found::Variable => write!(self.out, "USER-VARIABLE value({number})"),
            Found::Repeat => {
                let value = self.tree.repeat(id).map_or(number, |repeat| repeat.over.value());
                write!(self.out, "REPEAT value({value})")
            }
            Found::Generated => write!(self.out, "GEN-VARIABLE value({number})"),
            Found::Limit => {
                let max = self.tree.limit(id, name).map_or(0, |limit| limit.max);
                write!(self.out, "limit {name} {max} value({number})")
            }
            Found::Queue => write!(self.out, "QUEUE {name} value({number})"),
        };
    }
}

/// Where the part of each step begins: its own place, or that of its first operand.
fn starts(values: &[(&Step, Value<'_>)]) -> Vec<usize> {
    let mut starts: Vec<usize> = Vec::with_capacity(values.len());
    for (at, (step, _)) in values.iter().enumerate() {
        let start = match step {
            Step::Binary(_) => starts[starts[at - 1] - 1],
            Step::Not | Step::Function(_) => starts[at - 1],
            _ => at,
        };
        starts.push(start);
    }
    starts
}
