//! Connections over shared memory or MPI, a thread each: it waits for them itself, which no runtime
//! can.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::super::settings::Settings;
use super::super::shared::Shared;
use super::super::work::{has_read, has_written, system_calls_are};
use super::session::Session;
use super::when::When;
use crate::duplex::{Duplex, For};
use crate::mpi;
use crate::shm::Link;
use crate::writes::Sending;

/// What is taken at once.
const INPUT_BYTES: usize = 32 << 10;

/// How often a thread that waits looks whether the server stops.
const LOOK: Duration = Duration::from_millis(50);

/// How long a rank waits for the greeting of rank 0: longer than any job.
const MOST_WAIT: Duration = Duration::from_secs(10 * 365 * 24 * 3_600);

/// Serves a client over shared memory, until it ends. One that takes nothing for too long is an
/// end, too.
pub(in crate::server) fn serve_shared(socket: UnixStream, shared: Arc<Shared>) {
    let link = Link::offer(socket, shared.settings.wait);
    // Whichever way it ends, there is no one to tell.
    let _ = link.and_then(|link| serve(link, "shm", shared));
}

/// Serves rank 0 of this process's job of MPI, until it ends.
///
/// # Errors
/// When MPI has failed, or rank 0 takes nothing.
pub(crate) fn serve_rank(link: mpi::Link) -> io::Result<()> {
    // A rank that isn't asked waits for the end of the job.
    let settings = Settings { handshake_timeout: MOST_WAIT, ..Settings::default() };
    serve(link, "mpi", Arc::new(Shared::new(settings)))
}

fn serve(mut link: impl Duplex, carrier: &'static str, shared: Arc<Shared>) -> io::Result<()> {
    let mut session = Session::new(Arc::clone(&shared), carrier, Instant::now());
    let mut stage = shared.stage_now();
    let mut input = vec![0; INPUT_BYTES];
    let mut sending = Sending::new(shared.settings.writes);
    loop {
        flush(&mut link, &mut session, &mut sending, &shared)?;
        if session.is_over() {
            return Ok(());
        }
        let now = Instant::now();
        let new = shared.stage_now();
        if new != stage {
            stage = new;
            session.stage_is(stage, now);
            continue;
        }
        if session.is_paused() {
            session.receive(&now.into());
            continue;
        }
        let look = now + LOOK;
        let until = session.due().map_or(look, |due| due.min(look));
        match link.wait(For::Bytes, Some(until)) {
            Ok(true) => take(&mut link, &mut session, &mut input)?,
            Ok(false) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => session.closed(),
            Err(error) => return Err(error),
        }
        // A client that sends without end delays neither a sleep nor a deadline.
        if let Some(due) = session.due() {
            let now = Instant::now();
            if due <= now {
                session.expire(now);
            }
        }
    }
}

/// Takes what has come, and does it.
fn take(link: &mut impl Duplex, session: &mut Session, input: &mut [u8]) -> io::Result<()> {
    let count = link.receive(input)?;
    has_read();
    system_calls_are(link.system_calls());
    session.append(&input[..count]);
    session.receive(&When::default());
    Ok(())
}

/// Writes all that waits.
fn flush(
    link: &mut impl Duplex,
    session: &mut Session,
    sending: &mut Sending,
    shared: &Shared,
) -> io::Result<()> {
    let was_empty = session.out().is_empty();
    while !session.out().is_empty() {
        match sending.with_slices(session.out(), |slices| link.send(slices))? {
            0 => {
                let until = Instant::now() + shared.settings.take_timeout;
                if !link.wait(For::Room, Some(until))? {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            count => {
                has_written();
                sending.sent(session.out(), count);
            }
        }
    }
    if !was_empty {
        session.count_memory();
    }
    Ok(())
}
