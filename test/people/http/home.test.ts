/** The issuer's own URL, and the icon that browsers ask for: a page for people, and for programs nothing. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { supportNumber } from "../../../src/audit/support-number.ts";
import { shownBy } from "../../support/markup.ts";
import { Browser, files, forPeople } from "../../support/people.ts";
import { startProvider, type TestProvider } from "../../support/provider.ts";
import { stop } from "../../support/stop.ts";
import { until } from "../../support/until.ts";
import { makeWorld, type World } from "../../support/world.ts";

let provider: TestProvider;
let world: World;
before(async () => {
  provider = await startProvider();
  world = await makeWorld(forPeople(provider), { files: files(provider) });
});
after(() => stop(world, provider));

const OF_PAGES = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";
const OF_ICONS = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8";

for (const path of ["/", "/favicon.ico"]) {
  test(`PAGE-D-28, PAGE-D-29 ${path} tells a browser what this is, with a way on and the id of its request`, async () => {
    const answer = await new Browser(world, provider).get(path, { accept: OF_PAGES });
    assert.equal(answer.status, 200);
    assert.match(shownBy(answer.text), /Permissions for programs and agents Here you decide/);
    assert.match(answer.text, /<a href="https:\/\/as\.example\/account">/);
    assert.match(
      answer.text,
      new RegExp(`<code>${supportNumber(String(answer.headers["x-request-id"]))}</code>`),
    );
  });

  for (const [name, accept] of [
    ["an image", OF_ICONS],
    ["anything", "*/*"],
    ["JSON", "application/json, text/html;q=0.5"],
    ["no HTML", "text/html;q=0"],
  ] as const) {
    test(`PAGE-D-29 ${path} has nothing for a client that wants ${name}`, async () => {
      const answer = await new Browser(world, provider).get(path, { accept });
      assert.deepEqual([answer.status, answer.body.error], [404, "invalid_request"]);
    });
  }
}

test("PAGE-D-28, PAGE-D-29 an unknown path tells a browser so, with a way on and the id of its request, and programs as before", async () => {
  const browser = new Browser(world, provider);
  const answer = await browser.get("/no/such", { accept: OF_PAGES });
  assert.equal(answer.status, 404);
  assert.match(shownBy(answer.text), /There is no such page/);
  assert.match(answer.text, /<a href="https:\/\/as\.example\/account">/);
  assert.match(
    answer.text,
    new RegExp(`<code>${supportNumber(String(answer.headers["x-request-id"]))}</code>`),
  );
  for (const accept of ["*/*", "application/json", OF_ICONS]) {
    const program = await browser.get("/no/such", { accept });
    assert.deepEqual([program.status, program.body.error], [404, "invalid_request"]);
  }
});

test("PAGE-D-39 the log of a request has the number of its page, and none where no page shows one", async () => {
  const browser = new Browser(world, provider);
  const page = await browser.get("/", { accept: OF_PAGES });
  const program = await browser.get("/no/such", { accept: "*/*" });
  const numberIn = async (answer: typeof page): Promise<unknown> => {
    const id = String(answer.headers["x-request-id"]);
    const logged = () => world.server.lines.find((line) => line.includes(id));
    await until(() => logged() !== undefined, "the request is logged");
    return JSON.parse(logged() ?? "").supportNumber;
  };
  assert.equal(await numberIn(page), supportNumber(String(page.headers["x-request-id"])));
  assert.equal(await numberIn(program), undefined);
});

test("PAGE-D-29 a server at which no user signs in has no such page", async () => {
  const machines = await makeWorld({});
  try {
    for (const path of ["/", "/no/such"]) {
      const answer = await machines.get(path, { headers: { accept: OF_PAGES } });
      assert.deepEqual([answer.status, answer.body.error], [404, "invalid_request"]);
    }
  } finally {
    await stop(machines);
  }
});
