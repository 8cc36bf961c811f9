// Draws the charts of report/charts.py with uPlot: in the status page and in the report.
"use strict";

const CanaryCharts = (() => {
  const COLOURS = ["as_configured", "aiv", "ai_cpu", "healthy", "mitigated", "degraded", "unknown", "muted"];
  const drawn = new Map(); // element -> the plot in it and what it shows

  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (name) => variable("--" + (COLOURS.includes(name) ? name : "muted"));

  function number(value, unit) {
    if (value === null || value === undefined) return "";
    const digits = value === 0 || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 1 ? 2 : 4;
    return value.toLocaleString("en", { maximumFractionDigits: digits }) + (unit ? " " + unit : "");
  }

  const moment = (seconds, form) => uPlot.fmtDate(form)(uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC"));

  function abscissa(x, chart) {
    if (x === null || x === undefined) return "";
    return chart.x === "time" ? moment(x, "{YYYY}-{MM}-{DD} {HH}:{mm} UTC") : x;
  }

  function series(line, chart) {
    const stroke = line.drawn === "fit" ? variable("--text") : colour(line.colour);
    const points = line.drawn === "points" || line.drawn === "dots";
    const size = { points: 8, dots: 4 }[line.drawn] ?? 6;
    return {
      label: line.label,
      class: line.drawn === "band" || line.drawn === "course" ? "unnamed" : undefined,
      stroke: line.drawn === "band" ? "transparent" : stroke,
      width: points ? 0 : line.drawn === "line" ? 2 : line.drawn === "fit" ? 1.5 : 1,
      // Arms often lie on each other, and not every eye tells their colours.
      dash: line.drawn === "fit" ? [4, 4] : line.drawn === "line" && line.colour !== "as_configured" ? [7, 5] : undefined,
      paths: points ? () => null : undefined,
      spanGaps: true,
      points: { show: points || (chart.x !== "time" && line.drawn === "line"), size, fill: stroke, stroke: stroke },
      value: (_plot, value) => number(value, chart.unit),
    };
  }

  function bands(lines) {
    const found = [];
    for (let index = 0; index + 1 < lines.length; index++) {
      if (lines[index].drawn === "band" && lines[index + 1].drawn === "band") {
        found.push({ series: [index + 1, index + 2], fill: variable("--band") });
        index++;
      }
    }
    return found;
  }

  // Moments as vertical lines; their words are for the pointer and for the list under the chart.
  function drawMarks(plot, marks) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    let row = 0;
    for (const mark of marks) {
      const x = Math.round(plot.valToPos(mark.x, "x", true));
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      const stack = mark.kind === "stack";
      ctx.strokeStyle = ctx.fillStyle = variable(stack ? "--mark" : "--line");
      ctx.lineWidth = (stack ? 2 : 1) * devicePixelRatio;
      ctx.setLineDash(stack ? [] : [4 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      if (stack) {
        const right = x > bbox.left + bbox.width * 0.6;
        ctx.textAlign = right ? "right" : "left";
        ctx.fillText(mark.label.slice(0, 60), x + (right ? -5 : 5) * devicePixelRatio, bbox.top + (12 + 14 * (row++ % 3)) * devicePixelRatio);
      }
    }
    ctx.restore();
  }

  function options(element, chart) {
    const axis = { stroke: variable("--muted"), grid: { stroke: variable("--grid"), width: 1 }, ticks: { show: false } };
    const label = chart.x === "time" ? {} : { label: chart.x, labelSize: 20, labelGap: 0, size: 34 };
    const rows = Math.min(chart.marks.filter((mark) => mark.kind === "stack").length, 3); // room for their words
    const alone = new Set(chart.lines.flatMap((line) => line.points.map((point) => point[0]))).size === 1;
    const around = (low, high) => {
      const margin = chart.x === "time" ? Math.max((high - low) * 0.02, 1800) : 0.5;
      return [low - margin, high + margin];
    };
    const days = {
      values: (_plot, ticks, _axis, _space, step) => ticks.map((tick) => moment(tick, step < 86400 ? "{HH}:{mm}" : "{D} {MMM}")),
    };
    const whole = { incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000] };
    return {
      width: Math.max(element.clientWidth, 240),
      height: Number(element.dataset.height) || 240,
      scales: {
        x: { time: chart.x === "time", range: (_plot, low, high) => around(low, alone ? low : high) },
        y: { range: (_plot, low, high) => [Math.min(0, low ?? 0), (high || 1) * (1.08 + 0.1 * rows)] },
      },
      axes: [
        { ...axis, ...(chart.x === "time" ? days : whole), ...label },
        { ...axis, size: 64, values: (_plot, ticks) => ticks.map((tick) => number(tick, chart.unit)) },
      ],
      series: [{ label: chart.x, value: (_plot, x) => abscissa(x, chart) }, ...chart.lines.map((line) => series(line, chart))],
      bands: bands(chart.lines),
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1e3), "Etc/UTC"),
      legend: { markers: { width: 0, fill: (plot, index) => (index ? plot.series[index].stroke(plot, index) : null) } },
      hooks: { draw: [(plot) => drawMarks(plot, chart.marks)] },
    };
  }

  function draw(element, chart) {
    drawn.get(element)?.plot?.destroy();
    element.replaceChildren();
    const known = chart.lines.some((line) => line.points.some((point) => point[1] !== null));
    if (!known) {
      element.textContent = "nothing measured";
      drawn.set(element, { chart });
      return;
    }
    const tables = chart.lines.map((line) => [line.points.map((point) => point[0]), line.points.map((point) => point[1])]);
    const plot = new uPlot(options(element, chart), uPlot.join(tables), element);
    drawn.set(element, { chart, plot });
  }

  const again = () => drawn.forEach(({ chart }, element) => draw(element, chart));
  const fit = () =>
    drawn.forEach(({ plot }, element) => {
      if (plot && element.clientWidth) plot.setSize({ width: element.clientWidth, height: plot.height });
    });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  addEventListener("resize", fit);
  document.addEventListener("toggle", fit, true);

  // Charts that came with the page: <div data-chart="N">, the N-th of <script id="charts">.
  function drawAll() {
    for (const [element, { plot }] of drawn) {
      if (element.isConnected) continue;
      plot?.destroy();
      drawn.delete(element);
    }
    const charts = JSON.parse(document.getElementById("charts").textContent);
    for (const element of document.querySelectorAll("[data-chart]")) draw(element, charts[Number(element.dataset.chart)]);
  }

  return { draw, drawAll };
})();
