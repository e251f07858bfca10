// Mounts every explorer of a page that has no kernel. A classic script: <script type="module" src>
// does not load from disk, so the ES modules travel as text and are imported from data: addresses.
(function () {
  "use strict";
  const SHARED = /*SHARED*/ "";
  const MODULES = /*MODULES*/ {};
  const loaded = {};
  const base = document.currentScript?.src || document.baseURI; // what else is needed lies beside it

  /** The part of a Jupyter widget model that explorers use, without a kernel behind it. */
  function makeModel(state) {
    const listeners = {};
    return {
      get: (name) => state[name],
      set(values) {
        const changed = Object.keys(values).filter((name) => !Object.is(state[name], values[name]));
        Object.assign(state, values);
        for (const name of changed) for (const run of [...(listeners[`change:${name}`] || [])]) run();
      },
      on(event, run) {
        (listeners[event] ||= []).push(run);
      },
      off(event, run) {
        listeners[event] = (listeners[event] || []).filter((other) => other !== run);
      },
      save_changes() {},
    };
  }

  /** An explorer's own part: in this script, or, where it is large, in one of its own beside it. */
  async function partOf(name) {
    if (MODULES[name]) return MODULES[name];
    await new Promise((done, fail) => {
      const script = document.createElement("script");
      Object.assign(script, {
        src: new URL(`explorer-${name}.js`, base).href,
        onload: done,
        onerror: fail,
      });
      document.head.append(script);
    });
    return globalThis.ttutorModules[name];
  }

  const imported = (text) => import(`data:text/javascript;charset=utf-8,${encodeURIComponent(text)}`);

  /** What all share is read once, and each explorer's part takes its names from there. */
  function load(name) {
    loaded.shared ||= imported(SHARED);
    return (loaded[name] ||= Promise.all([partOf(name), loaded.shared]).then(([part]) =>
      imported(`const {${Object.keys(globalThis.ttutorShared)}} = globalThis.ttutorShared;${part}`),
    ));
  }

  /** Draw beside the fallback and take the fallback away only when that has worked. */
  async function mount(place) {
    const name = place.dataset.explorer;
    if (!(name in MODULES) || place.dataset.mounting) return;
    place.dataset.mounting = "1";
    const el = document.createElement("div");
    const fallback = [...place.childNodes];
    try {
      const module = (await load(name)).default;
      place.append(el);
      await module.render({
        model: makeModel(JSON.parse(place.dataset.state)),
        el,
        alone: { base },
      });
      for (const node of fallback) node.remove();
      place.dataset.ready = "1";
    } catch (error) {
      el.remove();
      console.error(`explorer ${name} did not start`, error);
    }
  }

  /** How far a place is from what is seen, in pixels. */
  function distance(place) {
    const { top, bottom } = place.getBoundingClientRect();
    return Math.max(top - innerHeight, -bottom, 0);
  }

  /** What is near the screen at once, nearest first; the rest when the page has nothing else to do. */
  async function mountAll() {
    const places = [...document.querySelectorAll("[data-explorer]")].map((place) => [distance(place), place]);
    for (const [far, place] of places.sort((one, other) => one[0] - other[0])) {
      if (far > innerHeight)
        await new Promise((done) => (globalThis.requestIdleCallback || setTimeout)(done, { timeout: 300 }));
      mount(place);
    }
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", mountAll);
  else mountAll();
})();
