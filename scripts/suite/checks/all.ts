/** All areas, in the order in which they are asked and reported. */
import type { Area } from "../types.ts";
import { accessTokens } from "./access-tokens.ts";
import { certificates } from "./certificates.ts";
import { impersonation, mayAct, nesting } from "./chains.ts";
import { clientAssertions } from "./client-assertions.ts";
import { deferral } from "./deferral.ts";
import { details } from "./details.ts";
import { documents } from "./documents.ts";
import { dpop } from "./dpop.ts";
import { exchange } from "./exchange.ts";
import { chaining, idJags } from "./grants-issued.ts";
import { idJagGrants, jwtGrants } from "./grants-redeemed.ts";
import { introspection, revocation } from "./introspection.ts";
import { metadata } from "./metadata.ts";
import { platforms } from "./platforms.ts";
import { management, registration } from "./registration.ts";
import { signalsReceived, signalsSent } from "./signals.ts";
import { jwtSvids, x509Svids } from "./svids.ts";
import { tokenEndpoint } from "./token-endpoint.ts";

export const AREAS: readonly Area[] = [
  ...[metadata, tokenEndpoint, accessTokens, clientAssertions, jwtSvids, x509Svids, certificates],
  ...[exchange, nesting, impersonation, mayAct, chaining, idJags, jwtGrants, idJagGrants],
  ...[documents, registration, management, dpop, introspection, revocation],
  ...[platforms, details, deferral, signalsSent, signalsReceived],
];
