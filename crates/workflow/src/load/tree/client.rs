//! The client: a step, how long it takes, what it costs, how long others wait, and its check.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use load::{Caller, Finding, Op, Outcome, Took};
use wire::ProtocolError;

use super::known::{Known, Sizes, State};
use super::made::Made;
use super::operations::{OPERATIONS, STEPS, Step};
use super::others::{Others, percentile};
use super::site::{Fault, Result, Site, wrong};
use super::{at_once, bulk, cut, pushed, starts};

/// What else was measured of a step, by the end of its name.
type Figures = Vec<(&'static str, f64)>;

/// One slot's client.
pub(super) struct Client {
    at: SocketAddr,
    made: Arc<Made>,
    sizes: Sizes,
    known: Arc<Known>,
    /// Found at the first step.
    site: Option<Site>,
}

impl Client {
    pub(super) fn new(at: SocketAddr, made: Arc<Made>, sizes: Sizes, known: Arc<Known>) -> Self {
        Self { at, made, sizes, known, site: None }
    }

    /// Does a step. Returns how long it took.
    fn step(&mut self, step: Step, figures: &mut Figures) -> Result<Duration> {
        let site = match &mut self.site {
            Some(site) => site,
            place => place.insert(Site::find(self.at)?),
        };
        let mut known = self.known.lock();
        let (made, sizes, state) = (&self.made, &self.sizes, &mut *known);
        if let Some(what) = cut::taken(step) {
            return cut::take(step, what, made, (site, state), figures);
        }
        match step {
            Step::Pushed => pushed::changes(made, (site, state), figures),
            Step::Dependent => Ok(starts::dependent(sizes, site, state)?.dependent),
            Step::LoadJobs => starts::load_jobs(sizes, site, state),
            Step::LoadPairs => starts::load_pairs(sizes, site, state),
            Step::LoadReleased => starts::load_released(sizes, site, state),
            Step::Release => {
                beside(site, state, figures, |site, state, _| starts::release(sizes, site, state))
            }
            Step::Jobs => {
                let took = beside(site, state, figures, |site, state, figures| {
                    starts::start_jobs(sizes, site, state, figures)
                })?;
                starts::hold_started(sizes, site)?;
                Ok(took)
            }
            Step::CheckPointBusy | Step::CheckPointFull => {
                let request = bulk::request(step, made, state);
                checkpoint_meanwhile(step, &request, sizes, (site, state), figures)
            }
            Step::GetAtOnce | Step::SyncFullAtOnce => {
                let request = bulk::request(step, made, state);
                let mut answers = Vec::new();
                let took = beside(site, state, figures, |site, _, _| {
                    at_once::ask(&request, site.at, &mut answers)
                })?;
                at_once::check(answers, (site, state), figures)?;
                Ok(took)
            }
            Step::Rest => beside(site, state, figures, |_, _, _| {
                std::thread::sleep(REST);
                Ok(REST)
            }),
            Step::Commands => beside(site, state, figures, |site, state, _| {
                bulk::commands(sizes.commands, made, site, state)
            }),
            // Short ones: the pings of others would be most of what they cost.
            Step::Sync | Step::Resync => {
                let request = bulk::request(step, made, state);
                let before = site.process.cpu_ns();
                let took = site.ask(&request)?;
                let cpu_ns = site.process.cpu_ns().saturating_sub(before);
                figures.push(("cpu_ns", cpu_ns as f64));
                bulk::check(step, made, (site, state), figures)?;
                Ok(took)
            }
            _ => {
                let request = bulk::request(step, made, state);
                let before = site.check_file_number();
                let took = beside(site, state, figures, |site, _, _| site.ask(&request))?;
                if step == Step::CheckPoint {
                    super::exchange::agreed(&site.answer)?;
                    bulk::checkpoint((site, before), state, figures)?;
                    return Ok(took);
                }
                bulk::check(step, made, (site, state), figures)?;
                Ok(took)
            }
        }
    }
}

/// Has a checkpoint written while tasks end: it has to succeed, or to find no room.
fn checkpoint_meanwhile(
    step: Step,
    request: &[u8],
    sizes: &Sizes,
    (site, state): (&mut Site, &mut State),
    figures: &mut Figures,
) -> Result<Duration> {
    let before = site.check_file_number();
    let is_full = step == Step::CheckPointFull;
    let right = if is_full { super::exchange::no_room } else { super::exchange::agreed };
    let took = beside(site, state, figures, |site, state, figures| {
        starts::meanwhile((request, right), sizes, (site, state), figures)
    })?;
    if !is_full {
        bulk::checkpoint((site, before), state, figures)?;
    } else if site.is_own && site.check_file_number() != before {
        // ecFlow's server has given the old one its second name before it fails.
        return wrong("the checkpoint that was there is another one, or gone");
    }
    Ok(took)
}

/// How long a server is left alone: longer than any keeps what it has made for others.
const REST: Duration = Duration::from_secs(2);

/// Does something while others ping, and until the server is idle again: its CPU time, its memory
/// then, and how long others waited go to `figures`.
fn beside(
    site: &mut Site,
    state: &mut State,
    figures: &mut Figures,
    work: impl FnOnce(&mut Site, &mut State, &mut Figures) -> Result<Duration>,
) -> Result<Duration> {
    let process = site.process;
    let before = process.cpu_ns();
    let others = Others::begin(site.at);
    let took = work(site, state, figures);
    process.settle();
    let cpu_ns = process.cpu_ns().saturating_sub(before);
    let waits = others.end();
    let took = took?;
    let waits = waits?;
    figures.push(("cpu_ns", cpu_ns as f64));
    figures.push(("others_p99_ns", percentile(&waits, 0.99).as_nanos() as f64));
    figures.push(("others_most_ns", percentile(&waits, 1.0).as_nanos() as f64));
    if let Some(bytes) = process.resident_bytes() {
        figures.push(("resident_bytes", bytes as f64));
    }
    Ok(took)
}

impl Caller for Client {
    fn call(&mut self, op: Op) -> std::result::Result<Outcome, ProtocolError> {
        let (step, operation) = (STEPS[op.operation], &OPERATIONS[op.operation]);
        let name = &operation.name;
        let mut figures = Vec::new();
        let result = self.step(step, &mut figures);
        let figures = figures.into_iter().map(|(end, value)| (format!("{name}_{end}"), value));
        let outcome = match result {
            Ok(took) => {
                let elapsed_ns = took.as_nanos() as u64;
                let took = Some(Took { elapsed_ns, ..Took::default() });
                Outcome { took, ..Outcome::right() }
            }
            Err(Fault::Broken(why)) => {
                return Err(ProtocolError::new(format!("{name}: {why}")));
            }
            Err(Fault::Wrong(note)) => Outcome::wrong(Finding {
                operation: name.clone(),
                key: Vec::new(),
                expected: operation.doc.as_bytes().to_vec(),
                received: self.site.as_ref().map_or(Vec::new(), beginning),
                note,
            }),
        };
        Ok(Outcome { figures: figures.collect(), ..outcome })
    }
}

/// The beginning of a site's last answer.
fn beginning(site: &Site) -> Vec<u8> {
    site.answer[..site.answer.len().min(4096)].to_vec()
}
