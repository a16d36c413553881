//! The stream of changes: events for whoever follows the tree (`text/event-stream`), each with the
//! number up to which it goes, so that a client that was cut resumes behind it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::app::App;
use super::fault::Fault;
use super::json::rendered;
use super::reads::Query;
use super::rows::Row;
use crate::model::{Aspect, NodeId};
use crate::server::message::Look;

/// How often the tree is looked at while anybody follows it.
const EVERY: Duration = Duration::from_millis(100);

/// How long a stream says nothing; then a comment shows whether its client is there.
const SILENCE: Duration = Duration::from_secs(15);

/// The clients that may follow at once.
const CLIENTS: usize = 200;

/// Events that a client may be behind; a slower one is cut.
const EVENTS: usize = 64;

/// The most nodes of an event; of more the client takes anew what it shows.
const NODES: usize = 2_000;

/// What all streams share.
pub(super) struct Follow {
    events: Sender<Arc<Event>>,
    clients: Arc<Semaphore>,
    is_running: Mutex<bool>,
}

/// Numbers of the last changes: of state, of structure.
type Numbers = (u32, u32);

struct Event {
    numbers: Numbers,
    /// Whether what is to be warned of is something else than before.
    warns: bool,
    text: Bytes,
}

impl Event {
    /// Whether it brings nothing to a client that has these numbers.
    fn is_known(&self, numbers: Numbers) -> bool {
        self.numbers < numbers || self.numbers == numbers && !self.warns
    }
}

impl Follow {
    pub(super) fn new() -> Self {
        let clients = Arc::new(Semaphore::new(CLIENTS));
        Self { events: channel(EVENTS).0, clients, is_running: Mutex::new(false) }
    }

    /// A place among the events, before which nothing is lost.
    fn subscribe(self: &Arc<Self>, app: &Arc<App>) -> Receiver<Arc<Event>> {
        let mut is_running = self.is_running.lock().unwrap_or_else(PoisonError::into_inner);
        let receiver = self.events.subscribe();
        if !*is_running {
            *is_running = true;
            tokio::spawn(look_on(Arc::clone(self), Arc::clone(app)));
        }
        receiver
    }

    /// Whether no client is left, and looking ends.
    fn is_over(&self) -> bool {
        let mut is_running = self.is_running.lock().unwrap_or_else(PoisonError::into_inner);
        *is_running = self.events.receiver_count() > 0;
        !*is_running
    }
}

/// Makes events of what changes, and of what is to be warned of, as long as anybody follows.
async fn look_on(follow: Arc<Follow>, app: Arc<App>) {
    let mut known: Option<(Numbers, Option<String>)> = None;
    while !follow.is_over() {
        let since = known.as_ref().map(|((state, _), _)| *state);
        let Ok(look) = app.look_since(since).await else { break };
        let now = (numbers(&look), app.taken_up());
        if let Some((before, warned)) = known.filter(|known| *known != now) {
            let (warning, warns) = (now.1.clone(), warned != now.1);
            let event = App::beside(move || event(&look, Some(before), warning));
            if let Ok(event) = event.await {
                // Whoever was there may have gone.
                let _ = follow.events.send(Arc::new(Event { warns, ..event }));
            }
        }
        known = Some(now);
        sleep(EVERY).await;
    }
}

const fn numbers(look: &Look) -> Numbers {
    (look.snapshot.state_change_no(), look.snapshot.modify_change_no())
}

/// What has changed since these numbers, and what is to be warned of.
fn event(look: &Look, known: Option<Numbers>, warning: Option<String>) -> Result<Event, Fault> {
    let tree = &look.snapshot;
    let numbers = numbers(look);
    let is_same = known.is_some_and(|known| known.1 == numbers.1);
    let changed = look.changed.as_ref().filter(|all| is_same && all.len() <= NODES);
    let mut data = json!({ "server": tree.server().state.word(), "warning": warning });
    let kind = match changed {
        Some(changed) => {
            let nodes = changed.iter().filter(|(id, _)| **id != NodeId::ROOT);
            let rows: Result<Vec<_>, _> = nodes
                .map(|(id, changed)| {
                    let mut row = serde_json::to_value(Row::with_path(tree, *id))?;
                    if changed.has(Aspect::Children) || changed.has(Aspect::Order) {
                        row["below"] = json!(true);
                    }
                    Ok(row)
                })
                .collect();
            let rows: Vec<_> =
                rows.map_err(|why: serde_json::Error| Fault::bad(why.to_string(), ""))?;
            data["nodes"] = json!(rows);
            "changes"
        }
        None => "reset",
    };
    let data = String::from_utf8(rendered(&data)?).unwrap_or_default();
    let (state, modify) = numbers;
    let text = format!("id: {state}.{modify}\nevent: {kind}\ndata: {data}\n\n");
    Ok(Event { numbers, warns: false, text: text.into() })
}

/// The numbers that a client names: its last event's, or those of `since`.
fn since(headers: &HeaderMap, query: &Query) -> Result<Option<Numbers>, Fault> {
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let Some(text) = last.or_else(|| query.get("since")).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let pair = text.split_once('.').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    let bad = || {
        let message = format!("since: {text:?} is no number of an event");
        Fault::bad(message, "write the id of the last event, such as 120.3")
    };
    pair.map(Some).ok_or_else(bad)
}

/// One client's stream.
struct Stream {
    receiver: Receiver<Arc<Event>>,
    known: Numbers,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

impl Stream {
    /// What is sent next; nothing once the client was cut.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.is_over {
            match timeout(SILENCE, self.receiver.recv()).await {
                Err(_) => return Some(Bytes::from_static(b": still here\n\n")),
                Ok(Ok(event)) if event.is_known(self.known) => {}
                Ok(Ok(event)) => {
                    self.known = event.numbers;
                    return Some(event.text.clone());
                }
                Ok(Err(RecvError::Closed)) => return None,
                Ok(Err(RecvError::Lagged(count))) => {
                    self.is_over = true;
                    let (state, modify) = self.known;
                    let data = json!({
                        "reason": format!("{count} events more than {EVENTS} wait"),
                        "since": format!("{state}.{modify}"),
                    });
                    return Some(format!("event: cut\ndata: {data}\n\n").into());
                }
            }
        }
        None
    }
}

/// Answers with the stream: first what has changed since the client's numbers, then what changes.
pub(super) async fn changes(
    follow: &Arc<Follow>,
    app: &Arc<App>,
    headers: &HeaderMap,
    query: &Query,
) -> Result<Response, Fault> {
    let known = since(headers, query)?;
    let place = Arc::clone(&follow.clients).try_acquire_owned();
    let place = place.map_err(|_| Fault::busy(format!("{CLIENTS} clients follow already")))?;
    let receiver = follow.subscribe(app);
    let look = app.look_since(known.map(|(state, _)| state)).await?;
    let now = numbers(&look);
    let first = match known {
        Some(known) if known != now => {
            let warning = app.taken_up();
            App::beside(move || event(&look, Some(known), warning)).await?.text
        }
        _ => {
            let data = json!({ "warning": app.taken_up() });
            format!("id: {}.{}\nevent: begin\ndata: {data}\n\n", now.0, now.1).into()
        }
    };
    let stream = Stream { receiver, known: now, is_over: false, _place: place };
    let stream = unfold((Some(first), stream), async |(first, mut stream)| {
        let bytes = match first {
            Some(first) => first,
            None => stream.next().await?,
        };
        Some((Ok::<_, std::convert::Infallible>(bytes), (None, stream)))
    });
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(stream)).into_response())
}
