/**
 * Our pages in a real browser: the whole way from a client's page to its code, by keyboard and by mouse; what other
 * sites can not do; and each page as it is drawn, checked by axe (https://github.com/dequelabs/axe-core) and by measure.
 * Where no browser runs, each test says why. `MANDATE_SCREENSHOTS` names a folder for pictures of the pages.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { encodeForm } from "../../scripts/http-client.ts";
import { LANGUAGES } from "../../src/people/pages/language.ts";
import { exchange, forAskingAgents, linkIn } from "../support/asking-agents.ts";
import { type Chromium, fileOf, type NoBrowser, startChromium, type Tab } from "../support/browser.ts";
import { AS_WEB, files, PUBLIC, redeem, request, verifierOf, WEB_REDIRECT } from "../support/people.ts";
import { APP, GALLERY, SIBLING, type Site, startSite } from "../support/people-site.ts";
import { png } from "../support/png.ts";
import { startProvider, type TestProvider } from "../support/provider.ts";
import { OPERATOR, SAMPLES } from "../support/sample-pages.ts";
import { stop } from "../support/stop.ts";
import { claimsOf, ISSUER, makeWorld, type World } from "../support/world.ts";

/** Where pictures of the pages are written, for a person to look at: a folder that the environment names, such as screenshots, or nowhere. */
const PICTURES = process.env.MANDATE_SCREENSHOTS;
/** The pictures that differ from those of the last run. */
const changed: string[] = [];
const picture = async (tab: Tab, name: string): Promise<void> => {
  if (PICTURES === undefined) return;
  if ((await tab.picture(join(PICTURES, `${name}.png`))) === "changed") changed.push(name);
};

let provider: TestProvider;
let world: World;
let site: Site;
let chromium: Chromium | NoBrowser = { missing: "it was not started" };

before(async () => {
  [provider, site] = await Promise.all([startProvider(), startSite()]);
  world = await makeWorld(
    {
      ...forAskingAgents(provider),
      pages: { operator: OPERATOR, logo: { file: "logo.png" } },
      cors: { origins: [`https://${APP}`] },
    },
    { files: { ...files(provider), "logo.png": png(120, 40) } },
  );
  const own = { [new URL(ISSUER).host]: world.server.port };
  const others = Object.fromEntries([APP, GALLERY, SIBLING].map((host) => [host, site.port]));
  chromium = await startChromium({ ...own, ...others });
});
after(() => stop("stop" in chromium ? chromium : undefined, world, site, provider));

type TabOf = (browser: Chromium) => Promise<Tab>;

/** A test with a tab of its own, unless another is named. */
function inBrowser(name: string, run: (tab: Tab) => Promise<void>, tabOf: TabOf = ({ tab }) => tab()): void {
  test(name, async (t: TestContext) => {
    if ("missing" in chromium) return t.skip(`no browser runs here: ${chromium.missing}`);
    await run(await tabOf(chromium));
  });
}

/** The user follows the client's link, signs in, and is at the consent page. */
async function toConsent(
  tab: Tab,
  verifier: string,
  extra: Record<string, string> = {},
  user = "alice",
): Promise<void> {
  site.show(
    `<a href="${ISSUER}/authorize?${encodeForm(request(verifier, extra)).replaceAll("&", "&amp;")}">go</a>`,
  );
  await tab.open(`https://${APP}/`);
  await tab.leave(() => tab.click("a"));
  await tab.leave(() => tab.click(`#${user}`));
  const url = await urlOf(tab);
  assert.ok(/^https:\/\/as\.example\/authorize\/review\?r=[\w-]+$/.test(url), `${url}: ${await shown(tab)}`);
}

const urlOf = (tab: Tab): Promise<string> => tab.read("location.href");
const shown = (tab: Tab): Promise<string> => tab.read("document.body.innerText");
const parametersAt = async (tab: Tab): Promise<Record<string, string>> =>
  Object.fromEntries(new URL(await urlOf(tab)).searchParams);

