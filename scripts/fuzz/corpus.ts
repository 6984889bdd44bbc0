/** A server within this process with a part of everything, and what its valid requests gave. */
import { basic } from "../../scripts/http-client.ts";
import { DRAFT as ID_JAG } from "../../src/spec/id-jag.ts";
import { DRAFT as CHAINING } from "../../src/spec/identity-chaining.ts";
import { forDeferral, waitFor } from "../../test/support/deferral.ts";
import { makeProver } from "../../test/support/dpop.ts";
import { keyOf, makeKey } from "../../test/support/forge.ts";
import {
  Browser,
  files,
  formOf,
  redeem,
  request,
  SCOPES,
  verifierOf,
  WEB_REDIRECT,
} from "../../test/support/people.ts";
import { startProvider } from "../../test/support/provider.ts";
import { makeService } from "../../test/support/service.ts";
import { stop } from "../../test/support/stop.ts";
import { ISSUER, workload } from "../../test/support/world.ts";
import { derOf } from "../dev-keys.ts";
import { issueClientCertificate, makeAuthority } from "../dev-pki.ts";
import { CORP, CREDENTIALS, PUSHES, SECRET, shapesOf } from "./shapes.ts";

const OWN = `${ISSUER}/api`;
const MANAGED = ["consent:manage", "policy:explain", "token:revoke", "audit:read", "job:manage"];
const MANY = 1_000_000_000;

export type Corpus = Awaited<ReturnType<typeof openCorpus>>;

