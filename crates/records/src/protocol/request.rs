//! pvRequest: which fields a client wants, and how. Said as a text,
//! `field(value,alarm.severity)record[queueSize=4,pipeline=true]`, and sent as a structure.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::types::{Field, Scalar, Structure, Type};
use super::value::{Item, Number, Value};
use super::{Bits, MAX_DEPTH};

/// Options by their names.
pub type Options = BTreeMap<String, String>;

/// Fields that are wanted, and what for each. Without any, all are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The wanted fields, in order.
    pub fields: Vec<(String, Selection)>,
    /// Options of this field, such as `array=0:1:9`.
    pub options: Options,
}

/// What a client asks of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Options of the operation, such as `queueSize=4`.
    pub options: Options,
    /// The fields; all, where there is no such part.
    pub field: Option<Selection>,
    /// The fields that a put-get writes.
    pub put_field: Option<Selection>,
    /// The fields that a put-get reads.
    pub get_field: Option<Selection>,
}

/// A text that is no request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at} of the request {text:?}; write it like field(value,alarm.severity)")]
pub struct RequestError {
    what: &'static str,
    at: usize,
    text: String,
}

impl Request {
    /// Reads a text. One without parentheses is a list of fields.
    ///
    /// # Errors
    /// When it isn't written as a request is.
    pub fn parse(text: &str) -> Result<Self, RequestError> {
        let mut parser = Parser { text, at: 0 };
        let mut request = Self::default();
        if !text.contains(['(', '[']) || text.trim_start().starts_with("value") {
            request.field = Some(parser.selection(None, 0)?);
            return Ok(request);
        }
        loop {
            parser.skip(|byte| byte == b' ' || byte == b',');
            let name = parser.name();
            match (name, parser.next()) {
                ("", None) => return Ok(request),
                ("record", Some(b'[')) => parser.options(&mut request.options)?,
                ("field", Some(b'(')) => {
                    request.field = Some(parser.selection(Some(b')'), 0)?);
                }
                ("putField", Some(b'(')) => {
                    request.put_field = Some(parser.selection(Some(b')'), 0)?);
                }
                ("getField", Some(b'(')) => {
                    request.get_field = Some(parser.selection(Some(b')'), 0)?);
                }
                ("record" | "field" | "putField" | "getField", _) => {
                    return parser.fail("a parenthesis or bracket is missing");
                }
                _ => return parser.fail("neither record[] nor field(), putField(), getField()"),
            }
        }
    }

    /// As it is sent.
    pub fn item(&self) -> Item {
        let mut fields = Vec::new();
        let mut values = vec![Value::Structure];
        if !self.options.is_empty() {
            values.push(Value::Structure);
            let options = option_fields(&self.options, &mut values);
            fields.push(Field::new("record", Type::Structure(Structure::new("", [options]))));
        }
        let parts =
            [("field", &self.field), ("putField", &self.put_field), ("getField", &self.get_field)];
        for (name, selection) in parts {
            if let Some(selection) = selection {
                fields.push(selection.described(name, &mut values));
            }
        }
        Item::made(Type::Structure(Structure::new("", fields)), values)
    }

    /// What was sent. What it doesn't understand it leaves out, as peers do.
    pub fn of(item: Option<&Item>) -> Self {
        let Some(item) = item else { return Self::default() };
        let mut request = Self::default();
        let Type::Structure(all) = item.kind() else { return request };
        for field in all.fields() {
            let nodes = &item.nodes()[field.at()..];
            let selection = || Some(Selection::of(&field.kind, nodes));
            match &*field.name {
                "record" => request.options = Selection::of(&field.kind, nodes).options,
                "field" => request.field = selection(),
                "putField" => request.put_field = selection(),
                "getField" => request.get_field = selection(),
                _ => {}
            }
        }
        request
    }

    /// The option `name`, as the type that it should have; none where it is missing or is none.
    pub fn option<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.options.get(name)?.parse().ok()
    }

    /// Whether the option `name` is there and true.
    pub fn is_on(&self, name: &str) -> bool {
        self.options.get(name).is_some_and(|text| matches!(text.as_str(), "true" | "1"))
    }
}

impl Selection {
    /// The fields of `kind` that are selected: their bits, but for those of structures. None, when
    /// fields are named of which `kind` has not one.
    pub fn bits(&self, kind: &Type) -> Option<Bits> {
        let mut bits = Bits::new();
        self.select(kind, 0, &mut bits);
        (self.fields.is_empty() || !bits.is_empty()).then_some(bits)
    }

