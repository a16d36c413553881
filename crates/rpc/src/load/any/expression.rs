//! What a field of a right answer is, computed of the request's: numbers, `'text'`, fields of the
//! request by their paths, `+`, `-`, `*` and parentheses.

use prost_reflect::{DynamicMessage, Kind, MessageDescriptor, Value};

/// How deep parentheses go.
const MOST_DEPTH: usize = 32;

/// The most `+`, `-` and `*` of an expression, which is as deep as a sum has terms.
const MOST_SIGNS: usize = 1_000;

/// An expression whose fields are there.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Number(f64),
    Whole(i128),
    Text(String),
    /// A field of the request, by the names on the way to it.
    Field(Vec<String>),
    Both(char, Box<Self>, Box<Self>),
}

/// What an expression comes to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Result1 {
    Whole(i128),
    Number(f64),
    Other(Value),
}

impl Expression {
    /// Reads one about requests of this type.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub(super) fn parse(text: &str, request: &MessageDescriptor) -> Result<Self, String> {
        Self::parse_about(text, Some(request))
    }

    /// Whether it can be an expression, whatever requests are.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub(super) fn check(text: &str) -> Result<(), String> {
        Self::parse_about(text, None).map(|_| ())
    }

    fn parse_about(text: &str, request: Option<&MessageDescriptor>) -> Result<Self, String> {
        let mut parser = Parser { text, at: 0, request, depth: 0, signs: 0 };
        let expression = parser.sum()?;
        match parser.peek() {
            None => Ok(expression),
            Some(other) => Err(parser.wrong(&format!("\"{other}\" is not expected"))),
        }
    }

    /// Its value for a request.
    pub(super) fn value(&self, request: &DynamicMessage) -> Result1 {
        match self {
            Self::Number(number) => Result1::Number(*number),
            Self::Whole(number) => Result1::Whole(*number),
            Self::Text(text) => Result1::Other(Value::String(text.clone())),
            Self::Field(path) => Result1::of(&field(request, path)),
            Self::Both(sign, one, other) => both(*sign, one.value(request), other.value(request)),
        }
    }
}

fn both(sign: char, one: Result1, other: Result1) -> Result1 {
    if let (Result1::Whole(one), Result1::Whole(other)) = (&one, &other) {
        return Result1::Whole(match sign {
            '+' => one.wrapping_add(*other),
            '-' => one.wrapping_sub(*other),
            _ => one.wrapping_mul(*other),
        });
    }
    let real = |side: Result1| match side {
        Result1::Whole(number) => number as f64,
        Result1::Number(number) => number,
        Result1::Other(_) => f64::NAN,
    };
    let (one, other) = (real(one), real(other));
    Result1::Number(match sign {
        '+' => one + other,
        '-' => one - other,
        _ => one * other,
    })
}

impl Result1 {
    /// A value of a message.
    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::I32(number) | Value::EnumNumber(number) => Self::Whole((*number).into()),
            Value::I64(number) => Self::Whole((*number).into()),
            Value::U32(number) => Self::Whole((*number).into()),
            Value::U64(number) => Self::Whole((*number).into()),
            Value::F32(number) => Self::Number((*number).into()),
            Value::F64(number) => Self::Number(*number),
            other => Self::Other(other.clone()),
        }
    }

    /// Whether an answer's value is this one. A sum of whole numbers wraps around as the field's
    /// type does.
    pub(super) fn is(&self, answered: &Value) -> bool {
        match (self, answered) {
            (Self::Whole(right), Value::I32(value)) => *right as i32 == *value,
            (Self::Whole(right), Value::U32(value)) => *right as u32 == *value,
            (Self::Whole(right), Value::I64(value)) => *right as i64 == *value,
            (Self::Whole(right), Value::U64(value)) => *right as u64 == *value,
            (Self::Whole(right), Value::F64(value)) => *right as f64 == *value,
            (Self::Whole(right), Value::F32(value)) => *right as f32 == *value,
            (Self::Number(right), Value::F32(value)) => *right as f32 == *value,
            _ => *self == Self::of(answered),
        }
    }
}

