/** The schema of the listeners: `listen`, `mtls`, `proxy` and `operations`. */
import * as v from "valibot";
import { DRAIN_SECONDS_MAX } from "../limits/process.ts";
import { setting, settingOfStart, whole } from "../setting.ts";
import { PROXY_FORM_NAMES, SHOWS_NO_CERTIFICATE, whyNotField } from "../settings/proxy-forms.ts";
import { FORWARDED_FIELDS } from "../spec/rfc7239.ts";
import { certificates, keyFile, originUrl, port, text } from "./values.ts";

const TlsFile = v.strictObject({
  key: setting(keyFile, "The private key of the certificate."),
  cert: setting(certificates, "The certificate, followed by its intermediates."),
});

const listener = {
  host: settingOfStart(text, "The address on which this listener listens, such as 127.0.0.1, 0.0.0.0 or ::."),
  port: settingOfStart(port, "The TCP port; 0 takes a free one at each start."),
  tls: setting(
    TlsFile,
    "The certificate of this listener and its private key. Renewed files are taken into use without a restart.",
  ),
};

export const ListenFile = v.strictObject({
  ...listener,
  /** The default depends on the profile. */
  drainSeconds: settingOfStart(
    v.optional(whole(0, DRAIN_SECONDS_MAX)),
    "How many seconds all listeners serve on after SIGTERM: 5 by default in production, 0 in development.",
  ),
  reusePort: settingOfStart(
    v.optional(v.boolean(), false),
    "Whether several processes of one user listen on the same port (also of `mtls` and `proxy`), each with its own `audit.instance` and port of `operations`; Linux and PostgreSQL only.",
  ),
});

export const MtlsFile = v.strictObject({
  ...listener,
  origin: settingOfStart(
    originUrl,
    "The https origin of this listener, which the metadata publish in mtls_endpoint_aliases.",
  ),
});

export const ProxyFile = v.strictObject({
  ...listener,
  ca: settingOfStart(certificates, "The authorities of the proxy's own client certificate."),
  name: settingOfStart(text, "The DNS name in the proxy's own client certificate."),
  form: settingOfStart(
    v.optional(
      v.picklist(PROXY_FORM_NAMES, ({ received }) =>
        received === '"alb"'
          ? SHOWS_NO_CERTIFICATE
          : `is none of ${PROXY_FORM_NAMES.join(", ")}, the forms that carry the whole certificate`,
      ),
      "rfc9440",
    ),
    "How the proxy writes the certificate of its client: `rfc9440`, `escaped-pem` (nginx), `xfcc` (Envoy) or `base64-list` (Traefik).",
  ),
  field: settingOfStart(
    v.optional(
      v.pipe(
        text,
        v.rawCheck(({ dataset, addIssue }) => {
          const why = dataset.typed ? whyNotField(dataset.value) : undefined;
          if (why !== undefined) addIssue({ message: why });
        }),
      ),
    ),
    "The header field with that certificate; each form has one by default. The chain of `rfc9440` comes in the field of this name with `-Chain`. The proxy must remove it from the requests of clients.",
  ),
  intermediates: settingOfStart(
    v.optional(certificates),
    "The intermediate authorities of clients whose proxy sends the leaf certificate alone.",
  ),
  clientAddress: settingOfStart(
    v.optional(v.picklist(FORWARDED_FIELDS)),
    "The header field to which this proxy adds the address of its client; without it all clients have the address of the proxy.",
  ),
});

export const OperationsFile = v.strictObject({
  host: settingOfStart(
    v.optional(text, "127.0.0.1"),
    "The address on which it listens; 127.0.0.1 by default.",
  ),
  port: listener.port,
});
