//! One operation on one channel that outlives its server: when the connection is lost, or the
//! record is remade, the channel is located again and the operation begins anew.

use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::backoff::{self, Backoff};
use super::connection::{Channel, Client, Settings};
use super::error::ClientError;
use super::operation::{Operation, Update};

/// What happens to a session's connection.
#[derive(Debug)]
pub enum Event<'a> {
    /// It is lost.
    Disconnected(&'a ClientError),
    /// It can't be had again yet, for another reason than the one reported before.
    Unreachable(&'a ClientError),
    /// It is there again.
    Connected(SocketAddr),
}

/// Returns the address of the server that has the channel now.
type Locate = Box<dyn FnMut() -> Result<SocketAddr, ClientError> + Send>;

/// Begins the operation.
type Begin = Box<dyn FnMut(&mut Client, &Channel) -> Result<Operation, ClientError> + Send>;

/// Is called with each event.
type Observe = Box<dyn FnMut(&Event<'_>) + Send>;

/// A channel with one operation. Without [`reconnecting`](Self::reconnecting), a lost connection is
/// an error.
pub struct Session {
    name: String,
    settings: Settings,
    locate: Locate,
    begin: Begin,
    observe: Option<Observe>,
    link: Link,
    backoff: Backoff,
    connected: Instant,
}

struct Link {
    client: Client,
    channel: Channel,
    operation: Operation,
}

impl Session {
    /// Connects once to where `locate` finds the channel, and has `begin` begin its operation.
    ///
    /// # Errors
    /// When the channel isn't found, the server isn't reached, or it refuses.
    pub fn open(
        name: &str,
        settings: Settings,
        locate: impl FnMut() -> Result<SocketAddr, ClientError> + Send + 'static,
        begin: impl FnMut(&mut Client, &Channel) -> Result<Operation, ClientError> + Send + 'static,
    ) -> Result<Self, ClientError> {
        let (mut locate, mut begin): (Locate, Begin) = (Box::new(locate), Box::new(begin));
        Ok(Self {
            link: Link::connect(name, &settings, &mut locate, &mut begin)?,
            name: name.to_owned(),
            settings,
            locate,
            begin,
            observe: None,
            backoff: Backoff::default(),
            connected: Instant::now(),
        })
    }

    /// The same, which connects again whenever the connection is lost, and reports that.
    #[must_use]
    pub fn reconnecting(self, observe: impl FnMut(&Event<'_>) + Send + 'static) -> Self {
        Self { observe: Some(Box::new(observe)), ..self }
    }

    /// The connection and the operation.
    pub fn parts(&mut self) -> (&mut Client, &mut Operation) {
        (&mut self.link.client, &mut self.link.operation)
    }

    /// Has `step` use the connection; once more on a new one each time that it is lost.
    ///
    /// # Errors
    /// What `step` returns, unless it is a lost connection and this one reconnects.
    pub fn run<T>(
        &mut self,
        mut step: impl FnMut(&mut Client, &mut Operation) -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        loop {
            let (client, operation) = self.parts();
            match step(client, operation) {
                Err(why) => self.recover(why)?,
                done => return done,
            }
        }
    }

    /// The next update of a monitor; none, when nothing comes within `wait`.
    ///
    /// # Errors
    /// As [`Session::run`], and when the server ends the monitor.
    pub fn next(&mut self, wait: Duration) -> Result<Option<Update>, ClientError> {
        self.run(|client, monitor| client.next(monitor, wait))
    }

    /// Closes the channel and opens it anew, with the operation.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn reopen(&mut self) -> Result<(), ClientError> {
        let Self { link, begin, .. } = self;
        match link.reopen(begin) {
            Err(why) => self.recover(why),
            done => done,
        }
    }

    /// Ends the operation and begins it anew.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn restart(&mut self) -> Result<(), ClientError> {
        let Self { link, begin, .. } = self;
        match link.restart(begin) {
            Err(why) => self.recover(why),
            done => done,
        }
    }

    /// Waits until there is a connection again, if `why` means that it is lost.
    ///
    /// # Errors
    /// `why`, if it means something else or this session doesn't reconnect.
    pub fn recover(&mut self, why: ClientError) -> Result<(), ClientError> {
        let Self { name, settings, locate, begin, link, backoff, connected, .. } = self;
        let Some(observe) = self.observe.as_mut().filter(|_| why.is_loss()) else {
            return Err(why);
        };
        observe(&Event::Disconnected(&why));
        // A server that goes away again and again is left in peace for longer and longer.
        if connected.elapsed() > backoff::MOST {
            *backoff = Backoff::default();
        }
        let mut reported = why.to_string();
        loop {
            std::thread::sleep(backoff.wait(rand::random()));
            match Link::connect(name, settings, locate, begin) {
                Ok(new) => {
                    observe(&Event::Connected(new.client.address()));
                    (*link, *connected) = (new, Instant::now());
                    return Ok(());
                }
                // A server that has just started may not have the record yet.
                Err(why) if why.is_loss() || matches!(why, ClientError::Refused(_)) => {
                    let text = why.to_string();
                    if text != reported {
                        observe(&Event::Unreachable(&why));
                        reported = text;
                    }
                }
                Err(why) => return Err(why),
            }
        }
    }
}

impl Link {
    fn connect(
        name: &str,
        settings: &Settings,
        locate: &mut Locate,
        begin: &mut Begin,
    ) -> Result<Self, ClientError> {
        let mut client = Client::connect(locate()?, settings.clone())?;
        let channel = client.channel(name)?;
        let operation = begin(&mut client, &channel)?;
        Ok(Self { client, channel, operation })
    }

    fn reopen(&mut self, begin: &mut Begin) -> Result<(), ClientError> {
        self.client.close(&self.channel)?;
        self.channel = self.client.channel(&self.channel.name)?;
        self.operation = begin(&mut self.client, &self.channel)?;
        Ok(())
    }

    fn restart(&mut self, begin: &mut Begin) -> Result<(), ClientError> {
        self.client.end(&self.operation)?;
        self.operation = begin(&mut self.client, &self.channel)?;
        Ok(())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("name", &self.name).finish_non_exhaustive()
    }
}