// --- the whole way ------------------------------------------------------------------------------------------------

/** What has the focus, and how wide its outline is. */
const focused = (tab: Tab): Promise<{ what: string; outline: string; style: string }> =>
  tab.read(`(() => {
    const { activeElement: at } = document;
    const { outlineWidth: outline, outlineStyle: style } = getComputedStyle(at);
    return { what: at.name ? at.name + "=" + at.value : at.innerText, outline, style };
  })()`);

inBrowser(
  "WCAG-2.1.1-1, WCAG-3.3.4-1, PAGE-D-12, CSP-6.4.1-1 a user signs in and allows by the keyboard alone, and the client gets a token",
  async (tab) => {
    const verifier = verifierOf();
    await toConsent(tab, verifier);
    await tab.size(390);
    assert.equal(await tab.read("document.activeElement === document.body"), true);
    const order: string[] = [];
    for (let step = 0; step < 5; step++) {
      await tab.press("Tab");
      const { what, outline, style } = await focused(tab);
      assert.deepEqual([outline, style], ["3px", "solid"], what);
      if (what === "all=1") await tab.press(" ");
      order.push(what);
    }
    assert.deepEqual(order, [
      "scope=notes.read",
      "scope=notes.write",
      "all=1",
      "decision=refuse",
      "decision=allow",
    ]);
    await tab.leave(() => tab.press("Enter"));
    const { code = "", state, iss } = await parametersAt(tab);
    assert.deepEqual([state, iss], ["the state", ISSUER]);
    const answer = await redeem(world, code, verifier);
    assert.equal(claimsOf(answer.body.access_token).scope, "notes.read notes.write");
    assert.deepEqual(tab.complaints, []);
  },
);

inBrowser("PAGE-D-10, PAGE-D-12 a user refuses with one click, and the client is told", async (tab) => {
  await toConsent(tab, verifierOf());
  await tab.leave(() => tab.click("button[value=refuse]"));
  assert.ok((await urlOf(tab)).startsWith(WEB_REDIRECT));
  assert.equal((await parametersAt(tab)).error, "access_denied");
});

inBrowser(
  "PAGE-D-8, WCAG-3.3.1-1 for an app on the same computer the box is needed to allow, and not to refuse",
  async (tab) => {
    const redirect_uri = `http://127.0.0.1:${site.loopbackPort}/callback`;
    const client = { client_id: PUBLIC, redirect_uri };
    await toConsent(tab, verifierOf(), client);
    assert.match(await shown(tab), /where any program could receive it/);
    const at = await urlOf(tab);
    await tab.click("input[name=all]");
    await tab.click("button[value=allow]");
    // The browser asks for the box: it stays, and leads the user there.
    assert.equal(await urlOf(tab), at);
    assert.equal(await tab.read("document.activeElement.name"), "confirm");
    await tab.press(" ");
    await tab.leave(() => tab.click("button[value=allow]"));
    assert.ok((await urlOf(tab)).startsWith(`${redirect_uri}?code=`), await urlOf(tab));

    await toConsentAgain(tab, client);
    await tab.leave(() => tab.click("button[value=refuse]"));
    assert.ok((await urlOf(tab)).startsWith(`${redirect_uri}?error=access_denied`), await urlOf(tab));
  },
);

/** The user is signed in already. */
async function toConsentAgain(tab: Tab, extra: Record<string, string> = {}): Promise<void> {
  const query = encodeForm(request(verifierOf(), extra));
  await tab.open(`${ISSUER}/authorize?${query}`);
  assert.match(await urlOf(tab), /\/authorize\/review\?r=/);
}

inBrowser("WCAG-3.3.1-1 where a browser does not ask for the box, our page does", async (tab) => {
  const redirect_uri = `http://127.0.0.1:${site.loopbackPort}/callback`;
  await toConsent(tab, verifierOf(), { client_id: PUBLIC, redirect_uri });
  await tab.read("document.querySelector('form').noValidate = true");
  await tab.leave(() => tab.click("button[value=allow]"));
  assert.match(await shown(tab), /One box is missing/);
  assert.equal(await tab.read("document.title"), `One box is missing – ${OPERATOR}`);
});

