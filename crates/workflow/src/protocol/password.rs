//! Passwords as requests carry them: hashed by the C library's `crypt` with the user's name as the
//! setting, which is DES and, for long names, `bigcrypt`.
//!
//! It is as weak as it is old: eight characters count, and two of salt, and who reads the hash can
//! use it. Clients send nothing else.

/// A bit of each byte.
type Bits<const N: usize> = [u8; N];

const INITIAL_C: [u8; 28] = [
    57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60,
    52, 44, 36,
];
const INITIAL_D: [u8; 28] = [
    63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29, 21, 13, 5,
    28, 20, 12, 4,
];
const SHIFTS: [u8; 16] = [1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1];
const CHOICE: [u8; 48] = [
    14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10, 23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2, 41, 52,
    31, 37, 47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
];
const EXPANSION: [u8; 48] = [
    32, 1, 2, 3, 4, 5, 4, 5, 6, 7, 8, 9, 8, 9, 10, 11, 12, 13, 12, 13, 14, 15, 16, 17, 16, 17, 18,
    19, 20, 21, 20, 21, 22, 23, 24, 25, 24, 25, 26, 27, 28, 29, 28, 29, 30, 31, 32, 1,
];
const PERMUTATION: [u8; 32] = [
    16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10, 2, 8, 24, 14, 32, 27, 3, 9, 19,
    13, 30, 6, 22, 11, 4, 25,
];
const FINAL: [u8; 64] = [
    40, 8, 48, 16, 56, 24, 64, 32, 39, 7, 47, 15, 55, 23, 63, 31, 38, 6, 46, 14, 54, 22, 62, 30,
    37, 5, 45, 13, 53, 21, 61, 29, 36, 4, 44, 12, 52, 20, 60, 28, 35, 3, 43, 11, 51, 19, 59, 27,
    34, 2, 42, 10, 50, 18, 58, 26, 33, 1, 41, 9, 49, 17, 57, 25,
];
/// The substitutions, four rows of sixteen each.
const BOXES: [[u8; 64]; 8] = [
    [
        14, 4, 13, 1, 2, 15, 11, 8, 3, 10, 6, 12, 5, 9, 0, 7, 0, 15, 7, 4, 14, 2, 13, 1, 10, 6, 12,
        11, 9, 5, 3, 8, 4, 1, 14, 8, 13, 6, 2, 11, 15, 12, 9, 7, 3, 10, 5, 0, 15, 12, 8, 2, 4, 9,
        1, 7, 5, 11, 3, 14, 10, 0, 6, 13,
    ],
    [
        15, 1, 8, 14, 6, 11, 3, 4, 9, 7, 2, 13, 12, 0, 5, 10, 3, 13, 4, 7, 15, 2, 8, 14, 12, 0, 1,
        10, 6, 9, 11, 5, 0, 14, 7, 11, 10, 4, 13, 1, 5, 8, 12, 6, 9, 3, 2, 15, 13, 8, 10, 1, 3, 15,
        4, 2, 11, 6, 7, 12, 0, 5, 14, 9,
    ],
    [
        10, 0, 9, 14, 6, 3, 15, 5, 1, 13, 12, 7, 11, 4, 2, 8, 13, 7, 0, 9, 3, 4, 6, 10, 2, 8, 5,
        14, 12, 11, 15, 1, 13, 6, 4, 9, 8, 15, 3, 0, 11, 1, 2, 12, 5, 10, 14, 7, 1, 10, 13, 0, 6,
        9, 8, 7, 4, 15, 14, 3, 11, 5, 2, 12,
    ],
    [
        7, 13, 14, 3, 0, 6, 9, 10, 1, 2, 8, 5, 11, 12, 4, 15, 13, 8, 11, 5, 6, 15, 0, 3, 4, 7, 2,
        12, 1, 10, 14, 9, 10, 6, 9, 0, 12, 11, 7, 13, 15, 1, 3, 14, 5, 2, 8, 4, 3, 15, 0, 6, 10, 1,
        13, 8, 9, 4, 5, 11, 12, 7, 2, 14,
    ],
    [
        2, 12, 4, 1, 7, 10, 11, 6, 8, 5, 3, 15, 13, 0, 14, 9, 14, 11, 2, 12, 4, 7, 13, 1, 5, 0, 15,
        10, 3, 9, 8, 6, 4, 2, 1, 11, 10, 13, 7, 8, 15, 9, 12, 5, 6, 3, 0, 14, 11, 8, 12, 7, 1, 14,
        2, 13, 6, 15, 0, 9, 10, 4, 5, 3,
    ],
    [
        12, 1, 10, 15, 9, 2, 6, 8, 0, 13, 3, 4, 14, 7, 5, 11, 10, 15, 4, 2, 7, 12, 9, 5, 6, 1, 13,
        14, 0, 11, 3, 8, 9, 14, 15, 5, 2, 8, 12, 3, 7, 0, 4, 10, 1, 13, 11, 6, 4, 3, 2, 12, 9, 5,
        15, 10, 11, 14, 1, 7, 6, 0, 8, 13,
    ],
    [
        4, 11, 2, 14, 15, 0, 8, 13, 3, 12, 9, 7, 5, 10, 6, 1, 13, 0, 11, 7, 4, 9, 1, 10, 14, 3, 5,
        12, 2, 15, 8, 6, 1, 4, 11, 13, 12, 3, 7, 14, 10, 15, 6, 8, 0, 5, 9, 2, 6, 11, 13, 8, 1, 4,
        10, 7, 9, 5, 0, 15, 14, 2, 3, 12,
    ],
    [
        13, 2, 8, 4, 6, 15, 11, 1, 10, 9, 3, 14, 5, 0, 12, 7, 1, 15, 13, 8, 10, 3, 7, 4, 12, 5, 6,
        11, 0, 14, 9, 2, 7, 11, 4, 1, 9, 12, 14, 2, 0, 6, 10, 13, 15, 3, 5, 8, 2, 1, 14, 7, 4, 10,
        8, 13, 15, 12, 9, 0, 3, 5, 6, 11,
    ],
];

