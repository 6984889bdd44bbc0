/**
 * Clients that are identified by the URL of their metadata document, over real TLS: every authentication method, what
 * policy allows them, and requests that cause no fetch. Caching and refused documents have files of their own.
 */
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { after, before, test } from "node:test";
import { mintJwtSvid } from "../../scripts/dev-keys.ts";
import {
  issueClientCertificate,
  makeAuthority,
  makeTrustDomain,
  mintX509Svid,
} from "../../scripts/dev-pki.ts";
import { type Answer, basic } from "../../scripts/http-client.ts";
import { DRAFT } from "../../src/spec/cimd.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import {
  bearer,
  byKey,
  type Key,
  makeKey,
  openTo,
  type Publisher,
  publish,
  publishKeys,
  startPublisher,
} from "../support/documents.ts";
import { stop } from "../support/stop.ts";
import {
  ACCESS_TOKEN,
  type Certificate,
  claimsOf,
  EXCHANGE,
  type Form,
  IDP,
  ISSUER,
  JWT,
  makeWorld,
  TRUST_DOMAIN,
  type World,
  workload,
} from "../support/world.ts";

const API = "https://api.example";
const CC = { grant_type: "client_credentials", audience: API };
const cart = workload("agents/cart");
const [own, newer, otherKey] = (await Promise.all(["k1", "k2", "k1"].map(makeKey))) as [Key, Key, Key];
const pinned = await issueClientCertificate(await makeAuthority("Unknown authority"), ["pinned.example"]);
const pinnedJwk = {
  ...new X509Certificate(pinned.certPem).publicKey.export({ format: "jwk" }),
  x5c: [new X509Certificate(pinned.certPem).raw.toString("base64")],
};

// --- authentication methods ---------------------------------------------------------------------------------------

type Proof = { form: Form; certificate?: Certificate };
type Way = {
  method: string;
  members(origin: string): object;
  prove(clientId: string): Proof | Promise<Proof>;
  /** The workload that is authenticated at the same time. */
  workload?: string;
};

const bySvid = async (client_id: string): Promise<Proof> => ({
  form: { ...world.as(await world.svid("agents/cart")), client_id },
});

/** The methods, by the name of their document. */
const WAYS: Record<string, Way> = {
  jwks: {
    method: "private_key_jwt",
    members: () => ({ jwks: { keys: [own.jwk] } }),
    prove: (clientId) => ({ form: bearer(clientId, own) }),
  },
  "jwks-uri": {
    method: "private_key_jwt",
    members: (origin) => ({ jwks_uri: `${origin}/keys` }),
    prove: (clientId) => ({ form: bearer(clientId, own) }),
  },
  "jwt-svid": {
    method: "spiffe_jwt",
    members: () => ({ spiffe_id: cart }),
    prove: bySvid,
    workload: cart,
  },
  "jwt-svid-of-many": {
    method: "spiffe_jwt",
    members: () => ({ spiffe_id: workload("agents/*") }),
    prove: bySvid,
    workload: cart,
  },
  "x509-svid": {
    method: "spiffe_x509",
    members: () => ({ spiffe_id: cart }),
    async prove(client_id) {
      const { keyPem, chainPem } = await mintX509Svid(world.trustDomain, cart);
      return { form: { client_id }, certificate: { key: keyPem, cert: chainPem } };
    },
    workload: cart,
  },
  "self-signed": {
    method: "self_signed_tls_client_auth",
    members: () => ({ jwks: { keys: [pinnedJwk] } }),
    prove: (client_id) => ({
      form: { client_id },
      certificate: { key: pinned.keyPem, cert: pinned.certPem },
    }),
  },
};

// --- the servers --------------------------------------------------------------------------------------------------

/** A rule names the origin of the first server, and single documents of the second. */
let byOrigin: Publisher;
let byDocument: Publisher;
let world: World;

