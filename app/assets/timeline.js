/* The timeline: state, keys, mouse, address. The server merges what is narrower than a pixel; here it is drawn, moved and asked for again. */
(function () {
  "use strict";
  const c3 = (window.c3prof = window.c3prof || {});
  const MARGIN = 0.5, FIRST_RANKS = 4, LEAST_NS = 20;

  class Timeline {
    constructor(root) {
      this.root = root;
      this.state = { begin: 0, end: 1, scroll: 0, ranks: "", hidden: new Set(), extra: new Set(), selected: null, hover: null, link: null };
      this.view = null; this.busy = false; this.again = false; this.details = new Map();
      this.frame();
      c3.data.lanes().then((structure) => this.begin(structure), (error) => this.say(error.message));
    }

    /* ---- the elements ---- */
    frame() {
      const e = c3.panel.element;
      this.search = e("input", { type: "search", placeholder: "Search a kernel or operator", "aria-label": "Search a kernel or operator", spellcheck: "false" });
      this.hits = e("span", { class: "muted hits", "aria-live": "polite" });
      this.step = e("select", { "aria-label": "Go to a step" });
      this.ranks = e("input", { type: "text", class: "ranks", "aria-label": "Ranks to show, such as 0-3,8", placeholder: "ranks: 0-3,8" });
      this.lanes = e("div", { class: "popover" });
      this.perfetto = e("a", { class: "button", text: "For Perfetto", title: "Download this window, to open it in ui.perfetto.dev", download: "window.json.gz" });
      this.map = e("canvas", { class: "map", "aria-hidden": "true" });
      this.canvas = e("canvas", { class: "main", tabindex: "0", role: "application", "aria-label": "Timeline of ranks, devices and streams. Keys: w and s zoom, a and d move, f fits, comma and period walk along a lane." });
      this.tip = e("div", { class: "tooltip", role: "tooltip", hidden: "" });
      this.side = e("section", { class: "panel", "aria-label": "Details", "aria-live": "polite" });
      this.note = e("div", { class: "muted note", role: "status" });
      const button = (text, title, action) => e("button", { type: "button", text, title, "aria-label": title, onclick: action });
      this.root.replaceChildren(
        e("div", { class: "toolbar" }, this.search, button("‹", "previous hit", () => this.find(true)), button("›", "next hit", () => this.find(false)), this.hits,
          e("label", {}, "Step ", this.step), e("label", {}, "Ranks ", this.ranks), e("details", { class: "lanes" }, e("summary", { text: "Lanes" }), this.lanes),
          button("Fit", "show everything", () => this.fit()), this.perfetto, this.note),
        e("div", { class: "stage" }, e("div", { class: "canvases" }, this.map, this.canvas), this.side), this.tip);
      this.context = this.canvas.getContext("2d");
    }

    begin(structure) {
      Object.assign(this, { structure, colours: structure.colours });
      this.paint = c3.draw.paints(this.context, structure.classes, structure.colours);
      this.all = structure.lanes;
      this.state.end = structure.end;
      const ranks = [...new Set(this.all.map((lane) => lane.rank))];
      if (ranks.length > FIRST_RANKS) this.state.ranks = ranks[0] + "-" + ranks[FIRST_RANKS - 1];
      this.fromAddress();
      this.ranks.value = this.state.ranks;
      this.fillSteps(); this.fillLanes(); this.choose(); this.listen(); this.legend();
      if (!this.all.length) this.say("The trace holds no activity, operator or collective that could be drawn.");
      new ResizeObserver(() => { if (Math.abs(this.canvas.parentElement.getBoundingClientRect().width - this.width) > 1) this.resize(); }).observe(this.canvas.parentElement);
      window.addEventListener("resize", () => { if (this.root.isConnected) this.resize(); });
      if (this.pending) this.open(this.pending[0], this.pending[1], false);
    }

    fillSteps() {
      const first = this.structure.steps.filter((step) => step.rank === (this.structure.steps[0] || {}).rank);
      this.steps = first;
      this.step.replaceChildren(new Option(first.length ? "all" : "none recorded", ""), ...first.map((step, i) => new Option(step.step, i)));
      this.step.onchange = () => { const step = first[this.step.value]; if (step) this.move(step.begin, step.end); else this.fit(); };
    }

    fillLanes() {
      const labels = new Map();
      for (const lane of this.all) if (!labels.has(lane.label)) labels.set(lane.label, lane.shown);
      const e = c3.panel.element;
      this.lanes.replaceChildren(...[...labels].map(([label, shown]) => {
        const box = e("input", { type: "checkbox" });
        box.checked = this.isOn(label, shown);
        box.onchange = () => {
          (box.checked ? this.state.extra : this.state.hidden).add(label); (box.checked ? this.state.hidden : this.state.extra).delete(label);
          this.choose();
        };
        return e("label", {}, box, " " + label);
      }));
    }

    isOn(label, shown) { return !this.state.hidden.has(label) && (shown || this.state.extra.has(label)); }

    choose() {
      const wanted = c3.rankFilter(this.state.ranks);
      this.visible = this.all.filter((lane) => wanted(lane.rank) && this.isOn(lane.label, lane.shown));
      this.resize();
      this.say(this.visible.length || !this.all.length ? "" : "No lane is chosen: give other ranks or lanes.");
      this.scroll(0);
    }

    legend() { c3.panel.legend(this.side, this.structure.classes, this.colours); }
    say(text) { this.note.textContent = text; }

    /* ---- drawing and asking ---- */
    resize() {
      const box = this.canvas.parentElement.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
      const room = Math.max(window.innerHeight - this.canvas.getBoundingClientRect().top - window.scrollY - 14, 260);
      this.layout = c3.draw.rows(this.visible, room - c3.draw.RULER - 12);
      this.width = Math.max(box.width, 320); c3.draw.GUTTER = this.width < 560 ? 112 : 188; this.height = Math.min(room, this.layout.height + c3.draw.RULER + 12);
      this.canvas.width = this.width * ratio; this.canvas.height = this.height * ratio;
      this.canvas.style.height = this.height + "px";
      this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.changed();
      this.drawMap();
    }

    changed() {
      if (!this.layout) return;
      if (!this.queued) { this.queued = true; requestAnimationFrame(() => { this.queued = false; this.paintNow(); }); }
      this.ask();
      clearTimeout(this.saving); this.saving = setTimeout(() => this.toAddress(), 250);
    }

    paintNow() {
      if (!this.root.isConnected) return;
      c3.draw.draw(this.context, { width: this.width, height: this.height, state: this.state, view: this.view, look: c3.draw.theme(), layout: this.layout, paint: this.paint, steps: this.steps });
      this.drawBrush();
    }

    wantedLanes() {
      const top = this.state.scroll - 200, bottom = this.state.scroll + this.height + 200;
      const keys = this.layout.rows.filter((row) => row.lane && row.y + row.height > top && row.y < bottom).map((row) => row.lane.key);
      const selected = this.state.selected && this.state.selected.lane;
      return selected && !keys.includes(selected) && this.visible.some((lane) => lane.key === selected) ? [...keys, selected] : keys;
    }

    enough(lanes) {
      if (!this.view) return false;
      const { begin, end } = this.state, asked = this.view.asked;
      const zoom = (end - begin) / asked.length;
      return zoom > 0.7 && zoom < 1.45 && begin >= Math.min(this.view.begin, begin < 0 ? begin : Infinity) && end <= this.view.end && lanes.every((key) => this.view.lanes.has(key));
    }

    async ask() {
      const lanes = this.wantedLanes();
      if (!lanes.length || this.enough(lanes)) return;
      if (this.busy) { this.again = true; return; }
      this.busy = true;
      const length = this.state.end - this.state.begin, margin = length * MARGIN;
      try {
        const view = await c3.data.view({ lanes, begin: this.state.begin - margin, end: this.state.end + margin, width: Math.ceil((this.width - c3.draw.GUTTER) * (1 + 2 * MARGIN)) });
        view.asked = { length };
        this.view = view;
        this.root.dataset.rectangles = view.row.length;
      } catch (error) { this.say(error.message); }
      this.busy = false;
      if (!this.root.isConnected) return;
      this.paintNow();
      if (this.again) { this.again = false; this.ask(); }
    }

    async drawMap() {
      const ratio = window.devicePixelRatio || 1, width = this.width;
      this.map.width = width * ratio; this.map.height = 34 * ratio;
      const lane = this.all.find((one) => one.label === "communication") || this.all.find((one) => one.label.startsWith("stream")) || this.all[0];
      if (!lane) return;
      try { this.whole = await c3.data.view({ lanes: [lane.key, ...this.all.filter((one) => one.section === lane.section && one.rank === lane.rank && one.label.startsWith("stream")).slice(0, 2).map((one) => one.key)], begin: 0, end: this.structure.end, width: Math.ceil(width) }); } catch { return; }
      this.drawBrush();
    }

    drawBrush() {
      if (!this.whole) return;
      const pen = this.map.getContext("2d"), ratio = window.devicePixelRatio || 1, G = c3.draw.GUTTER, look = c3.draw.theme();
      pen.setTransform(ratio, 0, 0, ratio, 0, 0); pen.clearRect(0, 0, this.width, 34);
      const scale = (this.width - G) / this.structure.end, high = 26 / Math.max(this.whole.lanes.size, 1);
      let i = 0;
      for (const [first, last] of this.whole.lanes.values()) {
        for (let k = first; k < last; k++) {
          pen.globalAlpha = 0.25 + 0.75 * (this.whole.share[k] / 255); pen.fillStyle = this.paint[this.whole.cls[k]].colour;
          pen.fillRect(G + this.whole.start[k] * scale, 4 + i * high, Math.max((this.whole.stop[k] - this.whole.start[k]) * scale, 0.7), high - 1);
        }
        i++;
      }
      pen.globalAlpha = 1;
      const left = G + this.state.begin * scale, right = Math.max(G + this.state.end * scale, left + 3);
      pen.fillStyle = look.panel; pen.globalAlpha = 0.66; pen.fillRect(G, 0, left - G, 34); pen.fillRect(right, 0, this.width - right, 34); pen.globalAlpha = 1;
      pen.strokeStyle = look.accent; pen.lineWidth = 2; pen.strokeRect(Math.max(left, G) + 1, 1, Math.min(right, this.width) - Math.max(left, G) - 2, 32);
      pen.fillStyle = look.muted; pen.font = "12px system-ui, sans-serif"; pen.textBaseline = "middle"; pen.fillText("whole run", 10, 17);
    }

    /* ---- moving ---- */
    move(begin, end) {
      const whole = this.structure.end, length = Math.min(Math.max(end - begin, LEAST_NS), whole * 1.2);
      const middle = Math.min(Math.max((begin + end) / 2, 0), whole);
      this.state.begin = middle - length / 2; this.state.end = middle + length / 2;
      this.changed();
    }

    fit() { this.move(-this.structure.end * 0.01, this.structure.end * 1.01); }
    pan(share) { const d = (this.state.end - this.state.begin) * share; this.move(this.state.begin + d, this.state.end + d); }

    zoom(factor, x) {
      const { begin, end } = this.state, at = begin + (x === undefined ? 0.5 : Math.max(x - c3.draw.GUTTER, 0) / (this.width - c3.draw.GUTTER)) * (end - begin);
      if ((end - begin) * factor > this.structure.end * 1.2) return this.fit();
      if ((end - begin) * factor < LEAST_NS) return undefined;
      this.state.begin = at - (at - begin) * factor; this.state.end = at + (end - at) * factor;
      return this.changed();
    }

    scroll(by) {
      this.state.scroll = Math.min(Math.max(this.state.scroll + by, 0), Math.max(this.layout.height - (this.height || 600) + c3.draw.RULER + 20, 0));
      this.changed();
    }

    zoomTo(span) { const pad = Math.max((span.end - span.begin) * 1.2, 200); this.move(span.begin - pad, span.end + pad); }

    reveal(key) {
      const lane = this.all.find((one) => one.key === key);
      if (!lane) return;
      if (!this.visible.includes(lane)) {
        this.state.extra.add(lane.label); this.state.hidden.delete(lane.label);
        if (!c3.rankFilter(this.state.ranks)(lane.rank)) { this.state.ranks += "," + lane.rank; this.ranks.value = this.state.ranks; }
        this.fillLanes(); this.choose();
      }
      const row = this.layout.rows.find((one) => one.lane && one.lane.key === key);
      if (row && (row.y < this.state.scroll || row.y + row.height > this.state.scroll + this.height - c3.draw.RULER)) { this.state.scroll = 0; this.scroll(row.y - this.height / 3); }
    }

    /* ---- spans ---- */
    under(x, y) {
      if (!this.view || x < c3.draw.GUTTER || y < c3.draw.RULER) return null;
      const inside = y - c3.draw.RULER + this.state.scroll;
      const row = this.layout.rows.find((one) => one.lane && inside >= one.y && inside < one.y + one.height);
      const range = row && this.view.lanes.get(row.lane.key);
      if (!range) return null;
      const scale = (this.width - c3.draw.GUTTER) / (this.state.end - this.state.begin), at = this.state.begin + (x - c3.draw.GUTTER) / scale, slack = 2 / scale;
      let best = null, off = Infinity;
      for (let k = range[1] - 1; k >= range[0]; k--) {
        const begin = this.view.begin + this.view.start[k], end = this.view.begin + this.view.stop[k];
        const distance = at < begin ? begin - at : at > end ? at - end : 0;
        if (distance < off) { off = distance; best = { k, lane: row.lane.key, begin, end, row: this.view.row[k] }; if (!distance) break; }
      }
      return off <= slack ? best : null;
    }

    hover(event) {
      const box = this.canvas.getBoundingClientRect(), span = this.under(event.clientX - box.left, event.clientY - box.top);
      const same = span && this.state.hover && span.lane === this.state.hover.lane && span.begin === this.state.hover.begin;
      this.state.hover = span;
      if (!span) { this.tip.hidden = true; clearTimeout(this.dwell); return this.paintNow(); }
      const content = c3.panel.brief(this.view, span.k, this.paint, span.end - span.begin), id = span.lane + "~" + span.row;
      c3.panel.tooltip(this.tip, content, this.details.get(id), event.clientX, event.clientY);
      if (same) return undefined;
      clearTimeout(this.dwell);
      if (span.row >= 0 && !this.details.has(id)) this.dwell = setTimeout(async () => {
        const more = await c3.data.span(span.lane, span.row).catch(() => null);
        if (!more) return;
        if (this.details.size > 500) this.details.clear();
        this.details.set(id, more);
        if (this.state.hover && this.state.hover.row === span.row && !this.tip.hidden) c3.panel.tooltip(this.tip, content, more, event.clientX, event.clientY);
      }, 120);
      return this.paintNow();
    }

    async open(lane, row, zoom) {
      let found;
      try { found = await c3.data.span(lane, row); } catch (error) { return this.say(error.message); }
      this.state.selected = found;
      this.state.link = found.links.launches ? [found.links.launches, found] : found.links.activities ? [found, found.links.activities] : null;
      this.reveal(lane);
      if (zoom || found.end < this.state.begin || found.begin > this.state.end) this.zoomTo(found);
      c3.panel.details(this.side, found, this.colours, { jump: (span) => this.open(span.lane, span.row, true), zoom: () => this.zoomTo(found), close: () => this.clear() });
      return this.changed();
    }

    clear() { this.state.selected = this.state.link = null; this.legend(); this.changed(); this.canvas.focus(); }

    walk(by) {
      const now = this.state.selected, range = this.view && now && this.view.lanes.get(now.lane);
      if (!range) return;
      const places = [];
      for (let k = range[0]; k < range[1]; k++) if (this.view.row[k] >= 0) places.push(k);
      const next = places[places.findIndex((k) => this.view.row[k] === now.row) + by];
      if (next !== undefined) this.open(now.lane, this.view.row[next], false);
    }

    async find(backwards) {
      const text = this.search.value.trim();
      if (!text) { this.hits.textContent = ""; return; }
      const at = this.state.selected ? this.state.selected.begin : this.state.begin;
      try {
        const found = await c3.data.search({ text, at, backwards, lanes: this.visible.map((lane) => lane.key) });
        this.hits.textContent = found.count ? found.position.toLocaleString("en") + " of " + found.count.toLocaleString("en") : "no hit in these lanes";
        if (found.hit) await this.open(found.hit.lane, found.hit.row, true);
      } catch (error) { this.say(error.message); }
    }

    /* ---- listening ---- */
    listen() {
      this.canvas.addEventListener("wheel", (event) => {
        event.preventDefault();
        const x = event.clientX - this.canvas.getBoundingClientRect().left;
        if (event.shiftKey) this.pan(Math.sign(event.deltaY || event.deltaX) * 0.1);
        else if (x < c3.draw.GUTTER) this.scroll(event.deltaY);
        else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX / this.width);
        else this.zoom(Math.exp(Math.min(Math.max(event.deltaY, -100), 100) * 0.003), x);
      }, { passive: false });
      this.canvas.addEventListener("pointerdown", (event) => this.press(event));
      this.canvas.addEventListener("pointermove", (event) => { if (!this.drag) this.hover(event); });
      this.canvas.addEventListener("pointerleave", () => { this.state.hover = null; this.tip.hidden = true; this.paintNow(); });
      this.canvas.addEventListener("keydown", (event) => this.key(event));
      this.map.addEventListener("pointerdown", (event) => {
        const go = (e) => { const half = (this.state.end - this.state.begin) / 2, at = ((e.clientX - this.map.getBoundingClientRect().left - c3.draw.GUTTER) / (this.width - c3.draw.GUTTER)) * this.structure.end; this.move(at - half, at + half); };
        this.follow(event, this.map, go); go(event);
      });
      this.search.addEventListener("keydown", (event) => { if (event.key === "Enter") this.find(event.shiftKey); if (event.key === "Escape") this.canvas.focus(); });
      this.ranks.addEventListener("change", () => { this.state.ranks = this.ranks.value; this.choose(); });
      this.perfetto.addEventListener("pointerenter", () => this.setExport());
      this.perfetto.addEventListener("focus", () => this.setExport());
      new MutationObserver(() => { this.paintNow(); }).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    }

    setExport() {
      const { begin, end, ranks } = this.state;
      this.perfetto.href = "/api/perfetto?" + new URLSearchParams({ begin: Math.floor(begin), end: Math.ceil(end), ranks });
    }

    follow(event, node, moved, ended) {
      node.setPointerCapture(event.pointerId);
      const stop = (e) => { node.removeEventListener("pointermove", moved); node.removeEventListener("pointerup", stop); if (ended) ended(e); };
      node.addEventListener("pointermove", moved); node.addEventListener("pointerup", stop);
    }

    press(event) {
      const box = this.canvas.getBoundingClientRect(), from = { x: event.clientX, y: event.clientY, ...this.state };
      const scale = (this.width - c3.draw.GUTTER) / (from.end - from.begin);
      let far = false;
      this.drag = true; this.tip.hidden = true;
      this.follow(event, this.canvas, (e) => {
        const dx = e.clientX - from.x, dy = e.clientY - from.y;
        far = far || Math.abs(dx) + Math.abs(dy) > 4;
        if (!far || event.shiftKey) return;
        this.state.begin = from.begin - dx / scale; this.state.end = from.end - dx / scale;
        this.state.scroll = from.scroll; this.scroll(-dy);
      }, (e) => {
        this.drag = false;
        const time = (x) => from.begin + (x - box.left - c3.draw.GUTTER) / scale;
        if (far && event.shiftKey) return this.move(Math.min(time(from.x), time(e.clientX)), Math.max(time(from.x), time(e.clientX)));
        if (far) return undefined;
        return this.click(this.under(e.clientX - box.left, e.clientY - box.top));
      });
    }

    click(span) {
      if (!span) return this.clear();
      if (span.row >= 0) return this.open(span.lane, span.row, false);
      return this.zoomTo(span);
    }

    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const keys = {
        w: () => this.zoom(0.7, this.pointer), s: () => this.zoom(1 / 0.7, this.pointer), a: () => this.pan(-0.2), d: () => this.pan(0.2),
        ArrowLeft: () => this.pan(-0.1), ArrowRight: () => this.pan(0.1), ArrowUp: () => this.scroll(-60), ArrowDown: () => this.scroll(60),
        f: () => (this.state.selected ? this.zoomTo(this.state.selected) : this.fit()), "0": () => this.fit(), n: () => this.find(false), N: () => this.find(true),
        ",": () => this.walk(-1), ".": () => this.walk(1), "/": () => this.search.focus(), Escape: () => this.clear(),
      };
      const act = keys[event.key] || keys[event.key.toLowerCase()];
      if (act) { event.preventDefault(); act(); }
    }

    /* ---- the address ---- */
    fromAddress() {
      const given = new URLSearchParams(window.location.search), number = (name) => { const text = given.get(name); return text === null || text === "" || !isFinite(Number(text)) ? null : Number(text); };
      if (number("t0") !== null && number("t1") > number("t0")) { this.state.begin = number("t0"); this.state.end = number("t1"); } else { this.state.begin = -this.structure.end * 0.01; this.state.end = this.structure.end * 1.01; }
      if (given.has("ranks")) this.state.ranks = given.get("ranks");
      for (const [name, set] of [["hide", this.state.hidden], ["show", this.state.extra]]) for (const label of (given.get(name) || "").split("|")) if (label) set.add(label);
      this.search.value = given.get("q") || "";
      const [lane, row] = (given.get("sel") || "").split("~");
      if (row) this.pending = [lane, Number(row)];
    }

    toAddress() {
      if (!this.root.isConnected || window.location.pathname !== "/timeline") return;
      const { begin, end, ranks, hidden, extra, selected } = this.state;
      const now = { t0: Math.round(begin), t1: Math.round(end), ranks, hide: [...hidden].join("|"), show: [...extra].join("|"), q: this.search.value, sel: selected ? selected.lane + "~" + selected.row : "" };
      const text = new URLSearchParams(Object.entries(now).filter(([, value]) => value !== "")).toString();
      window.history.replaceState(window.history.state, "", "/timeline?" + text);
    }
  }

  /* Dash puts the element into the page whenever the view is opened. */
  new MutationObserver(() => {
    const root = document.getElementById("timeline");
    if (root && !root.dataset.begun) { root.dataset.begun = "yes"; c3.timeline = new Timeline(root); }
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
