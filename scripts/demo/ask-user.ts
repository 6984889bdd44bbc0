/** An agent lacks its user's consent, asks the user by a link, and goes on. */
import { randomBytes } from "node:crypto";
import { type Answer, claimsOf, encodeForm } from "../http-client.ts";
import { formOf, makeBrowser } from "./browser.ts";
import { check, print, printJson, step } from "./output.ts";

/** What it needs of the first part: the server, and an agent that exchanges Bob's token for one at the booking agent. */
export type AskingStage = {
  issuer: string;
  ca: string;
  exchangeForBob(agent: string): Promise<Answer>;
};

/** The agent says why it asks. */
export const WHY = "Your flight was cancelled, and another one leaves at noon.";

/** Returns the agent. */
export async function playAskUser({ issuer, ca, exchangeForBob }: AskingStage): Promise<string> {
  const browse = makeBrowser(ca);
  // A new member of the crew each time, for which nothing is consented.
  const agent = `crew/kim-${randomBytes(4).toString("hex")}`;

  step("An agent asks its user: Bob has not consented, and its rule says askUser");
  print(
    `${agent} works for Bob, and needs a token for the booking agent. It says why (mandate_reason), and is refused, with a link:`,
  );
  const refused = await exchangeForBob(agent);
  const link = String(refused.body.error_uri ?? "");
  check(refused.status === 400 && link.startsWith(`${issuer}/ask?r=`), "the refusal has an error_uri");
  printJson(refused.body);
  const again = await exchangeForBob(agent);
  check(again.body.error_uri === link, "while the link lives, the same request gets no other");

  print("It gives the link to Bob. Alice opens it first, and learns nothing:");
  const other = makeBrowser(ca);
  const seen = await other(`${(await other(link)).url}&user=alice`);
  check(
    seen.answer.status === 400 && !seen.answer.text.includes("crew"),
    "the page does not say what it is about",
  );

  print("Bob opens it, signs in at the company's provider, and allows reading trips, but not booking them.");
  const login = await browse(link);
  const page = await browse(`${login.url}&user=bob`);
  check(page.answer.text.includes(agent), "the page names the agent");
  check(
    page.answer.text.includes("<bdi>Crew</bdi>"),
    "the page has the title that the configuration gives it",
  );
  check(page.answer.text.includes(WHY), "the page says why the agent asks, in its own words");
  print(`The page calls it "Crew" (agents in the configuration), with its id, and quotes it: "${WHY}"`);
  check(page.answer.text.includes("book trips for you"), "the page has the words of the operator");
  const { action, token } = formOf(page);
  const done = await browse(action, encodeForm({ token, scope: "trips.read", decision: "allow" }));
  check(done.answer.status === 200, "the consent of Bob is on record");

  print("The agent tries again, and has a token that speaks for Bob and permits no more than that:");
  const issued = await exchangeForBob(agent);
  const { sub, act, aud, scope } = claimsOf(issued.body.access_token);
  printJson({ sub, act, aud, scope });
  check(sub === "bob" && scope === "trips.read", "the agent goes on");
  return agent;
}
