// What axe-core finds on the page, all that is closed opened before, each fault in words. With `quick` only the first of
// things that are alike is looked at (a page has thousands of coloured words of code, and axe measures each), and no
// explorer: each is audited by itself, by the tests of tests/widgets. `met` holds what was looked at on other pages, and
// comes back longer; tables and drawings are looked at on every page. `colours` asks for contrasts alone, of what an
// audit before has left on the page.
async ({ quick, colours, met = [] }) => {
  // A rule meant for controls with words on them, which people who speak to their computer say. In explorers the cells and
  // parts are none: they show numbers or short words, and their names say in full what those are.
  const SPOKEN = "label-content-name-mismatch";
  for (const closed of document.querySelectorAll("details:not([open])")) closed.open = true;
  for (const button of document.querySelectorAll(".toggle-hidden > .admonition-title .toggle-button")) button.click();
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))); // what is told of it has been

  const ASPECTS = ["role", "style", "aria-label", "tabindex", "type", "lang", "scope"];
  const WHOLE = "table, mjx-container, svg, button, summary, label, a, th, caption, figcaption, h1, h2, h3, h4, h5, h6"; // looked at with all that is in them
  const KEPT = "h1, h2, h3, h4, h5, h6, summary, label, option, th, thead, caption";
  const GROUND =
    ".admonition, .exercise, .solution, .proof, details, table, aside, nav, .cell_input, .cell_output, .sd-card";
  const kind = (e) =>
    [
      e.tagName,
      e.getAttribute("class"),
      ...ASPECTS.map((name) => e.getAttribute(name)),
      ["alt", "href", "title", "for", "aria-hidden"].map((name) => e.hasAttribute(name)),
      !e.textContent.trim(),
    ].join("|");
  // In a drawing axe looks at no place and no shape: of parts that differ in these alone it needs one.
  const PLACE = /^(id|d|x|y|x1|x2|y1|y2|cx|cy|r|rx|ry|width|height|points|transform|href|xlink:href|clip-path)$/;
  function thinDrawing(e, seen) {
    for (const child of [...e.children]) {
      const told = [...child.attributes].filter(({ name }) => !PLACE.test(name)).map(({ name, value }) => `${name}=${value}`);
      const key = [child.tagName, !child.textContent.trim(), ...told.sort()].join("|");
      if (!child.matches("a, text, [role], [tabindex]")) thinDrawing(child, seen); // those are looked at with all in them
      if (seen.has(key) && !child.firstElementChild && !child.matches("title, desc")) child.remove();
      seen.add(key);
    }
  }
  const seen = new Set(met);
  const lasting = new Set(met);
  function thin(e, within) {
    const own = kind(e);
    for (const child of [...e.children]) {
      if (!child.matches(WHOLE)) thin(child, child.matches(GROUND) ? kind(child) : within);
      const formula = child.tagName === "MJX-CONTAINER";
      const key = formula ? `${child.getAttribute("display")}` : `${within}>${own}>${kind(child)}`;
      const bare = !child.firstElementChild || child.matches(WHOLE);
      if (seen.has(key) && bare && !child.matches(KEPT)) child.remove();
      seen.add(key);
      if (!child.matches("table, svg")) lasting.add(key);
    }
  }
  if (quick && !colours) {
    for (const place of document.querySelectorAll("[data-explorer]")) place.remove();
    thin(document.body, "");
    for (const drawing of document.querySelectorAll("svg")) thinDrawing(drawing, new Set());
  }

  const rules = Object.fromEntries(axe.getRules(["experimental"]).map((rule) => [rule.ruleId, { enabled: true }]));
  rules["p-as-heading"] = { enabled: false }; // it takes a bold caption for a heading
  // Cells and terms are missing now, and these rules count them.
  if (quick)
    for (const name of ["td-has-header", "definition-list", "table-fake-caption"]) rules[name] = { enabled: false };
  const chosen = colours ? { runOnly: ["color-contrast"] } : { rules };
  const found = await axe.run(document, { preload: false, resultTypes: ["violations"], ...chosen });
  // Formulas are spoken by their MathML (inspect.js sees that each has one), in which axe does not look for words.
  const spoken = (node) =>
    typeof node.target[0] === "string" &&
    document.querySelector(node.target[0])?.querySelector("mjx-assistive-mml math");
  const say = (node) =>
    node.any
      .concat(node.all, node.none)
      .map((check) => check.message)
      .join("; ");
  const faults = found.violations.flatMap((one) =>
    one.nodes
      .filter((node) => one.id !== "empty-table-header" || !spoken(node))
      .filter(
        (node) => one.id !== SPOKEN || !(Array.isArray(node.target[0]) || /role="(gridcell|option)"/.test(node.html)),
      )
      .map((node) => `${one.id}: ${node.html.replace(/\s+/g, " ").slice(0, 160)} (${say(node).slice(0, 200)})`),
  );
  return { faults, met: [...lasting] };
};
