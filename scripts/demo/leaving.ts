/** The last scene of part one: alice leaves the company, and her identity provider says so. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, send } from "../http-client.ts";
import type { Idp } from "../idp.ts";
import { check, print, printJson, printOutput, step } from "./output.ts";
import type { ToldApi } from "./told-api.ts";

const DISABLED = "https://schemas.openid.net/secevent/risc/event-type/account-disabled";
/** Two seconds on a calm machine, as a test measures; here it only ends a wait for what never happens. */
const TOLD_MS = 60_000;
const ASK_EVERY_MS = 20;

export type LeavingStage = {
  issuer: string;
  ca: string;
  idp: Idp;
  api: ToldApi;
  /** A token of this user for the API, by an agent. */
  exchangeFor(sub: string): Promise<Answer>;
  introspectAsApi(token: unknown): Promise<Answer>;
  /** Runs a command of the operator. */
  mandate(command: string, options?: Readonly<Record<string, string>>): Promise<string>;
};

export async function playLeaving({
  issuer,
  ca,
  idp,
  api,
  exchangeFor,
  introspectAsApi,
  mandate,
}: LeavingStage): Promise<void> {
  step("Alice leaves the company: her provider disables her, and what acts for her ends everywhere");
  const [hers, bobs] = [await exchangeFor("alice"), await exchangeFor("bob")];
  check(hers.status === 200 && bobs.status === 200, `an agent acts for both: ${hers.text} ${bobs.text}`);
  const accepts = (answer: Answer): Promise<boolean> => api.accepts(answer.body.access_token);
  check((await accepts(hers)) && (await accepts(bobs)), "the API accepts both tokens");
  print(
    "crew/ana has a token for alice and one for bob. The API verifies tokens by itself, and accepts both.",
  );

  const events = { [DISABLED]: {} };
  const sub_id = { format: "iss_sub", iss: idp.issuer, sub: "alice" };
  const claims = { sub: undefined, exp: undefined, sub_id, events };
  const header = { typ: "secevent+jwt" };
  const event = await idp.mintUserToken({ sub: "alice", aud: issuer, header, claims });
  const headers = { "content-type": "application/secevent+jwt" };
  const beganMs = performance.now();
  const pushed = await send(`${issuer}/signals/stand-in`, { method: "POST", ca, headers, body: event });
  check(pushed.status === 202, `the server takes the event: ${pushed.text}`);
  print("Her provider pushes a security event to the server (POST /signals/stand-in):");
  printJson({ sub_id, events });

  while (await accepts(hers)) {
    check(performance.now() - beganMs < TOLD_MS, "the API is told");
    await sleep(ASK_EVERY_MS);
  }
  const tookMs = Math.round(performance.now() - beganMs);
  print(`The server tells the API (signals.streams), which refuses her token ${tookMs} ms after the event.`);
  const asked = await introspectAsApi(hers.body.access_token);
  check(asked.text === '{"active":false}', "her token is not active any more");
  const again = await exchangeFor("alice");
  check(again.status === 400, "nothing is issued for her any more, whatever her provider signs");
  const denied = await mandate("audit", { type: "token_exchange.denied", limit: "1" });
  check(denied.includes("subject_disabled"), "the trail has the reason");
  print("Nothing new is issued for her. The agent gets no reason; the trail has it:");
  printOutput(denied);
  check(await accepts(bobs), "the API accepts bob's token");
  check((await exchangeFor("bob")).status === 200, "the agent gets another token for bob");
  print("Bob's work goes on. Who is disabled now, and by which event (npm run mandate -- tokens disabled):");
  const disabled = await mandate("tokens disabled");
  check(disabled.split("\n").length === 1 && disabled.includes("alice"), "alice alone is disabled");
  printOutput(disabled);
}