/// The value at the end of a path; that of a message which isn't there is its default.
pub(super) fn field(message: &DynamicMessage, path: &[String]) -> Value {
    let Some((first, rest)) = path.split_first() else { return Value::Message(message.clone()) };
    let value = message.get_field_by_name(first).map(std::borrow::Cow::into_owned);
    match value {
        Some(Value::Message(inner)) if !rest.is_empty() => field(&inner, rest),
        Some(value) => value,
        None => Value::Bool(false),
    }
}

/// The names on the way to a field.
///
/// # Errors
/// Where there is none; the error lists those that there are.
pub(super) fn path(written: &str, message: &MessageDescriptor) -> Result<Vec<String>, String> {
    let mut here = Some(message.clone());
    let mut names = Vec::new();
    for name in written.split('.') {
        let Some(message) = here.take() else {
            return Err(format!("{} has no fields, and {name} is asked of it", names.join(".")));
        };
        let Some(field) = message.get_field_by_name(name) else {
            let known: Vec<_> = message.fields().map(|field| field.name().to_owned()).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(format!("{} has no field {name}: it has {known}", message.full_name()));
        };
        names.push(name.to_owned());
        if let Kind::Message(inner) = field.kind()
            && !field.is_list()
            && !field.is_map()
        {
            here = Some(inner);
        }
    }
    Ok(names)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// Not known before the server is asked.
    request: Option<&'a MessageDescriptor>,
    depth: usize,
    signs: usize,
}

