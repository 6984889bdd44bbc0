/** A public document is written once for what it is made of, and anew where a part of that changed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { hash } from "../../src/adapters/crypto/hash.ts";
import { documentsOf } from "../../src/http/discovery.ts";
import type { Peer } from "../../src/http/handler.ts";
import type { Settings } from "../../src/settings/settings.ts";

const ISSUER = "https://as.example";

test("PROD-4.4-4 a key that takes the place of another is published with the next answer, and its document has another tag", async () => {
  const keys = ["one", "two"].map((kid) => ({ kty: "EC", kid }));
  const [one, two] = keys;
  let published = [one, two];
  let written = 0;
  const own = { published: () => published as never, own: () => undefined } as never;
  const none = { published: () => [], own: () => undefined } as never;
  const ports = {
    hash: {
      ...hash,
      sha256(data: string | Uint8Array) {
        written++;
        return hash.sha256(data);
      },
    },
    settings: () => ({ keys: { cacheSeconds: 60 } }) as Settings,
    ...{ signer: own, grantSigner: none, signalSigner: none },
  };
  const endpoint = documentsOf(ISSUER)["/jwks"] ?? assert.fail();
  const get = () => endpoint(ports)(new Request(`${ISSUER}/jwks`) as never, {} as Peer);
  const first = await get();
  assert.deepEqual(await get(), first);
  assert.equal(written, 1);
  published = [one, { kty: "EC", kid: "three" }];
  const next = await get();
  assert.deepEqual(JSON.parse(String(next.body)), { keys: published });
  assert.notEqual(next.headers.ETag, first.headers.ETag);
});
