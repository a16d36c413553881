//! One connection over standard input and output: what `loadline serve rpc --pipe` serves to the
//! process that has started it.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use super::super::opening::converse;
use super::super::settings::Settings;
use super::super::shared::{FORCED, Shared, Stage};

/// Serves until the client has closed its end, or a signal ends it: then calls in flight have
/// `drain`. A second signal ends it at once; SIGHUP reads the tokens again.
///
/// # Errors
/// When standard input and output are no pipes.
pub fn serve_standard(settings: Settings, drain: Duration) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let shared = Arc::new(Shared::new(settings));
    runtime.block_on(async {
        let words = "--pipe serves standard input and output, which have to be pipes: start it as \
                     a child, as `loadline rpc ping 'pipe:loadline serve rpc --pipe'` does";
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        let output = io::stdout().as_fd().try_clone_to_owned()?;
        let input = Receiver::from_owned_fd(input).context(words)?;
        let output = Sender::from_owned_fd(output).context(words)?;
        let stream = tokio::io::join(input, output);
        tokio::select! {
            // Signals are caught before the client is greeted.
            biased;
            stopped = stopped(&shared, drain) => stopped,
            () = converse(stream, "pipe", Arc::clone(&shared)) => Ok(()),
        }
    })
}

/// Waits until a signal has ended it.
async fn stopped(shared: &Shared, drain: Duration) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            _ = hangup.recv() => {
                if let Some(tokens) = &shared.settings.tokens
                    && let Err(error) = tokens.read_again()
                {
                    tracing::error!("tokens stay as they were: {error:#}");
                }
            }
        }
    }
    shared.set_stage(Stage::Draining);
    tokio::select! {
        () = sleep(drain) => {
            shared.set_stage(Stage::Forced);
            sleep(FORCED).await;
        }
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
