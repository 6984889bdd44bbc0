/** `npm run reference`: writes the reference pages beside the sources that they are made of; a test says when one is out of date. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { COMBINATIONS, listsOf, PARTS, recordStatement } from "../src/adapters/store/postgres/record.ts";
import {
  CERTIFICATE_REASONS,
  DOCUMENT_REASONS,
  FETCH_REASONS,
  PROOF_REASONS,
  TOKEN_REASONS,
  URL_REASONS,
} from "../src/audit/reasons-of-proofs.ts";
import {
  CLIENT_REASONS,
  MANAGEMENT_REASONS,
  PEOPLE_REASONS,
  POLICY_REASONS,
  REQUEST_REASONS,
  SERVER_REASONS,
} from "../src/audit/reasons-of-requests.ts";
import { ConfigFile } from "../src/config/schema.ts";
import { ENTRIES } from "../src/http/log.ts";
import { NOTICE_MEMBERS, NOTICES } from "../src/http/log-events.ts";
import { FAMILIES } from "../src/http/metrics.ts";
import { SCHEMA_FILE } from "../src/program.ts";
import { membersOf } from "../src/setting.ts";
import { dashboard } from "./deploy/dashboard.ts";
import { openapiText } from "./openapi.ts";
import { worksWithPage } from "./works-with.ts";

/** `page`: a key of PAGES. */
export const pageFile = (page: string): string =>
  join(import.meta.dirname, "../src", page.includes(".") ? page : `${page}.md`);

type Node = {
  description?: string;
  type?: string;
  const?: unknown;
  enum?: readonly unknown[];
  default?: unknown;
  minimum?: number;
  maximum?: number;
  properties?: Readonly<Record<string, Node>>;
  required?: readonly string[];
  items?: Node;
  additionalProperties?: Node | boolean;
  anyOf?: readonly Node[];
  oneOf?: readonly Node[];
};

type Member = { path: string; values: Set<string>; text: string; standard: unknown; demanded: boolean };

const HEAD = "<!-- Written by `npm run reference` from the sources. Change those. -->\n";

/** Each page with what it is made of. */
export const PAGES: Readonly<Record<string, () => string>> = {
  "config/reference": configurationPage,
  "audit/reasons": reasonsPage,
  "http/log": logPage,
  "http/metrics": metricsPage,
  "http/works-with": worksWithPage,
  "adapters/store/postgres/record.sql": statementPage,
  "http/openapi.json": openapiText,
  "../scripts/deploy/dashboard.json": dashboard,
};

function configurationPage(): string {
  const schema: Node = JSON.parse(readFileSync(SCHEMA_FILE, "utf8"));
  const sections = Object.entries(schema.properties ?? {}).map(([name, node]) => {
    const members = new Map<string, Member>();
    collect(members, name, node, schema.required?.includes(name) ?? false);
    return `## \`${name}\`\n\n${table([...members.values()])}`;
  });
  const rule = [
    "Every member of the configuration file. `*` stands for a name of your choice or an entry of a list; `a.b` is member `b` of",
    'section `a`. A member that says "file, env or text" takes `{ "file": PATH }`, relative to the folder of the configuration,',
    '`{ "env": NAME }`, or the value itself. "demanded" means wherever its section is given; where a section has several forms,',
    'by at least one of them. "taken by": a reload (SIGHUP) puts a change into force, or a restart of the process; of a section',
    "where it is empty, each member says it.",
  ];
  return `${HEAD}\n# Reference of the configuration\n\n${rule.join("\n")}\nHow the parts work together: [README](README.md).\n\n${sections.join("\n")}`;
}

const formsOf = ({ anyOf = [], oneOf = [] }: Node): readonly Node[] => [...anyOf, ...oneOf];

/** A value that may stand elsewhere has no members of its own here. */
const isSource = (node: Node): boolean => {
  const names = Object.keys(node.properties ?? {});
  return names.length === 1 && ["file", "env"].includes(names[0] ?? "");
};

