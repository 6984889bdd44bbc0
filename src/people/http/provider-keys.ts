/** GET /rp/jwks/{provider}: the keys by which this server proves itself to one provider. */
import { notFound } from "../../http/answers.ts";
import { keySetFor, publicJson, writeDocument } from "../../http/discovery.ts";
import { type Handler, pathOf } from "../../http/handler.ts";
import type { PeoplePorts } from "../ports.ts";

/**
 * OIDC-9-1: for a provider at which this server proves itself, and for no resource server. STU-D-6: a provider that was
 * told the keys of another would take here what the other received.
 */
export function providerKeysEndpoint(ports: Pick<PeoplePorts, "settings" | "hash" | "providers">): Handler {
  return (request) => {
    const name = pathOf(request).split("/").at(-1) ?? "";
    const keys = ports.providers.published(name);
    return keys === undefined || ports.settings().signIn?.providers.has(name) !== true
      ? notFound()
      : publicJson(request, keySetFor(ports), writeDocument(ports, { keys: [...keys] }));
  };
}