inBrowser(
  "PAGE-D-17, WCAG-3.1.1-1 the page is in the language of the browser, or that which the client names",
  async (tab) => {
    await tab.language("de-AT, en;q=0.5");
    await toConsent(tab, verifierOf());
    assert.equal(await tab.read("document.documentElement.lang"), "de");
    assert.match(await shown(tab), /Web app\s+möchte Zugriff/);
    await toConsentAgain(tab, { ui_locales: "fr en" });
    assert.equal(await tab.read("document.documentElement.lang"), "en");
  },
);

inBrowser("PAGE-D-10 a browser that goes back to the page ticks nothing again", async (tab) => {
  await toConsent(tab, verifierOf());
  await tab.click("input[name=all]");
  await tab.leave(() => tab.send("Page.reload"));
  assert.equal(await tab.read("document.querySelectorAll(':checked').length"), 0);
});

inBrowser(
  "OIDC-D-9, COOKIE-4.1.2.6-1 a user signs out, and no script has ever seen a cookie",
  async (tab) => {
    await toConsent(tab, verifierOf());
    assert.equal(await tab.read("document.cookie"), "");
    await tab.leave(() => tab.click(".who button"));
    assert.match(await shown(tab), /You are signed out/);
    const query = encodeForm(request(verifierOf()));
    await tab.open(`${ISSUER}/authorize?${query}`);
    assert.ok((await urlOf(tab)).startsWith(provider.issuer));
  },
);

inBrowser(
  "PAGE-D-15, PAGE-D-16, PAGE-D-31, WCAG-2.1.1-1, CSP-6.4.1-1 a user takes back on the account page by the keyboard alone, and nothing is left",
  async (tab) => {
    // Alice has allowed another app before.
    await toConsent(tab, verifierOf(), {}, "bob");
    await tab.size(390);
    await tab.click("input[name=all]");
    await tab.leave(() => tab.click("button[value=allow]"));
    await tab.open(`${ISSUER}/account`);
    assert.match(await shown(tab), /Web app\s+ID: web-app\s+At Notes \(notes\.example\) it may/);
    const order: string[] = [];
    for (let step = 0; step < 4; step++) {
      await tab.press("Tab");
      const { what, outline, style } = await focused(tab);
      assert.deepEqual([outline, style], ["3px", "solid"], what);
      // One question, and a button for its answer.
      if (what === "Take back") await tab.press("Enter");
      order.push(what);
    }
    assert.deepEqual(order, ["Not you?", "Sign out", "Take back", "Yes, take it back"]);
    assert.match(await shown(tab), /Take this back now\? It ends at once\./);
    await tab.leave(() => tab.press("Enter"));
    assert.equal(await urlOf(tab), `${ISSUER}/account`);
    assert.match(await shown(tab), /You allow nothing to any agent at present/);
    assert.match(
      await shown(tab),
      /Web app\s+ID: web-app\s+Ended\s(?:(?!Refused)[\s\S])*You took back its permission\./,
    );
    assert.deepEqual(tab.complaints, []);
  },
);

