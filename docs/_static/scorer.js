// Rank search results by the share of the query's words in their titles; pages of the guide come first.
var queryWords = (new URLSearchParams(window.location.search).get("q") || "").toLowerCase().split(/\W+/).filter(Boolean);
var pageWeight = (page) => {
  if (/^(guide|faq|quickstart|install|methods)/.test(page)) return 1.3;
  if (/^(changelog|sg_execution_times)/.test(page)) return 0.5;
  return 1;
};
var Scorer = {
  score: ([page, title, , , score]) => {
    const name = title.toLowerCase();
    const hits = queryWords.filter((word) => name.includes(word)).length;
    return (score + (20 * hits) / Math.max(1, queryWords.length)) * pageWeight(page);
  },
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
