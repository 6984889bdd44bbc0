/** What a receiver is told of an ending: which tokens of its targets have ended, one by one or by their subjects. */
import { SIGNAL_TOKENS_MAX } from "../limits/signals.ts";
import type { SubjectIdentifier } from "../spec/rfc8417.ts";
import type { Origin } from "./access.ts";
import type { Ending, EndingKey } from "./endings.ts";
import { cutOffShown, selectorKey } from "./endings.ts";

/** A receiver of ours: the operator's configuration alone makes one, so that no caller makes this server send anything. */
export type Stream = {
  name: string;
  audience: string;
  /** Names of targets: SSF-9-1, it is told of tokens for these alone. */
  targets: ReadonlySet<string>;
  /** How long after the end of a token something that came of it may live: at a partner, a token of its own. */
  afterSeconds: number;
};

export type RecordedEnding = Pick<Ending, "key" | "cutOffMs" | "atMs"> & {
  /** The event that recorded it. */
  eventId: string;
  reason?: string;
};

/** `untilSeconds`: when nothing is left that it could end. */
export type ToldEnding = { subject: SubjectIdentifier; cutOffSeconds?: number; untilSeconds: number };

/** An issued token, as far as it matters here. */
export type ReachedToken = {
  jti: string;
  subject: string;
  origin: Origin;
  audience: string;
  expiresAtSeconds: number;
  endingKeys: readonly EndingKey[];
};

/** Collects what one stream is told of one ending; its size is bounded by the subjects, not by the tokens. */
export class Telling {
  readonly #issuer: string;
  readonly #afterSeconds: number;
  readonly #ending: RecordedEnding;
  readonly #sha256: (text: string) => string;
  #tokens: ReachedToken[] | undefined = [];
  /** The last expiry of each subject. */
  readonly #subjects = new Map<string, number>();

  constructor(
    issuer: string,
    { afterSeconds }: Stream,
    ending: RecordedEnding,
    sha256: (text: string) => string,
  ) {
    this.#issuer = issuer;
    this.#afterSeconds = afterSeconds;
    this.#ending = ending;
    this.#sha256 = sha256;
  }

  add(token: ReachedToken): void {
    const { subject, origin, expiresAtSeconds } = token;
    const until = Math.max(expiresAtSeconds, this.#subjects.get(subject) ?? 0);
    this.#subjects.set(subject, until);
    const ofSubject = selectorKey(this.#sha256, { by: "subject", ...origin }) === this.#ending.key;
    if (ofSubject || this.#tokens?.length === SIGNAL_TOKENS_MAX) this.#tokens = undefined;
    this.#tokens?.push(token);
  }

  /**
   * One event for each token, or for each subject, where a subject was ended or there are many. SSF-3.1-1: each names
   * exactly one. SSF-D-3: a target learns nothing that its own tokens do not show, so that no actor is named. What is
   * told of a subject ends a little more than the ending, for the life of a token at most, and nothing issued later.
   */
  told(): readonly ToldEnding[] {
    const iss = this.#issuer;
    if (this.#tokens !== undefined)
      return this.#tokens.map(({ jti, expiresAtSeconds }) => ({
        subject: { format: "jwt_id", iss, jti },
        untilSeconds: expiresAtSeconds + this.#afterSeconds,
      }));
    const cutOffMs = cutOffShown(this.#ending) ?? this.#ending.atMs;
    return [...this.#subjects].map(([sub, until]) => ({
      subject: { format: "iss_sub", iss, sub },
      cutOffSeconds: Math.ceil(cutOffMs / 1000),
      untilSeconds: until + this.#afterSeconds,
    }));
  }
}