inBrowser(
  "WCAG-3.3.4-1, WCAG-3.3.1-1 all is taken back with a box that the browser asks for, and the days are those of the form",
  async (tab) => {
    await toConsent(tab, verifierOf());
    await tab.click("input[name=all]");
    await tab.leave(() => tab.click("button[value=allow]"));
    await tab.open(`${ISSUER}/account`);
    const everything = "form:has(input[name=all]) button";
    await tab.click("summary:has(+ form input[name=all])");
    await tab.click(everything);
    assert.equal(await tab.read("document.activeElement.name"), "confirm");
    await tab.press(" ");
    await tab.leave(() => tab.click(everything));
    assert.match(await shown(tab), /You allow nothing/);
    await tab.click("summary:has(+ form[method=get])");
    await tab.read("document.querySelector('[name=to]').value = '2026-01-31'");
    await tab.leave(() => tab.click("form[method=get] button"));
    assert.match(await urlOf(tab), /\/account\?from=&to=2026-01-31#days$/);
    assert.match(await shown(tab), /Nothing is on record/);
  },
);

inBrowser(
  "PAGE-D-41, CSP-6.1.3-1 a browser shows the logo on our page, and to the page of another site it shows none",
  async (tab) => {
    await toConsent(tab, verifierOf());
    const logo = await tab.read<[src: string, alt: string, width: number]>(
      "(({ src, alt, naturalWidth }) => [src, alt, naturalWidth])(document.querySelector('header img'))",
    );
    assert.deepEqual(logo.slice(1), [OPERATOR, 120]);
    assert.deepEqual(tab.complaints, []);
    site.show(`<img src="${logo[0]}">`);
    await tab.open(`https://${APP}/`);
    assert.equal(await tab.read("document.querySelector('img').naturalWidth"), 0);
  },
);

// --- an agent asks ------------------------------------------------------------------------------------------------

/** The agent is refused, the user opens its link and signs in, and is at the page. */
async function toAsked(tab: Tab, scope?: string): Promise<void> {
  const refused = await exchange(world, provider, { user: "bob", ...(scope !== undefined && { scope }) });
  await tab.open(linkIn(refused));
  if ((await urlOf(tab)).startsWith(provider.issuer)) await tab.leave(() => tab.click("#bob"));
  assert.match(await urlOf(tab), /^https:\/\/as\.example\/ask\?r=[\w-]+$/);
}

inBrowser("PAGE-D-23, PAGE-D-10 a user refuses an agent with one click", async (tab) => {
  await toAsked(tab, "trips.book");
  await tab.leave(() => tab.click("button[value=refuse]"));
  assert.match(await shown(tab), /You have refused/);
  assert.equal((await exchange(world, provider, { user: "bob", scope: "trips.book" })).status, 400);
});

inBrowser(
  "PAGE-D-23, PAGE-D-25, WCAG-2.1.1-1, PAGE-D-12 a user allows an agent by the keyboard alone, and the agent goes on",
  async (tab) => {
    await toAsked(tab);
    await tab.size(390);
    const order: string[] = [];
    for (let step = 0; step < 5; step++) {
      await tab.press("Tab");
      const { what, outline, style } = await focused(tab);
      assert.deepEqual([outline, style], ["3px", "solid"], what);
      if (what === "scope=trips.read") await tab.press(" ");
      order.push(what);
    }
    assert.deepEqual(order, [
      "scope=trips.read",
      "scope=trips.book",
      "all=1",
      "decision=refuse",
      "decision=allow",
    ]);
    await tab.leave(() => tab.press("Enter"));
    assert.match(await shown(tab), /You have allowed it/);
    const { sub, scope } = claimsOf((await exchange(world, provider, { user: "bob" })).body.access_token);
    assert.deepEqual([sub, scope], ["company:bob", "trips.read"]);
    // The same form once more.
    await tab.leave(() => tab.send("Page.reload"));
    assert.match(await shown(tab), /You have decided already/);
    assert.deepEqual(
      tab.complaints.filter((one) => !/409/.test(one)),
      [],
    );
  },
);

inBrowser("PAGE-D-24 another user at the link of an agent sees nothing of it", async (tab) => {
  await tab.open(linkIn(await exchange(world, provider, { user: "bob", target: "https://api.example" })));
  await tab.leave(() => tab.click("#alice"));
  const text = await shown(tab);
  assert.match(text, /There is nothing to decide here/);
  assert.doesNotMatch(text, /bob|planner|trips/);
});

// --- what other sites can not do ----------------------------------------------------------------------------------

inBrowser("CSP-6.4.2-1, FETCHMD-2-1 no other site shows our page in a frame", async (tab) => {
  await toConsent(tab, verifierOf());
  site.show(`<iframe src="${await urlOf(tab)}"></iframe>`);
  await tab.open(`https://${APP}/`);
  const { frameTree } = (await tab.send("Page.getFrameTree")) as {
    frameTree: { childFrames?: { frame: { url: string; unreachableUrl?: string } }[] };
  };
  const [framed = assert.fail("no frame")] = frameTree.childFrames ?? [];
  assert.ok(framed.frame.url.startsWith("chrome-error://"), JSON.stringify(framed));
});

/** What a script of the page in this tab reads of an answer; undefined where the browser keeps it from the script. */
const readBy = (
  tab: Tab,
  path: string,
  options: object,
): Promise<{ status: number; body: string } | undefined> =>
  tab.read(`fetch(${JSON.stringify(ISSUER + path)}, ${JSON.stringify(options)}).then(
    async (answer) => ({ status: answer.status, body: await answer.text() }),
    () => undefined,
  )`);

inBrowser(
  "PAGE-D-20, PAGE-D-21, PAGE-D-22 scripts of a listed origin are clients at /token, and those of another read the metadata alone",
  async (tab) => {
    const headers = { "MCP-Protocol-Version": "2026-07-28" };
    const redeem = {
      method: "POST",
      headers: { "Content-Type": "application/x-www-form-urlencoded", DPoP: "no proof" },
      body: encodeForm({ grant_type: "authorization_code", client_id: PUBLIC, code: "unknown" }),
    };
    const byHeader = {
      ...redeem,
      headers: { ...redeem.headers, Authorization: AS_WEB.authorization },
    };
    site.show("");
    for (const [url, isListed] of [
      [`https://${APP}/`, true],
      [`${provider.issuer}/jwks`, false],
    ] as const) {
      await tab.open(url);
      const metadata = await readBy(tab, "/.well-known/oauth-authorization-server", { headers });
      assert.equal(JSON.parse(metadata?.body ?? "{}").issuer, ISSUER, url);
      for (const request of [redeem, byHeader]) {
        const token = await readBy(tab, "/token", request);
        assert.equal(token?.status, isListed ? 400 : undefined, url);
      }
      assert.equal(await readBy(tab, "/consents", {}), undefined, url);
      assert.equal(await readBy(tab, "/authorize", { credentials: "include" }), undefined, url);
    }
  },
);

inBrowser("PAGE-D-5, FETCHMD-2-1, COOKIE-4.1.2.7-1 a form of another site decides nothing", async (tab) => {
  await toConsent(tab, verifierOf());
  const at = await urlOf(tab);
  const token = await tab.read<string>("document.querySelector('[name=token]').value");
  site.show(`<form method="post" action="${at}"><input name="token" value="${token}"><input name="all" value="1">
    <button name="decision" value="allow">x</button></form>`);
  await tab.open(`https://${APP}/`);
  await tab.leave(() => tab.click("button"));
  assert.match(await shown(tab), /The form was not accepted/);
  await tab.open(at);
  assert.match(await shown(tab), /asks for access/);
});

inBrowser("PAGE-D-5, FETCHMD-2-1 a form of another site takes nothing back", async (tab) => {
  await toConsent(tab, verifierOf());
  await tab.click("input[name=all]");
  await tab.leave(() => tab.click("button[value=allow]"));
  await tab.open(`${ISSUER}/account`);
  const [token, consent] = await tab.read<[string, string]>(
    "['token', 'consent'].map((name) => document.querySelector('[action$=withdraw] [name=' + name + ']').value)",
  );
  site.show(`<form method="post" action="${ISSUER}/account/withdraw"><input name="token" value="${token}">
    <input name="consent" value="${consent}"><button>x</button></form>`);
  await tab.open(`https://${APP}/`);
  await tab.leave(() => tab.click("button"));
  assert.match(await shown(tab), /The form was not accepted/);
  await tab.open(`${ISSUER}/account`);
  assert.match(await shown(tab), /Web app\s+ID: web-app\s+At Notes \(notes\.example\) it may/);
});

/** The cookies that the browser of this tab would send us, as the field has them. */
async function cookiesOf(tab: Tab): Promise<readonly string[]> {
  const { cookies } = (await tab.send("Network.getCookies", { urls: [`${ISSUER}/account`] })) as {
    cookies: readonly { name: string; value: string }[];
  };
  return cookies.map(({ name, value }) => (name === "" ? value : `${name}=${value}`));
}

/** `kept`: of two so many, since their names do not begin with a prefix that the browser knows. */
const planted: readonly (readonly [name: string, plant: (pair: string) => string, kept: number])[] = [
  ["as it is", (pair) => pair, 0],
  ["without a name before it", (pair) => `=${pair}`, 0],
  ["in other letters", (pair) => pair.replace("__Host", "__HOST"), 0],
  ["after a blank", (pair) => `\t${pair}`, 0],
  ["after a comma", (pair) => `${pair.at(15)}=1,${pair}`, 2],
  ["after a comma and a blank", (pair) => `${pair.at(15)}=1, ${pair}`, 2],
  ["after a byte that JavaScript calls white space", (pair) => `\xa0${pair}`, 2],
  ["after such a byte, without a name", (pair) => `=\xa0${pair}`, 0],
  ["before such a byte", (pair) => pair.replace("=", "\xa0="), 0],
  ["after a quote that does not end", (pair) => `${pair.at(15)}="1, ${pair}`, 2],
];
for (const [name, plant, kept] of planted) {
  inBrowser(
    `COOKIE-8.6-1, COOKIE-4.2.1-2 a cookie that a sibling plants, ${name}: signs no one in, and keeps no one out`,
    async (tab) => {
      if ("missing" in chromium) return;
      // The attacker signs in, and keeps what the browser then has.
      const attacker = await chromium.tab();
      await attacker.open(`${ISSUER}/account`);
      await attacker.leave(() => attacker.click("#bob"));
      const stolen = await cookiesOf(attacker);
      assert.deepEqual(stolen.map((pair) => pair.split("=")[0]).sort(), [
        "__Host-mandate-b",
        "__Host-mandate-s",
      ]);
      const plantAll = async (): Promise<void> => {
        for (const pair of stolen) {
          site.plant(`${plant(pair)}; Domain=as.example; Path=/; Secure`);
          await tab.open(`https://${SIBLING}/`);
        }
      };
      await plantAll();
      assert.equal((await cookiesOf(tab)).length, kept);
      await tab.open(`${ISSUER}/account`);
      assert.ok((await urlOf(tab)).startsWith(provider.issuer), await urlOf(tab));
      await tab.leave(() => tab.click("#alice"));
      assert.match(await shown(tab), /Signed in as alice/);
      await plantAll();
      await tab.open(`${ISSUER}/account`);
      assert.match(await shown(tab), /Signed in as alice/);
      await tab.open(`${ISSUER}/authorize?${encodeForm(request(verifierOf()))}`);
      assert.match(await urlOf(tab), /\/authorize\/review\?r=/);
    },
  );
}

// --- each page as it is drawn -------------------------------------------------------------------------------------

type Violation = { id: string; impact: string; at: string[] };
const axe = readFileSync(fileOf("axe-core", "axe.min.js") ?? assert.fail("axe is not installed"), "utf8");

/** All of them, and not the serious ones alone; by one of its rules where that is named. */
async function violationsOf(tab: Tab, rule?: "color-contrast"): Promise<Violation[]> {
  const options = { resultTypes: ["violations"], preload: false, ...(rule && { runOnly: [rule] }) };
  return tab.read(`axe.run(document, ${JSON.stringify(options)}).then(({ violations }) =>
    violations.map(({ id, impact, nodes }) => ({ id, impact, at: nodes.map(({ html }) => html) })))`);
}

/** What is smaller than 24 by 24 pixels, and what is wider than the page. */
const measure = (tab: Tab): Promise<{ small: string[]; width: number; wide: string[] }> =>
  tab.read(`(() => {
    const all = (selector) => [...document.querySelectorAll(selector)];
    const box = (element) => element.getBoundingClientRect();
    const visible = all("a, button, summary, input:not([type=hidden]), label").filter((one) => one.checkVisibility());
    return {
      small: visible.filter((one) => box(one).width < 24 || box(one).height < 24).map((one) => one.outerHTML),
      width: document.documentElement.scrollWidth,
      wide: all("body *").filter((one) => box(one).right > innerWidth + 0.5 || one.scrollWidth > one.clientWidth + 1
        && getComputedStyle(one).display !== "inline").map((one) => one.outerHTML.slice(0, 200)),
    };
  })()`);

/** Of the notices, which differ in their text alone, the one of the longest. */
const DRAWN = Object.keys(SAMPLES).filter(
  (name) => !/^notice-.*_/.test(name) || name === "notice-request_invalid",
);
/** The sizes at which a user decides without scrolling (PAGE-D-27). */
const SIZES = [
  [390, 844],
  [1280, 800],
] as const;

/** One tab for all of them, since each tab is a process, and a drawn page leaves nothing for the next. */
let gallery: Tab | undefined;
const inGallery: TabOf = async (browser) => {
  if (gallery === undefined) {
    gallery = await browser.tab();
    await gallery.send("Page.addScriptToEvaluateOnNewDocument", { source: axe });
  }
  gallery.complaints.length = 0;
  gallery.requests.length = 0;
  return gallery;
};

for (const { language } of LANGUAGES) {
  for (const name of DRAWN) {
    inBrowser(
      `WCAG-1.3.1-1, WCAG-1.4.3-1, WCAG-1.4.10-1, WCAG-2.5.8-1, PAGE-D-27 ${name} in ${language} is found to be in order by axe and by measure`,
      async (tab) => {
        await tab.size(320);
        await tab.open(`https://${GALLERY}/${language}/${name}`);
        const folds = await tab.read<boolean>("document.querySelector('details') !== null");
        for (const isOpen of folds ? [false, true] : [false]) {
          await tab.read(`for (const one of document.querySelectorAll("details")) one.open = ${isOpen}`);
          const states = isOpen ? `${name}-open` : name;
          await tab.size(320);
          assert.deepEqual(await measure(tab), { small: [], width: 320, wide: [] });
          for (const [width, height] of SIZES) {
            await tab.size(width, height);
            for (const scheme of ["light", "dark"] as const) {
              await tab.scheme(scheme);
              await picture(tab, `${states}-${language}-${width}-${scheme}`);
              // Nothing of a page is hidden where all is open; roles and colours do not depend on the width, roles
              // not on the scheme, and colours not on the language.
              const isLooked = isOpen === folds && width === 390;
              if (isLooked && scheme === "light") assert.deepEqual(await violationsOf(tab), []);
              if (isLooked && scheme === "dark" && language === "en")
                assert.deepEqual(await violationsOf(tab, "color-contrast"), []);
            }
            assert.deepEqual(await measure(tab), { small: [], width, wide: [] });
            // JOB-D-5, RAR-D-9: every bound of a job and of details stands above the buttons.
            const most = /bounded$|^ask-(?:job-\w+|limit-not-ticked)$/.test(name) ? height * 1.5 : height;
            if (name.startsWith("ask-job") && width === 390 && !isOpen) {
              const whole = await tab.read<number>("document.documentElement.scrollHeight");
              assert.ok(whole <= height * 1.5, `${whole}`);
            }
            if (!isOpen && !name.endsWith("hostile"))
              assert.ok((await foldOf(tab)) <= most, `${width}: ${await foldOf(tab)}`);
          }
          // Text of twice the size (1.4.4).
          await tab.size(640);
          await tab.read("document.documentElement.style.fontSize = '200%'");
          assert.deepEqual((await measure(tab)).wide, []);
          await tab.read("document.documentElement.style.fontSize = ''");
        }
        assert.deepEqual(tab.complaints, []);
        // Beside the page itself, the picture that the browser draws into a field for a day.
        for (const url of tab.requests) {
          assert.ok(url.startsWith(`https://${GALLERY}/`) || url.startsWith("data:image/svg+xml;"), url);
        }
      },
      inGallery,
    );
  }
}

inBrowser(
  "PAGE-D-36 an account with three agents, a job and the events of three days takes three screens at most",
  async (tab) => {
    for (const { language } of LANGUAGES) {
      await tab.size(390, 844);
      await tab.open(`https://${GALLERY}/${language}/account-story`);
      await picture(tab, `account-story-first-${language}`);
      assert.ok((await heightOf(tab)) <= 3 * 844, `${language}: ${await heightOf(tab)}`);
    }
  },
  inGallery,
);

const heightOf = (tab: Tab): Promise<number> => tab.read("document.documentElement.scrollHeight");

/** Where the last of the buttons ends by which a user decides; 0 on a page without them. */
const foldOf = (tab: Tab): Promise<number> =>
  tab.read(`Math.max(0, ...[...document.querySelectorAll("button[name=decision]")]
    .map((button) => Math.ceil(button.getBoundingClientRect().bottom)))`);

inBrowser(
  "PAGE-D-27 names and ids as long as any may be push the buttons down by a bounded way",
  async (tab) => {
    for (const name of ["consent-hostile", "ask-hostile"]) {
      for (const [width, height] of SIZES) {
        await tab.size(width, height);
        await tab.open(`https://${GALLERY}/de/${name}`);
        assert.ok((await foldOf(tab)) <= height * 1.25, `${name}, ${width}: ${await foldOf(tab)}`);
      }
    }
  },
  inGallery,
);

inBrowser(
  "PAGE-D-10, PAGE-D-27 the button to allow looks inactive, with a hint, until a permission is ticked, and is filled then; both are of one size",
  async (tab) => {
    const looks = (): Promise<readonly [colours: string, size: string][]> =>
      tab.read(`[...document.querySelectorAll("[name=decision]")].map((one) => {
        const { backgroundColor, color, borderColor } = getComputedStyle(one);
        const { width, height } = one.getBoundingClientRect();
        return [[backgroundColor, color, borderColor].join(), width + " " + height];
      })`);
    for (const [name, tick] of [
      ["consent", "scope"],
      ["ask", "all"],
      // An object of a type alone gives nothing.
      ["ask-bounded", "scope"],
    ] as const) {
      await tab.open(`https://${GALLERY}/en/${name}`);
      const hint = (): Promise<string> =>
        tab.read("getComputedStyle(document.querySelector('.missing')).display");
      const [refuse, allow] = await looks();
      assert.equal(allow?.[1], refuse?.[1], name);
      assert.equal(await hint(), "inline", name);
      await tab.click(`input[name=${tick}]`);
      const [still, filled] = await looks();
      assert.equal(await hint(), "none", name);
      // PAGE-D-27: what the box for all takes too is drawn as ticked.
      const drawn = await tab.read<readonly string[]>(
        "[...document.querySelectorAll('[name=scope]:not(:checked)')].map((one) => getComputedStyle(one, '::before').content)",
      );
      assert.ok(
        drawn.every((one) => (one !== "none") === (tick === "all")),
        `${name}: ${drawn}`,
      );
      assert.deepEqual(still, refuse, name);
      assert.notEqual(filled?.[0], refuse?.[0], name);
      assert.notEqual(filled?.[0], allow?.[0], name);
      assert.equal(filled?.[1], refuse?.[1], name);
      assert.deepEqual(
        await tab.read("axe.run(document).then(({ violations }) => violations.map(({ id }) => id))"),
        [],
      );
    }
  },
  inGallery,
);

after(() => {
  if (PICTURES === undefined) return;
  console.log(`Pictures in ${PICTURES}. Changed: ${changed.length === 0 ? "none" : changed.join(", ")}.`);
});
