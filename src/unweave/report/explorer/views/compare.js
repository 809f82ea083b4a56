"use strict";

// A second method beside the first: its codes are matched with those of the first one and move with them.
const UnweaveCompare = (() => {
  const { make } = UnweaveDom;

  class Comparison {
    constructor(app, model, matches) {
      this.app = app;
      this.model = model;
      this.matches = matches;
      this.painter = new UnweaveDrawing.Painter(model);
      this.follow();
      const container = document.getElementById("film-other");
      container.append(make("h3", { text: model.name }));
      document.getElementById("film-note").textContent = this.describe();
      this.filmstrip = new UnweaveFilmstrip.Filmstrip(app, container, {
        model,
        painter: this.painter,
        z: () => this.z,
        entries: app.filmstrip.lane.entries.map(({ code }) => this.entry(code)),
        pick: (entry, value) => this.pick(entry, value),
        isFollower: true,
      });
      app.filmstrip.follower = this.filmstrip;
    }

    describe() {
      const strengths = this.matches.filter((match) => match.code >= 0).map((match) => Math.abs(match.correlation));
      const count = `${strengths.length} of ${this.app.filmstrip.lane.entries.length} codes have a counterpart`;
      if (!strengths.length) return `${count} on the right.`;
      const mean = strengths.reduce((sum, value) => sum + value, 0) / strengths.length;
      return `${count} on the right (mean |r| ${mean.toFixed(2)}), which moves along.`;
    }

    entry(id) {
      const { code, correlation, sign } = this.matches[id];
      const note = code < 0 ? "" : `r = ${correlation.toFixed(2).replace("-", "\u2212")}`;
      return { id, code, isReversed: sign < 0, note };
    }

    // Move the codes of the second method as those of the first have moved.
    follow() {
      this.z = UnweaveState.matchedCodes(this.app.state, this.app.model, this.model, this.matches);
    }

    // A click on a cell moves the first model, so that the second one arrives at the value.
    pick({ id, code, isReversed }, value) {
      const { app, model } = this;
      const share = (value - model.codesOf(app.state.start)[code]) / model.statistics[code].deviation;
      const start = app.model.codesOf(app.state.start)[id];
      app.setCode(id, start + (isReversed ? -share : share) * app.model.statistics[id].deviation);
    }
  }

  return { Comparison };
})();
