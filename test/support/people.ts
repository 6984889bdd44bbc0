/** A server at which users sign in, with clients of people; and browsers that go through its pages. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { type Answer, basic, encodeForm } from "../../scripts/http-client.ts";
import type { TestProvider } from "./provider.ts";
import type { Service } from "./world.ts";

export const NOTES = "https://notes.example/mcp";
export const PUBLIC = "desk-app";
export const PRIVATE = "web-app";
export const PRIVATE_SECRET = "a secret of more than thirty-two characters, 0123456789";
/** The header field by which the private client proves itself. */
export const AS_WEB = { authorization: basic(PRIVATE, PRIVATE_SECRET) };
export const WEB_REDIRECT = "https://app.example/cb";
export const LOOPBACK_REDIRECT = "http://127.0.0.1/callback";
export const SCOPES = ["notes.read", "notes.write"];

export const verifierOf = (): string => randomBytes(32).toString("base64url");
export const challengeOf = (verifier: string): string =>
  createHash("sha256").update(verifier).digest("base64url");

/** The configuration of such a server, into which `extra` is merged. */
export const forPeople = (provider: TestProvider, extra: Record<string, unknown> = {}) => ({
  trustedIssuers: provider.trusted(),
  signIn: { providers: { company: provider.provider() } },
  clients: {
    [PUBLIC]: { method: "none", redirectUris: [LOOPBACK_REDIRECT] },
    [PRIVATE]: {
      method: "client_secret_basic",
      secrets: [PRIVATE_SECRET],
      redirectUris: [WEB_REDIRECT],
    },
  },
  agents: { [PUBLIC]: { title: "Desk app" }, [PRIVATE]: { title: "Web app" } },
  targets: [
    {
      names: [NOTES],
      scopes: SCOPES,
      people: true,
      title: "Notes",
      sentences: { "notes.read": "read your notes", "notes.write": "change your notes" },
    },
  ],
  policies: [
    {
      id: "apps-for-people",
      allow: "authorization_code",
      clients: [PUBLIC, PRIVATE],
      subjects: { issuers: [provider.issuer] },
      targets: [NOTES],
      scopes: SCOPES,
    },
  ],
  drafts: ["draft-ietf-oauth-spiffe-client-auth-02"],
  // The browsers of a test all come from one address.
  limits: { pagesPerMinuteBySource: 100_000 },
  ...extra,
});

export const files = (provider: TestProvider) => ({ "provider.pem": provider.ca });

export type Asked = Record<string, string | readonly string[]>;

/** The parameters of an authorization request that is in order. */
export const request = (verifier: string, extra: Asked = {}): Asked => ({
  response_type: "code",
  client_id: PRIVATE,
  redirect_uri: WEB_REDIRECT,
  code_challenge: challengeOf(verifier),
  code_challenge_method: "S256",
  resource: NOTES,
  scope: SCOPES.join(" "),
  state: "the state",
  ...extra,
});

/** What the token endpoint answers to a code, by default for the private client. */
export const redeem = (
  service: Pick<Service, "token">,
  code: string,
  verifier: string,
  extra: Asked = {},
  headers: Record<string, string> = AS_WEB,
): Promise<Answer> =>
  service.token(
    { grant_type: "authorization_code", code, redirect_uri: WEB_REDIRECT, code_verifier: verifier, ...extra },
    headers,
  );

/** A browser: it keeps cookies, and follows no redirect by itself. */
export class Browser {
  readonly cookies = new Map<string, string>();
  readonly #service: Pick<Service, "get" | "issuer">;
  readonly #provider: TestProvider;
  constructor(service: Pick<Service, "get" | "issuer">, provider: TestProvider) {
    this.#service = service;
    this.#provider = provider;
  }

  async get(url: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.#send(url, { method: "GET", headers });
  }

  async post(url: string, form: Asked, headers: Record<string, string> = {}): Promise<Answer> {
    return this.#send(url, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
      body: encodeForm(form),
    });
  }

  async #send(
    url: string,
    sent: { method: string; headers: Record<string, string>; body?: string },
  ): Promise<Answer> {
    const { issuer } = this.#service;
    const path = url.startsWith(issuer) ? url.slice(issuer.length) : url;
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = cookie === "" ? sent.headers : { cookie, ...sent.headers };
    const answer = await this.#service.get(path, { ...sent, headers });
    const set = answer.headers["set-cookie"];
    const [name, value = ""] = /^([^=]+)=([^;]*)/.exec(String(set ?? ""))?.slice(1) ?? [];
    if (name !== undefined && /Max-Age=0/.test(String(set))) this.cookies.delete(name);
    else if (name !== undefined) this.cookies.set(name, value);
    return answer;
  }

  /** GET /authorize. */
  authorize(asked: Asked): Promise<Answer> {
    return this.get(`/authorize?${encodeForm(asked)}`);
  }

  /** Signs in where the last answer leads, until the page of the request; the answer is that page. */
  async signIn(answer: Answer, user = "alice"): Promise<Answer> {
    const page = await this.follow(answer);
    const toProvider = locationOf(page);
    assert.ok(toProvider.startsWith(this.#provider.issuer), toProvider);
    const back = await this.get(this.#provider.signIn(toProvider, user));
    return this.follow(back);
  }

  /** Follows redirects as long as they stay at our server. */
  async follow(answer: Answer): Promise<Answer> {
    let last = answer;
    while (last.status === 303 && locationOf(last).startsWith(this.#service.issuer))
      last = await this.get(locationOf(last));
    return last;
  }

  /** The consent page of a request, after the sign-in. */
  async review(asked: Asked, user = "alice"): Promise<Answer> {
    const first = await this.authorize(asked);
    assert.equal(first.status, 303, first.text);
    const page = await this.follow(first);
    return page.status === 303 ? this.signIn(page, user) : page;
  }

  /** The code that the client gets once the user allowed the request. */
  async codeFor(asked: Asked, user?: string, form: Asked = {}): Promise<string> {
    const back = await this.decide(await this.review(asked, user), form);
    return parametersOf(back).code ?? assert.fail(back.text);
  }

  /** Sends the form of a consent page. */
  decide(page: Answer, form: Asked = {}): Promise<Answer> {
    const { action, token } = formOf(page);
    return this.post(action, { token, decision: "allow", all: "1", confirm: "1", ...form });
  }
}

export const locationOf = ({ headers }: Answer): string => String(headers.location ?? "");

/** The form of a consent page, as a browser would send it. */
export function formOf({ text, status }: Answer): { action: string; token: string; scopes: string[] } {
  const action = /action="([^"]*)"/.exec(text)?.[1] ?? "";
  const token = /name="token" value="([^"]*)"/.exec(text)?.[1] ?? "";
  assert.notEqual(action, "", `no form in an answer with ${status}: ${text}`);
  const scopes = [...text.matchAll(/name="scope" value="([^"]*)"/g)].map(([, value = ""]) => value);
  return { action: action.replaceAll("&#38;", "&"), token, scopes };
}

export const parametersOf = (answer: Answer): Record<string, string> =>
  Object.fromEntries(new URL(locationOf(answer)).searchParams);
