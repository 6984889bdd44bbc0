/** What is around our pages in a browser: the site of a client, an app on the same computer, and all pages as samples. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer as createPlainServer } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { issueServerCertificate, makeAuthority } from "../../scripts/dev-pki.ts";
import { LANGUAGES } from "../../src/people/pages/language.ts";
import { styleOf } from "../../src/people/pages/style.ts";
import { ACCENT } from "../../src/settings/colours.ts";
import { SAMPLES, writtenIn } from "./sample-pages.ts";

export const APP = "app.example";
export const GALLERY = "gallery.example";
/** A host that may set cookies for the domain of the issuer. */
export const SIBLING = "evil.as.example";

export type Site = {
  /** By TLS, for the three hosts. */
  port: number;
  /** Of an app on this computer, without TLS. */
  loopbackPort: number;
  /** What the page of the client at `/` has in its body. */
  show(markup: string): void;
  /** The cookie that the page of the sibling sets, byte for byte. */
  plant(cookie: string): void;
  close(): Promise<void>;
};

export async function startSite(): Promise<Site> {
  const authority = await makeAuthority("Authority of the client");
  const { keyPem: key, certPem: cert } = await issueServerCertificate(authority, [APP, GALLERY, SIBLING]);
  let body = "";
  let planted = "";
  const site = createServer({ key, cert }, ({ headers, url = "/" }, response) => {
    if (headers.host === GALLERY) return void response.writeHead(200, GALLERY_HEADERS).end(sampleAt(url));
    const fields = headers.host === SIBLING ? { ...HTML, "Set-Cookie": planted } : HTML;
    response.writeHead(200, fields).end(`<!doctype html><title>Client</title>${url === "/" ? body : "done"}`);
  });
  const app = createPlainServer((_, response) => void response.writeHead(200, HTML).end("done"));
  const [port, loopbackPort] = await Promise.all([listen(site), listen(app)]);
  return {
    port,
    loopbackPort,
    show(markup) {
      body = markup;
    },
    plant(cookie) {
      planted = cookie;
    },
    async close() {
      for (const server of [site, app]) {
        server.closeAllConnections();
        server.close();
        await once(server, "close");
      }
    },
  };
}

const HTML = { "Content-Type": "text/html; charset=utf-8" };

/** As our server sends them, but for the hash of the style that it computes itself. */
const GALLERY_HEADERS = {
  ...HTML,
  "Content-Security-Policy": `default-src 'none'; style-src 'sha256-${createHash("sha256").update(styleOf(ACCENT)).digest("base64")}'; base-uri 'none'; frame-ancestors 'none'`,
};

/** `/LANGUAGE/NAME` */
function sampleAt(url: string): string {
  const [, language, name = ""] = url.split("/");
  const [page, texts] = [SAMPLES[name], LANGUAGES.find((one) => one.language === language)];
  return page && texts ? writtenIn(texts, page) : "";
}

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}
