//! ecFlow's own window, `ecflow_ui`, before this server: it shows the tree in its colours, and what
//! is pressed in it is done.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use testing::program;

use crate::place::Place;
use crate::served::Served;

const SUITE: &str = "\
suite s
  family f
    task done
    task broken
    task working
    task waiting
  endfamily
endsuite
";

/// The edge of the square before a node, by the node's state: a fifth darker than its colour.
const EDGES: [(&str, [u8; 3]); 4] = [
    ("complete", [212, 198, 1]),
    ("aborted", [212, 49, 44]),
    ("active", [62, 212, 51]),
    ("queued", [144, 180, 192]),
];

/// The points of such an edge.
const POINTS: usize = 52;

/// A screen in memory, and the window on it; both end with it.
struct Window {
    screen: Child,
    window: Child,
    display: String,
    picture: PathBuf,
}

impl Drop for Window {
    fn drop(&mut self) {
        // The window is a script's child: they are a group.
        let group = format!("-{}", self.window.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).status();
        // It takes its socket away.
        let _ = Command::new("kill").arg(self.screen.id().to_string()).status();
        for child in [&mut self.window, &mut self.screen] {
            let _ = child.wait();
        }
    }
}

impl Window {
    fn open(place: &Place, folder: &Path) -> Self {
        let mut screen = Command::new("Xvfb");
        screen.args(["-displayfd", "1", "-screen", "0", "1000x700x24", "-nolisten", "tcp"]);
        screen.arg("-fbdir").arg(folder).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut screen = screen.spawn().expect("a screen");
        let mut number = String::new();
        let out = screen.stdout.take().expect("piped");
        BufReader::new(out).read_line(&mut number).expect("the screen's number");
        let display = format!(":{}", number.trim());
        let mut window = Command::new("ecflow_ui");
        window.args(["-ts", "localhost", &place.port.to_string()]).process_group(0);
        window.env("DISPLAY", &display).env("HOME", folder).env("TMPDIR", folder);
        window.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let window = window.spawn().expect("a window");
        Self { screen, window, display, picture: folder.join("Xvfb_screen0") }
    }

    /// Moves the pointer, clicks and presses, as these words of xdotool say.
    fn act(&self, words: &[&str]) {
        let mut act = Command::new("xdotool");
        act.args(words).env("DISPLAY", &self.display).stderr(Stdio::null());
        assert!(act.status().expect("xdotool").success(), "{words:?}");
    }

    /// How many points of the picture have a colour. It is in X's format xwd: a head of numbers,
    /// the first its length, the twentieth that of the colours' table; then four bytes a point.
    fn count(&self, [red, green, blue]: [u8; 3]) -> usize {
        let picture = std::fs::read(&self.picture).expect("a picture");
        let number = |place: usize| {
            let bytes = picture[4 * place..][..4].try_into().expect("four bytes");
            u32::from_be_bytes(bytes) as usize
        };
        let points = &picture[number(0) + 12 * number(19)..];
        let is_it = |point: &&[u8]| point[..3] == [blue, green, red];
        points.chunks_exact(4).filter(is_it).count()
    }
}

#[test]
fn ecflow_ui_shows_the_tree_in_its_colours_and_what_is_pressed_in_it_is_done() {
    let programs = ["Xvfb", "xdotool", "ecflow_ui", "ecflow_client"];
    if programs.into_iter().any(|name| program(name).is_none()) {
        return;
    }
    let (place, folder) = (Place::new(), tempfile::tempdir().expect("a folder"));
    let served = Served::ours(&place);
    let file = place.write("s.def", SUITE);
    place.told(&[&format!("--load={}", file.display())]);
    place.told(&["--begin=s"]);
    let window = Window::open(&place, folder.path());
    let shows = |what: &str, edges: &[(&str, [u8; 3])]| {
        place.until(what, || {
            // The server's row, and all below it opened.
            window.act(&["mousemove", "80", "87", "click", "1", "key", "asterisk"]);
            edges.iter().all(|(_, colour)| window.count(*colour) >= POINTS)
        });
    };
    shows("a tree that is queued", &EDGES[3..]);
    assert!(EDGES[..3].iter().all(|(_, colour)| window.count(*colour) == 0));
    for (task, (state, _)) in ["done", "broken", "working"].iter().zip(EDGES) {
        place.told(&[&format!("--force={state}"), &format!("/s/f/{task}")]);
    }
    // Each command of the window is followed by a sync, which brings what has changed meanwhile.
    place.until("the suite is suspended", || {
        // Each time anew: a window that is drawn anew just then loses what is selected.
        window.act(&["mousemove", "80", "87", "click", "1", "key", "asterisk"]);
        window.act(&["key", "Down", "key", "ctrl+s"]);
        place.told(&["--query", "dstate", "/s"]).trim() == "suspended"
    });
    shows("a node in each state", &EDGES);
    served.kill();
}
