//! What a server that starts finds: jobs that are still to be started, and jobs that are another
//! process's.

use std::collections::HashMap;

use super::Core;
use super::parts::{CommandKind, Effect, next_submission};
use crate::model::{NodeId, State};
use crate::script::Scopes;
use crate::server::fates::Jobs;
use crate::server::log::Category;
use crate::words::{each_or_count, first_of};
use base::many;

impl Core {
    /// Has done again what a crash has cut short: archives; moves, which are only warned of; and
    /// the jobs and scripts that were not started or written, in the order of the tree.
    pub(in crate::server) fn resume(&mut self) {
        let again = self.filings.again(&self.tree, &self.environment);
        self.effects.extend(again.into_iter().map(Effect::File));
        for path in std::mem::take(&mut self.filings.moved).into_keys() {
            let text = format!(
                "{path} was being moved when the server stopped: it may be at the other one, too"
            );
            self.effects.push(Effect::Log(Category::Warning, text));
        }
        let Self { unstarted, tree, effects, environment, .. } = self;
        let mut due = HashMap::new();
        unstarted.retain(|path, waiting| {
            let Some(id) = waiting.due_for(tree, path) else { return false };
            due.insert(id, (waiting.kind, waiting.edited.clone(), waiting.is_killed));
            true
        });
        if due.is_empty() {
            return;
        }
        let (mut scopes, mut paths) = (Scopes::new(tree), Vec::new());
        for id in tree.walk(NodeId::ROOT) {
            let Some((kind, edited, is_killed)) = due.remove(&id) else { continue };
            let mut start = next_submission(&mut scopes, id, kind);
            start.edited = edited;
            let is_started = kind == CommandKind::Job && !is_killed && environment.starts_jobs;
            paths.extend(is_started.then(|| start.path.clone()));
            effects.push(Effect::Start(Box::new(start)));
        }
        let lines = each_or_count(&paths, "task", |of| {
            format!("{of}: submitted before the server ended, with no start on record; started now")
        });
        effects.extend(lines.into_iter().map(|line| Effect::Log(Category::Warning, line)));
    }

    /// The jobs that run, as far as is known, and that this process doesn't start: an earlier one
    /// has, and how their commands end is not seen by this one.
    pub(in crate::server) fn of_earlier(&mut self) -> Jobs {
        let (tree, mut paths, mut jobs) = (&self.tree, Vec::new(), Jobs::new());
        for id in tree.walk(NodeId::ROOT) {
            let node = tree.node(id);
            let runs = matches!(node.state, State::Submitted | State::Active);
            if !runs || !node.kind.is_job() || tree.user_variable(id, "ECF_DUMMY_TASK").is_some() {
                continue;
            }
            let (path, job) = (tree.path(id), node.job());
            if !self.unstarted.has(&path, (job.try_no, &job.password)) {
                paths.push(path.clone());
                jobs.insert(path, (job.try_no, job.password.to_string()));
            }
        }
        if !paths.is_empty() {
            let (tasks, of_them) = (many(paths.len(), "task"), first_of(&paths));
            let text = format!(
                "{tasks} ({of_them}) submitted or active since an earlier server process: how \
                 ECF_JOB_CMD of such a task ends is not seen, only what its job reports"
            );
            self.effects.push(Effect::Log(Category::Message, text));
        }
        jobs
    }
}