    fn select(&self, kind: &Type, at: usize, bits: &mut Bits) {
        let Type::Structure(structure) = kind else { return bits.insert(at) };
        for field in structure.fields() {
            let named = self.fields.iter().find(|(name, _)| **name == *field.name);
            match named {
                Some((_, below)) => below.select(&field.kind, at + field.at(), bits),
                None if self.fields.is_empty() => {
                    Self::default().select(&field.kind, at + field.at(), bits);
                }
                None => {}
            }
        }
    }

    /// What of an item was asked for: a server may answer with the whole type, and has zeros where
    /// nothing was.
    pub fn part(&self, item: &Item) -> Item {
        let mut nodes = Vec::new();
        let kind = self.cut(item.kind(), item.nodes(), &mut nodes);
        Item::made(kind, nodes)
    }

    fn cut(&self, kind: &Type, nodes: &[Value], kept: &mut Vec<Value>) -> Type {
        let Type::Structure(structure) = kind else {
            kept.push(nodes[0].clone());
            return kind.clone();
        };
        kept.push(Value::Structure);
        let all = Self::default();
        let mut fields = Vec::new();
        for field in structure.fields() {
            let named = self.fields.iter().find(|(name, _)| **name == *field.name);
            let below = match named {
                Some((_, below)) => below,
                None if self.fields.is_empty() => &all,
                None => continue,
            };
            let kind = below.cut(&field.kind, &nodes[field.at()..], kept);
            fields.push(Field::new(&field.name, kind));
        }
        Type::Structure(Structure::new(structure.id(), fields))
    }

    /// The options of the field at `path`.
    pub fn options_of(&self, path: &str) -> Option<&Options> {
        let mut selection = self;
        for name in path.split('.').filter(|_| !path.is_empty()) {
            selection = &selection.fields.iter().find(|(had, _)| had == name)?.1;
        }
        Some(&selection.options).filter(|options| !options.is_empty())
    }

    fn described(&self, name: &str, values: &mut Vec<Value>) -> Field {
        values.push(Value::Structure);
        let mut fields = Vec::new();
        if !self.options.is_empty() {
            fields.push(option_fields(&self.options, values));
        }
        fields.extend(self.fields.iter().map(|(name, below)| below.described(name, values)));
        Field::new(name, Type::Structure(Structure::new("", fields)))
    }

    fn of(kind: &Type, nodes: &[Value]) -> Self {
        let mut selection = Self::default();
        let Type::Structure(structure) = kind else { return selection };
        for field in structure.fields() {
            let nodes = &nodes[field.at()..];
            if &*field.name == "_options" {
                selection.options = options_in(&field.kind, nodes);
            } else {
                selection.fields.push((field.name.to_string(), Self::of(&field.kind, nodes)));
            }
        }
        selection
    }

    fn add(&mut self, path: &str, below: Selection) {
        let mut selection = self;
        for name in path.split('.') {
            let found = selection.fields.iter().position(|(had, _)| had == name);
            let index = found.unwrap_or_else(|| {
                selection.fields.push((name.to_owned(), Self::default()));
                selection.fields.len() - 1
            });
            selection = &mut selection.fields[index].1;
        }
        selection.fields.extend(below.fields);
        selection.options.extend(below.options);
    }
}

fn option_fields(options: &Options, values: &mut Vec<Value>) -> Field {
    values.push(Value::Structure);
    values.extend(options.values().map(Value::text));
    let fields = options.keys().map(|name| Field::new(name, Scalar::String));
    Field::new("_options", Type::Structure(Structure::new("", fields)))
}

