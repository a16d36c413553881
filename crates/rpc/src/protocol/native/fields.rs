//! What a payload has beside its message: metadata, and the details of a failure. A block of
//! metadata is, for each name, two bytes of its length, four of its value's, the name and the
//! value.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use super::fault::Fault;
use super::frame::{DETAILS, Header, METADATA, MOST_METADATA_BYTES};
use crate::protocol::metadata::Metadata;
use crate::protocol::status::{Code, Status};

/// Appends a block; `false` where it is over [`MOST_METADATA_BYTES`], and nothing is appended.
fn put_block(metadata: &Metadata, out: &mut BytesMut) -> bool {
    let bytes: usize = metadata.iter().map(|(name, value)| 6 + name.len() + value.len()).sum();
    let fits = bytes <= MOST_METADATA_BYTES;
    for (name, value) in metadata.iter().filter(|_| fits) {
        // Within the limit both lengths fit.
        out.put_u16_le(name.len() as u16);
        out.put_u32_le(value.len() as u32);
        out.put_slice(name.as_bytes());
        out.put_slice(value);
    }
    fits
}

/// A block of metadata by itself, as a head carries it; `None` where it is too large.
pub fn block(metadata: &Metadata) -> Option<Bytes> {
    let mut out = BytesMut::new();
    put_block(metadata, &mut out).then(|| out.freeze())
}

/// Metadata before a payload, behind their length; `None` where they are too large.
pub fn prefix(metadata: &Metadata) -> Option<Bytes> {
    let mut out = BytesMut::new();
    out.put_u32_le(0);
    let fits = put_block(metadata, &mut out);
    let length = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&length.to_le_bytes());
    fits.then(|| out.freeze())
}

/// Reads a block.
///
/// # Errors
/// When a length is more than there is, or a name no UTF-8.
pub fn read_block(mut block: Bytes) -> Result<Metadata, Fault> {
    const FAULT: Fault = Fault::Payload("metadata");
    let mut metadata = Metadata::default();
    while !block.is_empty() {
        let name = usize::from(block.try_get_u16_le().map_err(|_| FAULT)?);
        let value = block.try_get_u32_le().map_err(|_| FAULT)? as usize;
        if name.saturating_add(value) > block.len() {
            return Err(FAULT);
        }
        let name = block.split_to(name);
        let name = std::str::from_utf8(&name).map_err(|_| FAULT)?.to_owned();
        metadata.add(name, block.split_to(value));
    }
    Ok(metadata)
}

/// A part behind four bytes of its length.
fn split(payload: &mut Bytes, what: &'static str) -> Result<Bytes, Fault> {
    let length = payload.try_get_u32_le().map_err(|_| Fault::Payload(what))? as usize;
    if length > payload.len().min(MOST_METADATA_BYTES) {
        return Err(Fault::Payload(what));
    }
    Ok(payload.split_to(length))
}

/// Takes the metadata off a payload that begins with them.
///
/// # Errors
/// When they can't be read.
pub fn take(header: &Header, payload: &mut Bytes) -> Result<Metadata, Fault> {
    if !header.has(METADATA) {
        return Ok(Metadata::default());
    }
    read_block(split(payload, "metadata")?)
}

/// The status of a failure, whose metadata are taken off.
///
/// # Errors
/// When its details can't be read.
pub fn status(header: &Header, mut payload: Bytes) -> Result<Status, Fault> {
    let details = match header.has(DETAILS) {
        true => split(&mut payload, "details")?,
        false => Bytes::new(),
    };
    let code = Code::of(i32::try_from(header.method).unwrap_or(-1));
    Ok(Status { code, message: String::from_utf8_lossy(&payload).into_owned(), details })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::frame::Kind;
    use super::*;

    proptest! {
        #[test]
        fn metadata_come_back_in_order_with_what_is_behind_them(
            all in proptest::collection::vec(("[a-z-]{0,9}", any::<Vec<u8>>()), 0..9), rest: Vec<u8>
        ) {
            let mut metadata = Metadata::default();
            all.into_iter().for_each(|(name, value)| metadata.add(name, value));
            let header = Header { flags: METADATA, ..Header::of(Kind::Call, 1) };
            let prefix = prefix(&metadata).expect("it fits");
            let mut payload: Bytes = [&prefix[..], &rest].concat().into();
            prop_assert_eq!(take(&header, &mut payload), Ok(metadata.clone()));
            prop_assert_eq!(payload, rest);
            prop_assert_eq!(read_block(block(&metadata).expect("it fits")), Ok(metadata));
        }

        #[test]
        fn any_bytes_are_metadata_and_details_or_a_fault(bytes in
            proptest::collection::vec(0..9_u8, 0..60))
        {
            let flags = METADATA | DETAILS;
            let header = Header { flags, ..Header::of(Kind::Failure, 1) };
            let mut payload = Bytes::from(bytes);
            if take(&header, &mut payload).is_ok() {
                let _ = status(&header, payload);
            }
        }
    }

    #[test]
    fn what_is_over_the_limit_is_not_written() {
        let mut metadata = Metadata::default();
        metadata.add("name", vec![0; MOST_METADATA_BYTES]);
        assert_eq!((prefix(&metadata), block(&metadata)), (None, None));
        let mut long: Bytes = [255, 255, 255, 255, 0].to_vec().into();
        let header = Header { flags: METADATA, ..Header::of(Kind::Call, 1) };
        assert_eq!(take(&header, &mut long), Err(Fault::Payload("metadata")));
    }
}
