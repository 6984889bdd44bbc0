/** The events of the log: one table, from which the types of the notices and the page of the log derive. */

/** The members that a notice may have beside time, level, event and message. */
type NoticeMembers = {
  listener: string;
  address: string;
  port: number;
  policy: string;
  setting: string;
  lostLines: number;
};

export const NOTICE_MEMBERS: Readonly<Record<keyof NoticeMembers, string>> = {
  listener: "The listener, by its path in the configuration.",
  address: "The address that is listened on.",
  port: "The port that is listened on.",
  policy: "The digest of the policy that is in force, as in the audit trail.",
  setting: "The path of a setting.",
  lostLines: "Lines that were lost while the log could not be written.",
};

type Level = "info" | "warning" | "error";
type Row = { levels: readonly Level[]; members: readonly (keyof NoticeMembers)[]; meaning: string };

const told =
  <const L extends Level>(...levels: readonly L[]) =>
  <const M extends Row["members"]>(meaning: string, ...members: M) => ({ levels, meaning, members });
const [info, warning, error] = [told("info"), told("warning"), told("error")];

/** What the server says about itself. */
export const NOTICES = {
  listening: info("A listener is open.", "listener", "address", "port"),
  config_warning: warning("The configuration is valid and has something that its operator should change."),
  reloaded: info("A changed configuration is in force.", "policy"),
  reload_refused: warning(
    "A changed configuration is not used because it has a problem; the one before stays in force.",
    "policy",
  ),
  restart_needed: warning("A setting was changed that only a restart can change.", "setting"),
  certificate_renewed: info("New connections to a listener get its new certificate.", "listener"),
  store_awaited: warning("The start waits for the store, which does not answer."),
  store_replication: told(
    "info",
    "warning",
  )("At the start: whether a commit of PostgreSQL waits for a standby, and what a failover keeps."),
  store_restored: warning(
    "The store is a copy: earlier tokens are ended, and requests wait until used assertions have expired.",
  ),
  ends: told(
    "warning",
    "error",
  )("A certificate, an authority or a client secret ends soon (warning) or has ended (error)."),
  clock_differs: error(
    "The clock of the machine differs from that of the database, so the instance is not ready.",
  ),
  database_clock_differs: warning(
    "The clock of the database differs from those of all instances, which agree: they serve.",
  ),
  clock_agrees: info("The clock agrees with that of the database again."),
  files_limited: warning(
    "The system lets the process open fewer files than its connections may need; fewer are taken up.",
  ),
  connections_refused: error(
    "A listener refuses connections, because it has as many as it may have or no file can be opened; told once a minute.",
    "listener",
  ),
  client_address_unread: warning("The proxy sent a request without the address of its client; told once."),
  introspections_uncounted: warning(
    "Questions to /introspect are not in the audit trail because the store did not take their counts.",
  ),
  stopped: info("The server was told to stop during its start."),
  audit_fault: error("Work on the audit trail failed; the message says which and what follows."),
  key_unusable: error("A signing key in the store cannot be used."),
  keys_not_read: warning(
    "The signing keys could not be read again from the store; those that are known stay in use.",
  ),
  key_service_failed: error(
    "The key service gives no signature, or a wrong one, with an active key; if none signs tokens, the instance is not ready.",
  ),
  key_service_works: info("The key service signs with an active key again."),
  draining: info("The server was told to stop: it is not ready any more and answers requests for a while."),
  name_awaited: warning("The start waits because another process may have the name of this instance."),
  pairwise_subjects: warning("A sign-in provider gives each client another subject for the same user."),
  log_recovered: warning("The log can be written again, and lines were lost.", "lostLines"),
  witness_failed: error("A checkpoint did not reach the witness."),
  witness_works: info("Checkpoints reach the witness."),
  witness_ahead: error(
    "At the start: the store has fewer, or other, records of a log than there were. It is treated as a restored copy.",
  ),
  store_went_back: error(
    "The same while serving: a replica that lagged was promoted, or a copy took the place of the store. The process ends.",
  ),
} satisfies Record<string, Row>;

type NoticeName = keyof typeof NOTICES;

/** A notice has a level and exactly the members of its row; `message` is for people, the rest for programs. */
export type Notice = {
  [E in NoticeName]: { level: (typeof NOTICES)[E]["levels"][number]; event: E; message: string } & Pick<
    NoticeMembers,
    (typeof NOTICES)[E]["members"][number]
  >;
}[NoticeName];
