/** A public client: it proves nothing, and names itself (RFC6749-4.1.3-2). */
import type { ClientAuthPorts, FetchRefused } from "../ports.ts";
import { type Awaitable, err, ok, type Result, whenOk } from "../result.ts";
import type { Presented } from "../spec/rfc7521.ts";
import { findClient } from "./find-client.ts";
import { type From, noCredentials, type Proven } from "./verifier.ts";

/** RFC6749-4.1.3-3, RFC6749-6-3, RFC6749-10.2-1: a client that has a credential on record has to prove it. */
export function verifyPublic(
  ports: ClientAuthPorts,
  { clientId = "" }: Presented,
  { address }: From,
): Awaitable<Result<Proven, FetchRefused>> {
  return whenOk(findClient(ports, clientId, address), (client) => {
    const { method } = client.auth;
    if (method !== "none") return err({ reason: noCredentials(ports) });
    return ok({ clientId: client.clientId, method, record: client });
  });
}