before(async () => {
  [byOrigin, byDocument] = await Promise.all([startPublisher(), startPublisher()]);
  for (const server of [byOrigin, byDocument]) {
    publishKeys(server, "/keys", [own]);
    for (const [name, { method, members }] of Object.entries(WAYS)) {
      for (const path of [`/named/${name}`, `/unnamed/${name}`]) {
        publish(server, path, { token_endpoint_auth_method: method, ...members(server.origin) });
      }
    }
  }
  const named = [
    `${byOrigin.origin}/*`,
    ...Object.keys(WAYS).map((name) => `${byDocument.origin}/named/${name}`),
  ];
  const scopes = ["read", "write"];
  const forUsers = {
    subjects: { issuers: [IDP] },
    subjectToken: { audiences: [ISSUER] },
    consent: "implied",
    acknowledge: "subjects-not-asked",
  };
  const { clientOrigins, files } = openTo({ byOrigin, byDocument });
  world = await makeWorld(
    {
      clientMetadataDocuments: { assertionAudience: "issuer" },
      clientOrigins,
      drafts: [SPIFFE_DRAFT, DRAFT],
      clients: { secret: { method: "client_secret_basic", secrets: ["a-secret"] } },
      targets: [
        { names: [API], scopes },
        { names: ["desk"], scopes },
      ],
      policies: [
        { id: "machines", allow: "client_credentials", clients: named, targets: [API], scopes },
        { id: "for-users", allow: "impersonation", clients: named, ...forUsers, targets: [API], scopes },
        { id: "agents", allow: "delegation", actors: [cart], ...forUsers, targets: ["desk"], scopes },
      ],
      limits: {
        failuresPerMinuteBySource: 100_000,
        failuresPerMinuteByClient: 100_000,
        fetchesPerMinuteBySource: 100_000,
        fetchesPerMinuteByHost: 100_000,
      },
    },
    { files },
  );
});

after(() => stop(world, byOrigin, byDocument));

const ask = async (proof: Proof | Promise<Proof>, form: Form = CC): Promise<Answer> => {
  const { form: proving, certificate } = await proof;
  return world.token({ ...form, ...proving }, {}, certificate);
};
const askByKey = (clientId: string, key = own, claims: object = {}): Promise<Answer> =>
  world.token({ ...CC, ...bearer(clientId, key, claims) });

function assertClient(answer: Answer, clientId: string): void {
  assert.equal(answer.status, 200, answer.text);
  assert.equal(claimsOf(answer.body.access_token).client_id, clientId);
}

function assertRefused(answer: Answer, error = "invalid_client"): void {
  assert.deepEqual([answer.status, answer.body.error], [400, error], answer.text);
}

/** The event of this request. */
async function eventOf({ headers }: Answer) {
  const events = await world.events();
  return events.find(({ request }) => Object(request).id === headers["x-request-id"]);
}

// --- policy -------------------------------------------------------------------------------------------------------

