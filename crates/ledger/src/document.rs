//! The section on tables of docs/ledger.md, which is made of the tables' own comments.
//!
//! `LEDGER_DOCS=write cargo test -p loadline-ledger document` writes it anew.

use crate::rows::tables;
use crate::table::Table;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ledger.md");
const BEGIN: &str = "<!-- tables: made of crates/ledger/src/rows -->\n";
const END: &str = "<!-- end -->\n";

/// The lines of a doc comment, a paragraph each.
fn paragraphs(about: &[&str]) -> Vec<String> {
    let paragraphs = about.split(|line| line.is_empty());
    paragraphs.map(|lines| lines.concat().trim().to_owned()).collect()
}

/// The text with a small first letter, where that begins no name such as CPU.
fn small(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(text.chars().skip(1)).collect()
        }
        _ => text.to_owned(),
    }
}

fn section(table: &Table) -> String {
    let mut about = paragraphs(table.about);
    let first = about.remove(0);
    let (heading, rest) = first.split_once(". ").unwrap_or((first.trim_end_matches('.'), ""));
    let mut text = format!("\n### `{}`: {}\n", table.name, small(heading));
    let rest = (!rest.is_empty()).then(|| rest.to_owned());
    for paragraph in rest.into_iter().chain(about) {
        text += &format!("\n{paragraph}\n");
    }
    text += "\n| column | meaning |\n|---|---|\n";
    if table.has_id {
        text += "| `id` | counts up, and is never given twice |\n";
    }
    for column in table.columns() {
        let meaning = paragraphs(column.about).join(" ");
        text += &format!("| `{}` | {} |\n", column.name, small(meaning.trim_end_matches('.')));
    }
    text
}

#[test]
fn the_page_explains_every_table_as_its_rows_do() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the mark before the tables");
    let (written, after) = rest.split_once(END).expect("the mark after the tables");
    let made: String = tables().map(section).collect::<String>() + "\n";
    if std::env::var_os("LEDGER_DOCS").is_some() {
        std::fs::write(PAGE, format!("{before}{BEGIN}{made}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(written, made, "LEDGER_DOCS=write cargo test -p loadline-ledger document");
}
