//! The service from outside: definitions as ecFlow itself reads and prints them.

mod damaged;
mod definition;
mod random_definition;
mod rules;
