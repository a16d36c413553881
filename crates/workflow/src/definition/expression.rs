//! Expressions of triggers: one parser that climbs by binding strength and writes the steps of a
//! [`Program`] as it goes.
//!
//! ecFlow's grammar (`ANode/src/ExprParser.cpp`) has strengths of its own, which are kept: all
//! arithmetic binds alike and from the left; `and` joins comparisons without parentheses from the
//! left and binds more than `or`; but from a parenthesis on, `and` and `or` bind alike and from the
//! right: `a and (b) or c` is `a and (b or c)`. `not` negates one comparison or parenthesis.

use std::fmt;

use crate::model::{
    Binary, Displayed, Expression, Flag, Function, Joint, Operand, Part, Program, Step, Text, Texts,
};

/// The longest expression, in bytes, all parts together.
pub const EXPRESSION_LIMIT: usize = 1 << 20;
/// The most parentheses in each other.
pub const PARENTHESES_LIMIT: usize = 128;
/// The most terms of one part: parentheses, and what `or` joins; comparisons that `and` joins are
/// one term. The parser of ecFlow's programs calls itself for each, in time that grows faster than
/// their number: 2,000 take 5 s, and at 16,000 its stack has no more room.
pub const TERMS_LIMIT: usize = 2_000;

/// Why an expression can't be read, and from which byte on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExpressionError {
    /// The place in the text, in bytes.
    pub at: usize,
    /// What was expected.
    pub expected: &'static str,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {}: expected {}", self.at + 1, self.expected)
    }
}

type Parsed<T> = Result<T, ExpressionError>;

/// Reads an expression; its texts are shared with `texts`.
///
/// # Errors
/// Where it ends to be one.
pub fn parse_expression(text: &str, texts: &mut Texts) -> Parsed<Program> {
    let mut steps = Vec::new();
    read(text, texts, &mut steps)?;
    Ok(Program { steps })
}

/// Reads an expression, and adds its steps to others; returns how many terms it has.
fn read(text: &str, texts: &mut Texts, steps: &mut Vec<Step>) -> Parsed<usize> {
    if text.len() > EXPRESSION_LIMIT {
        let at = EXPRESSION_LIMIT;
        return Err(ExpressionError { at, expected: TOO_LONG });
    }
    let mut parser = Parser::new(text, texts, steps);
    let result = parser.alternatives();
    parser.skip();
    if result.is_ok() && parser.at == text.len() {
        return Ok(parser.terms);
    }
    // Where the longest attempt ended is what the author has to see.
    let (at, expected) = parser.furthest;
    let here = ExpressionError { at: parser.at, expected: "and, or, or the end" };
    let is_end = result.is_ok() && at <= parser.at;
    Err(if is_end { here } else { ExpressionError { at, expected } })
}

/// From which byte on ecFlow's parser doesn't go on in a text that is no expression: behind what
/// is one by itself, or in the parenthesis that was tried last. None where the text is longer or
/// has more parentheses in each other than are read.
pub(super) fn stop(text: &str) -> Option<usize> {
    if text.len() > EXPRESSION_LIMIT {
        return None;
    }
    let (mut texts, mut steps) = (Texts::default(), Vec::new());
    let mut parser = Parser::new(text, &mut texts, &mut steps);
    if parser.alternatives().is_ok() || parser.whole > 0 {
        parser.at = parser.whole;
    }
    parser.skip();
    (parser.furthest.1 != TOO_DEEP).then_some(parser.at)
}

/// The expression of these parts: each is one of its own, and they are joined from the left.
///
/// # Errors
/// Where a part ends to be one, or has too many terms for ecFlow's programs.
pub fn expression(parts: Vec<Part>, texts: &mut Texts) -> Parsed<Expression> {
    let (program, terms) = program(&parts, texts, &mut Vec::new())?;
    hold_terms(terms)?;
    Ok(Expression { parts, program: Some(program) })
}

/// # Errors
/// There are more than ecFlow's programs read.
pub(super) const fn hold_terms(terms: usize) -> Parsed<()> {
    let expected = "at most 2000 terms in parentheses or joined by or, as ecFlow's programs read";
    if terms > TERMS_LIMIT { Err(ExpressionError { at: 0, expected }) } else { Ok(()) }
}

