//! The functions that can be called: name, types, Rust function, a row each.
