/** The register as one page that needs nothing else: `npm run clauses -- --html`. Without its script it is all readable. */
import { type Html, html } from "../../src/spec/html.ts";
import { type Draft, SEEN_ON } from "./drafts.ts";
import { allClauses, type Clause, isBinding, isMet, type Places, type Register } from "./register.ts";
import type { Evidence } from "./report.ts";

/** `shownBy`: what the outcomes of the tests are known from. */
export type Shown = {
  register: Register;
  lines: Places;
  tests: Places;
  evidence: Evidence;
  drafts: readonly Draft[];
  shownBy: string;
};

/** What kind of answer a row is, by its name and what that means, in the order in which they are offered as filters. */
const KINDS = {
  behaviour: ["behaviour", "a line of code enforces it"],
  structure: ["structure", "the code has no place where it could be broken, or the platform does it"],
  row: ["another row", "the lines of other clauses enforce it"],
  advice: ["advice", "met; a permission or a recommendation, of which no line speaks"],
  decision: ["decision", "our choice, where documents leave one"],
  stricter: ["stricter", "not met, because this server is stricter than the text"],
  exception: ["exception", "not met, or with a setting alone"],
  "not-offered": ["not offered", "of something that is not offered, or that nothing of ours can observe"],
  planned: ["planned", "not built yet"],
} as const;
export type Kind = keyof typeof KINDS;

const FILTERS: Record<string, readonly [name: string, meaning: string]> = {
  ...KINDS,
  unmet: ["not met", "stricter, exception or planned"],
  failed: ["failed", "a test that names it failed"],
};

export function kindOf(clause: Clause, lines: Places): Kind {
  const { id, status, enforced, same = [], stricter } = clause;
  if (status === "exception") return stricter === true ? "stricter" : "exception";
  if (status === "not-offered" || status === "planned") return status;
  if (status === "decision") return "decision";
  if (/^(?:structure|platform): /.test(enforced ?? "")) return "structure";
  if (enforced !== undefined || same.length > 0) return "row";
  return lines.has(id) ? "behaviour" : "advice";
}

/** What stands in the text between grave accents is a name of the wire or of a setting. */
const prose = (text: string): Html[] =>
  text.split("`").map((part, at) => (at % 2 === 0 ? html`${part}` : html`<code>${part}</code>`));
const reference = (id: string): Html => html`<a href="#${id}">${id}</a>`;
const joined = (parts: readonly Html[]): Html[] =>
  parts.flatMap((part, at) => (at === 0 ? [part] : [html`, `, part]));
const isShould = ({ level }: Clause): boolean => level.startsWith("SHOULD");
const isUnmet = (clause: Clause): boolean => !isMet(clause) && clause.status !== "not-offered";

function article(clause: Clause, { lines, tests, evidence }: Shown): Html {
  const { id, level, on, summary, note, enforced, untested, same = [] } = clause;
  const kind = kindOf(clause, lines);
  const code = lines.get(id) ?? [];
  const named = tests.get(id) ?? [];
  const outcome = evidence.get(id);
  const classes = [kind, ...(isUnmet(clause) ? ["unmet"] : []), ...(outcome === "failed" ? ["failed"] : [])];
  return html`<article id="${id}" class="${classes.join(" ")}">
<h3><a href="#${id}">${id}</a> <b>${level}</b> <span class="kind">${KINDS[kind][0]}</span>${on === undefined ? "" : html` <small>on ${on}</small>`}</h3>
<p>${prose(summary)}</p>${note === undefined ? "" : html`<p class="why">Reason: ${prose(note)}</p>`}${
    enforced === undefined
      ? ""
      : html`
<p class="why">Enforced by ${prose(enforced)}</p>`
  }${untested === undefined ? "" : html`<p class="why">No test: ${prose(untested)}</p>`}${
    same.length === 0 ? "" : html`<p class="why">Same as ${joined(same.map(reference))}</p>`
  }${code.length === 0 ? "" : html`<p class="code">${joined(code.map((place) => html`<code>${place}</code>`))}</p>`}${
    named.length === 0
      ? ""
      : html`<details><summary>tests (${named.length}): ${outcome ?? "named"}</summary><ul>${named.map((place) => html`<li>${place}</li>`)}</ul></details>`
  }
</article>
`;
}

