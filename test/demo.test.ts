/** The demo, as a newcomer runs it. */
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { makeProfile } from "../scripts/dev-profile.ts";
import { FILE, makePicture } from "../scripts/picture.ts";
import { freePorts, startServer } from "../scripts/server-process.ts";
import { openStandIn } from "../scripts/stand-in.ts";

const SCRIPT = join(import.meta.dirname, "../scripts/demo.ts");
const TIMEOUT_MS = 800_000;

// Side by side, because the demo waits for a grant to expire.
describe("npm run demo", { concurrency: true, timeout: TIMEOUT_MS }, () => {
  test("npm run demo exits with 0 and prints chains of three actors, one with an agent of a platform, and that alice is gone", async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [SCRIPT]);
    assert.match(
      stdout,
      /crew\/ana",\s+"act": \{\s+"sub": "[^"]*agents\/booking",\s+"act": \{\s+"sub": "[^"]*agents\/planner"/,
    );
    // PLAT-D-11, PLAT-D-17: across the border, between a workload before it and one after it.
    assert.match(
      stdout,
      /agents\/booking",\s+"iss": "[^"]+",\s+"act": \{\s+"sub": "platform:\/\/acme\/agent%2F7f3d",\s+"iss": "[^"]+",\s+"act": \{\s+"sub": "[^"]*agents\/planner"/,
    );
    // SSF-D-8: alice is kept out, an API that verifies offline is told within two seconds, and bob is not concerned.
    const told = stdout.replaceAll(/\s+/g, " ");
    assert.match(told, /refuses her token 1?\d{1,3} ms after the event/);
    assert.match(
      told,
      /token_exchange\.denied deny subject_disabled client=\S+crew\/ana \("Crew"\) subject=alice/,
    );
    assert.match(
      told,
      /signal\.received allow by_issuer accepted_until=\S+ ends=\(every token about the subject alice/,
    );
  });

  test("npm run demo -- --against URL runs against a running server", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "mandate demo "));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const [port = 0, idpPort = 0, mtlsPort = 0] = await freePorts(3);
    const options = { port, idpPort, people: { mtlsPort } };
    const { configFile, issuer } = await makeProfile(join(folder, "data"), options);
    const standIn = await openStandIn(join(folder, "data"));
    t.after(() => standIn?.close());
    const server = await startServer(configFile);
    t.after(() => server.stop());
    const play = () =>
      spawn(process.execPath, [SCRIPT, "--against", issuer], { cwd: folder, stdio: "ignore" });
    assert.ok(existsSync(join(folder, "data/idp/idp.json")));
    for (let round = 0; round < 2; round++) {
      const [code] = await once(play(), "exit");
      assert.equal(code, 0);
    }
  });
});

test("the picture of README is what its script draws from the tokens of a run", async () => {
  assert.equal(await makePicture(), readFileSync(FILE, "utf8"));
});
