/** Ask your user, against the server as users run it: on both stores, with time, and with other rules meanwhile. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type Exchanging, exchange, forAskingAgents, linkIn, PLANNER } from "../support/asking-agents.ts";
import { pageOf } from "../support/deferral.ts";
import { shownBy } from "../support/markup.ts";
import { files } from "../support/people.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { reload } from "../support/reload.ts";
import { stop } from "../support/stop.ts";
import { claimsOf, makeWorld, type World, type WorldOptions } from "../support/world.ts";

let provider: TestProvider;
let database: SharedPostgres;

before(async () => {
  [provider, database] = await Promise.all([startProvider(), sharePostgres()]);
});
after(() => stop(provider, database));

const worldWith = (options: WorldOptions): Promise<World> =>
  makeWorld(forAskingAgents(provider), { files: files(provider), ...options });

describe("on PostgreSQL", () => {
  let world: World;
  before(async () => {
    world = await worldWith({ postgres: await freshDatabase(database) });
  });
  after(() => stop(world));

  test("RFC6749-5.2-12, PAGE-D-23, PROD-2.6-4 an agent is refused, its user gives the consent, and the agent goes on", async () => {
    const refused = await exchange(world, provider, { user: "anna" });
    assert.equal(refused.status, 400);
    assert.equal(refused.headers["cache-control"], "no-store");
    assert.equal(linkIn(await exchange(world, provider, { user: "anna" })), linkIn(refused));
    const { browser, page } = await pageOf(world, provider, linkIn(refused), "anna");
    assert.equal((await browser.decide(page)).status, 200);
    const { sub, act } = claimsOf((await exchange(world, provider, { user: "anna" })).body.access_token);
    assert.deepEqual([sub, act], ["company:anna", { sub: PLANNER }]);
    assert.equal((await browser.decide(page)).status, 409);
  });

  test("PAGE-D-23 of an allowing and a refusing form at the same time one decides", async () => {
    for (let round = 0; round < 5; round++) {
      const user = `user-${round}`;
      const { browser, page } = await pageOf(
        world,
        provider,
        linkIn(await exchange(world, provider, { user })),
        user,
      );
      const both = await Promise.all([
        browser.decide(page),
        browser.decide(page, { decision: "refuse" }),
        browser.decide(page),
      ]);
      // After a refusal the forms from before are stale, since its page is another one.
      const others = both.map(({ status }) => status).filter((status) => status !== 200);
      assert.ok([[409, 409].join(), [403, 403].join()].includes(others.join()), others.join());
      const said = shownBy(both.find(({ status }) => status === 200)?.text ?? "");
      const after = await exchange(world, provider, { user });
      assert.equal(after.status, /You have allowed it/.test(said) ? 200 : 400, said);
      const decided = (await world.events()).filter(
        ({ type, subject }) =>
          /^(?:consent\.recorded|authorization\.denied)$/.test(String(type)) &&
          (subject as { sub?: string }).sub === user,
      );
      assert.equal(decided.length, 1);
    }
  });
});

describe("with other rules meanwhile, and with time", () => {
  let world: World;
  before(async () => {
    world = await worldWith({ clock: true });
  });
  after(() => stop(world));

  const rules = (change: (rule: Record<string, unknown>) => object) =>
    reload(world, ({ policies }) => ({
      policies: (policies as Record<string, unknown>[]).map((rule) =>
        rule.id === "agents-ask" ? change(rule) : rule,
      ),
    }));
  const ask = (asked: Exchanging) => exchange(world, provider, asked);

  test("PAGE-D-23 the user is asked for no more than the agent was refused, and for nothing that no rule gives", async () => {
    await rules((rule) => ({ ...rule, scopes: ["trips.read"] }));
    const { browser, page } = await pageOf(world, provider, linkIn(await ask({ user: "anna" })), "anna");
    const whole = await pageOf(world, provider, linkIn(await ask({ user: "bert" })), "bert");
    await rules((rule) => ({ ...rule, scopes: ["trips.read", "trips.book"] }));
    // The box that takes all.
    await browser.decide(page);
    const given = (await world.events()).filter(({ type }) => type === "consent.recorded");
    assert.deepEqual(
      given.map(({ detail }) => (detail as { scope: string }).scope),
      ["trips.read"],
    );
    await rules((rule) => ({ ...rule, askUser: false }));
    const gone = await whole.browser.decide(whole.page);
    assert.equal(gone.status, 400);
    assert.match(shownBy(gone.text), /There is nothing to decide here/);
    assert.equal((await ask({ user: "bert" })).status, 400);
    assert.equal(linkIn(await ask({ user: "bert" })), "");
    assert.equal((await ask({ user: "anna" })).status, 200);
  });

  test("PAGE-D-23, WCAG-2.2.1-1 a link is good for ten minutes, and can be renewed ten times", async () => {
    await rules((rule) => ({ ...rule, askUser: true }));
    const link = linkIn(await ask({ user: "dora" }));
    const renewed = linkIn(await ask({ user: "emil" }));
    const { browser, page } = await pageOf(world, provider, link, "dora");
    const { browser: emil } = await pageOf(world, provider, renewed, "emil");
    const renew = async () => (await emil.get(`${renewed}&renew=1`)).status;
    for (let round = 1; round < 10; round++) await renew();
    world.pass(300);
    assert.equal(await renew(), 200);
    world.pass(301);
    assert.equal((await browser.decide(page)).status, 400);
    assert.match(shownBy((await browser.get(link)).text), /There is nothing to decide here/);
    // The eleventh time.
    assert.equal(await renew(), 200);
    world.pass(300);
    assert.equal(await renew(), 400);
  });
});
