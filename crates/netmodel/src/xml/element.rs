//! Elements of an XML text as a tree, with their lines.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::platform::builder::PlatformBuilder;
use crate::power::{HostPower, LinkPower, watts};
use crate::unit::{Dimension, Quantity};
use crate::{PlatformError, Profile};

/// Maximum nesting of elements.
const DEPTH_LIMIT: usize = 128;

/// An element, its attributes and the elements inside it.
#[derive(Debug)]
pub(super) struct Element {
    pub(super) name: String,
    pub(super) line: u32,
    attributes: Vec<(String, String)>,
    pub(super) children: Vec<Element>,
}

impl Element {
    /// Returns an attribute; an empty one counts as absent, as SimGrid's defaults are empty.
    pub(super) fn optional(&self, name: &str) -> Option<&str> {
        let attribute = self.attributes.iter().find(|(attribute, _)| attribute == name);
        attribute.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns an attribute, which may be empty.
    pub(super) fn required(
        &self,
        builder: &PlatformBuilder,
        attribute: &'static str,
    ) -> Result<&str, PlatformError> {
        let found = self.attributes.iter().find(|(name, _)| name == attribute);
        found.map(|(_, value)| value.as_str()).ok_or_else(|| PlatformError::MissingAttribute {
            at: builder.at(Some(self.line)),
            element: self.name.clone(),
            attribute,
        })
    }

    /// Refuses attributes other than these.
    pub(super) fn check_attributes(
        &self,
        builder: &PlatformBuilder,
        known: &[&str],
    ) -> Result<(), PlatformError> {
        match self.attributes.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some((attribute, _)) => Err(PlatformError::UnknownAttribute {
                at: builder.at(Some(self.line)),
                element: self.name.clone(),
                attribute: attribute.clone(),
            }),
        }
    }

    /// Refuses attributes that SimGrid has and this model does not, if they are not empty.
    pub(super) fn refuse_attributes(
        &self,
        builder: &PlatformBuilder,
        refused: &[&str],
    ) -> Result<(), PlatformError> {
        for attribute in refused {
            if let Some(value) = self.optional(attribute) {
                let feature = format!("{attribute}={value:?} of <{}>", self.name);
                return Err(PlatformError::NotSupported { at: builder.at(Some(self.line)), feature });
            }
        }
        Ok(())
    }

    /// Refuses elements inside this one.
    pub(super) fn expect_no_children(&self, builder: &PlatformBuilder) -> Result<(), PlatformError> {
        self.children.first().map_or(Ok(()), |child| Err(child.misplaced(builder, &self.name)))
    }

    /// Makes the error that SimGrid knows this element and this reader does not.
    pub(super) fn not_supported(&self, builder: &PlatformBuilder) -> PlatformError {
        let feature = format!("the element <{}>", self.name);
        PlatformError::NotSupported { at: builder.at(Some(self.line)), feature }
    }

    /// Makes the error that this element is not allowed in its parent.
    pub(super) fn misplaced(&self, builder: &PlatformBuilder, parent: &str) -> PlatformError {
        let (at, parent) = (builder.at(Some(self.line)), parent.to_owned());
        PlatformError::UnknownElement { at, element: self.name.clone(), parent }
    }

    /// Makes the error about the value of an attribute.
    pub(super) fn value_error(
        &self,
        builder: &PlatformBuilder,
        attribute: &'static str,
        found: &str,
        expected: &'static str,
    ) -> PlatformError {
        builder.value_error(Some(self.line), &format!("<{}>", self.name), attribute, found, expected)
    }

    /// Reads the text of an attribute as a quantity, with a warning if it has no unit.
    pub(super) fn quantity(
        &self,
        builder: &mut PlatformBuilder,
        attribute: &'static str,
        text: &str,
        dimension: Dimension,
    ) -> Result<f64, PlatformError> {
        let refuse = |reason| PlatformError::Quantity {
            at: builder.at(Some(self.line)),
            element: self.name.as_str().into(),
            attribute,
            found: text.into(),
            reason,
        };
        let Quantity { value, has_unit } = dimension.parse(text).map_err(refuse)?;
        if !has_unit {
            let units = dimension.units();
            let warning =
                format!("{attribute}={text:?} of <{}> has no unit: append one ({units})", self.name);
            builder.warn(Some(self.line), &warning);
        }
        Ok(value)
    }

