//! Drawing of charts as SVG and PNG. Text has the same size at any width of a drawing.

mod bars;
mod colour;
mod columns;
mod graph;
mod histogram;
mod image;
mod legend;
mod lines;
mod map;
mod strips;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;
use resvg::usvg::fontdb::Database;
use resvg::{tiny_skia, usvg};

pub use bars::{Bar, Bars};
pub use colour::{COLOURS, RUNS, Scale};
pub use columns::Columns;
pub use graph::{Edge, GraphDrawing, Node};
pub use histogram::Bins;
pub use lines::{Line, LineKind, Lines};
pub use map::{Map, Maps};
pub use plotters::style::RGBColor;
pub use strips::Strips;

use colour::{GRID, INK, SOFT_INK};
use image::Image;
use legend::Legend;

/// Width of drawings that are written as files \[px\].
pub const WIDE: u32 = 920;
/// Size of most text; letters are 12 px high in a browser (plotters divides by 1.24).
const TEXT_SIZE: u32 = 15;
/// Approximate width of a letter of this size \[px\].
const LETTER_WIDTH: f64 = 7.2;
/// Number of PNG pixels per pixel of a drawing, in each direction.
const DENSITY: f32 = 2.0;

/// The result of drawing with plotters.
type DrawingResult = Result<(), Box<dyn std::error::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The reason why a drawing cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("a drawing of {width} x {height} px: {message}")]
pub struct DrawingError {
    width: u32,
    height: u32,
    message: String,
}

/// A chart that has been drawn, with a transparent background.
#[derive(Clone, Debug)]
pub struct Svg {
    width: u32,
    height: u32,
    text: String,
}

/// An image on a drawing, with its upper left corner and its size \[px\].
struct PlacedImage {
    image: Image,
    corner: (i32, i32),
    size: (u32, u32),
}

/// A figure that can be drawn at any width.
pub struct Figure {
    /// File name of the figure, without extension.
    pub(crate) name: Cow<'static, str>,
    /// Title.
    pub(crate) title: String,
    /// Draws the figure at a width \[px\].
    pub(crate) draw: Drawer,
}

type Drawer = Box<dyn Fn(u32) -> Result<Svg, DrawingError>>;

impl Figure {
    /// Creates a figure. `name` is its file name without an extension; `draw` gets a width \[px\].
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        title: impl Into<String>,
        draw: impl Fn(u32) -> Result<Svg, DrawingError> + 'static,
    ) -> Self {
        Self { name: name.into(), title: title.into(), draw: Box::new(draw) }
    }
}

type Mesh<'a, 'b, 's, X, Y> = MeshStyle<'a, 'b, X, Y, SVGBackend<'s>>;

/// Sets the line and text styles that all charts share.
fn style_axes<'m, 'a, 'b, 's, X, Y>(mesh: &'m mut Mesh<'a, 'b, 's, X, Y>) -> &'m mut Mesh<'a, 'b, 's, X, Y>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    mesh.light_line_style(TRANSPARENT)
        .bold_line_style(GRID)
        .axis_style(GRID)
        .label_style(("sans-serif", TEXT_SIZE - 1).into_font().color(&SOFT_INK))
        .axis_desc_style(("sans-serif", TEXT_SIZE).into_font().color(&INK))
}

