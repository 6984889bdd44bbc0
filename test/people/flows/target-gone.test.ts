/** A target that leaves the configuration while a consent and a job name it: exchange, account, page and list agree. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { runCommandLine } from "../../../scripts/command-line.ts";
import { loadConfig } from "../../../src/config/config.ts";
import type { Settings } from "../../../src/settings/settings.ts";
import {
  asOperator,
  type Exchanging,
  exchange,
  forAskingAgents,
  linkIn,
} from "../../support/asking-agents.ts";
import { shownBy } from "../../support/markup.ts";
import { Browser, files } from "../../support/people.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import type { Service } from "../../support/world.ts";

const API = "https://api.example";
type Config = ReturnType<typeof forAskingAgents>;

let provider: TestProvider;
let service: Service;
/** The settings after a reload. */
let settings: Settings | undefined;

before(async () => {
  provider = await startProvider();
  service = await makeService(forAskingAgents(provider), {
    files: files(provider),
    inFile: true,
    ports: (usual) => ({ settings: () => settings ?? usual.settings() }),
  });
});
after(() => stop(service, provider));

/** Puts the configuration in force that this makes of the one in the file. */
function reload(change: (config: Config) => object): void {
  const config: Config = JSON.parse(readFileSync(service.configFile, "utf8"));
  writeFileSync(service.configFile, JSON.stringify({ ...config, ...change(config) }));
  const loaded = loadConfig(service.configFile);
  assert.ok(loaded.ok, JSON.stringify(loaded));
  settings = loaded.value.settings;
}

const without = ({ targets, policies }: Config): object => ({
  targets: targets.filter(({ names }) => !names.includes(API)),
  policies: policies.map((rule) => ({ ...rule, targets: rule.targets.filter((name) => name !== API) })),
});

const ask = (asked: Exchanging) =>
  exchange(service, provider, { scope: "trips.read", target: API, ...asked });

async function states(): Promise<readonly [text: string, json: string, api: unknown][]> {
  const list = async (...more: string[]) => {
    const run = await runCommandLine(["--config", service.configFile, "consents", "list", ...more]);
    return run.out.split("\n").slice(0, -1);
  };
  const [text, json] = [await list(), await list("--json")];
  const { consents } = (await asOperator(service, "/consents")).body as { consents: { state: string }[] };
  return text.map((line, index) => [
    line.split(" ")[1] ?? "",
    JSON.parse(json[index] ?? "{}").state,
    consents[index]?.state,
  ]);
}

test("PAGE-D-34 of a target that leaves the configuration and comes back, exchange, page, account and all lists say the same", async () => {
  const browser = new Browser(service, provider);
  const job = { form: { mandate_job_request: JSON.stringify({ title: "Trip" }) } };
  for (const asked of [{}, job]) {
    const link = linkIn(await ask(asked));
    const page = await browser.get(link);
    await browser.decide(page.status === 303 ? await browser.signIn(page, "alice") : page);
    assert.equal((await ask(asked)).status, 200);
  }
  // One more is asked, which is open when the target goes.
  const open = linkIn(await ask({ scope: "trips.book" }));
  const asked = new URL(open).pathname + new URL(open).search;
  const account = async () => shownBy((await browser.get("/account")).text);
  assert.match(
    await account(),
    new RegExp(`Job “Trip” .*At ${API} .* it may .*At ${API} .* it may .*Take back`),
  );
  const before = readFileSync(service.configFile, "utf8");

  reload(without);
  assert.equal((await ask({})).body.error, "invalid_target");
  assert.deepEqual(await states(), Array(2).fill(Array(3).fill("target-gone")));
  const gone = await account();
  assert.match(gone, new RegExp(`Job “Trip” Gives nothing at present, .*: ${API} .*Stop this job`));
  assert.equal(gone.split("Gives nothing at present").length, 3);
  assert.match(gone, /Take back/);
  assert.ok(!gone.includes(" it may "), gone);
  assert.match(shownBy((await browser.get(asked)).text), /nothing to decide here/);

  // The target is back without the scope.
  reload(() => {
    const { targets, policies }: Config = JSON.parse(before);
    const less = targets.map((one) => (one.names.includes(API) ? { ...one, scopes: ["trips.book"] } : one));
    return { targets: less, policies };
  });
  assert.equal((await ask({})).body.error, "invalid_scope");
  assert.deepEqual(await states(), Array(2).fill(Array(3).fill("target-gone")));
  assert.equal((await account()).split("Gives nothing at present").length, 3);

  reload(() => JSON.parse(before));
  assert.equal((await ask({})).status, 200);
  assert.deepEqual(await states(), Array(2).fill(Array(3).fill("in-force")));
  assert.ok(!(await account()).includes("Gives nothing"));
});
