"use strict";
(() => {
  const LETTER = 7.8;
  const root = document.documentElement;
  root.classList.add("scripted");

  const say = (figure, text) => { figure.querySelector(".told").textContent = text; };

  const SVG = "http://www.w3.org/2000/svg";

  for (const svg of document.querySelectorAll("svg.timeline")) {
    if (svg.querySelector(".axis[data-x0]")) { cursor(svg); tracks(svg); }
  }

  // Which tracks are shown: what is below a hidden one moves up, grid lines end at the first one that is shown.
  function tracks(svg) {
    const all = Array.from(svg.querySelectorAll(".track")), axis = svg.querySelector(".axis");
    const lines = Array.from(axis.querySelectorAll("line")), top = Number(lines.length ? lines[0].getAttribute("y1") : 0);
    const [, , wide, high] = svg.getAttribute("viewBox").split(" ").map(Number);
    const shows = document.createElement("fieldset");
    shows.className = "shows";
    const boxes = all.map((track) => {
      const label = document.createElement("label"), box = document.createElement("input");
      box.type = "checkbox";
      box.checked = true;
      box.addEventListener("change", place);
      label.append(box, " " + track.dataset.track);
      shows.append(label);
      return box;
    });
    function place() {
      let hidden = 0;
      all.forEach((track, at) => {
        track.setAttribute("display", boxes[at].checked ? "inline" : "none");
        track.setAttribute("transform", `translate(0 ${-hidden})`);
        if (!boxes[at].checked) hidden += Number(track.dataset.height);
      });
      for (const below of [axis, svg.querySelector(".below")]) below.setAttribute("transform", `translate(0 ${-hidden})`);
      for (const line of lines) line.setAttribute("y1", String(top + hidden));
      svg.setAttribute("viewBox", `0 0 ${wide} ${high - hidden}`);
      svg.setAttribute("height", String(high - hidden));
    }
    svg.closest(".scroll").before(shows);
  }

  // A line at one moment, by pointer or arrow keys, and what every track says there.
  function cursor(svg) {
    const figure = svg.closest("figure"), axis = svg.querySelector(".axis").dataset;
    const [from, to, x0, x1] = [axis.from, axis.to, axis.x0, axis.x1].map(Number);
    const curves = Array.from(svg.querySelectorAll(".track path.curve")).map((path) => ({
      path, points: Array.from(path.getAttribute("d").matchAll(/[ML](\S+) ([^ML]+)/g), (m) => [Number(m[1]), Number(m[2])]),
    }));
    const line = document.createElementNS(SVG, "line");
    line.setAttribute("class", "cursor");
    line.setAttribute("display", "none");
    svg.append(line);
    svg.setAttribute("tabindex", "0");
    const end = Number(svg.querySelector(".axis line").getAttribute("y2"));
    const bottom = () => end + (svg.querySelector(".axis").transform.baseVal.consolidate()?.matrix.f ?? 0);
    let at = x0;

    function value({ path, points }) {
      const near = points.reduce((best, one) => (Math.abs(one[0] - at) < Math.abs(best[0] - at) ? one : best));
      if (Math.abs(near[0] - at) > (x1 - x0) / 20) return null;
      const { name, unit, high, y0, y1 } = path.dataset;
      const seen = (Number(high) * (Number(y0) - near[1])) / (Number(y0) - Number(y1));
      return `${name} ${Number(seen.toPrecision(3))} ${unit}`.trim();
    }
    function frame(band) {
      for (const span of band.querySelectorAll(".span")) {
        const rect = span.querySelector("rect"), begin = Number(rect.getAttribute("x"));
        if (at >= begin && at <= begin + Number(rect.getAttribute("width"))) {
          return `${band.dataset.name} in ${span.dataset.told.split(": ")[0]}`;
        }
      }
      return null;
    }
    function show(x) {
      at = Math.min(Math.max(x, x0), x1);
      for (const [name, place] of [["x1", at], ["x2", at], ["y1", 0], ["y2", bottom()]]) {
        line.setAttribute(name, String(place));
      }
      line.setAttribute("display", "inline");
      const seconds = from + ((at - x0) / (x1 - x0)) * (to - from);
      const told = [...curves.map(value), ...Array.from(svg.querySelectorAll(".band"), frame)].filter(Boolean);
      say(figure, [`${seconds.toFixed(1)} s`, ...told].join(" · "));
    }
    svg.addEventListener("pointermove", (event) => {
      const here = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      show(here.x);
    });
    svg.addEventListener("keydown", (event) => {
      const step = (x1 - x0) / (event.shiftKey ? 10 : 100);
      const next = { ArrowLeft: at - step, ArrowRight: at + step, Home: x0, End: x1 }[event.key];
      if (next === undefined) return;
      show(next);
      event.preventDefault();
    });
  }

  for (const svg of document.querySelectorAll("svg.flame")) flame(svg);

  function flame(svg) {
    const figure = svg.closest("figure");
    const boxes = Array.from(svg.querySelectorAll(".box")).map((node) => ({
      node, rect: node.querySelector("rect"), text: node.querySelector("text"),
      x: Number(node.dataset.x), w: Number(node.dataset.w), d: Number(node.dataset.d), name: node.dataset.name,
    }));
    if (!boxes.length) return;
    const WIDTH = svg.viewBox.baseVal.width;
    let shown = boxes[0], at = boxes[0];
    const inside = (box, outer) => box.x >= outer.x - 1e-6 && box.x + box.w <= outer.x + outer.w + 1e-6;
    const visible = (box) => (box.d >= shown.d ? inside(box, shown) : inside(shown, box));

    function draw() {
      for (const box of boxes) {
        const seen = visible(box);
        box.node.setAttribute("display", seen ? "inline" : "none");
        if (!seen) continue;
        const above = box.d < shown.d;
        const x = above ? 0 : ((box.x - shown.x) / shown.w) * WIDTH;
        const w = above ? WIDTH : Math.max((box.w / shown.w) * WIDTH, 0.5);
        box.rect.setAttribute("x", String(x));
        box.rect.setAttribute("width", String(w));
        box.node.classList.toggle("above", above);
        const fits = Math.floor((w - 6) / LETTER);
        box.text.setAttribute("x", String(x + 4));
        box.text.textContent = box.name.length <= fits ? box.name : fits > 4 ? box.name.slice(0, fits - 1) + "…" : "";
      }
    }

    function stand(box) {
      at.node.setAttribute("tabindex", "-1");
      at = box;
      at.node.setAttribute("tabindex", "0");
      at.node.focus({ preventScroll: true });
      say(figure, at.node.getAttribute("aria-label"));
    }

    function zoom(box) {
      shown = box;
      draw();
      stand(box);
    }

    const seenBoxes = () => boxes.filter(visible);
    const parent = (box) => boxes.filter((one) => one.d === box.d - 1 && inside(box, one))[0];
    const child = (box) => seenBoxes().filter((one) => one.d === box.d + 1 && inside(one, box))
      .sort((a, b) => b.w - a.w)[0];
    function beside(box, step) {
      const row = seenBoxes().filter((one) => one.d === box.d).sort((a, b) => a.x - b.x);
      return row[row.indexOf(box) + step];
    }

    for (const box of boxes) {
      box.node.addEventListener("click", () => zoom(box));
      box.node.addEventListener("pointerenter", () => say(figure, box.node.getAttribute("aria-label")));
    }
    svg.addEventListener("keydown", (event) => {
      const go = {
        ArrowUp: () => parent(at), ArrowDown: () => child(at),
        ArrowLeft: () => beside(at, -1), ArrowRight: () => beside(at, 1), Home: () => boxes[0],
      }[event.key];
      if (go) {
        const next = go();
        if (next) stand(next);
      } else if (event.key === "Enter" || event.key === " ") {
        zoom(at);
      } else if (event.key === "Escape" || event.key === "Backspace") {
        zoom(shown.d > 0 ? parent(shown) || boxes[0] : boxes[0]);
      } else {
        return;
      }
      event.preventDefault();
    });

    const field = figure.querySelector(".tools input"), hits = figure.querySelector(".hits");
    function search() {
      const wanted = field.value.trim().toLowerCase();
      let count = 0;
      for (const box of boxes) {
        const found = wanted !== "" && box.name.toLowerCase().includes(wanted);
        box.node.classList.toggle("found", found);
        count += found ? 1 : 0;
      }
      hits.textContent = wanted === "" ? "" : count === 1 ? "1 box" : `${count} boxes`;
    }
    field.addEventListener("input", search);
    figure.querySelector(".tools .back").addEventListener("click", () => zoom(boxes[0]));
  }

  document.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLInputElement;
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      const field = document.querySelector(".tools input");
      if (field) { field.focus(); event.preventDefault(); }
    } else if (event.key === "Escape" && typing) {
      event.target.value = "";
      event.target.dispatchEvent(new Event("input"));
    }
  });

  // Paper unfolds nothing by itself.
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = Array.from(document.querySelectorAll("details:not([open])"));
    for (const one of folded) one.open = true;
  });
  window.addEventListener("afterprint", () => { for (const one of folded) one.open = false; });

  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", () => {
      const pre = button.parentElement.querySelector("pre");
      const range = document.createRange();
      range.selectNodeContents(pre);
      const selection = window.getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      button.textContent = document.execCommand("copy") ? "Copied" : "Selected: press Ctrl-C";
    });
  }
})();
