// Keeps a page fresh: fetches it again, and redraws only the charts whose numbers changed.
"use strict";

(() => {
  const PERIOD = 10000;
  const numbers = (root) => root.querySelector("#charts").textContent;

  async function refresh() {
    if (document.hidden) return;
    const stale = document.getElementById("stale");
    try {
      const answer = await fetch(location.href, { cache: "no-store" });
      if (!answer.ok) throw new Error(answer.status);
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      const [old, page] = [document.getElementById("page"), fresh.getElementById("page")];
      const same = numbers(old) === numbers(page);
      if (same) {
        for (const plot of page.querySelectorAll("[data-chart]"))
          plot.replaceWith(old.querySelector(`[data-chart="${plot.dataset.chart}"]`));
      }
      old.replaceWith(document.adoptNode(page));
      if (!same) CanaryCharts.drawAll();
      document.title = fresh.title;
      stale.hidden = true;
    } catch {
      stale.hidden = false;
    }
  }

  CanaryCharts.drawAll();
  setInterval(refresh, PERIOD);
  document.addEventListener("visibilitychange", refresh);
})();
