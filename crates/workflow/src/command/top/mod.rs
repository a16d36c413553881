//! `loadline workflow top`: a server's tree on the terminal. Control plane.
//!
//! One thread follows the server and asks it what is to be done; this one draws, and reads keys.

mod draw;
mod view;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use base::units::Span;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use serde_json::json;
use service::{Failure, Outcome, out};
use signal_hook::consts::{SIGHUP, SIGTERM};

use self::draw::Around;
use self::view::{Step, View};
use super::input;
use super::server::{ServerArgs, failure};
use crate::client::Follower;
use crate::model::{Displayed, Snapshot};
use crate::protocol::{Command, PathsCommand, Requeue};

const EXAMPLES: &str = "\
Examples:
  loadline workflow top localhost:3141
  loadline workflow top localhost --filter archive --state aborted
  loadline workflow top localhost --read-only
  loadline workflow top localhost --once --state aborted     one look, as text

Keys: arrows (or h j k l), PageUp, PageDown, Home and End move; Enter opens and closes; / filters by
name, a by state; w says why a node waits; s suspends, u resumes, x runs, e requeues, each once y is
pressed; r takes the whole tree anew; q quits. NO_COLOR leaves colours out.";

/// A server.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TopArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Show only nodes whose names contain this, and what is around them
    #[arg(long, value_name = "TEXT", default_value = "")]
    filter: String,
    /// Show only tasks of this state, or what is suspended
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// Change nothing
    #[arg(long)]
    read_only: bool,
    /// How often the server is asked
    #[arg(long, value_name = "TIME", default_value = "1s")]
    interval: Span,
    /// Print the list once, as text, and end
    #[arg(long)]
    once: bool,
    /// Print it as one JSON document
    #[arg(long, requires = "once")]
    json: bool,
}

/// How long keys are waited for before signals and news are looked at.
const TURN: Duration = Duration::from_millis(50);

/// The exit code of what was interrupted.
const INTERRUPTED: u8 = 130;

/// What the thread that follows is to do.
enum Order {
    /// Have the server do this; the words say what it is.
    Command(Box<Command>, String),
    /// Take the whole tree.
    Reload,
}

/// What it has to say.
enum News {
    /// The tree is another.
    Tree(Box<Snapshot>),
    /// What came of an order, or why there is no news.
    Note(String),
}