/// The digits of hashes and salts, by their value.
const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The bytes of a password that DES takes.
const PIECE_BYTES: usize = 8;
/// The pieces that `bigcrypt` takes.
const MOST_PIECES: usize = 16;
/// Names longer than a hash have the whole password count.
const HASH_BYTES: usize = 13;

/// The hash that ecFlow's programs make of a password; `None` where a user of this name can't have
/// one: `crypt` fails, and all passwords would look alike.
pub fn hash_password(user: &str, password: &str) -> Option<String> {
    let is_taken = |byte: u8| byte.is_ascii_graphic() && !b":;*!\\".contains(&byte);
    let mut salt: [u8; 2] = *user.as_bytes().first_chunk()?;
    if !user.bytes().all(is_taken) || !salt.iter().all(|byte| DIGITS.contains(byte)) {
        return None;
    }
    let pieces = if user.len() > HASH_BYTES { MOST_PIECES } else { 1 };
    let mut hashed = salt.to_vec();
    let empty: &[u8] = &[];
    let all = password.as_bytes().chunks(PIECE_BYTES);
    let first = if password.is_empty() { Some(empty) } else { None };
    for piece in first.into_iter().chain(all).take(pieces) {
        let digits = hash_piece(piece, salt);
        salt = [digits[0], digits[1]];
        hashed.extend_from_slice(&digits);
    }
    String::from_utf8(hashed).ok()
}