    /// Reads an attribute that is a quantity.
    pub(super) fn required_quantity(
        &self,
        builder: &mut PlatformBuilder,
        attribute: &'static str,
        dimension: Dimension,
    ) -> Result<f64, PlatformError> {
        let text = self.required(builder, attribute)?;
        self.quantity(builder, attribute, text, dimension)
    }

    /// Reads an attribute that is a quantity; zero if it is absent.
    pub(super) fn optional_quantity(
        &self,
        builder: &mut PlatformBuilder,
        attribute: &'static str,
        dimension: Dimension,
    ) -> Result<f64, PlatformError> {
        match self.optional(attribute) {
            Some(text) => self.quantity(builder, attribute, text, dimension),
            None => Ok(0.0),
        }
    }

    /// Returns the value of a property, which was checked before.
    pub(super) fn property(&self, name: &str) -> Option<&str> {
        let is_it = |child: &&Self| child.name == "prop" && child.optional("id") == Some(name);
        self.children.iter().find(is_it)?.optional("value")
    }

    /// Reads the profile in the file that an attribute names, if there is one.
    pub(super) fn profile(
        &self,
        builder: &PlatformBuilder,
        attribute: &'static str,
    ) -> Result<Option<Profile>, PlatformError> {
        let Some(file) = self.optional(attribute) else { return Ok(None) };
        let path = builder.directory().join(file);
        let error = |source| PlatformError::Profile { at: builder.at(Some(self.line)), attribute, source };
        Profile::from_file(&path).map(Some).map_err(error)
    }

    /// Reads the property `memory_bandwidth`, which is ours: SimGrid's hosts have memory of any bandwidth.
    pub(super) fn memory_bandwidth(
        &self,
        builder: &mut PlatformBuilder,
    ) -> Result<Option<f64>, PlatformError> {
        let read = |text| self.quantity(builder, "memory_bandwidth", text, Dimension::Bandwidth);
        self.property("memory_bandwidth").map(read).transpose()
    }

    /// Reads the power of hosts in the processor state in which they are, from SimGrid's properties `wattage_per_state` and `wattage_off`.
    pub(super) fn host_power(&self, builder: &PlatformBuilder) -> Result<Option<HostPower>, PlatformError> {
        let Some(list) = self.property("wattage_per_state") else { return Ok(None) };
        let states = self.optional("speed").map_or(0, |speeds| speeds.split(',').count());
        let power = self.state().and_then(|state| HostPower::of_state(list, (state, states)));
        let expected = "for each of the speeds idle:epsilon:all or idle:all in watts, separated by commas";
        let mut power =
            power.ok_or_else(|| self.value_error(builder, "wattage_per_state", list, expected))?;
        if let Some(text) = self.property("wattage_off") {
            let off = watts(text).filter(|watts| watts.len() == 1);
            power.off = off.ok_or_else(|| self.value_error(builder, "wattage_off", text, "watts"))?[0];
        }
        Ok(Some(power))
    }

    /// Reads the power of a link from SimGrid's property `wattage_range`.
    pub(super) fn link_power(&self, builder: &PlatformBuilder) -> Result<Option<LinkPower>, PlatformError> {
        let Some(range) = self.property("wattage_range") else { return Ok(None) };
        let power = LinkPower::of_range(range);
        power.map(Some).ok_or_else(|| self.value_error(builder, "wattage_range", range, "idle:busy in watts"))
    }

    /// Returns the processor state that `pstate` chooses; the first if it is absent.
    fn state(&self) -> Option<usize> {
        self.optional("pstate").unwrap_or("0").trim_end_matches(".0").parse().ok()
    }

