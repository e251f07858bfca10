// The page of claims: show those of one chapter, or of one verdict, and say how many they are.
(() => {
  const form = document.querySelector(".ledger-controls");
  if (!form) return;
  const chapters = [...document.querySelectorAll(".ledger-chapter")];
  const claims = [...document.querySelectorAll(".ledger-claim")];

  function filter() {
    const chapter = form.elements.chapter.value;
    const verdict = form.elements.verdict.value;
    let shown = 0;
    for (const section of chapters) {
      let some = false;
      for (const claim of section.querySelectorAll(".ledger-claim")) {
        const fits =
          (!chapter || section.classList.contains(chapter)) && (!verdict || claim.classList.contains(verdict));
        claim.hidden = !fits;
        if (fits) {
          shown += 1;
          some = true;
        }
      }
      section.hidden = !some;
    }
    form.querySelector("output").textContent = `${shown} of ${claims.length} claims shown`;
  }

  // A link to a claim that is filtered away shows all again.
  window.addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1));
    if (!target?.closest("[hidden]")) return;
    form.reset();
    filter();
    target.scrollIntoView();
  });
  form.addEventListener("change", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  // A browser that comes back to the page has put the reader's choice back before this event.
  window.addEventListener("pageshow", filter);
  form.hidden = false;
})();
