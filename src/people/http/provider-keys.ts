/** GET /rp/jwks: the keys by which this server proves itself to providers. */
import { notFound } from "../../http/answers.ts";
import { keySetFor, publicJson, writeDocument } from "../../http/discovery.ts";
import type { Handler } from "../../http/handler.ts";
import type { PeoplePorts } from "../ports.ts";

/** OIDC-9-1: for the providers at which this server proves itself, and for no resource server. */
export function providerKeysEndpoint(ports: Pick<PeoplePorts, "settings" | "hash" | "providers">): Handler {
  return (request) =>
    ports.settings().signIn === undefined
      ? notFound()
      : publicJson(
          request,
          keySetFor(ports),
          writeDocument(ports, { keys: [...ports.providers.published()] }),
        );
}
