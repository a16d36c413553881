//! The one table of services. The lab knows a service only through its row here.

use clap::Parser;
use load::Service;

/// Every service of this program.
pub(crate) static SERVICES: &[&Service] = &[
    &::cache::load::SERVICE,
    &::records::load::SERVICE,
    &load::http::SERVICE,
    &load::null::SERVICE,
    &::cache::load::CODECS,
    &load::http::CODECS,
];

/// What the lab has to know of this program.
pub(crate) fn registry() -> lab::plan::Registry<'static> {
    lab::plan::Registry { services: SERVICES, check_arguments: &check_arguments }
}

/// Whether `serve SERVICE ARGUMENTS` would be understood; nothing is started.
fn check_arguments(service: &str, arguments: &[String]) -> Result<(), String> {
    let fixed = ["loadline", "serve", service].map(str::to_owned);
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
