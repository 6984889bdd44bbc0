/** Client certificates in the forms of nginx, Envoy and Traefik, at the real listener for the proxy. */
import assert from "node:assert/strict";
import { createHash, X509Certificate } from "node:crypto";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  issueClientCertificate,
  makeAuthority,
  makeIntermediate,
  mintX509Svid,
} from "../../scripts/dev-pki.ts";
import { proxyOf } from "../../src/cli/check/proxy.ts";
import { loadConfig } from "../../src/config/config.ts";
import { PROXY_FORM_NAMES, PROXY_FORMS, type ProxyForm } from "../../src/settings/proxy-forms.ts";
import { stop } from "../support/stop.ts";
import { claimsOf, makeWorld, TRUST_DOMAIN, type World, workload } from "../support/world.ts";

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
  describe(`the proxy writes ${form}`, () => {
    let world: World;
    let behind: number;
    let chainPem: string;
    let fields: Record<string, string>;
    let field: string;
    let value: string;
    const others = () => PROXY_FORM_NAMES.filter((one) => one !== form).map((one) => WRITES[one]([chainPem]));
    const ask = (headers: Record<string, string>, peer = { key: proxy.keyPem, cert: proxy.certPem }) =>
      world.token({ grant_type: "client_credentials", audience: API }, headers, peer, behind);

    before(async () => {
      const tls = { key: { file: "tls/key.pem" }, cert: { file: "tls/cert.pem" } };
      const listener = { host: "127.0.0.1", port: 0, tls };
      world = await makeWorld(
        {
          operations: { port: 0 },
          proxy: { ...listener, ca: { file: "operators.pem" }, name: PROXY, form },
          targets: [{ names: [API], scopes: ["read"], binding: "certificate" }],
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
      const [port] = world.server.lines.flatMap((line) => /also listens on .*:(\d+)$/.exec(line)?.[1] ?? []);
      behind = Number(port);
      ({ chainPem } = await mintX509Svid(world.trustDomain, planner));
      fields = WRITES[form](chainPem.match(BLOCK) ?? []);
      [[field, value] = ["", ""]] = Object.entries(fields);
    });
    after(() => stop(world));

    test("PXC-D-1, PXC-D-17 an X.509-SVID gets a token, which is bound to the leaf", async () => {
      const good = await ask(fields);
      assert.equal(good.status, 200, good.text);
      const claims = claimsOf(good.body.access_token);
      assert.equal(claims.client_id, planner);
      const leaf = createHash("sha256").update(derOf(chainPem.match(BLOCK)?.[0] ?? ""));
      assert.deepEqual(claims.cnf, { "x5t#S256": leaf.digest("base64url") });
    });

    test("PXC-D-12 one below an intermediate gets a token where the form has room for the path", async () => {
      const middle = await makeIntermediate(world.trustDomain.x509, "Intermediate");
      const below = (await mintX509Svid(world.trustDomain, planner, { issuer: middle })).chainPem;
      const whole = await ask(WRITES[form](below.match(BLOCK) ?? []));
      assert.equal(whole.status, PROXY_FORMS[form].leafAlone ? 400 : 200, whole.text);
    });

    test("PXC-D-7, PXC-D-12 all else gets nothing", async () => {
      const upper = await makeAuthority("not of the domain");
      const past = { notBefore: new Date(Date.now() - 7200_000), expSeconds: -60 };
      const expired = (await mintX509Svid(world.trustDomain, planner, past)).chainPem;
      const foreign = (await mintX509Svid(world.trustDomain, planner, { issuer: upper })).chainPem;
      const refused: readonly [string, Record<string, string>, string][] = [
        ["no field", {}, "invalid_client"],
        ["an empty field", { [field]: "" }, "invalid_client"],
        ["colons alone", { [field]: "::" }, "invalid_client"],
        ["an expired certificate", WRITES[form](expired.match(BLOCK) ?? []), "invalid_client"],
        ["another authority", WRITES[form](foreign.match(BLOCK) ?? []), "invalid_client"],
        ["the value twice", { [field]: `${value}, ${value}` }, "invalid_request"],
        ["(null)", { [field]: "(null)" }, "invalid_request"],
        ...others().flatMap((other): [string, Record<string, string>, string][] => [
          ["the field of another form", other, "invalid_client"],
          ["a value of another form", { [field]: Object.values(other)[0] ?? "" }, "invalid_request"],
        ]),
      ];
      for (const [what, headers, error] of refused) {
        const answer = await ask(headers);
        assert.deepEqual([answer.status, answer.body.error], [400, error], what);
      }
    });

    test("PXC-D-14 the fields of other forms are counted, and its own is not", async () => {
      for (const other of others()) await ask(other);
      const [tools] = world.server.lines.flatMap((line) => /metrics are at (\S+)$/.exec(line)?.[1] ?? []);
      const counted = await (await fetch(`${tools}/metrics`)).text();
      for (const one of PROXY_FORM_NAMES) {
        const line = new RegExp(
          `^mandate_proxy_other_fields_total\\{field="${PROXY_FORMS[one].field}"\\} [1-9]`,
          "m",
        );
        assert.equal(line.test(counted), one !== form, one);
      }
    });

    test("PXC-D-13 the listener takes 48 KiB of header, and no more", async () => {
      const padded = async (kib: number) =>
        (await ask({ ...fields, "X-Pad": "a".repeat(kib * 1024) })).status;
      assert.deepEqual([await padded(40), await padded(49)], [200, 431]);
    });

    test("PXC-D-2 the field is nothing without the certificate of the proxy", async () => {
      const direct = await ask(fields, { key: operators.keyPem, cert: operators.certPem });
      assert.deepEqual([direct.status, direct.body.error], [400, "invalid_request"]);
    });

    test("PXC-D-15 check says what the proxy has to remove, and where no chain comes", () => {
      const loaded = loadConfig(join(world.folder, "config.json"));
      assert.ok(loaded.ok);
      const [strips, path] = proxyOf(loaded.value);
      assert.match(strips?.says ?? "", new RegExp(`removes ${field} in every request`));
      assert.equal(path?.where, PROXY_FORMS[form].leafAlone ? "proxy.intermediates" : undefined);
    });

    test("PXC-D-16 neither log nor trail has a value of the field", async () => {
      for (const sent of [fields, { [field]: `${value}, ${value}` }]) await ask(sent);
      const told = JSON.stringify([world.server.lines, await world.events()]);
      assert.ok(!told.includes(base64(chainPem).slice(20, 80)));
      assert.ok(!told.includes(value.slice(40, 100)));
    });
  });
}
