//! Arguments as typed: addresses, times, sizes, requests.

use std::net::SocketAddr;
use std::time::Duration;

use base::units::{ByteCount, UnitError};

use crate::environment::{SERVER_PORT, place};
use crate::protocol::{MIN_SEGMENT_BYTES, Request, RequestError};

/// The channel of the array programs, which they use unless another is named.
pub(crate) const ARRAY_CHANNEL: &str = "arrayPerformance";

/// A request as it is written.
pub(super) fn request(written: &str) -> Result<Request, RequestError> {
    Request::parse(written)
}

/// A server's address as it is written, with the usual port where it names none.
pub(super) fn server_address(written: &str) -> Result<SocketAddr, String> {
    place(written, SERVER_PORT).ok_or_else(|| {
        "write an address such as 127.0.0.1, 127.0.0.1:5075 or a host's name".to_owned()
    })
}

/// The size of a segment, with its unit.
pub(crate) fn segment_bytes(written: &str) -> Result<usize, String> {
    let bytes: ByteCount = written.parse().map_err(|error: UnitError| error.to_string())?;
    let fits = (MIN_SEGMENT_BYTES as u64..=u32::MAX.into()).contains(&bytes.bytes);
    let advice = || format!("a segment has {MIN_SEGMENT_BYTES} bytes to 4 GiB - 1");
    usize::try_from(bytes.bytes).ok().filter(|_| fits).ok_or_else(advice)
}

/// A number of seconds, such as `0.1`.
pub(crate) fn seconds(written: &str) -> Result<Duration, String> {
    let seconds = written.parse().ok().filter(|seconds: &f64| (0.0..1e6).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "write seconds, such as 0.1".to_owned())
}

pub(super) fn pair(written: &str) -> Result<(String, String), String> {
    let (name, value) = written.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
