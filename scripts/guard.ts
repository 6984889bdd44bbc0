/** Ends the programs that this process started when it ends itself, also by a signal that no program can catch. */
import type { ChildProcess } from "node:child_process";
import { spawn } from "node:child_process";

/** Told by lines which programs run; its input ends with the process that has the other end. */
const SCRIPT = `
pids=" "
while read -r how pid; do
  case $how in
    +) pids="$pids$pid " ;;
    -) case $pids in *" $pid "*) pids="\${pids%%" $pid "*} \${pids#*" $pid "}" ;; esac ;;
  esac
done
for pid in $pids; do kill -KILL "$pid"; done
`;

let guard: ChildProcess | undefined;

function startGuard(): ChildProcess {
  // In a session of its own, or what kills the whole group of this process would kill it first.
  const started = spawn("/bin/sh", ["-c", SCRIPT], {
    detached: true,
    cwd: "/",
    stdio: ["pipe", "ignore", "ignore"],
  });
  // It only ends what is left, so that a guard that is gone changes nothing.
  started.stdin?.on("error", () => undefined);
  started.on("error", () => undefined);
  started.unref();
  return started;
}

/** The program, which ends with this process at the latest. */
export function endsWithThis<Child extends ChildProcess>(child: Child): Child {
  guard ??= startGuard();
  const tell = (how: "+" | "-"): void => void guard?.stdin?.write(`${how} ${child.pid}\n`);
  if (child.pid === undefined) return child;
  tell("+");
  child.once("exit", () => tell("-"));
  return child;
}
