/** Small breaks of a text of code or SQL, by a few rules on the syntax tree or on tokens, and which of them a line owns. */
import { parseAst } from "rolldown/parseAst";

/** The text from `start` to `end` becomes `to`; `what` is the rule. */
export type Mutation = { start: number; end: number; to: string; what: string };

type Node = { type: string; start: number; end: number } & Record<string, unknown>;

const isNode = (value: unknown): value is Node =>
  typeof value === "object" && value !== null && typeof (value as Node).type === "string";

const OPERATORS: ReadonlyMap<unknown, string> = new Map([
  ...([["===", "!=="], ["!==", "==="], ["<", "<="], ["<=", "<"], [">", ">="], [">=", ">"]] as const),
  ...([["+", "-"], ["-", "+"], ["&&", "||"], ["||", "&&"]] as const),
]); // biome-ignore format: pairs
const METHODS: ReadonlyMap<unknown, string> = new Map([["every", "some"], ["some", "every"]]); // biome-ignore format: pairs
const SQL = /\b(?:SELECT|UPDATE|INSERT|DELETE|CREATE)\b/;
const SQL_RULES: readonly [RegExp, string, string][] = [
  [/\bAND\b/g, "OR", "AND becomes OR"],
  [/ NOT NULL\b/g, "", "NOT NULL is dropped"],
  [/\bUNIQUE\b/g, "", "UNIQUE is dropped"],
  [/(?<=\s)<(?=\s)/g, "<=", "< becomes <="],
  [/(?<=\s)>(?=\s)/g, ">=", "> becomes >="],
  [/(?<=\s)<=(?=\s)/g, "<", "<= becomes <"],
  [/(?<=\s)>=(?=\s)/g, ">", ">= becomes >"],
  [/(?<=\s)=(?=\s)/g, "<>", "= becomes <>"],
];

function mutationsOfSql(text: string, offset = 0): Mutation[] {
  const bare = text.replaceAll(/--.*$/gm, (comment) => " ".repeat(comment.length));
  return SQL_RULES.flatMap(([pattern, to, what]) =>
    [...bare.matchAll(pattern)].map(({ index, 0: { length } }) => {
      const start = offset + index;
      return { start, end: start + length, to, what };
    }),
  );
}

/** An element of a list with the comma behind it. */
function removed(text: string, { start, end }: Node, what: string): Mutation {
  const comma = /^\s*,/.exec(text.slice(end))?.[0].length ?? 0;
  return { start, end: end + comma, to: "", what };
}

function mutationsOfNode(text: string, node: Node): Mutation[] {
  const { type, start, end } = node;
  const part = (key: string) => node[key] as Node;
  const source = (one: Node) => text.slice(one.start, one.end);
  const negated = (one: Node) => ({
    start: one.start,
    end: one.end,
    to: `!(${source(one)})`,
    what: "the condition is negated",
  });
  switch (type) {
    case "IfStatement":
      return [
        negated(part("test")),
        ...(isNode(node.alternate) ? [] : [{ start, end, to: ";", what: "the guard is dropped" }]),
      ];
    case "ConditionalExpression":
      return [negated(part("test"))];
    case "LogicalExpression":
    case "BinaryExpression": {
      const [left, right] = [part("left"), part("right")];
      const to = OPERATORS.get(node.operator);
      if (to === undefined) return [];
      // Brackets keep the precedence; ?? may not stand beside && or || without them.
      const whole = `((${source(left)}) ${to} (${source(right)}))`;
      return [{ start, end, to: whole, what: `${node.operator} becomes ${to}` }];
    }
    case "UnaryExpression":
      return node.operator === "!" ? [{ start, end: start + 1, to: "", what: "! is dropped" }] : [];
    case "Literal": {
      const { value } = node;
      if (typeof value === "boolean")
        return [{ start, end, to: `${!value}`, what: `${value} becomes ${!value}` }];
      if (typeof value === "number")
        return [{ start, end, to: `${value + 1}`, what: `${value} becomes ${value + 1}` }];
      // Prose is no rule.
      if (typeof value !== "string" || /\s/.test(value)) return [];
      return [{ start, end, to: JSON.stringify(`${value}x`), what: `"${value}" is another text` }];
    }
    case "TemplateLiteral":
      return SQL.test(source(node)) ? mutationsOfSql(source(node), start) : [];
    case "ObjectExpression":
      return (node.properties as Node[]).map((one) => removed(text, one, "the member is removed"));
    case "ArrayExpression":
      return (node.elements as Node[])
        .filter(isNode)
        .map((one) => removed(text, one, "the element is removed"));
    case "CallExpression": {
      const callee = part("callee");
      const name = callee.type === "MemberExpression" ? (callee.property as Node) : undefined;
      const to = METHODS.get(name?.name);
      return name === undefined || to === undefined
        ? []
        : [{ start: name.start, end: name.end, to, what: `${name.name} becomes ${to}` }];
    }
    case "ExpressionStatement": {
      const { type: kind } = part("expression");
      const acts = kind === "CallExpression" || kind === "AwaitExpression";
      return acts ? [{ start, end, to: ";", what: "the call is dropped" }] : [];
    }
    default:
      return [];
  }
}

