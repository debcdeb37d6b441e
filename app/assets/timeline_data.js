/* Data of the timeline: asks the server, decodes its arrays. Everything from a trace stays data: it becomes text, never markup. */
(function () {
  "use strict";
  const c3 = (window.c3prof = window.c3prof || {});

  async function post(name, body, signal) {
    const response = await fetch("/api/" + name, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error || "HTTP " + response.status);
    return answer;
  }

  function array(text, Kind) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return Kind === Uint8Array ? bytes : new Kind(bytes.buffer);
  }

  /* A view: typed arrays, and for each lane where its rectangles begin and end. */
  function decoded(answer) {
    const view = {
      begin: answer.begin, end: answer.end, unit: answer.unit, names: answer.names, lanes: new Map(),
      start: array(answer.start, Float32Array), stop: array(answer.stop, Float32Array), cls: array(answer.cls, Uint8Array),
      share: array(answer.share, Uint8Array), count: array(answer.count, Int32Array), row: array(answer.row, Int32Array),
      name: array(answer.name, Int32Array),
    };
    let first = 0;
    answer.lanes.forEach((key, i) => {
      view.lanes.set(key, [first, first + answer.counts[i]]);
      first += answer.counts[i];
    });
    return view;
  }

  function timeText(ns, digits) {
    const size = Math.abs(ns);
    const steps = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
    for (const [factor, unit] of steps) {
      if (size >= factor) return (ns / factor).toFixed(digits ?? (size / factor >= 100 ? 0 : size / factor >= 10 ? 1 : 2)) + " " + unit;
    }
    return Math.round(ns) + " ns";
  }

  /* "0-3,8" as a test for a rank; an empty text takes all. */
  function rankFilter(text) {
    const ranges = text.split(",").map((part) => part.trim()).filter(Boolean).map((part) => {
      const match = /^(-?\d+)(?:\s*-\s*(\d+))?$/.exec(part);
      return match ? [Number(match[1]), Number(match[2] ?? match[1])] : [NaN, NaN];
    });
    return (rank) => !ranges.length || ranges.some(([low, high]) => rank >= low && rank <= high);
  }

  c3.data = {
    lanes: () => post("lanes", {}),
    view: (body, signal) => post("view", body, signal).then(decoded),
    span: (lane, row) => post("span", { lane, row }),
    search: (body) => post("search", body),
  };
  c3.timeText = timeText;
  c3.rankFilter = rankFilter;
})();
