//! What triggers mean: an expression as a row of instructions for a stack, without recursion, so
//! that neither its length nor its depth is a danger. What the operands are is asked of an
//! [`Operands`], since one expression is shared by all nodes that state it.

use super::state::{Displayed, Flag};
use super::text::Text;
use super::time::{date_to_julian, julian_to_date};

/// How a part is joined to those before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Joint {
    /// The first part.
    First,
    /// `-a`.
    And,
    /// `-o`.
    Or,
}

/// A part of an expression, as it was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// How it is joined.
    pub joint: Joint,
    /// Its text.
    pub text: Text,
}

/// A trigger or complete expression.
#[derive(Clone, PartialEq, Debug)]
pub struct Expression {
    /// The parts, at least one.
    pub parts: Vec<Part>,
    /// What it means; `None` where it could not be read: it never holds.
    pub program: Option<Program>,
}

impl Expression {
    /// The whole text: parts joined by ` AND ` and ` OR `.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            text.push_str(match part.joint {
                Joint::First => "",
                Joint::And => " AND ",
                Joint::Or => " OR ",
            });
            text.push_str(&part.text);
        }
        text
    }
}

/// What an operand names. Paths are as written: relative to the node that has the expression.
#[derive(Clone, PartialEq, Eq, Debug, Hash)]
pub enum Operand {
    /// The state of a node.
    Node(Text),
    /// An event, meter, variable, repeat, generated variable, limit or queue of a node: its path
    /// and name.
    Variable(Text, Text),
    /// The same, of the first node upwards that has it.
    Upward(Text),
    /// A flag of a node; path `/` is the server.
    Flag(Text, Flag),
}

/// An operation of two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binary {
    /// `or`
    Or,
    /// `and`
    And,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

impl Binary {
    /// ecFlow's word in its evaluation trees.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Or => "OR",
            Self::And => "AND",
            Self::Equal => "EQUAL",
            Self::NotEqual => "NOT_EQUAL",
            Self::Less => "LESS_THAN",
            Self::LessEqual => "LESS_EQUAL",
            Self::Greater => "GREATER_THAN",
            Self::GreaterEqual => "GREATER_EQUAL",
            Self::Plus => "PLUS",
            Self::Minus => "MINUS",
            Self::Multiply => "MULTIPLY",
            Self::Divide => "DIVIDE",
            Self::Modulo => "Modulo",
        }
    }

    /// Whether its result is a number; of the others it is true or false.
    #[must_use]
    pub const fn is_number(self) -> bool {
        matches!(self, Self::Plus | Self::Minus | Self::Multiply | Self::Divide | Self::Modulo)
    }
}

/// A function of one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Function {
    /// `cal::date_to_julian`.
    DateToJulian,
    /// `cal::julian_to_date`.
    JulianToDate,
}

/// One instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// Pushes a number.
    Integer(i32),
    /// Pushes a state's number.
    State(Displayed),
    /// Pushes 1 for `set`, 0 for `clear`.
    Event(bool),
    /// Pushes an operand.
    Operand(Operand),
    /// Replaces the top by its negation.
    Not,
    /// Replaces the top by a function of it.
    Function(Function),
    /// Replaces the two on top by one.
    Binary(Binary),
}

/// Instructions in the order of evaluation: operands before their operation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// The instructions.
    pub steps: Vec<Step>,
}

/// A value of evaluation: a number, whether it holds, and the operand that it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    /// As a number.
    pub number: i64,
    /// As a truth.
    pub holds: bool,
    /// The operand, where it is one: plus and minus of a date are by the calendar.
    pub operand: Option<&'a Operand>,
}

impl<'a> Value<'a> {
    const fn number(number: i64) -> Self {
        Self { number, holds: number != 0, operand: None }
    }

    /// A comparison: as a number it is 0, as in ecFlow.
    const fn truth(holds: bool) -> Self {
        Self { number: 0, holds, operand: None }
    }
}

/// What an expression's operands are.
pub trait Operands {
    /// The number of an operand; 0 where there is none.
    fn number(&self, operand: &Operand) -> i64;

    /// The operand and `more`: of a date as many days.
    fn number_plus(&self, operand: &Operand, more: i64) -> i64 {
        self.number(operand).saturating_add(more)
    }
}

const fn int(number: i64) -> i64 {
    number as i32 as i64
}

fn function(function: Function, of: i64) -> i64 {
    match function {
        Function::DateToJulian => match of.checked_abs().unwrap_or(0).to_string().len() {
            10 => date_to_julian(of / 100),
            8 => date_to_julian(of),
            _ => 0,
        },
        Function::JulianToDate => julian_to_date(of),
    }
}

fn binary<'a>(
    operation: Binary,
    left: Value<'a>,
    right: Value<'a>,
    of: &impl Operands,
) -> Value<'a> {
    let (a, b) = (left.number, right.number);
    // An operation of numbers holds whatever its value.
    let number = |number| Value { number: int(number), holds: true, operand: None };
    let plus = |more: i64| match left.operand {
        Some(operand @ (Operand::Variable(..) | Operand::Upward(_))) => {
            of.number_plus(operand, more)
        }
        _ => a + more,
    };
    match operation {
        Binary::Or => Value::truth(left.holds || right.holds),
        Binary::And => Value::truth(left.holds && right.holds),
        Binary::Equal => Value::truth(a == b),
        Binary::NotEqual => Value::truth(a != b),
        Binary::Less => Value::truth(a < b),
        Binary::LessEqual => Value::truth(a <= b),
        Binary::Greater => Value::truth(a > b),
        Binary::GreaterEqual => Value::truth(a >= b),
        Binary::Plus => number(plus(b)),
        Binary::Minus => number(plus(-b)),
        Binary::Multiply => number(a.wrapping_mul(b)),
        Binary::Divide => number(a.checked_div(b).unwrap_or(0)),
        Binary::Modulo => number(a.checked_rem(b).unwrap_or(0)),
    }
}

