/** What a receiver is told of an ending: which tokens of its targets have ended, one by one or by their subjects. */
import { SIGNAL_TOKENS_MAX } from "../limits/signals.ts";
import type { SubjectIdentifier } from "../spec/rfc8417.ts";
import type { Origin } from "./access.ts";
import {
  cutOffShown,
  type Ending,
  type EndingKey,
  type EndingSelector,
  selectorKey,
  type TextDigest,
} from "./endings.ts";
import { jobIdAt } from "./jobs.ts";
import type { PolicySet } from "./rules.ts";

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
  /** The job that it was issued for; `iss` is the server whose job it is, if that is another one. */
  job?: { id: string; iss?: string; salt?: string };
};

/** What is the same for all that is told. */
export type Teller = {
  issuer: string;
  sha256: TextDigest;
  policy: Pick<PolicySet, "targets">;
};

/** Collects what one stream is told of one ending; its size is bounded by the subjects, not by the tokens. */
export class Telling {
  readonly #teller: Teller;
  readonly #afterSeconds: number;
  readonly #ending: RecordedEnding;
  #tokens: ReachedToken[] | undefined = [];
  /** The last expiry of each subject, and of each job by the id that its target sees. */
  readonly #subjects = new Map<string, number>();
  readonly #jobs = new Map<string, number>();
  /** The tokens of an ended job whose target sees no job. */
  readonly #ofHidden: ReachedToken[] = [];

  constructor(teller: Teller, { afterSeconds }: Stream, ending: RecordedEnding) {
    this.#teller = teller;
    this.#afterSeconds = afterSeconds;
    this.#ending = ending;
  }

  add(token: ReachedToken): void {
    if (this.#addOfJob(token)) return;
    const { subject, origin, expiresAtSeconds } = token;
    keepLast(this.#subjects, subject, expiresAtSeconds);
    const ofSubject = this.#isOf({ by: "subject", ...origin });
    if (ofSubject || this.#tokens?.length === SIGNAL_TOKENS_MAX) this.#tokens = undefined;
    this.#tokens?.push(token);
  }

  /** JOB-D-19: a job that ended is told of as one, and never by its subject, whose other jobs go on. */
  #addOfJob(token: ReachedToken): boolean {
    const { job, audience, expiresAtSeconds } = token;
    const { issuer, sha256, policy } = this.#teller;
    if (job === undefined || !this.#isOf({ by: "job", iss: job.iss ?? issuer, id: job.id })) return false;
    const target = policy.targets.get(audience);
    const id = target && jobIdAt(sha256, target, job);
    if (id === undefined) this.#ofHidden.push(token);
    else keepLast(this.#jobs, id, expiresAtSeconds);
    return true;
  }

  #isOf(selector: EndingSelector): boolean {
    return selectorKey(this.#teller.sha256, selector) === this.#ending.key;
  }

  /**
   * One event for each token, for each subject, where a subject was ended or there are many, or for the job that ended.
   * SSF-3.1-1: each names exactly one. SSF-D-3: a target learns nothing that its own tokens do not show, so that no actor
   * is named. What is told of a subject ends a little more than the ending, for the life of a token at most, and nothing
   * issued later.
   */
  told(): readonly ToldEnding[] {
    const { issuer: iss } = this.#teller;
    const jobs = [...this.#jobs].map(([id, until]) => ({
      subject: { format: "complex", session: { format: "opaque", id } } as const,
      untilSeconds: until + this.#afterSeconds,
    }));
    const tokens = [...this.#ofHidden, ...(this.#tokens ?? [])].map(({ jti, expiresAtSeconds }) => ({
      subject: { format: "jwt_id", iss, jti } as const,
      untilSeconds: expiresAtSeconds + this.#afterSeconds,
    }));
    if (this.#tokens !== undefined) return [...jobs, ...tokens];
    const cutOffMs = cutOffShown(this.#ending) ?? this.#ending.atMs;
    return [...this.#subjects].map(([sub, until]) => ({
      subject: { format: "iss_sub", iss, sub },
      cutOffSeconds: Math.ceil(cutOffMs / 1000),
      untilSeconds: until + this.#afterSeconds,
    }));
  }
}

const keepLast = (map: Map<string, number>, name: string, seconds: number): void =>
  void map.set(name, Math.max(seconds, map.get(name) ?? 0));
