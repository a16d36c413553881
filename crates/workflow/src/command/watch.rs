//! `loadline workflow watch`: what changes in a server's tree, as it comes. Control plane.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant as Clock};

use base::units::Span;
use serde_json::json;
use service::{Failure, Outcome, out};

use super::input;
use super::server::{ServerArgs, failure};
use super::why::find;
use crate::client::{ClientError, Follower, MISSED, Seen};
use crate::model::{ALL_LEVELS, Attribute, Displayed, Instant, Snapshot};

const EXAMPLES: &str = "\
Examples:
  loadline workflow watch localhost:3141
  loadline workflow watch localhost --under /x --what state,event
  loadline workflow watch localhost --level 1            suites alone, which cost a server less
  loadline workflow watch localhost --until /x/f=complete --for 1h && next-step
  loadline workflow watch localhost --json | jq -r 'select(.value == \"aborted\") | .path'

A server of this program sends what changes: each state that a node comes to is named, in their
order, however soon another follows; of all else what has changed and changed back within --interval
is not seen. Where more changes came than it remembers (65,536), `missed` says how many are not
named. Any other server is asked: a state that comes and goes between two looks is not seen (its log
has it: loadline workflow history --follow). A server that can't be reached meanwhile is asked
again. Times are this host's.

Exit codes: 0 --until holds, or held meanwhile, or --for is over without --until; 3 --for is over
and --until doesn't hold; 1 the server can't be reached from the start, or refuses.";

/// A server, and what of it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct WatchArgs {
    #[command(flatten)]
    server: ServerArgs,
    /// Only this node and those below it
    #[arg(long, value_name = "NODE")]
    under: Option<String>,
    /// Only as many levels below that: 0 it alone; without --under 1 the suites, 2 their children
    #[arg(long, value_name = "N")]
    level: Option<u32>,
    /// Only these: state, added, deleted, try, flags, event, meter, label, edit, limit, repeat …
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    what: Vec<String>,
    /// End when a node has a state (or is suspended)
    #[arg(long, value_name = "NODE=STATE")]
    until: Option<String>,
    /// End after this time
    #[arg(long = "for", value_name = "TIME")]
    within: Option<Span>,
    /// How often the server is asked, or at most sends something
    #[arg(long, value_name = "TIME", default_value = "1s")]
    interval: Span,
    /// Print one JSON object a change, a line each
    #[arg(long)]
    json: bool,
}

/// The exit code where the time is over.
const OVER: u8 = 3;

/// The shortest time between two requests.
const SHORTEST: Duration = Duration::from_millis(10);

pub(super) fn run(args: &WatchArgs) -> Outcome {
    if let Some(what) = args.what.iter().find(|what| !is_seen(what)) {
        let all = [&WHAT[..], &Attribute::WORDS].concat().join(", ");
        return Err(Failure::Usage(format!("--what {what}: nothing is called so: one of {all}")));
    }
    let until = args.until.as_deref().map(Until::read).transpose()?;
    let is_beyond = |until: &&Until| args.level.is_some() && !args.follows(&until.path);
    if let Some(Until { path, .. }) = until.as_ref().filter(is_beyond) {
        let why = format!("--until {path}: it is not among what --under and --level follow");
        return Err(Failure::Usage(why));
    }
    let client = args.server.client()?;
    let (path, level) = match args.level {
        None => ("/", ALL_LEVELS),
        Some(level) => (args.under.as_deref().unwrap_or("/"), level),
    };
    let mut follower = Follower::of_levels(client, path, level).map_err(failure)?;
    if let Some(path) = &args.under {
        find(follower.tree(), path)?;
    }
    if let Some(Until { path, .. }) = &until
        && follower.tree().find(path).is_none()
    {
        out::note(format!("there is no node {path} yet: it is waited for"));
    }
    follow(args, &mut follower, until.as_ref())
}

