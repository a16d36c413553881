//! A target's advisor: a thread of its own samples the target within slices, and asks it for the
//! conclusion when a trial has been measured. Its CPU time is the lab's; that of answering is the
//! target's.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use load::{Advisor, Conclusion};

/// The interval of samples within slices.
const EVERY: Duration = Duration::from_millis(100);

/// The deadline of a conclusion, after which there is none.
const CONCLUDE_WITHIN: Duration = Duration::from_secs(20);

enum Command {
    /// A slice begins.
    Begin,
    /// It has ended.
    End,
    /// The trial has ended.
    Conclude(Sender<Conclusion>),
}

/// Samples one target. Its thread ends with it, or with the answer that it waits for.
#[derive(Debug)]
pub(crate) struct AdvisorMeter(Sender<Command>);

impl AdvisorMeter {
    /// Starts its thread.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn start(name: &str, advisor: Box<dyn Advisor>) -> std::io::Result<Self> {
        let (commands, received) = channel();
        let name = name.to_owned();
        let thread = std::thread::Builder::new().name("advisor".into());
        thread.spawn(move || follow(&name, advisor, &received))?;
        Ok(Self(commands))
    }

    /// Samples from now on.
    pub(crate) fn begin(&self) {
        let _ = self.0.send(Command::Begin);
    }

    /// Samples no longer.
    pub(crate) fn end(&self) {
        let _ = self.0.send(Command::End);
    }

    /// What was seen since the last conclusion; `None` where the target didn't say.
    pub(crate) fn conclude(&self) -> Option<Conclusion> {
        let (to, answer) = channel();
        self.0.send(Command::Conclude(to)).ok()?;
        answer.recv_timeout(CONCLUDE_WITHIN).ok()
    }
}

/// Does what is asked until nothing more can be; a fault is reported once a trial.
fn follow(name: &str, mut advisor: Box<dyn Advisor>, commands: &Receiver<Command>) {
    let (mut is_measured, mut fault) = (false, None);
    loop {
        let next = match is_measured && fault.is_none() {
            true => commands.recv_timeout(EVERY),
            false => commands.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(Command::Begin) => is_measured = true,
            Ok(Command::End) => is_measured = false,
            Ok(Command::Conclude(to)) => {
                let concluded = match fault.take() {
                    None => advisor.conclude(),
                    Some(fault) => Err(fault),
                };
                match concluded {
                    // The reader may have timed out.
                    Ok(conclusion) => drop(to.send(conclusion)),
                    Err(fault) => tracing::warn!("{name}: its statements are unseen: {fault}"),
                }
            }
            Err(RecvTimeoutError::Timeout) => fault = advisor.sample().err(),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use wire::ProtocolError;

    use super::*;

    /// Says when it has been sampled.
    struct Plain {
        sampled: Sender<()>,
        is_broken: bool,
    }

    impl Advisor for Plain {
        fn sample(&mut self) -> Result<(), ProtocolError> {
            let _ = self.sampled.send(());
            if self.is_broken { Err(ProtocolError::new("gone")) } else { Ok(()) }
        }

        fn conclude(&mut self) -> Result<Conclusion, ProtocolError> {
            Ok(Conclusion { version: Some("Plain 1".to_owned()), ..Conclusion::default() })
        }
    }

    #[test]
    fn a_target_is_sampled_within_slices_and_what_fails_is_unseen_in_that_trial() {
        for is_broken in [false, true] {
            let (sampled, samples) = channel();
            let meter = AdvisorMeter::start("plain", Box::new(Plain { sampled, is_broken }));
            let meter = meter.expect("a thread");
            meter.begin();
            samples.recv().expect("a sample");
            meter.end();
            assert_eq!(meter.conclude().is_none(), is_broken);
            assert!(meter.conclude().is_some(), "of the next trial");
            drop(meter);
            while samples.recv().is_ok() {}
        }
    }
}
