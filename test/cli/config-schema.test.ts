import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { makeProfile } from "../../scripts/dev-profile.ts";
import { ConfigFile } from "../../src/config/schema.ts";
import { parseCommand } from "../support/host.ts";

type Schema = {
  title?: string;
  description?: string;
  default?: unknown;
  maximum?: number;
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | false;
  anyOf?: Schema[];
  oneOf?: Schema[];
};

const parent = mkdtempSync(join(tmpdir(), "mandate schema "));
after(() => rmSync(parent, { recursive: true, force: true }));

/** The file that the server comes with; test/repo.test.ts compares it with the sources. */
const text = readFileSync(join(import.meta.dirname, "../../src/config/config.schema.json"), "utf8");
const schema: Schema = JSON.parse(text);

test("config-schema prints the schema as it stands in the file", async () => {
  const command = await parseCommand(["config-schema"]);
  assert.ok(command.ok && command.value.on === "files");
  const printed: string[] = [];
  const terminal = { print: (line: string) => printed.push(line), printError: assert.fail };
  assert.equal(await command.value.run(terminal), 0);
  assert.equal(`${printed.join("\n")}\n`, text);
});

test("the schema lists every section and allows no other", () => {
  assert.deepEqual(Object.keys(schema.properties ?? {}).sort(), Object.keys(ConfigFile.entries).sort());
  assert.equal(schema.additionalProperties, false);
});

/** The path of each member that has no description, at any depth. */
function undescribed(node: Schema, path = ""): string[] {
  const members = Object.entries(node.properties ?? {}).flatMap(([name, member]) => [
    ...(member.description === undefined ? [`${path}${name}`] : []),
    ...undescribed(member, `${path}${name}.`),
  ]);
  const below = [node.items, node.additionalProperties, ...(node.anyOf ?? []), ...(node.oneOf ?? [])];
  return [
    ...members,
    ...below.flatMap((one) => (typeof one === "object" ? undescribed(one, `${path}*.`) : [])),
  ];
}

test("the schema has a title, and every member of it a description for editors", () => {
  assert.equal(schema.title, "Configuration of Mandate");
  assert.deepEqual(undescribed(schema), []);
});

/** The node and all below it. */
function nodesOf(node: Schema): Schema[] {
  const { properties = {}, items, additionalProperties, anyOf = [], oneOf = [] } = node;
  const below = [...Object.values(properties), items, additionalProperties, ...anyOf, ...oneOf];
  return [node, ...below.flatMap((one) => (typeof one === "object" ? nodesOf(one) : []))];
}

test("a number that a description calls the default, or the most, is that of the schema", () => {
  const said = nodesOf(schema).flatMap(({ description = "", default: byDefault, maximum }) => {
    const [, least] = /[;:] (\d+) by default/.exec(description) ?? [];
    const [, most] = /, (\d+) at most/.exec(description) ?? [];
    return [
      ...(least === undefined || typeof byDefault !== "number"
        ? []
        : [[description, byDefault, Number(least)]]),
      ...(most === undefined || maximum === undefined ? [] : [[description, maximum, Number(most)]]),
    ];
  });
  assert.ok(said.length > 20, String(said.length));
  for (const [description, is, told] of said) assert.equal(told, is, String(description));
});

test("sections with a default are optional, those without one are required", () => {
  assert.deepEqual(schema.required?.toSorted(), ["audit", "issuer", "keys", "listen", "store", "version"]);
});

test("the schema distinguishes the kinds of target and the modes of rules", () => {
  const target = JSON.stringify(schema.properties?.targets);
  for (const kind of ["resource", "partner"]) assert.ok(target.includes(`"const":"${kind}"`), kind);
  const rule = JSON.stringify(schema.properties?.policies);
  for (const mode of ["client_credentials", "delegation", "impersonation", "redemption"]) {
    assert.ok(rule.includes(`"const":"${mode}"`), mode);
  }
});

test("the development profile refers to the schema file beside its configuration", async () => {
  const folder = join(parent, "data");
  const { configFile } = await makeProfile(folder);
  const config = JSON.parse(readFileSync(configFile, "utf8"));
  const beside = JSON.parse(readFileSync(join(folder, config.$schema), "utf8"));
  assert.deepEqual(beside, schema);
});