/** The member and all below it; the forms of one section share its rows. */
function collect(members: Map<string, Member>, path: string, node: Node, demanded: boolean): void {
  const known = members.get(path);
  const member = known ?? { path, values: new Set(), text: "", standard: undefined, demanded };
  member.text ||= node.description ?? "";
  member.standard ??= node.default;
  member.demanded ||= demanded;
  for (const value of valuesOf(node)) member.values.add(value);
  members.set(path, member);
  collectBelow(members, path, node);
}

function collectBelow(members: Map<string, Member>, path: string, node: Node): void {
  if (isSource(node)) return;
  for (const [name, below] of Object.entries(node.properties ?? {})) {
    collect(members, `${path}.${name}`, below, node.required?.includes(name) ?? false);
  }
  if (typeof node.additionalProperties === "object") {
    collectBelow(members, `${path}.*`, node.additionalProperties);
  }
  if (node.items !== undefined) collectBelow(members, `${path}.*`, node.items);
  for (const form of formsOf(node)) collectBelow(members, path, form);
}

/** What may stand there, in words; empty for an object whose members have rows. */
function valuesOf(node: Node): readonly string[] {
  const forms = formsOf(node);
  if (forms.length > 0) return forms.flatMap(valuesOf);
  if (isSource(node)) return Object.keys(node.properties ?? {});
  if (node.const !== undefined) return [code(node.const)];
  if (node.enum !== undefined) return node.enum.map(code);
  if (node.type === "array") return ["list"];
  if (node.type === "object") return ["object"];
  if (node.type === "string") return ["text"];
  const { minimum, maximum } = node;
  if (node.type === undefined) return [];
  if (minimum === undefined && maximum === undefined) return [node.type];
  return [`${node.type} from ${minimum ?? "any"}${maximum === undefined ? "" : ` to ${maximum}`}`];
}

const code = (value: unknown): string => `\`${JSON.stringify(value)}\``;

function table(members: readonly Member[]): string {
  const rows = members.map(({ path, values, text, standard, demanded }) => {
    const isEmpty = typeof standard === "object" && Object.keys(standard ?? {}).length === 0;
    const absent = standard === undefined || isEmpty ? (demanded ? "demanded" : "") : code(standard);
    return row([`\`${path}\``, listed([...values]), absent, takenBy(path), text]);
  });
  return `${row(["member", "value", "without it", "taken by", "what it is"])}${row(["---", "---", "---", "---", "---"])}${rows.join("")}`;
}

const OF_START = membersOf(ConfigFile).flatMap(({ path, ofStart }) => (ofStart ? [`${path}.`] : []));

function takenBy(path: string): string {
  const isOfStart = (at: string): boolean => OF_START.some((one) => at.startsWith(one));
  if (isOfStart(`${path}.`)) return "restart";
  return OF_START.some((one) => one.startsWith(`${path}.`)) ? "" : "reload";
}

const listed = (words: readonly string[]): string =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;

const row = (cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |\n`;

const GROUPS: readonly [heading: string, prefixes: string, texts: Readonly<Record<string, string>>][] = [
  ["URLs that a client gave", "", URL_REASONS],
  [
    "Tokens and assertions",
    "alone; `subject_`: of the subject token; `actor_`: of the actor token",
    TOKEN_REASONS,
  ],
  ["DPoP proofs", "`proof_`", PROOF_REASONS],
  ["Client metadata documents", "`document_`", DOCUMENT_REASONS],
  ["Key sets of clients", "`key_set_`", FETCH_REASONS],
  ["Certificates", "", CERTIFICATE_REASONS],
  ["Registration and its management", "", MANAGEMENT_REASONS],
  ["Clients", "", CLIENT_REASONS],
  ["Requests", "", REQUEST_REASONS],
  ["Policy", "", POLICY_REASONS],
  ["People: sign-in, consent, codes, refresh tokens", "", PEOPLE_REASONS],
  ["The server itself", "", SERVER_REASONS],
];

function reasonsPage(): string {
  const rule = [
    "The values of `reason` in an audit event, and of `refused` in the log. The caller sees none of them, only the error code of",
    "its endpoint. Where a group names prefixes, each of its reasons stands with one of them in the event.",
  ];
  const groups = GROUPS.map(([heading, prefixes, texts]) => {
    const rows = Object.entries(texts).map(([name, text]) => row([`\`${name}\``, text]));
    const told = prefixes === "" ? "" : `Prefixes: ${prefixes}.\n\n`;
    return `## ${heading}\n\n${told}${row(["reason", "meaning"])}${row(["---", "---"])}${rows.join("")}`;
  });
  return `${HEAD}\n# Reasons in the audit trail\n\n${rule.join("\n")}\n\n${groups.join("\n")}`;
}

