//! Header blocks (RFC 7541) as servers send them to a client with a table of size 0: every field is
//! one of the static table or stands there in full, so that a block needs no other one to be read.

use wire::ProtocolError;

use super::huffman;

/// How many fields the static table has, counted from 1.
const STATIC: usize = 61;

/// The static table (RFC 7541, appendix A).
#[rustfmt::skip]
const TABLE: [(&str, &str); STATIC] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"),
    (":path", "/index.html"), (":scheme", "http"), (":scheme", "https"), (":status", "200"),
    (":status", "204"), (":status", "206"), (":status", "304"), (":status", "400"),
    (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""),
    ("accept", ""), ("access-control-allow-origin", ""), ("age", ""), ("allow", ""),
    ("authorization", ""), ("cache-control", ""), ("content-disposition", ""),
    ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""),
    ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
    ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""),
    ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""),
    ("via", ""), ("www-authenticate", ""),
];

/// What a field takes of the limit besides its bytes (RFC 9113, section 6.5.2).
const FIELD_BYTES: usize = 32;

/// Reads header blocks, and keeps the memory of one for the next.
#[derive(Debug, Default)]
pub struct Decoder {
    name: Vec<u8>,
    value: Vec<u8>,
}

/// A string of a block.
enum Text<'a> {
    Plain(&'a [u8]),
    Coded,
}

impl<'a> Text<'a> {
    fn of<'b>(self, decoded: &'b [u8]) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Text::Plain(bytes) => bytes,
            Text::Coded => decoded,
        }
    }
}

#[cold]
fn broken(what: &'static str) -> ProtocolError {
    ProtocolError::new(format!("a header block can't be read: {what}"))
}

/// An integer whose first byte leaves it `bits` bits (section 5.1).
fn integer(block: &mut &[u8], bits: u32) -> Result<usize, ProtocolError> {
    let (first, rest) = block.split_first().ok_or_else(|| broken("it ends within a field"))?;
    *block = rest;
    let most = (1_usize << bits) - 1;
    let mut number = usize::from(*first) & most;
    if number < most {
        return Ok(number);
    }
    for shift in (0..28).step_by(7) {
        let (byte, rest) = block.split_first().ok_or_else(|| broken("it ends within a number"))?;
        *block = rest;
        number += usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(broken("a number of more than four bytes"))
}

/// A string (section 5.2); one in Huffman's code is decoded into `decoded`.
fn text<'a>(
    block: &mut &'a [u8],
    decoded: &mut Vec<u8>,
    most: usize,
) -> Result<Text<'a>, ProtocolError> {
    let is_coded = block.first().is_some_and(|byte| byte & 0x80 != 0);
    let len = integer(block, 7)?;
    if len > block.len() {
        return Err(broken("a string is longer than the block"));
    }
    let (bytes, rest) = block.split_at(len);
    *block = rest;
    if !is_coded {
        return Ok(Text::Plain(bytes));
    }
    decoded.clear();
    // The shortest code has five bits.
    if bytes.len() * 8 / 5 > most {
        return Err(broken("its fields are larger than this client takes"));
    }
    huffman::decode(bytes, decoded).ok_or_else(|| broken("a string is not in Huffman's code"))?;
    Ok(Text::Coded)
}

fn of_table(index: usize) -> Result<(&'static [u8], &'static [u8]), ProtocolError> {
    let field = index.checked_sub(1).and_then(|place| TABLE.get(place));
    let (name, value) =
        field.ok_or_else(|| broken("a field of the table, which has size 0 on this connection"))?;
    Ok((name.as_bytes(), value.as_bytes()))
}

impl Decoder {
    /// Hands each field of a whole block to `field`, in order. The fields, with 32 bytes for each,
    /// may have at most `most` bytes.
    ///
    /// # Errors
    /// Where the block can't be read or is too large; the connection can't go on then.
    pub fn read(
        &mut self,
        mut block: &[u8],
        most: usize,
        mut field: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), ProtocolError> {
        let mut left = most;
        while let Some(first) = block.first() {
            let (name, value): (&[u8], &[u8]) = match first {
                // A field of the table.
                0x80.. => of_table(integer(&mut block, 7)?)?,
                // Another size of the table.
                0x20..=0x3f => {
                    if integer(&mut block, 5)? > 0 {
                        return Err(broken("a table larger than this client has said"));
                    }
                    continue;
                }
                // A field in full, with or without a place in the table, which holds none.
                _ => {
                    let bits = if *first >= 0x40 { 6 } else { 4 };
                    let index = integer(&mut block, bits)?;
                    let name = match index {
                        0 => text(&mut block, &mut self.name, left)?.of(&self.name),
                        _ => of_table(index)?.0,
                    };
                    (name, text(&mut block, &mut self.value, left)?.of(&self.value))
                }
            };
            left = left
                .checked_sub(name.len() + value.len() + FIELD_BYTES)
                .ok_or_else(|| broken("its fields are larger than this client takes"))?;
            field(name, value);
        }
        Ok(())
    }
}

