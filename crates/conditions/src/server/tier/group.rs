//! The bytes of a group of records: CRC-32 of all that follows, then each record after its length.
//! Numbers are little-endian.

/// Bytes that are no group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadGroup {
    #[error("its checksum is wrong")]
    Checksum,
    #[error("it ends within a record")]
    Short,
}

pub(super) fn encode(records: &[Vec<u8>]) -> Vec<u8> {
    let bytes: usize = records.iter().map(|record| 4 + record.len()).sum();
    let mut body = Vec::with_capacity(4 + bytes);
    body.extend([0; 4]);
    for record in records {
        // The owner refuses what is larger than a record of the journal.
        body.extend((record.len() as u32).to_le_bytes());
        body.extend_from_slice(record);
    }
    let checksum = crc32fast::hash(&body[4..]);
    body[..4].copy_from_slice(&checksum.to_le_bytes());
    body
}

pub(super) fn decode(body: &[u8]) -> Result<Vec<&[u8]>, BadGroup> {
    let (checksum, mut rest) = body.split_first_chunk::<4>().ok_or(BadGroup::Short)?;
    if crc32fast::hash(rest) != u32::from_le_bytes(*checksum) {
        return Err(BadGroup::Checksum);
    }
    let mut records = Vec::new();
    while !rest.is_empty() {
        let (length, after) = rest.split_first_chunk::<4>().ok_or(BadGroup::Short)?;
        let length = u32::from_le_bytes(*length) as usize;
        let (record, after) = after.split_at_checked(length).ok_or(BadGroup::Short)?;
        records.push(record);
        rest = after;
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written_and_not_with_a_flipped_bit() {
        let records = [vec![1, 2, 3], vec![], vec![255; 300]];
        let body = encode(&records);
        assert_eq!(decode(&body), Ok(records.iter().map(Vec::as_slice).collect()));
        assert_eq!(decode(&encode(&[])), Ok(vec![]));
        for at in 0..body.len() {
            let mut damaged = body.clone();
            damaged[at] ^= 4;
            assert_eq!(decode(&damaged), Err(BadGroup::Checksum), "byte {at}");
            assert!(decode(&body[..at]).is_err(), "cut at {at}");
        }
    }
}
