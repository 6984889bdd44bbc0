/**
 * Ends the programs that this process started, and removes the folders that it made, when it ends itself, also by a signal
 * that no program can catch.
 */
import { type ChildProcess, spawn } from "node:child_process";

/** Told by lines which programs run, and which folders are there; its input ends with the process that has the other end. */
const SCRIPT = `
pids=" "
while IFS= read -r line; do
  what=\${line#? }
  case $line in
    "+ "*) pids="$pids$what " ;;
    "- "*) case $pids in *" $what "*) pids="\${pids%%" $what "*} \${pids#*" $what "}" ;; esac ;;
    "/ "*) set -- "$@" "$what" ;;
  esac
done
for pid in $pids; do kill -KILL "$pid"; done
for folder; do rm -rf -- "$folder" || { sleep 1; rm -rf -- "$folder"; }; done
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

function tell(how: "+" | "-" | "/", what: number | string): void {
  guard ??= startGuard();
  guard.stdin?.write(`${how} ${what}\n`);
}

/** The program, which ends with this process at the latest. */
export function endsWithThis<Child extends ChildProcess>(child: Child): Child {
  const { pid } = child;
  if (pid === undefined) return child;
  tell("+", pid);
  child.once("exit", () => tell("-", pid));
  return child;
}

/** The folder, with a path of its own and no line break in it, which is removed with this process at the latest. */
export function removedWithThis(folder: string): string {
  tell("/", folder);
  return folder;
}
