//! `loadline completions`, `loadline man` and `loadline --version`.

use crate::common::{Place, code, stdout};

#[test]
fn every_shell_completes_the_lab_and_the_services() {
    let place = Place::with("");
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = place.loadline(&["completions", shell]);
        let script = stdout(&output);
        assert_eq!(code(&output), 0, "{shell}");
        for word in ["capacity", "max-connections", "queue-size"] {
            assert!(script.contains(word), "{shell} doesn't complete {word}");
        }
    }
    let help = stdout(&place.loadline(&["--help"]));
    assert!(help.contains("\n  completions ") && help.contains("\n  man "), "{help}");
    assert!(!help.contains("in-process"), "{help}");
}

#[test]
fn the_version_names_the_commit() {
    let place = Place::with("");
    let said = stdout(&place.loadline(&["--version"]));
    assert!(said.starts_with(concat!("loadline ", env!("CARGO_PKG_VERSION"))), "{said}");
    let facts = stdout(&place.loadline(&["version"]));
    assert_eq!(facts.lines().next(), Some(said.trim_end()));
    // A tree without git has no commit to name.
    if let Some((_, rest)) = facts.split_once("program commit: ") {
        let commit = rest.lines().next().unwrap_or_default();
        assert!(said.trim_end().ends_with(&format!(" ({commit})")), "{said}");
    }
}

#[test]
fn each_command_has_a_page_of_the_manual() {
    let place = Place::with("");
    let page = stdout(&place.loadline(&["man"]));
    assert!(page.contains(".TH loadline 1"), "{page}");
    assert_eq!(code(&place.loadline(&["man", "pages"])), 0);
    for name in ["loadline", "loadline-run", "loadline-serve-cache", "loadline-records-get"] {
        let page = std::fs::read_to_string(place.path().join(format!("pages/{name}.1")));
        assert!(page.is_ok_and(|page| page.contains(".SH SYNOPSIS")), "{name}");
    }
    assert!(!place.path().join("pages/loadline-guard.1").exists(), "it is hidden");
    let synopsis = |name: &str| {
        let page = std::fs::read_to_string(place.path().join(format!("pages/{name}.1")));
        let page = page.expect("a page").replace("\\-", "-").replace("\\fR", "");
        let (_, page) = page.split_once(".SH SYNOPSIS\n").expect("a synopsis");
        page.lines().next().expect("a line").to_owned()
    };
    let cache = synopsis("loadline-serve-cache");
    for part in [
        "[--listen <ADDRESS>]",
        "[--threads <NUMBER>]",
        "[--memory-limit <MEGABYTES>]",
        "[--public]",
    ] {
        assert!(cache.contains(part), "no {part} in {cache}");
    }
    for entry in std::fs::read_dir(place.path().join("pages")).expect("pages") {
        let page = std::fs::read_to_string(entry.expect("a page").path()).expect("read");
        // Where no name is given, clap takes the identifier in the code.
        let unnamed = page.lines().find(|line| line.split('<').skip(1).any(is_identifier));
        assert_eq!(unnamed, None);
    }
    place.refuses(&["man", "/dev/null/pages"], 1, "cannot write pages");
}

/// Whether a value's name, up to its `>`, is an identifier of several words.
fn is_identifier(rest: &str) -> bool {
    rest.split('>').next().is_some_and(|name| name.contains('_'))
}
