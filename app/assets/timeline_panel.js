/* The timeline's tooltip and the panel with everything about the selected span. Text only: nothing of a trace is ever markup. */
(function () {
  "use strict";
  const c3 = (window.c3prof = window.c3prof || {});

  function element(tag, settings, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(settings || {})) {
      if (name === "text") made.textContent = value;
      else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (name === "colour") made.style.background = value;
      else made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  const READABLE = {
    comm: "communication", op: "operator", comm_op: "communication operator", hidden: "hidden communication",
    exposed: "exposed communication", launch: "launch", blocking: "waits for the device",
  };
  const className = (name) => READABLE[name] || name;

  function chip(name, colours) {
    return element("span", { class: "chip" }, element("i", { colour: colours[name] || colours.unknown, class: name === "exposed" ? "hatched" : "" }), className(name));
  }

  function fields(list) {
    return element("dl", {}, ...list.flatMap(([label, value]) => [element("dt", { text: label }), element("dd", { text: value })]));
  }

  /* What the tooltip says of a rectangle before the server has told more. */
  function brief(view, k, paint, length) {
    const style = paint[view.cls[k]];
    if (view.row[k] >= 0 || view.count[k] <= 1) return { title: view.name[k] >= 0 ? view.names[view.name[k]] : className(style.name), lines: [["lasts", c3.timeText(length)], ["class", className(style.name)]] };
    return {
      title: view.count[k].toLocaleString("en") + " spans, too short to show",
      lines: [["in", c3.timeText(length)], ["busy", Math.round(view.share[k] / 2.55) + " %"], ["mostly", className(style.name)], ["", "zoom in to see them"]],
    };
  }

  const IN_TOOLTIP = /^(operator|dims|group|group size|message size|wait|transfer|busbw|launch delay|slowdown.*|inside)$/;

  function tooltip(node, content, more, x, y) {
    const lines = [...content.lines, ...(more ? more.fields.filter(([label]) => IN_TOOLTIP.test(label)) : [])];
    node.replaceChildren(element("b", { text: content.title }), fields(lines));
    node.hidden = false;
    const box = node.getBoundingClientRect();
    node.style.left = Math.max(8, Math.min(x + 14, window.innerWidth - box.width - 10)) + "px";
    node.style.top = Math.max(8, y + 18 + box.height > window.innerHeight ? y - box.height - 12 : y + 18) + "px";
  }

  function spanButton(span, note, colours, jump) {
    return element("button", { class: "span-link", type: "button", onclick: () => jump(span) },
      element("i", { colour: colours[span.class] || colours.unknown }), element("span", { text: span.name }), element("small", { text: note }));
  }

  const LINKS = { launches: "Launch", ops: "Operator", annotations: "Annotation", collectives: "Collective", activities: "Launched" };

  function details(node, found, colours, actions) {
    const links = Object.entries(found.links).map(([name, span]) => spanButton(span, LINKS[name] || name, colours, actions.jump));
    const runners = found.co_runners.map((span) => spanButton(span, c3.timeText(span.shared_ns) + " shared", colours, actions.jump));
    node.replaceChildren(
      element("div", { class: "panel-head" }, chip(found.class, colours), element("button", { class: "quiet", type: "button", text: "Close", onclick: actions.close })),
      element("h2", { text: found.name, tabindex: "-1" }), fields(found.fields),
      links.length ? element("h3", { text: "Where it comes from" }) : null, ...links,
      element("h3", { text: "Runs at the same time" }), ...(runners.length ? runners : [element("p", { class: "muted", text: "Nothing on another stream of this device." })]),
      element("p", {}, element("button", { type: "button", text: "Zoom to it", onclick: actions.zoom }))
    );
  }

  const KEYS = [["w s", "zoom in, out"], ["a d", "move left, right"], ["f", "fit the selection, or all"], [", .", "previous, next span of the lane"], ["n", "next hit of the search"], ["/", "search"], ["wheel", "zoom at the pointer"], ["drag", "move; shift and drag zooms to the range"], ["esc", "clear the selection"]];

  function legend(node, classes, colours) {
    const shown = classes.filter((name) => !["op", "comm_op", "annotation", "step", "launch", "blocking"].includes(name));
    node.replaceChildren(
      element("h2", { text: "Timeline" }), element("p", { class: "muted", text: "Click a span for its details, what ran beside it and its launch. Spans narrower than a pixel are drawn together: the height of a bar is the share of time that is busy." }),
      element("div", { class: "legend" }, ...shown.map((name) => chip(name, colours))),
      element("h3", { text: "Keys" }), element("dl", { class: "keys" }, ...KEYS.flatMap(([key, what]) => [element("dt", {}, element("kbd", { text: key })), element("dd", { text: what })]))
    );
  }

  c3.panel = { element, brief, tooltip, details, legend, className };
})();
