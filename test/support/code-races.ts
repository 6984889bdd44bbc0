/** Authorization codes that several instances on one database are shown at the same moment. */
import assert from "node:assert/strict";
import type { ServerProcess } from "../../scripts/server-process.ts";
import { AS_WEB, Browser, files, forPeople, PRIVATE, request, verifierOf, WEB_REDIRECT } from "./people.ts";
import { startProvider } from "./provider.ts";
import { makeWorld } from "./world.ts";

export type CodeRaces = {
  /** One code at all instances: how many tokens came of it, and how many of those are active afterwards. */
  race(): Promise<{ given: number; living: number }>;
  stop(): Promise<void>;
};

export async function openCodeRaces(postgres: string, count: number): Promise<CodeRaces> {
  const provider = await startProvider();
  const base = forPeople(provider);
  const extra = {
    ...base,
    targets: base.targets.map((target) => ({ ...target, introspectors: [PRIVATE] })),
    limits: { pagesPerMinuteBySource: 1_000_000, requestsPerSecondByClient: 1_000_000 },
  };
  const world = await makeWorld(extra, { postgres, files: files(provider) });
  const others: ServerProcess[] = [];
  while (others.length < count - 1) others.push(await world.beside(`beside-${others.length}`));
  const ports = [world.server, ...others].map(({ port }) => port);
  const browser = new Browser(world, provider);

  const isActive = async (token: unknown): Promise<boolean> => {
    const answer = await world.get("/introspect", {
      method: "POST",
      headers: { ...AS_WEB, "content-type": "application/x-www-form-urlencoded" },
      body: `token=${String(token)}`,
    });
    return answer.body.active === true;
  };
  return {
    async race() {
      const verifier = verifierOf();
      const code = await browser.codeFor(request(verifier));
      const form = {
        grant_type: "authorization_code",
        code,
        redirect_uri: WEB_REDIRECT,
        code_verifier: verifier,
      };
      const answers = await Promise.all(
        [...ports, ...ports].map((port) => world.token(form, AS_WEB, {}, port)),
      );
      const given = answers.filter(({ status }) => status === 200);
      for (const { status, body } of answers) {
        assert.ok(status === 200 || body.error === "invalid_grant", JSON.stringify(body));
      }
      const living = await Promise.all(given.map(({ body }) => isActive(body.access_token)));
      return { given: given.length, living: living.filter(Boolean).length };
    },
    async stop() {
      for (const other of others) await other.stop();
      await world.stop();
      await provider.close();
    },
  };
}
