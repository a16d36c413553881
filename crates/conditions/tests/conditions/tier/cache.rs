//! nginx before two servers, as the only cache: the look-ups of ALICE's CCDB, one object by time at
//! a revision, most of them of what was asked before.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use super::place::Place;
use crate::served::{change, folder, get};

/// Objects, and look-ups: nine of ten repeat one.
const OBJECTS: u64 = 100;
const LOOKUPS: u64 = 1_000;

const CONFIGURATION: &str = "
    daemon off; master_process off; user root; pid FOLDER/pid; error_log FOLDER/error.log;
    events { worker_connections 256; }
    http {
        log_format status '$upstream_cache_status $status $request_uri';
        access_log FOLDER/access.log status;
        client_body_temp_path FOLDER/body; proxy_temp_path FOLDER/proxy;
        fastcgi_temp_path FOLDER/f; uwsgi_temp_path FOLDER/u; scgi_temp_path FOLDER/s;
        proxy_cache_path FOLDER/cache keys_zone=answers:8m inactive=1y use_temp_path=off;
        upstream servers { server A; server B; keepalive 16; }
        server {
            listen 127.0.0.1:PORT;
            location / {
                proxy_pass http://servers;
                proxy_http_version 1.1;
                proxy_set_header Connection '';
                proxy_set_header Host localhost;
                proxy_cache answers;
                proxy_cache_key $request_uri;
                proxy_cache_lock on;
                proxy_cache_lock_timeout 30s;
                proxy_next_upstream error timeout http_503;
            }
        }
    }";

struct Nginx {
    process: Child,
    at: SocketAddr,
    log: std::path::PathBuf,
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Nginx {
    fn start(place: &Place, servers: [SocketAddr; 2]) -> Option<Self> {
        let program = testing::program("nginx")?;
        let folder = place.folder().join("nginx");
        fs::create_dir(&folder).expect("a folder");
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, testing::free_port()));
        let text = CONFIGURATION.replace("FOLDER", &folder.display().to_string());
        let text = text.replace("PORT", &at.port().to_string());
        let text = text.replace("server A", &format!("server {}", servers[0]));
        let text = text.replace("server B", &format!("server {}", servers[1]));
        let configuration = folder.join("nginx.conf");
        fs::write(&configuration, text).expect("written");
        let mut command = Command::new(program);
        command.arg("-e").arg(folder.join("error.log")).arg("-c").arg(configuration);
        let process = command.stdin(Stdio::null()).spawn().expect("nginx");
        let mut nginx = Self { process, at, log: folder.join("access.log") };
        while TcpStream::connect(at).is_err() {
            assert_eq!(nginx.process.try_wait().expect("a status"), None, "nginx has ended");
            std::thread::yield_now();
        }
        Some(nginx)
    }

    /// How many requests it has passed on to servers, of how many.
    fn passed_on(&self) -> (usize, usize) {
        let log = fs::read_to_string(&self.log).expect("a log");
        let hit = log.lines().filter(|line| line.starts_with("HIT ")).count();
        let all = log.lines().count();
        (all - hit, all)
    }
}

/// The counter of a server.
fn counted(at: SocketAddr, name: &str) -> u64 {
    let page = get(at, "/metrics", &[]).body;
    let page = String::from_utf8(page).expect("text");
    let line = page.lines().find_map(|line| line.strip_prefix(name)).expect("a counter");
    line.trim().parse().expect("a number")
}

#[test]
fn nine_of_ten_lookups_of_one_object_never_reach_a_server() {
    let Some(place) = Place::new() else { return };
    let (killed, a) = place.start("a", 1 << 20);
    let (_b, b) = place.start("b", 1 << 20);
    let Some(nginx) = Nginx::start(&place, [a, b]) else { return };
    folder(a, "/qc/object", "multi");
    let objects: Vec<_> = (0..OBJECTS)
        .map(|n| json!({ "channel": 0, "since": 10 * n, "until": 10 * n + 10, "values": [n] }))
        .collect();
    let batches = json!({ "batches": [{ "folder": "/qc/object", "objects": objects }] });
    let revision = change(a, "/objects", &batches);

    // Simultaneous misses are one request, whichever server it comes to.
    let slice = format!("/api/v1/slice/{revision}/15?under=/qc");
    let before = counted(a, "conditions_slices_total ") + counted(b, "conditions_slices_total ");
    let answers: Vec<_> = std::thread::scope(|scope| {
        let ask = || scope.spawn(|| get(nginx.at, &slice, &[]));
        let asked: Vec<_> = (0..20).map(|_| ask()).collect();
        asked.into_iter().map(|one| one.join().expect("an answer")).collect()
    });
    let after = counted(a, "conditions_slices_total ") + counted(b, "conditions_slices_total ");
    let all_are_right = answers.iter().all(|one| one.status == 200 && one.body == answers[0].body);
    assert!(all_are_right, "{:?}", answers[0]);
    assert_eq!(after - before, 1, "simultaneous misses");
    let tag = answers[0].header("etag");
    let known = get(nginx.at, &slice, &[("if-none-match", tag)]);
    assert_eq!((known.status, known.body.len()), (304, 0));
    drop(killed);

    // One server is left, and 100 different times of 100 objects are each asked ten times.
    let mut random = SmallRng::seed_from_u64(9);
    let mut asked: Vec<u64> = Vec::new();
    let (passed, all) = nginx.passed_on();
    for number in 0..LOOKUPS {
        let time = match number % 10 {
            0 => 10 * (number / 10 % OBJECTS) + random.random_range(0..10),
            _ => asked[random.random_range(0..asked.len())],
        };
        asked.push(time);
        let lead = format!("/api/v1/slice?t={time}&under=/qc&revision={revision}");
        let lead = get(nginx.at, &lead, &[]);
        assert_eq!(lead.status, 307, "{:?}", String::from_utf8_lossy(&lead.body));
        let answer = get(nginx.at, lead.header("location"), &[]);
        let shown = answer.json();
        let object = &shown["folders"][0]["objects"][0];
        assert_eq!(object["since"], json!(time / 10 * 10), "{shown}");
        assert_eq!(object["records"], json!([[(time / 10) as f64]]), "{shown}");
    }
    let (passed, all) = (nginx.passed_on().0 - passed, nginx.passed_on().1 - all);
    assert_eq!(all as u64, 2 * LOOKUPS);
    assert!(passed * 100 <= all * 15, "{passed} of {all} requests have reached a server");
    println!("{passed} of {all} requests have reached a server");
}
