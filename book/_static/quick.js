// Results while one types into the field that Ctrl+K opens. The records are loaded when it is opened for the first time.
(function () {
  "use strict";
  const MOST = 6;
  const SCRIPTS = ["records.js", "stemmer.js", "vendor/minisearch.js", "engine.js", "results.js"];
  const root = document.documentElement.dataset.content_root || "./";
  let loading;

  const script = (name) =>
    new Promise((done, failed) => {
      const made = document.createElement("script");
      Object.assign(made, { src: `${root}search/${name}`, async: false, onload: done, onerror: failed });
      document.head.append(made);
    });

  const load = () => (loading ??= Promise.all(SCRIPTS.map(script)).then(() => ttutorSearch.build(ttutorRecords)));

  function attach(dialog) {
    const input = dialog.querySelector("input[type=search]");
    const list = document.createElement("ol");
    const status = document.createElement("p");
    list.id = "quick-results";
    status.className = "visually-hidden";
    status.setAttribute("role", "status");
    list.hidden = true;
    dialog.append(list, status);

    const show = async () => {
      await load();
      const query = input.value.trim();
      const { results, isUnknown } = query ? ttutorSearch.find(query) : { results: [] };
      list.replaceChildren(...results.slice(0, MOST).map((result) => ttutorResult(result, query, root)));
      list.hidden = !results.length;
      const found = isUnknown ? "Nothing was found; these may help" : `${results.length} results; Enter shows all`;
      status.textContent = query ? found : "";
    };

    // From the field down into the results and back; a link on this page closes the field.
    const move = (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const stops = [input, ...list.querySelectorAll("a")];
      const next = step && stops[stops.indexOf(document.activeElement) + step];
      if (!next) return;
      event.preventDefault();
      next.focus();
    };

    new MutationObserver(() => dialog.open && load()).observe(dialog, { attributeFilter: ["open"] });
    input.addEventListener("input", show);
    dialog.addEventListener("keydown", move);
    list.addEventListener("click", (event) => event.target.closest("a") && dialog.close());
  }

  const dialog = document.getElementById("pst-search-dialog");
  if (dialog && !document.getElementById("book-search")) attach(dialog);
})();
