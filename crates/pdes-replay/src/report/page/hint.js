// Shows the values of map pixels: the position of a pixel's colour in its palette is its value between the ends of the map.
"use strict";
{
  const hint = document.createElement("div");
  hint.id = "hint";
  document.body.append(hint);

  const places = new Map();
  for (const palette of palettes)
    for (let place = 255; place > 0; place--)
      places.set(parseInt(palette.substr(6 * place, 6), 16), (place - 1) / 254);

  const known = new WeakMap();
  // Returns the pixels of an image, once it is decoded.
  async function pixels(image) {
    if (!known.has(image)) {
      known.set(image, (async () => {
        const picture = new Image();
        picture.src = image.getAttribute("href");
        await picture.decode();
        const canvas = document.createElement("canvas");
        canvas.width = picture.naturalWidth;
        canvas.height = picture.naturalHeight;
        const context = canvas.getContext("2d", { willReadFrequently: true });
        context.drawImage(picture, 0, 0);
        return context.getImageData(0, 0, canvas.width, canvas.height);
      })());
    }
    return known.get(image);
  }

  const time = (value) => {
    const size = Math.abs(value);
    const [unit, name] = size >= 1 || size === 0 ? [1, "s"] : size >= 1e-3 ? [1e-3, "ms"] : size >= 1e-6 ? [1e-6, "us"] : [1e-9, "ns"];
    return `${(value / unit).toPrecision(3)} ${name}`;
  };

  function text(image, x, y, value) {
    const data = image.dataset;
    if (data.strips) {
      const bin = Number(data.strips) / Number(data.columns);
      return `${time(x * bin)} to ${time((x + 1) * bin)}: ${(100 * value).toFixed(0)} % used`;
    }
    const first = (y * Number(data.columns) + x) * Number(data.share);
    if (first >= Number(data.things)) return "";
    const last = Math.min(first + Number(data.share), Number(data.things)) - 1;
    const ranks = last > first ? `ranks ${first} to ${last}` : `rank ${first}`;
    const [least, most] = [Number(data.least), Number(data.most)];
    return `${ranks}: ${data.map} about ${time(least + value * (most - least))}`;
  }

  window.showHint = (event, words) => {
    hint.textContent = words;
    hint.style.visibility = words ? "visible" : "hidden";
    hint.style.left = `${Math.min(event.clientX + 14, innerWidth - hint.offsetWidth - 6)}px`;
    hint.style.top = `${Math.max(event.clientY - 34, 4)}px`;
  };

  async function read(event) {
    const image = event.currentTarget;
    const box = image.getBoundingClientRect();
    const found = await pixels(image);
    const x = Math.min(found.width - 1, Math.max(0, Math.floor(((event.clientX - box.left) / box.width) * found.width)));
    const y = Math.min(found.height - 1, Math.max(0, Math.floor(((event.clientY - box.top) / box.height) * found.height)));
    const [red, green, blue, alpha] = found.data.subarray(4 * (y * found.width + x));
    const value = places.get((red << 16) | (green << 8) | blue);
    showHint(event, alpha && value !== undefined ? text(image, x, y, value) : "");
  }

  for (const image of document.querySelectorAll("image[data-columns]")) {
    image.addEventListener("pointermove", read);
    image.addEventListener("pointerleave", (event) => showHint(event, ""));
  }
}
