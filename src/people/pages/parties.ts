/** How a page names a party (NAME-D-1 to NAME-D-3): what the operator says of it, its id, and what it says of itself. */
import { REASON_CHARS_MAX } from "../../limits/input.ts";
import type { AgentName, Naming } from "../../settings/agents.ts";
import { inWords } from "../../settings/agents.ts";
import { isolated, shownHost, shownId, shownName } from "./display-names.ts";
import type { Html } from "./html.ts";
import { html } from "./html.ts";
import { dayOf } from "./language.ts";
import type { Texts } from "./texts.ts";

/** A party as it is known here. */
export type ShownParty = {
  /** A SPIFFE ID, a client_id or an issuer, or the host of a client's document. */
  id: string;
  isHost?: boolean;
  /** When the client registered itself: anything may be behind it. */
  registeredAtSeconds?: number;
  naming?: Naming;
  /** The other server whose word it is; without one, this server authenticated the party. */
  toldBy?: ShownParty;
};

/** The id as it is shown: it is never cut. */
export const partyId = ({ id, isHost = false }: ShownParty): string => (isHost ? shownHost(id) : shownId(id));

/** The operator's title, or else the id; a client that registered itself has an id that tells people nothing. */
export function partyTitle(party: ShownParty, texts: Texts): string {
  const title = shownName(givenName(party, texts)?.title);
  if (title !== undefined) return title;
  return party.registeredAtSeconds === undefined ? partyId(party) : texts.selfRegisteredClient;
}

/** NAME-D-1: the id stands beside a title. */
export function partyName(party: ShownParty, texts: Texts): Html {
  const { toldBy } = party;
  const title = partyTitle(party, texts);
  const beside = idBeside(party, texts);
  const known = beside === undefined ? isolated(title) : html`${isolated(title)} (${beside})`;
  return toldBy === undefined ? known : html`${known} (${texts.toldBy(partyName(toldBy, texts))})`;
}

/** The id, where the title says something else. */
export const idBeside = (party: ShownParty, texts: Texts): Html | undefined =>
  partyTitle(party, texts) === partyId(party) ? undefined : isolated(partyId(party));

/** PAGE-D-6, NAME-D-2: what the operator says of it, when it registered itself, and what it calls itself, as its claim. */
export function aboutParty(party: ShownParty, texts: Texts): Html | undefined {
  const { registeredAtSeconds } = party;
  const { purpose, owner, contact } = givenName(party, texts) ?? {};
  const lines = [
    purpose,
    owner && texts.answeredForBy(owner, contact),
    registeredAtSeconds === undefined ? undefined : texts.selfRegistered(dayOf(registeredAtSeconds, texts)),
  ].flatMap((line) => (line ? [html`<p>${isolated(shownId(line))}</p>`] : []));
  const claimed = claimOf(party, texts);
  return claimed === undefined && lines.length === 0 ? undefined : html`${lines}${claimed}`;
}

/** NAME-D-7: why it asks, as its own words in quotation marks; the words of another may not speak for the page. */
export function reasonOf(reason: string | undefined, texts: Texts): Html | undefined {
  const words = shownName(reason, REASON_CHARS_MAX);
  return words === undefined ? undefined : html`<p>${texts.reasonGiven(isolated(words))}</p>`;
}

/** PAGE-D-7: a name of its own choice stands in quotation marks. */
function claimOf({ naming }: ShownParty, texts: Texts): Html | undefined {
  const name =
    naming !== undefined && "claimed" in naming
      ? shownName(inWords(naming, [texts.language]).title)
      : undefined;
  return name === undefined ? undefined : html`<p>${texts.claimedName(isolated(name))}</p>`;
}

function givenName({ naming }: ShownParty, texts: Texts): AgentName | undefined {
  return naming !== undefined && "given" in naming ? inWords(naming, [texts.language]) : undefined;
}
