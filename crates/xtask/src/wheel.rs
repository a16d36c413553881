//! `cargo xtask wheel`: the program as a Python wheel, built by maturin in an environment of its
//! own and stripped. Its symbols are a file beside the wheel, `loadline.debug`, which gdb, perf and
//! backtraces look for in the program's folder.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::peers::environment;
use crate::process::{output, repository, run as run_command, target};

/// What to do with the wheel.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Install it into a new environment, and measure a page with it
    #[arg(long)]
    check: bool,
}

/// The tools that build it, as pip writes them.
const TOOLS: &[&str] = &["maturin>=1.9,<2", "wheel>=0.45,<1"];

pub(crate) fn run(args: &Args) -> Result<()> {
    let python = environment(&target(), "wheel", TOOLS)?;
    let folder = target().join("wheel");
    renew(&folder)?;
    let mut maturin = Command::new(python.with_file_name("maturin"));
    maturin.args(["build", "--release", "--locked", "--out"]).arg(&folder);
    // Only the last step keeps the symbols, so that nothing else is built twice.
    maturin.args(["--", "-C", "strip=none"]);
    run_command(maturin.current_dir(repository()))?;
    let whole = only(&folder)?;
    let open = folder.join("open");
    let wheel = |arguments: &[&str], from: &Path, to: &Path| {
        let mut wheel = Command::new(&python);
        run_command(wheel.args(["-m", "wheel"]).args(arguments).arg(from).arg("--dest").arg(to))
    };
    wheel(&["unpack"], &whole, &open)?;
    let package = only(&open)?;
    split(&package, &folder)?;
    fs::remove_file(&whole)?;
    wheel(&["pack"], &package, &folder)?;
    fs::remove_dir_all(&open)?;
    println!("{}", whole.display());
    if args.check { check(&whole) } else { Ok(()) }
}

/// Makes a folder anew.
fn renew(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())
}

/// The one thing in a folder.
fn only(folder: &Path) -> Result<PathBuf> {
    let mut entries = fs::read_dir(folder)?;
    let first = entries.next().with_context(|| format!("{} is empty", folder.display()))??;
    Ok(first.path())
}

/// Takes the symbols out of an unpacked wheel's program into `folder`, under a name by which the
/// program asks for them.
fn split(package: &Path, folder: &Path) -> Result<()> {
    let metadata = package.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let program = package.join(format!("{metadata}.data/scripts/loadline"));
    let symbols = folder.join("loadline.debug");
    let objcopy = objcopy()?;
    let mut keep = Command::new(&objcopy);
    run_command(keep.arg("--only-keep-debug").arg(&program).arg(&symbols))?;
    let mut strip = Command::new(&objcopy);
    let link = format!("--add-gnu-debuglink={}", symbols.display());
    run_command(strip.arg("--strip-all").arg(link).arg(&program))
}

/// The compiler's own objcopy, so that no other tool is needed.
fn objcopy() -> Result<PathBuf> {
    let asked = output(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let path = Path::new(asked.trim()).with_file_name("bin/rust-objcopy");
    if !path.is_file() {
        bail!("this compiler has no {}", path.display());
    }
    Ok(path)
}

/// Installs a wheel into a new environment and asks a page a first question, as a newcomer does.
fn check(wheel: &Path) -> Result<()> {
    let place = target().join("wheel-check");
    renew(&place)?;
    run_command(Command::new("python3").args(["-m", "venv"]).arg(place.join("venv")))?;
    let bin = place.join("venv/bin");
    let (mut server, url) = page(&bin, &place)?;
    let start = Instant::now();
    let mut pip = Command::new(bin.join("pip"));
    let pip = pip.args(["install", "--quiet", "--disable-pip-version-check"]).arg(wheel);
    let mut asked = Command::new(bin.join("loadline"));
    asked.args(["try", "--wait", &url]).current_dir(&place);
    let answered = run_command(pip).and_then(|()| Ok(asked.status()?));
    let seconds = start.elapsed().as_secs_f64();
    server.kill()?;
    server.wait()?;
    // 4 is an answer too: it can't tell.
    if !matches!(answered?.code(), Some(0 | 4)) {
        bail!("the wheel's loadline has no answer about {url}");
    }
    println!("pip install and a first answer: {seconds:.1} s");
    Ok(())
}

/// Starts a web server on a free port: it and its address.
fn page(bin: &Path, place: &Path) -> Result<(Child, String)> {
    let arguments = ["-u", "-m", "http.server", "0", "--bind", "127.0.0.1"];
    let mut server = Command::new(bin.join("python"));
    server.args(arguments).args(["--protocol", "HTTP/1.1"]).current_dir(place);
    let mut server = server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let said = server.stdout.take().context("the server says nothing")?;
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line)?;
    let port = line.split_whitespace().skip_while(|word| *word != "port").nth(1);
    let port = port.with_context(|| format!("no port in \"{line}\""))?;
    Ok((server, format!("http://127.0.0.1:{port}/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_brings_its_own_objcopy() {
        assert!(crate::process::succeeds(Command::new(objcopy().unwrap()).arg("--version")));
    }
}
