/** What `npm run clauses` prints, as lines. */
import { REASONS } from "../../src/audit/reasons.ts";
import { type Draft, SEEN_ON } from "./drafts.ts";
import { allClauses, type Clause, isBinding, type Places, type Register, STATUSES } from "./register.ts";

const COLUMNS = ["clauses", "binding", ...STATUSES];

/** The numbers under COLUMNS. */
export function count(clauses: Clause[]): number[] {
  const byStatus = STATUSES.map((status) => clauses.filter((clause) => clause.status === status).length);
  return [clauses.length, clauses.filter(isBinding).length, ...byStatus];
}

export function table(register: Register): string[] {
  const line = (first: string, cells: (string | number)[]) =>
    first.padEnd(20) + cells.map((cell) => `${cell}`.padStart(12)).join("");
  const documents = [...register].map(([name, { clauses }]) => line(name, count(clauses)));
  return [line("document", COLUMNS), ...documents, line("total", count(allClauses(register)))];
}

export const counts = (clauses: Clause[]): string =>
  count(clauses)
    .map((number, index) => `${number} ${COLUMNS[index]}`)
    .join(", ");

/** Each row with its lines of code and its tests. */
export function rows(clauses: Clause[], lines: Places, tests: Places): string[] {
  return clauses.flatMap(({ id, level, status, summary, note, enforced, untested, same = [] }) => [
    `${id} ${level} ${status}: ${summary}`,
    ...(note === undefined ? [] : [`    note: ${note}`]),
    ...(enforced === undefined ? [] : [`    enforced by ${enforced}`]),
    ...(untested === undefined ? [] : [`    no test: ${untested}`]),
    ...(same.length === 0 ? [] : [`    same as ${same.join(", ")}`]),
    ...(lines.get(id) ?? []).map((place) => `    code ${place}`),
    ...(tests.get(id) ?? []).map((place) => `    test ${place}`),
  ]);
}

/** The planned binding clauses. */
export const planned = (clauses: Clause[]): string[] =>
  clauses
    .filter((clause) => clause.status === "planned" && isBinding(clause))
    .map(({ id, level, note, summary }) => `${id} ${level} [${note}] ${summary}`);

/** Decisions, each with its reason and the first test that shows it. */
export function decisions(clauses: Clause[], tests: Places): string[] {
  const shown = ({ id, same = [], untested }: Clause): string => {
    if (untested !== undefined) return `no test: ${untested}`;
    const [first, ...more] = tests.get(id) ?? same.flatMap((other) => tests.get(other) ?? []);
    return `test ${first ?? "missing"}${more.length > 0 ? ` and ${more.length} more` : ""}`;
  };
  return clauses.flatMap((clause) => [
    `${clause.id} ${clause.level} ${clause.summary}`,
    ...(clause.note === undefined ? [] : [`    ${clause.note}`]),
    `    ${shown(clause)}`,
  ]);
}

/** Each draft with its revisions, and behind one that is not followed, or no longer the newest, what its row says. */
export function drafts(list: readonly Draft[], clauses: Clause[]): string[] {
  const byId = new Map(clauses.map((clause) => [clause.id, clause]));
  return [
    `drafts: ${list.length}, newest revisions looked for on ${SEEN_ON}`,
    ...list.flatMap(({ name, pin, seen, row }) => {
      const { summary, note } = byId.get(row) ?? {};
      const state = pin === undefined ? `not followed, seen ${seen}` : `followed ${pin}, seen ${seen}`;
      return [`${name}: ${state}`, ...(pin === seen ? [] : [`    ${row}: ${note ?? summary}`])];
    }),
  ];
}

/** The reasons that an audit event may have, each with its sentence. */
export const reasons = (): string[] =>
  Object.entries(REASONS)
    .map(([reason, text]) => `${reason}: ${text}`)
    .sort();