/** What of a document is not met, MUST and SHOULD beside each other. */
function unmetRow(document: string, clauses: readonly Clause[]): Html {
  const unmet = clauses.filter(isUnmet);
  if (unmet.length === 0) return html``;
  const cell = (wanted: (clause: Clause) => boolean) =>
    html`<td>${joined(unmet.filter(wanted).map(({ id }) => reference(id)))}</td>`;
  const isOther = (clause: Clause) => !isBinding(clause) && !isShould(clause);
  return html`<tr><th scope="row"><a href="#d-${document}">${document}</a></th>${cell(isBinding)}${cell(isShould)}${cell(isOther)}</tr>
`;
}

/** Its name leads to the row that says why it is not followed, or not in the newest revision. */
const draftRow = ({ name, pin, seen, row }: Draft): Html =>
  html`<tr><th scope="row"><a href="#${row}">${name}</a></th><td>${pin ?? "not followed"}</td><td>${seen}</td></tr>
`;

/** An anchor that is the target hides what is not of its kind, so that the filters need no script. */
const HIDING = Object.keys(FILTERS)
  .map(
    (
      one,
    ) => `#only-${one}:target ~ main :is(article:not(.${one}), section:not(:has(.${one}))) { display: none; }
:has(#only-${one}:target) a[href="#only-${one}"] { font-weight: 700; }`,
  )
  .join("\n");
const STYLE = `
:root { color-scheme: light dark; --line: #8886; --good: light-dark(#1a6b35, #7fd89a); --bad: light-dark(#a3231b, #ff9d94); --mild: light-dark(#7a4d00, #f0c674); --link: light-dark(#0a4b8c, #8fc1ff); }
* { box-sizing: border-box; }
body { font: 16px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 70rem; padding: 0 1rem 4rem; overflow-wrap: anywhere; }
a { color: var(--link); } h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin: 2.5rem 0 .25rem; } h3 { font-size: 1rem; font-weight: 400; margin: 0; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem .75rem; list-style: none; margin: .5rem 0; padding: 0; }
nav a { display: inline-block; padding: .15rem 0; }
article { border: 1px solid var(--line); contain-intrinsic-size: auto 7rem; content-visibility: auto; border-radius: 6px; margin: .5rem 0; padding: .5rem .75rem; scroll-margin-top: 1rem; }
article:target { outline: 3px solid var(--link); } article p { margin: .25rem 0; } article h3 > a { font-weight: 600; }
.why, small, .code { font-size: .875rem; } .why { opacity: .85; } code { background: #8882; border-radius: 3px; font-size: .8125rem; padding: 0 .2em; } li { font-size: .875rem; }
.kind { border: 1px solid; border-radius: 4px; font-size: .8125rem; padding: 0 .35rem; white-space: nowrap; }
.behaviour .kind, .structure .kind, .row .kind, .advice .kind { color: var(--good); } .decision .kind, .stricter .kind { color: var(--mild); } .exception .kind, .planned .kind { color: var(--bad); }
.failed { border-color: var(--bad); } .failed summary { color: var(--bad); font-weight: 600; } .table { overflow-x: auto; } .table:focus-visible { outline: 2px solid var(--link); }
table { overflow-wrap: normal; border-collapse: collapse; font-size: .875rem; width: 100%; } th, td { border-bottom: 1px solid var(--line); min-width: 4.5rem; padding: .25rem .5rem; text-align: left; vertical-align: top; }
input { font: inherit; padding: .4rem; width: 100%; } [hidden] { display: none !important; }
td a { white-space: nowrap; }
/* The list of documents would stand between a filter and what it leaves. */
span:target ~ header > nav:last-child { display: none; }
${HIDING}
`;
const SCRIPT = `
const box = document.querySelector("input"); box.closest("form").hidden = false;
const all = [...document.querySelectorAll("article")].map((element) => [element, element.textContent.toLowerCase()]);
box.addEventListener("input", () => {
  const words = box.value.toLowerCase().split(/\\s+/);
  for (const [element, text] of all) element.hidden = !words.every((word) => text.includes(word));
  document.querySelector("header > nav:last-child").hidden = box.value !== "";
  document.querySelector("output").value = box.value && all.filter(([element]) => !element.hidden).length + " clauses";
  for (const section of document.querySelectorAll("main section")) section.hidden = !section.querySelector("article:not([hidden])");
});
`;

