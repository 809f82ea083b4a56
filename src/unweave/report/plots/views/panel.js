"use strict";

// A panel: axes as SVG, marks that show their values when the mouse, a finger or the keyboard reaches them.
const UnweavePanels = (() => {
  const { make } = UnweaveDom;
  const SVG = "http://www.w3.org/2000/svg";
  const REACH = 14; // pixels around a mark in which it is shown
  const MIN_TICK = 26; // pixels between labels of an axis
  const tip = make("div", { className: "tip", role: "status", hidden: "" });

  function draw(tag, attributes = {}, text = "") {
    const element = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    return element;
  }

  // Show lines of text beside a place of the window, the first one bold.
  function showTip([title, ...lines], x, y) {
    if (!tip.isConnected) document.body.append(tip);
    tip.replaceChildren(make("strong", { text: title }), ...lines.map((text) => make("div", { text })));
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = x + 14 + width > document.documentElement.clientWidth ? x - 14 - width : x + 14;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, Math.min(y - height / 2, window.innerHeight - height - 4))}px`;
  }

  function hideTip() {
    tip.hidden = true;
  }

  class Panel {
    // Options: title, width, height, margins [top, right, bottom, left], label of the whole panel.
    constructor({ title, width, height, margins, about }) {
      Object.assign(this, { width, height, margins, marks: [], current: -1 });
      this.svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": about });
      this.ring = draw("circle", { class: "ring", r: 7, visibility: "hidden" });
      this.box = make("div", { className: "drawing" }, this.svg);
      const heads = title ? [make("div", { className: "panel-title", text: title })] : [];
      this.element = make("div", { className: "panel" }, ...heads, this.box);
    }

    get area() {
      const [top, right, bottom, left] = this.margins;
      return { left, right: this.width - right, top, bottom: this.height - bottom };
    }

    add(tag, attributes, text) {
      const element = draw(tag, attributes, text);
      this.svg.append(element);
      return element;
    }

    // Let the browser show the whole of a text that was cut.
    addTitle(element, text) {
      if (element.textContent !== text) element.append(draw("title", {}, text));
    }

    // Draw both axes; ticks are [place, text].
    drawAxes({ x, y, xTicks, yTicks, xLabel, yLabel }) {
      const { left, right, top, bottom } = this.area;
      let last = -Infinity;
      for (const [value, text] of xTicks) {
        this.add("line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: bottom });
        if (x(value) - last < Math.max(MIN_TICK, 6.5 * text.length)) continue;
        last = x(value);
        this.add("text", { class: "tick", x: x(value), y: bottom + 14, "text-anchor": "middle" }, text);
      }
      for (const [value, text] of yTicks) {
        this.add("line", { class: "grid", x1: left, x2: right, y1: y(value), y2: y(value) });
        this.add("text", { class: "tick", x: left - 5, y: y(value) + 3.5, "text-anchor": "end" }, text);
      }
      this.add("path", { class: "axis", d: `M${left} ${top}V${bottom}H${right}` });
      if (xLabel) this.add("text", { class: "label", x: (left + right) / 2, y: this.height - 4, "text-anchor": "middle" }, xLabel);
      const turn = `translate(11 ${(top + bottom) / 2}) rotate(-90)`;
      if (yLabel) this.add("text", { class: "label", transform: turn, "text-anchor": "middle" }, yLabel);
    }

    // Let marks {x, y, lines, run} be reached; onSelect gets the run of a mark that was clicked.
    bind(marks, onSelect, isTabStop = true) {
      this.marks = marks;
      this.svg.append(this.ring);
      this.svg.addEventListener("pointermove", (event) => this.show(this.nearest(event)));
      this.svg.addEventListener("pointerleave", () => this.show(-1));
      this.svg.addEventListener("click", (event) => this.select(this.nearest(event), onSelect));
      if (!isTabStop || !marks.length) return;
      this.svg.setAttribute("tabindex", "0");
      this.svg.addEventListener("blur", () => this.show(-1));
      this.svg.addEventListener("keydown", (event) => this.press(event, onSelect));
    }

    nearest(event) {
      const box = this.svg.getBoundingClientRect(), scale = box.width / this.width;
      let best = -1, reach = REACH * REACH;
      this.marks.forEach((mark, i) => {
        const distance = (mark.x * scale + box.left - event.clientX) ** 2 + (mark.y * scale + box.top - event.clientY) ** 2;
        if (distance < reach) [best, reach] = [i, distance];
      });
      return best;
    }

    show(i) {
      this.current = i;
      this.ring.setAttribute("visibility", i < 0 ? "hidden" : "visible");
      this.svg.classList.toggle("pointed", i >= 0 && this.marks[i].run !== undefined);
      if (i < 0) return hideTip();
      const { x, y, lines } = this.marks[i], box = this.svg.getBoundingClientRect(), scale = box.width / this.width;
      this.ring.setAttribute("cx", x);
      this.ring.setAttribute("cy", y);
      return showTip(typeof lines === "function" ? lines() : lines, box.left + x * scale, box.top + y * scale);
    }

    select(i, onSelect) {
      this.show(i);
      if (i >= 0 && this.marks[i].run !== undefined && onSelect) onSelect(this.marks[i].run, this.svg);
    }

    // Return the next mark; at first the first or the last one.
    next(step) {
      if (this.current < 0) return step > 0 ? 0 : this.marks.length - 1;
      return (this.current + step + this.marks.length) % this.marks.length;
    }

    press(event, onSelect) {
      const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
      if (event.key === "Enter" || event.key === " ") this.select(this.current, onSelect);
      else if (event.key === "Escape") this.show(-1);
      else if (event.key in steps) this.show(this.next(steps[event.key]));
      else return;
      event.preventDefault();
    }
  }

  return { Panel, showTip, hideTip };
})();
