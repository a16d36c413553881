//! `loadline compare --commits A..B --build CMD`: two commits of one target.

use std::path::Path;

use lab::observe::compilers_of;
use lab::plan::Plan;

use super::args::CompareArgs;
use crate::builds::{self, Built, Commit};
use crate::exit::Failure;
use crate::out::note;
use crate::storage::Storage;

/// Builds both commits and makes them the plan's targets, the later one first: the verdict is
/// about it.
pub(super) fn vary(args: &CompareArgs, commits: &str, plan: &mut Plan) -> Result<(), Failure> {
    let Some(command) = args.build.as_deref() else {
        return Err(Failure::Usage("--commits needs --build \"COMMAND\"".to_owned()));
    };
    let (earlier, later) = builds::two_of(commits)?;
    // A build may take long: what is mistyped is found before the first one.
    let found = [Commit::find(later)?, Commit::find(earlier)?];
    if found[0].hash == found[1].hash {
        return Err(Failure::Usage(format!("{earlier} and {later} are one commit")));
    }
    let storage = Storage::find(args.how.ledger.as_deref())?;
    let folder = storage.builds()?;
    let built: Vec<Built> = found
        .iter()
        .map(|commit| builds::build(&folder, commit, command))
        .collect::<Result<_, Failure>>()?;
    plan.vary_target(args.target.as_deref(), &|target| {
        let variants: Vec<_> =
            built.iter().map(|built| built.variant(target, &args.binary)).collect();
        for variant in &variants {
            // A name without a folder, such as an interpreter's, is looked up on the PATH.
            let is_missing = |path: &&Path| path.components().count() > 1 && !path.is_file();
            if let Some(program) = builds::program(variant).filter(is_missing) {
                let what = "the build makes no such program; --binary or {worktree} names it";
                return Err(format!("{}: {what}", program.display()));
            }
        }
        Ok(variants)
    })
    .map_err(Failure::Usage)?;
    let programs: Vec<&Path> = plan.targets().iter().filter_map(builds::program).collect();
    if let [later, earlier] = programs[..] {
        check_programs(later, earlier, args.factor.as_deref())?;
    }
    Ok(())
}

/// Two programs that differ in their compilers, too, are not a comparison of two commits.
fn check_programs(later: &Path, earlier: &Path, factor: Option<&str>) -> Result<(), Failure> {
    let read = |path: &Path| std::fs::read(path).ok();
    // An interpreter is no program that a commit makes.
    let are_made = later != earlier;
    if are_made && read(later).is_some_and(|bytes| Some(bytes) == read(earlier)) {
        note("both commits make the same program, byte for byte: it is compared with itself (A/A)");
    }
    let (ours, theirs) = (compilers_of(later), compilers_of(earlier));
    if ours != theirs && factor != Some("compiler") {
        let name = |found: Option<String>| found.unwrap_or_else(|| "unseen".to_owned());
        return Err(Failure::Usage(format!(
            "different compilers made the two programs, so a difference could be theirs:\n  \
             {}\n  {}\nsay --factor compiler, or build both alike",
            name(ours),
            name(theirs)
        )));
    }
    Ok(())
}
