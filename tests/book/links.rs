//! Every page is in the book, and every link leads to an existing page and heading.

use std::path::Path;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::{book, pages, read, repository};

#[test]
fn the_summary_lists_every_page_once() {
    let (book, pages) = (book(), pages());
    let mut listed = links(&read(&book.join("SUMMARY.md")));
    listed.sort();
    let mut names: Vec<&str> =
        pages.iter().map(|page| page.strip_prefix(&book).unwrap().to_str().unwrap()).collect();
    names.sort();
    assert_eq!(listed, names);
}

#[test]
fn links_lead_to_pages_and_headings() {
    let beside = ["README.md", "configs/README.md", "docs/SUMMARY.md"].map(|name| repository().join(name));
    for page in pages().into_iter().chain(beside) {
        for link in links(&read(&page)).iter().filter(|link| !link.contains("://")) {
            if let Err(reason) = follow(&page, link) {
                panic!("{}: the link {link} leads nowhere: {reason}", page.display());
            }
        }
    }
}

/// Pages of the book link only to each other: a file beside the book would be missing in the output of mdBook.
#[test]
fn links_of_the_book_stay_in_the_book() {
    let book = book();
    for page in pages() {
        for link in links(&read(&page)).iter().filter(|link| !link.contains("://")) {
            let path = link.split('#').next().unwrap();
            let target = page.parent().unwrap().join(path).canonicalize();
            let is_in_book = target.is_ok_and(|target| target.starts_with(&book));
            assert!(is_in_book, "{}: {link} is not in the book", page.display());
        }
    }
}

fn follow(page: &Path, link: &str) -> Result<(), String> {
    let (path, heading) = link.split_once('#').map_or((link, None), |(path, heading)| (path, Some(heading)));
    let target = if path.is_empty() { page.to_owned() } else { page.parent().unwrap().join(path) };
    if !target.exists() {
        return Err(format!("{} is not there", target.display()));
    }
    match heading {
        Some(heading) if !anchors(&read(&target)).iter().any(|anchor| anchor == heading) => {
            Err(format!("{} has no heading of that name", target.display()))
        }
        _ => Ok(()),
    }
}

fn links(text: &str) -> Vec<String> {
    let links = Parser::new_ext(text, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url.to_string()),
        _ => None,
    });
    links.collect()
}

/// Returns the anchors that mdBook and forges generate for the headings of a page: lower case, `-` for a space, and no punctuation.
fn anchors(text: &str) -> Vec<String> {
    let (mut anchors, mut heading) = (Vec::new(), None::<String>);
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), _) => heading = Some(String::new()),
            (Event::Text(part) | Event::Code(part), Some(heading)) => heading.push_str(&part),
            (Event::End(TagEnd::Heading(_)), Some(text)) => {
                anchors.push(anchor(text));
                heading = None;
            }
            _ => {}
        }
    }
    anchors
}

fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
    kept.map(|letter| if letter == ' ' { '-' } else { letter.to_ascii_lowercase() }).collect()
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let page = repository().join("docs/model.md");
    assert_eq!(follow(&page, "report.md#digest"), Ok(()));
    assert!(follow(&page, "report.md#digests").is_err());
    assert!(follow(&page, "reports.md").is_err());
    assert_eq!(anchor("`[trace]`: 2 keys, no-more"), "trace-2-keys-no-more");
}
