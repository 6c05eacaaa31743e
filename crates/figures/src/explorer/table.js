// Elements of the page, and tables that sort and filter.
"use strict";

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

// Adds a section to the page, and its link.
function addSection(made) {
  document.querySelector("main").append(made);
  document.querySelector("nav").append(element("a", { href: `#${made.id}` }, (made.querySelector("h2 span") ?? made.querySelector("h2")).textContent), " ");
  return made;
}
// A section with a title, on which a button folds it.
function section(id, title, note) {
  const made = element("section", { id });
  const fold = element("button", { type: "button", class: "fold", title: "fold the section", "aria-expanded": "true", onclick: () => {
    const folded = made.classList.toggle("folded");
    fold.setAttribute("aria-expanded", String(!folded));
    fold.textContent = folded ? "\u25b8" : "\u25be";
  } }, "\u25be");
  made.append(element("h2", {}, fold, element("span", {}, title)));
  if (note) made.append(element("p", { class: "note" }, note));
  return addSection(made);
}

// Large numbers with their names.
function cards(parent, items) {
  parent.append(element("div", { class: "cards" }, ...items.map(([name, value]) => element("div", {}, element("b", {}, value), element("span", {}, name)))));
}

// A labelled choice; calls `changed` with the index of the chosen name.
function choice(label, names, changed, chosen = 0) {
  const options = names.map((name, index) => element("option", { value: index, selected: index === chosen }, name));
  const select = element("select", { onchange: () => changed(Number(select.value)) }, ...options);
  return element("label", { class: "choice" }, `${label} `, select);
}

const button = (text, title, pressed) => element("button", { type: "button", title, onclick: pressed }, text);

// Number of rows that are shown at first, and with each request for more.
const ROWS = 15;
const MORE_ROWS = 200;

// Adds a table. A column has a `name`, a `value` of a row, its `text` (numbers are right-aligned), and perhaps a `title`, and the
// attributes of a cell and the address of its link for a row. The rows are sorted by the column `sorted`, in descending order if it has numbers. `chosen` is called with a row that is clicked.
function table(parent, columns, rows, { sorted = null, descending = true, chosen = null, filters = rows.length > ROWS, all = false } = {}) {
  let order = { column: sorted, descending };
  let shown = all ? rows.length : ROWS;
  let words = "";
  const body = element("tbody");
  const note = element("p", { class: "note" });
  const text = (column, row) => (column.text ? column.text(column.value(row), row) : String(column.value(row) ?? ""));
  const isNumber = (column) => rows.length > 0 && rows.some((row) => typeof column.value(row) === "number");
  const heads = columns.map((column, index) => {
    const sort = () => {
      order = { column: index, descending: order.column === index ? !order.descending : isNumber(column) };
      draw();
    };
    const head = element("button", { type: "button", class: "sort", title: column.title || `sort by ${column.name}`, onclick: sort }, column.name);
    return element("th", { class: isNumber(column) && "number", scope: "col" }, head);
  });
  function draw() {
    let matching = rows.filter((row) => !words || columns.some((column) => text(column, row).toLowerCase().includes(words)));
    if (order.column !== null) {
      const { value } = columns[order.column];
      const sign = order.descending ? -1 : 1;
      const compare = (one, other) => (typeof one === "number" || typeof other === "number" ? (one ?? Infinity) - (other ?? Infinity) || 0 : String(one).localeCompare(String(other), "en", { numeric: true }));
      const keyed = matching.map((row) => [value(row), row]);
      matching = keyed.sort((one, other) => sign * compare(one[0], other[0])).map(([, row]) => row);
    }
    heads.forEach((head, index) => {
      head.setAttribute("aria-sort", index !== order.column ? "none" : order.descending ? "descending" : "ascending");
    });
    body.replaceChildren(...matching.slice(0, shown).map((row) => {
      const cells = columns.map((column) => {
        const address = column.link?.(row);
        const words = text(column, row);
        return element("td", { class: isNumber(column) && "number", ...column.cell?.(row) }, address ? element("a", { href: address }, words) : words);
      });
      const choose = chosen && (() => chosen(row));
      const press = (event) => event.key === "Enter" && choose();
      return choose ? element("tr", { tabindex: 0, class: "chosen", onclick: choose, onkeydown: press }, ...cells) : element("tr", {}, ...cells);
    }));
    const rest = matching.length - Math.min(shown, matching.length);
    note.replaceChildren(...(rest > 0 ? [`${count(rest)} more `, button("show more", "show more rows", () => { shown += MORE_ROWS; draw(); })] : []));
  }
  const filter = element("input", { type: "search", placeholder: "filter", "aria-label": "show rows that contain", oninput: () => { words = filter.value.toLowerCase(); draw(); } });
  parent.append(...(filters ? [filter] : []), element("div", { class: "scroll" }, element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body)), note);
  draw();
  return draw;
}

// When the page was written.
document.querySelector("footer p").append(`, ${new Date(document.lastModified).toLocaleDateString("en", { dateStyle: "long" })}`);
