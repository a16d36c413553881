//! Which values operands can have, and whether an expression can hold with them.

use std::collections::HashMap;

use crate::model::{Binary, Operand, Operands, Program, Step};

/// The most values that are listed one by one.
const VALUES_LIMIT: usize = 64;
/// The most pairs of values that a comparison tries, and assignments that an expression does.
const TRIES_LIMIT: usize = 20_000;

/// The values that an operand can have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Domain {
    /// One of these.
    Of(Vec<i64>),
    /// From the first to the last.
    Range(i64, i64),
    /// Anything.
    Any,
}

impl Domain {
    fn values(&self) -> Option<Vec<i64>> {
        match self {
            Self::Of(values) => Some(values.clone()),
            Self::Range(from, to) if to.saturating_sub(*from) < VALUES_LIMIT as i64 => {
                Some((*from..=*to).collect())
            }
            Self::Range(..) | Self::Any => None,
        }
    }

    /// The least and the largest value.
    fn bounds(&self) -> (i64, i64) {
        match self {
            Self::Of(values) => {
                let least = values.iter().min().copied().unwrap_or(0);
                (least, values.iter().max().copied().unwrap_or(0))
            }
            Self::Range(from, to) => (*from, *to),
            Self::Any => (i64::MIN, i64::MAX),
        }
    }
}

/// What a part of an expression can be.
struct Part {
    number: Domain,
    can_hold: bool,
    can_fail: bool,
}

impl Part {
    const fn truth(can_hold: bool, can_fail: bool) -> Self {
        // As a number a comparison is 0, which no expression compares.
        Self { number: Domain::Any, can_hold, can_fail }
    }

    fn constant(number: i64, holds: bool) -> Self {
        Self { number: Domain::Of(vec![number]), can_hold: holds, can_fail: !holds }
    }
}

/// Whether an expression can hold when each operand has some value of its domain. Never false
/// where it can; true where that isn't known.
pub(super) fn can_hold(program: &Program, domain: &impl Fn(&Operand) -> Domain) -> bool {
    abstractly(program, domain) && exactly(program, domain).unwrap_or(true)
}

/// Each operand by itself, as if two uses of it were two operands.
fn abstractly(program: &Program, domain: &impl Fn(&Operand) -> Domain) -> bool {
    let mut stack: Vec<Part> = Vec::with_capacity(8);
    for step in &program.steps {
        let part = match step {
            Step::Integer(number) => Part::constant((*number).into(), *number != 0),
            Step::State(state) => Part::constant(*state as i64, false),
            Step::Event(set) => Part::constant((*set).into(), false),
            Step::Operand(operand) => of_operand(operand, domain(operand)),
            Step::Not => match stack.pop() {
                Some(top) => Part::truth(top.can_fail, top.can_hold),
                None => Part::truth(true, true),
            },
            Step::Function(_) => {
                stack.pop();
                Part::truth(true, true)
            }
            Step::Binary(operation) => match (stack.pop(), stack.pop()) {
                (Some(right), Some(left)) => binary(*operation, &left, &right),
                _ => Part::truth(true, true),
            },
        };
        stack.push(part);
    }
    stack.pop().is_none_or(|part| part.can_hold)
}

fn of_operand(operand: &Operand, domain: Domain) -> Part {
    let is_node = matches!(operand, Operand::Node(_));
    let (can_hold, can_fail) = match &domain {
        Domain::Of(values) => (values.iter().any(|one| *one != 0), values.contains(&0)),
        Domain::Range(from, to) => (*from != 0 || *to != 0, *from <= 0 && *to >= 0),
        Domain::Any => (true, true),
    };
    // A node's state is compared; by itself it doesn't hold.
    Part { number: domain, can_hold: can_hold && !is_node, can_fail: can_fail || is_node }
}