function rowsOf(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => "---"), ...rows].map(row).join("");
}

function logPage(): string {
  const members = (of: Readonly<Record<string, string>>): string =>
    rowsOf(
      ["member", "meaning"],
      Object.entries(of).map(([name, meaning]) => [`\`${name}\``, meaning]),
    );
  const notices = Object.entries(NOTICES).map(([event, { levels, members: own, meaning }]) => [
    `\`${event}\``,
    levels.join(", "),
    own.map((name) => `\`${name}\``).join(", "),
    meaning,
  ]);
  return `${HEAD}
# Log

In the production profile each line on standard output is one JSON object with \`time\` (RFC 3339), \`level\` (\`info\`, \`warning\` or \`error\`) and \`event\`. On a terminal and in the development profile notices are prose.

## \`request\`: one for each request

${members(ENTRIES.request)}
## \`fetch\`: one for each document that the server fetches

${members(ENTRIES.fetch)}
## \`checkpoint\`: a checkpoint of the audit trail, where standard output is its witness

${members(ENTRIES.checkpoint)}
## Notices: what the server says about itself

A notice also has \`message\`, a sentence for people.

${rowsOf(["event", "level", "members", "meaning"], notices)}
${members(NOTICE_MEMBERS)}`;
}

const SCRAPE = `receivers:
  prometheus:
    config:
      scrape_configs:
        - job_name: mandate
          static_configs: [{ targets: ["127.0.0.1:9464"] }]
`;

function metricsPage(): string {
  const rows = Object.entries(FAMILIES).map(([name, { type, labels, help }]) => [
    `\`${name}\``,
    type,
    labels.map((label) => `\`${label}\``).join(", "),
    help,
  ]);
  return `${HEAD}
# Metrics

The listener \`operations\` serves them at \`/metrics\`, in Prometheus text format 0.0.4. A family without a value is left out.

${rowsOf(["metric", "type", "labels", "what"], rows)}
## Scraping

The Prometheus receiver of an OpenTelemetry collector, for \`"operations": { "host": "127.0.0.1", "port": 9464 }\`:

\`\`\`yaml
${SCRAPE}\`\`\`
`;
}

function statementPage(): string {
  const parts = PARTS.map((part) => `--   ${part}: ${listsOf([part]).join(", ")}`);
  const combinations = COMBINATIONS.slice(0, -1).map((one) => `--   ${one.join(", ")}`);
  return `-- Written by \`npm run reference\` from the sources in src/adapters/store. Change those: columns in tables.ts, lists of
-- rows in journal-rows.ts, guards and writes in journal-statements.ts.
--
-- The statement that writes the journal on PostgreSQL, whole. Its parts, with the lists that each takes and writes:
${parts.join("\n")}
--
-- A batch runs the first of these combinations that has the parts of its rows, or else the whole:
${combinations.join("\n")}

${recordStatement(PARTS)};
`;
}

if (import.meta.main) {
  for (const [name, make] of Object.entries(PAGES)) writeFileSync(pageFile(name), make());
}
