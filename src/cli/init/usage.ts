/** How `mandate init` is called. */
import type { CommandUsage } from "../options.ts";

export const INIT: CommandUsage = {
  name: "init",
  summary: "writes a configuration for production into a new folder, with its keys",
  forms: [
    {
      words: "",
      takes: ["FOLDER"],
      options: [
        "issuer",
        "listen",
        "data",
        "store",
        "provider",
        "client-id",
        "client-secret",
        "provider-ca",
        "provider-network",
        "trust-domain",
        "bundle",
        "administrator",
        "agent",
        "agent-client-id",
        "api",
        "scope",
      ],
      says: "asks on a terminal for what the options do not give; without a terminal, takes the defaults and requires --issuer",
    },
  ],
  options: {
    issuer: { value: "URL", says: "the https URL of this server, without a final slash" },
    listen: {
      value: "HOST:PORT",
      says: "where it listens; by default the port of the issuer, on all addresses (127.0.0.1 for localhost)",
    },
    data: {
      value: "DIR",
      says: "the folder for what the server writes, database and witness; by default FOLDER itself",
    },
    store: {
      value: "sqlite|FILE",
      says: "sqlite (the default), or a file that holds the URL of a PostgreSQL database; with sslrootcert, both are copied",
    },
    provider: { value: "ISS", says: "the OpenID Provider of the users; its metadata are fetched" },
    "client-id": {
      value: "ID",
      says: "the client_id of this server at the provider, for users to sign in here; with an app, first-app, that asks them",
    },
    "client-secret": {
      value: "FILE",
      says: "a file with the secret of this server at the provider; without it, this server proves itself by a key (private_key_jwt)",
    },
    "provider-ca": {
      value: "FILE",
      says: "the private authority that issued the provider's certificate, in PEM",
    },
    "provider-network": {
      value: "CIDR",
      many: true,
      says: "a private network in which the provider is, such as 10.0.0.0/8",
    },
    "trust-domain": { value: "NAME", says: "a SPIFFE trust domain whose workloads are clients" },
    bundle: { value: "URL|FILE", says: "its trust bundle; required with --trust-domain" },
    administrator: {
      value: "SPIFFE_ID|NAME",
      says: "the workload, or a client with a new secret, that may use the server's own endpoints; by default the client administrator",
    },
    agent: {
      value: "SPIFFE_ID|NAME",
      says: "the first agent, a workload or a client with a new secret; requires --provider and --agent-client-id",
    },
    "agent-client-id": {
      value: "ID",
      says: "the client_id of the agent's app at the provider: ID tokens for it are what the agent exchanges",
    },
    api: {
      value: "NAME",
      says: "the target at which agent and app may act for a user who has consented; first-api by default",
    },
    scope: { value: '"SCOPE …"', says: "what they may do at that target; read by default" },
  },
  notes: [
    "Nothing is overwritten: the folder is new or empty. Its files are readable by the user that runs this.",
  ],
  example:
    "mandate init /etc/mandate --issuer https://as.example --provider https://idp.example --client-id mandate",
};