export async function openCorpus() {
  const provider = await startProvider();
  const authority = await makeAuthority("Authority of the fuzzer");
  const { certPem } = await issueClientCertificate(authority, ["billing"]);
  const [corp, signer, prover] = [makeKey("ES256", "corp-1"), makeKey("ES256", "s-1"), await makeProver()];
  const base = forDeferral(provider, { issuers: [provider.issuer, CORP] });
  const clients = ["desk", "signer", "billing"];
  const consented = { consent: "implied", acknowledge: "subjects-not-asked", scopes: ["read"] };
  const service = await makeService(
    {
      ...base,
      trustedIssuers: {
        ...base.trustedIssuers,
        [CORP]: {
          ...{
            keys: { file: "corp.json" },
            subjects: "keep",
            acceptAs: ["jwt"],
            jobs: true,
            statements: true,
          },
          grants: {},
          signals: { name: "corp", authorization: PUSHES },
        },
      },
      clients: {
        ...base.clients,
        desk: { method: "client_secret", secrets: [SECRET] },
        signer: { method: "private_key_jwt", jwks: { keys: [{ ...signer.jwk, alg: "ES256" }] } },
        billing: {
          method: "tls_client_auth",
          tls_client_auth_subject_dn: "CN=billing",
          ca: { file: "authority.pem" },
        },
      },
      mtls: {
        host: "127.0.0.1",
        port: 0,
        origin: "https://mtls.as.example",
        tls: { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } },
      },
      registration: { mode: "open", open: { scopes: ["read"] } },
      targets: [
        ...base.targets,
        {
          names: ["plain"],
          owners: [workload("agents/planner")],
          introspectors: ["desk"],
          scopes: ["read"],
          details: { notebook: { governs: ["read"], fields: { path: { is: "string", narrows: "prefix" } } } },
        },
      ],
      policies: [
        ...base.policies.map((rule) =>
          rule.allow === "authorization_code" ? { ...rule, refresh: true } : rule,
        ),
        { id: "machines", allow: "client_credentials", clients, targets: ["plain"], scopes: ["read"] },
        { id: "managers", allow: "client_credentials", clients: ["desk"], targets: [OWN], scopes: MANAGED },
        {
          id: "given",
          allow: "delegation",
          actors: [workload("agents/planner")],
          targets: ["plain"],
          subjects: { issuers: [CORP] },
          subjectToken: { audiences: [ISSUER] },
          ...consented,
        },
        {
          id: "guests",
          allow: "redemption",
          clients: ["desk"],
          targets: ["plain"],
          subjects: { issuers: [CORP] },
          ...consented,
        },
      ],
      drafts: [...base.drafts, CHAINING, ID_JAG],
      limits: {
        pagesPerMinuteBySource: MANY,
        registrationsPerHourBySource: MANY,
        registrationRequestsPerMinuteByClient: MANY,
        requestsPerSecondByClient: MANY,
        failuresPerMinuteBySource: MANY,
        failuresPerMinuteByClient: MANY,
      },
    },
    {
      files: {
        ...files(provider),
        "corp.json": JSON.stringify({ keys: [corp.jwk] }),
        "authority.pem": authority.certPem,
      },
    },
  );
  const workloads = keyOf(service.trustDomain.jwt.keyPem, service.trustDomain.jwt.kid);
  let renewals = 0;

  /** What valid requests gave, anew each time it is asked for: tokens, a session and pages that changed requests may have used up. */
  const renew = async () => {
    const given = async (asked: object) =>
      String(
        (await service.token({ ...CREDENTIALS, ...asked }, { authorization: basic("desk", SECRET) })).body
          .access_token,
      );
    const browser = new Browser(service, provider);
    // One that has asked for too much is answered otherwise.
    const name = `user-${renewals++}`;
    const review = formOf(await browser.review(request(verifierOf()), name));
    const redemption = await redeemed(browser);
    const account = await browser.get("/account");
    const manager = await given({ audience: OWN, scope: MANAGED.join(" ") });
    const managed = { "content-type": "application/json", authorization: `Bearer ${manager}` };
    const order = JSON.stringify({ client: "desk", title: "a job" });
    const { body: job } = await service.get("/jobs", { method: "POST", headers: managed, body: order });
    const waiting = await waitFor(service, provider, { user: name });
    const other = await waitFor(service, provider, { user: name, target: "https://api.example" });
    return {
      plain: await given({}),
      manager,
      job: String(job.id),
      cookie: [...browser.cookies].map(([name, value]) => `${name}=${value}`).join("; "),
      review,
      waiting,
      asked: formOf(await browser.get(other.link)),
      ...redemption,
      withdraw:
        /name="token" value="([^"]*)"><input type="hidden" name="consent" value="([^"]*)"/.exec(
          account.text,
        ) ?? [],
      user: name,
      registered: { read: await registered(), changed: await registered(), deleted: await registered() },
    };
  };
  const registered = async () => {
    const { body } = await service.get("/register", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ grant_types: ["client_credentials"] }),
    });
    const { client_id, client_secret, registration_access_token } = body;
    return {
      id: String(client_id),
      secret: String(client_secret),
      token: String(registration_access_token),
    };
  };
  /** A code that is good once, and a refresh token of another one. */
  const redeemed = async (browser: Browser) => {
    const verifier = verifierOf();
    const asked = (extra: Record<string, string> = {}) =>
      request(verifier, { scope: `${SCOPES.join(" ")} offline_access`, ...extra });
    const spent = await browser.codeFor(asked());
    const { body } = await redeem(service, spent, verifier);
    const code = {
      grant_type: "authorization_code",
      code: await browser.codeFor(asked()),
      redirect_uri: WEB_REDIRECT,
      code_verifier: verifier,
    };
    return { verifier, code, refresh: String(body.refresh_token) };
  };
  let kept = await renew();
  const keys = {
    ...{ corp, signer, workloads, prover, certificate: derOf(certPem) },
    provider: { issuer: provider.issuer, key: provider.key() },
  };
  const shapes = shapesOf(keys, () => kept);
  return {
    service,
    shapes,
    async renew(): Promise<void> {
      // A changed order to end tokens may just have ended what this needs; the next time it is there again.
      kept = await renew().catch(() => kept);
    },
    stop: () => stop(service, provider),
  };
}
