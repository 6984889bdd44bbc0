/** How `mandate clients` is called. */
import { CALLER_OPTIONS } from "../callers/usage.ts";
import type { CommandUsage } from "../options.ts";

export const CLIENTS: CommandUsage = {
  name: "clients",
  summary: "clients with a secret and initial access tokens, which the store keeps",
  forms: [
    {
      words: "create",
      options: ["method", "grant-type", "workload", "default-target", "expires", "json", "config"],
      says: "creates a client and prints its client_id and secret",
    },
    {
      words: "rotate",
      takes: ["CLIENT_ID"],
      options: ["overlap", "expires", "json", "config"],
      says: "creates another secret and prints it; the older secrets stay valid for the overlap",
    },
    {
      words: "disable",
      takes: ["CLIENT_ID"],
      options: ["config"],
      says: "disables a client permanently, and revokes its tokens",
    },
    {
      words: "list",
      options: [...Object.keys(CALLER_OPTIONS), "json", "config"],
      says: "prints the clients of the configuration, those created here or registered, and documents, the longest idle first",
    },
    {
      words: "initial-token create",
      requires: ["class"],
      options: ["grant-type", "scope", "uses", "expires", "json", "config"],
      says: "creates an initial access token for POST /register and prints it",
    },
    {
      words: "initial-token revoke",
      takes: ["ID"],
      options: ["config"],
      says: "ends registration with this token; registered clients stay",
    },
    {
      words: "initial-token list",
      options: ["json", "config"],
      says: "prints the initial access tokens, without their values",
    },
  ],
  options: {
    method: {
      value: "METHOD",
      says: "client_secret (the default: by HTTP Basic or in the body), or one of the two alone: client_secret_basic, client_secret_post",
    },
    "grant-type": {
      value: "TYPE",
      many: true,
      says: "a grant type as in RFC 7591, such as client_credentials; without it, all that are served",
    },
    workload: { value: "SPIFFE_ID", says: "the workload that the client is" },
    "default-target": { value: "NAME", says: "the target of a request that names none" },
    expires: {
      value: "SECONDS",
      says: "when the secret or token expires; without it, a secret is valid until it is rotated out, and an initial access token for one day",
    },
    overlap: {
      value: "SECONDS",
      says: "how long the older secrets stay valid (default: 86400; 0 ends them at once)",
    },
    class: {
      value: "NAME",
      says: "the class by which policy rules name the clients that register with the token",
    },
    scope: { value: '"SCOPE …"', says: "the scopes that clients of this token can have at most" },
    uses: { value: "N", says: "how many clients may register with the token (default: 1)" },
    ...CALLER_OPTIONS,
    json: { says: "one JSON object, in a list one a line" },
    config: { value: "FILE", says: "the configuration (default: data/config.json)" },
  },
  notes: [
    "A secret is printed once and stored as a digest.",
    "A client gets no token until a policy rule names it, its class or its workload.",
  ],
  example: "mandate clients create --grant-type client_credentials",
};