/// Draws on an area of this size; images are placed on top.
fn draw_svg(
    (width, height): (u32, u32),
    draw: impl FnOnce(&Area<'_>, &mut Vec<PlacedImage>) -> DrawingResult,
) -> Result<Svg, DrawingError> {
    let mut text = String::new();
    let mut images = Vec::new();
    let area = SVGBackend::with_string(&mut text, (width, height)).into_drawing_area();
    let result = draw(&area, &mut images).and_then(|()| area.present().map_err(Into::into));
    drop(area);
    result.map_err(|error| DrawingError { width, height, message: error.to_string() })?;
    let mut text = remove_empty(&text);
    for image in &images {
        image.write(&mut text);
    }
    text.push_str("</svg>");
    Ok(Svg { width, height, text })
}

/// Removes rectangles with a width or height that rounds to zero, and the end tag.
fn remove_empty(text: &str) -> String {
    let is_empty = |line: &str| line.contains(" width=\"0\"") || line.contains(" height=\"0\"");
    let lines =
        text.lines().filter(|line| !(line.starts_with("<rect") && is_empty(line)) && *line != "</svg>");
    lines.flat_map(|line| [line, "\n"]).collect()
}

impl PlacedImage {
    fn write(&self, text: &mut String) {
        let Self { image, corner: (x, y), size: (width, height) } = self;
        let _ = write!(
            text,
            "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" preserveAspectRatio=\"none\" \
             style=\"image-rendering:pixelated\" href=\"{}\"/>",
            image.data_uri()
        );
    }
}

impl Svg {
    /// Returns the text, with a transparent background.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text of an SVG file with a title, which viewers show and read out, and a white background.
    pub fn file(&self, title: &str) -> String {
        let head = self.text.find('>').map_or(0, |end| end + 1);
        let (head, body) = self.text.split_at(head);
        let title = maud::html! { title { (title) } }.into_string();
        format!("{head}\n{title}<rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>{body}\n")
    }

    /// Returns a PNG with twice as many pixels in each direction. The font is DejaVu Sans, which is part of the program.
    ///
    /// # Errors
    /// Returns an error if the drawing is too large for a PNG.
    pub fn png(&self) -> Result<Vec<u8>, DrawingError> {
        let failed = |message: String| DrawingError { width: self.width, height: self.height, message };
        let mut fonts = Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        fonts.set_sans_serif_family("DejaVu Sans");
        let options = usvg::Options { fontdb: Arc::new(fonts), ..usvg::Options::default() };
        let tree =
            usvg::Tree::from_str(&self.file(""), &options).map_err(|error| failed(error.to_string()))?;
        let size = |pixels: u32| (pixels as f32 * DENSITY) as u32;
        let mut pixels = tiny_skia::Pixmap::new(size(self.width), size(self.height))
            .ok_or_else(|| failed("it is too large for a PNG".to_owned()))?;
        let scale = tiny_skia::Transform::from_scale(DENSITY, DENSITY);
        resvg::render(&tree, scale, &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| failed(error.to_string()))
    }
}

/// Returns the approximate width of a text \[px\].
fn text_width(text: &str) -> u32 {
    (text.chars().count() as f64 * LETTER_WIDTH) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_png_has_text_without_any_font_of_the_system() {
        let drawing = draw_svg((60, 20), |area, _| {
            let style = ("sans-serif", TEXT_SIZE).into_font().color(&BLACK);
            Ok(area.draw(&Text::new("rank 7", (2, 2), style))?)
        });
        let png = drawing.unwrap().png().unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (120, 40));
        let dark = pixels.chunks(4).filter(|pixel| pixel[0] < 100).count();
        assert!(dark > 100 && dark < 1500, "{dark} dark pixels");
    }

    #[test]
    fn empty_rectangles_are_removed() {
        let drawing = draw_svg((40, 40), |area, _| {
            for right in [20, 30] {
                area.draw(&Rectangle::new([(20, 0), (right, 10)], BLACK.filled()))?;
            }
            Ok(())
        });
        let text = drawing.unwrap().file("empty & full");
        assert_eq!((text.matches("<rect").count(), text.matches("</svg>").count()), (2, 1), "{text}");
        assert!(text.contains("<title>empty &amp; full</title>"), "{text}");
    }

    #[test]
    fn images_are_part_of_a_drawing() {
        let drawing = draw_svg((40, 40), |_, images| {
            let image = Image::new(1, vec![Some(1.0)], &Scale::Sequential);
            images.push(PlacedImage { image, corner: (0, 0), size: (40, 40) });
            Ok(())
        });
        let png = drawing.unwrap().png().unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        // The bright end of the scale.
        assert!(
            pixels[..3]
                .iter()
                .zip([253, 231, 36])
                .all(|(&found, end): (&u8, i32)| (i32::from(found) - end).abs() < 4),
            "{:?}",
            &pixels[..4]
        );
    }
}
