/**
 * What issuers said last of their users, in both stores: whether they stand by them, which a refresh reads with its family,
 * the digest of their e-mail address, and the claims that rules demand. The journal writes all of it with what is issued or signed in.
 */
import { whenReady } from "../../result.ts";
import { toRow } from "./columns.ts";
import { type Engine, putAtVersion, readRecords, sweepOf } from "./engine.ts";
import type { RecheckRows, SubjectClaimsRows, SubjectEmailRows } from "./store.ts";
import { RECHECK, SUBJECT_CLAIMS, SUBJECT_EMAIL } from "./tables.ts";

const OF_USER = ["origin_iss", "origin_sub"];

export function recheckRows(engine: Engine): RecheckRows {
  const read = readRecords(engine);
  const put = putAtVersion(engine, "recheck", OF_USER, ["confirmed_at", "asked_at", "sealed"]);
  return {
    find: async ({ iss, sub }) =>
      (await read(RECHECK, "from recheck where origin_iss = :iss and origin_sub = :sub", { iss, sub }))[0],
    replace: async (recheck) => put(toRow(RECHECK.columns, recheck)),
    sweep: sweepOf(engine, "recheck", OF_USER),
  };
}

/** PCL-D-8: at once where the database is in this process, since decisions ask. */
export function subjectClaimsRows(engine: Engine): SubjectClaimsRows {
  const read = readRecords(engine);
  const of = "from subject_claims where origin_iss = :iss and origin_sub = :sub";
  return {
    find: ({ iss, sub }) => whenReady(read(SUBJECT_CLAIMS, of, { iss, sub }), ([found]) => found),
    sweep: sweepOf(engine, "subject_claims", OF_USER),
  };
}

export function subjectEmailRows(engine: Engine): SubjectEmailRows {
  const read = readRecords(engine);
  const having = "where email = :email and origin_sub > :after order by origin_sub limit :limit";
  return {
    having: async (email, { afterSub = "", limit }) => {
      const rows = await read(SUBJECT_EMAIL, `from subject_email ${having}`, {
        email,
        after: afterSub,
        limit,
      });
      return rows.map(({ origin }) => origin);
    },
    sweep: sweepOf(engine, "subject_email", OF_USER),
  };
}
