//! The service from outside: its model against a naive one.

mod naive;
mod random;
