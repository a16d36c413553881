//! The line that says, once and on standard output, that a service is ready, and where it is.

use std::path::Path;

use anyhow::bail;
use serde_json::{Map, Value, json};

use crate::out;

/// What the ready line says.
#[derive(Clone, Copy, Debug)]
pub struct Ready<'a> {
    /// The service.
    pub service: &'a str,
    /// The protocol of its connections: the name of the first address, and with a number (from 2)
    /// of the others.
    pub protocol: &'a str,
    /// Where it accepts connections.
    pub addresses: &'a [String],
    /// Other addresses by their names: those of datagrams, and of metrics.
    pub other_addresses: &'a [(&'static str, String)],
    /// The data directory, where it has one.
    pub data: Option<&'a Path>,
}

impl Ready<'_> {
    /// Prints the line.
    ///
    /// # Errors
    /// When it can't be written, or there is no address.
    pub fn print(self) -> anyhow::Result<()> {
        Ok(out::print(format!("{}\n", self.json()?))?)
    }

    fn json(self) -> anyhow::Result<Value> {
        let other = self.other_addresses.first().map(|(_, address)| address);
        let Some(first) = self.addresses.first().or(other) else {
            bail!("there is nowhere to listen");
        };
        let mut addresses = Map::new();
        for (number, address) in (1..).zip(self.addresses) {
            let number = if number == 1 { String::new() } else { number.to_string() };
            addresses.insert(format!("{}{number}", self.protocol), json!(address));
        }
        for (name, address) in self.other_addresses {
            addresses.insert((*name).to_owned(), json!(address));
        }
        Ok(json!({
            "ready": true,
            "service": self.service,
            "pid": std::process::id(),
            "address": first,
            "addresses": addresses,
            "data": self.data.map(|path| path.display().to_string()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_address_has_the_protocols_name_and_others_a_number() {
        let addresses = ["1.2.3.4:5", "unix:/a"].map(str::to_owned);
        let named = [("metrics", "1.2.3.4:6".to_owned())];
        let ready = Ready {
            service: "echo",
            protocol: "lines",
            addresses: &addresses,
            other_addresses: &named,
            data: Some(Path::new("/data")),
        };
        let line = ready.json().expect("an address");
        assert_eq!(line["address"], "1.2.3.4:5");
        let all = json!({ "lines": "1.2.3.4:5", "lines2": "unix:/a", "metrics": "1.2.3.4:6" });
        assert_eq!((&line["addresses"], &line["data"]), (&all, &json!("/data")));
        let nowhere = Ready { addresses: &[], other_addresses: &[], ..ready };
        assert!(nowhere.json().is_err());
    }
}
