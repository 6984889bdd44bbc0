/**
 * Who may register a client, and with what at most (RFC 7591 3, 5): whoever brings an initial access token, an
 * administrator, or anybody where the operator opened that; and who may manage one (RFC 7592 2): whoever has its token.
 */
import type { Ports } from "../ports.ts";
import type { RegisteredClient } from "../records.ts";
import type { Result } from "../result.ts";
import { err, ok } from "../result.ts";
import type { Ceiling } from "../spec/rfc7591.ts";
import { SERVED_GRANT_TYPES } from "../spec/rfc7591.ts";
import type { ApiCaller, ApiRefusal, Bearer } from "./authorize-api.ts";
import { authorizeToken } from "./authorize-api.ts";

/** Begins every initial access token, so that it is never taken for one of the other kind. */
export const INITIAL_TOKEN_PREFIX = "iat_";

/** Classes of those that come without one; no initial access token gives them. */
export const OWN_CLASSES = { anybody: "open", administrator: "managed" } as const;

export type Registrar = {
  by: "initial_access_token" | "administrator" | "anybody";
  registrationClass: string;
  ceiling: Ceiling;
  /** What the registration uses one use of. */
  initialTokenId?: string;
  administrator?: ApiCaller;
};

/** RFC7591-3-3, PROD-5r3-1: by default nobody registers without a credential. */
export async function authorizeRegistration(
  ports: Ports,
  token: Bearer,
  address: string,
): Promise<Result<Registrar, ApiRefusal>> {
  const { mode, open } = ports.settings().registration;
  if (token.ok) {
    return token.value.startsWith(INITIAL_TOKEN_PREFIX)
      ? byInitialToken(ports, token.value)
      : byAdministrator(ports, token.value);
  }
  if (token.error.kind !== "credentials_missing" || mode !== "open") return token;
  // RFC7591-3-5
  const waitSeconds = ports.throttle.register(address);
  if (waitSeconds > 0) return err({ kind: "throttled", reason: "registrations_too_many", waitSeconds });
  return ok({ by: "anybody", registrationClass: OWN_CLASSES.anybody, ceiling: open });
}

async function byInitialToken(ports: Ports, token: string): Promise<Result<Registrar, ApiRefusal>> {
  const invalid = (reason: string) => err({ kind: "token_invalid", reason } as const);
  const found = await ports.registrations.initialToken(ports.hash.sha256(token));
  if (found === undefined) return invalid("initial_token_unknown");
  const { id, uses, usesMax, expiresAtSeconds, revokedAtSeconds, registrationClass, ceiling } = found;
  // Asked again when the registration is written.
  if (revokedAtSeconds !== undefined) return invalid("initial_token_revoked");
  if (ports.clock.nowMs() >= expiresAtSeconds * 1000) return invalid("initial_token_expired");
  if (uses >= usesMax) return invalid("initial_token_used_up");
  const tooFast = pace(ports, id);
  if (tooFast !== undefined) return err(tooFast);
  return ok({ by: "initial_access_token", registrationClass, ceiling, initialTokenId: id });
}

async function byAdministrator(ports: Ports, token: string): Promise<Result<Registrar, ApiRefusal>> {
  const caller = await authorizeToken(ports, token, "client:manage");
  if (!caller.ok) return caller;
  // Who speaks for somebody else is no administrator.
  if (caller.value.exchanged) return err({ kind: "token_invalid", reason: "token_was_exchanged" });
  return ok({
    by: "administrator",
    registrationClass: OWN_CLASSES.administrator,
    ceiling: { grantTypes: SERVED_GRANT_TYPES },
    administrator: caller.value,
  });
}

/** PROD-8.3-1: of whoever is known each attempt is an event, and may be long; nobody has reason to make many. */
function pace({ throttle }: Ports, id: string): ApiRefusal | undefined {
  const waitSeconds = throttle.manage(id);
  return waitSeconds > 0 ? { kind: "throttled", reason: "requests_too_many", waitSeconds } : undefined;
}

/** RFC7592-2-1, RFC7592-B-3: the token of this very client, and nothing else; one answer for all that is not that. */
export async function authorizeManagement(
  ports: Ports,
  token: Bearer,
  clientId: string,
): Promise<Result<RegisteredClient, ApiRefusal>> {
  if (!token.ok) return token;
  const client = await ports.registrations.client(clientId);
  const expected = ports.registrationTokens.of(clientId, client?.tokenGeneration ?? 0);
  const same = ports.hash.equal(ports.hash.sha256(token.value), ports.hash.sha256(expected));
  // RFC7592-2.1-5, RFC7592-5-6: a client that is not there, or no more, is like a wrong token.
  if (client === undefined) return err({ kind: "token_invalid", reason: "client_unknown" });
  if (!same) return err({ kind: "token_invalid", reason: "registration_token_wrong" });
  const tooFast = pace(ports, clientId);
  return tooFast === undefined ? ok(client) : err(tooFast);
}
