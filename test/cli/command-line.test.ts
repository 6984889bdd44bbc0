/** The command line of the process: which command it names, its help, and what is refused. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type HostRun, runCommandLine } from "../../scripts/command-line.ts";
import { readCommandLine } from "../../src/cli/command-line.ts";
import { COMMANDS, SERVE } from "../../src/cli/commands.ts";
import { helpOf } from "../../src/cli/help.ts";
import { formsOf, optionsOf } from "../../src/cli/options.ts";
import { word } from "../../src/cli/text.ts";
import { parseCommand, spawnCommandLine } from "../support/host.ts";

const run = (...words: string[]): Promise<HostRun> => runCommandLine(words);

const served: readonly (readonly [words: string[], configFile: string])[] = [
  [["--config", "a.json"], "a.json"],
  [["--config=a.json"], "a.json"],
  [["serve"], "data/config.json"],
  [["serve", "--config", "a.json"], "a.json"],
  [["--config", "a.json", "serve"], "a.json"],
];
for (const [words, configFile] of served) {
  test(`"mandate ${words.join(" ")}" starts the server`, () => {
    assert.deepEqual(readCommandLine(words), { kind: "serve", configFile });
  });
}

test("`mandate` alone prints the help of all commands", async () => {
  assert.deepEqual(readCommandLine([]), { kind: "help" });
  assert.deepEqual(await run(), await run("--help"));
});

test("every command has a row: its help names each option of its forms, and its example is accepted", async () => {
  for (const usage of [SERVE, ...COMMANDS.map((row) => row.usage)]) {
    const help = helpOf(usage, (heading) => heading);
    const [forms, described] = [formsOf(usage), optionsOf(usage)];
    for (const { words, requires, options } of forms) {
      assert.ok(help.includes(["mandate", usage.name, ...words].join(" ")), help);
      for (const option of [...requires, ...options]) {
        assert.ok(described.has(option), `${usage.name} --${option} is not described`);
        assert.match(help, new RegExp(`^  --${option}\\b`, "m"));
      }
    }
    const unused = [...described.keys()].filter(
      (option) => !forms.some(({ requires, options }) => [...requires, ...options].includes(option)),
    );
    assert.deepEqual(unused, [], usage.name);
    for (const line of help.split("\n")) assert.ok(line.length <= 110 || /example/i.test(line), line);
    // As a shell reads it: quotes hold a value together, and what follows > is not an argument.
    const words = [...(usage.example.split(" > ")[0] ?? "").matchAll(/"([^"]*)"|(\S+)/g)].map(
      ([, quoted, bare]) => quoted ?? bare ?? "",
    );
    assert.equal(words.shift(), "mandate");
    if (usage === SERVE) assert.equal(readCommandLine(words).kind, "serve");
    else assert.ok((await parseCommand(words)).ok, usage.example);
  }
});

test("--help and --version answer on standard output and exit with 0, without colours where that is no terminal", async () => {
  const all = await spawnCommandLine(["--help"]);
  assert.deepEqual([all.code, all.err], [0, ""]);
  for (const { usage } of COMMANDS)
    assert.match(all.out, new RegExp(`^  ${usage.name} +${usage.summary.slice(0, 20)}`, "m"));
  const one = await run("tokens", "end", "--help");
  assert.deepEqual([one.code, one.err], [0, ""]);
  assert.match(one.out, /^mandate tokens: /);
  assert.match((await run("serve", "--help")).out, /^mandate serve: /);
  assert.ok(!all.out.includes("\u001b") && !one.out.includes("\u001b"));
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../../package.json"), "utf8"));
  assert.deepEqual(await run("--version"), {
    code: 0,
    out: `mandate ${version} (from its sources)\n`,
    err: "",
  });
});

const wrong: readonly (readonly [words: string[], first: RegExp, usage: RegExp])[] = [
  [["serv"], /^unknown command "serv"$/, /^ {2}tokens +ends/m],
  [["--port", "1"], /^Unknown option '--port'$/, /^ {2}serve +starts/m],
  [["--config"], /^Option '--config <value>' argument missing$/, /^ {2}serve +starts/m],
  [["serve", "now"], /^unknown command "serve now"$/, /^ {2}mandate serve \[--config FILE\]$/m],
  [["serve", "--port", "1"], /^Unknown option '--port'$/, /^ {2}mandate serve \[--config FILE\]$/m],
  [["audit", "verify", "--port"], /^Unknown option '--port'$/, /^ {2}mandate audit verify /m],
  [["tokens"], /^"tokens" requires one of: end, enable, disabled, show$/, /^ {2}mandate tokens show JTI/m],
  [
    ["tokens", "enable", "--issuer", "https://idp.example"],
    /^"tokens enable" requires --issuer, --subject$/,
    /^ {2}mandate tokens enable --issuer ISS --subject SUB \[--json\] \[--config FILE\]$/m,
  ],
  [
    ["clients", "initial-token", "create"],
    /^"clients initial-token create" requires --class$/,
    /^ {2}mandate clients initial-token create --class NAME/m,
  ],
];
for (const [words, first, usage] of wrong) {
  test(`"mandate ${words.join(" ")}" is refused with one line and the usage, and exits with 2`, async () => {
    const { code, out, err } = await run(...words);
    assert.deepEqual([code, out], [2, ""]);
    const [line = "", blank, ...more] = err.split("\n");
    assert.match(line, first);
    assert.equal(blank, "");
    assert.match(more.join("\n"), usage);
  });
}

test("a file that a command cannot use is named with its fault, in one line", async () => {
  for (const [words, fault] of [
    [
      ["audit", "verify", "--export", "/none"],
      "/none: there is no such file or folder: correct its name, or make it",
    ],
    [
      ["audit", "verify", "--export", import.meta.dirname],
      `${word(import.meta.dirname)}: it is a folder: name a file`,
    ],
  ] as const) {
    const { code, out, err } = await spawnCommandLine(words);
    assert.deepEqual([code, out], [2, ""], err);
    assert.ok(err.includes(`${fault}\n`), err);
    assert.doesNotMatch(err, /ENOENT|EISDIR|\n {4}at /);
  }
});

test("audit refuses a type that no event has, and names those that there are", async () => {
  const command = await parseCommand(["audit", "--type", "token.isued"]);
  assert.ok(!command.ok);
  assert.match(command.error, /^--type is not a type of event: .*\btoken\.issued\b/);
  assert.ok((await parseCommand(["audit", "--type", "token.issued"])).ok);
});
