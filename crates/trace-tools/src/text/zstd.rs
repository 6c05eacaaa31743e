//! Streams compressed by Zstandard.

use std::io::{self, BufRead, Read};

use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The text of all frames of a stream. Their checksums are compared, where they have any.
pub(super) struct ZstdDecoder<R> {
    source: R,
    frame: FrameDecoder,
}

impl<R: BufRead> ZstdDecoder<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, frame: FrameDecoder::new() }
    }

    /// Begins the next frame; returns whether there is one.
    fn begin_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.frame.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut self.source.by_ref().take(length.into()), &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for ZstdDecoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let frame = &mut self.frame;
            let read = frame.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            if !frame.is_finished() {
                let decoded = frame.decode_blocks(&mut self.source, BlockDecodingStrategy::UptoBlocks(1));
                decoded.map_err(io::Error::other)?;
                continue;
            }
            let stored = frame.get_checksum_from_data();
            if stored.is_some() && stored != frame.get_calculated_checksum() {
                return Err(io::Error::other("the text has another checksum"));
            }
            if !self.begin_frame()? {
                return Ok(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0 compute 12345\n0 finalize\n";
    /// The text, as the command `zstd --check` compresses it.
    const FRAME: &[u8] = b"\x28\xb5\x2f\xfd\x24\x1b\xd9\0\x000 compute 12345\n0 finalize\n\x93\x03\xac\x9d";
    /// A frame that decoders skip.
    const OTHER: &[u8] = b"\x50\x2a\x4d\x18\x03\0\0\0abc";

    fn decompress(stream: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        ZstdDecoder::new(stream).read_to_string(&mut text).map(|_| text)
    }

    #[test]
    fn frames_follow_each_other() {
        assert_eq!(decompress(FRAME).unwrap(), TEXT);
        assert_eq!(decompress(&[FRAME, OTHER, FRAME, OTHER].concat()).unwrap(), TEXT.repeat(2));
    }

    #[test]
    fn damaged_frames_are_refused() {
        for at in [6, 20, FRAME.len() - 1] {
            let mut damaged = FRAME.to_vec();
            damaged[at] ^= 1;
            decompress(&[&damaged, FRAME].concat()).unwrap_err();
        }
        (1..FRAME.len()).for_each(|len| drop(decompress(&FRAME[..len]).unwrap_err()));
        decompress(&[FRAME, b"rest"].concat()).unwrap_err();
    }
}