/// Options are strings, but clients send numbers, too.
fn options_in(kind: &Type, nodes: &[Value]) -> Options {
    let Type::Structure(structure) = kind else { return Options::new() };
    let written = |value: &Value| match value {
        Value::Boolean(is) => Some(is.to_string()),
        Value::String(text) => Some(text.to_string()),
        value => match value.number()? {
            Number::Whole(whole) => Some(whole.to_string()),
            Number::Real(real) => Some(real.to_string()),
        },
    };
    let fields = structure.fields().iter();
    fields
        .filter_map(|field| Some((field.name.to_string(), written(nodes.get(field.at())?)?)))
        .collect()
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn fail<T>(&self, what: &'static str) -> Result<T, RequestError> {
        Err(RequestError { what, at: self.at, text: self.text.to_owned() })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn skip(&mut self, is_skipped: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&is_skipped) {
            self.at += 1;
        }
    }

    /// What stands before the next sign. All signs are ASCII, so no character is cut.
    fn until(&mut self, signs: &[u8]) -> &'a str {
        let start = self.at;
        self.skip(|byte| !signs.contains(&byte));
        self.text[start..self.at].trim()
    }

    fn name(&mut self) -> &'a str {
        self.until(b"()[]{},=")
    }

    /// `name=value,…]`, after the bracket.
    fn options(&mut self, into: &mut Options) -> Result<(), RequestError> {
        loop {
            let name = self.name();
            match self.next() {
                Some(b']') if name.is_empty() => return Ok(()),
                Some(b'=') if !name.is_empty() => {}
                _ => return self.fail("an option is not name=value"),
            }
            into.insert(name.to_owned(), self.until(b",]").to_owned());
            match self.next() {
                Some(b',') => {}
                Some(b']') => return Ok(()),
                _ => return self.fail("a bracket is missing"),
            }
        }
    }

    /// `a,b.c[option=value]{d,e}` up to `end`, which is consumed.
    fn selection(&mut self, end: Option<u8>, depth: usize) -> Result<Selection, RequestError> {
        if depth > MAX_DEPTH {
            return self.fail("fields are nested too deep");
        }
        let mut all = Selection::default();
        loop {
            let path = self.name();
            let mut below = Selection::default();
            if self.peek() == Some(b'[') {
                self.at += 1;
                self.options(&mut below.options)?;
            }
            if self.peek() == Some(b'{') {
                self.at += 1;
                below.fields = self.selection(Some(b'}'), depth + 1)?.fields;
            }
            self.skip(|byte| byte == b' ');
            if !path.is_empty() {
                all.add(path, below);
            } else if !below.options.is_empty() {
                // `field([…])`: of the record itself.
                all.options.extend(below.options);
            }
            match self.next() {
                Some(b',') => {}
                sign if sign == end => return Ok(all),
                None => return self.fail("a parenthesis is missing"),
                Some(_) => return self.fail("a sign that has no place here"),
            }
        }
    }
}

/// Reads a text as [`Request::parse`] does and returns it as it is sent.
impl TryFrom<&str> for Item {
    type Error = RequestError;

    fn try_from(text: &str) -> Result<Self, RequestError> {
        Request::parse(text).map(|request| request.item())
    }
}

impl From<&Arc<Structure>> for Type {
    fn from(structure: &Arc<Structure>) -> Self {
        Self::Structure(Arc::clone(structure))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Field, Scalar, Structure, Type};
    use super::Request;

    fn record() -> Type {
        let alarm = Structure::new(
            "alarm_t",
            [Field::new("severity", Scalar::Int), Field::new("status", Scalar::Int)],
        );
        let fields = [Field::new("value", Scalar::Double), Field::new("alarm", &alarm)];
        Type::Structure(Structure::new("", fields))
    }

    fn selected(text: &str) -> Option<Vec<usize>> {
        let request = Request::parse(text).unwrap();
        assert_eq!(Request::of(Some(&request.item())), request, "{text}");
        let bits = request.field.unwrap_or_default().bits(&record())?;
        Some(bits.iter().collect())
    }

    #[test]
    fn texts_select_fields() {
        for all in ["", "field()", "field(value,alarm)", "record[process=true]field()"] {
            assert_eq!(selected(all).unwrap(), [1, 3, 4], "{all}");
        }
        for severity in ["alarm.severity", "field(alarm.severity)", "field(alarm{severity})"] {
            assert_eq!(selected(severity).unwrap(), [3], "{severity}");
        }
        assert_eq!(selected("value, alarm.status , nothing").unwrap(), [1, 4]);
        assert_eq!(selected("field(nothing)"), None);
    }

    #[test]
    fn texts_say_options() {
        let text = "record[queueSize=4,pipeline=true]field(value[array=0:1:9],alarm.status)";
        let request = Request::parse(text).unwrap();
        assert_eq!(request.option::<usize>("queueSize"), Some(4));
        assert!(request.is_on("pipeline") && !request.is_on("process"));
        let fields = request.field.as_ref().unwrap();
        assert_eq!(fields.options_of("value").unwrap()["array"], "0:1:9");
        assert_eq!(fields.options_of("alarm.status"), None);
        assert_eq!(Request::of(Some(&request.item())), request);
    }

    #[test]
    fn texts_that_are_no_request_say_where() {
        for text in
            ["field(value", "record[a]", "record[a=b", "field(value))", "fields()", "field{"]
        {
            let error = Request::parse(text).unwrap_err().to_string();
            assert!(error.contains(" at byte "), "{error}");
        }
    }
}
