/** How `mandate init` is called. */
import { type CommandUsage, namesOf } from "../options.ts";

const INIT_OPTIONS = {
  "issuer URL": "the https URL of this server, without a final slash",
  "listen HOST:PORT":
    "where it listens; by default the port of the issuer, on all addresses (127.0.0.1 for localhost)",
  "data DIR": "the folder for what the server writes, database and witness; by default FOLDER itself",
  "store sqlite|FILE":
    "sqlite (the default), or a file that holds the URL of a PostgreSQL database; with sslrootcert, both are copied",
  "instances N":
    "how many processes of this machine serve on one port (default: 1); requires --store with PostgreSQL, and writes a folder for each and their units of systemd",
  "provider ISS": "the OpenID Provider of the users; its metadata are fetched",
  "client-id ID":
    "the client_id of this server at the provider, for users to sign in here; with an app, first-app, that asks them",
  "client-secret FILE":
    "a file with the secret of this server at the provider; without it, this server proves itself by a key (private_key_jwt)",
  "provider-ca FILE": "the private authority that issued the provider's certificate, in PEM",
  "provider-network CIDR …": "a private network in which the provider is, such as 10.0.0.0/8",
  "trust-domain NAME": "a SPIFFE trust domain whose workloads are clients",
  "bundle URL|FILE": "its trust bundle; required with --trust-domain",
  "administrator SPIFFE_ID|NAME":
    "the workload, or a client with a new secret, that may use the server's own endpoints; by default the client administrator",
  "agent SPIFFE_ID|NAME":
    "the first agent, a workload or a client with a new secret; requires --provider and --agent-client-id",
  "agent-client-id ID":
    "the client_id of the agent's app at the provider: ID tokens for it are what the agent exchanges",
  "api NAME": "the target at which agent and app may act for a user who has consented; first-api by default",
  'scope "SCOPE …"': "what they may do at that target; read by default",
};

export const INIT: CommandUsage = {
  name: "init",
  summary: "writes a configuration for production into a new folder, with its keys",
  forms: {
    [`FOLDER [${namesOf(INIT_OPTIONS)}]`]:
      "asks on a terminal for what the options do not give; without a terminal, takes the defaults and requires --issuer",
  },
  options: INIT_OPTIONS,
  notes: [
    "Nothing is overwritten: the folder is new or empty. Its files are readable by the user that runs this.",
  ],
  example:
    "mandate init /etc/mandate --issuer https://as.example --provider https://idp.example --client-id mandate",
};
