//! The Huffman code of header strings (RFC 7541, appendix B).
//!
//! The code is canonical: codes of one length are consecutive numbers in the order of their
//! symbols, and each length goes on from the one before. So the lengths say all of it.

/// The longest code, in bits.
const MAX_BITS: usize = 30;

/// The symbol that stands for the end of a string, and is never sent.
const END: usize = 256;

/// How long the code of each symbol is, in bits.
#[rustfmt::skip]
const LENGTHS: [u8; END + 1] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The code by length: where each length begins.
struct Code {
    /// The first code of each length.
    first: [u32; MAX_BITS + 1],
    /// How many codes each length has.
    count: [u32; MAX_BITS + 1],
    /// Where the symbols of each length begin in `symbols`.
    from: [u16; MAX_BITS + 1],
    /// The symbols in the order of their codes.
    symbols: [u16; END + 1],
}

static CODE: Code = code();

const fn code() -> Code {
    let mut code = Code {
        first: [0; MAX_BITS + 1],
        count: [0; MAX_BITS + 1],
        from: [0; MAX_BITS + 1],
        symbols: [0; END + 1],
    };
    let (mut bits, mut next, mut placed) = (1, 0, 0);
    while bits <= MAX_BITS {
        next <<= 1;
        code.first[bits] = next;
        code.from[bits] = placed as u16;
        let mut symbol = 0;
        while symbol <= END {
            if LENGTHS[symbol] as usize == bits {
                code.symbols[placed] = symbol as u16;
                placed += 1;
                next += 1;
            }
            symbol += 1;
        }
        code.count[bits] = next - code.first[bits];
        bits += 1;
    }
    code
}

/// Appends what `bytes` mean. `None` when they are no string: the end symbol, or an end that is not
/// fewer than eight ones.
pub(super) fn decode(bytes: &[u8], into: &mut Vec<u8>) -> Option<()> {
    let (mut code, mut bits) = (0_u32, 0_usize);
    for byte in bytes {
        for place in (0..8).rev() {
            code = code << 1 | u32::from(byte >> place & 1);
            bits += 1;
            let index = code.wrapping_sub(CODE.first[bits]);
            if index < CODE.count[bits] {
                let symbol = CODE.symbols[usize::from(CODE.from[bits]) + index as usize];
                // The end symbol is the only one that is no byte.
                into.push(u8::try_from(symbol).ok()?);
                (code, bits) = (0, 0);
            } else if bits == MAX_BITS {
                return None;
            }
        }
    }
    let is_padding = bits < 8 && code == (1 << bits) - 1;
    is_padding.then_some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The other direction, from the same lengths.
    fn encode(text: &[u8]) -> Vec<u8> {
        let (mut bytes, mut held, mut bits) = (Vec::new(), 0_u64, 0);
        for byte in text {
            let length = usize::from(LENGTHS[usize::from(*byte)]);
            let place = CODE.symbols.iter().position(|symbol| *symbol == u16::from(*byte)).unwrap();
            let code = CODE.first[length] + (place - usize::from(CODE.from[length])) as u32;
            held = held << length | u64::from(code);
            bits += length;
            while bits >= 8 {
                bits -= 8;
                bytes.push((held >> bits) as u8);
            }
            held &= (1 << bits) - 1;
        }
        if bits > 0 {
            bytes.push((held << (8 - bits)) as u8 | ((1 << (8 - bits)) - 1) as u8);
        }
        bytes
    }

    #[test]
    fn it_is_the_code_of_the_standard() {
        // Appendix B's first and last codes, and one in the middle.
        let of = |symbol: u16| {
            let bits = usize::from(LENGTHS[usize::from(symbol)]);
            let place = CODE.symbols.iter().position(|one| *one == symbol).unwrap();
            CODE.first[bits] + (place - usize::from(CODE.from[bits])) as u32
        };
        assert_eq!([of(0), of(255), of(256)], [0x1ff8, 0x3ff_ffee, 0x3fff_ffff]);
        assert_eq!([of(b'0'.into()), of(b'~'.into()), of(b'%'.into())], [0x0, 0x1ffd, 0x15]);
        // Every string of 30 bits begins with exactly one code.
        let kraft: u64 = LENGTHS.iter().map(|bits| 1 << (MAX_BITS - usize::from(*bits))).sum();
        assert_eq!(kraft, 1 << MAX_BITS);
    }

    #[test]
    fn strings_of_the_standard_are_read_and_broken_ones_are_not() {
        let read = |bytes: &[u8]| {
            let mut text = Vec::new();
            decode(bytes, &mut text).map(|()| text)
        };
        // Appendix C.4 and C.6.
        let www = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(read(&www).as_deref(), Some(&b"www.example.com"[..]));
        assert_eq!(read(&[0xae, 0xc3, 0x77, 0x1a, 0x4b]).as_deref(), Some(&b"private"[..]));
        assert_eq!(read(&[0x64, 0x02]).as_deref(), Some(&b"302"[..]));
        assert_eq!(read(&[0xff]), None, "eight bits of padding");
        assert_eq!(read(&[0xff, 0xff, 0xff, 0xff]), None, "the end symbol");
        assert_eq!(read(&[0x00, 0x00]), None, "an end that is not ones");
    }

    proptest! {
        #[test]
        fn any_string_is_read_as_it_was_written(text in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut read = Vec::new();
            prop_assert!(decode(&encode(&text), &mut read).is_some());
            prop_assert_eq!(read, text);
        }
    }
}
