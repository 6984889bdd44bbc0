/** The registrations of platforms in the configuration: defaults, and what cannot be registered. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { makeProfile } from "../../scripts/dev-profile.ts";
import { loadConfig } from "../../src/config/config.ts";
import { DRAFT } from "../../src/spec/workload-grant.ts";

const ACME = "https://acme.agents.example";
const GITHUB = "https://token.actions.githubusercontent.com";
const good = { tenancy: "dedicated", subjects: ["agent/*"] };

let parent: string;
let configFile: string;

before(async () => {
  parent = mkdtempSync(join(tmpdir(), "mandate test "));
  ({ configFile } = await makeProfile(join(parent, "data")));
});

after(() => rmSync(parent, { recursive: true, force: true }));

function load(trustedIssuers: object, patch: object = {}) {
  const base = JSON.parse(readFileSync(configFile, "utf8"));
  const file = join(parent, "data", "patched.json");
  const empty = { policies: [], targets: [], clients: {}, drafts: [...base.drafts, DRAFT] };
  writeFileSync(file, JSON.stringify({ ...base, signIn: undefined, ...empty, trustedIssuers, ...patch }));
  return loadConfig(file);
}

const of = (workloads: object, issuer = ACME, more: object = {}): object => ({
  [issuer]: { keys: { discover: true }, workloads, ...more },
});

function problemsOf(trustedIssuers: object, patch?: object): readonly string[] {
  const config = load(trustedIssuers, patch);
  return config.ok ? [] : config.error;
}

test("PLAT-D-1, WIF-R-1 a registration has the defaults of the reference, and its issuer has no users", () => {
  const config = load(of({ acme: good }));
  assert.ok(config.ok, JSON.stringify(config));
  const { trustedIssuers, platforms } = config.value.settings;
  const { claims, ...acme } = platforms.get("acme") ?? assert.fail();
  assert.deepEqual(acme, {
    name: "acme",
    issuer: ACME,
    uses: ["grant", "client", "actor"],
    subjects: ["agent/*"],
    types: [undefined, "JWT"],
    maxLifeSeconds: 300,
    maxAgeSeconds: 300,
    reusable: false,
    svid: false,
  });
  assert.equal(claims.size, 0);
  assert.deepEqual(trustedIssuers.get(ACME)?.acceptAs, []);
});

test("PLAT-D-10 a registration with clients is for grants alone", () => {
  const config = load(of({ acme: { ...good, clients: ["gateway"] } }));
  assert.ok(config.ok);
  assert.deepEqual(config.value.settings.platforms.get("acme")?.uses, ["grant"]);
});

type Refused = [what: string, trusted: object, problem: RegExp];
const shared = { tenancy: "shared", subjects: ["repo:a@1/b@2:ref:refs/heads/main"] };
const refused: Refused[] = [
  [
    "WAG-4-2 a name that is given twice",
    { ...of({ acme: good }), ...of({ acme: good }, "https://b.example") },
    /acme: is a name that is given twice/,
  ],
  ["PLAT-D-1 a name with a capital", of({ Acme: good }), /Acme: is not the name of a registration/],
  [
    "PLAT-D-1 a prefix that ends within a segment",
    of({ acme: { ...good, subjects: ["system:serviceaccount:prod*"] } }),
    /prod\* is neither exact nor a prefix/,
  ],
  [
    "PLAT-D-1 a pointer without a slash",
    of({ acme: { ...good, claims: { tid: ["1"] } } }),
    /tid is not a JSON pointer/,
  ],
  [
    "PLAT-D-1 a pattern as value of a claim is a value, and a number is none",
    of({ acme: { ...good, claims: { "/a": [1] } } }),
    /claims/,
  ],
  ["PLAT-D-1 a life above a day", of({ acme: { ...good, maxLifeSeconds: 86_401 } }), /maxLifeSeconds/],
  [
    "PLAT-D-2, WIF-N-1 a shared issuer without a claim or an exact subject",
    of({ gh: { ...shared, subjects: ["repo:a@1/*"] } }),
    /names no claim/,
  ],
  ...(
    [
      [GITHUB, "repo:*", { "/environment": ["production"] }],
      [GITHUB, "repo:acme/*", { "/repository_owner": ["acme"] }],
      [GITHUB, "repo:*", { "/ref": ["refs/heads/main"] }],
      ["https://gitlab.com", "project_path:*", { "/ref_protected": ["true"] }],
      ["https://gitlab.com", "project_path:*", { "/ref": ["main"] }],
      ["https://gitlab.com", "project_path:*", { "/namespace_path": ["acme"] }],
      ["https://accounts.google.com", "1/*", { "/email_verified": [true] }],
    ] as const
  ).map(
    ([issuer, subject, claims]): Refused => [
      `PLAT-D-2, WIF-N-1 ${subject} of ${issuer} with ${Object.keys(claims)[0]}, which any tenant can have,`,
      of({ ci: { tenancy: "shared", subjects: [subject], claims } }, issuer),
      /claims: names no claim of \//,
    ],
  ),
  [
    "PLAT-D-2 all subjects of a shared issuer",
    of({ gh: { ...shared, subjects: ["*"], claims: { "/a": ["1"] } } }),
    /need a dedicated issuer/,
  ],
  ["PLAT-D-2 GitHub as a dedicated issuer", of({ gh: good }, GITHUB), /tenancy: is "shared" for this issuer/],
  [
    "PLAT-D-2 GitLab as a dedicated issuer",
    of({ gl: good }, "https://gitlab.com"),
    /tenancy: is "shared" for this issuer/,
  ],
  [
    "PLAT-D-2 Google as a dedicated issuer",
    of({ g: good }, "https://accounts.google.com"),
    /tenancy: is "shared" for this issuer/,
  ],
  [
    "PLAT-D-2 the common endpoint of Entra",
    of({ e: good }, "https://login.microsoftonline.com/common/v2.0"),
    /many tenants/,
  ],
  ...[
    "sts.amazonaws.com",
    "api://AzureADTokenExchange",
    "https://kubernetes.default.svc",
    "https://kubernetes.default.svc.cluster.local",
  ].map(
    (one): Refused => [
      `PLAT-D-3 the audience ${one}`,
      of({ acme: { ...good, audiences: [one] } }),
      /is the audience of another service/,
    ],
  ),
  ...["at+jwt", "application/secevent+jwt", "oauth-id-jag+jwt", "dpop+jwt"].map(
    (one): Refused => [
      `PLAT-D-4 the type ${one}`,
      of({ acme: { ...good, types: [one] } }),
      /is the type of another kind of JWT/,
    ],
  ),
  [
    "PLAT-D-10 clients beside another use than grant",
    of({ acme: { ...good, uses: ["grant", "client"], clients: ["a"] } }),
    /uses: is "grant" alone/,
  ],
  [
    "PLAT-D-15 an issuer with users and no names for them",
    of({ acme: good }, ACME, { acceptAs: ["jwt"] }),
    /subjects: is missing/,
  ],
];
for (const [what, trusted, problem] of refused) {
  test(`${what} is refused`, () => {
    assert.match(problemsOf(trusted).join("\n"), problem);
  });
}

test("PROD-9.2-11 grants of workloads without their draft are refused, and without grants none is demanded", () => {
  assert.match(problemsOf(of({ acme: good }), { drafts: [] }).join("\n"), new RegExp(`must list "${DRAFT}"`));
  const config = problemsOf(of({ acme: { ...good, uses: ["client"] } }), { drafts: [], trustDomains: {} });
  assert.deepEqual(config, []);
});

for (const [subject, isWarned, claims] of [
  ["repo:acme/app:ref:refs/heads/main", true, {}],
  ["repo:acme/app:environment:a@1/b", true, {}],
  ["repo:acme/app:environment:prod", true, { "/environment": ["prod"] }],
  ["repo:acme/app:environment:prod", false, { "/repository_id": ["2"] }],
  ["repo:acme@1/app@2:ref:refs/heads/main", false, {}],
  ["repo:acme@1/*", false, {}],
  ["repo:*", false, { "/repository_owner_id": ["1"] }],
] as const) {
  test(`PLAT-D-2 ${subject} with ${Object.keys(claims)[0] ?? "no claim"} ${isWarned ? "is warned of, since its names can be given again" : "is accepted without a warning"}`, () => {
    const config = load(of({ gh: { tenancy: "shared", subjects: [subject], claims } }, GITHUB));
    assert.ok(config.ok, JSON.stringify(config));
    assert.equal(
      config.value.warnings.some((one) => one.includes("names a repository")),
      isWarned,
    );
  });
}

test("PLAT-D-8 a rule may name a registration that is there, and is warned of about another", () => {
  const rule = (name: string) => ({
    targets: [{ names: ["https://api.example"], scopes: ["read"] }],
    policies: [
      {
        id: "one",
        allow: "client_credentials",
        actors: [`platform://${name}/*`],
        targets: ["https://api.example"],
        scopes: ["read"],
      },
    ],
  });
  for (const [name, count] of [
    ["acme", 0],
    ["gone", 1],
  ] as const) {
    const config = load(of({ acme: good }), rule(name));
    assert.ok(config.ok, JSON.stringify(config));
    assert.equal(config.value.warnings.filter((one) => one.includes("can never match")).length, count);
  }
});

test("SPCA-D-1, PLAT-D-7 a registration of a domain that trustDomains has is refused, and so is one whose issuer is that of its SVIDs", () => {
  const bundle = { file: "bundle.json" };
  writeFileSync(join(parent, "data", "bundle.json"), JSON.stringify({ keys: [] }));
  const here = (jwtIssuer?: string) => ({ trustDomains: { "td.example": { bundle, jwtIssuer } } });
  const svid = (...subjects: string[]) => of({ acme: { ...good, subjects, svid: true } });
  for (const subject of ["spiffe://td.example/a/*", "spiffe://td.example/a"]) {
    assert.match(
      problemsOf(svid(subject), here()).join(),
      /subjects: spiffe:\/\/td\.example\/a.* would have two names/,
    );
  }
  assert.deepEqual(problemsOf(svid("spiffe://td.example.org/a/*"), here()), []);
  for (const more of [
    of({ acme: good }),
    { [ACME]: { keys: { discover: true }, subjects: "keep", vouches: {} } },
  ]) {
    assert.match(
      problemsOf(more, here(ACME)).join(),
      /trustDomains\.td\.example\.jwtIssuer: .* two readings/,
    );
    assert.deepEqual(problemsOf(more, here("https://oidc.td.example")), []);
  }
  const users = { [ACME]: { keys: { discover: true }, subjects: "keep" } };
  assert.deepEqual(problemsOf(users, here(ACME)), []);
});

const NAMES: [what: string, name: readonly string[], want: RegExp | undefined, more?: object][] = [
  ["of an id and an environment", ["/repository_id", "/environment"], undefined],
  ["of an environment in a pinned repository", ["/environment"], undefined, { "/repository_id": ["1"] }],
  [
    "of an environment in any of two repositories",
    ["/environment"],
    /name: has no \/repository_id/,
    { "/repository_id": ["1", "2"] },
  ],
  ["of an environment alone", ["/environment"], /name: has no \/repository_id/],
  ["of five claims", ["/repository_id", "/a", "/b", "/c", "/d"], /name/],
  ["of none", [], /name/],
  ["of one claim twice", ["/repository_id", "/repository_id"], /name: names a claim twice/],
  ["of no pointer", ["repository_id"], /name: repository_id is not a JSON pointer/],
];
for (const [what, name, want, more] of NAMES) {
  test(`FEDC-D-11 at a shared issuer a name ${what} is ${want === undefined ? "accepted" : "refused"}`, () => {
    const claims = { "/repository_owner_id": ["1"], ...more };
    const problems = problemsOf(
      of({ gh: { tenancy: "shared", subjects: ["repo:*"], claims, name } }, GITHUB),
    );
    if (want === undefined) assert.deepEqual(problems, []);
    else assert.match(problems.join(), want);
  });
}

test("FEDC-D-13 an exact subject of GitHub without ids is warned of with its new form, also where an id is pinned", () => {
  const claims = { "/repository_id": ["1"] };
  for (const [subject, count] of [
    ["repo:a/b:ref:refs/heads/main", 1],
    ["repo:a/b:*", 0],
    ["repo:a@1/b@2:ref:refs/heads/main", 0],
  ] as const) {
    const config = load(of({ gh: { tenancy: "shared", subjects: [subject], claims } }, GITHUB));
    assert.ok(config.ok, JSON.stringify(config));
    assert.equal(config.value.warnings.filter((one) => one.includes("repo:OWNER@ID/NAME@ID")).length, count);
  }
});

test("FEDC-D-13 an account of AWS needs exact subjects, or the pinned principal", () => {
  const issuer = "https://11111111-2222-4333-8444-555555555555.tokens.sts.global.api.aws";
  const aws = (subject: string, claims = {}) =>
    problemsOf(of({ aws: { ...good, subjects: [subject], claims } }, issuer));
  assert.match(aws("arn:aws:iam::1:role/*").join(), /subjects: are not exact/);
  assert.deepEqual(aws("arn:aws:iam::1:role/a"), []);
  assert.deepEqual(
    aws("*", { "/https:~1~1sts.amazonaws.com~1/principal_id": ["arn:aws:iam::1:role/a"] }),
    [],
  );
});
