/** Which grant types are served, and which of them a client may use: checked before anything else of a request is read. */
import { type Brought, MODES, type Mode } from "../../modes.ts";
import { err, ok, type Result } from "../../result.ts";
import type { Settings } from "../../settings/settings.ts";
import { DEFERRED } from "../../spec/deferred-token-response.ts";
import { type Form, REFRESH_TOKEN } from "../../spec/rfc6749.ts";
import { TOKEN_EXCHANGE } from "../../spec/rfc8693.ts";
import { takesWorkloadGrants } from "../../spec/workload-grant.ts";
import type { Failure } from "../refusal.ts";

export type GrantType = (typeof MODES)[Mode]["grantType"] | typeof REFRESH_TOKEN | typeof DEFERRED;

type Enabling = Pick<Settings, "trustedIssuers" | "platforms" | "signIn" | "deferral">;

const IS_ON: Readonly<Record<Brought | "deferral", (settings: Enabling) => boolean>> = {
  nothing: () => true,
  subject_token: () => true,
  // PROD-4.1v9-4: redemption is off until the operator trusts an issuer for grants. WAG-5.1-4: those of a platform count.
  grant: ({ trustedIssuers, platforms }) =>
    takesWorkloadGrants(platforms) || trustedIssuers.values().some(({ grants }) => grants !== undefined),
  code: ({ signIn }) => signIn !== undefined,
  deferral: ({ deferral }) => deferral !== undefined,
};

type Served = { grantType: GrantType; brings: keyof typeof IS_ON };

const MORE: readonly Served[] = [
  { grantType: REFRESH_TOKEN, brings: "code" },
  { grantType: DEFERRED, brings: "deferral" },
];

const SERVED: ReadonlyMap<string, Served> = new Map(
  [...Object.values(MODES), ...MORE].map((row) => [row.grantType, row]),
);

/** PROD-4.4-12: what is advertised is what is served. */
export const grantTypesOn = (settings: Enabling): readonly GrantType[] =>
  [...SERVED.values()].filter(({ brings }) => IS_ON[brings](settings)).map(({ grantType }) => grantType);

export const UNSUPPORTED: Failure = { kind: "grant_type_unsupported", reason: "grant_type_unsupported" };

export function checkGrantType(
  settings: Enabling,
  { grantTypes }: { grantTypes?: readonly string[] },
  { grant_type }: Pick<Form, "grant_type">,
): Result<GrantType, Failure> {
  // RFC6749-4.4.2-1, RFC6749-4.5-1: matched exactly; what is not served, or not on, is unsupported.
  const served = SERVED.get(grant_type ?? "");
  if (served === undefined || !IS_ON[served.brings](settings)) return err(UNSUPPORTED);
  // RFC6749-5.2-7: what the client was registered for narrows what rules may allow. A poll goes on with an exchange.
  const { grantType } = served;
  if (grantTypes?.includes(grantType === DEFERRED ? TOKEN_EXCHANGE : grantType) === false) {
    return err({ kind: "client_unauthorized", reason: "grant_type_not_registered" });
  }
  return ok(grantType);
}
