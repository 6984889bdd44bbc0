/** The regular expressions of `src`, and texts on which a pattern that backtracks takes longer than its input is long. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const SRC = join(import.meta.dirname, "../../src");

export type Found = { readonly file: string; readonly pattern: RegExp };

/** Every literal, and every pattern that a module makes of text when it is loaded. */
export async function patternsOf(): Promise<readonly Found[]> {
  const files = globSync("**/*.ts", { cwd: SRC }).sort();
  const texts = files.map((file) => ({ file, text: readFileSync(join(SRC, file), "utf8") }));
  const literals = texts.flatMap(({ file, text }) => literalsIn(text).map((pattern) => ({ file, pattern })));
  const made: Found[] = [];
  const RegExpOfPlatform = globalThis.RegExp;
  for (const { file } of texts.filter(({ text }) => text.includes("new RegExp("))) {
    const url = pathToFileURL(join(SRC, file)).href;
    // First for the patterns of what it imports, then with a query, so that it is loaded anew alone.
    await import(url);
    globalThis.RegExp = class extends RegExpOfPlatform {
      constructor(source: string | RegExp, flags?: string) {
        super(source, flags);
        made.push({ file, pattern: new RegExpOfPlatform(source, flags) });
      }
    } as RegExpConstructor;
    try {
      await import(`${url}?patterns`);
    } finally {
      globalThis.RegExp = RegExpOfPlatform;
    }
  }
  return [...literals, ...made];
}

const TEMPLATE_TEXT = /(?:\\.|\$(?!\{)|[^`\\$])*(?:`|\$\{)/sy;
const PIECE =
  /\/\/[^\n]*|\/\*.*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?<pattern>\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^[/\\\n])+\/[dgimsuvy]*)|[\w$]+|\s+|./sy;

/** A slash divides after a value; elsewhere it begins a pattern. */
const AFTER_VALUE = /(?:[\w$)\]}"'`])$/;
const NO_VALUE = /^(?:return|typeof|case|in|of|await|void|else)$/;

export function literalsIn(text: string): readonly RegExp[] {
  const found: RegExp[] = [];
  // One number for each template that is open: how many braces are open within its part of code.
  const open: number[] = [];
  let before = "";
  let at = 0;
  const take = (kind: RegExp): RegExpExecArray | null => {
    kind.lastIndex = at;
    const match = kind.exec(text);
    if (match !== null) at = kind.lastIndex;
    return match;
  };
  while (at < text.length) {
    const start = at;
    const match = take(PIECE);
    const [piece = ""] = match ?? [];
    const isComment = piece.startsWith("//") || piece.startsWith("/*");
    if (isComment || piece.trim() === "") continue;
    const pattern = match?.groups?.pattern;
    if (pattern !== undefined && AFTER_VALUE.test(before) && !NO_VALUE.test(before)) {
      at = start + 1;
      before = "/";
      continue;
    }
    if (pattern !== undefined) {
      const end = pattern.lastIndexOf("/");
      found.push(new RegExp(pattern.slice(1, end), pattern.slice(end + 1)));
    }
    const inner = open.length - 1;
    if (piece === "{" && inner >= 0) open[inner] = (open[inner] ?? 0) + 1;
    if (piece === "}" && inner >= 0 && open[inner] !== 0) open[inner] = (open[inner] ?? 0) - 1;
    else if (piece === "`" || (piece === "}" && inner >= 0)) {
      if (piece === "}") open.pop();
      const holds = take(TEMPLATE_TEXT)?.[0].endsWith("${");
      if (holds) open.push(0);
      before = holds ? "${" : "`";
      continue;
    }
    before = piece;
  }
  return found;
}
