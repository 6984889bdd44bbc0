/** An export of the audit trail: fetched by an auditor's token, and put into files for `mandate audit verify --export`. */
import assert from "node:assert/strict";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Answer, basic, postForm, send } from "../../http-client.ts";
import type { Instance, Site } from "./site.ts";

const LINES = "application/x-ndjson";

/** The words of the command line that verifies it. */
export async function exportTrail(site: Site, at: Instance): Promise<string[]> {
  const { issuer, ca, instances } = site;
  const connect = { host: "127.0.0.1", port: at.port };
  const form = { grant_type: "client_credentials", scope: "audit:read", audience: `${issuer}/api` };
  const administrator = { authorization: basic("administrator", site.secretOf("administrator")) };
  const { body } = await postForm(`${issuer}/token`, form, { ca, connect, headers: administrator });
  const get = async (url: string, accept: string): Promise<Answer> => {
    const headers = { authorization: `Bearer ${body.access_token}`, accept };
    const answer = await send(url, { ca, connect, headers });
    assert.equal(answer.status, 200, answer.text);
    return answer;
  };
  const words = (name: string): string[] => [`--${name}`, site.fileAt(name)];
  // In the order of scripts/README.md: an export that is fetched last has all that witness and checkpoints cover.
  const witnessed = instances.map(({ folder }) =>
    readFileSync(join(folder, "witness/checkpoints.jsonl"), "utf8"),
  );
  writeFileSync(site.fileAt("witness"), witnessed.join(""));
  writeFileSync(site.fileAt("jwks"), (await get(`${issuer}/audit/checkpoints`, "application/json")).text);
  for (const [name, path] of [
    ["checkpoints", "/audit/checkpoints"],
    ["export", "/audit/events"],
  ] as const) {
    writeFileSync(site.fileAt(name), "");
    for (let url: string | undefined = `${issuer}${path}`; url !== undefined; ) {
      const { text, headers } = await get(url, LINES);
      appendFileSync(site.fileAt(name), text);
      const next: string | undefined = /<([^>]*)>; *rel="?next/.exec(headers.link ?? "")?.[1];
      url = next === undefined ? undefined : new URL(next, url).href;
    }
  }
  return ["audit", "verify", ...["export", "checkpoints", "witness", "jwks"].flatMap(words)];
}