/// Prints what changes until the time is over, or a node has a state.
fn follow(args: &WatchArgs, follower: &mut Follower, until: Option<&Until>) -> Outcome {
    let end = args.within.map(|span| Clock::now() + span.duration());
    let interval = args.interval.duration().max(SHORTEST);
    let (mut is_away, mut has_held, mut printed) = (false, false, 0);
    loop {
        if has_held || until.is_some_and(|until| until.holds(follower.tree())) {
            return Ok(ExitCode::SUCCESS);
        }
        let left = end.map(|end| end.saturating_duration_since(Clock::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(over(args, follower.tree(), until, printed));
        }
        match follower.wait(left.map_or(interval, |left| left.min(interval)), interval) {
            Ok(seen) => {
                is_away = false;
                has_held = until.is_some_and(|until| seen.iter().any(|one| until.is(one)));
                let Some(count) = show(args, &seen)? else { return Ok(ExitCode::SUCCESS) };
                printed += count;
            }
            Err(why @ ClientError::Connection { .. }) => {
                if !std::mem::replace(&mut is_away, true) {
                    out::note(format!("{why}: asked again every {interval:?}"));
                }
            }
            Err(why) => return Err(failure(why)),
        }
    }
}

/// The time is over.
fn over(args: &WatchArgs, tree: &Snapshot, until: Option<&Until>, printed: usize) -> ExitCode {
    if printed == 0 && !args.json {
        out::note("nothing of what is watched has changed");
    }
    let Some(until) = until else { return ExitCode::SUCCESS };
    let (path, wanted) = (&until.path, until.state.word());
    out::note(match tree.find(path) {
        Some(id) => format!("{path} is {}, not {wanted}", tree.node(id).displayed().word()),
        None => format!("there is no node {path}"),
    });
    ExitCode::from(OVER)
}

/// A node, and the state for which it is waited.
struct Until {
    path: String,
    state: Displayed,
}

impl Until {
    fn read(text: &str) -> Result<Self, Failure> {
        let parts = text.rsplit_once('=');
        let parts = parts.and_then(|(path, word)| Some((path, Displayed::of_word(word)?)));
        let (path, state) = parts.filter(|(path, _)| path.starts_with('/')).ok_or_else(|| {
            let states = Displayed::ALL.map(Displayed::word).join(", ");
            Failure::Usage(format!("--until {text}: write /suite/task=STATE, one of {states}"))
        })?;
        Ok(Self { path: path.to_owned(), state })
    }

    fn holds(&self, tree: &Snapshot) -> bool {
        tree.find(&self.path).is_some_and(|id| tree.node(id).displayed() == self.state)
    }

    /// Whether this is it.
    fn is(&self, seen: &Seen) -> bool {
        seen.path == self.path && seen.what == "state" && seen.value == self.state.word()
    }
}

/// What of a node is seen to change, beside its attributes.
const WHAT: [&str; 6] = ["state", "added", "deleted", "try", "flags", "server"];

fn is_seen(what: &str) -> bool {
    WHAT.contains(&what) || Attribute::WORDS.contains(&what)
}

/// Prints changes, and returns how many; none once the reader has closed standard output.
fn show(args: &WatchArgs, seen: &[Seen]) -> Result<Option<usize>, Failure> {
    let at = input::now();
    let is_wanted = |one: &&Seen| {
        let is_what = args.what.is_empty() || args.what.iter().any(|what| what == one.what);
        one.what == MISSED || args.follows(&one.path) && is_what
    };
    let (mut text, mut count) = (String::new(), 0);
    for one in seen.iter().filter(is_wanted) {
        text.push_str(&line(args.json, at, one));
        text.push('\n');
        count += 1;
    }
    let mut output = out::stream();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Ok(()) => Ok(Some(count)),
        Err(why) if out::is_unread(&why) => Ok(None),
        Err(why) => Err(why.into()),
    }
}

impl WatchArgs {
    /// Whether a node is among those that are followed.
    fn follows(&self, path: &str) -> bool {
        let above = self.under.as_deref().unwrap_or_default().trim_end_matches('/');
        let below =
            path.strip_prefix(above).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let depth = |rest: &str| rest.split('/').filter(|name| !name.is_empty()).count();
        below.is_some_and(|rest| self.level.is_none_or(|level| depth(rest) <= level as usize))
    }
}

fn line(is_json: bool, at: Instant, one: &Seen) -> String {
    let Seen { path, what, name, value } = one;
    if is_json {
        let at = input::iso(at);
        return json!({"at": at, "path": path, "what": what, "name": name, "value": value})
            .to_string();
    }
    let shown: Vec<&str> =
        [*what, name, value].into_iter().filter(|part| !part.is_empty()).collect();
    // A label may have lines.
    let shown = shown.join(" ").replace('\n', "\\n");
    input::plain(&format!("{at}  {path}  {shown}"))
}
