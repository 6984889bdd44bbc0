/** Refresh tokens whose users' provider is asked: flows over a real provider, and a clock that is moved. */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { REFRESH_DAYS_MAX } from "../../src/limits/people.ts";
import { openProviders } from "../../src/people/adapters/providers.ts";
import { makeProviderSecrets } from "../../src/people/adapters/sealed.ts";
import type { Provider } from "../../src/settings/settings.ts";
import type { FlowOptions } from "./flow.ts";
import { forPeople } from "./people.ts";
import type { TestProvider } from "./provider.ts";
import { openRefresh, type RefreshFlow } from "./refresh.ts";
import { makeTimers } from "./timers.ts";

export const DAY = 24 * 3600;
/** After this time a refresh asks the provider, by the defaults. */
export const DUE = 15 * 60;

export type RecheckFlow = RefreshFlow & {
  /** The user signs in now: the provider stands by them, and gives this refresh token. */
  signIn(refreshToken?: string): Promise<void>;
};

/** `signIn` and `provider` are merged into the settings. */
export const forRecheck = (provider: TestProvider, signIn: object = {}, extra: object = {}) => {
  const base = forPeople(provider);
  return {
    ...base,
    policies: base.policies.map((rule) => ({ ...rule, refresh: true })),
    signIn: { providers: { company: provider.provider(extra) }, ...signIn },
  };
};

/** `user` is that of the flow, at this provider. */
export async function openRecheck(
  t: Pick<TestContext, "after">,
  provider: TestProvider,
  configuration: object = forRecheck(provider),
  { user = "alice", ...open }: FlowOptions & { user?: string } = {},
): Promise<RecheckFlow> {
  const origin = { iss: provider.issuer, sub: user };
  const providers: FlowOptions["providers"] = ({ clock, ...options }) => {
    const opened = openProviders({
      ...options,
      // Both clocks of the flow move together, or what was fetched would seem to be of unknown age.
      clock: { ...clock, monotonicMs: () => clock.nowMs() },
      timers: makeTimers(),
      onFetch: () => undefined,
      onPairwise: () => undefined,
    });
    // The settings of a flow are read without the files that they name.
    const trusting = (one: Provider): Provider => ({ ...one, ca: provider.ca });
    return {
      ...opened,
      configure: (all) => opened.configure(new Map([...all].map(([name, one]) => [name, trusting(one)]))),
    };
  };
  const flow = await openRefresh(t, configuration, { ...open, providers }, origin);
  const { ports } = flow;
  const secrets =
    open.keyBefore === undefined ? ports.providerSecrets : makeProviderSecrets([open.keyBefore]);
  return {
    ...flow,
    async signIn(refreshToken) {
      const atSeconds = ports.clock.nowSeconds();
      const company = ports.settings().signIn?.providers.get("company") ?? assert.fail();
      const recheck = {
        origin,
        version: 1,
        provider: "company",
        confirmedAtSeconds: atSeconds,
        askedAtSeconds: atSeconds,
        ...(refreshToken === undefined ? {} : { sealed: secrets.seal(company, user, refreshToken) }),
        expiresAtSeconds: atSeconds + REFRESH_DAYS_MAX * DAY,
      };
      const event = { type: "user.signed_in", outcome: "allow", reason: "signed_in" } as const;
      assert.ok((await ports.journal.record({ event, recheck })).ok);
    },
  };
}
