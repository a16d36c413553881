//! One of every kind of page as files in a folder, for `cargo xtask shots`:
//! `cargo run -p loadline-report --example pages -- FOLDER`.

use std::path::PathBuf;

// The tests need more of it.
#[allow(dead_code)]
#[path = "../tests/fixture/mod.rs"]
mod fixture;

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap_or_else(|| ".".into()));
    std::fs::create_dir_all(&folder)?;
    for page in fixture::pages::pages() {
        // A page that loads itself again would do so while it is drawn.
        let still = page.html.replace("http-equiv=\"refresh\"", "name=\"refresh\"");
        std::fs::write(folder.join(format!("{}.html", page.name)), still)?;
    }
    Ok(())
}
