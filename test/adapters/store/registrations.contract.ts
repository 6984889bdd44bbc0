/** The contract of both stores for registered clients and initial access tokens. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import type { Store, StoreEntry } from "../../../src/adapters/store/store.ts";
import { LAST_TOKEN_LAG_SECONDS } from "../../../src/limits/clients.ts";
import type { InitialToken, RegisteredClient, RegistrationChange } from "../../../src/records.ts";
import { rounds } from "../../support/rounds.ts";
import {
  type Harness,
  isLive,
  makeClient,
  makeEvent,
  makeToken,
  NOW_SECONDS,
  rotation,
  Writer,
  withSecrets,
} from "./store.contract.ts";

export function makeRegistered(values: Partial<RegisteredClient> = {}): RegisteredClient {
  return {
    clientId: `c_${randomUUID()}`,
    version: 1,
    metadata: { token_endpoint_auth_method: "client_secret_basic", grant_types: ["client_credentials"] },
    registrationClass: "open",
    ceiling: { grantTypes: ["client_credentials"] },
    tokenGeneration: 1,
    secrets: [{ digest: randomUUID() }],
    issuedAtSeconds: NOW_SECONDS,
    ...values,
  };
}

export function makeInitialToken(values: Partial<InitialToken> = {}): InitialToken {
  return {
    id: randomUUID(),
    digest: randomUUID(),
    registrationClass: "crew",
    ceiling: { grantTypes: ["client_credentials"], scopes: ["trips.read"] },
    uses: 0,
    usesMax: 1,
    createdAtSeconds: NOW_SECONDS,
    expiresAtSeconds: NOW_SECONDS + 3600,
    ...values,
  };
}

const UNREACHED = 1_000;

/** A registration under a limit of clients that no test reaches. */
const registering = (register: RegisteredClient, initialTokenId?: string): RegistrationChange => ({
  register,
  clientsMax: UNREACHED,
  ...(initialTokenId !== undefined && { initialTokenId }),
});

/** An update of a client that was just registered. */
const updating = (update: RegisteredClient, values: Partial<RegisteredClient> = {}): RegistrationChange => ({
  update: { ...update, version: update.version + 1, ...values },
  atSeconds: NOW_SECONDS + 1,
});

const removing = (remove: string, unusedSince?: number): RegistrationChange => ({
  remove,
  atSeconds: NOW_SECONDS + 1,
  ...(unusedSince !== undefined && { unusedSince }),
});

class Registrar extends Writer {
  async register(values: Partial<RegisteredClient> = {}): Promise<RegisteredClient> {
    const client = makeRegistered(values);
    assert.deepEqual(await this.change(registering(client)), []);
    return client;
  }

  async mint(values: Partial<InitialToken> = {}): Promise<InitialToken> {
    const add = makeInitialToken(values);
    assert.deepEqual(await this.write({ initialToken: { add } }), []);
    return add;
  }

  change(registration: RegistrationChange): Promise<readonly string[]> {
    return this.write({ registration });
  }
}

const OPEN = { registrationClass: "open", grantType: "authorization_code" };

