//! Images with one pixel per value, as PNG with a palette.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Scale;

/// An image of values from 0 to 1; values may be missing.
#[derive(Clone, Debug)]
pub(super) struct Image {
    width: u32,
    height: u32,
    /// Palette index of each pixel: 0 for missing values, 1 to 255 for the scale.
    indices: Vec<u8>,
    scale: Scale,
}

impl Image {
    /// Creates an image with rows of this width, of which the last may be shorter; missing values are transparent.
    pub(super) fn new(width: u32, values: Vec<Option<f64>>, scale: &Scale) -> Self {
        let width = width.max(1);
        let height = (values.len() as u32).div_ceil(width).max(1);
        let index =
            |value: Option<f64>| value.map_or(0, |value| 1 + (value.clamp(0.0, 1.0) * 254.0).round() as u8);
        let mut indices: Vec<u8> = values.into_iter().map(index).collect();
        indices.resize((width * height) as usize, 0);
        Self { width, height, indices, scale: *scale }
    }

    /// Returns the image as a data URI.
    pub(super) fn data_uri(&self) -> String {
        format!("data:image/png;base64,{}", STANDARD.encode(self.png()))
    }

    fn png(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width, self.height);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_palette(self.scale.palette());
        encoder.set_trns(vec![0]);
        encoder.set_compression(png::Compression::High);
        let written = encoder.write_header().and_then(|mut writer| writer.write_image_data(&self.indices));
        written.expect("there is a byte for each pixel, and memory takes them");
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_a_pixel_for_each_value() {
        let values = vec![Some(0.0), Some(1.0), None, Some(0.5)];
        let png = Image::new(3, values, &Scale::Sequential).png();
        let mut decoder = png::Decoder::new(std::io::Cursor::new(png));
        decoder.set_transformations(png::Transformations::IDENTITY);
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (3, 2));
        assert_eq!(pixels, [1, 255, 0, 128, 0, 0]);
    }
}