/// Where the last operand on the stack begins among the steps that have made it.
fn last_operand(steps: &[Step]) -> usize {
    let mut missing = 1_usize;
    let begins = |step: &Step| {
        match step {
            Step::Binary(_) => missing += 1,
            Step::Not | Step::Function(_) => {}
            _ => missing -= 1,
        }
        missing == 0
    };
    steps.iter().rposition(begins).unwrap_or(0)
}

/// Evaluates steps, and shows each value to `seen`, in their order.
fn run<'a>(
    steps: &'a [Step],
    of: &impl Operands,
    mut seen: impl FnMut(&'a Step, Value<'a>),
) -> bool {
    let mut stack: Vec<Value<'a>> = Vec::with_capacity(8);
    for step in steps {
        let value = match step {
            Step::Integer(number) => Value::number((*number).into()),
            Step::State(state) => Value { number: *state as i64, holds: false, operand: None },
            Step::Event(set) => Value { number: (*set).into(), holds: false, operand: None },
            Step::Operand(operand) => {
                let number = int(of.number(operand));
                let holds = number != 0 && !matches!(operand, Operand::Node(_));
                Value { number, holds, operand: Some(operand) }
            }
            Step::Not => {
                let top = stack.pop().unwrap_or(Value::number(0));
                let number = i64::from(top.number == 0);
                Value { number, holds: !top.holds, operand: None }
            }
            Step::Function(name) => {
                let top = stack.pop().unwrap_or(Value::number(0));
                Value::number(int(function(*name, top.number)))
            }
            Step::Binary(operation) => {
                let right = stack.pop().unwrap_or(Value::number(0));
                let left = stack.pop().unwrap_or(Value::number(0));
                binary(*operation, left, right, of)
            }
        };
        seen(step, value);
        stack.push(value);
    }
    stack.pop().is_some_and(|value| value.holds)
}

impl Program {
    /// Evaluates the expression, and shows each value to `seen`, in the order of the steps.
    pub fn run<'a>(&'a self, of: &impl Operands, seen: impl FnMut(&'a Step, Value<'a>)) -> bool {
        run(&self.steps, of, seen)
    }

    /// Whether the expression holds. Of parts that `and` or `or` joins those are not looked at on
    /// which nothing depends any more.
    pub fn holds(&self, of: &impl Operands) -> bool {
        let (mut first, mut others) = (&self.steps[..], Vec::new());
        while let Some((Step::Binary(joint @ (Binary::And | Binary::Or)), before)) =
            first.split_last()
        {
            let (left, right) = before.split_at(last_operand(before));
            others.push((*joint == Binary::And, right));
            first = left;
        }
        others.into_iter().rev().fold(run(first, of, |_, _| {}), |holds, (is_and, part)| {
            if holds == is_and { run(part, of, |_, _| {}) } else { holds }
        })
    }

    /// The operands, in order, with repetitions.
    pub fn operands(&self) -> impl Iterator<Item = &Operand> {
        self.steps.iter().filter_map(|step| match step {
            Step::Operand(operand) => Some(operand),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::super::text::Texts;
    use super::*;
    use crate::definition::parse_expression;

    /// Variables by the bits of a number, from `a` on, and those that were looked at.
    struct Bits(u32, RefCell<String>);

    impl Operands for Bits {
        fn number(&self, operand: &Operand) -> i64 {
            let Operand::Variable(path, _) = operand else { panic!("{operand:?}") };
            self.1.borrow_mut().push_str(path);
            i64::from(self.0 >> (path.as_bytes()[0] - b'a') & 1)
        }
    }

    #[test]
    fn whether_an_expression_holds_depends_on_no_more_than_is_looked_at() {
        for text in [
            "a:x",
            "a:x and b:x",
            "a:x or b:x and not c:x",
            "a:x and (b:x or c:x) and d:x",
            "(a:x == set) or (b:x and c:x == clear) or d:x",
            "not a:x and b:x + 1 == 2 or ! (c:x or d:x)",
            "a:x ge b:x and c:x + d:x == 1",
        ] {
            let program = parse_expression(text, &mut Texts::default()).expect(text);
            for bits in 0..16 {
                let of = Bits(bits, RefCell::default());
                let holds = program.holds(&of);
                let seen = of.1.take();
                assert_eq!(program.run(&of, |_, _| {}), holds, "{text} {bits:b}");
                let all = of.1.take();
                let mut all = all.chars();
                assert!(seen.chars().all(|one| all.any(|other| other == one)), "{text}: {seen}");
            }
        }
        let looks = |text, bits| {
            let program = parse_expression(text, &mut Texts::default()).expect(text);
            let of = Bits(bits, RefCell::default());
            program.holds(&of);
            of.1.take()
        };
        assert_eq!(looks("a:x and b:x and c:x", 0b110), "a");
        assert_eq!(looks("a:x or (b:x and c:x) or d:x", 0b1001), "a");
        assert_eq!(looks("a:x and b:x or d:x", 0b1000), "ad");
    }
}
