/**
 * What people are told of those that act: the operator's title for a workload, client or partner, or else what it says of
 * itself, which is never shown as the operator's and never in place of the id.
 */
import * as v from "valibot";
import { AGENT_TITLE_CHARS_MAX, SHOWN_TEXT_CHARS_MAX } from "../limits/input.ts";
import { inLanguage, shownText, type Worded, worded, wordings } from "../policy/worded.ts";
import { defined } from "../result.ts";
import { maybe, setting } from "../setting.ts";
import { prefixesOver } from "../spec/spiffe/id.ts";
import { isTakenFor, mixesScripts, skeleton } from "./look-alike.ts";

export const AgentFile = v.strictObject({
  title: setting(
    worded(AGENT_TITLE_CHARS_MAX),
    'Its name as people are shown it, above its id: one text, or one by language, { "en": …, "de": … }.',
  ),
  purpose: maybe(
    worded(SHOWN_TEXT_CHARS_MAX),
    "What it is for, in one sentence; as a title, also by language.",
  ),
  owner: maybe(shownText(SHOWN_TEXT_CHARS_MAX), "The person or department that answers for it."),
  contact: maybe(shownText(SHOWN_TEXT_CHARS_MAX), "Where people reach them, such as an address for mail."),
});
/** `logo` is the path at which this server serves it. */
export type Agent = v.InferOutput<typeof AgentFile> & { logo?: string };

/** The agents by id or prefix, and whose title or id each skeleton is. */
export type Agents = { named: ReadonlyMap<string, Agent>; looks: ReadonlyMap<string, string> };

/** What is known of a party beside its id: the operator's words, or its own. */
export type Naming = { given: Agent } | { claimed: Worded };

/** The same in one language. */
export type AgentName = {
  title: string;
  purpose?: string;
  owner?: string;
  contact?: string;
  logo?: string;
  source: "operator" | "claimed";
};

/** NAME-D-1: an agent is named by its id, or by the prefix of it that is the longest. */
export const agentOf = ({ named }: Pick<Agents, "named">, id: string): Agent | undefined =>
  named.get(id) ??
  prefixesOver(id)
    .map((prefix) => named.get(prefix))
    .find((one) => one !== undefined);

/** NAME-D-2: what is known of a party. `claimed` is what it says of itself, which counts where the operator says nothing. */
export function namingOf(agents: Agents, id: string, claimed?: Worded): Naming | undefined {
  const given = agentOf(agents, id);
  if (given !== undefined) return { given };
  return claimed === undefined || resembled(agents, claimed) !== undefined ? undefined : { claimed };
}

/** The naming in the first of these languages that it has. */
export function inWords(naming: Naming, languages: readonly string[]): AgentName {
  if ("claimed" in naming) return { title: inLanguage(naming.claimed, languages), source: "claimed" };
  const { title, purpose, owner, contact, logo } = naming.given;
  return defined<AgentName>({
    title: inLanguage(title, languages),
    purpose: purpose && inLanguage(purpose, languages),
    owner,
    contact,
    logo,
    source: "operator",
  });
}

/** NAME-D-3: the agent for which a claimed name could be taken, in any of its languages, or that it mixes scripts. */
export function resembled({ looks }: Pick<Agents, "looks">, claimed: Worded): string | undefined {
  const names = wordings(claimed);
  const own = names.map(skeleton);
  const found = [...looks].find(([other]) => own.some((look) => isTakenFor(look, other)));
  return found?.[1] ?? (names.some(mixesScripts) ? "mixed_scripts" : undefined);
}

/** The agents of the configuration, with the look of every title and id, and of the name at the top of every page. */
export function compileAgents(entries: Readonly<Record<string, Agent>>, operator?: string): Agents {
  const named = new Map(Object.entries(entries));
  const looks = [...named].flatMap(([id, { title }]) =>
    [id, ...wordings(title)].map((one) => [skeleton(one), id] as const),
  );
  const ours = operator === undefined ? [] : [[skeleton(operator), "pages.operator"] as const];
  return { named, looks: new Map([...ours, ...looks].filter(([look]) => look !== "")) };
}
