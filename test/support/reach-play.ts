/** Plays what the search says can be reached: its requests, one after the other, at a running server. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { basic } from "../../scripts/http-client.ts";
import { askReach } from "../../src/cli/policy/reach.ts";
import { loadSettings } from "../../src/config/config.ts";
import { MODES } from "../../src/modes.ts";
import { stepsTo } from "../../src/policy/reach.ts";
import type { Step } from "../../src/policy/reach-moves.ts";
import { makeProver, type Prover } from "./dpop.ts";
import { ACCESS_TOKEN, type Form, IDP, JWT, type Service, workload } from "./world.ts";

/**
 * Every grant of the configuration of this server, but those that take a certificate, a job, a code, or a consent of a subject
 * that is no user; returns how many were played, and in how many requests.
 */
export async function playAll(world: Service, secret: string): Promise<{ grants: number; requests: number }> {
  const loaded = loadSettings(world.configFile);
  assert.ok(loaded.ok, JSON.stringify(loaded));
  const answer = await askReach(loaded.value.settings, {});
  assert.ok(answer.ok);
  const provers = new Map<string, Prover>();
  const consents = new Set<string>();
  const ways = answer.value.grants.map(stepsTo).filter((steps) => steps.every(isPlayable));
  let requests = 0;
  for (const steps of ways) {
    let token = "";
    for (const step of steps) {
      requests += 1;
      token = await play(world, { step, token, secret, provers, consents });
    }
  }
  return { grants: ways.length, requests };
}

const isPlayable = ({ proof, inJob, mode, needsConsent, subject, caller }: Step): boolean =>
  proof !== "certificate" &&
  !inJob &&
  MODES[mode].brings !== "code" &&
  (!needsConsent || (subject?.origin.iss === IDP && caller.workload !== undefined));

type Played = {
  step: Step;
  /** What the request before gave. */
  token: string;
  secret: string;
  provers: Map<string, Prover>;
  consents: Set<string>;
};

async function play(world: Service, { step, token, secret, provers, consents }: Played): Promise<string> {
  const { caller, mode, subject, target, scope, needsConsent, proof } = step;
  const path = caller.workload?.slice(workload("").length) ?? "";
  const svid = caller.workload === undefined ? undefined : await world.svid(path);
  const origin = subject?.origin;
  const consent = `${origin?.sub} ${path} ${target}`;
  if (needsConsent && origin !== undefined && !consents.has(consent)) {
    await world.consent(origin.sub, path, target, ["read", "write"]);
    consents.add(consent);
  }
  const { brings, chain, grantType } = MODES[mode];
  const isOurs = subject !== undefined && "step" in subject;
  const form: Form = {
    grant_type: grantType,
    audience: target,
    scope: scope.join(" "),
    ...(svid !== undefined && world.as(svid)),
    ...(chain === "grows" && { actor_token: svid ?? "", actor_token_type: JWT }),
  };
  if (brings === "grant") form.assertion = await foreign(world, step);
  if (brings === "subject_token") {
    form.subject_token = isOurs ? token : await foreign(world, step);
    form.subject_token_type = isOurs ? ACCESS_TOKEN : JWT;
  }
  const headers: Record<string, string> = {};
  if (svid === undefined) headers.authorization = basic(caller.clientId, secret);
  if (proof !== undefined) {
    const prover = provers.get(path) ?? (await makeProver());
    provers.set(path, prover);
    headers.dpop = prover.prove(`${world.issuer}/token`);
  }
  const { status, body } = await world.token(form, headers);
  const at = `${JSON.stringify(body)} for ${mode} by ${caller.label}, ${step.rule}, at ${target}`;
  assert.equal(status, 200, at);
  assert.deepEqual(String(body.scope).split(" ").sort(), [...scope].sort(), at);
  return String(body.access_token);
}

/** A token or grant of the identity provider, as the search wants it signed. */
function foreign({ idp }: Service, { subject, caller, mode }: Step): Promise<string> {
  assert.ok(subject !== undefined && !("step" in subject));
  const { origin, audiences, scopes, mayAct } = subject;
  const isGrant = MODES[mode].brings === "grant";
  return idp.mintUserToken({
    sub: origin.sub,
    aud: isGrant ? "https://as.example" : [...audiences],
    scope: scopes.join(" "),
    claims: { may_act: mayAct, ...(isGrant && { client_id: caller.clientId, jti: randomUUID() }) },
    ...(isGrant && { expSeconds: 60, header: { typ: "authz-grant+jwt" } }),
  });
}
