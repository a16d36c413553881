//! What each codec can, found by trying it: a row for each question, a column for each codec.

use super::codec::CodecError;
use super::rows::{ROWS, Row};
use super::sample::Sample;
use super::shape::{SHAPES, Shape};

/// A question that is tried with every codec.
struct Question {
    /// The question, as a table's row begins.
    name: &'static str,
    /// The answer of one codec.
    ask: fn(&Row) -> String,
}

const fn question(name: &'static str, ask: fn(&Row) -> String) -> Question {
    Question { name, ask }
}

static QUESTIONS: [Question; 16] = [
    question("nested messages", |row| comes_back(row, Shape::Nested)),
    question("one of several", |row| comes_back(row, Shape::OneOf)),
    question("enumeration", |row| comes_back(row, Shape::Enum)),
    question("map", |row| comes_back(row, Shape::Map)),
    question("a message within its own kind", |row| comes_back(row, Shape::Chain)),
    question("messages within each other, encoded and decoded", deepest),
    question("a message that is referred to twice", shared),
    question("a message that refers to itself", |row| unrolled(row, &[1])),
    question("two messages that refer to each other", |row| unrolled(row, &[1, 2])),
    question("bytes of a message of defaults", |row| bytes(row, &Sample::default())),
    question("bytes that int64 −1, 0 and 1 take more than 0", numbers),
    question("an older program reads newer bytes", older_reads_newer),
    question("fields that it doesn't know survive it", unknown_survive),
    question("a newer program reads older bytes", newer_reads_older),
    question("text that isn't UTF-8", not_text),
    question("a message cut short, at every byte", cut_short),
];

/// The table, as Markdown writes it.
pub(crate) fn table() -> String {
    let names: Vec<_> = ROWS.iter().map(|row| row.name).collect();
    let mut text = format!("| | {} |\n|---|{}\n", names.join(" | "), "---|".repeat(names.len()));
    for (question, answers) in answers() {
        text.push_str(&format!("| {question} | {} |\n", answers.join(" | ")));
    }
    text
}

/// Each question with the answers of all codecs, in the order of [`ROWS`].
pub(crate) fn answers() -> Vec<(&'static str, Vec<String>)> {
    let all = |question: &Question| ROWS.iter().map(question.ask).collect();
    QUESTIONS.iter().map(|question| (question.name, all(question))).collect()
}

fn there_and_back(row: &Row, sample: &Sample) -> Result<Sample, CodecError> {
    (row.decode)(&(row.encode)(sample)?)
}

fn yes(is: bool) -> String {
    if is { "yes" } else { "**no**" }.to_owned()
}

fn comes_back(row: &Row, shape: Shape) -> String {
    let most = SHAPES.iter().find(|row| row.shape == shape).map_or(0, |row| row.most);
    let seeds = (0..12).map(|seed| shape.make(most.min(10), seed));
    yes(seeds.into_iter().all(|sample| there_and_back(row, &sample).is_ok_and(|it| it == sample)))
}

/// The most levels that are tried.
const LOOKED: usize = 300;

/// How deep messages may lie in what is encoded, and in what is decoded.
fn deepest(row: &Row) -> String {
    let (mut encoded, mut decoded) = (0, 0);
    let mut sample = Sample { number: 1, ..Sample::default() };
    for levels in 1..=LOOKED {
        sample = Sample { inner: Some(Box::new(sample)), ..Sample::default() };
        let Ok(bytes) = (row.encode)(&sample) else { break };
        encoded = levels;
        if (row.decode)(&bytes).is_ok_and(|back| back == sample) {
            decoded = levels;
        }
    }
    let encoded = if encoded == LOOKED { format!("> {LOOKED}") } else { encoded.to_string() };
    format!("{encoded}, {decoded}")
}

