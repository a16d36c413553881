//! Clients of others, from Python's registry, in an environment of their own.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::peer::{is_ci, program};

/// What is installed, each with the name under which `clients.py` knows it.
const CLIENTS: &[(&str, &str)] = &[
    ("pymemcache==4.0.0", "pymemcache"),
    ("python-binary-memcached==0.33.0", "bmemcached"),
    ("pylibmc==1.6.3", "pylibmc"),
];

/// The environment's Python, installed when everything has to be there or somebody asks for it;
/// otherwise whatever is there, or a named skip.
pub(crate) fn python() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    let folder = target.join("venv/cache-clients");
    let python = folder.join("bin/python");
    let complete = folder.join("complete");
    let wanted: Vec<&str> = CLIENTS.iter().map(|(package, _)| *package).collect();
    if std::fs::read_to_string(&complete).is_ok_and(|there| there == wanted.join(" ")) {
        return Some(python);
    }
    let install = is_ci() || std::env::var("PEERS").is_ok_and(|value| value == "install");
    if !install {
        testing::skip("Python's clients are not installed (PEERS=install installs them)");
        return None;
    }
    let system = program("python3")?;
    run(Command::new(system).args(["-m", "venv", "--clear"]).arg(&folder));
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(&wanted));
    std::fs::write(complete, wanted.join(" ")).expect("a note that all is there");
    Some(python)
}

fn run(command: &mut Command) {
    let output = command.output().expect("it runs");
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Lets every client use the server at this port of the loopback.
pub(crate) fn use_all(python: &Path, port: u16) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/beside/clients.py");
    for (_, name) in CLIENTS {
        run(Command::new(python).arg(&script).args([*name, &port.to_string()]));
    }
}
