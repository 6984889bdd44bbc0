/** The parts of a configuration as they are written, and the certificate of a no, as the checker reads them. */

export type Texts<Name extends string> = Partial<Record<Name, string>>;
type Lists<Name extends string> = Partial<Record<Name, string[]>>;
export type Json = { [name: string]: Json } | Json[] | string;
export type Rule = {
  id: string;
  targets: string[];
  scopes: string[];
  maxChainDepth?: number;
  unbound?: boolean;
} & Texts<"allow" | "consent" | "jobs" | "acknowledgeJob" | "boundSubject"> &
  Lists<"actors" | "clients" | "classes"> & {
    subjects?: { issuers: string[]; subs?: string[] };
    subjectToken?: Lists<"audiences" | "scopes">;
  };
type Table = { prefix?: string; table?: Record<string, string> };
export type Target = { scopes: string[]; subjects?: Table | string } & Texts<"issuer" | "binding" | "jobs"> &
  Lists<"names" | "aliases" | "owners">;
type Issuer = { subjects: Table | string; grants?: object; workloads?: object } & Lists<
  "acceptAs" | "disabledSubjects"
>;
export type CheckedConfig = {
  issuer: string;
  trustDomains: Record<string, { admit?: string[] | string }>;
  trustedIssuers: Record<string, Issuer>;
  signIn?: { providers: Record<string, { issuer: string }> };
  clients: Record<string, Texts<"workload" | "spiffeId">>;
  targets: Target[];
  policies: Rule[];
  mtls?: object;
  proxy?: object;
};
export type Origin = { iss: string; sub: string };
export type Token = {
  subject: Origin & { any?: boolean };
  target: string;
  scope: string;
  hops: number;
} & Texts<"may_act" | "bound_to"> &
  Record<"in_job" | "by_actor", boolean>;
export type Certificate = { claim: { actor?: string; target?: string; subject?: Origin }; tokens: Token[] };
