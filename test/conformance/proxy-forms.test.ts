/** Client certificates in the forms of nginx, Envoy and Traefik, at the real listener for the proxy. */
import assert from "node:assert/strict";
import { createHash, X509Certificate } from "node:crypto";
import { join } from "node:path";
import { test } from "node:test";
import {
  issueClientCertificate,
  makeAuthority,
  makeIntermediate,
  mintX509Svid,
} from "../../scripts/dev-pki.ts";
import { proxyOf } from "../../src/cli/check/proxy.ts";
import { loadConfig } from "../../src/config/config.ts";
import type { ProxyForm } from "../../src/settings/proxy-forms.ts";
import { PROXY_FORM_NAMES, PROXY_FORMS } from "../../src/settings/proxy-forms.ts";
import { claimsOf, makeWorld, TRUST_DOMAIN, workload } from "../support/world.ts";

const API = "https://api.example";
const PROXY = "proxy.example";
const planner = workload("agents/planner");
const operators = await makeAuthority("Operators' authority");
const proxy = await issueClientCertificate(operators, [PROXY]);
const BLOCK = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g;
const derOf = (pem: string): Uint8Array => new X509Certificate(pem).raw;
const base64 = (pem: string): string => derOf(pem).toBase64();
const envoy = (pem: string): string => pem.replaceAll(/[\n +/=]/g, (sign) => encodeURIComponent(sign));

/** What each proxy writes for these certificates, the leaf first. */
const WRITES: Record<ProxyForm, (pems: readonly string[]) => Record<string, string>> = {
  rfc9440: ([leaf = "", ...rest]) => ({
    "Client-Cert": `:${base64(leaf)}:`,
    ...(rest.length > 0 && { "Client-Cert-Chain": rest.map((one) => `:${base64(one)}:`).join(", ") }),
  }),
  "escaped-pem": ([leaf = ""]) => ({ "SSL-Client-Cert": encodeURIComponent(leaf) }),
  xfcc: ([leaf = "", ...rest]) => {
    const hash = createHash("sha256").update(derOf(leaf)).digest("hex");
    return {
      "X-Forwarded-Client-Cert": `Hash=${hash};Cert="${envoy(leaf)}";Chain="${envoy([leaf, ...rest].join(""))}";URI=${planner}`,
    };
  },
  "base64-list": (all) => ({ "X-Forwarded-Tls-Client-Cert": all.map(base64).join(",") }),
};

for (const form of PROXY_FORM_NAMES) {
  test(`PXC-D-1, PXC-D-2, PXC-D-7, PXC-D-12, PXC-D-13, PXC-D-14, PXC-D-15, PXC-D-16, PXC-D-17 ${form}: an X.509-SVID gets a token, below an intermediate too, and all else nothing`, async (t) => {
    const tls = { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } };
    const listener = { host: "127.0.0.1", port: 0, tls };
    const upper = await makeAuthority("not of the domain");
    const world = await makeWorld(
      {
        operations: { port: 0 },
        proxy: { ...listener, ca: { file: "operators.pem" }, name: PROXY, form },
        targets: [{ names: [API], scopes: ["read"] }],
        policies: [
          {
            id: "workloads",
            allow: "client_credentials",
            targets: [API],
            scopes: ["read"],
            actors: [`spiffe://${TRUST_DOMAIN}/*`],
          },
        ],
      },
      { files: { "operators.pem": operators.certPem }, skipsLooks: true },
    );
    t.after(() => world.stop());
    const [behind] = world.server.lines.flatMap((line) => /also listens on .*:(\d+)$/.exec(line)?.[1] ?? []);
    const ask = (headers: Record<string, string>, peer = { key: proxy.keyPem, cert: proxy.certPem }) =>
      world.token({ grant_type: "client_credentials", audience: API }, headers, peer, Number(behind));
    const { chainPem } = await mintX509Svid(world.trustDomain, planner);
    const fields = WRITES[form](chainPem.match(BLOCK) ?? []);
    const good = await ask(fields);
    assert.equal(good.status, 200, good.text);
    const claims = claimsOf(good.body.access_token);
    assert.equal(claims.client_id, planner);

    const middle = await makeIntermediate(world.trustDomain.x509, "Intermediate");
    const below = (await mintX509Svid(world.trustDomain, planner, { issuer: middle })).chainPem;
    const whole = await ask(WRITES[form](below.match(BLOCK) ?? []));
    assert.equal(whole.status, PROXY_FORMS[form].leafAlone ? 400 : 200, whole.text);

    const past = { notBefore: new Date(Date.now() - 7200_000), expSeconds: -60 };
    const expired = (await mintX509Svid(world.trustDomain, planner, past)).chainPem;
    const foreign = (await mintX509Svid(world.trustDomain, planner, { issuer: upper })).chainPem;
    const [[field, value] = ["", ""]] = Object.entries(fields);
    const others = PROXY_FORM_NAMES.filter((one) => one !== form).map((one) => WRITES[one]([chainPem]));
    const refused: readonly [string, Record<string, string>, string][] = [
      ["no field", {}, "invalid_client"],
      ["an empty field", { [field]: "" }, "invalid_client"],
      ["colons alone", { [field]: "::" }, "invalid_client"],
      ["an expired certificate", WRITES[form](expired.match(BLOCK) ?? []), "invalid_client"],
      ["another authority", WRITES[form](foreign.match(BLOCK) ?? []), "invalid_client"],
      ["the value twice", { [field]: `${value}, ${value}` }, "invalid_request"],
      ["(null)", { [field]: "(null)" }, "invalid_request"],
      ...others.flatMap((other): [string, Record<string, string>, string][] => [
        ["the field of another form", other, "invalid_client"],
        ["a value of another form", { [field]: Object.values(other)[0] ?? "" }, "invalid_request"],
      ]),
    ];
    for (const [what, headers, error] of refused) {
      const answer = await ask(headers);
      assert.deepEqual([answer.status, answer.body.error], [400, error], what);
    }
    const [tools] = world.server.lines.flatMap((line) => /metrics are at (\S+)$/.exec(line)?.[1] ?? []);
    const counted = await (await fetch(`${tools}/metrics`)).text();
    for (const one of PROXY_FORM_NAMES) {
      const line = new RegExp(
        `^mandate_proxy_other_fields_total\\{field="${PROXY_FORMS[one].field}"\\} [1-9]`,
        "m",
      );
      assert.equal(line.test(counted), one !== form, one);
    }
    // The field is nothing without the certificate of the proxy.
    const direct = await ask(fields, { key: operators.keyPem, cert: operators.certPem });
    assert.deepEqual([direct.status, direct.body.error], [400, "invalid_request"]);
    const loaded = loadConfig(join(world.folder, "config.json"));
    assert.ok(loaded.ok);
    const [strips, path] = proxyOf(loaded.value);
    assert.match(strips?.says ?? "", new RegExp(`removes ${field} in every request`));
    assert.equal(path?.where, PROXY_FORMS[form].leafAlone ? "proxy.intermediates" : undefined);
    const told = JSON.stringify([world.server.lines, await world.events()]);
    assert.ok(!told.includes(base64(chainPem).slice(20, 80)));
    assert.ok(!told.includes(value.slice(40, 100)));
  });
}