pub(super) fn run(args: &TopArgs) -> Outcome {
    let only = args.state.as_deref().map(|word| {
        let states = Displayed::ALL.map(Displayed::word).join(", ");
        Displayed::of_word(word)
            .ok_or_else(|| Failure::Usage(format!("--state {word}: write one of {states}")))
    });
    let only = only.transpose()?;
    let is_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if !args.once && !is_terminal {
        let why = "top needs a terminal: use --once, or loadline workflow watch";
        return Err(Failure::Usage(why.to_owned()));
    }
    let client = args.server.client()?;
    let address = client.address().to_owned();
    let follower = Follower::new(client).map_err(failure)?;
    let mut view = View::new(follower.tree().snapshot());
    (view.filter, view.only) = (args.filter.clone(), only);
    view.list();
    if args.once {
        return once(args, &view);
    }
    let has_colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let around = Around { address, has_colour, ..Around::default() };
    let (orders, taken) = channel();
    let (said, news) = channel();
    let interval = args.interval.duration().max(Duration::from_millis(10));
    // It ends with this process, or once the sender of its orders is dropped.
    std::thread::Builder::new()
        .name("follow".to_owned())
        .spawn(move || follow(follower, &taken, &said, interval))?;
    let top = Top { view, around, orders, asked: None, read_only: args.read_only };
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&ended))?;
    }
    let shown = match ratatui::try_init() {
        Ok(mut terminal) => top.show(&mut terminal, &news, &ended),
        Err(why) => Err(why),
    };
    ratatui::restore();
    Ok(if shown? { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn once(args: &TopArgs, view: &View) -> Outcome {
    if args.json {
        let rows = view
            .rows()
            .iter()
            .map(|row| json!({"path": row.path, "state": row.state.word(), "says": row.says}));
        let rows: Vec<_> = rows.collect();
        let server = view.tree().server().state.word();
        let all = json!({"schema": 1, "server": server, "nodes": rows, "cut": view.is_cut});
        out::print(format_args!("{all}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut lines = String::new();
    for row in view.rows() {
        let (before, state, after) = draw::text(row);
        lines.push_str(format!("{before}{}{after}", state.trim()).trim_end());
        lines.push('\n');
    }
    if view.is_cut {
        lines.push_str("(more than is shown)\n");
    }
    if lines.is_empty() {
        let has_nodes = view.tree().count() > 0;
        out::note(if has_nodes { "no node is such a one" } else { "the server has no suite" });
    }
    out::print(input::plain(&lines))?;
    Ok(ExitCode::SUCCESS)
}

/// Follows the server, and carries out orders.
fn follow(
    mut follower: Follower,
    orders: &Receiver<Order>,
    said: &Sender<News>,
    interval: Duration,
) {
    loop {
        let result = match orders.recv_timeout(interval) {
            Ok(Order::Command(command, words)) => {
                let done = follower.client().command(*command);
                let note = match &done {
                    Ok(()) => format!("{words}: done"),
                    Err(why) => format!("{words}: {}", why.to_string().replace('\n', " ")),
                };
                if said.send(News::Note(note)).is_err() {
                    return;
                }
                follower.changes()
            }
            Ok(Order::Reload) => follower.reload(),
            Err(RecvTimeoutError::Timeout) => follower.changes(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let news = match result {
            Ok(seen) if seen.is_empty() => continue,
            Ok(_) => News::Tree(Box::new(follower.tree().snapshot())),
            Err(why) => News::Note(why.to_string().replace('\n', " ")),
        };
        if said.send(news).is_err() {
            return;
        }
    }
}

/// The terminal's side.
struct Top {
    view: View,
    around: Around,
    orders: Sender<Order>,
    /// What is done once y is pressed, in words and as a command.
    asked: Option<(String, Command)>,
    read_only: bool,
}

impl Top {
    /// Draws and takes keys to the end; true where a signal ends it.
    fn show(
        mut self,
        terminal: &mut ratatui::DefaultTerminal,
        news: &Receiver<News>,
        ended: &AtomicBool,
    ) -> std::io::Result<bool> {
        loop {
            terminal.draw(|frame| draw::draw(frame, &mut self.view, &self.around))?;
            let mut is_new = false;
            while !is_new {
                if ended.load(Ordering::Relaxed) {
                    return Ok(true);
                }
                while let Ok(one) = news.try_recv() {
                    is_new = true;
                    match one {
                        News::Tree(tree) => self.view.take(*tree),
                        News::Note(note) => self.around.note = note,
                    }
                }
                if !event::poll(TURN)? {
                    continue;
                }
                is_new = true;
                match event::read()? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => {
                        let is_end = key.code == KeyCode::Char('c')
                            && key.modifiers.contains(KeyModifiers::CONTROL);
                        if is_end {
                            return Ok(true);
                        }
                        if !self.key(key) {
                            return Ok(false);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// Takes a key; false where it ends the view.
    fn key(&mut self, key: KeyEvent) -> bool {
        if self.around.is_typing {
            self.typed(key.code);
            return true;
        }
        self.around.note.clear();
        if let Some((words, command)) = self.asked.take() {
            match key.code {
                KeyCode::Char('y') => self.order(Order::Command(Box::new(command), words)),
                _ => self.around.note = "not done".to_owned(),
            }
            return true;
        }
        match key.code {
            KeyCode::Char('q') => return false,
            KeyCode::Down | KeyCode::Char('j') => self.view.step(Step::By(1)),
            KeyCode::Up | KeyCode::Char('k') => self.view.step(Step::By(-1)),
            KeyCode::PageDown => self.view.step(Step::By(20)),
            KeyCode::PageUp => self.view.step(Step::By(-20)),
            KeyCode::Home => self.view.step(Step::Home),
            KeyCode::End => self.view.step(Step::End),
            KeyCode::Right | KeyCode::Char('l') => self.view.open(),
            KeyCode::Left | KeyCode::Char('h') => self.view.close(),
            KeyCode::Enter => self.view.toggle(),
            KeyCode::Char('/') => self.around.is_typing = true,
            KeyCode::Char('a') => self.next_state(),
            KeyCode::Char('w') => {
                self.around.has_why = !self.around.has_why;
                if self.around.has_why {
                    // What holds a node may be older in a tree that follows.
                    self.order(Order::Reload);
                }
            }
            KeyCode::Char('r') => self.order(Order::Reload),
            KeyCode::Esc => {
                (self.view.filter, self.view.only) = (String::new(), None);
                self.view.list();
            }
            KeyCode::Char(letter) => self.ask(letter),
            _ => {}
        }
        true
    }

    fn typed(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.around.is_typing = false,
            KeyCode::Esc => {
                self.around.is_typing = false;
                self.view.filter.clear();
            }
            KeyCode::Backspace => {
                self.view.filter.pop();
            }
            KeyCode::Char(letter) => self.view.filter.push(letter),
            _ => {}
        }
        self.view.list();
    }

    fn next_state(&mut self) {
        const ORDER: [Displayed; 5] = [
            Displayed::Aborted,
            Displayed::Active,
            Displayed::Submitted,
            Displayed::Queued,
            Displayed::Suspended,
        ];
        let place = self.view.only.and_then(|only| ORDER.iter().position(|one| *one == only));
        self.view.only = ORDER.get(place.map_or(0, |place| place + 1)).copied();
        self.view.list();
    }

    /// Asks whether the chosen node is to be changed so.
    fn ask(&mut self, letter: char) {
        let Some(path) = self.view.chosen().map(str::to_owned) else { return };
        let paths = vec![path.clone()];
        let of = |command| Command::Paths { command, paths: paths.clone(), force: false };
        let (word, command) = match letter {
            's' => ("suspend", of(PathsCommand::Suspend)),
            'u' => ("resume", of(PathsCommand::Resume)),
            'x' => ("run", Command::Run { paths, force: false }),
            'e' => ("requeue", Command::Requeue { paths, option: Requeue::Node }),
            _ => return,
        };
        if self.read_only {
            self.around.note = "--read-only: nothing is changed".to_owned();
            return;
        }
        self.around.note = format!("{word} {path}? y or n");
        self.asked = Some((format!("{word} {path}"), command));
    }

    fn order(&mut self, order: Order) {
        if self.orders.send(order).is_err() {
            self.around.note =
                "the server isn't followed any more: quit and start again".to_owned();
        }
    }
}
