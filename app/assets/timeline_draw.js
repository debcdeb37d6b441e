/* Draws the timeline on a canvas: rows of lanes, rectangles, shading of exposed and hidden communication, steps, ruler. */
(function () {
  "use strict";
  const c3 = (window.c3prof = window.c3prof || {});
  const RULER = 30;
  const HEIGHTS = { rank: 26, section: 20, steps: 20, communication: 14, launches: 14, stream: 26, other: 18 };

  function kind(lane) {
    if (lane.label === "steps" || lane.label === "communication" || lane.label === "launches") return lane.label;
    return lane.label.startsWith("stream") || lane.section.startsWith("CPU") ? "stream" : "other";
  }

  /* Rows from top to bottom: a header per rank and section, then its lanes. */
  function rows(lanes, room) {
    const plain = stacked(lanes, 1), grown = room ? Math.min(Math.max(room / Math.max(plain.height, 1), 1), 1.8) : 1;
    return grown > 1.05 ? stacked(lanes, grown) : plain;
  }

  function stacked(lanes, grown) {
    const found = [];
    let y = 0, rank = null, section = null;
    const add = (row, height) => { found.push({ ...row, y, height }); y += height; };
    for (const lane of lanes) {
      if (lane.rank !== rank) { add({ title: lane.rank < 0 ? "rank unknown" : "rank " + lane.rank, type: "rank" }, HEIGHTS.rank); section = ""; }
      if (lane.section !== section && lane.section) add({ title: lane.section, type: "section" }, HEIGHTS.section);
      rank = lane.rank; section = lane.section;
      add({ lane, type: "lane" }, Math.round(HEIGHTS[kind(lane)] * grown) + 3);
    }
    return { rows: found, height: y };
  }

  function ink(colour) {
    const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16) / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.22 ? "#101418" : "#ffffff";
  }

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const value = (name) => style.getPropertyValue(name).trim();
    return { ink: value("--ink"), muted: value("--muted"), line: value("--line"), panel: value("--panel"), band: value("--band"), accent: value("--accent") };
  }

  /* Exposed communication is hatched, so that colour does not stand alone. */
  function hatch(context, colour) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const pen = tile.getContext("2d");
    pen.fillStyle = colour; pen.fillRect(0, 0, 6, 6);
    pen.strokeStyle = "rgba(255,255,255,.55)"; pen.lineWidth = 1.2;
    pen.beginPath(); pen.moveTo(-1, 7); pen.lineTo(7, -1); pen.stroke();
    return context.createPattern(tile, "repeat");
  }

  function paints(context, classes, colours) {
    return classes.map((name) => {
      const colour = colours[name] || colours.unknown;
      return { name, colour, fill: name === "exposed" ? hatch(context, colour) : colour, ink: ink(colour) };
    });
  }

  function draw(context, scene) {
    const { width, height, state, view, look, layout } = scene;
    context.clearRect(0, 0, width, height);
    const scale = (width - c3.draw.GUTTER) / (state.end - state.begin);
    const at = (ns) => c3.draw.GUTTER + (ns - state.begin) * scale;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.save();
    context.beginPath(); context.rect(0, RULER, width, height - RULER); context.clip();
    context.translate(0, RULER - state.scroll);
    const visible = layout.rows.filter((row) => row.y + row.height > state.scroll && row.y < state.scroll + height - RULER);
    bands(context, scene, visible, width);
    if (view) {
      context.save();
      context.beginPath(); context.rect(c3.draw.GUTTER, state.scroll, width - c3.draw.GUTTER, height); context.clip();
      shading(context, scene, at, scale);
      for (const row of visible) if (row.lane) lane(context, scene, row, at, scale);
      context.restore();
    }
    stepLines(context, scene, at, height);
    if (state.link) arrow(context, scene, at);
    labels(context, scene, visible);
    context.restore();
    ruler(context, scene, at, look);
  }

  function bands(context, { look }, visible, width) {
    for (const row of visible) {
      if (row.type !== "rank") continue;
      context.fillStyle = look.band;
      context.fillRect(0, row.y, width, row.height - 2);
    }
  }

  /* Behind a device's streams: where communication is exposed or hidden. */
  function shading(context, { view, layout, paint }, at, scale) {
    for (let i = 0; i < layout.rows.length; i++) {
      const row = layout.rows[i];
      const range = row.lane && row.lane.label === "communication" && view.lanes.get(row.lane.key);
      if (!range) continue;
      let last = i;
      while (last + 1 < layout.rows.length && layout.rows[last + 1].lane && layout.rows[last + 1].lane.section === row.lane.section) last++;
      const bottom = layout.rows[last].y + layout.rows[last].height;
      for (let k = range[0]; k < range[1]; k++) {
        const wide = (view.stop[k] - view.start[k]) * scale;
        if (wide < 1) continue;
        context.globalAlpha = (paint[view.cls[k]].name === "exposed" ? 0.16 : 0.1) * (view.share[k] / 255);
        context.fillStyle = paint[view.cls[k]].colour;
        context.fillRect(at(view.begin + view.start[k]), row.y + row.height, wide, bottom - row.y - row.height);
      }
    }
    context.globalAlpha = 1;
  }

  function lane(context, { view, paint, state }, row, at, scale) {
    const range = view.lanes.get(row.lane.key);
    if (!range) return;
    const high = row.height - 3, bottom = row.y + high;
    for (let k = range[0]; k < range[1]; k++) {
      const left = at(view.begin + view.start[k]);
      const wide = Math.max((view.stop[k] - view.start[k]) * scale, 1);
      const style = paint[view.cls[k]];
      context.fillStyle = style.fill;
      if (view.row[k] < 0 && view.count[k] > 0 && view.share[k] < 250) {
        const tall = Math.max(2, (high * view.share[k]) / 255);
        context.globalAlpha = 0.28; context.fillRect(left, row.y, wide, high - tall);
        context.globalAlpha = 0.95; context.fillRect(left, bottom - tall, wide, tall);
        context.globalAlpha = 1;
      } else {
        context.fillRect(left, row.y, wide > 3 ? wide - 0.6 : wide, high);
        if (wide > 34 && view.name[k] >= 0 && high > 12) text(context, view.names[view.name[k]], left, wide, row.y + high / 2 + 0.5, style.ink);
      }
    }
    marked(context, state, row, at, scale, high);
  }

  function text(context, name, left, wide, middle, colour) {
    const from = Math.max(left, c3.draw.GUTTER) + 5, room = left + wide - from - 4;
    if (room < 24) return;
    name = name.replace(/^void |\(anonymous namespace\)::|at::native::/g, "");
    const letters = Math.floor(room / 7);
    context.fillStyle = colour;
    context.fillText(name.length > letters ? name.slice(0, Math.max(letters - 1, 1)) + "…" : name, from, middle);
  }

  function marked(context, state, row, at, scale, high) {
    for (const [span, colour, wide] of [[state.hover, "#ffffff", 1.5], [state.selected, "#111111", 3]]) {
      if (!span || span.lane !== row.lane.key) continue;
      const left = at(span.begin), size = Math.max((span.end - span.begin) * scale, 3);
      context.lineWidth = wide; context.strokeStyle = colour; context.strokeRect(left, row.y + 1, size, high - 2);
      if (wide === 3) { context.lineWidth = 1.2; context.strokeStyle = "#ffffff"; context.strokeRect(left, row.y + 1, size, high - 2); }
    }
  }

  function stepLines(context, { state, steps, look, layout, width }, at) {
    context.strokeStyle = look.muted; context.globalAlpha = 0.45; context.setLineDash([3, 4]); context.lineWidth = 1;
    context.beginPath();
    for (const step of steps) {
      const x = Math.round(at(step.begin)) + 0.5;
      if (x > c3.draw.GUTTER && x < width) { context.moveTo(x, 0); context.lineTo(x, Math.max(layout.height, state.scroll + 2000)); }
    }
    context.stroke(); context.setLineDash([]); context.globalAlpha = 1;
  }

  function arrow(context, { state, layout, look }, at) {
    const [from, to] = state.link;
    const row = (key) => layout.rows.find((one) => one.lane && one.lane.key === key);
    const one = row(from.lane), other = row(to.lane);
    if (!one || !other) return;
    const x0 = at(from.end), y0 = one.y + one.height / 2, x1 = at(to.begin), y1 = other.y + other.height / 2;
    context.strokeStyle = look.accent; context.lineWidth = 1.6;
    context.beginPath(); context.moveTo(x0, y0); context.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1); context.stroke();
    context.fillStyle = look.accent; context.beginPath(); context.arc(x1, y1, 3.5, 0, 7); context.fill();
  }

  function labels(context, { look, layout, state, height }, visible) {
    context.save();
    context.beginPath(); context.rect(0, state.scroll, c3.draw.GUTTER - 1, height); context.clip();
    context.fillStyle = look.panel; context.fillRect(0, state.scroll, c3.draw.GUTTER - 1, height);
    for (const row of visible) {
      const middle = row.y + (row.height - 3) / 2 + 0.5;
      context.fillStyle = row.type === "rank" ? look.band : look.panel;
      if (row.type === "rank") context.fillRect(0, row.y, c3.draw.GUTTER - 1, row.height - 2);
      context.font = row.type === "rank" ? "600 13px system-ui, sans-serif" : row.type === "section" ? "600 11px system-ui, sans-serif" : "12px system-ui, sans-serif";
      context.fillStyle = row.type === "section" ? look.muted : look.ink;
      const label = row.lane ? row.lane.label : row.title, most = 25;
      context.fillText(label.length > most ? label.slice(0, most - 1) + "…" : label, row.type === "rank" ? 10 : row.type === "section" ? 16 : 24, middle);
    }
    context.restore();
    context.strokeStyle = look.line; context.lineWidth = 1;
    context.beginPath(); context.moveTo(c3.draw.GUTTER - 0.5, 0); context.lineTo(c3.draw.GUTTER - 0.5, Math.max(layout.height, state.scroll + height)); context.stroke();
    context.font = "12px system-ui, sans-serif";
  }

  function ruler(context, { state, width, look }, at) {
    context.fillStyle = look.panel; context.fillRect(0, 0, width, RULER);
    context.strokeStyle = look.line; context.beginPath(); context.moveTo(0, RULER - 0.5); context.lineTo(width, RULER - 0.5); context.stroke();
    const rough = (state.end - state.begin) / Math.max((width - c3.draw.GUTTER) / 110, 1);
    const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
    const tick = [1, 2, 5, 10].map((f) => f * power).find((t) => t >= rough);
    const [factor, unit] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]].find(([size]) => Math.max(state.end, tick) >= size * (size === 1e9 ? 10 : 1)) || [1, "ns"];
    const digits = Math.min(Math.max(0, Math.ceil(Math.log10(factor / tick) - 1e-9)), 9);
    context.fillStyle = look.muted; context.strokeStyle = look.muted; context.font = "11px system-ui, sans-serif";
    for (let t = Math.ceil(state.begin / tick) * tick; t < state.end; t += tick) {
      const x = at(t);
      context.globalAlpha = 0.6; context.beginPath(); context.moveTo(x + 0.5, RULER - 8); context.lineTo(x + 0.5, RULER); context.stroke();
      context.globalAlpha = 1; context.fillText((t / factor).toFixed(digits) + " " + unit, x + 4, RULER - 14);
    }
    context.fillStyle = look.panel; context.fillRect(0, 0, c3.draw.GUTTER - 1, RULER - 1);
    context.fillStyle = look.ink; context.fillText("shows " + c3.timeText(state.end - state.begin), 10, RULER - 14);
    context.font = "12px system-ui, sans-serif";
  }

  c3.draw = { GUTTER: 188, RULER, rows, draw, theme, paints, ink };
})();