const UNTOUCHED = /^(?:Import|Export(?:All|Named)Declaration$|TS(?!As|Satisfies|NonNull))/;

function walk(text: string, node: unknown, found: { mutations: Mutation[]; nodes: Node[] }): void {
  if (Array.isArray(node)) for (const one of node) walk(text, one, found);
  if (!isNode(node)) return;
  const isExport = node.type === "ExportNamedDeclaration" && isNode(node.declaration);
  if (UNTOUCHED.test(node.type) && !isExport) return;
  found.nodes.push(node);
  found.mutations.push(...mutationsOfNode(text, node));
  for (const [key, child] of Object.entries(node)) {
    const isName = key === "key" && node.computed !== true;
    if (!isName && key !== "typeAnnotation") walk(text, child, found);
  }
}

/** Every mutation of a file, and the nodes of its syntax tree (none of SQL). */
function read(file: string, text: string): { mutations: Mutation[]; nodes: Node[] } {
  if (file.endsWith(".sql")) return { mutations: mutationsOfSql(text), nodes: [] };
  const found: { mutations: Mutation[]; nodes: Node[] } = { mutations: [], nodes: [] };
  walk(text, parseAst(text, { lang: "ts" }).body, found);
  return found;
}

export const mutationsOf = (file: string, text: string): Mutation[] => read(file, text).mutations;

const COMMENT = /^\s*(?:\/\/|\/?\*|$)/;

/**
 * The mutations that each of these lines owns, which name ids: those of its own line if code stands on it, else those of
 * what begins behind its comment. What two comments enclose belongs to the inner one.
 */
export function mutationsByLine(
  file: string,
  text: string,
  lines: readonly number[],
): Map<number, Mutation[]> {
  const { mutations, nodes } = read(file, text);
  const texts = text.split("\n");
  const starts = texts.map((_, index) => texts.slice(0, index).join("\n").length + (index > 0 ? 1 : 0));
  const ranges = lines.map((line) => {
    let at = line - 1;
    while (at < texts.length && COMMENT.test(texts[at] ?? "")) at++;
    const from = (starts[at] ?? 0) + (/^\s*(?:[&|?:.]+\s*)?/.exec(texts[at] ?? "")?.[0].length ?? 0);
    const to = (starts[at] ?? 0) + (texts[at]?.length ?? 0);
    const isBehind = at === line - 1;
    const ends = isBehind ? [] : nodes.filter(({ start }) => start === from).map(({ end }) => end);
    return { line, from: isBehind ? (starts[at] ?? 0) : from, to: Math.max(to, ...ends) };
  });
  const size = ({ from, to }: { from: number; to: number }) => to - from;
  const owned = new Map<number, Mutation[]>(lines.map((line) => [line, []]));
  for (const mutation of mutations) {
    const around = ranges.filter(({ from, to }) => from <= mutation.start && mutation.start < to);
    const least = Math.min(...around.map(size));
    for (const range of around.filter((one) => size(one) === least)) owned.get(range.line)?.push(mutation);
  }
  return owned;
}
