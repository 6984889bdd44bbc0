/** The house rules that a machine can check: who may import whom, four packages, known clause ids. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { parseAst } from "rolldown/parseAst";
import { schemaText } from "../scripts/config-schema.ts";
import { readFigures } from "../scripts/figures.ts";
import { LISTS as READING, readEntries } from "../scripts/reading.ts";
import { PAGES, pageFile } from "../scripts/reference.ts";
import { REASONS } from "../src/audit/reasons.ts";
import { ConfigFile } from "../src/config/schema.ts";
import { NOTICES } from "../src/http/log-events.ts";
import { MODE_NAMES } from "../src/modes.ts";
import { SCHEMA_FILE } from "../src/program.ts";
import { membersOf } from "../src/setting.ts";

const ROOT = join(import.meta.dirname, "..");
const SRC = join(ROOT, "src");
const RUNTIME = ["ipaddr.js", "jose", "postgres", "valibot"];

const sources = readdirSync(SRC, { recursive: true, encoding: "utf8" }).filter((name) =>
  name.endsWith(".ts"),
);

/** Each layer may import itself and those after it. */
const LAYERS = [
  "main",
  "cli",
  "start",
  "app",
  "door",
  "http",
  "pages",
  "flows",
  "ports",
  "ports-people",
  "ports-store",
  "records",
  "settings",
  "policy",
  "audit",
  "modes",
  "spec",
  "setting",
  "limits",
  "program",
  "result",
] as const;
/** Beside the layers: what adapters and the configuration may build on. */
const BASE = [
  "ports",
  "ports-people",
  "ports-store",
  "records",
  "settings",
  "policy",
  "audit",
  "modes",
  "spec",
  "setting",
  "limits",
  "program",
  "result",
];
/** What each may import from outside the project. */
const OUTSIDE: Record<string, readonly RegExp[]> = {
  main: [],
  cli: [/^node:(crypto|fs|path|util)$/, /^valibot$/],
  "cli/check/certificates": [/^node:(crypto|net|tls)$/],
  "cli/check/outside": [/^node:(fs|os|path)$/],
  "cli/probe/ask": [/^node:(https|tls)$/],
  "cli/init/prompt": [/^node:readline\/promises$/],
  start: [],
  app: [],
  door: [],
  pages: [],
  "http/serve": [/^node:(https|net)$/],
  "http/listen": [/^node:net$/],
  "http/tls": [/^node:(crypto|tls)$/],
  "http/connections": [/^node:(net|stream|tls)$/, /^ipaddr\.js$/],
  "http/intake": [/^node:tls$/],
  "http/responder": [/^node:(http|tls)$/],
  "http/message": [/^node:(http|tls)$/, /^ipaddr\.js$/],
  "http/raw-refusal": [/^node:stream$/],
  "http/trace": [/^node:crypto$/],
  "http/plain": [/^node:http$/],
  http: [/^valibot$/],
  flows: [],
  ports: [],
  "ports-people": [],
  "ports-store": [],
  "config/reader": [/^node:(crypto|fs|path|tls)$/, /^valibot$/],
  config: [/^node:(crypto|fs|path)$/, /^valibot$/],
  adapters: [/^node:/, /^(jose(\/.+)?|postgres|valibot|ipaddr\.js)$/],
  records: [],
  settings: [/^(valibot|ipaddr\.js)$/],
  policy: [/^valibot$/],
  audit: [/^valibot$/],
  limits: [],
  modes: [],
  setting: [/^valibot$/],
  spec: [/^(valibot|ipaddr\.js)$/],
  program: [/^node:(fs|path)$/],
  result: [],
};

