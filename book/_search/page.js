// The search page: asks the engine while the reader types, and shows what it finds.
"use strict";

(() => {
  const STEP = 12;
  const input = document.getElementById("book-search-words");
  const list = document.getElementById("book-search-results");
  const status = document.getElementById("book-search-status");
  const more = document.getElementById("book-search-more");
  let results = [],
    query = "",
    timer = 0;

  function say({ guesses, isUnknown }) {
    if (!query) status.textContent = "";
    else if (isUnknown || !results.length)
      status.textContent = `Nothing was found for “${query}”. Try fewer words, or another spelling; or look here:`;
    else {
      const near = guesses.length
        ? ` The book does not have every word of it; these are for words like ${guesses.slice(0, 3).join(", ")}.`
        : "";
      status.textContent = `${results.length} result${results.length === 1 ? "" : "s"} for “${query}”, the best first.${near}`;
    }
  }

  function showMore() {
    const shown = list.children.length;
    list.append(...results.slice(shown, shown + STEP).map((result) => ttutorResult(result, query)));
    more.hidden = list.children.length >= results.length;
    return list.children[shown];
  }

  function search() {
    const asked = input.value.trim();
    if (asked === query && results.length) return; // what is shown keeps its place, and the focus
    query = asked;
    const found = ttutorSearch.find(query);
    results = found.results;
    list.replaceChildren();
    showMore();
    say(found);
    const address = new URL(location.href);
    if (query) address.searchParams.set("q", query);
    else address.searchParams.delete("q");
    history.replaceState(null, "", address);
  }

  // From the field down into the results and back up again.
  function move(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" && document.activeElement !== input) input.focus();
    if (!step) return;
    const stops = [input, ...list.querySelectorAll(".book-search-link")];
    const at = stops.indexOf(document.activeElement);
    const next = stops[at + step];
    if (at < 0 || !next) return;
    event.preventDefault();
    next.focus();
  }

  ttutorSearch.build(ttutorRecords);
  input.value = new URLSearchParams(location.search).get("q") || "";
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, 120);
  });
  input.form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    search();
  });
  more.addEventListener("click", () => showMore().querySelector("a").focus());
  document.getElementById("book-search").addEventListener("keydown", move);
  if (input.value) search();
  input.focus();
})();
