/**
 * Where a document is enforced outside of its own module. The head of each module of src/spec and src/people/spec says
 * it, so that a reader who opens the document's module first finds the rest; `npm run clauses` checks that it is true.
 */
import { findLines, isServer, type Register, type Source } from "./register.ts";

/** The modules of documents whose ids do not begin with the module's name. */
const HOMES: ReadonlyMap<string, string> = new Map([
  ["CIMD", "cimd"],
  ["DTR", "deferred-token-response"],
  ["IDJAG", "id-jag"],
  ["EMA", "id-jag"],
  ["IDC", "identity-chaining"],
  ["B8725", "rfc8725"],
  ["B7523", "rfc7523"],
  ["RFC7518", "rfc7517"],
  ["RFC8037", "rfc7517"],
  ["OIDC", "oidc"],
  ["OIDCD", "oidc"],
  ["OIDCL", "oidc"],
  ["SPCA", "spiffe/client-auth"],
  ["JSV", "spiffe/jwt-svid"],
  ["X5S", "spiffe/x509-svid"],
  ["SID", "spiffe/id"],
  ["SBN", "spiffe/bundle"],
  ["SFD", "spiffe/bundle"],
]);

const SOURCES = "src/";
const SPECS = ["spec/", "people/spec/"].map((folder) => SOURCES + folder);

/** For each module of a document, the text that its head must end with; undefined where there is nothing elsewhere. */
export function elsewhere(register: Register, code: readonly Source[]): Map<string, string | undefined> {
  const isModule = (file: string) => SPECS.some((folder) => file.startsWith(folder));
  const modules = new Set(code.map(({ file }) => file).filter(isModule));
  const found = new Map<string, Map<string, Set<string>>>();
  for (const [id, lines] of findLines(register, [...code])) {
    const [, prefix = "", section = ""] = /^([^-]+)-([^-]+)-/.exec(id) ?? [];
    const homes = SPECS.map((folder) => folder + (HOMES.get(prefix) ?? prefix.toLowerCase()));
    const home = homes.map((name) => `${name}.ts`).find((file) => modules.has(file));
    if (home === undefined) continue;
    const isElsewhere = (file: string) =>
      file.startsWith(SOURCES) &&
      isServer(file) &&
      file !== home &&
      !homes.some((name) => file.startsWith(`${name}-`));
    const files = lines.map((line) => line.replace(/:\d+$/, "")).filter(isElsewhere);
    if (files.length === 0) continue;
    const sections = found.get(home) ?? new Map<string, Set<string>>();
    found.set(home, sections);
    const named = HOMES.has(prefix) ? `${prefix} ${section}` : section;
    sections.set(named, new Set([...(sections.get(named) ?? []), ...files]));
  }
  return new Map([...modules].map((module) => [module, textOf(found.get(module))]));
}

const inOrder = (a: string, b: string): number => a.localeCompare(b, "en", { numeric: true });

function textOf(sections: ReadonlyMap<string, ReadonlySet<string>> | undefined): string | undefined {
  if (sections === undefined) return undefined;
  const names = (files: ReadonlySet<string>) => [...files].map((file) => file.slice(SOURCES.length)).sort();
  const told = [...sections]
    .sort(([a], [b]) => inOrder(a, b))
    .map(([section, files]) => `${section} ${names(files).join(", ")}`);
  return `Elsewhere: ${told.join("; ")}.`;
}

/** The last paragraph of the comment at the top of a file, if it says what is elsewhere. */
const ELSEWHERE = /^\/\*\*\n(?: \*.*\n)*? \* (Elsewhere: (?:[^*]|\*(?!\/))*?)\n \*\/\n/;

/** Modules whose head does not say what is enforced elsewhere, or says something else. */
export function findStaleHeads(register: Register, code: readonly Source[]): string[] {
  const expected = elsewhere(register, code);
  return code.flatMap(({ file, text }) => {
    if (!expected.has(file)) return [];
    const want = expected.get(file);
    const said = ELSEWHERE.exec(text)?.[1]?.replaceAll(/\n \* /g, " ");
    if (said === want) return [];
    return [
      want === undefined
        ? `${file}: nothing is enforced elsewhere`
        : `${file}: its head must end with: ${want}`,
    ];
  });
}
