//! The picture of a report in the README: the page of the run that its figures come from, drawn by
//! a real browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::process::{program, repository};

/// Where it lies.
const PICTURE: &str = "docs/tour.png";

/// The largest it may be: everyone who clones the repository gets every version of it.
const PICTURE_MOST_BYTES: u64 = 150_000;

/// Width and height of the window, the largest first that gives a picture small enough.
const SIZES: &[(u32, u32)] = &[(1280, 1160), (1280, 900), (1000, 760), (800, 640)];

/// Browsers by the names of their programs.
const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome"];

/// Draws the page of the last run. Without a browser the old picture stays, with a message.
pub(super) fn draw() -> Result<()> {
    let Some(browser) = browser() else {
        eprintln!(
            "{PICTURE} stays as it is: chromium is missing (`cargo xtask peers` installs it)"
        );
        return Ok(());
    };
    let folder = program().with_file_name("tour-picture");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let page = folder.join("report.html");
    let mut command = Command::new(program());
    command.args(["report", "last", "--html"]).arg(&page).current_dir(repository());
    let made = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    // 3 and 4 are results: the page is there.
    if !matches!(made.code(), Some(0 | 3 | 4)) {
        bail!("`loadline report last --html` made no page: {made}");
    }
    let drawn = folder.join("tour.png");
    for (width, height) in SIZES {
        shoot(&browser, &page, &drawn, (*width, *height))?;
        let bytes = fs::metadata(&drawn)?.len();
        if bytes <= PICTURE_MOST_BYTES {
            fs::copy(&drawn, repository().join(PICTURE)).context(PICTURE)?;
            eprintln!("{PICTURE}: {width} × {height}, {bytes} bytes");
            return Ok(());
        }
    }
    bail!("no picture of the page is under {PICTURE_MOST_BYTES} bytes")
}

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let found = BROWSERS.iter().flat_map(|name| folders.iter().map(move |one| one.join(name)));
    found.into_iter().find(|path| path.is_file())
}

fn shoot(browser: &Path, page: &Path, picture: &Path, (width, height): (u32, u32)) -> Result<()> {
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]);
    command.args(["--hide-scrollbars", "--force-device-scale-factor=1"]);
    command.arg(format!("--user-data-dir={}", picture.with_extension("profile").display()));
    command.arg(format!("--window-size={width},{height}"));
    command.arg(format!("--screenshot={}", picture.display()));
    command.arg(format!("file://{}", page.display()));
    let shot = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    if !shot.success() || !picture.is_file() {
        bail!("{} draws no picture: {shot}", browser.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_drawn_as_large_as_it_is_asked_for() {
        let Some(browser) = browser() else {
            testing::skip("chromium is not installed (`cargo xtask peers` installs it)");
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let (page, picture) = (folder.path().join("page.html"), folder.path().join("a.png"));
        fs::write(&page, "<!doctype html><p>so</p>").unwrap();
        shoot(&browser, &page, &picture, (640, 480)).unwrap();
        let bytes = fs::read(&picture).unwrap();
        // Portable Network Graphics, 11.2.2: width and height head the first chunk.
        assert_eq!(&bytes[1..4], b"PNG");
        assert_eq!((&bytes[16..20], &bytes[20..24]), (&[0, 0, 2, 128][..], &[0, 0, 1, 224][..]));
    }
}
