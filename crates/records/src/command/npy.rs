//! Arrays as NumPy files: the format's version 1.0, of as many dimensions as an image has.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use crate::protocol::{Array, Item, Scalar};
use anyhow::Context as _;

use super::show;

/// Writes an array to a file, replacing what is there.
pub(crate) fn write(path: &Path, name: &str, item: &Item) -> anyhow::Result<()> {
    let no_array = || format!("{name} holds no array of numbers, which is what NumPy could read");
    let array = show::array(item).with_context(no_array)?;
    let shape = show::shape(item, array);
    let shown = || format!("cannot write {}", path.display());
    let mut file = BufWriter::new(File::create(path).with_context(shown)?);
    file.write_all(&head(array, &shape)).with_context(shown)?;
    file.write_all(array.bytes()).with_context(shown)?;
    file.flush().with_context(shown)
}

fn head(array: &Array, shape: &[usize]) -> Vec<u8> {
    let code = match array.scalar() {
        Scalar::Boolean => "|b1",
        Scalar::Byte => "|i1",
        Scalar::UByte => "|u1",
        Scalar::Short => "<i2",
        Scalar::UShort => "<u2",
        Scalar::Int => "<i4",
        Scalar::UInt => "<u4",
        Scalar::Long => "<i8",
        Scalar::ULong => "<u8",
        Scalar::Float => "<f4",
        // Strings are no array of this kind.
        Scalar::Double | Scalar::String => "<f8",
    };
    let shape: String = shape.iter().map(|size| format!("{size},")).collect();
    let mut text = format!("{{'descr': '{code}', 'fortran_order': False, 'shape': ({shape}), }}");
    // Ten bytes come before the text, and a line's end after it: 64 divides them all together.
    let padding = 63 - (text.len() + 10) % 64;
    text.push_str(&" ".repeat(padding));
    text.push('\n');
    let size = u16::try_from(text.len()).unwrap_or(u16::MAX).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &size[..], text.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::head;
    use crate::protocol::{Array, Scalar};

    #[test]
    fn the_head_fills_whole_blocks_of_64_bytes() {
        for count in [0, 1, 1000, 1_000_000] {
            let head = head(&Array::new(Scalar::Long, vec![0; count * 8].into()), &[count]);
            assert_eq!((head.len() % 64, head.last()), (0, Some(&b'\n')));
            let text = String::from_utf8_lossy(&head[10..]).into_owned();
            assert!(
                text.contains(&format!(
                    "'descr': '<i8', 'fortran_order': False, 'shape': ({count},)"
                ))
            );
        }
    }
}
