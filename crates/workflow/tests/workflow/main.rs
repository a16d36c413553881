//! The service from outside: definitions as ecFlow itself reads and prints them; the server by
//! ecFlow's own client, with real jobs, and beside ecFlow's own server.

mod alter;
mod archives;
mod binary;
mod checked;
mod checks;
mod commands;
mod crash;
mod damaged;
mod definition;
mod edited;
mod full;
mod generated;
mod histories;
mod hostile;
mod jobs;
mod levels;
mod memory;
mod moving;
mod page;
mod passwords;
mod place;
mod plugs;
mod random_definition;
mod recorded;
mod rules;
mod runners;
mod served;
mod simulated;
mod statistics;
mod sync;
mod tls;
mod turns;
mod web;
mod window;
mod zombies;