/// Appends an integer behind the bits of `first` that say what it is.
pub(super) fn put_integer(first: u8, bits: u32, number: usize, into: &mut Vec<u8>) {
    let most = (1_usize << bits) - 1;
    if number < most {
        into.push(first | number as u8);
        return;
    }
    into.push(first | most as u8);
    let mut left = number - most;
    while left >= 0x80 {
        into.push(left as u8 | 0x80);
        left >>= 7;
    }
    into.push(left as u8);
}

/// Appends a string as it is.
pub(super) fn put_text(text: &[u8], into: &mut Vec<u8>) {
    put_integer(0, 7, text.len(), into);
    into.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MOST: usize = 16_384;

    fn read(block: &[u8]) -> Result<Vec<(String, String)>, ProtocolError> {
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Decoder::default()
            .read(block, MOST, |name, value| fields.push((text(name), text(value))))?;
        Ok(fields)
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    }

    fn fields(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn blocks_of_the_standard_are_read() {
        // C.2.1 to C.2.4: each way to say a field.
        let custom = hex("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572");
        assert_eq!(read(&custom).unwrap(), fields(&[("custom-key", "custom-header")]));
        let path = hex("040c 2f73 616d 706c 652f 7061 7468");
        assert_eq!(read(&path).unwrap(), fields(&[(":path", "/sample/path")]));
        let secret = hex("1008 7061 7373 776f 7264 0673 6563 7265 74");
        assert_eq!(read(&secret).unwrap(), fields(&[("password", "secret")]));
        assert_eq!(read(&[0x82]).unwrap(), fields(&[(":method", "GET")]));
        // C.4.1, and C.6.1: a response in Huffman's code.
        let request = hex("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff");
        let expected = [
            (":method", "GET"),
            (":scheme", "http"),
            (":path", "/"),
            (":authority", "www.example.com"),
        ];
        assert_eq!(read(&request).unwrap(), fields(&expected));
        let response =
            hex("4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 \
             2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3");
        let expected = [
            (":status", "302"),
            ("cache-control", "private"),
            ("date", "Mon, 21 Oct 2013 20:13:21 GMT"),
            ("location", "https://www.example.com"),
        ];
        assert_eq!(read(&response).unwrap(), fields(&expected));
    }

    #[test]
    fn what_a_table_of_size_zero_rules_out_is_refused() {
        let refused = |block: &[u8]| read(block).unwrap_err().to_string();
        assert!(refused(&[0xbe]).contains("size 0"), "field 62");
        assert!(refused(&[0x80]).contains("size 0"), "field 0");
        assert!(refused(&[0x3f, 0xe1, 0x1f]).contains("larger than this client has said"));
        assert_eq!(read(&[0x20, 0x88]).unwrap(), fields(&[(":status", "200")]));
        assert!(refused(&[0x40, 0x05, b'a']).contains("longer than the block"));
        assert!(refused(&[0xff, 0xff, 0xff, 0xff, 0xff, 0x01]).contains("four bytes"));
        let long = [&[0x0f, 0x10, 0x7f, 0x81, 0x7f][..], &[b'a'; 16_384]].concat();
        assert!(refused(&long).contains("larger than this client takes"));
    }

    proptest! {
        #[test]
        fn numbers_are_read_as_they_were_written(number in 0_usize..200_000_000, bits in 4_u32..8) {
            let mut bytes = Vec::new();
            put_integer(0, bits, number, &mut bytes);
            let mut rest = &bytes[..];
            prop_assert_eq!(integer(&mut rest, bits).unwrap(), number);
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn any_bytes_do_no_harm(block in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut bytes = 0;
            let mut count = |name: &[u8], value: &[u8]| bytes += name.len() + value.len() + 32;
            let _ = Decoder::default().read(&block, 1_000, &mut count);
            prop_assert!(bytes <= 1_000);
        }
    }
}