export function testRegistrations({ name, create }: Harness): void {
  const check = (title: string, body: (open: () => Promise<Store>) => Promise<void>) =>
    test(`${title} (${name})`, async (t) => body((await create(t)).open));

  // --- reading ------------------------------------------------------------------------------------------------------

  check("RFC7591-3.1-1 a registered client is returned with all its metadata", async (open) => {
    const [one, two] = [await open(), await open()];
    const registrar = new Registrar(one);
    const metadata = {
      token_endpoint_auth_method: "private_key_jwt",
      grant_types: ["client_credentials", "urn:x:y"],
      client_name: 'a "quoted" \\ \u0000 é😀',
      "client_name#fr": "é",
      jwks: { keys: [{ kty: "EC", x: "AA" }] },
      ...JSON.parse('{"__proto__":"an ordinary member"}'),
    };
    const secrets = [{ digest: "a" }, { digest: "b", expiresAtSeconds: NOW_SECONDS + 10 }];
    const full = await registrar.register({
      clientId: "c_b",
      metadata,
      secrets,
      registrationClass: "crew",
      tokenGeneration: 3,
      ceiling: { grantTypes: ["client_credentials", "urn:x:y"], scopes: [] },
    });
    const plain = await registrar.register({ clientId: "c_a", secrets: [] });
    for (const client of [full, plain]) {
      assert.deepEqual(await two.registrations.client(client.clientId), client);
      assert.deepEqual(await two.clients.find(client.clientId), client);
    }
    for (const unknown of ["", "c_A", "c_a\0", "c_a\ud800", "c_a "]) {
      assert.equal(await two.registrations.client(unknown), undefined, JSON.stringify(unknown));
    }
  });

  check("CIMD-7.1-2 the source of each client is stored", async (open) => {
    const store = await open();
    const registrar = new Registrar(store);
    // Neither the form of the client_id nor the method shows the source.
    const [byOperator, registered] = [await registrar.client(), await registrar.register()];
    const found = [
      await store.clients.find(byOperator.clientId),
      await store.clients.find(registered.clientId),
    ];
    assert.deepEqual(
      found.map((client) => client && "metadata" in client),
      [false, true],
    );
    assert.equal(await store.registrations.client(byOperator.clientId), undefined);
    const listed = await store.clients.list();
    assert.deepEqual(
      new Map(listed.map(({ clientId, source }) => [clientId, source])),
      new Map([
        [byOperator.clientId, "operator"],
        [registered.clientId, "registration"],
      ]),
    );
    const { auth, ...shown } = byOperator;
    const common = {
      version: 1,
      createdAtSeconds: NOW_SECONDS,
      secrets: [{ createdAtSeconds: NOW_SECONDS }],
    };
    assert.deepEqual(await store.clients.list(byOperator.clientId), [
      { ...shown, ...common, method: auth.method },
    ]);
    assert.deepEqual(await store.clients.list(registered.clientId), [
      {
        clientId: registered.clientId,
        source: "registration",
        registrationClass: "open",
        method: "client_secret_basic",
        grantTypes: ["client_credentials"],
        ...common,
      },
    ]);
  });

  check(
    "AUDIT-D-1 a registration, its event and the use of its initial token are written together",
    async (open) => {
      const store = await open();
      const registrar = new Registrar(store);
      const { id, digest } = await registrar.mint();
      const client = makeRegistered();
      const token = makeToken();
      const batch = (seq: number, initialTokenId: string): StoreEntry[] => [
        { event: makeEvent("as-1", seq), token },
        { event: makeEvent("as-1", seq + 1), registration: registering(client, initialTokenId) },
      ];
      assert.deepEqual(await store.log.append(batch(1, "unknown")), [
        { entry: 1, guard: "initial_token_usable" },
      ]);
      assert.equal((await store.log.head("as-1"))?.seq, 0);
      assert.equal(await store.facts.token(token.jti), undefined);
      assert.equal(await store.registrations.client(client.clientId), undefined);
      assert.equal((await store.registrations.initialToken(digest))?.uses, 0);
      assert.deepEqual(await store.log.append(batch(1, id)), []);
      assert.equal((await store.log.head("as-1"))?.seq, 2);
      assert.deepEqual(await store.registrations.client(client.clientId), client);
      assert.equal((await store.registrations.initialToken(digest))?.uses, 1);
    },
  );

  // --- registering --------------------------------------------------------------------------------------------------

  check("RFC7591-3.2.1-2 a client_id is given once, to clients of any source", async (open) => {
    const registrar = new Registrar(await open());
    const [byOperator, registered, gone] = [
      await registrar.client(),
      await registrar.register(),
      await registrar.register(),
    ];
    assert.deepEqual(await registrar.change(removing(gone.clientId)), []);
    for (const { clientId } of [byOperator, registered, gone]) {
      const again = registering(makeRegistered({ clientId }));
      assert.deepEqual(await registrar.change(again), ["registration_current"]);
      const added = await registrar.write({
        client: { add: makeClient({ clientId }), atSeconds: NOW_SECONDS },
      });
      assert.deepEqual(added, ["client_current"]);
    }
  });

  check("RFC7591-3.2.1-4 no two clients have the same secret, whatever their source", async (open) => {
    const store = await open();
    const registrar = new Registrar(store);
    await registrar.client(withSecrets({ digest: "a" }));
    await registrar.register({ secrets: [{ digest: "b" }] });
    const other = await registrar.register({ secrets: [{ digest: "c" }] });
    for (const digest of ["a", "b"]) {
      const secrets = [{ digest: "free" }, { digest }];
      assert.deepEqual(await registrar.change(registering(makeRegistered({ secrets }))), [
        "registration_current",
      ]);
      assert.deepEqual(await registrar.change(updating(other, { secrets })), ["registration_current"]);
      const add = makeClient(withSecrets({ digest: "b" }));
      assert.deepEqual(await registrar.write({ client: { add, atSeconds: NOW_SECONDS } }), [
        "client_current",
      ]);
    }
    assert.deepEqual(await store.registrations.client(other.clientId), other);
    // The secret of a refused registration may be used.
    await registrar.register({ secrets: [{ digest: "free" }] });
  });

  check("limits the number of registered clients, and a removed one makes room", async (open) => {
    const registrar = new Registrar(await open());
    await registrar.client();
    const first = await registrar.register();
    const change = (clientsMax: number) => registrar.change({ register: makeRegistered(), clientsMax });
    assert.deepEqual(await change(0), ["registrations_below"]);
    assert.deepEqual(await change(1), ["registrations_below"]);
    // The operator's clients do not count.
    assert.deepEqual(await change(2), []);
    assert.deepEqual(await change(2), ["registrations_below"]);
    assert.deepEqual(await registrar.change(removing(first.clientId)), []);
    assert.deepEqual(await change(2), []);
    assert.deepEqual(await change(2), ["registrations_below"]);
    // Open registrations do not use up the room of other classes.
    const register = makeRegistered({ registrationClass: "partners" });
    assert.deepEqual(await registrar.change({ register, clientsMax: 2 }), []);
  });

  const states: readonly [what: string, values: Partial<InitialToken>, usable: boolean][] = [
    ["that is new", {}, true],
    ["in its last second", { expiresAtSeconds: NOW_SECONDS + 1 }, true],
    ["that has just expired", { expiresAtSeconds: NOW_SECONDS }, false],
    ["that expired long ago", { expiresAtSeconds: NOW_SECONDS - 3600 }, false],
    ["with one use left", { uses: 4, usesMax: 5 }, true],
    ["that is used up", { uses: 5, usesMax: 5 }, false],
    ["with no uses", { usesMax: 0 }, false],
    ["that was revoked", { revokedAtSeconds: NOW_SECONDS - 1 }, false],
  ];
  for (const [what, values, usable] of states) {
    check(
      `RFC7591-3-3 an initial token ${what} ${usable ? "allows a registration" : "is refused"}`,
      async (open) => {
        const store = await open();
        const registrar = new Registrar(store);
        const token = await registrar.mint(values);
        const client = makeRegistered();
        const failed = await registrar.change(registering(client, token.id));
        assert.deepEqual(failed, usable ? [] : ["initial_token_usable"]);
        assert.equal((await store.registrations.client(client.clientId)) !== undefined, usable);
        const uses = token.uses + (usable ? 1 : 0);
        assert.deepEqual(await store.registrations.initialToken(token.digest), { ...token, uses });
      },
    );
  }

  check("RFC7591-3-3 every registration with an initial token counts as one use of it", async (open) => {
    const store = await open();
    const registrar = new Registrar(store);
    const [used, other] = [await registrar.mint({ usesMax: 2 }), await registrar.mint()];
    const change = () => registrar.change(registering(makeRegistered(), used.id));
    assert.deepEqual([await change(), await change(), await change()], [[], [], ["initial_token_usable"]]);
    assert.equal((await store.registrations.initialToken(used.digest))?.uses, 2);
    assert.equal((await store.registrations.initialToken(other.digest))?.uses, 0);
    // A registration without an initial token is not a use.
    assert.deepEqual(await registrar.change(registering(makeRegistered())), []);
  });

  check("a registration that several guards refuse names them all", async (open) => {
    const registrar = new Registrar(await open());
    const register = await registrar.register();
    const failed = await registrar.change({ register, initialTokenId: "unknown", clientsMax: 1 });
    assert.deepEqual(
      new Set(failed),
      new Set(["initial_token_usable", "registrations_below", "registration_current"]),
    );
  });

  check(
    "RFC7591-3-3 an initial token is found by its digest in every state and is revoked once",
    async (open) => {
      const [one, two] = [await open(), await open()];
      const registrar = new Registrar(one);
      const newer = await registrar.mint({ createdAtSeconds: NOW_SECONDS + 1 });
      const older = await registrar.mint({ ceiling: { grantTypes: [] }, expiresAtSeconds: NOW_SECONDS - 1 });
      assert.deepEqual(await two.registrations.initialTokens(), [older, newer]);
      const revoke = (id: string) =>
        registrar.write({ initialToken: { revoke: id, atSeconds: NOW_SECONDS + 5 } });
      assert.deepEqual(await revoke(newer.id), []);
      assert.deepEqual(await revoke(newer.id), ["initial_token_current"]);
      assert.deepEqual(await revoke("unknown"), ["initial_token_current"]);
      const revoked = { ...newer, revokedAtSeconds: NOW_SECONDS + 5 };
      assert.deepEqual(await two.registrations.initialToken(newer.digest), revoked);
      assert.deepEqual(await two.registrations.initialToken(older.digest), older);
      for (const unknown of ["", newer.id, `${newer.digest}\0`, "\ud800"]) {
        assert.equal(await two.registrations.initialToken(unknown), undefined);
      }
      for (const values of [{ id: older.id }, { digest: newer.digest }]) {
        const again = await registrar.write({ initialToken: { add: makeInitialToken(values) } });
        assert.deepEqual(again, ["initial_token_current"]);
      }
      assert.equal((await two.registrations.initialTokens()).length, 2);
    },
  );

  // --- updates ------------------------------------------------------------------------------------------------------

  check("RFC7592-2.2-3 an update replaces metadata, generation and secrets without merging", async (open) => {
    const store = await open();
    const registrar = new Registrar(store);
    const ends = { expiresAtSeconds: NOW_SECONDS + 10 };
    const first = await registrar.register({
      metadata: { token_endpoint_auth_method: "client_secret_basic", grant_types: [], client_name: "a" },
      secrets: [{ digest: "ended" }, { digest: "gone" }, { digest: "kept" }],
    });
    const other = await registrar.register();
    const second = {
      ...first,
      version: 2,
      metadata: { token_endpoint_auth_method: "client_secret_post", grant_types: ["x"], contacts: [] },
      tokenGeneration: 2,
      secrets: [{ digest: "ended", ...ends }, { digest: "kept" }, { digest: "new" }],
    };
    assert.deepEqual(await registrar.change(updating(second, { version: 2 })), []);
    assert.deepEqual(await store.registrations.client(first.clientId), second);
    assert.deepEqual(await store.registrations.client(other.clientId), other);
    const [listed] = await store.clients.list(first.clientId);
    assert.deepEqual([listed?.method, listed?.grantTypes], ["client_secret_post", ["x"]]);
    assert.deepEqual(listed?.secrets, [
      { createdAtSeconds: NOW_SECONDS, ...ends },
      { createdAtSeconds: NOW_SECONDS },
      { createdAtSeconds: NOW_SECONDS + 1 },
    ]);
    // Another client may use a secret that was removed.
    await registrar.register({ secrets: [{ digest: "gone" }] });
    assert.deepEqual(await registrar.change(updating(second, { secrets: [] })), []);
    assert.deepEqual((await store.registrations.client(first.clientId))?.secrets, []);
  });

  check("an update changes the ceiling of a client, and neither source nor class", async (open) => {
    const store = await open();
    const registrar = new Registrar(store);
    const first = await registrar.register();
    const ceiling = { grantTypes: [], scopes: ["a"] };
    const others = { registrationClass: "crew", issuedAtSeconds: 0 };
    assert.deepEqual(await registrar.change(updating(first, { ...others, ceiling })), []);
    assert.deepEqual(await store.registrations.client(first.clientId), { ...first, version: 2, ceiling });
  });

  check(
    "RFC7591-5-7 the ceiling of a class that is kept comes with its clients, and the last one stands",
    async (open) => {
      const store = await open();
      const registrar = new Registrar(store);
      const [crew, other] = [`crew-${randomUUID()}`, `other-${randomUUID()}`];
      const first = await registrar.register({ registrationClass: crew });
      assert.equal((await store.registrations.client(first.clientId))?.classCeiling, undefined);
      const wide = { grantTypes: ["client_credentials"], scopes: ["a", "b"] };
      const last = { grantTypes: [], scopes: ["a"] };
      await store.registrations.keepCeiling(crew, wide);
      await store.registrations.keepCeiling(other, wide);
      await store.registrations.keepCeiling(crew, last);
      const found = { ...first, classCeiling: last };
      assert.deepEqual(await store.registrations.client(first.clientId), found);
      assert.deepEqual(await store.clients.find(first.clientId), found);
    },
  );

  check(
    "an update of another version, of a removed client and of a client that did not register is refused",
    async (open) => {
      const store = await open();
      const registrar = new Registrar(store);
      const [kept, gone] = [await registrar.register(), await registrar.register()];
      const byOperator = await registrar.client();
      assert.deepEqual(await registrar.change(removing(gone.clientId)), []);
      const refused = [
        updating(makeRegistered()),
        updating(kept, { version: 1 }),
        updating(kept, { version: 3 }),
        updating(gone),
        updating(gone, { version: 3 }),
        updating(makeRegistered({ clientId: byOperator.clientId })),
      ];
      for (const change of refused)
        assert.deepEqual(await registrar.change(change), ["registration_current"]);
      assert.deepEqual(await store.registrations.client(kept.clientId), kept);
      assert.deepEqual(await store.clients.find(byOperator.clientId), byOperator);
      assert.deepEqual(await registrar.change(updating(kept)), []);
    },
  );

  // --- removal ------------------------------------------------------------------------------------------------------

  test(`RFC7592-2.3-1, RFC7592-5-5 a removed client keeps its client_id and nothing else (${name})`, async (t) => {
    const { open, select } = await create(t);
    const [one, two] = [await open(), await open()];
    const registrar = new Registrar(one);
    const [gone, kept] = [await registrar.register(), await registrar.register()];
    assert.deepEqual(await registrar.change(removing(gone.clientId)), []);
    assert.equal(await two.registrations.client(gone.clientId), undefined);
    assert.equal(await two.clients.find(gone.clientId), undefined);
    const [listed] = await two.clients.list(gone.clientId);
    assert.deepEqual(
      [listed?.version, listed?.disabledAtSeconds, listed?.secrets, listed?.registrationClass],
      [2, NOW_SECONDS + 1, [], "open"],
    );
    const left = await select?.(
      `select metadata, ceiling, token_generation from client where client_id = '${gone.clientId}'`,
    );
    assert.deepEqual(
      left?.map((row) => ({ ...row })),
      [{ metadata: null, ceiling: null, token_generation: null }],
    );
    assert.deepEqual(await two.registrations.client(kept.clientId), kept);
    assert.deepEqual(await registrar.change(removing(gone.clientId)), ["registration_current"]);
  });

  check("RFC7592-A.1-2 a removal of another version is refused", async (open) => {
    const registrar = new Registrar(await open());
    const first = await registrar.register();
    assert.deepEqual(await registrar.change(updating({ ...first, version: 2 }, { version: 2 })), []);
    for (const version of [1, 3]) {
      const change = { ...removing(first.clientId), version };
      assert.deepEqual(await registrar.change(change), ["registration_current"], `${version}`);
    }
    assert.deepEqual(await registrar.change({ ...removing(first.clientId), version: 2 }), []);
  });

  check("removes only a client that registered itself", async (open) => {
    const store = await open();
    const registrar = new Registrar(store);
    const byOperator = await registrar.client();
    for (const clientId of [byOperator.clientId, "c_unknown"]) {
      assert.deepEqual(await registrar.change(removing(clientId)), ["registration_current"]);
    }
    assert.deepEqual(await store.clients.find(byOperator.clientId), byOperator);
  });

  check(
    "RFC7592-2.3-2 removing a client revokes every token issued to it and their descendants",
    async (open) => {
      const store = await open();
      const registrar = new Registrar(store);
      const [kept, gone] = [await registrar.register(), await registrar.register()];
      const root = await registrar.token();
      const issued = await registrar.token({ clientId: gone.clientId, ancestors: [root] });
      const below = await registrar.token({ clientId: kept.clientId, ancestors: [issued, root] });
      const beside = await registrar.token({ clientId: kept.clientId, ancestors: [root] });
      const live = async () => {
        const found = [root, issued, below, beside].map((jti) => store.facts.token(jti));
        return (await Promise.all(found)).map(isLive);
      };
      assert.deepEqual(await live(), [true, true, true, true]);
      assert.deepEqual(await registrar.change(removing(gone.clientId)), []);
      assert.deepEqual(await live(), [true, false, false, true]);
      const standing = await registrar.write({ guards: [registrar.guard(issued)] });
      assert.deepEqual(standing, ["not_ended"]);
    },
  );

  check("an operator may disable a registered client but not rotate its secrets", async (open) => {
    const store = await open();
    const registrar = new Registrar(store);
    const { clientId } = await registrar.register();
    assert.deepEqual(await registrar.write({ client: rotation(clientId) }), ["client_current"]);
    await registrar.disable(clientId);
    assert.equal(await store.registrations.client(clientId), undefined);
    assert.deepEqual(await registrar.change(removing(clientId)), ["registration_current"]);
    assert.equal((await store.clients.list(clientId))[0]?.disabledAtSeconds, NOW_SECONDS + 1);
  });

  // --- use ----------------------------------------------------------------------------------------------------------

  const HOUR = LAST_TOKEN_LAG_SECONDS;
  const issuedAt = (clientId: string, seconds: number) => ({
    clientId,
    issuedAtSeconds: NOW_SECONDS + seconds,
    expiresAtSeconds: NOW_SECONDS + seconds + 300,
  });

  const uses: readonly [what: string, tokens: readonly number[], lastTokenAt: number | undefined][] = [
    ["without any token", [], undefined],
    ["with one token", [10], 10],
    ["with a second token soon after", [10, 10 + HOUR - 1], 10],
    ["with a second token an hour later", [10, 10 + HOUR], 10 + HOUR],
    ["with tokens all the time", [10, 20, 10 + HOUR, 20 + HOUR], 10 + HOUR],
    ["with a token that is older than the last", [10 + HOUR, 10], 10 + HOUR],
  ];
  for (const [what, tokens, lastTokenAt] of uses) {
    check(`RFC7591-5-5 the last use is recorded within an hour: a client ${what}`, async (open) => {
      const store = await open();
      const registrar = new Registrar(store);
      const { clientId } = await registrar.register();
      const other = await registrar.register();
      for (const seconds of tokens) await registrar.token(issuedAt(clientId, seconds));
      const last = NOW_SECONDS + (lastTokenAt ?? 0);
      assert.deepEqual(await registrar.change(removing(clientId, last - 1)), ["registration_current"]);
      assert.deepEqual(await registrar.change(removing(clientId, last)), []);
      // A use of one client is not a use of another.
      assert.deepEqual(await registrar.change(removing(other.clientId, NOW_SECONDS)), []);
    });
  }

  test(`RFC7591-5-5 no use of a client that the operator created is recorded (${name})`, async (t) => {
    const { open, select } = await create(t);
    const registrar = new Registrar(await open());
    const [byOperator, registered] = [await registrar.client(), await registrar.register()];
    for (const { clientId } of [byOperator, registered]) await registrar.token(issuedAt(clientId, 0));
    const noted = await select?.("select client_id from client where last_token_at is not null");
    assert.deepEqual(
      noted?.map((row) => row.client_id),
      [registered.clientId],
    );
  });

  check("RFC7591-5-5 unused and idle clients are found, those idle for longest first", async (open) => {
    const store = await open();
    const registrar = new Registrar(store);
    const at = (clientId: string, seconds: number) =>
      registrar.register({ clientId, issuedAtSeconds: NOW_SECONDS + seconds });
    await at("c_new", 11);
    await at("c_unused", 10);
    await at("c_older", 9);
    for (const [clientId, seconds] of [
      ["c_used", 102],
      ["c_idle", 101],
      ["c_idler", 5],
    ] as const) {
      await at(clientId, 0);
      await registrar.token(issuedAt(clientId, seconds));
    }
    await at("c_gone", 1);
    await registrar.change(removing("c_gone"));
    await registrar.client({ clientId: "c_operators" });
    await registrar.token(issuedAt("c_operators", 0));
    const since = {
      unusedSince: NOW_SECONDS + 10,
      unusedOpenSince: NOW_SECONDS + 50,
      idleSince: NOW_SECONDS + 101,
      open: OPEN,
    };
    const want = [
      { clientId: "c_idler", hadToken: true, isOpen: false },
      { clientId: "c_older", hadToken: false, isOpen: false },
      { clientId: "c_unused", hadToken: false, isOpen: false },
      { clientId: "c_idle", hadToken: true, isOpen: false },
    ];
    assert.deepEqual(await store.registrations.idle({ ...since, limit: 10 }), want);
    assert.deepEqual(await store.registrations.idle({ ...since, limit: 2 }), want.slice(0, 2));
  });

  check("MCPC-D-10 a client that asks users and came without a token is unused sooner", async (open) => {
    const store = await open();
    const registrar = new Registrar(store);
    const asks = { grant_types: ["authorization_code", "refresh_token"] };
    const method = { token_endpoint_auth_method: "none" };
    const at = (clientId: string, values: Partial<RegisteredClient>, seconds: number) =>
      registrar.register({ clientId, issuedAtSeconds: NOW_SECONDS + seconds, secrets: [], ...values });
    const people = { metadata: { ...method, ...asks } };
    await at("c_soon", people, 50);
    await at("c_later", people, 51);
    await at("c_admitted", { ...people, registrationClass: "crew" }, 20);
    await at("c_machine", {}, 20);
    const had = await at("c_had", people, 0);
    await registrar.token(makeToken(issuedAt(had.clientId, 60)));
    const since = { unusedSince: NOW_SECONDS + 10, unusedOpenSince: NOW_SECONDS + 50 };
    const soon = { clientId: "c_soon", hadToken: false, isOpen: true };
    const idle = { clientId: "c_had", hadToken: true, isOpen: true };
    const find = (idleSince: number, open = OPEN) =>
      store.registrations.idle({ ...since, idleSince, open, limit: 10 });
    assert.deepEqual(await find(NOW_SECONDS + 59), [soon]);
    assert.deepEqual(await find(NOW_SECONDS + 60), [soon, idle]);
    // The caller says which class and which grant type that are; a part of its name is another one.
    for (const open of [
      { ...OPEN, registrationClass: "crew" },
      { ...OPEN, grantType: "code" },
    ])
      assert.equal(
        (await find(NOW_SECONDS + 59, open)).some(({ clientId }) => clientId === "c_soon"),
        false,
      );
  });

  check("RFC7591-5-5 of several tokens in one batch, the last one is recorded", async (open) => {
    const store = await open();
    const { clientId } = await new Registrar(store).register();
    const batch = [0, HOUR].map((seconds, index) => ({
      event: makeEvent("as-2", index),
      token: makeToken(issuedAt(clientId, seconds)),
      isUse: true,
    }));
    assert.deepEqual(await store.log.append(batch), []);
    const since = { unusedSince: 0, unusedOpenSince: 0, open: OPEN, limit: 10 };
    const last = NOW_SECONDS + HOUR;
    assert.deepEqual(await store.registrations.idle({ ...since, idleSince: last - 1 }), []);
    assert.deepEqual(await store.registrations.idle({ ...since, idleSince: last }), [
      { clientId, hadToken: true, isOpen: false },
    ]);
  });

  const ends = {
    removal: (id: string) => ({ registration: removing(id) }),
    disabling: (disable: string) => ({ client: { disable, atSeconds: NOW_SECONDS } }),
  };
  for (const [what, end] of Object.entries(ends)) {
    check(`a token and the ${what} of its client in one batch`, async (open) => {
      const store = await open();
      const registrar = new Registrar(store);
      const [gone, kept] = [await registrar.register(), await registrar.register()];
      const tokens = [gone, kept].map(({ clientId }) => makeToken({ clientId }));
      const entries = tokens.map((token, index) => ({ event: makeEvent("as-2", index), token }));
      const last = { event: makeEvent("as-2", 2), ...end(gone.clientId) };
      assert.deepEqual(await store.log.append([...entries, last]), []);
      assert.equal(await store.registrations.client(gone.clientId), undefined);
      const found = await Promise.all(tokens.map(({ jti }) => store.facts.token(jti)));
      assert.deepEqual(found.map(isLive), [false, true]);
    });
  }

  check("a token and an update of its client in one batch", async (open) => {
    const store = await open();
    const registrar = new Registrar(store);
    const client = await registrar.register();
    const token = makeToken({ clientId: client.clientId });
    const batch: StoreEntry[] = [
      { event: makeEvent("as-2", 0), token },
      { event: makeEvent("as-2", 1), registration: updating(client, { tokenGeneration: 9 }) },
    ];
    assert.deepEqual(await store.log.append(batch), []);
    const want = { ...client, version: 2, tokenGeneration: 9 };
    assert.deepEqual(await store.registrations.client(client.clientId), want);
  });

  // --- deleting rows ------------------------------------------------------------------------------------------------

  check(
    "deletes rows of clients and initial tokens that ended before, and none in force or of the operator",
    async (open) => {
      const store = await open();
      const registrar = new Registrar(store);
      const [kept, byOperator] = [await registrar.register(), await registrar.client()];
      await registrar.disable(byOperator.clientId);
      const [removed, disabled] = [await registrar.register(), await registrar.register()];
      // Both end at NOW_SECONDS + 1; the second still has its secrets.
      await registrar.change(removing(removed.clientId));
      await registrar.disable(disabled.clientId);
      const [expired, revoked, used] = [
        await registrar.mint({ expiresAtSeconds: NOW_SECONDS + 1 }),
        await registrar.mint({ revokedAtSeconds: NOW_SECONDS + 1 }),
        await registrar.mint({ uses: 1, usesMax: 1 }),
      ];
      const ids = async () => (await store.clients.list()).map(({ clientId }) => clientId).sort();
      const tokens = async () => (await store.registrations.initialTokens()).map(({ id }) => id).sort();
      const all = [kept, byOperator, removed, disabled].map(({ clientId }) => clientId).sort();
      assert.equal(await store.registrations.sweep(NOW_SECONDS + 1, 10), 0);
      assert.deepEqual(await ids(), all);
      assert.deepEqual(await tokens(), [expired.id, revoked.id, used.id].sort());
      assert.equal(await store.registrations.sweep(NOW_SECONDS + 2, 1), 2);
      assert.equal(await store.registrations.sweep(NOW_SECONDS + 2, 10), 2);
      assert.equal(await store.registrations.sweep(NOW_SECONDS + 2, 10), 0);
      assert.deepEqual(await ids(), [kept.clientId, byOperator.clientId].sort());
      assert.deepEqual(await tokens(), [used.id]);
      assert.deepEqual(await store.registrations.client(kept.clientId), kept);
    },
  );

  // --- several instances --------------------------------------------------------------------------------------------

  const pair = async (open: () => Promise<Store>): Promise<[Registrar, Registrar]> => [
    new Registrar(await open(), "as-1"),
    new Registrar(await open(), "as-2"),
  ];
  /** The failed guards of each change, the successful one first. */
  const outcomes = async (changes: readonly Promise<readonly string[]>[]) =>
    (await Promise.all(changes)).toSorted((a, b) => a.length - b.length);

  check(
    "RFC7591-3-3 of two instances that use the last use of an initial token, exactly one registers",
    async (open) => {
      const registrars = await pair(open);
      for (let round = 0; round < rounds(4); round++) {
        const { id, digest } = await registrars[0].mint();
        const clients = registrars.map(() => makeRegistered());
        const tries = registrars.map((one, index) =>
          one.change(registering(clients[index] ?? assert.fail(), id)),
        );
        assert.deepEqual(await outcomes(tries), [[], ["initial_token_usable"]], `round ${round}`);
        const store = await open();
        assert.equal((await store.registrations.initialToken(digest))?.uses, 1);
        const found = await Promise.all(clients.map(({ clientId }) => store.registrations.client(clientId)));
        assert.equal(found.filter((client) => client !== undefined).length, 1);
      }
    },
  );

  check("RFC7591-3-3 simultaneous uses by two instances are all counted", async (open) => {
    const registrars = await pair(open);
    const { id, digest } = await registrars[0].mint({ usesMax: 6 });
    const taken = await Promise.all(
      registrars.map(async (registrar) => {
        let count = 0;
        for (let round = 0; round < 4; round++) {
          const failed = await registrar.change(registering(makeRegistered(), id));
          if (failed.length === 0) count++;
          else assert.deepEqual(failed, ["initial_token_usable"]);
        }
        return count;
      }),
    );
    assert.equal((taken[0] ?? 0) + (taken[1] ?? 0), 6);
    assert.equal((await (await open()).registrations.initialToken(digest))?.uses, 6);
  });

  check("RFC7591-3-3 revoking an initial token while it is used always succeeds", async (open) => {
    const [using, revoking] = await pair(open);
    const store = await open();
    for (let round = 0; round < rounds(4); round++) {
      const { id, digest } = await using.mint({ usesMax: 5 });
      const register = () => using.change(registering(makeRegistered(), id));
      const revoke = () => revoking.write({ initialToken: { revoke: id, atSeconds: NOW_SECONDS } });
      const going = round % 2 === 0 ? [register(), revoke()] : [revoke(), register()];
      const done = await Promise.all(going);
      const [registered, revoked] = round % 2 === 0 ? done : done.toReversed();
      assert.deepEqual(revoked, [], `round ${round}`);
      const { uses, revokedAtSeconds } = (await store.registrations.initialToken(digest)) ?? assert.fail();
      assert.deepEqual([uses, revokedAtSeconds], [registered?.length === 0 ? 1 : 0, NOW_SECONDS]);
    }
  });

  check(
    "of two instances that register one client_id or secret at the same time, one succeeds",
    async (open) => {
      const registrars = await pair(open);
      for (let round = 0; round < rounds(4); round++) {
        for (const values of [{ clientId: `c_${round}` }, { secrets: [{ digest: `digest ${round}` }] }]) {
          const tries = registrars.map((one) => one.change(registering(makeRegistered(values))));
          assert.deepEqual(await outcomes(tries), [[], ["registration_current"]], `round ${round}`);
        }
      }
    },
  );

  check(
    "of two instances that create or revoke one initial token at the same time, one succeeds",
    async (open) => {
      const registrars = await pair(open);
      for (let round = 0; round < rounds(4); round++) {
        const add = makeInitialToken();
        const made = registrars.map((one) => one.write({ initialToken: { add } }));
        assert.deepEqual(await outcomes(made), [[], ["initial_token_current"]], `made in round ${round}`);
        const initialToken = { revoke: add.id, atSeconds: NOW_SECONDS };
        const revoked = registrars.map((one) => one.write({ initialToken }));
        assert.deepEqual(
          await outcomes(revoked),
          [[], ["initial_token_current"]],
          `revoked in round ${round}`,
        );
      }
    },
  );

  check("of two instances that update one client at the same time, one succeeds", async (open) => {
    const registrars = await pair(open);
    const store = await open();
    for (let round = 0; round < rounds(4); round++) {
      const client = await registrars[0].register();
      const digests = ["x", "y"].map((which) => `${which} ${round}`);
      const changes = digests.map((digest) => updating(client, { secrets: [{ digest }] }));
      const done = await Promise.all(
        registrars.map((registrar, index) => registrar.change(changes[index] ?? assert.fail())),
      );
      const digest = digests[done.findIndex((failed) => failed.length === 0)];
      assert.deepEqual(new Set(done.flat()), new Set(["registration_current"]), `round ${round}`);
      assert.deepEqual(await store.registrations.client(client.clientId), {
        ...client,
        version: 2,
        secrets: [{ digest }],
      });
    }
  });

  check(
    "RFC7592-2.3-1 removing a client while it is updated or gets a token always succeeds",
    async (open) => {
      const [changing, ending] = await pair(open);
      const store = await open();
      for (let round = 0; round < rounds(4); round++) {
        const client = await changing.register();
        const { clientId } = client;
        const token = makeToken({ clientId });
        const change = () => (round % 4 < 2 ? changing.change(updating(client)) : changing.write({ token }));
        const remove = () => ending.change(removing(clientId));
        const going = round % 2 === 0 ? [change(), remove()] : [remove(), change()];
        const done = await Promise.all(going);
        const [, removed] = round % 2 === 0 ? done : done.toReversed();
        assert.deepEqual(removed, [], `round ${round}`);
        assert.equal(await store.registrations.client(clientId), undefined);
        assert.ok(!isLive(await store.facts.token(token.jti)));
      }
    },
  );

  check("of two instances that remove one idle client at the same time, one succeeds", async (open) => {
    const registrars = await pair(open);
    for (let round = 0; round < rounds(4); round++) {
      const { clientId } = await registrars[0].register();
      const tries = registrars.map((one) => one.change(removing(clientId, NOW_SECONDS)));
      assert.deepEqual(await outcomes(tries), [[], ["registration_current"]], `round ${round}`);
    }
  });

  check("two instances that delete rows at the same time delete each once", async (open) => {
    const stores = [await open(), await open()] as const;
    const [registrar] = await pair(open);
    for (let count = 0; count < 20; count++) {
      const { clientId } = await registrar.register();
      await registrar.change(removing(clientId));
      await registrar.mint({ expiresAtSeconds: NOW_SECONDS });
    }
    let left = 0;
    do {
      const swept = await Promise.all(stores.map((store) => store.registrations.sweep(NOW_SECONDS + 9, 3)));
      left = (await stores[0].clients.list()).length;
      assert.ok(swept.every((count) => count <= 6));
    } while (left > 0);
    assert.deepEqual(await stores[0].registrations.initialTokens(), []);
  });
}
