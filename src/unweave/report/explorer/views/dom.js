"use strict";

// Elements of the page. Texts are set as text, never as HTML, so that names of the user cannot be markup.
const UnweaveDom = (() => {
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "text") element.textContent = value;
      else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (name === "className") element.className = value;
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  function style(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function makeImage(uri) {
    return new Promise((resolve, reject) => {
      const image = new Image();
      image.onload = () => resolve(image);
      image.onerror = () => reject(new Error("a sheet of thumbnails cannot be read"));
      image.src = uri;
    });
  }

  // Fit a canvas to its place on the screen; return its context in units of CSS pixels.
  function fitCanvas(canvas, width, height) {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return context;
  }

  function fillSelect(select, options, value) {
    select.replaceChildren(...options.map(([key, text]) => make("option", { value: key, text })));
    select.value = String(value);
  }

  return { make, style, makeImage, fitCanvas, fillSelect };
})();
