/** Grants of a user and their refresh tokens, as flows: over the embedded store in memory and a clock that stands. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { TestContext } from "node:test";
import { hash } from "../../src/adapters/crypto/hash.ts";
import { CODE_REPLAYED } from "../../src/flows/refusal.ts";
import { answerTokenRequest } from "../../src/flows/token.ts";
import { recordRefusal } from "../../src/http/form.ts";
import { CODE_SECONDS, REFRESH_DAYS_MAX } from "../../src/limits/people.ts";
import type { CodeRecord } from "../../src/people/records.ts";
import type { FamilyFacts, StoredConsent } from "../../src/records.ts";
import { defined } from "../../src/result.ts";
import type { TokenAnswer } from "../../src/spec/rfc6749.ts";
import type { Prover } from "./dpop.ts";
import { AT_TOKEN, type Flow, type FlowOptions, formOf, openFlow } from "./flow.ts";
import { challengeOf, forPeople, NOTES, PUBLIC, SCOPES, verifierOf, WEB_REDIRECT } from "./people.ts";
import type { TestProvider } from "./provider.ts";
import { ISSUER } from "./world.ts";

export const LOGIN = "https://login.example";
export const ALICE = { iss: LOGIN, sub: "alice" };
export const OTHER_SECRET = "another secret of more than thirty-two characters, 987654";
export const OTHER = "other-app";

const provider = {
  issuer: LOGIN,
  trusted: (extra: object = {}) => ({
    [LOGIN]: {
      keys: { url: `${LOGIN}/jwks` },
      acceptAs: ["id_token"],
      subjects: { prefix: "company:" },
      ...extra,
    },
  }),
  provider: () => ({ issuer: LOGIN, clientId: "mandate", idTokenAlg: "ES256" }),
} as unknown as TestProvider;

const base = forPeople(provider);

type Configuration = typeof base;

/** A rule that lets the clients go on, into which `change` is merged. */
export const forRefresh = (change: (config: Configuration) => object = () => ({})) => {
  const config = {
    ...base,
    clients: {
      ...base.clients,
      [OTHER]: { method: "client_secret_basic", secrets: [OTHER_SECRET], redirectUris: [WEB_REDIRECT] },
    },
    policies: base.policies.map((rule) => ({ ...rule, refresh: true })),
    // The provider of these flows cannot be asked, and its users do not come back.
    signIn: { ...base.signIn, recheckUnaskedSeconds: REFRESH_DAYS_MAX * 24 * 3600 },
  };
  return { ...config, ...change(config) };
};

export const withIssuer = (extra: object) => forRefresh(() => ({ trustedIssuers: provider.trusted(extra) }));
export const withRefresh = (refresh: object) => forRefresh(() => ({ authorize: { refresh } }));
export const withRule = (extra: object) =>
  forRefresh(({ policies }) => ({ policies: policies.map((rule) => ({ ...rule, ...extra })) }));

type Asked = Readonly<Record<string, string | readonly string[]>>;

type Given = {
  client?: string;
  offline?: boolean;
  scopes?: readonly string[];
  target?: string;
  by?: Prover;
  consent?: StoredConsent;
  /** How long after the click its code is redeemed. */
  afterSeconds?: number;
  /** Whether the page told for how long. */
  told?: boolean;
};

type Refused = { error: string; reason: string; waitSeconds?: number };

export type Outcome = (TokenAnswer & { error?: undefined }) | Refused;

export type RefreshFlow = Flow & {
  /** A click, and the redemption of its code. */
  give(how?: Given): Promise<{ answer: Outcome; code: Asked }>;
  /** The refresh token of a click. */
  start(how?: Given): Promise<string>;
  ask(form: Asked, client?: string, by?: Prover, source?: string): Promise<Outcome>;
  refresh(token: string, extra?: Asked, client?: string, by?: Prover, source?: string): Promise<Outcome>;
  families(): Promise<readonly FamilyFacts[]>;
  consentOf(client: string, scopes?: readonly string[], target?: string): Promise<StoredConsent>;
};

