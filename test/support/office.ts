/** An office in flows: tokens of every kind for the target `desk`, whose owner `booking` exchanges them onward. */
import assert from "node:assert/strict";
import type { Authenticated } from "../../src/flows/authenticate-client.ts";
import { answerTokenRequest } from "../../src/flows/token.ts";
import type { StorePlace } from "../../src/settings/settings.ts";
import { DRAFT as DOCUMENT_DRAFT } from "../../src/spec/cimd.ts";
import { DRAFT as ID_JAG_DRAFT } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING_DRAFT } from "../../src/spec/identity-chaining.ts";
import { JWT_BEARER_GRANT } from "../../src/spec/rfc7523.ts";
import { DRAFT as SPIFFE_DRAFT } from "../../src/spec/spiffe/client-auth.ts";
import { AT_TOKEN, formOf, openFlow } from "./flow.ts";
import { makeForeign } from "./foreign.ts";
import { ACCESS_TOKEN, EXCHANGE, IDP, ISSUER, JWT, TRUST_DOMAIN, workload } from "./world.ts";

export const VOUCHER = "https://builds.example";
export const PARTNER = "https://as.partner.example";
export const OTHER_DOMAIN = "other.example";
const DOCUMENT = "https://app.example/client.json";
export const planner = `spiffe://${OTHER_DOMAIN}/planner`;
export const booking = workload("booking");
export const kiosk = workload("kiosk");
const scopes = ["read", "write"];
const secretly = { method: "client_secret_basic", secrets: ["a secret that nothing reads 1234567"] };
const forUsers = { subjects: { issuers: [IDP] }, subjectToken: { audiences: [ISSUER, "self"] }, scopes };
const implied = { consent: "implied", acknowledge: "subjects-not-asked" };
const targets = ["desk"];

export const OFFICE = {
  trustDomains: {
    [TRUST_DOMAIN]: { bundle: { file: "bundle.json" } },
    [OTHER_DOMAIN]: { bundle: { file: "bundle.json" } },
  },
  trustedIssuers: {
    [IDP]: { keys: { url: `${IDP}/jwks` }, subjects: "keep" },
    [VOUCHER]: { keys: { url: `${VOUCHER}/jwks` }, subjects: { prefix: "v:" }, acceptAs: [], vouches: {} },
    [PARTNER]: {
      keys: { url: `${PARTNER}/jwks` },
      subjects: { prefix: "p:" },
      acceptAs: [],
      grants: { scopes },
    },
  },
  clientMetadataDocuments: { origins: ["https://app.example"] },
  clients: {
    portal: secretly,
    kiosk: { ...secretly, workload: kiosk, actorAccessToken: true },
    hotel: secretly,
    vouched: { method: "private_key_jwt", vouchedBy: [{ issuer: VOUCHER, claims: { sub: "job-1" } }] },
    associated: { method: "spiffe_jwt", spiffeId: `spiffe://${OTHER_DOMAIN}/crew/*` },
  },
  targets: [
    { names: ["desk"], owners: [booking], scopes },
    { names: ["spare"], scopes },
  ],
  policies: [
    { id: "own", allow: "client_credentials", clients: ["portal", "vouched"], targets, scopes },
    { id: "by-class", allow: "client_credentials", classes: ["clerks"], targets, scopes },
    { id: "kiosks", allow: "client_credentials", actors: [kiosk], targets, scopes },
    { id: "crew", allow: "client_credentials", actors: [`spiffe://${OTHER_DOMAIN}/crew/*`], targets, scopes },
    { id: "documents", allow: "client_credentials", clients: [DOCUMENT], targets, scopes },
    { id: "asked", allow: "delegation", actors: [planner], targets, ...forUsers, consent: "record" },
    { id: "invited", allow: "delegation", actors: [kiosk], targets, ...forUsers, ...implied },
    {
      id: "guests",
      allow: "redemption",
      clients: ["hotel"],
      subjects: { issuers: [PARTNER] },
      targets,
      scopes,
      ...implied,
    },
    {
      id: "onward",
      allow: "delegation",
      actors: [booking],
      targets,
      ...forUsers,
      ...implied,
      subjects: { issuers: [IDP, PARTNER, ISSUER] },
    },
  ],
  drafts: [SPIFFE_DRAFT, CHAINING_DRAFT, ID_JAG_DRAFT, DOCUMENT_DRAFT],
};
export type OfficeConfiguration = typeof OFFICE;

