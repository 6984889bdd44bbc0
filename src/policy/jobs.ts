/**
 * The job: one piece of work that is approved in words and bounds, and ended as one (JOB-D-1). Everything that is issued
 * for it carries its id. It only narrows: rule, consent and chain are judged as without it.
 */
import type { JobInForce, Origin } from "./access.ts";
import type { EndingKey } from "./endings.ts";
import { foreignKeys, selectorKey } from "./endings.ts";

/** A job of ours. It is never changed: another bound is another job. */
export type Job = Omit<JobInForce, "iss"> & {
  /** For whom the work is done; `iss` is ours for a client that works for itself. */
  origin: Origin;
  /** The client that it was made for, and its agent: its workload, or the client itself. */
  clientId: string;
  actor: string;
  /** The words of the asker, which no decision reads (JOB-D-3). */
  title: string;
  approvedBy: "user" | "operator" | "api";
  createdAtSeconds: number;
  /** Makes the ids that targets see instead of this one, so that two of them compare none. */
  salt: string;
  /** The digest of what was asked for, by which the asker finds the job that was made of it. */
  asked?: string;
};

/** Whether the text can name a job of ours; it is no secret, since each target sees it. */
export const isJobId = (text: string): boolean => /^job_[\w-]{22}$/.test(text);

/** The keys by which the job is ended, each with since when what it names exists. */
export function jobKeys(
  sha256: (text: string) => string,
  us: string,
  { id, origin, clientId, createdAtSeconds }: Pick<Job, "id" | "origin" | "clientId" | "createdAtSeconds">,
): readonly EndingKey[] {
  const ofClient = selectorKey(sha256, { by: "client", clientId });
  return [
    jobKey(sha256, us, id),
    { key: ofClient, sinceMs: createdAtSeconds * 1000 },
    ...foreignKeys(sha256, origin, createdAtSeconds),
  ];
}

/** JOB-D-12: the key holds the server whose job it is, so that no partner ends one of ours. */
export const jobKey = (sha256: (text: string) => string, iss: string, id: string): EndingKey => ({
  key: selectorKey(sha256, { by: "job", iss, id }),
  sinceMs: 0,
});