/// The same, which never holds where a part can't be read; `steps` is room that is empty before and
/// after.
pub fn kept_expression(parts: Vec<Part>, texts: &mut Texts, steps: &mut Vec<Step>) -> Expression {
    let program = program(&parts, texts, steps).ok().map(|(program, _)| program);
    Expression { parts, program }
}

/// What these parts mean together, and the most terms that one has; `steps` is room that is empty
/// before and after.
pub(super) fn program(
    parts: &[Part],
    texts: &mut Texts,
    steps: &mut Vec<Step>,
) -> Parsed<(Program, usize)> {
    let (mut len, mut terms) = (0_usize, 0);
    for part in parts {
        len = len.saturating_add(part.text.len());
        if len > EXPRESSION_LIMIT {
            steps.clear();
            return Err(ExpressionError { at: 0, expected: TOO_LONG });
        }
        terms = terms.max(read(&part.text, texts, steps).inspect_err(|_| steps.clear())?);
        match part.joint {
            Joint::First => {}
            Joint::And => steps.push(Step::Binary(Binary::And)),
            Joint::Or => steps.push(Step::Binary(Binary::Or)),
        }
    }
    let mut program = Program { steps: Vec::with_capacity(steps.len()) };
    program.steps.append(steps);
    Ok((program, terms))
}

const TOO_LONG: &str = "at most a million characters";
const TOO_DEEP: &str = "at most 128 parentheses in each other";

