/** The page of one agent, and that of one person: what is around it, and how it is stopped. */
import { byUse, subjectIn, type Use } from "../../audit/uses.ts";
import { type Html, html } from "../../spec/html.ts";
import type { NodeKey } from "./gather.ts";
import { drawMap, shown } from "./map.ts";
import { type AgentRow, around, type Model } from "./model.ts";
import {
  cell,
  digits,
  type Links,
  lastOf,
  nameCell,
  number,
  pageOf,
  type ReportPage,
  shellWord,
  some,
  table,
} from "./parts.ts";
import { refusalCard } from "./refusals.ts";

const ROWS = 200;
const CARDS = 20;

const drawing = (model: Model, key: NodeKey, links: Links): Html =>
  model.map.nodes.has(key)
    ? html`<div class="drawing" tabindex="0" role="region" aria-label="Map around it">${drawMap(around(model.map, key), pageOf(links), key)}</div>`
    : html``;

export function agentPage(model: Model, agent: AgentRow, links: Links): ReportPage {
  const { id, title, purpose, owner, contact, methods, used, reach, living } = agent;
  const key: NodeKey = `agent ${id}`;
  const facts: readonly (readonly [string, Html | string | undefined])[] = [
    ["Purpose", purpose && shown(purpose)],
    ["Owner", owner === undefined ? html`<span class="idle">no one is named</span>` : shown(owner)],
    ["Contact", contact && shown(contact)],
    ["Proves itself by", methods.map(shown).join(", ") || undefined],
    ["Last asked", lastOf(used?.use)],
    ["Living tokens", living === undefined ? undefined : digits(living)],
    [
      "Rules that gave it tokens",
      used &&
        byUse(used.rules)
          .map(([rule]) => shown(rule))
          .join(", "),
    ],
  ];
  const uses = new Map(
    (model.map.outOf.get(key) ?? []).map(({ to, use }) => [to.slice("target ".length), use]),
  );
  const reached = [...reach].map(([target, scopes]) => [
    ...[cell(shown(target)), cell([...scopes].map(shown).join(" "))],
    ...[number(uses.get(target)?.count ?? 0), cell(lastOf(uses.get(target)))],
  ]);
  const people = used === undefined ? [] : byUse(used.people).slice(0, ROWS);
  const refusals = model.refusals.filter((one) => one.agent === id).slice(0, CARDS);
  const body = html`<h1>${shown(title ?? id)}</h1>
${title === undefined ? undefined : html`<p><code class="id">${shown(id)}</code></p>`}
<dl>${facts.map(([name, value]) => (value === undefined || value === "" ? undefined : html`<dt>${name}</dt><dd>${value}</dd>`)).filter((one) => one !== undefined)}</dl>
${drawing(model, key, links)}
<h2>What it may reach</h2>
${reached.length === 0 ? html`<p>The policy in force gives it nothing.</p>` : table(["Target", "Scopes at most", "Tokens", "Last"], reached)}
<h2>People it acted for</h2>
${
  people.length === 0
    ? html`<p>No one in this time.</p>`
    : table(
        ["Subject", "Issuer", "Tokens", "Last"],
        people.map(([name, use]) => personRow(name, use, links)),
      )
}
${stopping(agent)}
${refusals.length === 0 ? undefined : html`<h2>Refusals</h2><ul class="cards">${refusals.map((one) => refusalCard(one))}</ul>`}`;
  return { file: links.get(key) ?? "", title: shown(title ?? id), body };
}

function personRow(name: string, use: Use, links: Links): readonly Html[] {
  const { iss, sub } = subjectIn(name);
  return [
    cell(nameCell(sub, undefined, links.get(`person ${name}`))),
    cell(shown(iss)),
    number(use.count),
    cell(lastOf(use)),
  ];
}

/** What to type, and whom it would have hit in this time. */
function stopping({ id, used, living }: AgentRow): Html {
  const word = shellWord(id);
  if (id.endsWith("/*") || word === undefined) return html``;
  const by = /^(?:spiffe|platform):/.test(id) ? "--actor" : "--client";
  const given = used === undefined ? 0 : used.use.count - used.refused;
  const hit = html`In this time it got ${some(given, "token")} for ${some(used?.people.by.size ?? 0, "subject")}${living === undefined ? undefined : html`; ${some(living, "token")} of it ${living === 1 ? "is" : "are"} valid now`}.`;
  return html`<h2>Stop it</h2>
<div class="stop"><p><code>mandate tokens end ${by} ${word} --dry-run</code></p><p><code>mandate policy impact --without-client ${word}</code></p></div>
<p class="hint">${hit} The first command shows the tokens that would end, and ends them without <code>--dry-run</code>; to keep it out, remove it from the rules.</p>`;
}

export function personPage(model: Model, name: string, use: Use, links: Links): ReportPage {
  const { iss, sub } = subjectIn(name);
  const key: NodeKey = `person ${name}`;
  const agents = model.agents.flatMap(({ id, title, used }) => {
    const of = used?.people.by.get(name);
    return of === undefined ? [] : [{ id, title, of }];
  });
  const rows = agents
    .toSorted((a, b) => b.of.count - a.of.count)
    .slice(0, ROWS)
    .map(({ id, title, of }) => [
      ...[cell(nameCell(id, title, links.get(`agent ${id}`))), number(of.count), cell(lastOf(of))],
    ]);
  const [subject, issuer] = [shellWord(sub), shellWord(iss)];
  const body = html`<h1>${shown(sub)}</h1>
<p><code class="id">${shown(iss)}</code></p>
<p>${some(use.count, "token")} for this subject, the last ${lastOf(use)}.</p>
${drawing(model, key, links)}
<h2>Agents that acted for this subject</h2>
${table(["Agent", "Tokens", "Last"], rows)}
${subject === undefined || issuer === undefined ? undefined : html`<h2>Stop everything</h2><div class="stop"><p><code>mandate tokens end --issuer ${issuer} --subject ${subject} --dry-run</code></p><p><code>mandate policy impact --disable ${subject} --issuer ${issuer}</code></p></div>`}`;
  return { file: links.get(key) ?? "", title: shown(sub), body };
}
