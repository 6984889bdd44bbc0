/** How `mandate audit` is called. */
import { FILTERS } from "../../audit/filters.ts";
import type { CommandUsage } from "../options.ts";

const filters = Object.values(FILTERS).flatMap(({ option }) => option ?? []);
const FILTER_NAMES = filters.map(({ name }) => name);

export const AUDIT: CommandUsage = {
  name: "audit",
  summary: "prints, exports and verifies the audit trail, and ends the log of an instance",
  forms: [
    {
      words: "",
      options: [...FILTER_NAMES, "log", "limit", "jti", "format", "json", "config"],
      says: "prints all events, or those that the options choose, oldest first",
    },
    {
      words: "export",
      takes: ["DIR"],
      options: ["since", "until", "config"],
      says: "writes the trail, its checkpoints and their public keys into a new or empty folder, to be verified elsewhere",
    },
    {
      words: "verify",
      options: ["export", "checkpoints", "witness", "jwks", "partial", "json", "config"],
      says: "verifies the hash chain of every log in the store; with --export, an export without the store",
    },
    {
      words: "retire",
      takes: ["NAME"],
      options: ["config"],
      says: "ends the log of an instance that is gone for good; no instance can have this name again",
    },
  ],
  options: {
    ...Object.fromEntries(filters.map(({ name, ...described }) => [name, described])),
    log: { value: "NAME", says: "the log of one instance" },
    limit: { value: "N", says: "the last N events" },
    jti: {
      value: "JTI",
      says: "the events of a token and of its ancestors; can be combined with --format and --config only",
    },
    format: { value: "FORMAT", says: "text, ndjson (each event as it is stored) or csv (for spreadsheets)" },
    json: { says: "the same as --format ndjson; each result as one JSON object a line" },
    export: {
      value: "FILE",
      says: "events.ndjson of an export, or all pages of GET /audit/events as application/x-ndjson, without filters",
    },
    checkpoints: {
      value: "FILE",
      says: "checkpoints.ndjson of an export, or all pages of GET /audit/checkpoints as application/x-ndjson",
    },
    witness: { value: "FILE", says: "what the witness stored: its file, or the lines of standard output" },
    jwks: {
      value: "FILE",
      says: "the public keys of the checkpoints: jwks.json of an export, or GET /audit/checkpoints as application/json, fetched once and kept apart from the database",
    },
    partial: { says: "the export is a part of the trail, made with --since or --until" },
    config: { value: "FILE", says: "the configuration (default: data/config.json)" },
  },
  notes: [
    "The audit trail records that it was read or verified in the store, and by which user of this machine.",
    "Fetch the export after the checkpoints and the witness's file: a later checkpoint covers records that the export does not have.",
  ],
  example: "mandate audit --type token_exchange.denied --limit 20",
};
