/** How large the core is and how far its options reach into it: the figures that test/repo.test.ts holds. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAst } from "rolldown/parseAst";
import { withoutComments } from "./clauses/register.ts";
import { LISTS, readEntries } from "./reading.ts";

const ROOT = join(import.meta.dirname, "..");
const SRC = join(ROOT, "src");

/** An option of the road of a request: the words that name it, and beside the files that have one in their name its own. */
type Option = { words: RegExp; own: RegExp };

const OPTIONS = {
  jobs: { words: /job/i, own: /job|policy\/closure\.ts/ },
  details: { words: /details|detail_?types?\b|\bDetail\b/i, own: /detail|rfc9396/ },
  keys: {
    words: /dpop|jkt|confirmation|\bcnf\b|x5t|boundTo/i,
    own: /binding|prove-keys|rfc(?:9449|8705|7800|7638)/,
  },
  claims: {
    words: /\b(?:Subject|Wanted)Claims\b|ClaimsWord|ClaimDemands|subject_claims|claimsFrom|policy\.claims/,
    own: /claims/,
  },
  platforms: { words: /platform/i, own: /platform|workload-grant|config\/workloads/ },
  refresh: { words: /refresh_?token|\brefresh\b|famil(?:y|ies)/i, own: /refresh|families/ },
  deferral: { words: /deferr?al|deferred|\bdefer\b/i, own: /defer|poll/ },
} as const satisfies Record<string, Option>;

/** The lines of code of a file: no comments, no imports, nothing blank. */
const codeOf = (file: string): readonly string[] =>
  withoutComments(readFileSync(join(SRC, file), "utf8"))
    .replaceAll(/^import\b[^;]*;$/gm, "")
    .split("\n")
    .filter((line) => line.trim() !== "");

const FUNCTION_LINES = 60;
const FUNCTION = /Function(?:Expression|Declaration)$/;

/** The functions of a file that have more lines of code than a screen. */
function longFunctions(file: string): { name: string; lines: number }[] {
  const text = readFileSync(join(SRC, file), "utf8");
  const found: { name: string; lines: number }[] = [];
  if (text.split("\n").length <= FUNCTION_LINES) return found;
  const walk = (node: unknown): void => {
    if (node === null || typeof node !== "object") return;
    const { type, body, start, end, id } = node as Record<string, unknown> & { id?: { name?: string } };
    if (typeof type === "string" && FUNCTION.test(type) && body) {
      const code = withoutComments(text.slice(Number(start), Number(end))).split("\n");
      const lines = code.filter((line) => line.trim() !== "").length;
      if (lines > FUNCTION_LINES) found.push({ name: `${file} ${id?.name ?? ""}`.trim(), lines });
    }
    for (const member of Object.values(node)) walk(member);
  };
  walk(parseAst(text, { lang: "ts" }).body);
  return found;
}

/** The number of members of the request to be decided. */
function membersOfRequest(): number {
  const text = withoutComments(readFileSync(join(SRC, "flows/order/order.ts"), "utf8"));
  const type = /^export type Order = \{\n([\s\S]*?)^\};$/m.exec(text)?.[1] ?? "";
  return type.match(/^ {2}\w+\??:/gm)?.length ?? 0;
}

export function readFigures() {
  const files = globSync("**/*.ts", { cwd: SRC }).sort();
  const entries = readEntries(readFileSync(join(ROOT, LISTS), "utf8"));
  const linesOf = (list: string): number =>
    entries.filter((one) => one.list === list).reduce((sum, { file }) => sum + codeOf(file).length, 0);
  const naming = Object.entries(OPTIONS).map(([option, { words, own }]: [string, Option]) => {
    const named = files.filter((file) => !own.test(file) && words.test(codeOf(file).join("\n")));
    return [option, named] as const;
  });
  const [core, options] = [linesOf("Core"), linesOf("Options")];
  return {
    core,
    withOptions: core + options,
    longFunctions: files.flatMap(longFunctions).sort((a, b) => b.lines - a.lines),
    membersOfRequest: membersOfRequest(),
    naming: Object.fromEntries(naming) as Readonly<Record<string, readonly string[]>>,
  };
}

if (import.meta.main) {
  const { longFunctions: long, naming, ...rest } = readFigures();
  for (const [name, value] of Object.entries(rest)) console.log(name, value);
  console.log(`functions over ${FUNCTION_LINES} lines`, long.length);
  for (const { name, lines } of long) console.log(" ", lines, name);
  for (const [option, files] of Object.entries(naming)) console.log("files that name", option, files.length);
  const [of] = process.argv.slice(2);
  if (of !== undefined) console.log(naming[of]?.join("\n"));
}
