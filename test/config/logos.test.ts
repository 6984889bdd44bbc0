/** The logos that the configuration names: which files are taken, and what is said of the others. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { makeProfile } from "../../scripts/dev-profile.ts";
import { loadConfig } from "../../src/config/config.ts";
import { fileDigest } from "../../src/config/watched.ts";
import type { HttpRequest, HttpResponse, Peer } from "../../src/http/handler.ts";
import { LOGO_BYTES_MAX } from "../../src/limits/people.ts";
import { logoEndpoint } from "../../src/people/http/logo.ts";
import { chunk, header, png, pngOf } from "../support/png.ts";

const PLANNER = "spiffe://dev.example/agents/planner";
const LOGO = png(120, 40);
const END = chunk("IEND");
/** A picture of exactly so many bytes. */
const ofBytes = (bytes: number): Buffer => pngOf(header(8, 8), chunk("IDAT", Buffer.alloc(bytes - 57)), END);

let parent: string;
let configFile: string;
before(async () => {
  parent = mkdtempSync(join(tmpdir(), "mandate test "));
  ({ configFile } = await makeProfile(join(parent, "data")));
});
after(() => rmSync(parent, { recursive: true, force: true }));

function load(content: Uint8Array | string | undefined, patch?: object) {
  const base = JSON.parse(readFileSync(configFile, "utf8"));
  const logo = { file: "logo.png" };
  rmSync(join(parent, "data", logo.file), { recursive: true, force: true });
  if (content !== undefined) writeFileSync(join(parent, "data", logo.file), content);
  const file = join(parent, "data", "patched.json");
  writeFileSync(file, JSON.stringify({ ...base, ...(patch ?? { pages: { logo } }) }));
  return loadConfig(file);
}

test("PAGE-D-40, PAGE-D-41 logos of the server and of an agent are read, each at the digest of its content", () => {
  const logo = { file: "logo.png" };
  const loaded = load(LOGO, { pages: { logo }, agents: { [PLANNER]: { title: "Planner", logo } } });
  assert.ok(loaded.ok, JSON.stringify(loaded));
  const { pages, agents } = loaded.value.settings;
  assert.equal(pages.logo, `/logo/${fileDigest(LOGO)}`);
  assert.deepEqual(agents.named.get(PLANNER), { title: "Planner", logo: pages.logo });
  assert.deepEqual([...pages.logos], [[pages.logo, LOGO]]);
  // A reload sees that the file has changed.
  assert.equal(loaded.value.files.get(join(parent, "data", logo.file)), fileDigest(LOGO));
});

test("PAGE-D-41 a server without pages of people serves no logo", async () => {
  const loaded = load(LOGO);
  assert.ok(loaded.ok, JSON.stringify(loaded));
  const { settings } = loaded.value;
  const { pages, signIn, issuer } = settings;
  assert.equal(signIn, undefined);
  const logo = (of: typeof settings): unknown => {
    const request: Partial<HttpRequest> = { method: "GET", url: `${issuer}${pages.logo}` };
    return logoEndpoint({ settings: () => of })(request as HttpRequest, {} as Peer);
  };
  assert.equal(((await logo(settings)) as HttpResponse).status, 404);
});

test("PAGE-D-40 a file of exactly the most bytes, with sides of the most pixels, is taken", () => {
  assert.equal(load(ofBytes(LOGO_BYTES_MAX)).ok, true);
  assert.equal(load(pngOf(header(1024, 1024), END)).ok, true);
});

test("PAGE-D-41 an issuer with a path has its logo below that path", () => {
  const base = JSON.parse(readFileSync(configFile, "utf8"));
  const loaded = load(LOGO, { issuer: `${base.issuer}/as`, pages: { logo: { file: "logo.png" } } });
  assert.ok(loaded.ok, JSON.stringify(loaded));
  assert.equal(loaded.value.settings.pages.logo, `/as/logo/${fileDigest(LOGO)}`);
});

const EXPORT = "export the logo as PNG, and name that file";
const wrong: readonly (readonly [name: string, content: Uint8Array | string | undefined, want: string])[] = [
  [
    "that is absent",
    undefined,
    "cannot be read: there is no such file or folder: correct its name, or make it",
  ],
  ["that is empty", "", `is no PNG picture, but empty: ${EXPORT}`],
  [
    "that is an SVG by another name",
    "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
    `is no PNG picture, but an SVG, or a page: ${EXPORT}`,
  ],
  ["that is a JPEG", Buffer.from("ffd8ffe000104a46", "hex"), `is no PNG picture, but a JPEG: ${EXPORT}`],
  ["that is a GIF", "GIF89a", `is no PNG picture, but a GIF: ${EXPORT}`],
  ["that is anything else", "hello", `is no PNG picture: ${EXPORT}`],
  [
    "of one byte too many",
    ofBytes(LOGO_BYTES_MAX + 1),
    "has 32769 bytes, and at most 32768 are served: save it smaller",
  ],
  [
    "of one pixel too many",
    pngOf(header(1024, 1025), END),
    "is 1024 by 1025 pixels, and each side may have 1024: scale it down",
  ],
  ["that is cut off", LOGO.subarray(0, -4), "is damaged, or something follows its end: export it again"],
  [
    "with a page behind it",
    Buffer.concat([LOGO, Buffer.from("<script>alert(1)</script>")]),
    "is damaged, or something follows its end: export it again",
  ],
  [
    "that moves",
    pngOf(header(8, 8), chunk("acTL", Buffer.alloc(8)), END),
    "moves, and nothing may move beside what people read: save one picture of it",
  ],
];
for (const [name, content, want] of wrong) {
  test(`PAGE-D-40 a logo ${name} is refused in one line`, () => {
    const loaded = load(content);
    assert.deepEqual(loaded.ok ? [] : loaded.error, [`pages.logo.file: logo.png ${want}`]);
  });
}

test("PAGE-D-40 a logo of an agent is refused alike, and a folder is no file", () => {
  const loaded = load(undefined, { agents: { [PLANNER]: { title: "Planner", logo: { file: "." } } } });
  assert.deepEqual(loaded.ok ? [] : loaded.error, [
    `agents.${PLANNER}.logo.file: . cannot be read: it is a folder: name a file`,
  ]);
});
