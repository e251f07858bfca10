// The column of contents goes along with the reader: the entry of what is read stays in sight.
(function () {
  "use strict";
  const column = document.querySelector(".bd-sidebar-secondary");
  if (!column) return;
  const follow = () => {
    const entry = [...column.querySelectorAll("a.active")].pop();
    if (!entry) return;
    const [place, room] = [entry, column].map((element) => element.getBoundingClientRect());
    if (place.top < room.top || place.bottom > room.bottom)
      column.scrollTop += place.top - room.top - room.height / 3;
  };
  new MutationObserver(follow).observe(column, { subtree: true, attributeFilter: ["class"] });
  follow();
})();
