/** The people's wing in a server that runs: what is loaded of it, when, and what is at its paths without it. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { after, before, type TestContext, test } from "node:test";
import { type Sent, send } from "../../scripts/http-client.ts";
import { startServer } from "../../scripts/server-process.ts";
import { files, forPeople } from "../support/people.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { stop } from "../support/stop.ts";
import { makeSurroundings } from "../support/world.ts";

const PRELOAD = `--import=${import.meta.resolve("../support/told-modules.ts")}`;

let provider: TestProvider;
before(async () => {
  provider = await startProvider();
});
after(() => stop(provider));

/** A server without sign-in in a process of its own. `gone`: a file of `src` that it does not find. */
async function startWithout(t: TestContext, { gone = "" } = {}) {
  const { signIn, policies, clients, ...without } = forPeople(provider);
  const surroundings = await makeSurroundings(without, { files: files(provider) });
  const { configFile, issuer, ca } = surroundings;
  const NODE_OPTIONS = `${process.env.NODE_OPTIONS ?? ""} ${PRELOAD}`;
  const server = await startServer(configFile, { environment: { NODE_OPTIONS, MANDATE_TEST_GONE: gone } });
  t.after(async () => {
    await server.stop();
    await surroundings.remove();
  });
  const connect = { host: "127.0.0.1", port: server.port };
  return {
    ask: (path: string, how: Partial<Sent> = {}) => send(issuer + path, { ca, connect, ...how }),
    /** The lines by which another configuration was refused. */
    async reload(change: object): Promise<readonly string[]> {
      writeFileSync(
        configFile,
        JSON.stringify({ ...JSON.parse(readFileSync(configFile, "utf8")), ...change }),
      );
      return server.reload();
    },
    withPeople: { signIn, policies, clients },
    loaded: () => server.errors.flatMap((line) => /^loaded (.+)$/.exec(line)?.[1] ?? []),
  };
}

const NO_PEOPLE = { signIn: undefined, policies: [], clients: {} };

const ofPeople = (modules: readonly string[]): readonly string[] =>
  modules.filter((name) => name.startsWith("people/"));

/** The paths of the wing, with the methods that each serves. */
const PATHS: readonly [path: string, allowed: string][] = [
  ["/authorize", "GET, HEAD"],
  ["/authorize/review", "GET, HEAD, POST"],
  ["/ask", "GET, HEAD, POST"],
  ["/par", "POST"],
  ["/signin", "GET, HEAD"],
  ["/callback/company", "GET, HEAD"],
  ["/signout", "POST"],
  ["/signed-out", "GET, HEAD"],
  ["/account", "GET, HEAD"],
  ["/account/withdraw", "POST"],
  ["/backchannel-logout/company", "POST"],
  ["/rp/jwks/company", "GET, HEAD"],
];

test("PROD-4.4-12 a server without signIn loads no file of the people's wing, and nothing is found at its paths", async (t) => {
  const { ask, loaded } = await startWithout(t);
  for (const [path, allowed] of PATHS) {
    for (const method of allowed.split(", ").filter((one) => one !== "HEAD")) {
      const { status, body, headers } = await ask(path, { method });
      assert.equal(status, 404, `${method} ${path}`);
      assert.equal(body.error_description, "there is nothing at this path");
      assert.equal(headers["content-type"], "application/json");
    }
    const { status, headers } = await ask(path, { method: "DELETE" });
    assert.deepEqual([status, headers.allow], [405, allowed], path);
  }
  const modules = loaded();
  assert.ok(modules.includes("start/people.ts"));
  assert.deepEqual(ofPeople(modules), []);
  t.diagnostic(`${modules.length} modules`);
});

test("PROD-4.4-12 a reload that configures signIn for the first time loads the people's wing, and one without it ends it again", async (t) => {
  const { ask, reload, loaded, withPeople } = await startWithout(t);
  assert.deepEqual(ofPeople(loaded()), []);
  assert.deepEqual(await reload(withPeople), []);
  assert.equal((await ask("/authorize")).status, 400);
  assert.equal((await ask("/rp/jwks/company")).status, 200);
  const { status, headers } = await ask("/authorize", { method: "DELETE" });
  assert.deepEqual([status, headers["content-type"]], [405, "text/html; charset=utf-8"]);
  const modules = loaded();
  for (const name of ["door", "http/authorize", "pages/consent-page", "flows/refresh", "adapters/providers"])
    assert.ok(modules.includes(`people/${name}.ts`), name);
  t.diagnostic(`${modules.length} modules, ${ofPeople(modules).length} of them of the people's wing`);
  assert.deepEqual(await reload(NO_PEOPLE), []);
  assert.equal((await ask("/authorize")).status, 404);
});

test("a reload that configures signIn when the people's wing cannot be loaded any more is refused, and the server serves on", async (t) => {
  const { ask, reload, withPeople } = await startWithout(t, { gone: "people/http/par.ts" });
  const [refused, ...more] = await reload(withPeople);
  assert.match(refused ?? "", /^not reloaded: signIn: .*: restart the server$/);
  assert.deepEqual(more, []);
  assert.equal((await ask("/authorize")).status, 404);
  const { body } = await ask("/.well-known/oauth-authorization-server");
  assert.ok(!("authorization_endpoint" in body));
  // The next one is looked at as if there had been none.
  assert.deepEqual(await reload(NO_PEOPLE), []);
});
