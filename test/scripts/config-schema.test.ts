import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { configSchema } from "../../scripts/config-schema.ts";
import { makeProfile } from "../../scripts/dev-profile.ts";
import { ConfigFile } from "../../src/config/schema.ts";

type Schema = {
  properties: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | false;
  anyOf?: Schema[];
  oneOf?: Schema[];
};

const parent = mkdtempSync(join(tmpdir(), "mandate schema "));
after(() => rmSync(parent, { recursive: true, force: true }));

const schema = configSchema() as Schema;

test("the schema lists every section and allows no other", () => {
  assert.deepEqual(Object.keys(schema.properties).sort(), Object.keys(ConfigFile.entries).sort());
  assert.equal(schema.additionalProperties, false);
});

test("sections with a default are optional, those without one are required", () => {
  assert.deepEqual(schema.required?.toSorted(), ["audit", "issuer", "keys", "listen", "store", "version"]);
});

test("the schema distinguishes the kinds of target and the modes of rules", () => {
  const target = JSON.stringify(schema.properties.targets);
  for (const kind of ["resource", "partner"]) assert.ok(target.includes(`"const":"${kind}"`), kind);
  const rule = JSON.stringify(schema.properties.policies);
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
