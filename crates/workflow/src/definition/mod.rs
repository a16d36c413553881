//! The text of definitions (`.def`): parsing and printing.
