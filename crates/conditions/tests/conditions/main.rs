//! The service from outside: its model against a naive one, its interface over HTTP, and what is
//! left of it after it was killed.

mod errors;
mod interface;
mod kill;
mod naive;
mod random;
mod served;
