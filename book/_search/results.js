// How one result of the search looks: on the page of the search, and below the field that Ctrl+K opens.
"use strict";

const ttutorResult = (() => {
  const NAMES = {
    chapter: "Chapter",
    page: "Page",
    section: "Section",
    term: "Glossary",
    symbol: "Notation",
    function: "Function",
    class: "Class",
    method: "Method",
    attribute: "Attribute",
    module: "Module",
    exercise: "Exercise",
    claim: "Claim",
    work: "Bibliography",
    change: "Changes",
    absent: "Not covered",
  };

  function element(name, className, text) {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text) made.textContent = text;
    return made;
  }

  return ({ record: [kind, page, anchor, title, place, names, text] }, query, root = "") => {
    const [path, pageTitle] = ttutorRecords.pages[page];
    const made = element("li"),
      link = element("a", "book-search-link", title);
    link.href = `${root}${path}.html${anchor ? `#${anchor}` : ""}`;
    const where = element("p", "book-search-where");
    where.append(element("span", "book-search-kind", NAMES[kind] || kind), ` ${place || pageTitle}`);
    made.append(link, where);
    if (text) {
      const context = element("p", "book-search-context");
      for (const [piece, isHit] of ttutorSearch.excerpt(text, query))
        context.append(isHit ? element("mark", "", piece) : piece);
      made.append(context);
    }
    return made;
  };
})();
