/** Reading and setting our two cookies. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { COOKIES, readCookie, setCookie } from "../../../src/people/http/cookies.ts";

const VALUE = "a-_9".repeat(10).padEnd(43, "z");
const B = COOKIES.browser;
const read = (cookie: string | undefined) =>
  readCookie(
    new Request("https://as.example/", { headers: cookie === undefined ? {} : { cookie } }),
    "browser",
  );

const cases = [
  ["the cookie alone", `${B}=${VALUE}`, VALUE],
  ["among others", `a=1; ${B}=${VALUE}; ${COOKIES.session}=${VALUE}; b`, VALUE],
  ["no field", undefined, undefined],
  ["another one", `${COOKIES.session}=${VALUE}`, undefined],
  ["with blanks around it", `a=1;\t ${B}=${VALUE} \t;b`, VALUE],
  ["beside one that holds ours after a comma", `${B}=${VALUE}; x=1,${B}=${"b".repeat(43)}`, VALUE],
  ["beside one whose name begins with another byte", `\xa0${B}=${"b".repeat(43)}; ${B}=${VALUE}`, VALUE],
  ["beside a quote that does not end", `x="a; ${B}=${VALUE}`, VALUE],
  ["within another, after a comma", `x=1,${B}=${VALUE}`, undefined],
  ["within another, after a comma and a blank", `x=1, ${B}=${VALUE}`, undefined],
  ["with a name that begins with another byte", `\xa0${B}=${VALUE}`, undefined],
  ["with a value that ends with another byte", `${B}=${VALUE}\xa0`, undefined],
  ["two of one name", `${B}=${VALUE}; ${B}=${"b".repeat(43)}`, undefined],
  ["the same twice", `${B}=${VALUE}; ${B}=${VALUE}`, undefined],
  ["two lines of the field, as the platform joins them", `${B}=${VALUE}, ${B}=${VALUE}`, undefined],
  ["a good one beside a bad one", `${B}=x; ${B}=${VALUE}`, undefined],
  ["too short", `${B}=${VALUE.slice(1)}`, undefined],
  ["too long", `${B}=${VALUE}A`, undefined],
  ["in quotes", `${B}="${VALUE}"`, undefined],
  ["of other characters", `${B}=${"+".repeat(43)}`, undefined],
  ["without the prefix", `${B.replace("__Host-", "")}=${VALUE}`, undefined],
  ["in another case", `${B.toLowerCase()}=${VALUE}`, undefined],
  ["empty", `${B}=`, undefined],
] as const;
for (const [name, cookie, want] of cases) {
  test(`COOKIE-8.6-1, COOKIE-4.2.1-2 ${name}: ${want === undefined ? "none" : "is read"}`, () =>
    assert.equal(read(cookie), want));
}

for (const name of ["browser", "session"] as const) {
  test(`COOKIE-4.1.3.2-1, COOKIE-4.1.2.6-1, COOKIE-4.1.2.7-1 the cookie of the ${name} is for this host, out of reach of scripts, and Lax`, () => {
    const [pair, ...attributes] = setCookie(name, VALUE, 600).split("; ");
    assert.equal(pair, `${COOKIES[name]}=${VALUE}`);
    assert.ok(COOKIES[name].startsWith("__Host-"));
    assert.deepEqual(attributes.sort(), ["HttpOnly", "Max-Age=600", "Path=/", "SameSite=Lax", "Secure"]);
  });
}