/// Whether the second of two equal messages costs as much as the first.
fn shared(row: &Row) -> String {
    let one = Shape::Text.make(1000, 1);
    let of = |count| Sample { samples: vec![one.clone(); count], ..Sample::default() };
    let length = |sample| (row.encode)(&sample).map_or(0, |bytes| bytes.len());
    let is_twice = length(of(2)) - length(of(1)) >= 1000;
    if is_twice { "written twice" } else { "written once" }.to_owned()
}

/// What becomes of messages of these numbers, each of which refers to the next and the last to the
/// first. As a message owns what lies within it, the circle is followed level by level: a codec of
/// references would write each message once.
fn unrolled(row: &Row, numbers: &[i64]) -> String {
    let (mut sample, mut before) = (Sample::default(), 0);
    for (level, number) in numbers.iter().cycle().take(LOOKED).enumerate() {
        let inner = (level > 0).then(|| Box::new(sample));
        sample = Sample { number: *number, inner, ..Sample::default() };
        match (row.encode)(&sample) {
            Err(_) => return format!("unrolled, refused at {level}"),
            Ok(bytes) if bytes.len() <= before => return "written once".to_owned(),
            Ok(bytes) => before = bytes.len(),
        }
    }
    format!("unrolled, > {}", LOOKED - 1)
}

fn bytes(row: &Row, sample: &Sample) -> String {
    (row.encode)(sample).map_or_else(|why| why.to_string(), |bytes| bytes.len().to_string())
}

/// How many bytes more than a message without it, whose number is 0.
fn numbers(row: &Row) -> String {
    let length = |number| {
        let sample = Sample { number, ..Sample::default() };
        (row.encode)(&sample).map_or(0, |bytes| bytes.len())
    };
    let each = [-1, 0, 1].map(|number| (length(number) - length(0)).to_string());
    each.join(", ")
}

fn newer() -> Sample {
    Sample { small: 5, ..Shape::Nested.make(0, 3) }
}

fn older_reads_newer(row: &Row) -> String {
    let sample = newer();
    let read = (row.encode)(&sample).and_then(|bytes| (row.through_earlier)(&bytes));
    yes(read.is_ok_and(|read| (read.number, read.text) == (sample.number, sample.text)))
}

fn unknown_survive(row: &Row) -> String {
    let sample = newer();
    let again = (row.encode)(&sample).and_then(|bytes| (row.through_earlier)(&bytes));
    yes(again.and_then(|again| (row.decode)(&again.bytes)).is_ok_and(|back| back == sample))
}

fn newer_reads_older(row: &Row) -> String {
    yes((row.encode_earlier)(7, "older").and_then(|bytes| (row.decode)(&bytes)).is_ok_and(|back| {
        back == Sample { number: 7, text: "older".to_owned(), ..Sample::default() }
    }))
}

fn not_text(row: &Row) -> String {
    let text = "a text of thirty bytes or more";
    let sample = Sample { text: text.to_owned(), ..Sample::default() };
    let Ok(mut bytes) = (row.encode)(&sample) else { return "not encoded".to_owned() };
    let place = bytes.windows(text.len()).position(|window| window == text.as_bytes());
    let Some(place) = place else { return "not found".to_owned() };
    bytes[place..place + 2].copy_from_slice(&[0xff, 0xfe]);
    if (row.decode)(&bytes).is_err() { "refused" } else { "**taken**" }.to_owned()
}

/// How many of the places where bytes can end early are noticed.
fn cut_short(row: &Row) -> String {
    let Ok(bytes) = (row.encode)(&newer()) else { return "not encoded".to_owned() };
    let refused = (0..bytes.len()).filter(|end| (row.decode)(&bytes[..*end]).is_err()).count();
    format!("{refused} of {} refused", bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_the_docs_is_what_the_codecs_do() {
        let page = include_str!("../../../../docs/rpc-codecs.md");
        let table = table();
        assert!(page.contains(&table), "docs/rpc-codecs.md: `loadline rpc codecs` says\n{table}");
    }
}
