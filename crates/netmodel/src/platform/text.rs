//! Text of a platform file, in the encodings that readers of XML know.

use std::io::{Error, ErrorKind};

/// Decodes the bytes of a file: UTF-8, UTF-16 with a byte order mark, or ISO-8859-1 and US-ASCII where an XML declaration names them.
pub(super) fn decode(bytes: Vec<u8>) -> Result<String, Error> {
    let refuse = |message: String| Err(Error::new(ErrorKind::InvalidData, message));
    let is_binary = "found a binary file, expected XML or TOML";
    if let Some((utf16, read)) = match bytes.get(..2) {
        Some([0xff, 0xfe]) => Some((&bytes[2..], u16::from_le_bytes as fn([u8; 2]) -> u16)),
        Some([0xfe, 0xff]) => Some((&bytes[2..], u16::from_be_bytes as fn([u8; 2]) -> u16)),
        _ => None,
    } {
        let units = utf16.chunks_exact(2).map(|unit| read([unit[0], unit[1]]));
        return match char::decode_utf16(units).collect() {
            Ok(text) if utf16.len().is_multiple_of(2) => Ok(text),
            _ => refuse(is_binary.to_owned()),
        };
    }
    match declared_encoding(&bytes).map(|name| name.to_ascii_uppercase()).as_deref() {
        // A declaration that is read byte by byte is not one in UTF-16, whatever it says.
        None | Some("UTF-8" | "UTF8" | "UTF-16" | "US-ASCII" | "ASCII") => {}
        // Each byte is the number of a character.
        Some("ISO-8859-1" | "ISO8859-1" | "ISO_8859-1" | "LATIN1" | "LATIN-1") => {
            return Ok(bytes.into_iter().map(char::from).collect());
        }
        Some(other) => {
            return refuse(format!(
                "the encoding {other} is not read, expected UTF-8, UTF-16, ISO-8859-1 or US-ASCII: save the file as UTF-8"
            ));
        }
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(error) if error.as_bytes().contains(&0) => refuse(is_binary.to_owned()),
        Err(error) => {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
            let byte = error.as_bytes()[valid.len()];
            refuse(format!(
                "found the byte {byte:#04x} in line {line}, which is not UTF-8: save the file as UTF-8, or let XML name its encoding \
                 (<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>)"
            ))
        }
    }
}

/// Returns the encoding that the XML declaration at the begin of a text names.
fn declared_encoding(bytes: &[u8]) -> Option<&str> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    let end = bytes.windows(2).position(|pair| pair == b"?>")?;
    let declaration = std::str::from_utf8(&bytes[..end]).ok()?.strip_prefix("<?xml")?;
    let value = declaration.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    value[1..].split_once(quote).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_are_those_of_the_declaration() {
        let decoded = |bytes: &[u8]| decode(bytes.to_vec()).map_err(|error| error.to_string());
        for name in ["ISO-8859-1", "iso-8859-1", "latin1"] {
            for quote in ['"', '\''] {
                let declaration = format!("<?xml version='1.0' encoding = {quote}{name}{quote} ?>caf");
                let text = decoded(&[declaration.as_bytes(), b"\xe9"].concat());
                assert_eq!(text, Ok(format!("{declaration}\u{e9}")));
            }
        }
        assert_eq!(decoded("<?xml version='1.0'?>é".as_bytes()), Ok("<?xml version='1.0'?>é".to_owned()));
        for (mark, bytes) in
            [(0xfeff_u16, u16::to_le_bytes as fn(u16) -> [u8; 2]), (0xfeff, u16::to_be_bytes)]
        {
            let units = [mark].into_iter().chain("<é/>".encode_utf16());
            assert_eq!(decoded(&units.flat_map(bytes).collect::<Vec<_>>()), Ok("<é/>".to_owned()));
        }
        for (bytes, message) in [
            (&b"<?xml version='1.0' encoding='EBCDIC'?>"[..], "the encoding EBCDIC is not read"),
            (b"# caf\n# \xe9", "the byte 0xe9 in line 2"),
            (b"\0\xff\0", "a binary file, expected XML or TOML"),
            (b"\xff\xfe\x00\xd8", "a binary file"),
            (b"\xff\xfe<\0>", "a binary file"),
        ] {
            let error = decoded(bytes).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
