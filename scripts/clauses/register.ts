/** The clause register (test/clauses) as data: its rows, their ids, and where code and tests name them. */
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";

/**
 * `same`: the clauses that this one restates, whose tests and lines are its own.
 * `enforced`: what enforces a clause that no line of code cites.
 * `untested`: why no test can show a decision.
 * `stricter`: an exception that refuses or withholds more than the text does.
 */
export type Clause = {
  id: string;
  level: string;
  on?: string;
  summary: string;
  status: string;
  note?: string;
  enforced?: string;
  same?: string[];
  untested?: string;
  stricter?: true;
};
export type Document = { title: string; source: string; clauses: Clause[] };
export type Register = Map<string, Document>;
export type Source = { file: string; text: string };
export type Tree = { documents: Source[]; register: Register; code: Source[]; tests: Source[] };

export const STATUSES = ["tested", "decision", "exception", "not-offered", "planned"];
export const CAPABILITIES = [
  ...["token endpoint", "client authentication", "token exchange", "policy and consent", "audit trail"],
  ...["registration", "metadata documents", "cross-domain grants", "introspection and revocation"],
  ...["sender-constrained tokens", "operations", "sign-in and consent", "jobs"],
];
export const ID = "[A-Z][A-Z0-9]*-[0-9A-Za-z.]+-v?[0-9]+";

export const allClauses = (register: Register): Clause[] =>
  [...register.values()].flatMap((doc) => doc.clauses);

const startOf = (word: string): RegExp => new RegExp(`(?<![a-z0-9_])${RegExp.escape(word)}`, "i");

/**
 * The clauses of a document, of an id, of an RFC by its number or a draft by its name, or with all of these words; undefined
 * where there is none.
 */
export function clausesOf(register: Register, name: string): Clause[] | undefined {
  const said = name.toLowerCase().replace(/^rfc[ -](?=\d)/, "rfc");
  const all = allClauses(register);
  const [, number] = /^rfc(\d+)$/.exec(said) ?? [];
  const [, draft = "no draft"] = /^(draft-[a-z0-9-]+?)(?:-\d\d)?$/.exec(said) ?? [];
  const about = new RegExp(number === undefined ? `${draft}-\\d` : `rfc ?${number}(?!\\d)`, "i");
  // A number that no document follows is looked for where it is named.
  const words = number === undefined ? said.split(/\s+/).map(startOf) : [about];
  const followed = [...register.values()].filter(({ title, source }) => about.test(`${title} ${source}`));
  const found = [
    register.get(said)?.clauses ?? [],
    all.filter(({ id }) => id.toLowerCase() === said || id.toLowerCase().startsWith(`${said}-`)),
    followed.flatMap(({ clauses }) => clauses),
    all.filter(({ id, summary, note = "" }) => {
      const text = `${id} ${summary} ${note}`;
      return words.every((word) => word.test(text));
    }),
  ];
  return found.find((clauses) => clauses.length > 0);
}

export const isBinding = ({ level }: Clause): boolean => /^(MUST|MUST NOT|DECIDE)†?$/.test(level);

/** What the server does, by the document or by our own decision. */
export const isMet = ({ status }: Clause): boolean => status === "tested" || status === "decision";

/** A permission may stand as tested without a test that uses it; a rule, a recommendation or a decision may not. */
export const needsTest = (clause: Clause): boolean =>
  isMet(clause) && !clause.level.startsWith("MAY") && clause.untested === undefined;

/** One whole id. Any RFC number counts, so that a mistyped one is found; other prefixes must be known. */
function idPattern(register: Register): string {
  const prefixes = new Set(allClauses(register).map((clause) => clause.id.replace(/-.*/, "")));
  return `(?<![0-9A-Za-z-])(?:RFC[0-9]+|${[...prefixes].join("|")})-[0-9A-Za-z.]+-v?[0-9]+(?![0-9A-Za-z-])`;
}

type FindIds = (text: string) => string[];

/** A function that finds the ids anywhere in a text. */
export function idFinder(register: Register): FindIds {
  const ids = new RegExp(idPattern(register), "g");
  // Most lines have no id, and to look for each prefix at each place of them takes long.
  return (text) => (/[A-Z0-9]-[0-9A-Za-z]/.test(text) ? (text.match(ids) ?? []) : []);
}

/** A function that finds the ids with which the name of a test begins. */
export function nameReader(register: Register): FindIds {
  const id = idPattern(register);
  const start = new RegExp(`^${id}(?:, ${id})*`);
  return (name) => name.match(start)?.[0].split(", ") ?? [];
}

/** Whether a line of this file can enforce a rule of the server: those of scripts and of the probe only name rules. */
export const isServer = (file: string): boolean =>
  !file.startsWith("scripts/") && !file.startsWith("src/cli/probe/");

/** Text in which no comment is left and every line stands where it stood. */
export const withoutComments = (text: string): string =>
  text
    .replaceAll(/^\s*\/\*[\s\S]*?\*\//gm, (comment) => comment.replaceAll(/[^\n]/g, ""))
    .replaceAll(/(^|\s)\/\/.*$/gm, "$1");

/** Where ids stand, by id: `file:line`, and behind it the name of a test. */
export type Places = Map<string, string[]>;

/** `find`: the ids of a line, each with what the place says behind its number. */
function places(sources: Source[], find: (line: string) => (readonly [id: string, said: string])[]) {
  const found: Places = new Map();
  for (const { file, text } of sources) {
    for (const [index, line] of text.split("\n").entries()) {
      for (const [id, said] of new Map(find(line))) {
        found.set(id, [...(found.get(id) ?? []), `${file}:${index + 1}${said}`]);
      }
    }
  }
  return found;
}

/** The lines that cite ids. */
export function findLines(register: Register, code: Source[]): Places {
  const findIds = idFinder(register);
  return places(code, (line) => findIds(line).map((id) => [id, ""] as const));
}

/** The lines of string literals that begin with ids, as names of tests do, each with its text; a comment is no name. */
export function findNames(register: Register, tests: Source[]): Places {
  const id = idPattern(register);
  const literal = new RegExp(`(["'\`])(${id}(?:, ${id})*)(.*?)(?:\\1|$)`, "g");
  const bare = tests.map(({ file, text }) => ({ file, text: withoutComments(text) }));
  return places(bare, (line) => {
    if (!/["'`][A-Z][A-Z0-9]*-/.test(line)) return [];
    return [...line.matchAll(literal)].flatMap(([, , ids = "", rest = ""]) =>
      ids.split(", ").map((id) => [id, ` ${ids}${rest}`] as const),
    );
  });
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
    tests: read("test/**/*.ts"),
  };
}
