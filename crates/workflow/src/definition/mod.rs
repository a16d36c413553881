//! The text of definitions (`.def`): parsing and printing.
//!
//! A definition is read in one pass over its bytes, line by line, without a copy of a line; equal
//! names, values and expressions are shared. It is printed as ecFlow 5.9.2 prints it, byte by
//! byte, in four styles: for people ([`Style::Defs`], [`Style::State`]), for clients
//! ([`Style::Net`]), and as a checkpoint ([`Style::Migrate`]).

mod attributes;
mod check;
mod conditions;
mod error;
mod examine;
mod expression;
mod line;
mod parser;
mod print;
mod reader;
mod recent;
mod repeats;
mod state;
mod times;

pub use error::DefinitionError;
pub use examine::{Examined, examine};
pub use expression::{
    EXPRESSION_LIMIT, ExpressionError, PARENTHESES_LIMIT, TERMS_LIMIT, expression, kept_expression,
    parse_expression,
};
pub use line::is_name;
pub(crate) use parser::parse_remembering;
pub use parser::{
    Parsed, only_node, parse, parse_attribute, parse_condition, parse_kept, parse_node,
};
pub(crate) use print::print_by;
pub use print::{
    END, VERSION, append_kept, print, print_attribute, print_cut, print_migrated, print_node,
    print_node_within, print_pieces,
};
pub use reader::{ATTRIBUTES_LIMIT, Style};
pub(crate) use recent::RECENT;
