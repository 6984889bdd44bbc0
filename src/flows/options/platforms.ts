/** Workloads of platforms, whose tokens prove a party of the request: what is issued ends with each of them. */
import { defined, err, ok } from "../../result.ts";
import type { TokenRequest } from "../token-request.ts";
import { keyNotProven, provesKey } from "../verify-platform.ts";
import type { TokenOption } from "./option.ts";

export const platformsOption: TokenOption = {
  prove(_ports, request) {
    const { platform, keys } = request.client;
    return platform === undefined || provesKey(platform, keys) ? ok(request) : err(keyNotProven(platform));
  },
  concerns: (_settings, _request, { ground }) => ground.platforms.length > 0,
  /** PLAT-D-10, PLAT-D-17: events have the workload whose grant the client brought. */
  tell({ client, ...request }, { access: { forWorkload, workload }, ground: { platforms } }) {
    const [platform] = platforms;
    const told = forWorkload ? { ...client, workload, platform } : client;
    return { ...request, client: defined<TokenRequest["client"]>(told) };
  },
  ends: ({ ground: { platforms } }) => ({ platforms }),
};
