/**
 * A provider that tells nothing: it does not know its users any more, and is asked when their refresh tokens are used. For
 * how long these give tokens, by the clock of the servers, which passes second by second.
 */
import assert from "node:assert/strict";
import { AS_WEB, Browser, redeem, request, verifierOf } from "../../../test/support/people.ts";
import { freshDatabase, startPostgres } from "../../../test/support/postgres.ts";
import { startProvider } from "../../../test/support/provider.ts";
import { forRecheck } from "../../../test/support/recheck.ts";
import { makeWorld, type World } from "../../../test/support/world.ts";
import type { ServerProcess } from "../../server-process.ts";

const RECHECK_SECONDS = 60;
const USERS = 10;
const OTHERS = 2;

export async function askUnheard(): Promise<string> {
  const postgres = await startPostgres({ durable: true });
  const provider = await startProvider();
  provider.refreshing = "same";
  let world: World | undefined;
  const others: ServerProcess[] = [];
  try {
    const configuration = forRecheck(provider, { recheckSeconds: RECHECK_SECONDS });
    world = await makeWorld(configuration, {
      postgres: await freshDatabase(postgres),
      clock: true,
      files: { "provider.pem": provider.ca },
    });
    while (others.length < OTHERS) others.push(await world.beside(`other-${others.length}`));
    const ports = [world.server, ...others].map(({ port }) => port);
    const families = new Map<string, string>();
    // The last word of the provider is of another age for each.
    for (let user = 0; user < USERS; user++) {
      const sub = `unheard-${user}`;
      families.set(sub, await signIn(world, provider, sub));
      world.pass(RECHECK_SECONDS / USERS);
    }
    const leavers = new Map([...families].filter((_, index) => index % 2 === 0));
    const refresh = async (token: string, port: number | undefined): Promise<boolean> => {
      const form = { grant_type: "refresh_token", refresh_token: token };
      const { status, text } = await (world as World).token(form, AS_WEB, {}, port);
      assert.ok(status === 200 || status === 400, text);
      return status === 200;
    };
    for (const sub of leavers.keys()) provider.disabled.add(sub);
    let [lastSeconds, tokens] = [0, 0];
    for (let second = 0; second <= 2 * RECHECK_SECONDS; second++) {
      for (const token of leavers.values()) {
        if (!(await refresh(token, ports[second % ports.length]))) continue;
        tokens++;
        lastSeconds = second;
      }
      world.pass(1);
    }
    let stay = 0;
    for (const [sub, token] of families) if (!leavers.has(sub) && (await refresh(token, ports[0]))) stay++;
    const line = `without a signal: ${leavers.size} users get their last token ${lastSeconds} s after the provider knows them no more (${tokens} tokens), recheckSeconds ${RECHECK_SECONDS}; ${stay} of ${USERS - leavers.size} others go on`;
    assert.ok(tokens > 0 && lastSeconds <= RECHECK_SECONDS && stay === USERS - leavers.size, line);
    return line;
  } finally {
    await Promise.all(others.map((one) => one.stop("SIGKILL")));
    await world?.stop();
    await provider.close();
    await postgres.stop();
  }
}

async function signIn(
  world: World,
  provider: Awaited<ReturnType<typeof startProvider>>,
  sub: string,
): Promise<string> {
  const browser = new Browser(world, provider);
  const verifier = verifierOf();
  const code = await browser.codeFor(request(verifier), sub);
  const { status, body, text } = await redeem(world, code, verifier);
  assert.equal(status, 200, text);
  return String(body.refresh_token);
}