const HEAD = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Clause register</title><style>${STYLE}</style></head>`;

export function registerPage(shown: Shown): string {
  const { register, lines, drafts, shownBy } = shown;
  const all = allClauses(register);
  const numbers = new Map<string, number>();
  for (const clause of all) {
    const outcome = shown.evidence.get(clause.id) === "failed" ? ["failed"] : [];
    for (const of of [kindOf(clause, lines), ...(isUnmet(clause) ? ["unmet"] : []), ...outcome])
      numbers.set(of, (numbers.get(of) ?? 0) + 1);
  }
  const filter = (of: string, [words, meaning]: readonly [string, string]) =>
    html`<li><a href="#only-${of}" title="${meaning}">${words} (${numbers.get(of) ?? 0})</a></li>`;
  const body = html`<body>
${Object.keys(FILTERS).map((one) => html`<span id="only-${one}"></span>`)}
<header><h1>Clause register</h1>
<p>${all.length} clauses of ${register.size} documents, ${all.filter(isBinding).length} of them binding. ${shownBy}</p>
<form hidden><label>Search <input type="search" placeholder="id, word, file or test"></label> <output></output></form>
<nav aria-label="Kinds"><ul><li><a href="#">all</a></li>${Object.entries(FILTERS).map(([of, says]) => filter(of, says))}</ul></nav>
<details><summary>What the kinds mean</summary><ul>${Object.values(FILTERS).map(([words, meaning]) => html`<li>${words}: ${meaning}</li>`)}</ul></details>
<nav aria-label="Documents"><ul><li><a href="#not-met">not met</a></li><li><a href="#drafts">drafts</a></li>${[...register].map(([one, { clauses }]) => html`<li><a href="#d-${one}">${one}</a> ${clauses.length}</li>`)}</ul></nav></header>
<main>
${[...register].map(
  ([
    one,
    document,
  ]) => html`<section aria-labelledby="d-${one}"><h2 id="d-${one}">${document.title}</h2><p class="why">${prose(document.source)}</p>
${document.clauses.map((clause) => article(clause, shown))}</section>
`,
)}</main>
<h2 id="not-met">Not met</h2><div class="table" tabindex="0" role="group" aria-labelledby="not-met"><table><thead><tr><th scope="col">document</th><th scope="col">MUST</th><th scope="col">SHOULD</th><th scope="col">MAY</th></tr></thead><tbody>
${[...register].map(([one, { clauses }]) => unmetRow(one, clauses))}</tbody></table></div>
<h2 id="drafts">Drafts</h2><p class="why">The newest revisions were looked for on ${SEEN_ON}; each name leads to the row with the reason.</p><div class="table" tabindex="0" role="group" aria-labelledby="drafts"><table><thead><tr><th scope="col">draft</th><th scope="col">followed</th><th scope="col">seen</th></tr></thead><tbody>
${drafts.map(draftRow)}</tbody></table></div>
`;
  return `${HEAD}${body}<script>${SCRIPT}</script></body></html>\n`;
}
