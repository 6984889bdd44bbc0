/** A refusal at the link of an agent: one entry, which its user may take back until a client that waits was told. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Ports, StoreUnavailable } from "../../../src/ports.ts";
import { exchange, linkIn } from "../../support/asking-agents.ts";
import { cancel, forDeferral, outcome, pageOf, poll, waitFor } from "../../support/deferral.ts";
import { shownBy } from "../../support/markup.ts";
import { files } from "../../support/people.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { makeService } from "../../support/service.ts";
import { stop } from "../../support/stop.ts";
import type { Service } from "../../support/world.ts";

let provider: TestProvider;
let service: Service;
/** What happens once before the next entry with an event of a type is written. */
let meanwhile: { type: string; happens: () => Promise<void> } | undefined;
/** The entry with an event of this type that is lost, before or after it is written. */
let loses: { type: string; isWritten: boolean } | undefined;

before(async () => {
  provider = await startProvider();
  const ports = ({ journal }: Ports): Partial<Ports> => ({
    journal: {
      async record(entry, deadline) {
        const due = meanwhile?.type === entry.event.type ? meanwhile : undefined;
        if (due !== undefined) {
          meanwhile = undefined;
          await due.happens();
        }
        if (loses?.type !== entry.event.type) return journal.record(entry, deadline);
        const { isWritten } = loses;
        loses = undefined;
        if (isWritten) await journal.record(entry, deadline);
        throw new StoreUnavailable("lost");
      },
    },
  });
  service = await makeService(forDeferral(provider), { files: files(provider), ports });
});
after(() => stop(service, provider));

async function refuses(user: string, link: string) {
  const { browser, page } = await pageOf(service, provider, link, user);
  const refused = await browser.decide(page, { decision: "refuse" });
  assert.match(shownBy(refused.text), /You have refused/);
  return browser;
}

test("PAGE-D-23, DTR-D-9 a refusal that no client was told is taken back, and the client that waits gets its token", async () => {
  const waiting = await waitFor(service, provider, { user: "ada" });
  const browser = await refuses("ada", waiting.link);
  const again = await browser.get(waiting.link);
  assert.match(shownBy(again.text), /You have refused this/);
  assert.match(shownBy((await browser.decide(again)).text), /You have allowed it/);
  assert.equal(outcome(await poll(service, waiting)), "token");
});

test("PAGE-D-23, DTR-D-9 a refusal that one client was told stands, also behind the link of another one that waits", async () => {
  const [told, other] = [
    await waitFor(service, provider, { user: "bea" }),
    await waitFor(service, provider, { user: "bea" }),
  ];
  const browser = await refuses("bea", other.link);
  const again = await browser.get(other.link);
  assert.equal(outcome(await poll(service, told)), "access_denied");
  assert.equal((await browser.decide(again)).status, 409);
  assert.match(shownBy((await browser.get(other.link)).text), /You have refused this/);
  assert.equal(outcome(await poll(service, other)), "access_denied");
});

test("PAGE-D-46 the link of a code that was answered says what its user decided, and nothing to another user", async () => {
  const [refused, allowed] = [
    await waitFor(service, provider, { user: "eve" }),
    await waitFor(service, provider, { user: "eve", scope: "trips.read" }),
  ];
  const browser = await refuses("eve", refused.link);
  assert.equal(outcome(await poll(service, refused)), "access_denied");
  assert.match(shownBy((await browser.decide(await browser.get(allowed.link))).text), /You have allowed it/);
  assert.equal(outcome(await poll(service, allowed)), "token");
  const pages = [await browser.get(refused.link), await browser.get(allowed.link)];
  assert.deepEqual(
    pages.map(({ status }) => status),
    [409, 409],
  );
  assert.match(shownBy(pages[0]?.text ?? ""), /You have refused this/);
  assert.match(shownBy(pages[1]?.text ?? ""), /You have decided already/);
  for (const { link } of [refused, allowed]) {
    const { page } = await pageOf(service, provider, link, "mallory");
    assert.match(shownBy(page.text), /There is nothing to decide here/);
  }
});

test("PAGE-D-46, DTR-D-14 the link of a code that was cancelled takes no refusal back", async () => {
  const waiting = await waitFor(service, provider, { user: "fay" });
  const browser = await refuses("fay", waiting.link);
  assert.equal((await cancel(service, waiting)).status, 200);
  assert.match(shownBy((await browser.get(waiting.link)).text), /There is nothing to decide here/);
});

