//! The resources that client and server share: reported with every limit, because both sides load
//! them.

/// What client and server share when they run on these cores of one host; both empty is unknown.
/// `remote` is a target on another host.
pub fn shared_resources(server: &[usize], generator: &[usize], remote: bool) -> String {
    if remote {
        return "nothing on this host: the target is on another".to_owned();
    }
    let common: Vec<usize> =
        server.iter().copied().filter(|core| generator.contains(core)).collect();
    let cores = match (server.is_empty() || generator.is_empty(), common.is_empty()) {
        (true, _) => "perhaps cores (the target's are unknown)".to_owned(),
        (false, true) => {
            let (server, generator) = (list(server), list(generator));
            format!("no core (server {server}, generator {generator})")
        }
        (false, false) => {
            let noun = if common.len() == 1 { "core" } else { "cores" };
            format!("{noun} {}", list(&common))
        }
    };
    format!("{cores}; caches, memory bandwidth, loopback and disks")
}

/// `0–3, 6`.
fn list(cores: &[usize]) -> String {
    let mut sorted = cores.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for core in sorted {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => ranges.push((core, core)),
        }
    }
    let range = |(first, last): &(usize, usize)| match last - first {
        0 => first.to_string(),
        1 => format!("{first}, {last}"),
        _ => format!("{first}–{last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(", ")
}

#[test]
fn cores_are_named_as_ranges_and_only_common_ones_are_shared() {
    assert_eq!(list(&[6, 1, 0, 2, 3]), "0–3, 6");
    assert!(
        shared_resources(&[0], &[1], false).starts_with("no core (server 0, generator 1); caches")
    );
    assert!(shared_resources(&[0, 1], &[0, 1], false).starts_with("cores 0, 1; caches"));
    assert!(shared_resources(&[0, 1], &[1], false).starts_with("core 1; "));
    assert!(shared_resources(&[], &[1], false).contains("unknown"));
    assert!(shared_resources(&[], &[1], true).starts_with("nothing"));
}
