// Data of the page, and quantities with units.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);

const prefixed = (value, units, digits = 4) => {
  const size = Math.abs(value);
  const [factor, name] = units.find(([least]) => size >= least * 0.9999) || units[units.length - 1];
  // Less than a millionth of the smallest unit is zero, without a sign.
  const rounded = Number(Number((value / factor).toPrecision(digits)).toFixed(6)) || 0;
  return `${rounded.toLocaleString("en", { maximumFractionDigits: 6 })} ${name}`;
};
const TIMES = [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"], [1e-12, "ps"]];
const SIZES = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];
const seconds = (time, digits) => (time === 0 ? "0 s" : prefixed(time, TIMES, digits));
const picos = (time, digits) => seconds(time / 1e12, digits);
const bytes = (size) => (size === 0 ? "0 B" : prefixed(size, SIZES));
const rate = (speed) => `${bytes(speed)}/s`;
const count = (number) => Math.round(number).toLocaleString("en");
const percent = (part, whole = 1) => (whole ? `${((100 * part) / whole).toFixed(1)} %` : "-");
// The change from `a` to `b`: in percent, or as a factor if it is large.
const change = (b, a) => {
  if (a === b) return "same";
  if (!a) return "new";
  if (!b) return "gone";
  const ratio = b / a;
  return ratio >= 2 || ratio <= 0.5 ? `x ${Number(ratio.toPrecision(3))}` : `${ratio > 1 ? "+" : ""}${(100 * (ratio - 1)).toFixed(2)} %`;
};
const sum = (values) => values.reduce((total, value) => total + value, 0);
const spaced = (name) => name.replaceAll("_", " ");