impl Parser<'_> {
    fn wrong(&self, what: &str) -> String {
        let column = self.text.get(..self.at).map_or(0, |before| before.chars().count()) + 1;
        format!(
            "{what} (column {column} of \"{}\"): write numbers, 'text' and request.FIELD, joined \
             by + - * and parentheses",
            self.text
        )
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        let blanks = rest.len() - rest.trim_start().len();
        self.at += blanks;
        self.rest().chars().next()
    }

    fn sum(&mut self) -> Result<Expression, String> {
        let mut sum = self.product()?;
        while let Some(sign @ ('+' | '-')) = self.peek() {
            self.pass_sign()?;
            sum = Expression::Both(sign, Box::new(sum), Box::new(self.product()?));
        }
        Ok(sum)
    }

    fn product(&mut self) -> Result<Expression, String> {
        let mut product = self.one()?;
        while let Some('*') = self.peek() {
            self.pass_sign()?;
            product = Expression::Both('*', Box::new(product), Box::new(self.one()?));
        }
        Ok(product)
    }

    /// Passes a sign between two parts.
    fn pass_sign(&mut self) -> Result<(), String> {
        self.at += 1;
        self.signs += 1;
        match self.signs > MOST_SIGNS {
            true => Err(format!("an expression has {MOST_SIGNS} of +, - and * at most")),
            false => Ok(()),
        }
    }

    fn one(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        let one = self.one_within();
        self.depth -= 1;
        one
    }

    fn one_within(&mut self) -> Result<Expression, String> {
        if self.depth > MOST_DEPTH {
            return Err(self.wrong(&format!("it is nested more than {MOST_DEPTH} deep")));
        }
        match self.peek() {
            None => Err(self.wrong("it ends early")),
            Some('(') => {
                self.at += 1;
                let inner = self.sum()?;
                if self.peek() != Some(')') {
                    return Err(self.wrong("a closing parenthesis is missing"));
                }
                self.at += 1;
                Ok(inner)
            }
            Some('-') => {
                self.at += 1;
                let inner = self.one()?;
                Ok(Expression::Both('-', Box::new(Expression::Whole(0)), Box::new(inner)))
            }
            Some('\'') => {
                let after = self.rest().get(1..).unwrap_or_default();
                let Some((text, _)) = after.split_once('\'') else {
                    return Err(self.wrong("a text has no end"));
                };
                let text = text.to_owned();
                self.at += text.len() + 2;
                Ok(Expression::Text(text))
            }
            Some(first) if first.is_ascii_digit() => self.number(),
            Some(_) => self.field(),
        }
    }

    fn word(&self, is_part: impl Fn(char) -> bool) -> String {
        self.rest().chars().take_while(|one| is_part(*one)).collect()
    }

    fn number(&mut self) -> Result<Expression, String> {
        let digits = self.word(|one| one.is_ascii_digit() || matches!(one, '.' | '_'));
        let bare = digits.replace('_', "");
        let number = match bare.contains('.') {
            true => bare.parse().map(Expression::Number).ok(),
            false => bare.parse().map(Expression::Whole).ok(),
        };
        let number = number.ok_or_else(|| self.wrong(&format!("{digits} is no number")))?;
        self.at += digits.len();
        Ok(number)
    }

    fn field(&mut self) -> Result<Expression, String> {
        let word = self.word(|one| one.is_alphanumeric() || matches!(one, '.' | '_'));
        let Some(name) = word.strip_prefix("request.") else {
            let shown = if word.is_empty() { self.word(|one| one != ' ') } else { word };
            return Err(self.wrong(&format!("\"{shown}\" is not expected")));
        };
        let names = match self.request {
            Some(request) => path(name, request).map_err(|why| self.wrong(&why))?,
            None => Vec::new(),
        };
        self.at += word.len();
        Ok(Expression::Field(names))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{message, sample};
    use super::*;

    fn value(text: &str) -> Result1 {
        let request =
            message(r#"{"number": "7", "real": 1.5, "text": "a", "inner": {"small": 3}}"#);
        Expression::parse(text, &sample()).expect(text).value(&request)
    }

    #[test]
    fn fields_numbers_and_texts_are_computed() {
        assert_eq!(value("request.number * 2 + 1"), Result1::Whole(15));
        assert_eq!(value("2 * (request.inner.small - 10)"), Result1::Whole(-14));
        assert_eq!(value("-request.number"), Result1::Whole(-7));
        assert_eq!(value("request.real + request.number"), Result1::Number(8.5));
        assert_eq!(value("request.text"), Result1::Other(Value::String("a".to_owned())));
        assert_eq!(value("'b'"), Result1::Other(Value::String("b".to_owned())));
        assert!(value("request.number + 1").is(&Value::I32(8)));
        assert!(value("request.number + 1").is(&Value::F64(8.0)));
        assert!(!value("request.number + 1").is(&Value::I64(9)));
        assert!(value("0 - 1").is(&Value::U64(u64::MAX)), "as the field's type wraps");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_column() {
        for (text, why) in [
            ("", "it ends early (column 1"),
            ("request.numbr", "loadline.rpc.v1.Sample has no field numbr: it has number, text"),
            ("request.number.x", "number has no fields, and x is asked of it"),
            ("1 +", "it ends early (column 4"),
            ("1 2", "\"2\" is not expected (column 3"),
            ("(1", "a closing parenthesis is missing (column 3"),
            ("number", "\"number\" is not expected (column 1"),
            ("'a", "a text has no end"),
            ("1.2.3", "1.2.3 is no number"),
        ] {
            let wrong = Expression::parse(text, &sample()).expect_err(text);
            assert!(wrong.contains(why), "{text}: {wrong}");
        }
        let deep = "(".repeat(100);
        assert!(Expression::parse(&deep, &sample()).expect_err("deep").contains("32 deep"));
        // A chain of these would take the stack, where it is computed and where it is dropped.
        for sign in ["+", "-", "*"] {
            let long = format!("1{}", format!("{sign}1").repeat(200_000));
            let wrong = Expression::parse(&long, &sample()).expect_err("long");
            assert!(wrong.contains("1000 of +, - and * at most"), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_an_expression_or_refused(text in "[0-9a-z.+*()' _-]{0,40}|.{0,20}") {
            let _ = Expression::parse(&text, &sample());
        }
    }
}