fn binary(operation: Binary, left: &Part, right: &Part) -> Part {
    match operation {
        Binary::And => {
            Part::truth(left.can_hold && right.can_hold, left.can_fail || right.can_fail)
        }
        Binary::Or => Part::truth(left.can_hold || right.can_hold, left.can_fail && right.can_fail),
        Binary::Equal | Binary::NotEqual => {
            let equal = can_be_equal(&left.number, &right.number);
            let other = can_differ(&left.number, &right.number);
            if operation == Binary::Equal {
                Part::truth(equal, other)
            } else {
                Part::truth(other, equal)
            }
        }
        Binary::Less | Binary::GreaterEqual | Binary::Greater | Binary::LessEqual => {
            let ((a_least, a_most), (b_least, b_most)) =
                (left.number.bounds(), right.number.bounds());
            match operation {
                Binary::Less => Part::truth(a_least < b_most, a_most >= b_least),
                Binary::GreaterEqual => Part::truth(a_most >= b_least, a_least < b_most),
                Binary::Greater => Part::truth(a_most > b_least, a_least <= b_most),
                _ => Part::truth(a_least <= b_most, a_most > b_least),
            }
        }
        // Arithmetic holds whatever its value.
        _ => Part { number: Domain::Any, can_hold: true, can_fail: false },
    }
}

fn can_be_equal(a: &Domain, b: &Domain) -> bool {
    let (low, high) = (a.bounds(), b.bounds());
    if low.1 < high.0 || high.1 < low.0 {
        return false;
    }
    match (a, b) {
        (Domain::Of(a), Domain::Of(b)) => a.iter().any(|one| b.contains(one)),
        (Domain::Of(values), Domain::Range(from, to))
        | (Domain::Range(from, to), Domain::Of(values)) => {
            values.iter().any(|one| (from..=to).contains(&one))
        }
        _ => true,
    }
}

fn can_differ(a: &Domain, b: &Domain) -> bool {
    let single = |domain: &Domain| {
        let (least, most) = domain.bounds();
        (least == most).then_some(least)
    };
    match (single(a), single(b)) {
        (Some(a), Some(b)) => a != b,
        _ => true,
    }
}

/// All assignments, so that two uses of an operand are one; `None` where they are too many.
fn exactly(program: &Program, domain: &impl Fn(&Operand) -> Domain) -> Option<bool> {
    let mut domains: Vec<(&Operand, Vec<i64>)> = Vec::new();
    let mut uses = 0;
    for operand in program.operands() {
        uses += 1;
        if domains.iter().any(|(known, _)| *known == operand) {
            continue;
        }
        let values = match domain(operand) {
            Domain::Any => return None,
            range @ Domain::Range(..) => range.values().or_else(|| critical(program, &range))?,
            Domain::Of(values) => values,
        };
        domains.push((operand, values));
    }
    if domains.len() == uses {
        // Each operand is used once: what was seen abstractly is all there is to see.
        return None;
    }
    let tries = domains.iter().try_fold(1_usize, |all, (_, values)| {
        all.checked_mul(values.len()).filter(|all| *all <= TRIES_LIMIT)
    })?;
    let assigned = |number: usize| {
        let mut rest = number;
        let values = domains.iter().map(|(operand, values)| {
            let value = values[rest % values.len()];
            rest /= values.len();
            (*operand, value)
        });
        Assigned(values.collect())
    };
    Some((0..tries).any(|number| program.holds(&assigned(number))))
}

/// Of a long range the values at which a comparison with a constant can change; `None` where
/// something else is done with it than such comparisons.
fn critical(program: &Program, range: &Domain) -> Option<Vec<i64>> {
    let is_plain = program.steps.windows(2).all(|pair| {
        !matches!(&pair[1], Step::Binary(operation) if operation.is_number())
            && !matches!(&pair[1], Step::Function(_))
    });
    let operands = program.operands().filter(|one| !matches!(one, Operand::Node(_))).count();
    let constants = program.steps.iter().filter(|step| matches!(step, Step::Integer(_))).count();
    if !is_plain || operands > constants {
        return None;
    }
    let (least, most) = range.bounds();
    let mut values = vec![least, most];
    for step in &program.steps {
        if let Step::Integer(number) = step {
            values.extend([-1, 0, 1].map(|more| i64::from(*number) + more));
        }
    }
    values.retain(|value| (least..=most).contains(value));
    values.sort_unstable();
    values.dedup();
    Some(values)
}

/// One value for each operand.
struct Assigned<'a>(HashMap<&'a Operand, i64>);

impl Operands for Assigned<'_> {
    fn number(&self, operand: &Operand) -> i64 {
        self.0.get(operand).copied().unwrap_or(0)
    }
}
