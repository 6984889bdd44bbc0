/** How `mandate jobs` is called. */
import { CONFIG, type CommandUsage } from "../options.ts";

export const JOBS: CommandUsage = {
  name: "jobs",
  summary: "makes and lists jobs, shows what was issued for one, and stops it",
  forms: {
    "create --client --title [actor issuer subject not-after target scope details agents max-tokens max-depth json config]":
      "makes a job and prints its id, by which its client chooses it",
    "list [issuer subject actor json config]": "prints jobs, the newest first, one line each",
    "show ID [json config]":
      "prints a job with its bounds and its tokens, each below the one that it was exchanged from, and what may be accepted elsewhere until when",
    "end ID [dry-run json config]":
      "stops the job on every instance, and nothing else, and prints what may still be accepted elsewhere",
  },
  options: {
    "client CLIENT_ID": "the client that works",
    "title TEXT": "what the work is, for the people who read of it",
    "issuer ISS": "the issuer that the subject comes from; requires --subject",
    "subject SUB":
      "the subject's name at that issuer; requires --issuer; of a new job without it, the client itself",
    "actor SPIFFE_ID":
      "the workload, or client, that the job is for; of a new job without it, the client's workload, or the client",
    "not-after TIME":
      "when the job ends by itself: a time like 2026-11-21T08:00:00Z (default: in 24 hours; at most 30 days)",
    "target NAME …": "a target where the job may go; without it, all",
    'scope "SCOPE …"': "what it may do there; without it, all",
    "details FILE": "the authorization_details to which it is limited, as a JSON array",
    "agents SPIFFE_ID …": "a workload, or client, that may take part; without it, all",
    "max-tokens N": "how many tokens may be issued for it",
    "max-depth N": "how many agents one behind the other may act in it",
    "dry-run": "prints the same, and stops nothing",
    json: "one JSON object a line",
    ...CONFIG,
  },
  notes: [
    "The audit trail records every use.",
    "A job only narrows: it brings no consent, and no rule allows more in it. Another bound is another job.",
  ],
  example: "mandate jobs end job_2f0wq8W1m0bq3lqk7nYx0A --dry-run",
};
