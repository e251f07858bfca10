// What scrolls sideways can be reached and scrolled with the keyboard, and only while it does scroll: a tab stop on every
// box would be a burden. The theme does so once, before dropdowns are opened, and for fewer kinds of boxes.
(function () {
  "use strict";
  const BOXES = [
    "pre", "div.math", "mjx-container[display]", "div.cell_output", "div.cell_output > .output", "div.highlight",
    ".pst-scrollable-table-container", "dl.py > dt",
  ];
  const NATURAL = "a[href], button, input, select, textarea, summary, [tabindex='0']";

  /** Give a box a tab stop if it scrolls and nothing in it can be focused, else take ours away. */
  function mark(box) {
    const scrolls = box.scrollWidth > box.clientWidth + 1 && getComputedStyle(box).overflowX !== "visible";
    if (scrolls && !box.querySelector(NATURAL)) box.tabIndex = 0;
    else if (box.getAttribute("tabindex") === "0" && !scrolls) box.removeAttribute("tabindex");
  }

  function start() {
    // Told at the start, at every change of width, and when a closed box opens: then it gets a size.
    const observer = new ResizeObserver((entries) => entries.forEach((entry) => mark(entry.target)));
    const all = BOXES.map((one) => `.bd-article ${one}`).join();
    const watch = () => document.querySelectorAll(all).forEach((box) => observer.observe(box));
    watch();
    if (window.MathJax && MathJax.startup && MathJax.startup.promise) MathJax.startup.promise.then(watch);
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
