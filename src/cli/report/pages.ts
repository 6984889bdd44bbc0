/** The pages of a report, from its model alone. */
import { byUse, subjectIn } from "../../audit/uses.ts";
import { type Html, html } from "../../spec/html.ts";
import type { NodeKey } from "./gather.ts";
import { drawMap, shown } from "./map.ts";
import type { Model } from "./model.ts";
import { agentPage, personPage } from "./node-pages.ts";
import {
  at,
  cell,
  digits,
  type Links,
  lastOf,
  nameCell,
  number,
  pageOf,
  periodOf,
  type ReportPage,
  table,
} from "./parts.ts";
import { refusalsPage } from "./refusals.ts";

/** So many agents and people have a page of their own, those that are used the most. */
const AGENT_PAGES = 500;
const PERSON_PAGES = 300;
const ROWS_MAX = 20_000;

export function pagesOf(model: Model): Iterable<ReportPage> {
  const agents = model.agents.slice(0, AGENT_PAGES);
  const people = byUse(model.counted.people).slice(0, PERSON_PAGES);
  const links: Links = new Map<NodeKey, string>([
    ...agents.map(({ id }, index) => [`agent ${id}`, `agent-${index + 1}.html`] as const),
    ...people.map(([name], index) => [`person ${name}`, `person-${index + 1}.html`] as const),
  ]);
  return (function* () {
    yield mapPage(model, links);
    yield agentsPage(model, links);
    yield refusalsPage(model, links);
    yield peoplePage(model, links);
    yield rulesPage(model);
    for (const agent of agents) yield agentPage(model, agent, links);
    for (const [name, use] of people) yield personPage(model, name, use, links);
  })();
}

function mapPage(model: Model, links: Links): ReportPage {
  const { counted, map, agents, refusals } = model;
  const refused = refusals.reduce((sum, { use }) => sum + use.count, 0);
  const idle = agents.filter(({ used }) => used === undefined).length;
  const unused = model.rules.filter(({ use }) => use === undefined).length;
  const figures: readonly (readonly [number, string])[] = [
    [counted.agents.size, "agents that asked"],
    [counted.people.by.size, "people acted for"],
    [counted.targets.by.size, "targets reached"],
    [counted.requests - refused, "tokens given"],
    [refused, "requests refused"],
    [idle, "agents idle"],
    [unused, "rules unused"],
  ];
  const titleOf = (key: NodeKey): Html => {
    const node = map.nodes.get(key);
    return nameCell(key.slice(key.indexOf(" ") + 1), node?.title, links.get(key));
  };
  const rows = map.edges
    .slice(0, 2000)
    .map(({ from, to, use }) => [
      ...[cell(titleOf(from)), cell(titleOf(to)), number(use?.count ?? 0), cell(lastOf(use))],
    ]);
  const body = html`<h1>Who acts for whom</h1>
<p class="hint">People on the left, the agents that act for them in the order in which they pass a token on, and the APIs and partners that they reach, ${periodOf(model)}.</p>
<ul class="figures">${figures.map(([value, label]) => html`<li><strong>${digits(value)}</strong><span>${label}</span></li>`)}</ul>
<ul class="key"><li>used in this time, the thicker the more</li><li class="never">allowed by the policy, never used</li></ul>
<div class="drawing" tabindex="0" role="region" aria-label="Map">${drawMap(map, pageOf(links))}</div>
<details><summary>The same as a list</summary>${table(["From", "To", "Requests", "Last"], rows)}</details>`;
  return { file: "index.html", title: "Map", body };
}

function agentsPage(model: Model, links: Links): ReportPage {
  const rows = model.agents
    .slice(0, ROWS_MAX)
    .map(({ id, title, owner, methods, used, reach }) => [
      cell(nameCell(id, title, links.get(`agent ${id}`))),
      cell(owner === undefined ? html`<span class="idle">no owner</span>` : shown(owner)),
      cell(methods.map(shown).join(", ")),
      number(used?.people.by.size ?? 0),
      number(reach.size),
      number(used === undefined ? 0 : used.use.count - used.refused),
      number(used?.refused ?? 0),
      cell(lastOf(used?.use)),
    ]);
  const body = html`<h1>Agents</h1>
<p class="hint">Every client and workload that asked in this time, or that the policy would give something: how it proves itself, the people it acted for, the targets that it could get a token for, and when it last asked.</p>
${table(["Agent", "Owner", "Proves itself by", "People", "May reach", "Given", "Refused", "Last"], rows)}`;
  return { file: "agents.html", title: "Agents", body };
}

function peoplePage(model: Model, links: Links): ReportPage {
  const rows = byUse(model.counted.people)
    .slice(0, ROWS_MAX)
    .map(([name, use]) => {
      const { iss, sub } = subjectIn(name);
      return [
        cell(nameCell(sub, undefined, links.get(`person ${name}`))),
        cell(shown(iss)),
        number(use.count),
        cell(at(use.lastMs)),
      ];
    });
  const body = html`<h1>People</h1>
<p class="hint">Whom agents acted for in this time, by the name that their issuer gives them.</p>
${rows.length === 0 ? html`<p>No agent acted for anyone.</p>` : table(["Subject", "Issuer", "Tokens", "Last"], rows)}`;
  return { file: "people.html", title: "People", body };
}

function rulesPage({ rules, counted, map }: Model): ReportPage {
  const targets = [...map.nodes.values()].filter(({ kind }) => kind === "target");
  const body = html`<h1>Rules and targets</h1>
<h2>Rules</h2>
<p class="hint">A rule that gave nothing in this time stands at the end. <code>mandate policy impact --without-rule ID</code> says whom it would hurt if it were gone.</p>
${table(
  ["Rule", "Mode", "Targets", "Tokens", "Last"],
  rules.map(({ id, mode, targets: names, use }) => [
    ...[
      cell(shown(id)),
      cell(mode),
      cell(names.map(shown).join(", ")),
      number(use?.count ?? 0),
      cell(lastOf(use)),
    ],
  ]),
)}
<h2>Targets</h2>
${table(
  ["Target", "", "Tokens", "Last"],
  targets.map(({ name, title, isPartner }) => {
    const use = counted.targets.by.get(name);
    return [
      cell(nameCell(name, title, undefined)),
      cell(isPartner ? "partner" : ""),
      number(use?.count ?? 0),
      cell(lastOf(use)),
    ];
  }),
)}`;
  return { file: "rules.html", title: "Rules and targets", body };
}
