//! The one table of rooms. The lab knows a room only through its row here.

use clap::Parser;
use workload::Room;

/// Every room of this program.
pub(crate) static ROOMS: &[&Room] = &[
    &::cache::load::ROOM,
    &::records::load::ROOM,
    &workload::http::ROOM,
    &workload::null::ROOM,
    &::cache::load::CODECS,
    &workload::http::CODECS,
];

/// What the lab has to know of this program.
pub(crate) fn house() -> lab::plan::House<'static> {
    lab::plan::House { rooms: ROOMS, check_arguments: &check_arguments }
}

/// Whether `serve ROOM ARGUMENTS` would be understood; nothing is started.
fn check_arguments(room: &str, arguments: &[String]) -> Result<(), String> {
    let fixed = ["loadline", "serve", room].map(str::to_owned);
    match crate::Cli::try_parse_from(fixed.into_iter().chain(arguments.iter().cloned())) {
        Ok(_) => Ok(()),
        Err(error) => {
            let said = error.render().to_string();
            // The first lines say what is wrong; the rest repeats the usage of the command line.
            let lines = said.lines().take_while(|line| !line.starts_with("Usage"));
            let said: Vec<_> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
            Err(said.join("; ").trim_start_matches("error: ").replace("--", ""))
        }
    }
}

/// What is known of how this program was built; `build.rs` asks while it is.
pub(crate) fn build() -> Vec<(&'static str, String)> {
    let known = [
        ("program_commit", option_env!("LOADLINE_COMMIT")),
        ("compiler", option_env!("LOADLINE_COMPILER")),
        ("compiler_flags", option_env!("LOADLINE_FLAGS")),
    ];
    known.into_iter().filter_map(|(name, fact)| Some((name, fact?.to_owned()))).collect()
}

/// How many allocations a closure makes, and of how many bytes. The allocator counts only here.
pub(crate) fn count_allocations(work: &mut dyn FnMut()) -> (u64, u64) {
    let counted = allocation_counter::measure(work);
    (counted.count_total, counted.bytes_total)
}
