/** The form of every verifier of an authentication method: what it is given, and what it proves. */

import type { Origin } from "../policy/access.ts";
import type { ClientAuthPorts, FetchRefused, Paths, Ports } from "../ports.ts";
import type { Guard } from "../records.ts";
import type { Awaitable, Result } from "../result.ts";
import type { AuthMethod } from "../settings/authentication-methods.ts";
import type { Client } from "../settings/settings.ts";
import type { Certificate, CertificateFailure } from "../spec/rfc5280.ts";
import type { Jws } from "../spec/rfc7515.ts";
import type { Presented } from "../spec/rfc7521.ts";
import type { JsonObject } from "../spec/rfc8259.ts";
import type { CheckedWorkload, PlatformRegistration, WorkloadUse } from "../spec/workload-grant.ts";

/** The address that a request comes from, and the certificates of its TLS handshake. */
export type From = {
  readonly address: string;
  /** The certificates in DER, leaf first. */
  readonly certificates: readonly Uint8Array[];
  /** The first certificate in parsed form; absent if there is none. */
  readonly leaf?: Result<Certificate, CertificateFailure> | undefined;
};

export type Proven = {
  clientId: string;
  method: AuthMethod;
  /** Absent for a workload without registration. */
  record?: Client;
  /** The SPIFFE ID that was proven, or the name of a platform's workload. */
  workload?: string;
  /** The platform's token that proved it; in another role of the same request it is not verified again. */
  platform?: PlatformProof;
  /** The JWT-SVID that proved it; as actor token of the same request it is not verified again. */
  svid?: VerifiedSvid;
  proof?: Proof;
  /** Spends a proof that is valid once, with the answer to this request, whatever that is; absent if it may be sent again. */
  spends?: Guard;
};

/** For the audit trail: the key or certificate, and the name of ours that the proof was addressed to. */
export type Proof = { kid?: string; aud?: string; x5t?: string; jti?: string; typ?: string };

export type VerifiedSvid = {
  compact: string;
  spiffeId: string;
  trustDomain: string;
  /** The value of `aud` that names this server. */
  audience: string;
  jws: Jws;
};

/** FEDC-D-1: a grant may also come as the subject token of an exchange. */
export type PlatformUse = WorkloadUse | "exchange";

/** What a platform's token proves, which came in this role. */
export type PlatformProof = CheckedWorkload & {
  use: PlatformUse;
  compact: string;
  /** The workload as its platform names it. */
  origin: Origin;
  registration: PlatformRegistration;
  /** The claims by which the registration was found. */
  matched: JsonObject;
  fingerprint: string;
  kid?: string;
  spends?: Guard;
  /** A `client_id` that came beside it and has no meaning. */
  ignoredClientId?: string;
};

/** A certificate may be missing only because no listener asks for one, which the operator can see by this. */
export const noCredentials = ({
  settings,
}: Pick<Ports, "settings">): "credentials_missing" | "mtls_listener_missing" =>
  settings().takesCertificates ? "credentials_missing" : "mtls_listener_missing";

export type MethodVerifier<P extends Presented> = (
  ports: ClientAuthPorts,
  presented: P,
  from: From,
  /** Verifies the paths of certificates, for a time that counts. */
  paths: Paths,
  /** The path of the endpoint, which decides what an assertion may be addressed to. */
  endpoint: string,
) => Awaitable<Result<Proven, FetchRefused>>;