struct Parser<'a, 'w> {
    text: &'a str,
    at: usize,
    steps: &'w mut Vec<Step>,
    texts: &'w mut Texts,
    depth: usize,
    terms: usize,
    furthest: (usize, &'static str),
    /// Up to where the text is an expression by itself.
    whole: usize,
}

/// Comparisons: longer words first where one begins with another.
const COMPARISONS: [(&str, Binary); 12] = [
    ("==", Binary::Equal),
    ("eq", Binary::Equal),
    ("!=", Binary::NotEqual),
    ("ne", Binary::NotEqual),
    ("ge", Binary::GreaterEqual),
    ("le", Binary::LessEqual),
    ("gt", Binary::Greater),
    ("lt", Binary::Less),
    (">=", Binary::GreaterEqual),
    ("<=", Binary::LessEqual),
    ("<", Binary::Less),
    (">", Binary::Greater),
];

const ARITHMETIC: [(&str, Binary); 5] = [
    ("+", Binary::Plus),
    ("-", Binary::Minus),
    ("*", Binary::Multiply),
    ("/", Binary::Divide),
    ("%", Binary::Modulo),
];

const AND: [(&str, Binary); 3] = [("and", Binary::And), ("&&", Binary::And), ("AND", Binary::And)];
const OR: [(&str, Binary); 3] = [("or", Binary::Or), ("||", Binary::Or), ("OR", Binary::Or)];

const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl<'a, 'w> Parser<'a, 'w> {
    fn new(text: &'a str, texts: &'w mut Texts, steps: &'w mut Vec<Step>) -> Self {
        let furthest = (0, "");
        Self { text, at: 0, steps, texts, depth: 0, terms: 0, furthest, whole: 0 }
    }

    /// What was read up to here is an expression, unless it is in parentheses.
    const fn mark(&mut self) {
        if self.depth == 0 {
            self.whole = self.at;
        }
    }

    fn skip(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn fail<T>(&mut self, expected: &'static str) -> Parsed<T> {
        if self.at >= self.furthest.0 {
            self.furthest = (self.at, expected);
        }
        Err(ExpressionError { at: self.at, expected })
    }

    /// Takes a word if the text goes on with it.
    fn take(&mut self, word: &str) -> bool {
        self.skip();
        let is_next = self.rest().starts_with(word);
        self.at += if is_next { word.len() } else { 0 };
        is_next
    }

    fn take_of(&mut self, words: &[(&str, Binary)]) -> Option<Binary> {
        self.skip();
        let rest = self.rest();
        let first = rest.as_bytes().first();
        let is_next = |word: &str| word.as_bytes().first() == first && rest.starts_with(word);
        let (word, operation) = words.iter().find(|(word, _)| is_next(word))?;
        self.at += word.len();
        Some(*operation)
    }

    fn take_not(&mut self) -> bool {
        self.take("not ") || self.take("!") || self.take("~")
    }

    /// Goes back to before an attempt that failed.
    fn back(&mut self, (at, steps): (usize, usize)) {
        self.at = at;
        self.steps.truncate(steps);
    }

    fn here(&self) -> (usize, usize) {
        (self.at, self.steps.len())
    }

    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == PARENTHESES_LIMIT {
            return self.fail(TOO_DEEP);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Conjunctions and parentheses, joined by `and` and `or` from the right.
    fn alternatives(&mut self) -> Parsed<()> {
        let mut operations = Vec::new();
        loop {
            self.item()?;
            self.mark();
            self.terms += 1;
            let Some(operation) = self.take_of(&AND).or_else(|| self.take_of(&OR)) else { break };
            operations.push(operation);
        }
        self.steps.extend(operations.into_iter().rev().map(Step::Binary));
        Ok(())
    }

    /// Comparisons joined by `and`, or a parenthesis.
    fn item(&mut self) -> Parsed<()> {
        let start = self.here();
        if self.negated(Self::comparison).is_ok() {
            loop {
                let before = self.here();
                if self.take_of(&AND).is_none() {
                    return Ok(());
                }
                if self.negated(Self::comparison).is_err() {
                    self.back(before);
                    return Ok(());
                }
                self.steps.push(Step::Binary(Binary::And));
                self.mark();
            }
        }
        self.back(start);
        self.negated(|parser| {
            if !parser.take("(") {
                return parser.fail("a path, a number, or a parenthesis");
            }
            parser.nested(Self::alternatives)?;
            if parser.take(")") { Ok(()) } else { parser.fail("a closing parenthesis") }
        })
    }

    fn negated(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<()>) -> Parsed<()> {
        let is_negated = self.take_not();
        inner(self)?;
        if is_negated {
            self.steps.push(Step::Not);
        }
        Ok(())
    }

    fn comparison(&mut self) -> Parsed<()> {
        let start = self.here();
        if self.node_state().is_ok() {
            return Ok(());
        }
        self.back(start);
        self.sum()?;
        loop {
            let before = self.here();
            let Some(operation) = self.take_of(&COMPARISONS) else { return Ok(()) };
            let is_equality = matches!(operation, Binary::Equal | Binary::NotEqual);
            if is_equality && self.event_word() {
                self.steps.push(Step::Binary(operation));
                continue;
            }
            if let Err(error) = self.negated(Self::sum) {
                self.back(before);
                return Err(error);
            }
            self.steps.push(Step::Binary(operation));
        }
    }

    /// `path == complete`.
    fn node_state(&mut self) -> Parsed<()> {
        let path = self.path()?;
        let operation = match self.take_of(&COMPARISONS[..4]) {
            Some(operation) => operation,
            None => return self.fail("== or !="),
        };
        self.skip();
        let rest = self.rest();
        let is_whole = |word: &str| !rest.as_bytes().get(word.len()).copied().is_some_and(is_name);
        let is_next = |state: &Displayed| rest.starts_with(state.word()) && is_whole(state.word());
        let Some(state) = Displayed::ALL.into_iter().find(is_next) else {
            return self.fail("complete, aborted, queued, active, submitted or unknown");
        };
        self.at += state.word().len();
        let path = self.texts.share(path);
        self.steps.push(Step::Operand(Operand::Node(path)));
        self.steps.push(Step::State(state));
        self.steps.push(Step::Binary(operation));
        Ok(())
    }

    fn event_word(&mut self) -> bool {
        self.skip();
        let rest = self.rest();
        for (word, is_set) in [("set", true), ("clear", false)] {
            let behind = rest.as_bytes().get(word.len()).copied();
            // Not the path `set:x`, nor a longer name.
            let is_whole = !behind.is_some_and(|byte| is_name(byte) || b":/.".contains(&byte));
            if rest.starts_with(word) && is_whole {
                self.at += word.len();
                self.steps.push(Step::Event(is_set));
                return true;
            }
        }
        false
    }

    /// Operands of arithmetic, from the left.
    fn sum(&mut self) -> Parsed<()> {
        self.operand()?;
        loop {
            self.mark();
            let before = self.here();
            let Some(operation) = self.take_of(&ARITHMETIC) else { return Ok(()) };
            if let Err(error) = self.operand() {
                self.back(before);
                return Err(error);
            }
            self.steps.push(Step::Binary(operation));
        }
    }

    fn operand(&mut self) -> Parsed<()> {
        self.skip();
        match self.text.as_bytes().get(self.at) {
            Some(b'(') => {
                self.at += 1;
                self.nested(Self::sum)?;
                if self.take(")") { Ok(()) } else { self.fail("a closing parenthesis") }
            }
            Some(b':') => {
                self.at += 1;
                let name = self.name()?;
                let name = self.texts.share(name);
                self.push(Operand::Upward(name))
            }
            Some(b'-') => self.fail("a number without a sign: write 0 - 1"),
            _ => self.named_operand(),
        }
    }

    fn push(&mut self, operand: Operand) -> Parsed<()> {
        self.steps.push(Step::Operand(operand));
        Ok(())
    }

    fn named_operand(&mut self) -> Parsed<()> {
        for (name, function) in [
            ("cal::date_to_julian", Function::DateToJulian),
            ("cal::julian_to_date", Function::JulianToDate),
        ] {
            if self.take(name) {
                return self.function(function);
            }
        }
        // Digits are a number, as in ecFlow, unless they begin a path right before a colon.
        self.skip();
        let is_number = self.rest().as_bytes().first().is_some_and(u8::is_ascii_digit);
        let start = self.at;
        if self.take("/<flag>") {
            let root = Text::from("/");
            return self.flag(root);
        }
        if let Ok(path) = self.path() {
            let is_near = self.rest().starts_with(':');
            if self.take("<flag>") {
                let path = self.texts.share(path);
                return self.flag(path);
            }
            if (is_near || !is_number) && self.take(":") {
                let name = self.name()?;
                let (path, name) = (self.texts.share(path), self.texts.share(name));
                return self.push(Operand::Variable(path, name));
            }
        }
        self.at = start;
        self.integer()
    }

    fn function(&mut self, function: Function) -> Parsed<()> {
        if !self.take("(") {
            return self.fail("an opening parenthesis");
        }
        self.nested(Self::named_operand)?;
        self.steps.push(Step::Function(function));
        if self.take(")") { Ok(()) } else { self.fail("a closing parenthesis") }
    }

    fn flag(&mut self, path: Text) -> Parsed<()> {
        self.skip();
        for flag in [Flag::Late, Flag::Zombie, Flag::Archived] {
            if self.take(flag.word()) {
                return self.push(Operand::Flag(path, flag));
            }
        }
        self.fail("late, zombie or archived")
    }

    fn integer(&mut self) -> Parsed<()> {
        self.skip();
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let number = self.rest().get(..digits).and_then(|digits| digits.parse().ok());
        match number {
            Some(number) => {
                self.at += digits;
                self.steps.push(Step::Integer(number));
                Ok(())
            }
            None if digits > 0 => self.fail("a number up to 2147483647"),
            None => self.fail("a path with a state or :name, or a number"),
        }
    }

    /// A name: letters, digits, `_`, and dots behind the first.
    fn name(&mut self) -> Parsed<&'a str> {
        self.skip();
        let rest = self.rest();
        if !rest.as_bytes().first().copied().is_some_and(is_name) {
            return self.fail("a name");
        }
        let len = rest.bytes().take_while(|byte| is_name(*byte) || *byte == b'.').count();
        self.at += len;
        Ok(&rest[..len])
    }

    /// A path: `/a/b`, `a/b`, `./a`, `../../a`.
    fn path(&mut self) -> Parsed<&'a str> {
        self.skip();
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut needs_name = true;
        if bytes.get(self.at) == Some(&b'.') {
            while self.rest().starts_with("..") {
                self.at += 2;
                let slashes = self.slashes();
                if slashes == 0 {
                    return self.fail("a name behind ..");
                }
            }
            if self.at == start {
                self.at += 1;
                if self.slashes() == 0 {
                    return self.fail("a name behind .");
                }
            }
        } else {
            self.at += usize::from(bytes.get(self.at) == Some(&b'/'));
        }
        loop {
            let before = self.at;
            if !bytes.get(self.at).copied().is_some_and(is_name) {
                if needs_name {
                    return self.fail("a path");
                }
                // The slash was a division.
                self.at = before - 1;
                while bytes.get(self.at - 1) == Some(&b'/') {
                    self.at -= 1;
                }
                break;
            }
            self.name()?;
            needs_name = false;
            if self.slashes() == 0 {
                break;
            }
        }
        Ok(&self.text[start..self.at])
    }

    fn slashes(&mut self) -> usize {
        let count = self.rest().bytes().take_while(|byte| *byte == b'/').count();
        self.at += count;
        count
    }
}

#[cfg(test)]
mod tests;
