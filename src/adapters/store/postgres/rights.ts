/** What the role that serves needs of each table; a test runs the whole store with these rights and no others. */
export const EVERY_RIGHT = ["select", "insert", "update", "delete", "truncate"] as const;
type Right = (typeof EVERY_RIGHT)[number];

const KEPT: readonly Right[] = ["select", "insert", "delete"];
const CHANGED: readonly Right[] = [...KEPT, "update"];

/** Rows of `event` are never changed. Where rows are locked before they are removed, that needs `update`. */
export const RIGHTS: Readonly<Record<string, readonly Right[]>> = {
  migration: ["select"],
  event: KEPT,
  event_segment: KEPT,
  event_segment_term: KEPT,
  event_segment_subject: KEPT,
  event_subject_range: ["select", "insert", "update"],
  checkpoint: ["select", "insert"],
  tree_hash: ["select", "insert", "update"],
  consent: ["select", "insert", "update"],
  token: CHANGED,
  ending: CHANGED,
  spent_jti: CHANGED,
  signing_key: CHANGED,
  client: CHANGED,
  client_secret: CHANGED,
  class_ceiling: ["select", "insert", "update"],
  initial_token: CHANGED,
  kept_document: CHANGED,
  policy_archive: CHANGED,
  instance: CHANGED,
  short_lived: CHANGED,
  refresh_family: CHANGED,
  refresh_token: CHANGED,
  pending_consent: CHANGED,
  job: CHANGED,
  recheck: CHANGED,
  subject_email: CHANGED,
  subject_claims: CHANGED,
  signal: CHANGED,
  restored: CHANGED,
};
