//! Where both sides of a trial run.

use anyhow::Context as _;
use rustix::thread::{CpuSet, sched_setaffinity};

/// The core of each side; without one it runs anywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::command) struct Cpus {
    pub(in crate::command) client: Option<usize>,
    pub(in crate::command) server: Option<usize>,
}

/// `CLIENT,SERVER`, one for both, or `any`.
pub(super) fn cpus(written: &str) -> Result<Cpus, String> {
    if written == "any" {
        return Ok(Cpus::default());
    }
    let number = |text: &str| {
        let number = text.trim().parse().ok().filter(|cpu| *cpu < CpuSet::MAX_CPU);
        number.ok_or_else(|| {
            format!("\"{text}\" is no CPU: write CLIENT,SERVER, such as 0,1, or any")
        })
    };
    let (client, server) = written.split_once(',').unwrap_or((written, written));
    Ok(Cpus { client: Some(number(client)?), server: Some(number(server)?) })
}

/// This thread, and what it starts from now on, run there.
pub(in crate::command) fn pin(cpu: Option<usize>) -> anyhow::Result<()> {
    let Some(cpu) = cpu else { return Ok(()) };
    let mut set = CpuSet::new();
    set.set(cpu);
    let pinned = sched_setaffinity(None, &set);
    pinned.with_context(|| format!("this process can't run on CPU {cpu} (--cpus)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_those_of_client_and_server_or_one_for_both() {
        assert_eq!(cpus("0,1"), Ok(Cpus { client: Some(0), server: Some(1) }));
        assert_eq!(cpus("3"), Ok(Cpus { client: Some(3), server: Some(3) }));
        assert_eq!(cpus("any"), Ok(Cpus::default()));
        for wrong in ["", "a", "1,", "0,99999", "-1"] {
            assert!(cpus(wrong).expect_err(wrong).contains("is no CPU"), "{wrong}");
        }
    }
}
