//! Self-contained HTML pages, which need no network and no other file.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::drawing::{DrawingError, Figure, NARROW, WIDE};

const STYLE: &str = include_str!("page/style.css");

/// A section of a page.
pub struct Section {
    /// Identifier, used in links.
    pub id: &'static str,
    /// Heading.
    pub title: String,
    /// Content before the figures.
    pub lead: Markup,
    /// Figures.
    pub figures: Vec<Figure>,
    /// Content after the figures.
    pub rest: Markup,
}

/// An HTML page.
pub struct Page<'a> {
    /// Title.
    pub title: &'a str,
    /// Content below the title.
    pub lead: Markup,
    /// Sections.
    pub sections: &'a [Section],
    /// Text at the end, such as the program that wrote the page; may be empty.
    pub footer: &'a str,
}

impl Section {
    /// Creates an empty section.
    pub fn new(id: &'static str, title: impl Into<String>) -> Self {
        Self { id, title: title.into(), lead: html! {}, figures: Vec::new(), rest: html! {} }
    }

    fn markup(&self) -> Result<Markup, DrawingError> {
        let figures = self.figures.iter().map(figure).collect::<Result<Vec<_>, _>>()?;
        Ok(html! {
            section id=(self.id) {
                h2 { (self.title) }
                (self.lead)
                @for figure in &figures { (figure) }
                (self.rest)
            }
        })
    }
}

/// Returns the document of any page: `more_style` follows the style of all pages.
pub(crate) fn document(title: &str, more_style: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) (PreEscaped(more_style)) }
            }
            body { (body) }
        }
    };
    page.into_string()
}

/// Renders a figure twice: for wide and for narrow screens.
fn figure(figure: &Figure) -> Result<Markup, DrawingError> {
    let [wide, narrow] = [WIDE, NARROW].map(|width| (figure.draw)(width));
    let (wide, narrow) = (wide?, narrow?);
    Ok(html! {
        figure id=(figure.name) {
            figcaption { (figure.title) }
            div.wide role="img" aria-label=(figure.title) { (PreEscaped(wide.text())) }
            div.narrow role="img" aria-label=(figure.title) { (PreEscaped(narrow.text())) }
        }
    })
}

impl Page<'_> {
    /// Returns the text of the page.
    ///
    /// # Errors
    /// Returns an error if a figure cannot be drawn.
    pub fn text(&self) -> Result<String, DrawingError> {
        let sections = self.sections.iter().map(Section::markup).collect::<Result<Vec<_>, _>>()?;
        let body = html! {
            header { h1 { (self.title) } (self.lead) }
            @if self.sections.len() > 3 {
                nav { @for section in self.sections { a href={ "#" (section.id) } { (section.title) } " " } }
            }
            main { @for section in &sections { (section) } }
            @if !self.footer.is_empty() { footer { p.note { (self.footer) } } }
        };
        Ok(document(self.title, "", &body))
    }
}

/// Renders a table. The first `names` columns contain names, the others numbers.
pub fn table(head: &[&str], names: usize, rows: &[Vec<String>]) -> Markup {
    html! {
        div.scroll {
            table {
                thead { tr { @for (place, name) in head.iter().enumerate() { th.number[place >= names] { (name) } } } }
                tbody {
                    @for row in rows {
                        tr { @for (place, cell) in row.iter().enumerate() { td.number[place >= names] { (cell) } } }
                    }
                }
            }
        }
    }
}