/** The people's wing has the layers of the trunk, and its pages below its handlers. */
function layerOf(file: string): string {
  const [first = ""] = file.replace(/^people\//, "").split("/");
  return first.replace(/\.ts$/, "");
}

function mayImport(from: string, to: string): boolean {
  // What developers alone run is beside src, not in it.
  if (to === "..") return false;
  if (from === "main") return true;
  if (from === "cli") return !["main", "start", "app", "http"].includes(to);
  if (from === "start") return !["main", "cli"].includes(to);
  if (from === "door" && to === "adapters") return true;
  if (from === "adapters") return to === "adapters" || BASE.includes(to);
  if (from === "config") return to === "config" || BASE.includes(to);
  if (from === to) return from !== "main";
  const [above, below] = [LAYERS.indexOf(from as never), LAYERS.indexOf(to as never)];
  return above >= 0 && below > above;
}

const importsOf = (root: string, files: readonly string[]) =>
  files.flatMap((file) => {
    const text = readFileSync(join(root, file), "utf8");
    const named = text.matchAll(
      /^(?:import|export)\b(?:[^"']*?\bfrom)? "([^"]+)";$|\b(?:import|getBuiltinModule)\(\s*"([^"]+)"\s*\)/gm,
    );
    return [...named].map(([, early, late = ""]) => ({
      file,
      name: early ?? late,
      isLate: early === undefined,
    }));
  });

/** The imports of files by each other; imports of types count. */
const amongFiles = (of: ReturnType<typeof importsOf>) =>
  of
    .filter(({ name }) => name.startsWith("."))
    .map(({ file, name, isLate }) => ({ file, isLate, target: join(dirname(file), name) }));

const imports = importsOf(SRC, sources);
const inside = amongFiles(imports);

test("imports go down the layers and never turn back", () => {
  for (const { file, target } of inside) {
    assert.ok(mayImport(layerOf(file), layerOf(target)), `${file} imports ${target}`);
  }
});

test("a file of src imports a module once, its types beside its values", () => {
  for (const file of sources) {
    const named = readFileSync(join(SRC, file), "utf8").matchAll(
      /^import (?:type )?\{[^}]*\} from (".+");$/gm,
    );
    const modules = [...named].map(([, module]) => module);
    assert.equal(new Set(modules).size, modules.length, `${file} imports one of ${modules} twice`);
  }
});

/** The one file of the people's wing that the trunk imports, and the files that do, each when it needs it. */
const DOOR = "people/door.ts";
const OPENERS = ["start/people.ts", "cli/check/outside.ts", "cli/init/provider.ts"];

test("the trunk imports of the people's wing its door alone, and only once users sign in", () => {
  const crossing = inside.filter(({ file, target }) => /^people\//.test(target) && !/^people\//.test(file));
  assert.deepEqual(new Set(crossing.map(({ file }) => file)), new Set(OPENERS));
  for (const { file, target, isLate } of crossing)
    assert.ok(target === DOOR && isLate, `${file} imports ${target}`);
});

test("a start loads no driver that it does not use, no WebSocket client, and of the commands their table alone", () => {
  const script = `
    const { registerHooks } = await import("node:module");
    const loaded = [];
    registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
    await import("./src/cli/command-line.ts");
    await import("./src/start/run.ts");
    const { openStore } = await import("./src/adapters/store/open.ts");
    await (await openStore({ sqlite: ":memory:" })).close();
    console.log([...loaded, ...process.moduleLoadList].join("\\n"));`;
  const args = ["--disable-warning=ExperimentalWarning", "--input-type=module", "--eval", script];
  const loaded = execFileSync(process.execPath, args, { cwd: ROOT, encoding: "utf8" }).split("\n");
  assert.ok(loaded.some((name) => name.endsWith("/store/sqlite/store.ts")));
  assert.deepEqual(
    loaded.filter((name) => /\/postgres\/|undici/.test(name)),
    [],
  );
  const commands = loaded.flatMap((name) => /\/src\/(cli\/.+)$/.exec(name)?.[1] ?? []);
  const TABLE = /^cli\/(?:command-line|commands|options|(?:init|jobs|policy|report)\/usage)\.ts$/;
  assert.ok(commands.includes("cli/commands.ts"));
  assert.deepEqual(
    commands.filter((name) => !TABLE.test(name)),
    [],
  );
});

test("no file of src or scripts imports itself through others", () => {
  const files = globSync("{src,scripts}/**/*.ts", { cwd: ROOT });
  const targets = Map.groupBy(amongFiles(importsOf(ROOT, files)), ({ file }) => file);
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    const start = path.indexOf(file);
    assert.equal(start, -1, [...path.slice(start), file].join(" imports "));
    if (done.has(file)) return;
    for (const { target } of targets.get(file) ?? []) visit(target, [...path, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
});

/** The wings of src/adapters: each may import those before it; the files beside them are for all, and import none. */
const WINGS = ["store", "crypto", "remote", "audit", "clients", "signals"];

test("the wings of src/adapters import each other one way only", () => {
  const wingOf = (file: string): string | undefined => /^adapters\/([^/]+)\//.exec(file)?.[1];
  for (const file of sources) {
    const wing = wingOf(file);
    assert.ok(wing === undefined || WINGS.includes(wing), `${wing} has no place among the wings`);
  }
  for (const { file, target } of inside.filter((one) => one.file.startsWith("adapters/"))) {
    const [from, to] = [wingOf(file), wingOf(target)];
    if (to === undefined || from === to) continue;
    const fits = from !== undefined && WINGS.indexOf(to) < WINGS.indexOf(from);
    assert.ok(fits, `${file} imports ${target}`);
  }
});

test("each layer has only the outside packages that it may have", () => {
  for (const { file, name } of imports) {
    if (name.startsWith(".")) continue;
    const allowed = OUTSIDE[file.replace(/\.ts$/, "")] ?? OUTSIDE[layerOf(file)] ?? [];
    assert.ok(
      allowed.some((pattern) => pattern.test(name)),
      `${file} imports ${name}`,
    );
  }
});

test("an exported name is exported by one file of src, so that it has one meaning", () => {
  const exported = /^export (?:async )?(?:const|let|function\*?|class|type|interface) (\w+)/gm;
  const exports = sources.flatMap((file) => {
    const names = [...readFileSync(join(SRC, file), "utf8").matchAll(exported)].map(([, name = ""]) => name);
    return [...new Set(names)].map((name) => ({ file, name }));
  });
  for (const [name, found] of Map.groupBy(exports, (one) => one.name)) {
    // Every draft that is implemented has its pinned revision under this name.
    if (name !== "DRAFT")
      assert.deepEqual(
        found.map(({ file }) => file),
        [found[0]?.file],
        name,
      );
  }
});

/** The text of a file of src without its comments. */
const codeOf = (file: string): string =>
  readFileSync(join(SRC, file), "utf8").replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");

test("no spread hides members from the type check, or packs lines for the formatter", () => {
  // `...(x && { x })`, `...(x ? { x } : {})`: an undeclared member passes, which `defined` of result.ts does not let.
  const conditional = /\.\.\.\([^;]*?(?:(?:&&|\?) \{|: \{\})/;
  const packed = /\.\.\.(?:\{|\[")/;
  for (const file of sources) {
    const lines = codeOf(file).split("\n");
    assert.deepEqual(
      lines.filter((line) => conditional.test(line) || packed.test(line)),
      [],
      file,
    );
  }
});

/** What no code of these files may have, and lines that have it, each of which the pattern must find. */
const WALLS: readonly [name: string, where: RegExp, found: readonly RegExp[], lines: readonly string[]][] = [
  [
    "the pure core and the flows know no clock, no timer, no chance and nothing of the platform",
    /^(?:people\/)?(?:spec|audit|settings|policy|flows)\//,
    [
      /\bDate(?:\.now\b|\(\))|\bnew Date\b(?!\()|\b(?:Temporal|performance)\b/,
      /\bset(?:Timeout|Interval|Immediate)\b|\bqueueMicrotask\b/,
      /\bMath\.random\b|\b(?:crypto|process|fetch|globalThis)\b/,
    ],
    [
      "const now = Date.now();",
      "const now = new Date();",
      "const now = +new Date;",
      "const now = Temporal.Now.instant();",
      "setTimeout(end, 10);",
      "setInterval(look, 10);",
      "setImmediate(end);",
      "const id = globalThis.crypto.randomUUID();",
      "const id = crypto.randomUUID();",
    ],
  ],
  [
    "the pure core does not wait",
    /^(?:people\/)?(?:spec|audit|settings|policy)\//,
    [/\b(?:async|await)\b/],
    ["export async function decide() {", "const key = await keys.find();"],
  ],
  [
    // A map, a set or a list of a module has a type that lets nothing change it.
    "the modules of the pure core and of the flows keep nothing between two calls",
    /^(?:people\/)?(?:spec|audit|settings|policy|flows)\//,
    [
      /^(?:export )?(?:let|var) /m,
      /^(?:export )?const \w+(?:: (?!Readonly(?:Map|Set)<)[^;{]*)? =\s+new (?:Weak)?(?:Map|Set)\b/m,
      /^(?:export )?const \w+(?:: (?!readonly |Readonly)[^;=]*)? = \[(?![^;]*\] as const\b)/m,
      /^(?:export )?const \w+(?:: [^;=]*)? = \{(?:\}|[^;()]*\bnew (?:Weak)?(?:Map|Set)\b)/m,
    ],
    [
      "let calls = 0;",
      "export let last: string | undefined;",
      "const known = new Map<string, object>();",
      "export const seen: Set<string> = new Set();",
      "const kept =\n  new WeakMap<object, string>();",
      "const waiting: string[] = [];",
      'const names = ["a", "b"];',
      "const state = {};",
      "const state = { known: new Map() };",
    ],
  ],
  [
    "the pure core and the flows know no status code and no header field of HTTP",
    // An event of the audit trail tells the status of an answer that another server gave.
    /^(?:people\/)?(?:spec|settings|policy|flows)\//,
    [/\bstatus(?:Code)?\b|\bheaders\b/],
    ["return { status: 403, headers: {} };", "return { status, headers };", "response.statusCode = 403;"],
  ],
  [
    "only the adapters of the store know SQL",
    /^(?!adapters\/store\/)/,
    [
      /\bselect\b[^;{}]*?\sfrom\s+\w|\binsert into\b|\bdelete from\b|\bupdate \w+\s+set\b/i,
      /\b(?:create|alter|drop) (?:table|index)\b/i,
    ],
    [
      'const rows = "select id from consent";',
      'const row = "SELECT id\n  FROM consent";',
      'run("insert into consent values (1)");',
      'run("delete from consent");',
      'run("update consent set id = 1");',
      'run("drop table consent");',
    ],
  ],
  [
    "a mode of the policy differs from the others by its row in modes.ts alone",
    /^(?:audit|policy|flows|people|cli)\//,
    [new RegExp(`[!=]== "(?:${MODE_NAMES.join("|")})"`)],
    ['if (rule.allow === "redemption") return;', 'const asks = ask.mode !== "authorization_code";'],
  ],
  [
    "a signature names the ports that it takes: only start/ and the tables of routes have them all",
    /^(?!start\/|(?:app|ports|people\/ports|people\/door)\.ts$)/,
    [/(?<!Pick<\s*)\b(?:People)?Ports\b(?!\[)(?![^;{}()]*\} from ")/],
    [
      "export async function issue(ports: Ports, request: TokenRequest) {",
      "const keyStands = ({ hash }: Ports) => hash;",
      "type Read = (ports: PeoplePorts) => Promise<void>;",
      'type IssuePorts = Omit<Ports, "audit">;',
    ],
  ],
  [
    // One that is computed could be any file, of the people's wing too.
    "each import() names its file",
    /^/,
    [/\bimport\((?!\s*")/],
    ["await import(name);", "await import(`./page.ts`);", "await import(\n  name\n);"],
  ],
  [
    // V8 makes it among its old objects, where it keeps all that it refers to until the next full collection.
    "no function is written where it is assigned to a member",
    /^/,
    [
      // The type of a constant may look like a member.
      /(?<!(?:const|let) [^=;)\n]*)(?:\.[#$]?\w+|[\w)\]!]\[[^[\]]+\])!? (?:\?\?|\|\||&&)?=\s+\(*(?:async )?(?:<[^=;()]*>)?(?:function\b|\w+ =>|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)(?:: [^=;]+)? =>)/,
    ],
    [
      "connection.lose = () => resolve(fault);",
      "this.#joined = (): void => {",
      "socket.next ??=\n  async (one) => one;",
      "one.read = text => text;",
      "one.end = function () {",
      "one.$read = (() => x);",
      "one.read = (value = read()) => value;",
      "one.read = (then: (value: string) => void): { at: number } => then(at);",
      "one.read = <T>(one: T) => one;",
      "if (a) this.ends[at] ||= () => end(at);",
    ],
  ],
  ["only config reads the environment", /^(?!config)/, [/process\.env/], ["const port = process.env.PORT;"]],
];

for (const [name, where, found, lines] of WALLS) {
  test(name, () => {
    for (const line of lines)
      assert.ok(
        found.some((pattern) => pattern.test(line)),
        line,
      );
    const inside = sources.filter((file) => where.test(file));
    assert.ok(inside.length > 0);
    for (const file of inside) for (const pattern of found) assert.doesNotMatch(codeOf(file), pattern, file);
  });
}

test("a check of a signature answers with a boolean: a promise in a condition would count as a good signature", () => {
  const ports = readFileSync(join(SRC, "ports.ts"), "utf8");
  const answers = [...ports.matchAll(/^ {2}verify\w*\(jws: Jws, key: Jwk\): (.*);$/gm)].map(
    ([, type]) => type,
  );
  assert.deepEqual(answers, ["boolean", "boolean"]);
});

test("every module says what it is, and specification modules name their document and sections", () => {
  for (const file of sources) {
    const text = readFileSync(join(SRC, file), "utf8");
    assert.match(text, /^\/\*\*/, `${file} has no header`);
    const header = text.slice(0, text.indexOf("*/"));
    if (/^(?:people\/)?spec\/(rfc|spiffe\/)/.test(file))
      assert.match(header, /\b[Cc]overs\b/, `${file} does not say what it covers`);
  }
});

test("the project cites nothing outside of the repository, and uses none of the words that style bans", () => {
  const closed = /\btrap [0-9]|\b[a-z0-9-]+\.md\b|\bThreats[,:]|\bproduct document\b/;
  const words = /\b(?:he|him|his|himself|whoever|whomever|nobody|somebody|strangers?)\b/i;
  const tracked = execFileSync("git", ["ls-files", "src", "sql", "scripts", "test/clauses", "*.md"], {
    cwd: ROOT,
    encoding: "utf8",
  });
  for (const file of tracked.split("\n").filter((name) => /\.(?:ts|sql|md|json)$/.test(name))) {
    const lines = readFileSync(join(ROOT, file), "utf8").split("\n");
    const isCode = /\.(?:ts|sql)$/.test(file);
    const cites = (line: string) => isCode && closed.test(line) && !/README\.md/.test(line);
    const found = lines.filter((line) => words.test(line) || cites(line));
    assert.deepEqual(found, [], file);
  }
});

const DOCUMENTED: readonly [ids: string, file: string, sentence: RegExp][] = [
  [
    "RFC6749-3.3-5 the scope that a request without one gets",
    "src/http/README.md",
    /`scope` is optional\. Without it/,
  ],
  [
    "RFC6749-5.1-8, RFC6749-4.1.2-7 the size of what is issued",
    "src/http/README.md",
    /\| authorization code, .* \| 43 characters \|/,
  ],
  [
    "RFC8693-2.2.1-10 that an exchange gives no refresh token",
    "src/http/README.md",
    /exchange never gives a refresh token/,
  ],
  [
    "B7523-6-1 how to go over to the issuer as audience",
    "src/http/README.md",
    /change the clients first, .*"assertionAudience": "issuer"/,
  ],
  [
    "PROD-9.3-2 what may change under version 1",
    "src/config/README.md",
    /Under `"version": 1` .* are only added.*kept for one release/,
  ],
  [
    "CIMD-8.6-4 that destinations are restricted by the network too",
    "scripts/deploy/README.md",
    /Restrict the destinations by a firewall or network policy/,
  ],
];

for (const [name, file, sentence] of DOCUMENTED) {
  test(`${name} is documented`, () => {
    assert.match(readFileSync(join(ROOT, file), "utf8"), sentence);
  });
}

/** What is made from the sources, or held to them by a test of its own, and looked up rather than read. */
const LISTS = Object.keys(PAGES).map((name) => `src/${name}.md`);
const pages = execFileSync("git", ["ls-files", "*.md"], { cwd: ROOT, encoding: "utf8" }).trim().split("\n");
const words = (text: string): number => text.split(/\s+/).filter((word) => word !== "").length;

test("a page is read in one sitting: at most 1,500 words at the top, 2,500 elsewhere, unless it is a list", () => {
  for (const page of pages) {
    const text = readFileSync(join(ROOT, page), "utf8");
    const most = page === "README.md" ? 1_500 : 2_500;
    assert.ok(LISTS.includes(page) || words(text) <= most, `${page}: ${words(text)} words`);
  }
});

test("a file or folder of the project that a page names is there", () => {
  for (const page of pages) {
    const text = readFileSync(join(ROOT, page), "utf8");
    for (const [, path = ""] of text.matchAll(/`((?:src|test|sql|scripts)\/[\w./-]+)`/g))
      assert.ok(/NAME/.test(path) || existsSync(join(ROOT, path)), `${page}: ${path}`);
  }
});

test("a link of a page leads to a file that is there, and to a heading of it", () => {
  const anchorsOf = (text: string): string[] =>
    [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w -]/g, "")
        .replaceAll(" ", "-"),
    );
  for (const page of pages) {
    const text = readFileSync(join(ROOT, page), "utf8");
    for (const [, target = ""] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      const [file = "", anchor] = target.split("#");
      const to = file === "" ? join(ROOT, page) : join(ROOT, page, "..", file);
      assert.ok(existsSync(to), `${page}: ${target}`);
      if (anchor !== undefined)
        assert.ok(anchorsOf(readFileSync(to, "utf8")).includes(anchor), `${page}: ${target}`);
    }
  }
});

test("there are four runtime packages, pinned, and they bring nothing along", () => {
  const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  assert.deepEqual(Object.keys(manifest.dependencies).sort(), RUNTIME);
  for (const version of Object.values({ ...manifest.dependencies, ...manifest.devDependencies })) {
    assert.match(String(version), /^\d+\.\d+\.\d+/);
  }
  const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
  const runtime = Object.entries<{
    dev?: boolean;
    devOptional?: boolean;
    optional?: boolean;
    integrity?: string;
    hasInstallScript?: boolean;
  }>(packages)
    .filter(([path]) => path !== "")
    .map(([path, entry]) => {
      assert.ok(entry.integrity, `${path} is not locked by its hash`);
      return { path: path.replace("node_modules/", ""), entry };
    })
    .filter(({ entry }) => !entry.dev && !entry.optional && !entry.devOptional);
  assert.deepEqual(runtime.map(({ path }) => path).sort(), RUNTIME);
});

test("the JSON Schema that the server comes with is made from the sources: npm run schema", () => {
  assert.equal(readFileSync(SCHEMA_FILE, "utf8"), schemaText());
});

test("the pages of the reference are made from the sources: npm run reference", () => {
  for (const [name, make] of Object.entries(PAGES))
    assert.equal(readFileSync(pageFile(name), "utf8"), make());
});

/**
 * Whether a function of a text may have more lines, as formatted code shows it without its tree: from one line that is
 * not indented to the next. In text of several lines, any line may be so.
 */
const mayExceed = (text: string, lines: number): boolean =>
  text.split(/\n(?=[^\s}])/).some((part) => part.split("\n").length > lines) ||
  text.split("\n").some((line) => line.split("`").length % 2 === 0);

/** Lines of code of the functions in a text, without blank lines and comments. */
function functionLines(text: string): { line: number; lines: number }[] {
  const found: { line: number; lines: number }[] = [];
  const walk = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    const { type = "", start = 0, end = 0 } = node as { type?: string; start?: number; end?: number };
    if (type.includes("Function")) {
      const own = text.slice(start, end).split("\n");
      const lines = own.filter((line) => line.trim() !== "" && !/^\s*(?:\/\/|\/?\*)/.test(line)).length;
      found.push({ line: text.slice(0, start).split("\n").length, lines });
    }
    for (const child of Object.values(node)) walk(child);
  };
  walk(parseAst(text, { lang: "ts" }).body);
  return found;
}

test("no function of src has more than 100 lines, and at most 33 have more than 60", () => {
  const all = sources.flatMap((file) => {
    const text = readFileSync(join(SRC, file), "utf8");
    return mayExceed(text, 60) ? functionLines(text).map((one) => ({ file, ...one })) : [];
  });
  assert.deepEqual(
    all.filter(({ lines }) => lines > 100),
    [],
  );
  const long = all.filter(({ lines }) => lines > 60);
  assert.ok(
    long.length <= 33,
    `${long.length}: ${long.map(({ file, line }) => `${file}:${line}`).join(", ")}`,
  );
});

test("the reading lists name each file of src once", () => {
  const listed = readEntries(readFileSync(join(ROOT, READING), "utf8")).map(({ file }) => file);
  assert.deepEqual(
    listed.toSorted(),
    sources.toSorted(),
    "test/reading.test.ts says in which list a file belongs",
  );
});

test("the reference has every reason of an audit event, and every member of the configuration", () => {
  const reasons = readFileSync(pageFile("audit/reasons"), "utf8");
  const known = [...reasons.matchAll(/^\| `([a-z0-9_]+)` \|/gm)].map(([, name]) => name);
  const told = new Set(
    ["", "subject_", "actor_", "proof_", "document_", "key_set_"].flatMap((prefix) =>
      known.map((name) => prefix + name),
    ),
  );
  for (const reason of Object.keys(REASONS)) assert.ok(told.has(reason), reason);
  const page = readFileSync(pageFile("config/reference"), "utf8");
  for (const { path } of membersOf(ConfigFile)) {
    // The kinds of sources of a value stand in its own row.
    if (!/\.(?:file|env)$/.test(path)) assert.ok(page.includes(`| \`${path}\` |`), path);
  }
});

test("each notice of the log is told somewhere in src", () => {
  const said = sources
    .filter((name) => name !== join("http", "log-events.ts"))
    .map((name) => readFileSync(join(SRC, name), "utf8"))
    .join("");
  for (const event of Object.keys(NOTICES)) assert.ok(said.includes(`event: "${event}"`), event);
});

/** Each is lowered by what takes away; what raises one says why in its commit. `scripts/node scripts/figures.ts` prints them. */
const FIGURES_MAX = {
  core: 15_040,
  withOptions: 19_390,
  longFunctions: 2,
  membersOfRequest: 12,
  naming: { jobs: 123, details: 145, keys: 75, claims: 24, platforms: 51, refresh: 78, deferral: 35 },
};

test("the core, its longest functions and the files that name an option become no more", () => {
  const { longFunctions, naming, ...rest } = readFigures();
  const counts = Object.entries(naming).map(([option, files]) => [option, files.length] as const);
  const found = { ...rest, longFunctions: longFunctions.length };
  for (const [name, count] of Object.entries(found)) {
    const most = FIGURES_MAX[name as keyof typeof found];
    assert.ok(count <= most, `${name}: ${count}, and at most ${most}`);
  }
  for (const [option, count] of counts) {
    const most = FIGURES_MAX.naming[option as keyof typeof FIGURES_MAX.naming];
    assert.ok(count <= most, `files that name ${option} and are not its own: ${count}, and at most ${most}`);
  }
  assert.deepEqual(
    longFunctions.filter(({ lines }) => lines > 100),
    [],
  );
});

test("the top level holds what it should and nothing else", () => {
  const known = [
    "package.json",
    "package-lock.json",
    "tsconfig.json",
    "src",
    "test",
    "findings",
    "sql",
    "scripts",
    "README.md",
    "LICENSE",
  ];
  const tracked = execFileSync("git", ["ls-files"], { cwd: ROOT, encoding: "utf8" }).split("\n");
  const top = new Set(
    tracked.map((file) => file.split("/")[0] ?? "").filter((name) => name !== "" && !name.startsWith(".")),
  );
  for (const name of top) assert.ok(known.includes(name), `${name} does not belong at the top`);
});

test("each test file runs in one of the processes of npm test", () => {
  const folder = join(ROOT, "test/processes");
  const files = readdirSync(folder).flatMap((name) => {
    const [, patterns = ""] = readFileSync(join(folder, name), "utf8").split("await runFiles(");
    const globs = [...patterns.matchAll(/"([^"]+)"/g)].map(([, pattern]) => `${pattern}.test.ts`);
    for (const glob of globs)
      assert.ok(globSync(glob, { cwd: join(ROOT, "test") }).length > 0, `${name}: ${glob}`);
    return globSync(globs, { cwd: join(ROOT, "test") });
  });
  const all = readdirSync(join(ROOT, "test"), { recursive: true, encoding: "utf8" });
  assert.deepEqual(files.sort(), all.filter((name) => name.endsWith(".test.ts")).sort());
});

test("no test is skipped, left for later or run alone", () => {
  const tests = readdirSync(join(ROOT, "test"), { recursive: true, encoding: "utf8" });
  for (const file of tests.filter((name) => name.endsWith(".test.ts"))) {
    const text = readFileSync(join(ROOT, "test", file), "utf8");
    assert.doesNotMatch(
      text,
      /\b(?:test|it|describe)\.(?:skip|todo|only)\(|\b(?:skip|todo|only): *(?:true|")/,
      file,
    );
  }
});

test("a hook that ends what was made ends each although another one fails or was never made", () => {
  // With `after(() => server.stop())`, a `before` that failed earlier leaves all the rest of the hook undone.
  const ending = /^ *after\((?!\(\) =>\s+stop\()[^;]*\.(?:stop|close|down|remove)\(/gm;
  for (const file of globSync("test/**/*.test.ts", { cwd: ROOT })) {
    assert.deepEqual(readFileSync(join(ROOT, file), "utf8").match(ending), null, file);
  }
});
