/** A scene of part one: a token that is bound to a key, and a program that has the token but not the key. */
import { randomUUID } from "node:crypto";
import { calculateJwkThumbprint, exportJWK, generateKeyPair, SignJWT } from "jose";
import { type Answer, claimsOf } from "../http-client.ts";
import { check, print, printJson, printOutput, step } from "./output.ts";

const JWT = "urn:ietf:params:oauth:token-type:jwt";

/** A token exchange by one agent for this audience; `proof` is a DPoP proof. */
export type Exchange = (
  agent: string,
  subject: { token: unknown; type: string },
  audience: string,
  options?: { actor?: boolean; scope?: string; proof?: string; reason?: string; jobRequest?: string },
) => Promise<Answer>;

export type Scene = {
  /** The token endpoint, which a proof names. */
  tokenEndpoint: string;
  exchange: Exchange;
  /** A token of alice for this server, with these claims beside the usual ones. */
  userToken(claims: object): Promise<string>;
  /** The last refused exchange in the audit trail. */
  lastDenied(): Promise<string>;
};

export async function playStolenToken({
  tokenEndpoint,
  exchange,
  userToken,
  lastDenied,
}: Scene): Promise<void> {
  step("A token that is bound to a key (DPoP), and stolen");
  const { publicKey, privateKey } = await generateKeyPair("ES256");
  const jwk = await exportJWK(publicKey);
  const jkt = await calculateJwkThumbprint(jwk);
  /** RFC 9449 4.2: a proof for one request. */
  const prove = (): Promise<string> =>
    new SignJWT({ jti: randomUUID(), htm: "POST", htu: tokenEndpoint })
      .setProtectedHeader({ typ: "dpop+jwt", alg: "ES256", jwk })
      .setIssuedAt()
      .sign(privateKey);

  const token = await userToken({ cnf: { jkt } });
  const subject = { token, type: JWT };
  print("This token of alice is bound to a key of the planner. cnf has the thumbprint of the key:");
  printJson({ sub: claimsOf(token).sub, cnf: claimsOf(token).cnf });

  const proof = await prove();
  const bound = await exchange("agents/planner", subject, "booking-agent", { proof });
  check(
    bound.status === 200 && bound.body.token_type === "DPoP",
    `the planner may exchange it: ${bound.text}`,
  );
  const { cnf } = claimsOf(bound.body.access_token);
  check(JSON.stringify(cnf) === JSON.stringify({ jkt }), "the new token is bound to the key of the proof");
  print("The planner exchanges it with a proof of that key. The new token is bound to the key too:");
  printJson({ token_type: bound.body.token_type, cnf });

  const again = await exchange("agents/planner", subject, "booking-agent", { proof });
  check(again.body.error === "invalid_dpop_proof", "a proof serves once");
  print(`The same proof a second time: ${again.status} ${again.body.error}`);

  const stolen = await exchange("agents/booking", subject, "crew-desk");
  check(stolen.status === 400 && stolen.body.error === "invalid_request", "the stolen token is refused");
  print("The booking agent has an identity, a rule and alice's consent, but not the key. It is refused:");
  printJson(stolen.body);
  const denied = await lastDenied();
  check(denied.includes("subject_key_not_proven"), "the audit trail has the reason");
  printOutput(denied);
}
