/** What the proxy in front has to do, which its own configuration decides and this machine cannot see (PXC-D-15). */
import type { Config } from "../../config/config.ts";
import { PROXY_FORMS } from "../../settings/proxy-forms.ts";
import type { Finding } from "./finding.ts";

const SENDS = {
  rfc9440: (field) => `send the certificate as ${field}, and its intermediates as ${field}-Chain`,
  "escaped-pem": (field) => `proxy_set_header ${field} $ssl_client_escaped_cert; in each location`,
  xfcc: () =>
    "forward_client_cert_details: SANITIZE_SET with set_current_client_cert_details: { cert: true, chain: true }",
  "base64-list": () => "passTLSClientCert: { pem: true }, and no entry point with forwardedHeaders.insecure",
} satisfies Record<keyof typeof PROXY_FORMS, (field: string) => string>;

export function proxyOf({ fixed: { proxy } }: Config): readonly Finding[] {
  if (proxy === undefined) return [];
  const { form, field, intermediates } = proxy;
  const strips: Finding = {
    level: "unseen",
    where: "proxy.field",
    says: `whether the proxy replaces or removes ${field} in every request of a client (${SENDS[form](field)}): send it that field with a valid certificate and without one in the handshake, which must get no token`,
  };
  if (!PROXY_FORMS[form].leafAlone || intermediates.length > 0) return [strips];
  const says =
    "this form carries the certificate of a client alone: those below an intermediate authority are refused until that stands in `proxy.intermediates`";
  return [strips, { level: "unseen", where: "proxy.intermediates", says }];
}
