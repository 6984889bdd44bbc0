/**
 * The clause register (test/clauses) against code and tests: what is tested, what is open, what does not fit.
 * `--quiet` prints problems and one line, `--open [DOCUMENT]` the planned binding clauses, `--promote` sets
 * planned clauses that a test names to tested.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

/** `same`: the clauses that this one restates, whose tests are its tests. */
export type Clause = {
  id: string;
  level: string;
  summary: string;
  status: string;
  note?: string;
  same?: string[];
};
export type Document = { title: string; source: string; clauses: Clause[] };
export type Register = Map<string, Document>;
export type Source = { file: string; text: string };
type Tree = { documents: Source[]; register: Register; code: Source[]; tests: Source[] };

const STATUSES = ["tested", "exception", "not-offered", "planned"];
const COLUMNS = ["clauses", "binding", ...STATUSES];
const CAPABILITIES = [
  ...["token endpoint", "client authentication", "token exchange", "policy and consent", "audit trail"],
  ...["registration", "metadata documents", "cross-domain grants", "introspection and revocation"],
  ...["sender-constrained tokens", "operations"],
];
const GRAMMAR = /^[A-Z][A-Z0-9]*-[0-9A-Za-z.]+-v?[0-9]+$/;
const allClauses = (register: Register): Clause[] => [...register.values()].flatMap((doc) => doc.clauses);
const isBinding = (clause: Clause): boolean => /^(MUST|MUST NOT|DECIDE)†?$/.test(clause.level);

/** One whole id. Any RFC number counts, so that a mistyped one is found; other prefixes must be known. */
function idPattern(register: Register): string {
  const prefixes = new Set(allClauses(register).map((clause) => clause.id.replace(/-.*/, "")));
  return `(?<![0-9A-Za-z-])(?:RFC[0-9]+|${[...prefixes].join("|")})-[0-9A-Za-z.]+-v?[0-9]+(?![0-9A-Za-z-])`;
}

/** The ids anywhere in a text. */
export const findIds = (register: Register, text: string): string[] =>
  text.match(new RegExp(idPattern(register), "g")) ?? [];

/** The ids at the start of string literals, where test names have them; comments are no names. */
export function findNames(register: Register, text: string): string[] {
  const id = idPattern(register);
  const code = text.replaceAll(/^\s*\/\*[\s\S]*?\*\//gm, "").replaceAll(/(^|\s)\/\/.*$/gm, "$1");
  const starts = code.match(new RegExp(`(?<=["'\`])${id}(?:, ${id})*`, "g")) ?? [];
  return starts.flatMap((start) => start.split(", "));
}

function namedClauses(register: Register, tests: Source[]): Set<Clause> {
  const names = new Set(tests.flatMap((test) => findNames(register, test.text)));
  const restated = (clause: Clause) => clause.same?.every((id) => names.has(id)) ?? false;
  return new Set(allClauses(register).filter((clause) => names.has(clause.id) || restated(clause)));
}

/** Everything that does not fit, one line each. */
export function findProblems(register: Register, code: Source[], tests: Source[]): string[] {
  const found: string[] = [];
  const known = new Set<string>();
  const named = namedClauses(register, tests);
  for (const clause of allClauses(register)) {
    const { id, status, note } = clause;
    const check = (fits: boolean, problem: string) => fits || found.push(`${id}: ${problem}`);
    check(!known.has(id), "is in the register twice");
    known.add(id);
    check(GRAMMAR.test(id), "is not an id");
    check(STATUSES.includes(status), `has an unknown status, ${status}`);
    check(status !== "tested" || !isBinding(clause) || named.has(clause), "is tested, but no test names it");
    check(status !== "planned" || !named.has(clause), "is planned, but a test names it: set it to tested");
    check(status === "tested" || Boolean(note), `is ${status} without a note`);
    check(status !== "planned" || !note || CAPABILITIES.includes(note), `has an unknown capability, ${note}`);
  }
  const links = allClauses(register).map(({ id, same }) => ({ where: id, ids: same ?? [] }));
  const uses = [...code, ...tests].map(({ file, text }) => ({ where: file, ids: findIds(register, text) }));
  for (const { where, ids } of [...links, ...uses]) {
    for (const id of new Set(ids)) if (!known.has(id)) found.push(`${where}: ${id} is not in the register`);
  }
  return found;
}

/** The register with every planned clause that a test names set to tested. */
export function promote(register: Register, tests: Source[]): Register {
  const named = namedClauses(register, tests);
  const raise = (clause: Clause): Clause => {
    const { note, ...rest } = clause;
    return clause.status === "planned" && named.has(clause) ? { ...rest, status: "tested" } : clause;
  };
  return new Map([...register].map(([name, doc]) => [name, { ...doc, clauses: doc.clauses.map(raise) }]));
}

/** One clause a line, so that a change of status is a change of one line. */
export function format({ title, source, clauses }: Document): string {
  const head = `  "title": ${JSON.stringify(title)},\n  "source": ${JSON.stringify(source)},\n`;
  const lines = clauses.map((clause) => `    ${JSON.stringify(clause)}`).join(",\n");
  return `{\n${head}  "clauses": [\n${lines}\n  ]\n}\n`;
}

/** The numbers under COLUMNS. */
export function count(clauses: Clause[]): number[] {
  const byStatus = STATUSES.map((status) => clauses.filter((clause) => clause.status === status).length);
  return [clauses.length, clauses.filter(isBinding).length, ...byStatus];
}

/** The planned binding clauses of one document, or of all. */
export function openClauses(register: Register, name?: string): string[] {
  return [...register]
    .filter(([document]) => name === undefined || document === name)
    .flatMap(([, doc]) => doc.clauses.filter((clause) => clause.status === "planned" && isBinding(clause)))
    .map((clause) => `${clause.id} ${clause.level} [${clause.note}] ${clause.summary}`);
}

/** Register, code and tests of the tree at `root`. */
export function loadTree(root: string): Tree {
  const read = (...patterns: string[]): Source[] => {
    const files = globSync(patterns, { cwd: root }).sort();
    return files.map((file) => ({ file, text: readFileSync(join(root, file), "utf8") }));
  };
  const documents = read("test/clauses/*.json");
  return {
    documents,
    register: new Map(documents.map(({ file, text }) => [basename(file, ".json"), JSON.parse(text)])),
    code: read("src/**/*.ts", "sql/**/*.sql", "scripts/**/*.ts"),
    tests: read("test/**/*.test.ts"),
  };
}

if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  const [option, name] = process.argv.slice(2);
  const { register: before, code, tests } = loadTree(root);
  const register = option === "--promote" ? promote(before, tests) : before;
  const total = count(allClauses(register));
  const line = (first: string, cells: unknown[]) =>
    console.log(first.padEnd(20) + cells.map((cell) => `${cell}`.padStart(12)).join(""));
  if (option === "--promote") {
    for (const [file, doc] of register) writeFileSync(join(root, `test/clauses/${file}.json`), format(doc));
  } else if (option === "--open") {
    for (const clause of openClauses(register, name)) console.log(clause);
  } else if (option === undefined) {
    line("document", COLUMNS);
    for (const [document, { clauses }] of register) line(document, count(clauses));
    line("total", total);
  } else console.log(COLUMNS.map((column, i) => `${total[i]} ${column}`).join(", "));
  const problems = findProblems(register, code, tests);
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exitCode = 1;
}