test("AUDIT-D-13, DTR-D-9 a client that waits anew after a refusal is refused each time, which is counted", async () => {
  const waiting = await waitFor(service, provider, { user: "bob" });
  await refuses("bob", waiting.link);
  assert.equal(outcome(await poll(service, waiting)), "access_denied");
  const before = (await service.events()).length;
  const form = { completion_mode: "deferred" };
  for (let round = 0; round < 3; round++) {
    const again = await exchange(service, provider, { user: "bob", form });
    assert.deepEqual([outcome(again), again.body.interaction_uri], ["invalid_request", undefined]);
  }
  assert.equal((await service.events()).length, before);
});

test("DTR-D-9 a refusal that is taken back while a poll is about to tell it is not told: the client polls once more", async () => {
  const waiting = await waitFor(service, provider, { user: "cleo" });
  const browser = await refuses("cleo", waiting.link);
  meanwhile = {
    type: "deferral.refused",
    async happens() {
      const again = await browser.get(waiting.link);
      assert.match(shownBy((await browser.decide(again)).text), /You have allowed it/);
    },
  };
  assert.equal(outcome(await poll(service, waiting)), "slow_down");
  assert.equal(meanwhile, undefined);
  const told = (await service.events()).findLast(({ type }) => type === "deferral.refused");
  assert.equal(told?.reason, "deferral_raced");
  // Its code has not ended: the client may still cancel it.
  assert.equal((await cancel(service, waiting)).status, 200);
  assert.ok((await service.events()).some(({ type }) => type === "deferral.cancelled"));
});

test("PAGE-D-23 a refusal whose write was lost is made by the same click once more, and the client is told", async () => {
  const waiting = await waitFor(service, provider, { user: "dora" });
  const { browser, page } = await pageOf(service, provider, waiting.link, "dora");
  meanwhile = {
    type: "authorization.denied",
    happens: () => Promise.reject(new StoreUnavailable("lost")),
  };
  assert.equal((await browser.decide(page, { decision: "refuse" })).status, 503);
  assert.match(shownBy((await browser.decide(page, { decision: "refuse" })).text), /You have refused/);
  assert.equal(outcome(await poll(service, waiting)), "access_denied");
  const events = (await service.events()).filter(({ type }) => type === "authorization.denied");
  assert.equal(events.filter(({ subject }) => (subject as { sub?: string }).sub === "dora").length, 1);
});

for (const [decision, type, page] of [
  ["refuse", "authorization.denied", /You have refused/],
  ["allow", "consent.recorded", /You have allowed it/],
] as const)
  for (const isWritten of [false, true])
    test(`AUDIT-D-13 what a question counted is told once: ${decision}, and the ${isWritten ? "answer of the write" : "write"} is lost`, async () => {
      const user = `fay-${decision}-${isWritten}`;
      const asked = { user };
      const link = linkIn(await exchange(service, provider, asked));
      const opened = await pageOf(service, provider, link, user);
      for (let n = 0; n < 3; n++) assert.equal(linkIn(await exchange(service, provider, asked)), link);
      loses = { type, isWritten };
      assert.equal((await opened.browser.decide(opened.page, { decision })).status, 503);
      const again = await opened.browser.decide(opened.page, { decision });
      if (!isWritten) assert.match(shownBy(again.text), page);
      const events = (await service.events()).filter((event) => event.type === type);
      const own = events.filter(({ subject }) => (subject as { sub?: string } | undefined)?.sub === user);
      assert.deepEqual(
        own.map(({ policy }) => (policy as { asked?: { count?: number } }).asked?.count),
        [3],
      );
    });

test("PAGE-D-23 a click that meets another request of its agent decides all the same", async () => {
  const asked = { user: "elsa" };
  const { browser, page } = await pageOf(
    service,
    provider,
    linkIn(await exchange(service, provider, asked)),
    "elsa",
  );
  meanwhile = {
    type: "consent.recorded",
    // A client that waits changes the row of the question.
    happens: async () => void (await waitFor(service, provider, asked)),
  };
  assert.match(shownBy((await browser.decide(page)).text), /You have allowed it/);
  assert.equal(meanwhile, undefined);
});
