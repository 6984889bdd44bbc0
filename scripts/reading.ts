/**
 * `npm run reading [LIST …]`: what a reviewer reads, in order: each file of the lists of src/reading.txt with the first
 * sentence of its head, its clauses and its lines.
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { idFinder, loadTree, withoutComments } from "./clauses/register.ts";

const ROOT = join(import.meta.dirname, "..");
export const LISTS = "src/reading.txt";
const SRC = dirname(LISTS);

/** Of one list; `section` is the heading below which it stands. */
export type Entry = { list: string; section: string; file: string };

/** The entries of the lists, in their order. */
export function readEntries(lists: string): Entry[] {
  const entries: Entry[] = [];
  let [list, section] = ["", ""];
  for (const line of lists.split("\n")) {
    const heading = /^(##+) (.+)$/.exec(line);
    if (heading?.[1] === "##") [list, section] = [heading[2] ?? "", ""];
    else if (heading !== null) section = heading[2] ?? "";
    else if (/^[\w./-]+\.ts$/.test(line)) entries.push({ list, section, file: line });
  }
  return entries;
}

/** The first sentence of the comment at the top of a file; of a document's module, its title and what it covers. */
export function sentenceOf(text: string): string {
  const head = text.slice(text.indexOf("/**") + 3, text.indexOf("*/"));
  const plain = head
    .replaceAll(/^ *\* ?/gm, "")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/[:,]? https?:\/\/[^\s,)]*[^\s,.)]/g, "")
    .trim()
    .replace(/\.?,? Covers /, ": covers ");
  return /^.*?\.(?= [A-Z]|$)/.exec(plain)?.[0] ?? `${plain}.`;
}

/** Ids of clauses, of which each names its document only where it is another one than before. */
function told(ids: readonly string[]): string {
  const inOrder = [...new Set(ids)].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const byDocument = Map.groupBy(inOrder, (id) => id.slice(0, id.indexOf("-") + 1));
  return [...byDocument]
    .map(([document, of]) => document + of.map((id) => id.slice(document.length)).join(", "))
    .join("; ");
}

type Listed = Entry & { text: string };

const linesOf = (text: string): number => text.split("\n").length - 1;
const codeLinesOf = (text: string): number =>
  withoutComments(text)
    .split("\n")
    .filter((line) => line.trim() !== "").length;

/** The lists of these names, or all of them. */
function print(names: readonly string[]): string {
  const { register, code } = loadTree(ROOT);
  const idsOf = idFinder(register);
  const texts = new Map(code.map(({ file, text }) => [file, text]));
  const entries = readEntries(readFileSync(join(ROOT, LISTS), "utf8")).map((entry): Listed => {
    return { ...entry, text: texts.get(join(SRC, entry.file)) ?? "" };
  });
  const lists = Map.groupBy(entries, ({ list }) => list.toLowerCase());
  const unknown = names.find((name) => !lists.has(name));
  if (unknown !== undefined) {
    console.error(`There is no list "${unknown}", but ${[...lists.keys()].join(", ")}.`);
    process.exit(2);
  }
  const row = ({ file, text }: Listed): string => {
    const ids = told(idsOf(text));
    return `${file}, ${linesOf(text)} lines\n    ${sentenceOf(text)}\n${ids === "" ? "" : `    ${ids}\n`}`;
  };
  const section = ([heading, of]: [string, Listed[]]): string =>
    `${heading === "" ? "" : `### ${heading}\n\n`}${of.map(row).join("")}`;
  const list = (of: readonly Listed[]): string => {
    const sum = (measure: (text: string) => number) => of.reduce((all, { text }) => all + measure(text), 0);
    const size = `${of.length} files, ${sum(linesOf)} lines, ${sum(codeLinesOf)} of them code`;
    const sections = [...Map.groupBy(of, (entry) => entry.section)].map(section);
    return `## ${of[0]?.list}: ${size}\n\n${sections.join("\n")}`;
  };
  return [...lists]
    .filter(([name]) => names.length === 0 || names.includes(name))
    .map(([, of]) => list(of))
    .join("\n");
}

if (import.meta.main) process.stdout.write(print(process.argv.slice(2)));
