//! The service from outside: its model against a naive one, its interface over HTTP, what is left
//! of it after it was killed, and the lab's workload.

mod errors;
mod interface;
mod kill;
mod load;
mod naive;
mod random;
mod served;
