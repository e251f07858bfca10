// What scrolls sideways can be reached and scrolled with the keyboard, and only while it does
// scroll: a tab stop on every box would be a burden. The theme does so once, before dropdowns are
// opened, and for fewer kinds of boxes.
(function () {
  "use strict";
  const BOXES = [
    "pre",
    "div.math",
    "mjx-container[display]",
    "div.cell_output",
    "div.cell_output > .output",
    "div.highlight",
    ".pst-scrollable-table-container",
    "dl.py > dt",
  ];
  const NATURAL = "a[href], button, input, select, textarea, summary, [tabindex='0']";

  const WHOLE = ".pst-scrollable-table-container, .cell_output, .cell_output > .output";

  /**
   * A stop has to say what it is: the text in it does for code and formulas, not for a whole table
   * or a figure.
   */
  function name(box, scrolls) {
    const number = [...document.querySelectorAll(WHOLE)].indexOf(box) + 1;
    const kind = box.querySelector("table") ? "Table" : box.querySelector(":scope > img") ? "Figure" : "Output";
    const words = `${kind}, number ${number}, larger than its place`;
    for (const [attribute, value] of [
      ["role", "region"],
      ["aria-label", words],
    ]) {
      if (scrolls) box.setAttribute(attribute, value);
      else box.removeAttribute(attribute);
    }
  }

  function scrolls(box) {
    const { overflowX, overflowY } = getComputedStyle(box);
    return (
      (box.scrollWidth > box.clientWidth + 1 && overflowX !== "visible") ||
      (box.scrollHeight > box.clientHeight + 1 && (overflowY === "auto" || overflowY === "scroll"))
    );
  }

  /** Give a box a tab stop if it scrolls and nothing in it can be focused, else take ours away. */
  function mark(box, scrolls) {
    const isWhole = box.matches(WHOLE);
    if (scrolls && (isWhole || !box.querySelector(NATURAL))) box.tabIndex = 0;
    else if (box.getAttribute("tabindex") === "0" && !scrolls) box.removeAttribute("tabindex");
    if (isWhole) name(box, scrolls);
  }

  function start() {
    // Told at the start, at every change of width, and when a closed box opens: then it gets a
    // size. All are measured before any is changed, or the browser would lay out the page anew for
    // each of thousands.
    const observer = new ResizeObserver((entries) => {
      const measured = entries.map(({ target }) => [target, scrolls(target)]);
      for (const [box, isWide] of measured) mark(box, isWide);
    });
    const all = BOXES.map((one) => `.bd-article ${one}`).join();
    const watch = () => document.querySelectorAll(all).forEach((box) => observer.observe(box));
    watch();
    if (window.MathJax && MathJax.startup && MathJax.startup.promise) MathJax.startup.promise.then(watch);
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
