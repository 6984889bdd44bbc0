/** How a page names a party (NAME-D-1 to NAME-D-3): what the operator says of it, its id, and what it says of itself. */
import { REASON_CHARS_MAX } from "../../limits/input.ts";
import { CHAIN_CHARS_MAX, ID_CHARS_END, NAME_CHARS_MAX } from "../../limits/people.ts";
import { inLanguage, type Worded } from "../../policy/worded.ts";
import { type AgentName, inWords, type Naming } from "../../settings/agents.ts";
import { type Html, html } from "../../spec/html.ts";
import { briefId, isolated, shownHost, shownId, shownName } from "./display-names.ts";
import { dayOf } from "./language.ts";
import { DISCS } from "./style.ts";
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

/** PAGE-D-27: the same where little room is, and the whole id stands in the details; a host is whole there too. */
const partyIdBrief = (party: ShownParty): string => (party.isHost ? partyId(party) : briefId(party.id));

/** NAME-D-1: what an id without a title is called: of a SPIFFE ID its end and its trust domain, of an issuer its host. */
function shortName(party: ShownParty): string {
  const id = partyId(party);
  // Of a prefix, the part before the star says which agents it names.
  const [, domain, end = ""] = /^spiffe:\/\/([^/]+)\/(?:.*\/)?([^/]+\/\*|[^/*][^/]*)$/.exec(id) ?? [];
  if (domain !== undefined) return `${end.slice(-ID_CHARS_END).toWellFormed()} (${domain})`;
  return /^https:\/\/([^/]+)\/?$/.exec(id)?.[1] ?? partyIdBrief(party);
}

/** The operator's title; a client that registered itself has an id that tells people nothing. */
function titleOf(party: ShownParty, texts: Texts): string | undefined {
  const title = shownName(givenName(party, texts)?.title);
  return title ?? (party.registeredAtSeconds === undefined ? undefined : texts.unverifiedClient);
}

/** The title, or else what its id is called. */
export const partyTitle = (party: ShownParty, texts: Texts): string =>
  titleOf(party, texts) ?? shortName(party);

/** NAME-D-1: the id, where the party is not called by the whole of it. */
const idBeside = (party: ShownParty, texts: Texts, id: string): Html | undefined =>
  titleOf(party, texts) === undefined && !party.id.startsWith("spiffe://") ? undefined : isolated(id);

/** NAME-D-1: the id stands beside a title. */
export function partyName(party: ShownParty, texts: Texts): Html {
  const [id, title] = [isolated(partyId(party)), titleOf(party, texts)];
  return html`${title === undefined ? id : html`${isolated(title)} (${id})`}${toldOf(party, texts)}`;
}

/** NAME-D-1: the same in lines of their own, where only phrases may stand. */
export function partyLines(party: ShownParty, texts: Texts): Html {
  const id = idBeside(party, texts, partyId(party));
  return html`<strong>${headingName(party, texts)}</strong>${id && html` <span class="id">${texts.technicalName} ${id}</span>`}${toldOf(party, texts)}`;
}

/** NAME-D-1: what it is called as a heading, and beneath the id. */
export function partyHeading(party: ShownParty, texts: Texts): { heading: Html; beneath?: Html } {
  const id = idBeside(party, texts, partyId(party));
  const heading = headingName(party, texts);
  return id === undefined
    ? { heading }
    : { heading, beneath: html`<p class="id">${texts.technicalName} ${id}</p>` };
}

/** What it is called; a long id is set smaller. */
export function headingName(party: ShownParty, texts: Texts): Html {
  const name = partyTitle(party, texts);
  return name.length > NAME_CHARS_MAX ? html`<span class="unnamed">${isolated(name)}</span>` : isolated(name);
}

/** NAME-D-1: the id beneath, in brief. */
export function idBeneath(party: ShownParty, texts: Texts): Html | undefined {
  const id = idBeside(party, texts, partyIdBrief(party));
  return id && html`<p class="id">${texts.technicalName} ${id}</p>`;
}

/** PAGE-D-6, NAME-D-2: what the operator says of it, when it registered itself, and what it calls itself, as its claim. */
export function aboutParty(party: ShownParty, texts: Texts): Html | undefined {
  const { registeredAtSeconds } = party;
  const { purpose } = givenName(party, texts) ?? {};
  const name = claimedName(party, texts);
  const lines = [
    purpose === undefined
      ? undefined
      : texts.operatorSays(isolated(texts.operator ?? ""), isolated(shownId(purpose))),
    registeredAtSeconds === undefined
      ? undefined
      : html`${texts.selfRegistered(dayOf(registeredAtSeconds, texts))}`,
    // PAGE-D-7: a name of its own choice stands in quotation marks.
    name === undefined ? undefined : texts.claimedName(isolated(name)),
  ].filter((line) => line !== undefined);
  return lines.length === 0 ? undefined : html`<p>${lines.map((line) => html`${line} `)}</p>`;
}

/** NAME-D-7: why it asks, as its own words in quotation marks; the words of another may not speak for the page. */
export function reasonOf(reason: string | undefined, texts: Texts): Html | undefined {
  const words = shownName(reason, REASON_CHARS_MAX);
  return words === undefined ? undefined : html`<p class="quote">${texts.reasonGiven(isolated(words))}</p>`;
}

/** PCL-D-11: why this user is asked, in the operator's words; without them, nothing of what the provider says. */
export const becauseOf = (because: Worded | undefined, { language }: Texts): Html | undefined =>
  because === undefined ? undefined : html`<p>${isolated(shownId(inLanguage(because, [language])))}</p>`;

/** The person or department that answers for it, and where they are reached. */
export function answersFor(party: ShownParty, texts: Texts): Html | undefined {
  const { owner, contact } = givenName(party, texts) ?? {};
  return owner === undefined && contact === undefined
    ? undefined
    : isolated(shownId([owner, contact].filter((one) => one !== undefined).join(", ")));
}

/**
 * The way from the user to the agent that acts, which is the last one, each with the server that told of it; the ids
 * stand elsewhere. Names that would fill the page are counted, because some are of another company's choosing.
 */
export function passedOn(parties: readonly ShownParty[], texts: Texts): Html | undefined {
  if (parties.length < 2) return undefined;
  const titles = parties.flatMap((party) =>
    [party, party.toldBy].flatMap((one) => (one === undefined ? [] : [partyTitle(one, texts)])),
  );
  const [first = html``, ...others] = parties.map(
    (party) => html`${isolated(partyTitle(party, texts))}${toldOf(party, texts)}`,
  );
  const isLong = titles.join("").length > CHAIN_CHARS_MAX;
  return html`<p class="chain">${isLong ? texts.passedThrough(parties.length) : texts.passedOn(first, others)}</p>`;
}

/** PAGE-D-37: the disc of a party, and what is said of it beside that. */
export const besideDisc = (party: ShownParty, said: Html, texts: Texts): Html =>
  html`<div class="party">${disc(party, texts)}<div>${said}</div></div>`;

/** PAGE-D-37: letters in a coloured disc, by which a reader finds a party again; names and ids say which it is. */
export function disc(party: ShownParty, texts: Texts): Html {
  // PAGE-D-41: the operator's logo for it, and never one of its own.
  const { logo } = givenName(party, texts) ?? {};
  if (logo !== undefined) return html`<img class="disc" src="${logo}" alt="">`;
  const isChecked = party.registeredAtSeconds === undefined && party.toldBy === undefined;
  const letters = isChecked ? initialsOf(titleOf(party, texts) ?? lastOf(party)) : "?";
  return html`<span class="disc d${toneOf(party.id)}" aria-hidden="true">${letters}</span>`;
}

/** Of a host its first label, and of a SPIFFE ID or URL its last part, since all of them begin alike. */
const lastOf = (party: ShownParty): string =>
  party.isHost
    ? (partyId(party).split(".")[0] ?? "")
    : (partyId(party)
        .split("/")
        .findLast((part) => part !== "" && part !== "*") ?? "");

/** The first letters of the first and the last word. */
export function initialsOf(name: string): string {
  const words = name.normalize("NFC").match(/[\p{L}\p{N}]+/gu) ?? [];
  const ends = words.length > 1 ? [words[0], words.at(-1)] : words;
  const letters = ends.map((word) => [...(word ?? "")][0] ?? "").join("");
  return letters === "" ? "?" : letters.toUpperCase();
}

/** The same party has the same colour on each page. */
const toneOf = (id: string): number =>
  [...id].reduce((sum, character) => (sum * 53 + (character.codePointAt(0) ?? 0)) % 65_521, 0) % DISCS.length;

/** NAME-D-2: what another server told of a party was not checked here, and is said to be its word. */
const toldOf = ({ toldBy }: ShownParty, texts: Texts): Html | undefined =>
  toldBy === undefined
    ? undefined
    : html` <span class="told">(${texts.toldBy(isolated(partyTitle(toldBy, texts)))})</span>`;

function claimedName({ naming }: ShownParty, texts: Texts): string | undefined {
  return naming !== undefined && "claimed" in naming
    ? shownName(inWords(naming, [texts.language]).title)
    : undefined;
}

function givenName({ naming }: ShownParty, texts: Texts): AgentName | undefined {
  return naming !== undefined && "given" in naming ? inWords(naming, [texts.language]) : undefined;
}
