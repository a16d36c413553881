//! Small files about the process, as memcached writes them: its process id and its ports.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use wire::Address;

/// The environment variable that names the file of ports.
const PORT_FILE: &str = "MEMCACHED_PORT_FILENAME";

/// The file of `-P`, which is removed when this is dropped, unless another process has
/// written it since.
#[derive(Debug)]
pub(super) struct PidFile(PathBuf);

impl PidFile {
    /// Writes the process id.
    pub(super) fn write(path: PathBuf) -> anyhow::Result<Self> {
        std::fs::write(&path, format!("{}\n", std::process::id()))
            .with_context(|| format!("cannot write the process id to {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let own = format!("{}\n", std::process::id());
        if base::read_regular(&self.0, 64).is_ok_and(|text| text == own.as_bytes()) {
            // It may have been removed meanwhile.
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

/// Writes the ports to the file that the environment names, if it names one: whole, or not at all.
pub(super) fn write_ports(streams: &[Address], datagrams: &[Address]) -> anyhow::Result<()> {
    let Some(path) = std::env::var_os(PORT_FILE).filter(|path| !path.is_empty()) else {
        return Ok(());
    };
    let path = Path::new(&path);
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".lck");
    let write = || {
        std::fs::write(&temporary, ports(streams, datagrams))?;
        std::fs::rename(&temporary, path)
    };
    write().with_context(|| format!("cannot write the ports to {PORT_FILE}={}", path.display()))
}

fn ports(streams: &[Address], datagrams: &[Address]) -> String {
    let mut text = String::new();
    let streams = streams.iter().map(|address| ("TCP", address));
    for (transport, address) in streams.chain(datagrams.iter().map(|address| ("UDP", address))) {
        if let Address::Internet(address) = address {
            let family = if address.is_ipv4() { "INET" } else { "INET6" };
            // Writing to a string can't fail.
            let _ = writeln!(text, "{transport} {family}: {}", address.port());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::ports;

    #[test]
    fn ports_are_written_as_memcached_writes_them() {
        let address = |written: &str| written.parse().expect("an address");
        let streams = ["127.0.0.1:5", "[::1]:6", "unix:/tmp/a"].map(address);
        let text = ports(&streams, &[address("127.0.0.1:7")]);
        assert_eq!(text, "TCP INET: 5\nTCP INET6: 6\nUDP INET: 7\n");
    }
}
