//! `cargo xtask shots`: every kind of page as a picture, on a desk, at night and on a phone. A
//! person looks at them; what a machine can check is in the report crate's test in a browser.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;
use crate::step::{Step, Work};

/// The flags of `cargo xtask shots`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only pages whose names contain one of these
    names: Vec<String>,
}

/// Name, width in pixels, and whether it is dark.
const VIEWS: &[(&str, u32, bool)] =
    &[("desk", 1280, false), ("dark", 1280, true), ("phone", 400, false)];

/// A browser's window isn't narrower, but a frame in it is.
const NARROWEST: u32 = 500;

/// Of a longer page only its beginning is drawn.
const MAX_HEIGHT: u32 = 6_000;

/// Makes the pages, and pictures of them in `target/shots`.
pub(crate) fn run(args: &Args) -> Result<()> {
    let pages = Step { name: "pages", work: Work::Cargo(PAGES, None) };
    pages.run()?;
    let folder = process::repository().join(FOLDER);
    let mut names = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_wanted = args.names.is_empty() || args.names.iter().any(|one| name.contains(one));
        if path.extension().is_some_and(|end| end == "html") && name != FRAME && is_wanted {
            names.push(name);
        }
    }
    names.sort();
    for name in names {
        for view in VIEWS {
            shot(&folder, &name, *view).with_context(|| format!("{name} as {}", view.0))?;
        }
        println!("{}", folder.join(name).display());
    }
    Ok(())
}

const FOLDER: &str = "target/shots";
const PAGES: &[&str] =
    &["run", "--locked", "--package", "loadline-report", "--example", "pages", "--", FOLDER];

/// The name of the page that holds another one in a frame.
const FRAME: &str = "frame";

fn shot(folder: &Path, name: &str, (view, width, is_dark): (&str, u32, bool)) -> Result<()> {
    let height = height(folder, name, width)?;
    let mut browser = framed(folder, name, width, height)?;
    if is_dark {
        browser.arg("--blink-settings=preferredColorScheme=0");
    }
    let picture = folder.join(format!("{name}-{view}.png"));
    browser.arg(format!("--screenshot={}", picture.display()));
    browser.arg(format!("file://{}/{FRAME}.html", folder.display()));
    process::output(&mut browser).map(drop)
}

/// The height of a page at this width, as its frame tells in the title.
fn height(folder: &Path, name: &str, width: u32) -> Result<u32> {
    let mut browser = framed(folder, name, width, 100)?;
    browser.args(["--dump-dom", &format!("file://{}/{FRAME}.html", folder.display())]);
    let text = process::output(&mut browser)?;
    let title = text.split("<title>").nth(1).and_then(|rest| rest.split('<').next());
    let height: u32 =
        title.and_then(|title| title.parse().ok()).context("the page has no height")?;
    Ok(height.clamp(100, MAX_HEIGHT))
}

/// A browser for a page in a frame of this size.
fn framed(folder: &Path, name: &str, width: u32, height: u32) -> Result<Command> {
    let frame = format!(
        "<!doctype html><title></title><style>body{{margin:0}}iframe{{border:0;display:block}}\
         </style><iframe src=\"{name}.html\" style=\"width:{width}px;height:{height}px\" \
         onload=\"document.title=this.contentDocument.documentElement.scrollHeight\"></iframe>"
    );
    fs::write(folder.join(format!("{FRAME}.html")), frame)?;
    let mut browser = Command::new("chromium");
    browser.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
    browser.args(["--allow-file-access-from-files", "--no-first-run"]);
    browser.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    browser.arg(format!("--window-size={},{height}", width.max(NARROWEST)));
    Ok(browser)
}
