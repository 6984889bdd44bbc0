/**
 * Authorizes registrations (RFC 7591 3, 5) by an initial access token, an administrator's token, or nothing where open
 * registration is enabled; each sets a ceiling. Authorizes the management of a client (RFC 7592 2) by its own token.
 */
import type { Reason } from "../audit/reasons.ts";
import { MACHINE_GRANT_TYPES } from "../modes.ts";
import type { BasePorts, Ports } from "../ports.ts";
import type { RegisteredClient } from "../records.ts";
import { err, ok, type Result } from "../result.ts";
import { type Ceiling, OWN_CLASSES } from "../spec/rfc7591.ts";
import {
  type ApiCaller,
  type ApiCallerPorts,
  type ApiRefusal,
  authorizeToken,
  type Bearer,
  checkHolder,
  type PresentedToken,
} from "./authorize-api.ts";

/** The prefix of every initial access token, which tells it apart from an access token. */
export const INITIAL_TOKEN_PREFIX = "iat_";

export type Registrar = {
  by: "initial_access_token" | "administrator" | "anybody";
  registrationClass: string;
  ceiling: Ceiling;
  /** The initial access token, of which the registration spends one use. */
  initialTokenId?: string;
  administrator?: ApiCaller;
  /** Whether a page in a browser sent the request. */
  fromPage?: boolean;
};

/** RFC7591-3-3, PROD-5r3-1: by default a registration requires a credential. */
type InitialTokenPorts = BasePorts & Pick<Ports, "registrations" | "throttle">;

export type RegistrarPorts = ApiCallerPorts & InitialTokenPorts;

export async function authorizeRegistration(
  ports: RegistrarPorts,
  token: Bearer,
  address: string,
): Promise<Result<Registrar, ApiRefusal>> {
  const { mode, open } = ports.settings().registration;
  if (token.ok) {
    return token.value.token.startsWith(INITIAL_TOKEN_PREFIX)
      ? byInitialToken(ports, token.value)
      : byAdministrator(ports, token.value);
  }
  // A request with credentials that are not understood does not come from an unauthenticated client.
  if (token.error.kind !== "credentials_missing" || mode !== "open" || open === undefined) return token;
  // RFC7591-3-5: open registration is rate limited.
  const waitSeconds = ports.throttle.register(address);
  if (waitSeconds > 0) return err({ kind: "throttled", reason: "registrations_too_many", waitSeconds });
  return ok({ by: "anybody", registrationClass: OWN_CLASSES.anybody, ceiling: open });
}

async function byInitialToken(
  ports: InitialTokenPorts,
  presented: PresentedToken,
): Promise<Result<Registrar, ApiRefusal>> {
  const invalid = (reason: Reason) => err({ kind: "token_invalid", reason } as const);
  const held = checkHolder(presented, undefined);
  if (!held.ok) return invalid(held.error.reason);
  const found = await ports.registrations.initialToken(ports.hash.sha256(presented.token));
  if (found === undefined) return invalid("initial_token_unknown");
  const { id, uses, usesMax, expiresAtSeconds, revokedAtSeconds, registrationClass, ceiling } = found;
  // These conditions are asserted again when the registration is written.
  if (revokedAtSeconds !== undefined) return invalid("initial_token_revoked");
  if (ports.clock.nowMs() >= expiresAtSeconds * 1000) return invalid("initial_token_expired");
  if (uses >= usesMax) return invalid("initial_token_used_up");
  const tooFast = pace(ports, id);
  if (tooFast !== undefined) return err(tooFast);
  return ok({ by: "initial_access_token", registrationClass, ceiling, initialTokenId: id });
}

async function byAdministrator(
  ports: ApiCallerPorts,
  presented: PresentedToken,
): Promise<Result<Registrar, ApiRefusal>> {
  const caller = await authorizeToken(ports, presented, "/register");
  if (!caller.ok) return caller;
  // A token from an exchange speaks for another subject and carries no administrator rights.
  if (caller.value.exchanged) return err({ kind: "token_invalid", reason: "token_was_exchanged" });
  return ok({
    by: "administrator",
    registrationClass: OWN_CLASSES.administrator,
    ceiling: { grantTypes: MACHINE_GRANT_TYPES },
    administrator: caller.value,
  });
}

/** PROD-8.3-1: each attempt of a known caller is an event that may be long, so its rate is limited. */
function pace({ throttle }: Pick<Ports, "throttle">, id: string): ApiRefusal | undefined {
  const waitSeconds = throttle.manage(id);
  return waitSeconds > 0 ? { kind: "throttled", reason: "requests_too_many", waitSeconds } : undefined;
}

/**
 * RFC7592-2-1, RFC7592-B-3: only the registration access token of this client is accepted, and all others get the same
 * answer.
 */
export async function authorizeManagement(
  ports: Pick<Ports, "registrations" | "registrationTokens" | "throttle">,
  token: Bearer,
  clientId: string,
): Promise<Result<RegisteredClient, ApiRefusal>> {
  if (!token.ok) return token;
  const held = checkHolder(token.value, undefined);
  if (!held.ok) return err({ kind: "token_invalid", reason: held.error.reason });
  const client = await ports.registrations.client(clientId);
  const same = ports.registrationTokens.accepts(token.value.token, clientId, client?.tokenGeneration ?? 0);
  // RFC7592-2.1-5, RFC7592-5-6: an unknown or removed client is answered like a wrong token.
  if (client === undefined) return err({ kind: "token_invalid", reason: "client_unknown" });
  if (!same) return err({ kind: "token_invalid", reason: "registration_token_wrong" });
  const tooFast = pace(ports, clientId);
  return tooFast === undefined ? ok(client) : err(tooFast);
}
