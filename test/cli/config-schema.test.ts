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
