/** Deferred token responses, against the server as users run it: an agent waits, its user decides, the agent polls. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openStore } from "../../src/adapters/store/open.ts";
import type { Store } from "../../src/adapters/store/store.ts";
import { exchange, linkIn, PLANNER } from "../support/asking-agents.ts";
import { answerLink, cancel, forDeferral, outcome, pageOf, poll, waitFor } from "../support/deferral.ts";
import { shownBy } from "../support/markup.ts";
import { Browser, files } from "../support/people.ts";
import { freshDatabase, type SharedPostgres, sharePostgres } from "../support/postgres.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { stop } from "../support/stop.ts";
import {
  ACCESS_TOKEN,
  claimsOf,
  ISSUER,
  makeWorld,
  type World,
  type WorldOptions,
} from "../support/world.ts";

let provider: TestProvider;
let database: SharedPostgres;

before(async () => {
  [provider, database] = await Promise.all([startProvider(), sharePostgres()]);
});
after(() => stop(provider, database));

const worldWith = (options: WorldOptions): Promise<World> =>
  makeWorld(forDeferral(provider), { files: files(provider), ...options });

const ofType = async (world: World, type: string) =>
  (await world.events()).filter((event) => event.type === type);

for (const store of ["SQLite", "PostgreSQL"] as const) {
  describe(`on ${store}`, () => {
    let world: World;
    let postgres: string | undefined;
    before(async () => {
      postgres = store === "SQLite" ? undefined : await freshDatabase(database);
      world = await worldWith({ clock: true, ...(postgres === undefined ? {} : { postgres }) });
    });
    after(() => stop(world));
    async function opened<T>(read: (store: Store) => Promise<T>): Promise<T> {
      const place = postgres === undefined ? { sqlite: join(world.folder, "mandate.sqlite") } : { postgres };
      const store = await openStore(place);
      return read(store).finally(() => store.close());
    }

    test("DTR-6.4-1, DTR-4.1-2, DTR-6.6-1, DTR-6.6-3, DTR-6.5-3, DTR-9.3-1 an agent waits, its user allows, and the poll gives the exchange's own answer", async (t) => {
      const waiting = await waitFor(world, provider, { user: "anna", scope: "trips.read" });
      const { answer, code, link } = waiting;
      assert.match(code, /^mdc_[A-Za-z0-9_-]{43}$/);
      assert.match(link, /^https:\/\/as\.example\/ask\?r=[A-Za-z0-9_-]{43}$/);
      assert.ok(Number(answer.body.expires_in) > 290 && Number(answer.body.expires_in) <= 300);
      assert.deepEqual([answer.body.interval, answer.body.error_uri], [10, undefined]);
      assert.equal(answer.headers["cache-control"], "no-store");
      const pending = await poll(world, waiting);
      assert.deepEqual(pending.body, {
        error: "interaction_required",
        error_description: "the user has not decided",
        interaction_uri: link,
      });
      assert.equal(pending.headers["cache-control"], "no-store");
      assert.equal((await answerLink(world, provider, link, "allow", "anna")).status, 200);
      world.pass(10);
      const granted = await poll(world, waiting);
      assert.equal(granted.status, 200, granted.text);
      const { access_token: token, expires_in: seconds, ...members } = granted.body;
      assert.deepEqual(members, {
        token_type: "Bearer",
        scope: "trips.read",
        issued_token_type: ACCESS_TOKEN,
      });
      assert.ok(Number(seconds) <= 290);
      const { sub, act } = claimsOf(token);
      assert.deepEqual([sub, act], ["company:anna", { sub: PLANNER }]);
      world.pass(10);
      const again = await poll(world, waiting);
      assert.deepEqual([again.status, again.body.error], [400, "invalid_grant"]);
      assert.match(String(again.body.error_description), /gave a token before/);
      await t.test("DTR-D-15 the events name the question, the consent and no code", async () => {
        const [opened] = await ofType(world, "deferral.opened");
        const [given] = await ofType(world, "deferral.granted");
        const [consent] = await ofType(world, "consent.recorded");
        const asked = (event: unknown) =>
          (event as { policy: { asked: { pending: string } } }).policy.asked.pending;
        assert.deepEqual(opened?.detail, given?.detail);
        assert.deepEqual([asked(opened), asked(consent)], [asked(given), asked(given)]);
        assert.deepEqual(given?.requested, opened?.requested);
        const consentOf = (event: unknown) => (event as { policy: { consent: string } }).policy.consent;
        assert.equal(consentOf(given), consentOf(consent));
        assert.equal(JSON.stringify(await world.events()).includes(code), false);
      });
    });

    test("DTR-12.2-1, DTR-11.8-1, DTR-D-1 what is kept of a request that waits has no code and no token, and goes when it ends", async () => {
      const user = "berta";
      const token = await provider.userToken(user, ISSUER, {
        scope: "trips.read",
        secret_claim: "of the user",
      });
      const waiting = await waitFor(world, provider, { user, token });
      const link = new URL(waiting.link).searchParams.get("r") ?? "";
      const kept = await opened(async ({ shortLived }) => shortLived.find("deferral", link, 0));
      const text = JSON.stringify(kept);
      assert.ok(kept !== undefined);
      for (const secret of [waiting.code, token, "of the user"]) assert.equal(text.includes(secret), false);
      await answerLink(world, provider, waiting.link, "allow", user);
      assert.equal(outcome(await poll(world, waiting)), "token");
      const left = await opened(async ({ shortLived }) => [
        await shortLived.find("deferral", link, 0),
        (await shortLived.find("deferral_end", link, 0))?.body,
      ]);
      assert.equal(left[0], undefined);
      assert.deepEqual(Object.keys(left[1] ?? {}).sort(), [
        "by",
        "clientId",
        "endsAtSeconds",
        "question",
        "workload",
      ]);
    });

    test("DTR-D-9 what the user refuses ends the wait, and the question is not opened again for an hour", async () => {
      const user = "bert";
      const waiting = await waitFor(world, provider, { user });
      await answerLink(world, provider, waiting.link, "refuse", user);
      assert.equal(outcome(await poll(world, waiting)), "access_denied");
      world.pass(10);
      assert.equal(outcome(await poll(world, waiting)), "access_denied");
      const again = await exchange(world, provider, { user, form: { completion_mode: "deferred" } });
      assert.equal(outcome(again), "invalid_request");
      assert.deepEqual([again.body.error_uri, again.body.interaction_uri], [undefined, undefined]);
      const refused = (await ofType(world, "deferral.refused")).slice(-2);
      assert.deepEqual(
        refused.map(({ reason }) => reason),
        ["consent_missing", "deferral_refused"],
      );
    });

    test("DTR-8.2-1, DTR-8.2-2, DTR-D-14 a cancelled code gives nothing, and a click that comes later records nothing", async () => {
      const user = "cora";
      const waiting = await waitFor(world, provider, { user });
      const { browser, page } = await pageOf(world, provider, waiting.link, user);
      const strange = await cancel(world, waiting, { path: "agents/booking" });
      assert.deepEqual([strange.status, strange.text], [200, "{}"]);
      assert.equal(outcome(await poll(world, waiting)), "interaction_required");
      assert.equal((await cancel(world, waiting)).status, 200);
      assert.equal((await cancel(world, waiting)).status, 200);
      world.pass(10);
      assert.equal(outcome(await poll(world, waiting)), "access_denied");
      const late = await browser.decide(page);
      assert.match(shownBy(late.text), /There is nothing to decide here/);
      assert.equal(outcome(await exchange(world, provider, { user })), "invalid_request");
      assert.equal((await ofType(world, "deferral.cancelled")).length, 1);
      assert.equal((await cancel(world, { code: `mdc_${"a".repeat(43)}` })).status, 200);
    });

    test("DTR-8.2-3, DTR-8.2-4 what was granted and not fetched is not given after a cancellation, and what was delivered stays", async () => {
      const user = "dora";
      const waiting = await waitFor(world, provider, { user });
      await answerLink(world, provider, waiting.link, "allow", user);
      assert.equal((await cancel(world, waiting)).status, 200);
      assert.equal(outcome(await poll(world, waiting)), "access_denied");
      const other = await waitFor(world, provider, { user: "dirk" });
      await answerLink(world, provider, other.link, "allow", "dirk");
      const { body } = await poll(world, other);
      assert.equal((await cancel(world, other)).status, 200);
      const onward = await exchange(world, provider, {
        own: body.access_token,
        path: "agents/booking",
        target: "https://api.example",
      });
      // It is the consent of the next agent that is missing, and not the token.
      assert.notEqual(linkIn(onward), "");
    });

    test("DTR-6.4-3, DTR-D-2, DTR-D-5 a code lasts no longer than the token that the agent brought", async () => {
      const user = "emil";
      const exp = Math.floor(world.nowMs() / 1000) + 40;
      const token = await provider.userToken(user, ISSUER, { scope: "trips.read", exp });
      const waiting = await waitFor(world, provider, { user, token });
      assert.ok(Number(waiting.answer.body.expires_in) <= 40);
      const { browser, page } = await pageOf(world, provider, waiting.link, user);
      world.pass(41);
      assert.equal(outcome(await poll(world, waiting)), "expired_token");
      const gone = await browser.get(waiting.link);
      assert.match(shownBy(gone.text), /There is nothing to decide here/);
      // DTR-D-2: the page that is open is answered, and the next token is given at once.
      assert.equal((await browser.decide(page)).status, 200);
      world.pass(10);
      assert.equal(outcome(await poll(world, waiting)), "expired_token");
      const fresh = await provider.userToken(user, ISSUER, {
        scope: "trips.read",
        exp: Math.floor(world.nowMs() / 1000) + 100,
      });
      assert.equal(outcome(await exchange(world, provider, { user, token: fresh })), "token");
      const brief = await provider.userToken("ella", ISSUER, {
        scope: "trips.read",
        exp: Math.floor(world.nowMs() / 1000) + 29,
      });
      const refused = await exchange(world, provider, {
        token: brief,
        form: { completion_mode: "deferred" },
      });
      assert.deepEqual([outcome(refused), refused.body.deferral_code], ["invalid_request", undefined]);
    });

    test("DTR-D-13 the account page lists what the user is asked, and leads to the page where it is decided", async () => {
      const user = "ines";
      const waiting = await waitFor(world, provider, { user, scope: "trips.book" });
      const browser = new Browser(world, provider);
      const account = await browser.signIn(await browser.get("/account"), user);
      const shown = shownBy(account.text);
      assert.match(shown, /What you are asked/);
      assert.match(shown, /At the booking agent it asks to\s+book trips for you/);
      const [, page = ""] = /href="([^"]*\/ask\?r=[^"]*)"/.exec(account.text) ?? [];
      assert.equal((await browser.decide(await browser.get(page))).status, 200);
      assert.equal(outcome(await poll(world, waiting)), "token");
      assert.doesNotMatch(shownBy((await browser.get("/account")).text), /What you are asked/);
      // Another user is asked nothing.
      await waitFor(world, provider, { user: "ivan" });
      assert.doesNotMatch(shownBy((await browser.get("/account")).text), /What you are asked/);
    });

    test("DTR-6.5-1, DTR-6.6-2, DTR-D-8 the code of another agent is refused as an unknown one is", async () => {
      const waiting = await waitFor(world, provider, { user: "fred" });
      const foreign = await poll(world, waiting, { path: "agents/booking" });
      const unknown = await poll(world, { code: `mdc_${"b".repeat(43)}` });
      assert.deepEqual([foreign.status, foreign.body], [unknown.status, unknown.body]);
      assert.equal(outcome(foreign), "invalid_grant");
      assert.equal(outcome(await poll(world, waiting)), "interaction_required");
    });

    test("DTR-6.5-4, DTR-4.1-1 a poll with anything of the first request is refused, and changes nothing", async () => {
      const waiting = await waitFor(world, provider, { user: "gerd", scope: "trips.read" });
      const wider = [
        { scope: "trips.read trips.book" },
        { audience: "https://api.example" },
        { resource: "https://api.example" },
        { completion_mode: "deferred" },
        { requested_token_type: ACCESS_TOKEN },
        { mandate_reason: "more" },
      ];
      for (const form of wider) {
        const refused = await poll(world, waiting, { form });
        assert.equal(outcome(refused), "invalid_request");
      }
      assert.equal(outcome(await poll(world, { code: "" })), "invalid_request");
      assert.equal(outcome(await poll(world, { code: "mdc_x" })), "invalid_grant");
      assert.equal(outcome(await poll(world, waiting)), "interaction_required");
    });

    test("DTR-11.3-1, DTR-D-10 a poll that comes too soon is slowed down, and one that waits is not recorded", async () => {
      const waiting = await waitFor(world, provider, { user: "hugo" });
      const before = (await world.events()).length;
      assert.equal(outcome(await poll(world, waiting)), "interaction_required");
      assert.equal(outcome(await poll(world, waiting)), "slow_down");
      world.pass(10);
      assert.equal(outcome(await poll(world, waiting)), "slow_down");
      world.pass(10);
      assert.equal(outcome(await poll(world, waiting)), "interaction_required");
      assert.equal((await world.events()).length, before);
    });

    test("JOB-D-4, JOB-D-8 an agent that waits for the approval of a job polls until it has its token, which is of the job", async () => {
      const asked = {
        user: "jobst",
        scope: "trips.read",
        form: { mandate_job_request: '{"title":"while I wait"}' },
      };
      const waiting = await waitFor(world, provider, asked);
      assert.equal((await poll(world, waiting)).body.error, "interaction_required");
      assert.equal((await answerLink(world, provider, waiting.link, "allow", "jobst")).status, 200);
      world.pass(10);
      const granted = await poll(world, waiting);
      assert.equal(granted.status, 200, granted.text);
      const { id } = claimsOf(granted.body.access_token).mandate_job as { id: string };
      assert.equal(granted.body.mandate_job_id, id);
      const [approved] = (await ofType(world, "job.approved")).slice(-1);
      assert.deepEqual(approved?.job, { id });
    });
  });
}
