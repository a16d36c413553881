//! Progress of a run on standard error: a full-screen view on a terminal, else a line a round. Both
//! show one state, which `state` folds from the events of the run. The results are printed when
//! this is over. The browser's page is another process, which has the ledger's trials for events;
//! their fold into a target's figures, `findings::TargetProgress`, is the same. What the ledger
//! doesn't have yet is published to it in a file, once a second.
//!
//! A frame (less than a millisecond of one core) is drawn between slices, when nothing is measured.
//! Slices of a second and less are shown when they end. Within a longer one the clock, the sensors
//! and the figures of whole seconds are updated four times a second where there is a core that the
//! run doesn't use, else once a second. The load threads only copy a second's latencies once that
//! second is over.
//!
//! | file | what it holds |
//! |---|---|
//! | `screen` | taking the terminal and giving it back |
//! | `signals` | what ends a run, and what must not leave the terminal taken |
//! | `state` | the state of a run, folded from its events |
//! | `draw` | the state as a full screen, for any size of terminal |
//! | `lines` | the state as a line a round |
//! | `published` | the state as a file, for the browser's page |

mod draw;
mod lines;
mod published;
mod screen;
mod signals;
mod state;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lab::plan::Plan;
use lab::run::{LiveFeed, RunEvent};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::fs::FileType;

use crate::out::note;
use crate::storage::Storage;
use lines::Lines;
use published::Published;
pub(crate) use published::published;
use screen::{Canvas, Out};
pub(crate) use signals::stop_flag;
use state::State;

/// From one frame to the next, at least.
const FRAME: Duration = Duration::from_millis(250);

/// How long a view without a core of its own stays as it is while a slice is measured.
const QUIET: Duration = Duration::from_secs(1);

/// Shows how a run goes, until it is dropped.
pub(crate) struct Live {
    shown: Shown,
}

enum Shown {
    Lines(Box<Lines>, Published),
    View(View),
}

impl Live {
    /// Begins to show a run of this plan.
    pub(crate) fn begin(plan: &Plan, plain: bool, storage: &Storage) -> Self {
        let published = || Published::begin(storage);
        let view = if !plain && may_view() { View::begin(plan, published()).ok() } else { None };
        let lines = || Shown::Lines(Box::new(Lines::begin(State::of(plan))), published());
        Self { shown: view.map_or_else(lines, Shown::View) }
    }

    pub(crate) fn show(&mut self, event: &RunEvent<'_>) {
        match &mut self.shown {
            Shown::Lines(lines, published) => lines.show(event, published).iter().for_each(note),
            Shown::View(view) => view.show(event),
        }
    }
}

/// Whether colours are welcome where there are any (no-color.org).
pub(crate) fn may_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Whether the terminal may be taken. In a pipeline another program, such as a pager, may use it.
fn may_view() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let kind = rustix::fs::fstat(std::io::stdout()).map(|stat| stat.st_mode);
    let kind = kind.map(FileType::from_raw_mode);
    let piped = kind.is_ok_and(|kind| [FileType::Fifo, FileType::Socket].contains(&kind));
    std::io::stderr().is_terminal() && !dumb && !piped && screen::in_foreground()
}

/// The view: drawn when an event comes, and by a thread when none comes for long.
struct View {
    picture: Arc<Mutex<Picture>>,
    /// Whether the terminal is to be taken again after a pause.
    wanted: Arc<AtomicBool>,
    /// Hanging up ends the thread.
    end: Option<Sender<()>>,
    ticker: Option<JoinHandle<()>>,
}

/// What is drawn, and where.
struct Picture {
    state: State,
    /// The events within slices, once the run has begun.
    feed: Option<LiveFeed>,
    canvas: Canvas,
    terminal: Terminal<CrosstermBackend<Out>>,
    colour: bool,
    began: Instant,
    drawn: Option<Instant>,
    published: Published,
}

impl View {
    fn begin(plan: &Plan, published: Published) -> std::io::Result<Self> {
        let canvas = Canvas::default();
        let wanted = Arc::new(AtomicBool::new(true));
        signals::keep_the_terminal(wanted.clone())?;
        let picture = Arc::new(Mutex::new(Picture {
            state: State::of(plan),
            feed: None,
            canvas,
            terminal: canvas.wiped()?,
            colour: may_colour(),
            began: Instant::now(),
            drawn: None,
            published,
        }));
        let aside = cpus_aside(plan);
        let quiet = if aside.is_empty() { QUIET } else { FRAME };
        let (end, ended) = channel::<()>();
        let its = picture.clone();
        let tick = move || {
            // Where it can't be pinned it is drawn all the same.
            let _ = lab::cpus::pin_this_thread(&aside);
            while ended.recv_timeout(FRAME) == Err(RecvTimeoutError::Timeout) {
                locked(&its).draw_after(quiet);
            }
        };
        let ticker = std::thread::Builder::new().name("view".into()).spawn(tick)?;
        let view = Self { picture, wanted, end: Some(end), ticker: Some(ticker) };
        screen::take()?;
        Ok(view)
    }

    fn show(&mut self, event: &RunEvent<'_>) {
        let mut picture = locked(&self.picture);
        if let RunEvent::Begins(feed) = event {
            picture.feed = Some(feed.follow());
        }
        let at = picture.began.elapsed();
        picture.state.fold(at, event);
        picture.draw_after(FRAME);
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.wanted.store(false, Ordering::Relaxed);
        drop(self.end.take());
        if let Some(ticker) = self.ticker.take() {
            let _ = ticker.join();
        }
        screen::give_back();
        // What was worth a line has gone with the screen.
        for said in locked(&self.picture).state.said() {
            note(said);
        }
    }
}

impl Picture {
    /// Draws, unless that was done a moment ago.
    fn draw_after(&mut self, least: Duration) {
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < least) {
            return;
        }
        self.drawn = Some(Instant::now());
        let at = self.began.elapsed();
        for event in self.feed.iter().flat_map(LiveFeed::events) {
            self.state.fold(at, &event);
        }
        self.published.write(&self.state, at);
        let canvas = Canvas::now();
        if canvas != self.canvas {
            let Ok(wiped) = canvas.wiped() else { return };
            (self.canvas, self.terminal) = (canvas, wiped);
        }
        // What can't be shown is no reason to end a run.
        let (state, colour) = (&self.state, self.colour);
        let _ = self.terminal.draw(|frame| draw::draw(frame, state, at, colour));
    }
}

/// The cores that the run leaves alone.
fn cpus_aside(plan: &Plan) -> Vec<usize> {
    let mut used: Vec<&[usize]> = Vec::new();
    for point in &plan.points {
        used.extend(point.targets.iter().map(|target| &target.cpus[..]));
        used.extend(point.clients.iter().map(|group| &group.cpus[..]));
    }
    if used.iter().any(|cpus| cpus.is_empty()) {
        return Vec::new();
    }
    let used = used.concat();
    lab::cpus::cpus_here().into_iter().filter(|cpu| !used.contains(cpu)).collect()
}

/// A panicked thread leaves consistent figures behind.
fn locked(picture: &Mutex<Picture>) -> MutexGuard<'_, Picture> {
    picture.lock().unwrap_or_else(PoisonError::into_inner)
}
