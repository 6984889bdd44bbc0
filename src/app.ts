/** Every endpoint of the service, on one screen. */
import { auditCheckpointsEndpoint, auditEventsEndpoint } from "./http/audit.ts";
import {
  consentsEndpoint,
  deleteConsentEndpoint,
  getConsentEndpoint,
  putConsentEndpoint,
} from "./http/consents.ts";
import { jwksEndpoint, metadataEndpoint } from "./http/discovery.ts";
import { explainEndpoint } from "./http/policy.ts";
import type { Routes } from "./http/router.ts";
import { route } from "./http/router.ts";
import type { Handler } from "./http/serve.ts";
import { tokenEndpoint } from "./http/token.ts";
import type { Ports } from "./ports.ts";
import { metadataPaths } from "./spec/rfc8414.ts";

export function app(ports: Ports): Handler {
  const { issuer } = ports.settings();
  const base = new URL(issuer).pathname.replace(/\/$/, "");
  const metadata = metadataEndpoint(ports);
  const routes: Routes = {
    [`${base}/token`]: { POST: tokenEndpoint(ports) },
    [`${base}/policy/explain`]: { POST: explainEndpoint(ports) },
    [`${base}/consents`]: { GET: consentsEndpoint(ports) },
    [`${base}/consents/*`]: {
      GET: getConsentEndpoint(ports),
      PUT: putConsentEndpoint(ports),
      DELETE: deleteConsentEndpoint(ports),
    },
    [`${base}/audit/events`]: { GET: auditEventsEndpoint(ports) },
    [`${base}/audit/checkpoints`]: { GET: auditCheckpointsEndpoint(ports) },
    [`${base}/jwks`]: { GET: jwksEndpoint(ports) },
    ...Object.fromEntries(metadataPaths(issuer).map((path) => [path, { GET: metadata }])),
  };
  return route(routes);
}
