// What the page itself can tell: each entry is a list of words, empty when all is well.
() => {
  const words = (e) => (e.textContent || "").trim().replace(/\s+/g, " ").slice(0, 60);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const article = document.querySelector("article") || document.body;
  const prose = article.cloneNode(true);
  prose.querySelectorAll("pre, code, script, style, .math, mjx-container").forEach((e) => e.remove());

  // A description says what there is to see: some words, neither a file's name nor that it is a picture.
  const fileName = /\.(png|svg|jpe?g|gif|webp)$|^[0-9a-f]{16,}$/i;
  const kindOnly = /^(an? |the )?(image|picture|figure|plot|graph|chart|diagram|png|svg|output|untitled)( \d+)?\.?$/i;
  const says = (text) => {
    const trimmed = (text || "").trim();
    return trimmed.length >= 5 && trimmed.includes(" ") && !fileName.test(trimmed) && !kindOnly.test(trimmed);
  };
  const source = (e) => (e.getAttribute("src") || "").slice(0, 80);

  // Drawings in the page and in explorers, but for icons and formulas: named, or part of something named.
  const inExplorers = all("[data-explorer] > div").flatMap((e) => (e.shadowRoot ? all("svg", e.shadowRoot) : []));
  const named = (e) =>
    e.hasAttribute("aria-label") || e.hasAttribute("aria-labelledby") || e.querySelector(":scope > title");
  const drawings = [...all("svg"), ...inExplorers].filter(
    (e) => !e.closest("mjx-container, [aria-hidden=true], button, summary, a"),
  );

  const headings = all("h1, h2, h3, h4, h5, h6", document.querySelector("main") || document).filter(
    (e) => !e.closest(".onlyprint"),
  );
  const level = (e) => Number(e.tagName[1]);
  const ids = all("[id]").map((e) => e.id);
  const seen = new Set();

  // A mark beside the name in one link: a description would have the name read twice.
  const isBesideWords = (e) => e.getAttribute("alt") === "" && e.closest("a")?.textContent.trim();

  return {
    "math not rendered": all(".math", article)
      .filter((e) => !e.querySelector("mjx-container"))
      .map(words),
    "error in a formula": all('[data-mml-node="merror"]', article).map(
      (e) => e.getAttribute("data-mjx-error") || words(e),
    ),
    "formula that is not spoken": all("mjx-container", article)
      .filter((e) => e.querySelector("svg") && !e.querySelector("mjx-assistive-mml math"))
      .map(words),
    "raw formula in the text": prose.textContent.match(/\\[(\[].{0,40}|\$[^$\s][^$]{0,40}\$/g) || [],
    "explorer not mounted": all("[data-explorer]")
      .filter((e) => !e.dataset.ready)
      .map((e) => e.dataset.explorer),
    traceback: all(".cell:not(.tag_raises-exception) .cell_output", article)
      .filter((e) => e.textContent.includes("Traceback (most recent call last)"))
      .map(words),
    "picture without a description": all("img")
      .filter((e) => !says(e.getAttribute("alt")) && !isBesideWords(e))
      .map((e) => `${source(e)} (${e.getAttribute("alt")})`),
    "picture not loaded": all("img")
      .filter((e) => e.complete && !e.naturalWidth)
      .map(source),
    "drawing without a description": drawings
      .filter((e) => !named(e) && !e.closest("[role=img], [role=group], [role=application]"))
      .map((e) => e.outerHTML.slice(0, 120)),
    "not one title":
      headings.filter((e) => level(e) === 1).length === 1 ? [] : [headings.map((e) => e.tagName).join(" ")],
    "heading that skips a level": headings.filter((e, i) => i && level(e) > level(headings[i - 1]) + 1).map(words),
    "no language": document.documentElement.lang ? [] : ["the page does not say its language"],
    "two things with one id": ids.filter((id) => seen.has(id) || !seen.add(id)),
    "order of its own": all("[tabindex]")
      .filter((e) => e.tabIndex > 0)
      .map((e) => e.outerHTML.slice(0, 80)),
  };
};
