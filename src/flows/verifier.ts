/** What every verifier of an authentication method gets, and what it proves. */

import type { FetchRefused, Ports } from "../ports.ts";
import type { Guard } from "../records.ts";
import type { Result } from "../result.ts";
import type { AuthMethod } from "../settings/authentication-methods.ts";
import type { Client } from "../settings/settings.ts";
import type { Certificate, CertificateFailure } from "../spec/rfc5280.ts";
import type { Jws } from "../spec/rfc7515.ts";
import type { Presented } from "../spec/rfc7521.ts";

/** What the connection tells: the address that the request comes from, and the certificates of the handshake. */
export type From = {
  readonly address: string;
  /** DER, leaf first. */
  readonly certificates: readonly Uint8Array[];
  /** The first of them as it reads. */
  readonly leaf?: Result<Certificate, CertificateFailure> | undefined;
};

export type Proven = {
  clientId: string;
  method: AuthMethod;
  /** Absent: a workload with no registration. */
  record?: Client;
  /** The SPIFFE ID that was proven. */
  workload?: string;
  /** The JWT-SVID behind it. */
  svid?: VerifiedSvid;
  proof?: Proof;
  /** What makes the proof single use; absent where it may be sent again. */
  spends?: Guard;
};

/** Which key or certificate it was, and which of our names it was meant for; for the audit trail. */
export type Proof = { kid?: string; aud?: string; x5t?: string; jti?: string };

export type VerifiedSvid = {
  compact: string;
  spiffeId: string;
  trustDomain: string;
  /** The one audience that named us. */
  audience: string;
  jws: Jws;
};

export type Verifier<P extends Presented> = (
  ports: Ports,
  presented: P,
  from: From,
) => Promise<Result<Proven, FetchRefused>>;