    /// Reads an attribute that is a number of cores; one if it is absent.
    pub(super) fn cores(&self, builder: &PlatformBuilder) -> Result<u32, PlatformError> {
        let Some(text) = self.optional("core") else { return Ok(1) };
        text.parse().map_err(|_| self.value_error(builder, "core", text, "a number of cores"))
    }

    /// Reads the speed of a processor state: the first of the list, or the one that `pstate` chooses.
    pub(super) fn speed(&self, builder: &mut PlatformBuilder) -> Result<f64, PlatformError> {
        let speeds: Vec<&str> = self.required(builder, "speed")?.split(',').collect();
        let state = self.optional("pstate").unwrap_or("0");
        let chosen = self.state().and_then(|state| speeds.get(state));
        let chosen = *chosen.ok_or_else(|| {
            self.value_error(builder, "pstate", state, "the position, from 0, of one of the speeds")
        })?;
        self.quantity(builder, "speed", chosen, Dimension::Speed)
    }
}

/// Reads a text into its root element. Ignores comments, declarations and the document type.
pub(super) fn parse(text: &str, builder: &PlatformBuilder) -> Result<Element, PlatformError> {
    let mut reader = Reader::from_str(text);
    let mut lines = LineCounter { text: text.as_bytes(), offset: 0, line: 1 };
    let mut open: Vec<Element> = Vec::new();
    let mut root = None;
    loop {
        let line = lines.line_at(reader.buffer_position() as usize);
        let malformed = |message: String| PlatformError::Xml { at: builder.at(Some(line)), message };
        let event = reader.read_event().map_err(|error| malformed(error.to_string()))?;
        let closed = match event {
            Event::Start(start) if open.len() < DEPTH_LIMIT && root.is_none() => {
                open.push(element(&start, line).map_err(malformed)?);
                None
            }
            Event::Empty(start) if root.is_none() => Some(element(&start, line).map_err(malformed)?),
            Event::Start(_) | Event::Empty(_) => {
                return Err(malformed("a second root element, or elements nested too deeply".to_owned()));
            }
            Event::End(_) => open.pop(),
            Event::Text(content) if content.iter().all(u8::is_ascii_whitespace) => None,
            // The only element of the format that holds text. Its reader decides on it.
            Event::Text(_) if open.last().is_some_and(|element| element.name == "trace") => None,
            Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => {
                return Err(malformed(match (open.is_empty(), &root) {
                    (true, None) => "text before the first element, expected <?xml or <platform".to_owned(),
                    (true, Some(_)) => "text after the last element".to_owned(),
                    (false, _) => "text between elements".to_owned(),
                }));
            }
            Event::Comment(_) | Event::Decl(_) | Event::DocType(_) | Event::PI(_) => None,
            Event::Eof => {
                return root
                    .filter(|_| open.is_empty())
                    .ok_or_else(|| malformed("the text ends inside an element".to_owned()));
            }
        };
        match (closed, open.last_mut()) {
            (Some(child), Some(parent)) => parent.children.push(child),
            (Some(top), None) => root = Some(top),
            (None, _) => {}
        }
    }
}

fn element(start: &BytesStart, line: u32) -> Result<Element, String> {
    let name = String::from_utf8_lossy(start.name().as_ref()).into_owned();
    let mut attributes = Vec::new();
    for attribute in start.attributes() {
        let attribute = attribute.map_err(|error| error.to_string())?;
        let value = attribute.unescape_value().map_err(|error| error.to_string())?;
        attributes.push((String::from_utf8_lossy(attribute.key.as_ref()).into_owned(), value.into_owned()));
    }
    Ok(Element { name, line, attributes, children: Vec::new() })
}

/// Counts lines up to offsets that only grow.
struct LineCounter<'a> {
    text: &'a [u8],
    offset: usize,
    line: u32,
}

impl LineCounter<'_> {
    fn line_at(&mut self, offset: usize) -> u32 {
        let offset = offset.clamp(self.offset, self.text.len());
        self.line += self.text[self.offset..offset].iter().filter(|byte| **byte == b'\n').count() as u32;
        self.offset = offset;
        self.line
    }
}