export const KINDS = ["portal", "vouched", "kiosk", "crew", "document", "asked", "invited", "guest"] as const;
export type Issued = (typeof KINDS)[number];

export async function openOffice(t: { after(end: () => Promise<void>): void }, place?: StorePlace) {
  const signers = {
    [IDP]: await makeForeign(IDP),
    [PARTNER]: await makeForeign(PARTNER),
    [TRUST_DOMAIN]: await makeForeign(TRUST_DOMAIN),
    [OTHER_DOMAIN]: await makeForeign(OTHER_DOMAIN),
  };
  const flow = await openFlow(t, OFFICE, signers, place === undefined ? {} : { place });
  const exp = flow.nowSeconds + 3_000;
  const consent = await flow.consent({
    origin: { iss: IDP, sub: "u-1" },
    actor: planner,
    targets,
    scopes,
  });
  const { clock } = flow.ports;
  const user = (claims: object = {}) => {
    const usual = { iss: IDP, sub: "u-1", aud: ISSUER, scope: "read write", iat: clock.nowSeconds(), exp };
    return signers[IDP].sign({ ...usual, ...claims });
  };
  const svid = (sub: string) => {
    const domain = sub.startsWith(`spiffe://${OTHER_DOMAIN}/`) ? OTHER_DOMAIN : TRUST_DOMAIN;
    return signers[domain].sign({ sub, aud: ISSUER, exp }, { typ: "JWT" });
  };
  const send = (client: Authenticated, parameters: Record<string, string>) =>
    answerTokenRequest(
      flow.ports,
      { client, form: formOf(parameters), request: { id: "r", endpoint: "/token", source_ip: "192.0.2.1" } },
      AT_TOKEN,
      flow.people,
    );
  const tokenOf = async (answer: ReturnType<typeof send>): Promise<string> => {
    const answered = await answer;
    assert.ok(answered.ok, JSON.stringify(answered));
    return answered.value.access_token;
  };
  const exchange = async (by: Authenticated, subject: string, type: string, actor?: string) =>
    send(by, {
      grant_type: EXCHANGE,
      subject_token: subject,
      subject_token_type: type,
      actor_token: actor ?? (await svid(by.workload ?? "")),
      actor_token_type: actor === undefined ? JWT : ACCESS_TOKEN,
      audience: "desk",
    });
  const own = (client: Authenticated) => send(client, { grant_type: "client_credentials" });
  const crew = `spiffe://${OTHER_DOMAIN}/crew/one`;
  const document: Authenticated = {
    clientId: DOCUMENT,
    method: "private_key_jwt",
    source: "metadata_document",
  };
  const issue: Record<Issued, () => ReturnType<typeof send>> = {
    portal: () => own(flow.client("portal")),
    vouched: () => own(flow.client("vouched")),
    kiosk: () => own(flow.client("kiosk")),
    crew: () => own({ ...flow.client("associated"), workload: crew }),
    document: () => own(document),
    asked: async () => exchange(flow.client(planner), await user(), JWT),
    invited: async () => exchange(flow.client("kiosk"), await user(), JWT),
    guest: async () =>
      send(flow.client("hotel"), {
        grant_type: JWT_BEARER_GRANT,
        assertion: await signers[PARTNER].grant({
          client_id: "hotel",
          scope: "read write",
          iat: clock.nowSeconds(),
        }),
      }),
  };
  const onward = (token: string) => exchange(flow.client(booking), token, ACCESS_TOKEN);
  const outcomeOf = async (answer: ReturnType<typeof send>): Promise<string> => {
    const answered = await answer;
    return answered.ok ? "good" : String(answered.error.failure.reason);
  };
  return {
    ...flow,
    consent,
    user,
    token: (kind: Issued) => tokenOf(issue[kind]()),
    onward: (token: string) => tokenOf(onward(token)),
    /** A token for the user, of `kiosk` by its own access token as actor token. */
    byActorToken: async (actor: string) => tokenOf(exchange(flow.client("kiosk"), await user(), JWT, actor)),
    /** "good", or the reason for which no new token of this kind is issued. */
    issued: (kind: Issued) => outcomeOf(issue[kind]()),
    /** "good", or the reason for which an exchange of this token is refused. */
    tried: (token: string) => outcomeOf(onward(token)),
    /** The same of a user's token, by `kiosk`. */
    triedForeign: (token: string) => outcomeOf(exchange(flow.client("kiosk"), token, JWT)),
  };
}