const places = [
  ["the origin", () => byOrigin],
  ["the document", () => byDocument],
] as const;
for (const [name, way] of Object.entries(WAYS)) {
  for (const [what, serverOf] of places) {
    const clientOf = (path = "named"): string => `${serverOf().origin}/${path}/${name}`;

    test(`PROD-1.6-3, PROD-2.1-4, CIMD-8.2-2, CIMD-7.1-2 ${name}: the client gets a token if a rule names ${what}`, async () => {
      const answer = await ask(way.prove(clientOf()));
      assertClient(answer, clientOf());
      assert.equal(claimsOf(answer.body.access_token).sub, clientOf());
      const event = await eventOf(answer);
      const { client_id, auth_method, source, workload: proven } = Object(event?.client);
      assert.deepEqual(
        { client_id, auth_method, source, proven },
        {
          client_id: clientOf(),
          auth_method: way.method,
          source: "metadata_document",
          proven: way.workload,
        },
      );
    });

    test(`CIMD-4.2-2 ${name}: the client may impersonate a user if a rule names ${what}`, async () => {
      const answer = await ask(way.prove(clientOf()), { ...(await exchange()), audience: API });
      assertClient(answer, clientOf());
      const { sub, act } = claimsOf(answer.body.access_token);
      assert.deepEqual([sub, act], ["u-1", undefined]);
      assert.equal((await eventOf(answer))?.type, "token_exchange.impersonation");
    });
  }

  test(`PROD-1.5-2, PROD-2.2-5 ${name}: the client gets no token if no rule names origin or document`, async () => {
    const clientId = `${byDocument.origin}/unnamed/${name}`;
    assertRefused(await ask(way.prove(clientId)), "unauthorized_client");
    assertRefused(
      await ask(way.prove(clientId), { ...(await exchange()), audience: API }),
      "invalid_request",
    );
    assert.equal(byDocument.requests(`/unnamed/${name}`).length, 1);
  });

  test(`CIMD-8.2-2, RFC6749-2.3.1-5 ${name}: other methods and missing credentials are refused`, async () => {
    const clientId = `${byOrigin.origin}/named/${name}`;
    for (const other of Object.values(WAYS).filter(({ method }) => method !== way.method)) {
      assertRefused(await ask(other.prove(clientId)));
    }
    assertRefused(await world.token({ ...CC, client_id: clientId }));
    assertRefused(await world.token({ ...CC, client_id: clientId, client_secret: "" }));
    assertRefused(await world.token({ ...CC, client_id: clientId, client_secret: "a-secret" }));
  });
}

const exchange = async (): Promise<Form> => ({
  grant_type: EXCHANGE,
  subject_token: await world.idp.mintUserToken({ sub: "u-1", aud: ISSUER, scope: "read" }),
  subject_token_type: JWT,
});

const delegate = async (actor_token: string): Promise<Form> => ({
  ...(await exchange()),
  actor_token,
  actor_token_type: JWT,
  audience: "desk",
});

for (const name of Object.keys(WAYS).filter((one) => WAYS[one]?.workload !== undefined)) {
  test(`SPCA-3.1-9, SPCA-3.2-8, PROD-4.1v5-6 ${name}: the actor in a delegation is the authenticated workload`, async () => {
    const clientId = `${byDocument.origin}/named/${name}`;
    const proof = await WAYS[name]?.prove(clientId);
    assert.ok(proof);
    const svid = proof.form.client_assertion ?? (await world.svid("agents/cart"));
    const answer = await ask(proof, await delegate(String(svid)));
    assertClient(answer, clientId);
    const { sub, act } = claimsOf(answer.body.access_token);
    assert.deepEqual([sub, act], ["u-1", { sub: cart }]);
  });
}

test("PROD-4.1v5-4 a client without a workload cannot use the SVID of one as its actor token", async () => {
  const form = await delegate(await world.svid("agents/cart"));
  assertRefused(await ask({ form: bearer(`${byDocument.origin}/named/jwks`, own) }, form), "invalid_request");
});

const NOTHING_ASKED = [
  ["RFC7591-2-7 without grant_types", { grant_types: undefined }],
  ["PROD-2.2-8 with authorization_code alone", { grant_types: ["authorization_code"] }],
  ["RFC7591-2-20 with unknown grant types alone", { grant_types: ["urn:x:y"] }],
] as const;
for (const [name, members] of NOTHING_ASKED) {
  test(`${name}: a client of such a document can use no grant type`, async () => {
    const redirects = { redirect_uris: ["https://cart.example/callback"] };
    const document = byKey({ jwks: { keys: [own.jwk] }, ...redirects, ...members });
    const clientId = publish(byOrigin, "/nothing-asked", document);
    for (const form of [CC, { ...(await exchange()), audience: API }]) {
      assertRefused(await ask({ form: bearer(clientId, own) }, form), "unauthorized_client");
    }
  });
}

