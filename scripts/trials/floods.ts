/** Many requests at one moment: what they cost others, and what they leave behind. */
import assert from "node:assert/strict";
import { DRAFT } from "../../src/spec/cimd.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import {
  bearer,
  byKey,
  type Key,
  makeKey,
  openTo,
  publish,
  publishKeys,
  startPublisher,
} from "../../test/support/documents.ts";
import { pipeline } from "../../test/support/pipeline.ts";
import { API, CC, PATIENT } from "../../test/support/registration.ts";
import { type Form, makeWorld, type World } from "../../test/support/world.ts";

const REQUESTS = 1_000;
const CONNECTIONS = 40;
const WAVE = 200;
/** A flood of one kind is a few events, one for each minute. */
const EVENTS_MAX = 10;

/** CIMD-9.1-1: a document, and the keys that it names, are fetched once for all requests that wait for them. */
export async function floodDocuments(rounds: number): Promise<readonly string[]> {
  const publisher = await startPublisher();
  const { clientOrigins, files } = openTo({ publisher });
  const rule = { id: "all", allow: "client_credentials", targets: [API], scopes: ["read"] };
  const world = await makeWorld(
    {
      clientMetadataDocuments: { origins: [publisher.origin] },
      clientOrigins,
      drafts: [SPIFFE_DRAFT, DRAFT],
      targets: [{ names: [API], scopes: ["read"] }],
      policies: [{ ...rule, clients: [`${publisher.origin}/*`] }],
      limits: { ...PATIENT, requestsPerSecondByClient: 100_000 },
    },
    { files },
  );
  try {
    const key = await makeKey("k1");
    for (let round = 0; round < rounds; round++) {
      const keys = publishKeys(publisher, `/${round}-keys`, [key]);
      const clientId = publish(publisher, `/${round}`, byKey({ jwks_uri: keys }));
      await allAtOnce(world, clientId, key);
      const fetches = [`/${round}`, `/${round}-keys`].map((path) => publisher.requests(path).length);
      assert.deepEqual(fetches, [1, 1]);
    }
  } finally {
    await world.stop();
    await publisher.stop();
  }
  return [`${REQUESTS} requests at once in each round, one fetch of the document and one of its keys`];
}

async function allAtOnce(world: World, clientId: string, key: Key): Promise<void> {
  const forms = Array.from({ length: CONNECTIONS }, () =>
    Array.from({ length: REQUESTS / CONNECTIONS }, (): Form => ({ ...CC, ...bearer(clientId, key) })),
  );
  const statuses = await Promise.all(forms.map((some) => pipeline(world, some)));
  assert.deepEqual([...new Set(statuses.flat())], ["200"]);
}

/** AUDIT-D-2: guesses are counted, so that a flood of them leaves a few events. */
export async function floodGuesses(rounds: number): Promise<readonly string[]> {
  const world = await makeWorld({
    clients: { known: { method: "client_secret_post", secrets: ["a-secret-of-a-client"] } },
    limits: PATIENT,
  });
  try {
    for (let round = 0; round < rounds; round++) {
      const guess = (index: number): Form => ({
        ...CC,
        client_id: "known",
        client_secret: `${round} ${index}`,
      });
      const wave = Array.from({ length: WAVE }, (_, index) => world.token(guess(index)));
      for (const { status } of await Promise.all(wave)) assert.equal(status, 400);
    }
    await world.server.stop();
    const failed = (await world.events()).filter(({ type }) => type === "client.auth_failed");
    const counted = failed.reduce((sum, { count }) => sum + Number(count), 0);
    assert.equal(counted, rounds * WAVE);
    assert.ok(failed.length <= EVENTS_MAX, `${failed.length} events`);
    return [`${rounds * WAVE} guesses at a secret, counted in ${failed.length} events`];
  } finally {
    await world.stop();
  }
}
