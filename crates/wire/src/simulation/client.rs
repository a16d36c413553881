//! The clients of a simulation: what a service's own code decides, and how connections end.

use super::random::Random;
use crate::{Input, Ns};

/// What a client does after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It may send more the next time.
    Send,
    /// It waits for bytes: a server that sends none is stuck.
    Await,
    /// It has nothing to send now, and nothing is due from the server.
    Idle,
    /// It has sent its last byte, and reads to the end.
    Finish,
    /// It breaks the connection off.
    Reset,
}

/// How a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// This client, or the network, broke it: any byte may be lost.
    Broken,
    /// The server closed it: every byte that it sent has come.
    Closed,
    /// The server broke it, as it does with bytes that it hasn't read.
    Dropped,
}

/// One client's side of a simulated connection: a service's simulation implements it, and checks
/// every answer. An error ends the simulation, with its seed.
pub trait Client {
    /// Appends requests to `out`, if any, and returns what it does next. Not called while earlier
    /// requests wait in large number for the network.
    ///
    /// # Errors
    /// What is wrong.
    fn send(&mut self, now: Ns, random: &mut Random, out: &mut Vec<u8>) -> Result<Next, String>;

    /// Bytes have come: consumes and checks whole answers.
    ///
    /// # Errors
    /// What is wrong with an answer.
    fn receive(&mut self, now: Ns, input: &mut Input) -> Result<(), String>;

    /// The connection has ended. `is_stopping` is true once the server has been asked to stop.
    ///
    /// # Errors
    /// What is missing, or why it should not have ended.
    fn ended(&mut self, now: Ns, end: End, is_stopping: bool) -> Result<(), String>;
}