test("CIMD-4.2-2, PROD-2.2-7 grant types and scope of a document limit what policy allows", async () => {
  const narrow = { jwks: { keys: [own.jwk] }, grant_types: ["client_credentials"], scope: "read" };
  const clientId = publish(byOrigin, "/narrow", byKey(narrow));
  const answer = await ask({ form: bearer(clientId, own) });
  assertClient(answer, clientId);
  assert.equal(answer.body.scope, "read");
  const form = await exchange();
  assertRefused(
    await ask({ form: bearer(clientId, own) }, { ...form, audience: API }),
    "unauthorized_client",
  );
});

// --- which client is authenticated --------------------------------------------------------------------------------

test("CIMD-8.2-3, PROD-2.2-14 the keys of a document authenticate its client, and no other key does", async () => {
  for (const name of ["jwks", "jwks-uri"]) {
    const clientId = `${byOrigin.origin}/named/${name}`;
    assertClient(await askByKey(clientId), clientId);
    assertRefused(await askByKey(clientId, otherKey));
    assertRefused(await askByKey(clientId, newer));
  }
});

test("CIMD-3-8 another spelling of a URL is another client, and an assertion authenticates only its own URL", async () => {
  const clientId = `${byOrigin.origin}/named/jwks`;
  assertRefused(await askByKey(`${clientId}/`));
  assertRefused(await askByKey(clientId.replace("named", "n%61med")));
  assertRefused(await askByKey(clientId, own, { iss: `${clientId}-uri` }));
  assertRefused(await askByKey(clientId, own, { sub: `${clientId}-uri` }));
});

test("SPCA-5.1-3, SPCA-5.1-4 a document covers the workloads that its pattern matches, in whole segments", async () => {
  const asClient = async (name: string, path: string): Promise<Answer> =>
    world.token({
      ...CC,
      ...world.as(await world.svid(path)),
      client_id: `${byOrigin.origin}/named/${name}`,
    });
  const many = "jwt-svid-of-many";
  assertClient(await asClient(many, "agents/cart"), `${byOrigin.origin}/named/${many}`);
  assertClient(await asClient(many, "agents/other/below"), `${byOrigin.origin}/named/${many}`);
  for (const path of ["agents", "agentsother", "other/agents/cart"]) {
    assertRefused(await asClient(many, path));
  }
  assertRefused(await asClient("jwt-svid", "agents/cart/below"));
  assertRefused(await asClient("jwt-svid", "agents/other"));
});

test("SPCA-5.1-6, SPCA-6.1-4 SVIDs are verified with the configured bundle alone", async () => {
  const another = await makeTrustDomain(TRUST_DOMAIN);
  const forged = { ...another, jwt: { ...another.jwt, kid: world.trustDomain.jwt.kid } };
  for (const [trustDomain, isProven] of [
    [world.trustDomain, true],
    [forged, false],
  ] as const) {
    const svid = await mintJwtSvid(trustDomain, { sub: cart, aud: ISSUER });
    const byJwt = `${byOrigin.origin}/named/jwt-svid`;
    const { keyPem: key, chainPem: cert } = await mintX509Svid(trustDomain, cart);
    const byCertificate = `${byOrigin.origin}/named/x509-svid`;
    const answers: [Answer, string][] = [
      [await world.token({ ...CC, ...world.as(svid), client_id: byJwt }), byJwt],
      [await world.token({ ...CC, client_id: byCertificate }, {}, { key, cert }), byCertificate],
    ];
    for (const [answer, clientId] of answers) {
      if (isProven) assertClient(answer, clientId);
      else assertRefused(answer);
    }
  }
});

