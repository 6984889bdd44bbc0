/** What the suite signs: each is good as it stands, and each part of it can be changed or left out. */
import { type Identity, makeCertificate } from "./certificates.ts";
import { bareJwk, type Json, type Key, makeJwt, makeKey, randomId, seconds } from "./keys.ts";
import { CannotAsk, type Client, type Names, type Role } from "./parties.ts";
import { type Issuer, type Scene, spiffeId } from "./scene.ts";

/** What is changed in a JWT; `undefined` leaves a member out. */
export type Changes = { claims?: Json; header?: Json; key?: Key };

export type Minted = ReturnType<typeof makeMinted>;

export function makeMinted(
  scene: Scene,
  {
    issuer,
    tokenEndpoint,
    subjectToken,
  }: { issuer: string; tokenEndpoint: string; subjectToken: string | undefined },
  roles: Record<Role, Client>,
  names: Names,
) {
  const jwt = (
    key: Key,
    claims: Json,
    { claims: changed, header, key: other }: Changes = {},
    typ?: string,
  ): string =>
    makeJwt(other ?? key, { ...claims, ...changed }, { ...(typ !== undefined && { typ }), ...header });

  const svid = (role: string, { claims, header, key }: Changes = {}): string => {
    const usual = { sub: spiffeId(role), aud: issuer, iat: seconds(), exp: seconds() + 300 };
    return jwt(scene.trustDomain.key, usual, {
      ...(claims && { claims }),
      ...(header && { header }),
      ...(key && { key }),
    });
  };

  /** A client assertion of a client with a key. */
  function assertion(client: Client, changes: Changes = {}): string {
    if (client.key === undefined) throw new CannotAsk(`${client.id} has no key`);
    const usual = {
      iss: client.id,
      sub: client.id,
      aud: issuer,
      iat: seconds(),
      exp: seconds() + 60,
      jti: randomId(),
    };
    return jwt(client.key, usual, changes);
  }

  const x509Svid = (role: string): Identity =>
    makeCertificate(role, { uris: [spiffeId(role)] }, scene.trustDomain.authority);

  const anyUserToken = (
    changes: Changes = {},
    { issuer: iss, key }: Pick<Issuer, "issuer" | "key"> = scene.idp,
  ): string =>
    jwt(
      key,
      {
        ...{ iss, sub: "alice", aud: issuer, iat: seconds(), exp: seconds() + 600, jti: randomId() },
        scope: `${names.read} ${names.write}`,
      },
      changes,
    );

  /** One of the provider of users, which a server that exchanges its own tokens alone refuses whatever it says. */
  const userToken = (changes: Changes = {}, by: Pick<Issuer, "issuer" | "key"> = scene.idp): string => {
    if (subjectToken !== undefined) throw new CannotAsk("the server exchanges its own tokens alone");
    return anyUserToken(changes, by);
  };

  const grant = (changes: Changes = {}, typ = "JWT"): string =>
    jwt(
      scene.partner.key,
      {
        ...{
          iss: scene.partner.issuer,
          sub: "alice",
          aud: issuer,
          client_id: roles.guest.id,
          scope: names.read,
        },
        ...{ iat: seconds(), exp: seconds() + 60, jti: randomId() },
      },
      changes,
      typ,
    );
  const idJag = (changes: Changes = {}): string =>
    grant({ ...changes, claims: { resource: names.api, ...changes.claims } }, "oauth-id-jag+jwt");
  const idToken = (changes: Changes = {}): string =>
    anyUserToken({ ...changes, claims: { aud: roles.machine.id, scope: undefined, ...changes.claims } });
  const platformToken = (changes: Changes = {}): string =>
    jwt(
      scene.platform.key,
      {
        ...{ iss: scene.platform.issuer, sub: "agent/7", aud: issuer, tenant: "t-1", jti: randomId() },
        ...{ iat: seconds(), exp: seconds() + 120 },
      },
      changes,
    );
  const proofKey = makeKey("proof");
  /** A DPoP proof for a request to the token endpoint. */
  function proof({ claims, header, key = proofKey }: Changes = {}): string {
    const usual = { jti: randomId(), htm: "POST", htu: tokenEndpoint, iat: seconds() };
    const head = { typ: "dpop+jwt", kid: undefined, jwk: bareJwk(key.privateKey), ...header };
    return jwt(key, usual, { ...(claims && { claims }), header: head });
  }

  const details = (object: Json = {}): string =>
    JSON.stringify([
      { type: names.detail, actions: ["pay"], max_amount: "100.00", currency: "EUR", ...object },
    ]);
  const subjectOf = (sub: string): Json => ({ format: "iss_sub", iss: scene.idp.issuer, sub });
  /** A security event of the provider about one of its users. */
  const event = (type: string, sub: string, changes: Changes = {}): string =>
    jwt(
      scene.idp.key,
      {
        ...{ iss: scene.idp.issuer, aud: issuer, iat: seconds(), jti: randomId(), sub_id: subjectOf(sub) },
        events: { [type]: { event_timestamp: seconds() } },
      },
      changes,
      "secevent+jwt",
    );
  return {
    ...{ svid, assertion, x509Svid, userToken, anyUserToken, grant, idJag, idToken, platformToken },
    ...{ proofKey, proof, details, event },
  };
}
