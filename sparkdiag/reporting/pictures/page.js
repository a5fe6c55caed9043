"use strict";
(() => {
  const WIDTH = 1000, LETTER = 6.4;
  const root = document.documentElement;
  root.classList.add("scripted");

  const say = (figure, text) => { figure.querySelector(".told").textContent = text; };

  for (const figure of document.querySelectorAll("figure")) {
    const spans = figure.querySelectorAll(".span[data-told]");
    for (const span of spans) {
      span.addEventListener("pointerenter", () => say(figure, span.dataset.told));
    }
  }

  for (const svg of document.querySelectorAll("svg.flame")) flame(svg);

  function flame(svg) {
    const figure = svg.closest("figure");
    const boxes = Array.from(svg.querySelectorAll(".box")).map((node) => ({
      node, rect: node.querySelector("rect"), text: node.querySelector("text"),
      x: Number(node.dataset.x), w: Number(node.dataset.w), d: Number(node.dataset.d), name: node.dataset.name,
    }));
    if (!boxes.length) return;
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