test("PROD-4.3-1, PROD-4.3-2, PROD-2.2-1, PROD-2.2-2 a document with the six members of the product document is fetched by GET at its URL", async () => {
  const clientId = publish(byOrigin, "/six", {
    redirect_uris: ["https://cart.example/callback"],
    grant_types: ["authorization_code", "client_credentials"],
    token_endpoint_auth_method: "private_key_jwt",
    jwks_uri: `${byOrigin.origin}/keys`,
  });
  assertClient(await askByKey(clientId), clientId);
  const [{ method, headers } = assert.fail("the document was not fetched"), ...others] =
    byOrigin.requests("/six");
  assert.deepEqual([method, headers.get("accept"), others.length], ["GET", "application/json", 0]);
  assert.deepEqual([headers.get("cookie"), headers.get("authorization")], [null, null]);
});

test("RFC7523-3-14 an assertion of such a client is accepted once", async () => {
  const clientId = `${byOrigin.origin}/named/jwks`;
  const form = { ...CC, ...bearer(clientId, own) };
  assertClient(await world.token(form), clientId);
  assertRefused(await world.token(form));
});

// --- requests that cause no fetch ---------------------------------------------------------------------------------

type Idle = [id: string, what: string, request: (url: string) => Promise<Answer> | Answer];

const notFetched = (id: string, what: string, change: (url: string) => string): Idle[] => [
  [id, `an assertion of ${what}`, (url) => askByKey(change(url))],
  [id, `a JWT-SVID as ${what}`, async (url) => world.token({ ...CC, ...(await bySvid(change(url))).form })],
  [
    id,
    `a certificate as ${what}`,
    async (url) => {
      const { keyPem, chainPem } = await mintX509Svid(world.trustDomain, cart);
      return world.token({ ...CC, client_id: change(url) }, {}, { key: keyPem, cert: chainPem });
    },
  ],
];

const seconds = (): number => Math.floor(Date.now() / 1000);

const rejected = (what: string, claims: () => object, header: object = {}): Idle => [
  "CIMD-8.2-7, PROD-7.2-2",
  `an assertion that ${what}`,
  (url) => world.token({ ...CC, ...bearer(url, own, claims(), header) }),
];

