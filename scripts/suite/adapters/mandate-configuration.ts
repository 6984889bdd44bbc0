/** What Mandate is told of the scene: its configuration, as data. */
import { type Issuer, spiffeId as id, type Scene, USERS } from "../scene.ts";

const reach = { ca: { file: "ca.pem" }, privateNetworks: ["127.0.0.0/8", "::1/128"] };
const keysOf = ({ jwksUri }: Issuer) => ({ keys: { url: jwksUri, ...reach } });

// biome-ignore format: an entry a line
export function configurationOf(scene: Scene, [port, mtlsPort]: [number, number]) {
  const { idp, partner, platform, names: n, clients: c, receiver } = scene;
  const [implied, own] = [{ consent: "implied", acknowledge: "subjects-not-asked" }, { allow: "client_credentials" }];
  const tls = { key: { file: "key.pem" }, cert: { file: "cert.pem" } };
  const bySecret = [c.machine, c.second, c.gate, c.elsewhere, c.guest, c.clerk];
  const issuer = `https://localhost:${port}`;
  const [scopes, introspectors, hops] = [[n.read, n.write], [c.gate.id], [id("planner"), id("booking"), id("crew")]];
  const machines = [c.machine.id, c.second.id, c.signer.id, c.pki.id, c.pinned.id, `${scene.origin}/*`];
  const forUsers = { subjects: { issuers: [idp.issuer], subs: USERS }, subjectToken: { audiences: [issuer, "self"] }, ...implied, scopes };
  const shown = { people: true, title: "API", sentences: { [n.read]: "read", [n.write]: "write" } };
  const most = { actions: ["read", "pay"], max_amount: "500.00", currency: "EUR" };
  const fields = {
    actions: { is: "strings", narrows: "subset", from: ["read", "pay"] },
    max_amount: { is: "decimal", narrows: "max", unit: "currency" }, currency: { is: "string", narrows: "equal", from: ["EUR"] },
  };
  return {
    version: 1, profile: "development", issuer, listen: { host: "127.0.0.1", port, tls, drainSeconds: 0 },
    mtls: { host: "127.0.0.1", port: mtlsPort, tls, origin: `https://localhost:${mtlsPort}` },
    store: { sqlite: "store.sqlite" }, keys: { encryptionKey: { file: "encryption-key" } }, audit: { instance: "suite" },
    trustDomains: { [scene.trustDomain.name]: { bundle: { file: "bundle.json" } } },
    trustedIssuers: {
      [idp.issuer]: { ...keysOf(idp), acceptAs: ["jwt", "id_token"], subjects: "keep", scopes, audiences: [issuer, c.machine.id], signals: { name: "idp" } },
      [partner.issuer]: { ...keysOf(partner), acceptAs: [], subjects: { prefix: "partner:" }, grants: { scopes } },
      [platform.issuer]: { ...keysOf(platform), workloads: { suite: { tenancy: "shared", subjects: ["agent/*"], claims: { "/tenant": ["t-1"] } } } },
    },
    signIn: { providers: { idp: { issuer: idp.issuer, clientId: "mandate", idTokenAlg: "ES256", ...reach } } },
    clients: {
      ...Object.fromEntries(bySecret.map(({ id: name, secret }) => [name, { method: "client_secret", secrets: [secret] }])),
      [c.signer.id]: { method: c.signer.method, jwks: scene.jwksOf(c.signer) },
      [c.pki.id]: { method: c.pki.method, tls_client_certificate_bound_access_tokens: true, ca: { file: "ca.pem" }, tls_client_auth_san_dns: "pki.suite.example" },
      [c.pinned.id]: { method: c.pinned.method, jwks: scene.jwksOf(c.pinned) },
    },
    registration: { mode: "open", open: { scopes } }, clientMetadataDocuments: {}, clientOrigins: { [scene.origin]: reach },
    targets: [
      { names: [n.api], introspectors, scopes, ...shown },
      { names: [n.other], introspectors: [c.elsewhere.id], scopes },
      { names: [n.booking], owners: [id("booking")], introspectors, scopes },
      { names: [n.crew], owners: [id("crew")], introspectors, scopes },
      { names: [n.bound], binding: "dpop", introspectors, scopes },
      { names: [n.ledger], introspectors, scopes, details: { [n.detail]: { governs: [n.write], fields } } },
      { kind: "partner", issuer: n.partner, clients: { [id("planner")]: "planner-there", [c.machine.id]: "machine-there" }, scopes },
    ],
    policies: [
      { ...own, id: "machines", clients: machines, targets: [n.api, n.other], scopes },
      { ...own, id: "registered", classes: ["open"], targets: [n.api], scopes },
      { ...own, id: "agents", actors: [...hops, "platform://suite/*"], targets: [n.api], scopes },
      { ...own, id: "bound", clients: [c.machine.id], targets: [n.bound], scopes },
      { ...own, id: "clerks", clients: [c.clerk.id], targets: [n.ledger], scopes, details: [{ type: n.detail, ...most }] },
      { ...forUsers, id: "hops", allow: "delegation", actors: hops, targets: [n.booking, n.crew, n.api] },
      { ...forUsers, id: "crew", allow: "impersonation", actors: [id("crew")], targets: [n.api], scopes: [n.read] },
      { ...forUsers, id: "named", allow: "delegation", actors: hops, consent: "may_act", acknowledge: undefined, targets: [n.other] },
      { ...forUsers, id: "grants", allow: "delegation", issues: "grant", actors: hops, targets: [n.partner] },
      { ...forUsers, id: "id-jags", allow: "impersonation", issues: "grant", clients: [c.machine.id], subjectToken: { audiences: [c.machine.id] }, targets: [n.partner] },
      { ...forUsers, id: "asks", allow: "delegation", actors: [id("asker")], subjects: { issuers: [idp.issuer] }, consent: "record", acknowledge: undefined, askUser: true, targets: [n.api] },
      { ...implied, id: "guests", allow: "redemption", clients: [c.guest.id], subjects: { issuers: [partner.issuer] }, targets: [n.api], scopes },
    ],
    signals: { streams: { api: { audience: receiver.audience, targets: [n.api], url: receiver.url, ...reach, authorization: receiver.authorization } } },
    limits: {
      failuresPerMinuteBySource: 1e5, failuresPerMinuteByClient: 1e5, proofMillisecondsPerSecond: 1e5, registrationsPerHourBySource: 1e5,
      registrationRequestsPerMinuteByClient: 1e5, fetchesPerMinuteBySource: 1e5, fetchesPerMinuteByHost: 1e5,
    },
    drafts: [
      "draft-ietf-oauth-spiffe-client-auth-02", "draft-ietf-oauth-identity-chaining-17", "draft-ietf-oauth-identity-assertion-authz-grant-04",
      "draft-ietf-oauth-client-id-metadata-document-02", "draft-ietf-oauth-deferred-token-response-01", "draft-carleton-workload-authz-grant-02",
    ],
  };
}
