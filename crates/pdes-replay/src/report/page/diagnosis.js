// The sections of a diagnosis, which come drawn.
"use strict";

function showDiagnosis() {
  for (const text of data.diagnosis || []) {
    document.querySelector("main").insertAdjacentHTML("beforeend", text);
    const { id, firstElementChild: title } = document.querySelector("main").lastElementChild;
    document.querySelector("nav").append(element("a", { href: `#${id}` }, title.textContent), " ");
  }
}