export async function openRefresh(
  t: Pick<TestContext, "after">,
  configuration: object = forRefresh(),
  open: FlowOptions = {},
  user = ALICE,
): Promise<RefreshFlow> {
  const flow = await openFlow(t, configuration, {}, open);
  const { ports, people } = flow;

  const ask = async (form: Asked, clientId = PUBLIC, by?: Prover, source = "192.0.2.1"): Promise<Outcome> => {
    const request = { id: "r-1", endpoint: "/token", source_ip: source };
    const asked = { client: flow.client(clientId), form: formOf(form), request };
    const proof = by?.prove(AT_TOKEN.url);
    const answer = await answerTokenRequest(ports, asked, defined({ ...AT_TOKEN, proof }), people);
    if (answer.ok) return answer.value;
    const refused = answer.error;
    if (refused.event === undefined) return { error: refused.failure.kind, reason: refused.failure.reason };
    const { kind, reason, waitSeconds } = await recordRefusal(ports, refused, undefined);
    const { spends } = refused;
    if (reason === CODE_REPLAYED && spends !== undefined) await people.endReplayed(ports, request, spends);
    return defined<Refused>({ error: kind, reason, waitSeconds });
  };

  const consentOf: RefreshFlow["consentOf"] = (client, scopes = SCOPES, target = NOTES) =>
    flow.consent({ origin: user, actor: client, targets: [target], scopes });

  const give = async (how: Given = {}): Promise<{ answer: Outcome; code: Asked }> => {
    const { client = PUBLIC, offline = true, scopes = SCOPES, target = NOTES, by, told = true } = how;
    const consent = how.consent ?? (await consentOf(client, scopes, target));
    const [code, verifier] = [randomBytes(32).toString("base64url"), verifierOf()];
    const nowSeconds = ports.clock.nowSeconds();
    const { refresh: times } = ports.settings().signIn ?? assert.fail("users do not sign in");
    const endsAtSeconds = nowSeconds + (offline ? times.seconds : times.briefSeconds);
    const idleEndsAtSeconds = offline ? nowSeconds + times.idleSeconds : undefined;
    const lasts = defined<NonNullable<CodeRecord["refresh"]>>({
      offline,
      startedAtSeconds: nowSeconds,
      endsAtSeconds,
      idleEndsAtSeconds,
    });
    const body = defined<CodeRecord>({
      clientId: client,
      redirectUri: WEB_REDIRECT,
      redirectUriSent: true,
      challenge: challengeOf(verifier),
      target,
      scopes,
      origin: user,
      sub: `company:${user.sub}`,
      consentId: consent.id,
      signedInAtSeconds: nowSeconds - 30,
      authTimeSeconds: nowSeconds - 30,
      acr: "urn:acr:two",
      usableUntilSeconds: nowSeconds + CODE_SECONDS,
      refresh: told ? lasts : undefined,
    });
    const key = hash.sha256(code);
    const row = { kind: "code", key, version: 1, body, expiresAtSeconds: nowSeconds + 3_000 } as const;
    await ports.shortLived.add(row);
    flow.pass(how.afterSeconds ?? 0);
    const form = {
      grant_type: "authorization_code",
      code,
      redirect_uri: WEB_REDIRECT,
      code_verifier: verifier,
    };
    return { answer: await ask(form, client, by), code: form };
  };

  return {
    ...flow,
    ask,
    give,
    consentOf,
    async start(how) {
      return tokenOf((await give(how)).answer);
    },
    refresh: (token, extra = {}, client = PUBLIC, by, source) =>
      ask({ grant_type: "refresh_token", refresh_token: token, ...extra }, client, by, source),
    families: () => ports.families.list(user),
  };
}

/** The refresh token of an answer. */
export function tokenOf(answer: Outcome): string {
  assert.ok(answer.error === undefined, JSON.stringify(answer));
  return answer.refresh_token ?? assert.fail("no refresh token");
}

/** The claims of the access token of an answer. */
export function claimsIn(answer: Outcome): Record<string, unknown> {
  assert.ok(answer.error === undefined, JSON.stringify(answer));
  return JSON.parse(Buffer.from(answer.access_token.split(".")[1] ?? "", "base64url").toString());
}

export const errorOf = (answer: Outcome): string => answer.error ?? "none";

export { ISSUER };