const IDLE: Idle[] = [
  ...notFetched("PROD-4.3-3, PROD-2.1-3", "an opaque name", () => "cart"),
  ...notFetched("PROD-4.3-3", "a name in plain HTTP", (url) => url.replace("https", "http")),
  ...notFetched("PROD-4.3-3", "a name with an upper-case scheme", (url) => url.replace("https", "HTTPS")),
  ...notFetched("PROD-4.3-3", "a name with a leading space", (url) => ` ${url}`),
  ...notFetched("PROD-4.3-3", "a SPIFFE ID of the same host", (url) => url.replace("https", "spiffe")),
  ...notFetched("PROD-4.3-3", "a name with one slash", (url) => url.replace("//", "/")),
  ...notFetched("CIMD-3-7", "a URL with a fragment", (url) => `${url}#a`),
  ...notFetched("CIMD-3-6", "a URL with a query", (url) => `${url}?a=b`),
  ...notFetched("CIMD-3-2", "a URL with a user", (url) => url.replace("//", "//user@")),
  ...notFetched("CIMD-3-5", "a URL with dots", (url) => `${url}/../a`),
  rejected("has expired", () => ({ iat: seconds() - 400, exp: seconds() - 100 })),
  rejected("has no exp", () => ({ exp: undefined })),
  rejected("has too long a lifetime", () => ({ exp: seconds() + 4000 })),
  rejected("has an iat in the future", () => ({ iat: seconds() + 400, exp: seconds() + 460 })),
  rejected("has another audience", () => ({ aud: API })),
  rejected("has two audiences", () => ({ aud: [ISSUER, API] })),
  rejected("has a number as jti", () => ({ jti: 1 })),
  rejected("has an issuer that does not vouch for clients", () => ({ iss: "https://other.example" })),
  rejected("has the typ of an access token", () => ({}), { typ: "at+jwt" }),
  rejected("is unsigned", () => ({}), { alg: "none" }),
  rejected("is signed with a secret", () => ({}), { alg: "HS256" }),
  rejected("has a key in its header", () => ({}), { jwk: own.jwk }),
  [
    "CIMD-9.1-1, RFC7521-4.2-2",
    "an assertion beside another client_id",
    (url) => world.token({ ...CC, ...bearer(url, own), client_id: `${url}-other` }),
  ],
  [
    "CIMD-9.1-1, RFC7521-4.2-2",
    "an assertion of another client beside the client_id",
    (url) => world.token({ ...CC, ...bearer("cart", own), client_id: url }),
  ],
  [
    "CIMD-9.1-1, SPCA-3.1-5",
    "a JWT-SVID that has expired",
    async (url) =>
      world.token({
        ...CC,
        ...world.as(await world.svid("agents/cart", { expSeconds: -60 })),
        client_id: url,
      }),
  ],
  [
    "CIMD-9.1-1, SPCA-3.1-6",
    "a JWT-SVID with another audience",
    async (url) =>
      world.token({ ...CC, ...world.as(await world.svid("agents/cart", { aud: API })), client_id: url }),
  ],
  [
    "STU-D-2",
    "an assertion that names the token endpoint, where document clients name the issuer alone",
    (url) => world.token({ ...CC, ...bearer(url, own, { aud: `${ISSUER}/token` }) }),
  ],
  [
    "STU-D-2",
    "a JWT-SVID that names the token endpoint, where document clients name the issuer alone",
    async (url) =>
      world.token({
        ...CC,
        ...world.as(await world.svid("agents/cart", { aud: `${ISSUER}/token` })),
        client_id: url,
      }),
  ],
  ["CIMD-9.1-1", "a client_id without credentials", (url) => world.token({ ...CC, client_id: url })],
  ["CIMD-4.1-1", "a secret", (url) => world.token({ ...CC, client_id: url, client_secret: "a-secret" })],
  ["CIMD-4.1-1", "a Basic header", (url) => world.token(CC, { authorization: basic(url, "a-secret") })],
  [
    "CIMD-4.1-1",
    "an assertion and a secret",
    (url) => world.token({ ...CC, ...bearer(url, own), client_id: url, client_secret: "a-secret" }),
  ],
  [
    "PROD-4.1-26",
    "an assertion of an unknown type",
    (url) => world.token({ ...CC, ...bearer(url, own), client_assertion_type: "jwt-bearer", client_id: url }),
  ],
  [
    "RFC6749-5.2-2",
    "a request without a grant type",
    (url) => world.token({ ...bearer(url, own), audience: API }),
  ],
];
let idle = 0;
for (const [id, what, send] of IDLE) {
  test(`${id} nothing is fetched for ${what}`, async () => {
    const path = `/never/${++idle}`;
    publish(byOrigin, path, byKey({ jwks: { keys: [own.jwk] } }));
    const fetched = byOrigin.count();
    const { status, body } = await send(`${byOrigin.origin}${path}`);
    assert.ok(status === 400 || status === 401, String(status));
    assert.match(String(body.error), id === "RFC6749-5.2-2" ? /^invalid_request$/ : /^invalid_client$/);
    assert.equal(byOrigin.count(), fetched);
  });
}

test("PROD-4.3-3 nothing is fetched for a URL in a parameter other than client_id", async () => {
  const url = publish(byOrigin, "/never/client", byKey({ jwks: { keys: [own.jwk] } }));
  const fetched = byOrigin.count();
  const { client_assertion: signed = "" } = bearer(url, own, { client_id: url });
  const form = { ...(await exchange()), audience: API };
  for (const more of [
    { audience: url },
    { resource: url },
    { subject_token: signed },
    { subject_token: signed, subject_token_type: ACCESS_TOKEN },
    { actor_token: signed, actor_token_type: JWT },
    { requested_token_type: url },
    { scope: url },
  ]) {
    const { status } = await world.token(
      { ...form, ...more },
      { authorization: basic("secret", "a-secret") },
    );
    assert.equal(status, 400, JSON.stringify(more));
  }
  assert.equal(byOrigin.count(), fetched);
});
