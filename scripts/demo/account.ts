/** A user looks at the account page, reads what an agent did in their name, and takes back what they allowed. */
import { type Answer, encodeForm } from "../http-client.ts";
import { makeBrowser } from "./browser.ts";
import { check, print, printJson, step } from "./output.ts";

/** What it needs of the scene before: an agent that Bob allowed something, and how it exchanges Bob's token. */
export type AccountStage = {
  issuer: string;
  ca: string;
  agent: string;
  exchangeForBob(agent: string): Promise<Answer>;
};

export async function playAccount({ issuer, ca, agent, exchangeForBob }: AccountStage): Promise<void> {
  const browse = makeBrowser(ca);

  step("A user takes it back: Bob looks at the account page");
  const login = await browse(`${issuer}/account`);
  const first = await browse(`${login.url}&user=bob`);
  check(first.url === `${issuer}/account`, "after the sign-in Bob is at the account page");
  print("What was done in Bob's name is there, by day and by agent:");
  const events = eventsOf(first.answer.text);
  for (const event of events.slice(0, 3)) print(`  ${event}`);
  check(
    events.some((event) => event.includes(`${agent}: `) && event.includes(": Access ")),
    "the page says that the agent got access in Bob's name",
  );

  const form = await findForm(browse, first.answer.text, agent);
  check(form !== undefined, "the page says what the agent was allowed");
  print("Bob takes back what the agent may do. It tries again at once:");
  const left = await browse(`${issuer}/account/withdraw`, encodeForm(form));
  check(left.answer.status === 200, "the page shows what is left");
  check(formOf(left.answer.text, agent) === undefined, "the agent's permission is no longer there");
  const refused = await exchangeForBob(agent);
  check(refused.status === 400, "the agent is refused again");
  printJson(refused.body);
}

/** Goes from page to page, because Bob may have allowed more than one shows. */
async function findForm(browse: ReturnType<typeof makeBrowser>, page: string, agent: string) {
  for (let text = page; ; ) {
    const form = formOf(text, agent);
    const next = /href="([^"]*after=[^"]*)"/.exec(text)?.[1];
    if (form !== undefined || next === undefined) return form;
    text = (await browse(plain(next))).answer.text;
  }
}

/** The form by which the agent's permission is taken back. */
function formOf(text: string, agent: string): Record<string, string> | undefined {
  const cards = text.split('<div class="party">').slice(1);
  const card = cards.find((one) => one.includes(`${agent}</bdi>`) && one.includes('name="consent"'));
  const hidden = [...(card ?? "").matchAll(/type="hidden" name="(token|consent)" value="([^"]*)"/g)];
  return card && Object.fromEntries(hidden.slice(0, 2).map(([, name, value]) => [name, value]));
}

/** Each entry, after the id of the agent above it. */
const eventsOf = (text: string): string[] =>
  text
    .split("<h4>")
    .slice(1)
    .flatMap((group) => {
      const [heading = "", ...entries] = group.split("<li><span");
      const id = [...heading.matchAll(/<bdi>(.*?)<\/bdi>/g)].at(-1)?.[1] ?? "Bob";
      return entries.map((entry) => `${plain(id)}: ${wordsOf(`<span${entry}`)}`);
    });

/** What is read of it before its details are opened. */
const wordsOf = (markup: string): string =>
  plain((markup.split(/<details|<\/ul>/)[0] ?? "").replace(/<\/?bdi>/g, "").replace(/<[^>]*>/g, " "))
    .replace(/\s+/g, " ")
    .trim();

const plain = (html: string): string =>
  html.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)));