fn hash_piece(piece: &[u8], salt: [u8; 2]) -> [u8; 11] {
    let mut key = [0; 64];
    for (byte, bits) in piece.iter().zip(key.chunks_mut(8)) {
        for (place, bit) in bits.iter_mut().take(7).enumerate() {
            *bit = byte >> (6 - place) & 1;
        }
    }
    let keys = schedule(&key);
    let mut expansion = EXPANSION;
    for (which, byte) in salt.into_iter().enumerate() {
        let value = DIGITS.iter().position(|digit| *digit == byte).unwrap_or(0);
        for bit in (0..6).filter(|bit| value >> bit & 1 == 1) {
            expansion.swap(6 * which + bit, 6 * which + bit + 24);
        }
    }
    let (mut left, mut right) = ([0; 32], [0; 32]);
    // Between two of these, the final permutation and the initial one undo each other.
    for _ in 0..25 {
        for key in &keys {
            let next = round(&left, &right, key, &expansion);
            left = std::mem::replace(&mut right, next);
        }
        std::mem::swap(&mut left, &mut right);
    }
    let bit = |place: usize| {
        let from = FINAL.get(place).map_or(0, |from| usize::from(*from));
        let both = left.iter().chain(&right);
        from.checked_sub(1).and_then(|from| both.copied().nth(from)).unwrap_or(0)
    };
    std::array::from_fn(|digit| {
        let value = (0..6).fold(0, |value, place| value << 1 | bit(6 * digit + place));
        DIGITS[usize::from(value)]
    })
}

/// The keys of the sixteen rounds.
fn schedule(key: &Bits<64>) -> [Bits<48>; 16] {
    let pick = |from: &[u8; 28]| from.map(|place| key[usize::from(place) - 1]);
    let (mut c, mut d) = (pick(&INITIAL_C), pick(&INITIAL_D));
    SHIFTS.map(|shift| {
        c.rotate_left(shift.into());
        d.rotate_left(shift.into());
        CHOICE.map(|place| match usize::from(place) - 1 {
            place @ 0..28 => c[place],
            place => d[place - 28],
        })
    })
}

fn round(left: &Bits<32>, right: &Bits<32>, key: &Bits<48>, expansion: &[u8; 48]) -> Bits<32> {
    let mut made = [0; 32];
    for (box_no, rows) in BOXES.iter().enumerate() {
        let bit = |place: usize| {
            let place = 6 * box_no + place;
            right[usize::from(expansion[place]) - 1] ^ key[place]
        };
        let row = bit(0) << 1 | bit(5);
        let column = (1..5).fold(0, |column, place| column << 1 | bit(place));
        let value = rows[usize::from(row * 16 + column)];
        for place in 0..4 {
            made[4 * box_no + place] = value >> (3 - place) & 1;
        }
    }
    let mut permuted = PERMUTATION.map(|place| made[usize::from(place) - 1]);
    permuted.iter_mut().zip(left).for_each(|(bit, left)| *bit ^= left);
    permuted
}

#[cfg(test)]
mod tests {
    use super::hash_password;

    #[test]
    fn passwords_are_hashed_as_the_c_library_does() {
        for (user, password, meant) in [
            ("root", "secret", "roO14RlBGPIzs"),
            ("fred", "password123", "frmw3hal/BVcU"),
            ("ab", "password", "abJnggxhB/yWI"),
            ("ab", "password123", "abJnggxhB/yWI"),
            ("abcdefghijklmn", "password123", "abJnggxhB/yWIhwLr7yzFcqQ"),
            ("abcdefghijklmnop", "pass", "abccBcrPOxnLU"),
            ("ab", "pé", "abkLgKYMGppl."),
            ("ab", "", "abmF1QH4PEr.E"),
            ("./", "p", "./Vt8pVhaLKv."),
            ("zZ9", "p", "zZGeZInbGi3ho"),
        ] {
            assert_eq!(hash_password(user, password).as_deref(), Some(meant), "{user} {password}");
        }
        for user in ["", "a", "-x", "_abcdefghi", "ab:x", "ab c", "$1$ab", "é"] {
            assert_eq!(hash_password(user, "p"), None, "{user}");
        }
    }
}
